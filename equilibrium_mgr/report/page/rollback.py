"""The commands that undo a plan: each PG gets back the upmap items that it has."""
from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ...plan.model import PgChange
from ...runtime.formatting import plural
from ...snapshot.model import Snapshot, UpmapItems
from ...snapshot.upmap_items import items_for
from .markup import Html, element, folded, joined, paragraph, section
from .facts.plan_standing import PlanStanding
from .facts.sources import PageFacts

#: Bytes of commands on the page; JSON has all of them.
_MOST_BYTES = 120_000


def rollback_commands(standing: PlanStanding, snapshot: Snapshot) -> List[str]:
    """The commands in the order of the plan, its last change first.

    A PG that the plan has not touched gets what it has now; one that it has moved already what
    places it where the plan found it.
    """
    return [_command(pgid, items) for pgid, items in _former_items(standing, snapshot)][::-1]


def rollback_section(facts: PageFacts) -> Html:
    """Empty where there is no plan, or it changes nothing."""
    if facts.standing is None or not facts.standing.plan.changes:
        return Html("")
    commands = rollback_commands(facts.standing, facts.view.snapshot)
    shown = _first(commands)
    parts = [
        paragraph("These commands give the PGs back the upmap items that they have at osdmap epoch"
                  f" {facts.view.snapshot.epoch}. What has moved by then moves back. 'ceph"
                  " equilibrium off' comes first, or the moves are planned anew. Nothing throttles"
                  " them: run some dozens at a time, and look at 'ceph -s' between."),
        folded(f"{plural(len(commands), 'command')}", element("pre", "\n".join(shown)))]
    if len(shown) < len(commands):
        name = facts.standing.name
        parts.append(paragraph(
            f"{len(shown)} of {len(commands)} commands are shown. All of them: ceph equilibrium"
            f" report {name} --format json | jq -r '.rollback[]'", class_="note"))
    return section("Rollback", joined(parts))


def _former_items(standing: PlanStanding,
                  snapshot: Snapshot) -> Iterator[Tuple[str, UpmapItems]]:
    made = {change.pgid for change in standing.in_place}
    left = made | {change.pgid for change in standing.to_make}
    for change in standing.plan.changes:
        if change.pgid not in made and change.pgid in left:
            yield change.pgid, snapshot.upmap_items.get(change.pgid, ())
        elif change.pgid in made:
            items = _items_before(change)
            if items is not None:
                yield change.pgid, items


def _items_before(change: PgChange) -> Optional[UpmapItems]:
    try:
        return items_for(change.raw, change.up_before)
    except ValueError:   # upmap items cannot express where it was
        return None


def _command(pgid: str, items: UpmapItems) -> str:
    if not items:
        return f"ceph osd rm-pg-upmap-items {pgid}"
    return f"ceph osd pg-upmap-items {pgid} " + " ".join(f"{a} {b}" for a, b in items)


def _first(commands: List[str]) -> List[str]:
    """As many as the page has space for."""
    size = 0
    for number, command in enumerate(commands):
        size += len(command) + 1
        if size > _MOST_BYTES:
            return commands[:number]
    return commands
