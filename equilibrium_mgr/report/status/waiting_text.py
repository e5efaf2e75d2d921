"""Groups of shards that wait, as `status` says them: how many, for what, at which OSD."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ...execution.change_outcomes import WaitingGroup
from ...runtime.formatting import plural
from ...snapshot import reason_codes as codes
from ...snapshot.reason_codes import REASONS

#: Groups that a sentence names before it only counts the rest.
_NAMED = 4


def waiting_sentence(groups: Sequence[WaitingGroup], planned: int) -> str:
    """Why shards wait, the largest group first. `planned`: shards of the whole plan."""
    total = sum(group.shards for group in groups)
    waits = "waits" if total == 1 else "wait"
    if len(groups) == 1:
        return f"{total} of {plural(planned, 'shard')} {waits} {waits_for(groups[0])}"
    named = [f"{group.shards} {waits_for(group)}" for group in groups[:_NAMED]]
    others = sum(group.shards for group in groups[_NAMED:])
    if others:
        named.append(f"{others} for other reasons")
    return f"{total} of {plural(planned, 'shard')} {waits}: {', '.join(named)}"


def waiting_json(groups: Sequence[WaitingGroup]) -> List[Dict[str, Any]]:
    """The groups, JSON-ready."""
    return [{"code": group.code, "shards": group.shards, "option": group.option,
             "limit": group.limit, "osd": group.osd} for group in groups]


def action_numbers(group: WaitingGroup) -> Dict[str, Any]:
    """The figures of a group as its action takes them."""
    return {**group.numbers, "osd": group.osd, "option": group.option,
            "limit": None if group.limit is None else f"{group.limit:g}"}


def waits_for(group: WaitingGroup) -> str:
    """What the shards of a group wait for, with the OSD at which most of them do."""
    phrase, numbers = REASONS[group.code].waits_for, group.numbers
    if not phrase or not numbers and group.code != codes.NEXT_BATCH:
        return f"because {group.reason}"
    limit = 0.0 if group.limit is None else group.limit
    osds = "" if group.osd is None else f" (osd.{group.osd}" + (
        f" and {group.osds - 1} more)" if group.osds > 1 else ")")
    return phrase.format(**{
        "own": "", **numbers, "limit": f"{limit:g}", "percent": f"{100.0 * limit:.2f}%",
        "end": "target" if numbers.get("direction") == "coming" else "source",
        "misplaced_limit": "urgent misplaced limit" if group.option == "urgent_misplaced_ratio"
                           else "misplaced limit"}) + osds
