"""Groups of shards that wait, as `status` says them: how many, for what, at which OSD."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

from ...execution.change_outcomes import WaitingGroup
from ...runtime.formatting import plural
from ...snapshot import reason_codes as codes

#: Groups that a sentence names before it only counts the rest.
_NAMED = 4


def _backfills(group: WaitingGroup) -> str:
    end, direction = (("target", "coming") if group.numbers.get("direction") == "coming"
                      else ("source", "leaving"))
    return f"for a {end} that has {_limit(group)} {direction}"


def _misplaced(group: WaitingGroup) -> str:
    return ("urgent misplaced limit" if group.option == "urgent_misplaced_ratio"
            else "misplaced limit")


#: Code → what the shards of a group wait for, without the OSD. Other codes have the sentence of
#: the first change, which names what is in the way.
_PHRASES: Mapping[str, Callable[[WaitingGroup], str]] = {
    codes.MAX_BACKFILLS: _backfills,
    codes.MAX_TRANSIT: lambda group: f"for max_transit_ratio ({_limit(group)})",
    codes.MAX_MOVES: lambda group: f"for the next round (max_moves_per_round is {_limit(group)})",
    codes.MISPLACED_LIMIT: lambda group: f"for the {_misplaced(group)} of {_percent(group)}",
    codes.MISPLACED_ONE_PG: lambda group: (
        f"for their turn: one PG is {group.numbers.get('own', '')}% of all object copies, and the"
        f" {_misplaced(group)} is {_percent(group)}"),
    codes.NEARFULL_FIRST: lambda group: "until an OSD above nearfull is relieved",
    codes.SOURCE_FULL: lambda group: "for a target that would be the fullest meanwhile",
    codes.COOLDOWN: lambda group: "for pg_cooldown",
    codes.IN_FLIGHT: lambda group: "for an earlier move of their PG",
    codes.BUSY: lambda group: "for a scrub, repair or trimming of their PG",
    codes.FILL_LIMIT: lambda group: f"for a target that would pass {_percent(group)} (fill_limit)",
    codes.NEARFULL: lambda group: "for a target that is nearfull",
    codes.REWEIGHT: lambda group: "for a target whose weights leave it no more",
    codes.TARGET_UNAVAILABLE: lambda group: "for a target that cannot take them",
    codes.STALE_STATISTICS: lambda group: "for an OSD that does not report",
    codes.UPMAP_ITEMS: lambda group: f"for max_upmap_items ({_limit(group)} pairs)",
    codes.PG_COUNT: lambda group: f"for a target that has {_limit(group)} PG shards",
    codes.NEXT_BATCH: lambda group: "for the next round"}


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
    """The figures of a group as report/explain/actions.py takes them."""
    return {**group.numbers, "osd": group.osd, "option": group.option,
            "limit": None if group.limit is None else f"{group.limit:g}"}


def waits_for(group: WaitingGroup) -> str:
    """What the shards of a group wait for, with the OSD at which most of them do."""
    phrase = _PHRASES.get(group.code)
    if phrase is None or not group.numbers and group.code != codes.NEXT_BATCH:
        return f"because {group.reason}"
    return phrase(group) + _osds(group)


def _osds(group: WaitingGroup) -> str:
    if group.osd is None:
        return ""
    more = f" and {group.osds - 1} more" if group.osds > 1 else ""
    return f" (osd.{group.osd}{more})"


def _limit(group: WaitingGroup) -> str:
    return "" if group.limit is None else f"{group.limit:g}"


def _percent(group: WaitingGroup) -> str:
    return "" if group.limit is None else f"{100.0 * group.limit:.2f}%"
