"""PGs that stand still because an OSD is too full for them: which OSD, and what helps."""
from __future__ import annotations

import math
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..snapshot.model import Osd, Pg, Snapshot
from .states import BLOCKED, MOVING, THROTTLED, WAITING

BACKFILL, RECOVERY = "backfill_toofull", "recovery_toofull"
_PGS_NAMED = 3
#: No command is named that would let an OSD fill further than this.
_HIGHEST_RATIO = 0.98


class TooFull(NamedTuple):
    """PGs in one state for one OSD; ratios are of the OSD's size."""

    state: str
    osd: int
    utilization: float   # now
    ratio: float         # the cluster's limit that it is above
    needed: float        # a limit that would let the PGs go on
    pgids: Tuple[str, ...]

    @property
    def ratio_name(self) -> str:
        return "backfillfull_ratio" if self.state == BACKFILL else "full_ratio"

    def command(self, full_ratio: float) -> Optional[str]:
        """What an operator can type, or None where no limit below the next one is enough."""
        highest = _HIGHEST_RATIO if self.state == RECOVERY else full_ratio - 0.005
        if self.needed > highest:
            return None
        return f"ceph osd set-{self.ratio_name.replace('_', '-')} {self.needed:.2f}"

    def sentence(self, full_ratio: float) -> str:
        named = ", ".join(self.pgids[:_PGS_NAMED])
        more = len(self.pgids) - _PGS_NAMED
        cure = self.command(full_ratio)
        return "pg %s%s in %s: osd.%d is too full, at %.4f with %s %.4f; %s" % (
            named, " and %d more" % more if more > 0 else "", self.state, self.osd,
            self.utilization, self.ratio_name, self.ratio,
            "'%s' lets it go on (set it back afterwards)" % cure if cure
            else "only room on it helps")

    def to_json(self, full_ratio: float) -> Dict[str, Any]:
        return {"state": self.state, "osd": self.osd, "utilization": self.utilization,
                self.ratio_name: self.ratio, "pgs": len(self.pgids),
                "pgids": list(self.pgids[:_PGS_NAMED]), "command": self.command(full_ratio)}


def find_too_full(snapshot: Snapshot) -> Tuple[TooFull, ...]:
    """By the states of the PGs, most PGs first.

    Ceph refuses backfill to a target that would pass backfillfull_ratio, and recovery, which is
    how PGs with short histories move, while any OSD of the PG is above full_ratio
    (PeeringState::WaitLocalRecoveryReserved), be it the one that the shard is to leave.
    """
    found: Dict[Tuple[str, int], List[str]] = {}
    needed: Dict[Tuple[str, int], float] = {}
    for pg in snapshot.pgs.values():
        if "toofull" not in pg.state:
            continue
        state = BACKFILL if BACKFILL in pg.state else RECOVERY
        for osd, level in _culprits(snapshot, pg, state):
            found.setdefault((state, osd), []).append(pg.pgid)
            needed[state, osd] = max(needed.get((state, osd), 0.0), level)
    entries = [TooFull(state, osd, _level(snapshot.osds[osd]),
                       snapshot.backfillfull_ratio if state == BACKFILL else snapshot.full_ratio,
                       math.floor(100.0 * needed[state, osd]) / 100.0 + 0.01, tuple(pgids))
               for (state, osd), pgids in found.items()]
    return tuple(sorted(entries, key=lambda e: (-len(e.pgids), e.state, e.osd)))


def sentences(snapshot: Snapshot, entries: Iterable[TooFull]) -> List[str]:
    return [entry.sentence(snapshot.full_ratio) for entry in entries]


def with_too_full(state: str, reason: str, snapshot: Snapshot,
                  entries: Sequence[TooFull]) -> str:
    """The reason of a state in which something waits, after what stands still for good."""
    if not entries or state not in (BLOCKED, THROTTLED, MOVING, WAITING):
        return reason
    more = len(entries) - 1
    return "%s%s; %s" % (entries[0].sentence(snapshot.full_ratio),
                         "; %d more OSDs are too full" % more if more else "", reason)


def _culprits(snapshot: Snapshot, pg: Pg, state: str) -> List[Tuple[int, float]]:
    """OSDs that are too full for the PG, with the level that its movement takes them to; where
    their statistics show none, the fullest."""
    if state == BACKFILL:
        osds = _known(snapshot, pg.up) - frozenset(pg.acting) or _known(snapshot, pg.up)
        extra, ratio = pg.shard_bytes, snapshot.backfillfull_ratio
    else:
        osds, extra, ratio = _known(snapshot, pg.up + pg.acting), 0, snapshot.full_ratio
    levels = {osd: _level(snapshot.osds[osd], extra) for osd in osds}
    above = [(osd, level) for osd, level in sorted(levels.items()) if level >= ratio]
    if above or not levels:
        return above
    fullest = max(levels, key=lambda osd: (levels[osd], -osd))
    return [(fullest, max(levels[fullest], ratio))]


def _known(snapshot: Snapshot, osds: Iterable[int]) -> FrozenSet[int]:
    return frozenset(osd for osd in osds
                     if osd in snapshot.osds and snapshot.osds[osd].has_statistics)


def _level(osd: Osd, extra_bytes: int = 0) -> float:
    return (osd.used_bytes + extra_bytes) / osd.size_bytes if osd.size_bytes else 0.0
