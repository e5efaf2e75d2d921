"""What becomes of changes that are not sent: groups of those that wait, by what they wait for, and
those that are dropped."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..snapshot.reason_codes import NEXT_BATCH, REASONS
from .verdict import Verdict, WaitingChange

#: Figures of a verdict that are the limit itself.
_LIMITS = ("max_shards", "max_moves", "max_ratio", "limit_ratio", "fill_limit_ratio", "max_pairs")


class DroppedChange(NamedTuple):
    """A change that is given up; some of its shards may move all the same."""

    change: PgChange
    reason: str
    moving_shards: int = 0
    is_refused: bool = False   # the monitor answered with an error


class WaitingGroup(NamedTuple):
    """Shards that wait for the same reason."""

    code: str                 # of snapshot/reason_codes.py
    shards: int
    option: Optional[str]     # which sets the limit; None where no option does
    limit: Optional[float]    # in the unit of the option
    osd: Optional[int]        # for which most of these shards wait; None where the reason has none
    osds: int = 0             # for how many OSDs they wait
    numbers: Mapping[str, Any] = {}   # figures of one of them, see Verdict.numbers
    reason: str = ""          # the sentence of that one

    @property
    def waits_for(self) -> str:
        """What the shards wait for, with the OSD at which most of them do."""
        phrase, numbers = REASONS[self.code].waits_for, self.numbers
        if not phrase or not numbers and self.code != NEXT_BATCH:
            return f"because {self.reason}"
        limit = self.limit or 0.0
        osds = "" if self.osd is None else f" (osd.{self.osd}" + (
            f" and {self.osds - 1} more)" if self.osds > 1 else ")")
        return phrase.format(**{
            "own": "", **numbers, "limit": f"{limit:g}", "percent": f"{100.0 * limit:.2f}%",
            "end": "target" if numbers.get("direction") == "coming" else "source",
            "misplaced_limit": "urgent misplaced limit"
                               if self.option == "urgent_misplaced_ratio"
                               else "misplaced limit"}) + osds

    def figures(self) -> Dict[str, Any]:
        """For its action."""
        return {**self.numbers, "osd": self.osd, "option": self.option,
                "limit": None if self.limit is None else f"{self.limit:g}"}

    def to_json(self) -> Dict[str, Any]:
        """All keys always."""
        return {"code": self.code, "shards": self.shards, "option": self.option,
                "limit": self.limit, "osd": self.osd}


def waiting_groups(wanted: Sequence[PgChange], waiting: Iterable[WaitingChange], code: str,
                   reason: str) -> Tuple[WaitingGroup, ...]:
    """The groups of everything in `wanted`, the largest first; their shards add up to its shards.

    `waiting`: changes with the reasons of the last decision. `code` and `reason` are those of what
    has none there, as where the next batch is not due.
    """
    deferrals = {change.pgid: deferral for change, deferral in waiting}
    shards: Dict[Tuple[str, ...], int] = {}
    first: Dict[Tuple[str, ...], Verdict] = {}
    osds: Dict[Tuple[str, ...], Counter[int]] = {}
    others = 0
    for change in wanted:
        deferral = deferrals.get(change.pgid)
        if deferral is None:
            others += change.shards
            continue
        key = deferral.code, deferral.option, str(deferral.numbers.get("direction", ""))
        first.setdefault(key, deferral)
        shards[key] = shards.get(key, 0) + change.shards
        if "osd" in deferral.numbers:
            osds.setdefault(key, Counter())[int(deferral.numbers["osd"])] += change.shards
    groups = [_group(first[key], count, osds.get(key, Counter())) for key, count in shards.items()]
    if others:
        groups.append(held_group(others, code, reason))
    return tuple(sorted(groups, key=lambda group: (-group.shards, group.code)))


def held_group(shards: int, code: str, reason: str) -> WaitingGroup:
    """The only group where one reason holds up everything."""
    return WaitingGroup(code, shards, None, None, None, reason=reason)


def _group(deferral: Verdict, shards: int, osds: Counter[int]) -> WaitingGroup:
    limits: List[float] = [deferral.numbers[name] for name in _LIMITS if name in deferral.numbers]
    most = min(osds, key=lambda osd: (-osds[osd], osd)) if osds else None
    return WaitingGroup(deferral.code, shards, deferral.option or None,
                        limits[0] if limits else None, most, len(osds), deferral.numbers,
                        deferral.reason)
