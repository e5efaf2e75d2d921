"""PGs that Ceph holds up because an OSD is too full for them: which OSD, and what helps."""
from __future__ import annotations

import math
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..runtime.formatting import plural
from ..snapshot.model import Osd, Pg, Snapshot
from .states import BALANCED, BLOCKED, MOVING, STUCK, THROTTLED, WAITING

BACKFILL, RECOVERY = "backfill_toofull", "recovery_toofull"
_PGS_NAMED = 3
#: States in which something waits, or might.
HELD_UP = (BLOCKED, THROTTLED, MOVING, WAITING, STUCK, BALANCED)
#: No command is named that would let an OSD fill further than this.
HIGHEST_RATIO = 0.98
#: Nor one that would let backfill fill an OSD so near to full_ratio.
_MARGIN = 0.02


class TooFull(NamedTuple):
    """PGs in one state for one OSD; ratios are of the OSD's size."""

    state: str
    osd: int
    utilization: float   # now
    ratio: float         # the cluster's limit that it is above
    needed: float        # a limit that would let all PGs in that state go on
    pgids: Tuple[str, ...]

    @property
    def ratio_name(self) -> str:
        """The ratio of the osdmap that holds the PGs up."""
        return "backfillfull_ratio" if self.state == BACKFILL else "full_ratio"

    def command(self, full_ratio: float) -> Optional[str]:
        """The command that lets the PGs go on; None where no ratio below the next one is enough."""
        highest = HIGHEST_RATIO if self.state == RECOVERY else full_ratio - _MARGIN
        if self.needed > highest:
            return None
        return f"ceph osd set-{self.ratio_name.replace('_', '-')} {self.needed:.2f}"

    def sentence(self) -> str:
        """For people: the PGs and the OSD."""
        named = ", ".join(self.pgids[:_PGS_NAMED])
        more = len(self.pgids) - _PGS_NAMED
        others = f" and {more} more" if more > 0 else ""
        return (f"pg {named}{others} in {self.state}: osd.{self.osd} is too full, at"
                f" {self.utilization:.4f} with {self.ratio_name} {self.ratio:.4f}")

    def to_json(self, full_ratio: float) -> Dict[str, Any]:
        """The same, JSON-ready."""
        return {"state": self.state, "osd": self.osd, "utilization": self.utilization,
                self.ratio_name: self.ratio, "pgs": len(self.pgids),
                "pgids": list(self.pgids[:_PGS_NAMED]), "command": self.command(full_ratio)}


def find_too_full(snapshot: Snapshot,
                  pgids: Optional[Iterable[str]] = None) -> Tuple[TooFull, ...]:
    """Finds them by the states of the PGs; those that hold up most PGs first. `pgids`: the PGs in
    such states, where they are known.

    Ceph refuses backfill to a target that would pass backfillfull_ratio, and recovery, which is
    how PGs with short histories move, while any OSD of the PG is above full_ratio
    (PeeringState::WaitLocalRecoveryReserved), be it the one that the shard is to leave.
    """
    found: Dict[Tuple[str, int], List[str]] = {}
    needed: Dict[Tuple[str, int], float] = {}
    for pg in snapshot.pgs.values() if pgids is None else map(snapshot.pgs.__getitem__, pgids):
        if "toofull" not in pg.state:
            continue
        state = BACKFILL if BACKFILL in pg.state else RECOVERY
        for osd, utilization in _too_full_osds(snapshot, pg, state):
            found.setdefault((state, osd), []).append(pg.pgid)
            one = snapshot.osds[osd]
            needed[state, osd] = max(
                needed.get((state, osd), 0.0), utilization,
                _utilization(one, one.inbound_bytes) if state == BACKFILL else 0.0)
    entries = []
    for (state, osd), held in found.items():
        # one ratio is for all OSDs
        most = max(ratio for (other, _), ratio in needed.items() if other == state)
        entries.append(TooFull(
            state, osd, snapshot.osds[osd].utilization or 0.0,
            snapshot.backfillfull_ratio if state == BACKFILL else snapshot.full_ratio,
            math.floor(100.0 * most) / 100.0 + 0.01, tuple(held)))
    return tuple(sorted(entries, key=lambda e: (-len(e.pgids), e.state, e.osd)))


def with_too_full(state: str, reason: str, entries: Sequence[TooFull]) -> str:
    """The reason of a state in which something waits, behind the first entry."""
    if not entries or state not in HELD_UP:
        return reason
    more = len(entries) - 1
    verb = "is" if more == 1 else "are"
    others = f"; {plural(more, 'more OSD')} {verb} too full" if more else ""
    return f"{entries[0].sentence()}{others}; {reason}"


def _too_full_osds(snapshot: Snapshot, pg: Pg, state: str) -> List[Tuple[int, float]]:
    """OSDs that are too full for the PG, with the utilization that its movement takes them to;
    where their statistics show none, the fullest."""
    def known(osds: Iterable[int]) -> FrozenSet[int]:
        return frozenset(osd for osd in osds
                         if osd in snapshot.osds and snapshot.osds[osd].has_statistics)
    if state == BACKFILL:
        osds, ratio = known(pg.up) - frozenset(pg.acting) or known(pg.up), (
            snapshot.backfillfull_ratio)
        extra = {osd: snapshot.shard_bytes(pg, osd, pg.up) for osd in osds}
    else:
        osds, ratio = known(pg.up + pg.acting), snapshot.full_ratio
        extra = dict.fromkeys(osds, 0)
    after = {osd: _utilization(snapshot.osds[osd], extra[osd]) for osd in sorted(osds)}
    above = [(osd, used) for osd, used in after.items()
             if snapshot.osds[osd].reaches(ratio, extra[osd])]
    if above or not after:
        return above
    fullest = max(after, key=lambda osd: (after[osd], -osd))
    return [(fullest, max(after[fullest], ratio))]


def _utilization(osd: Osd, extra_bytes: int) -> float:
    return (osd.used_bytes + extra_bytes) / osd.size_bytes
