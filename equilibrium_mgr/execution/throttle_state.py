"""The limits of one round, and what is left of them while a batch is being chosen."""
from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Collection, Mapping, NamedTuple, Optional, Tuple

from ..crush.placement import NO_OSD
from ..plan.kinds import moves_nothing
from ..plan.model import PgChange
from ..plan.options import effective_fill_limit
from ..plan.weight_shares import share_limits
from ..settings import Settings
from ..snapshot.model import Osd, Pg, Snapshot, shard_changes
from .guards import PoolGuard, full_osds
from .osd_traffic import OsdTraffic
from .urgency import ReliefReservation

#: Of the misplaced limit, as a ratio: left free for what clients write to PGs that are in flight,
#: and for what the statistics of a PG do not show yet.
_MISPLACED_MARGIN = 0.05


class ThrottleLimits(NamedTuple):
    """What limits a round: the options, and what only the loop knows beside them."""

    settings: Settings
    max_misplaced_ratio: float    # by the option and Ceph's own target
    misplaced_copies: int         # Ceph's count, and ours that it cannot show yet
    in_flight: Collection[str]    # PGs that we have sent and not seen arrive
    cooling: Mapping[str, float] = {}   # pgid → seconds for which it stays
    #: PG shards per OSD at which Ceph refuses new pools (mon_max_pg_per_osd), and at which OSDs
    #: refuse PGs; 0: no limit
    max_pg_shards: Tuple[int, int] = (0, 0)


class Candidate(NamedTuple):
    """A wanted change, and what it means for its PG as the snapshot has it."""

    change: PgChange
    pg: Pg
    gains: Tuple[int, ...]        # OSDs that get a shard
    losses: Tuple[int, ...]       # OSDs that lose one
    relieves: Optional[int] = None   # the OSD above nearfull that it relieves urgently
    moves_nothing: bool = False   # it copies no shard (plan/kinds.py)

    @property
    def copies(self) -> int:
        """Object copies that the change misplaces."""
        return self.pg.objects * self.change.shards


class ThrottleState:
    """The state that the checks of a batch read; `consume` uses it up, change by change."""

    def __init__(self, snapshot: Snapshot, limits: ThrottleLimits,
                 blocked: Mapping[int, PoolGuard], traffic: OsdTraffic) -> None:
        """`blocked`: pool id → why none of its PGs may be moved."""
        settings = limits.settings
        self.snapshot = snapshot
        self.settings = settings
        self.limits = limits
        self.blocked = blocked
        self.traffic = traffic
        #: full OSDs that may be emptied while pools are degraded
        self.relievable_osds = (full_osds(snapshot) if settings.relieve_while_degraded and blocked
                                else frozenset())
        self.reserved = ReliefReservation(settings.max_backfills_per_osd)
        self.misplaced_copies = limits.misplaced_copies
        self.max_misplaced_copies = limits.max_misplaced_ratio * snapshot.object_copies
        self._max_urgent_copies = max(
            self.max_misplaced_copies, settings.urgent_misplaced_ratio * snapshot.object_copies)
        self.moves_left = settings.max_moves_per_round
        self.fill_limit = effective_fill_limit(settings.fill_limit, snapshot.backfillfull_ratio)
        self.max_utilization = snapshot.max_utilization_by_class()
        self.share_bytes = share_limits(snapshot)
        self.upmap_pairs = sum(map(len, snapshot.upmap_items.values()))
        self.above_limit: Optional[str] = None   # the PG that goes though alone above the limit
        self.above_transit_limit: Optional[str] = None   # the same for max_transit_ratio of an OSD
        self._shards: Optional[Counter[int]] = None   # OSD → PG shards, counted when needed

    def candidate(self, pg: Pg, change: PgChange, relieves: Optional[int] = None) -> Candidate:
        """The change with its PG, as the checks read it. What was on its way when it was to be
        taken back may have arrived since: then its shards have to be copied."""
        positional = self.snapshot.pools[pg.pool].erasure
        gains, losses = shard_changes(pg.up, change.up_after, positional)
        is_motionless = moves_nothing(pg, change.up_after, positional)
        if not is_motionless and change.shards < len(gains):
            change = change._replace(shards=len(gains))
        return Candidate(change, pg, gains, losses, relieves, is_motionless)

    def emergency_osd(self, candidate: Candidate) -> Optional[int]:
        """The OSD above backfillfull that the change relieves urgently, where such changes have a
        misplaced limit of their own; else None."""
        if candidate.relieves is None or not self.settings.urgent_misplaced_ratio:
            return None
        osd = self.snapshot.osds[candidate.relieves]
        return osd.id if osd.reaches(self.snapshot.backfillfull_ratio) else None

    def max_copies_for(self, candidate: Candidate) -> float:
        """Object copies that may be misplaced, by the limit that holds for the change."""
        return (self.max_misplaced_copies if self.emergency_osd(candidate) is None
                else self._max_urgent_copies)

    def allowed_copies_for(self, candidate: Candidate) -> float:
        """The same less a margin."""
        return (1.0 - _MISPLACED_MARGIN) * self.max_copies_for(candidate)

    def consume(self, candidate: Candidate) -> None:
        """Counts a change that is to be sent against all limits of the round."""
        change, pg = candidate.change, candidate.pg
        self.upmap_pairs += self.added_pairs(change)
        if candidate.moves_nothing:
            return
        if self.osd_above_transit_limit(candidate) is not None:
            self.above_transit_limit = change.pgid
        self.moves_left -= change.shards
        self.misplaced_copies += candidate.copies
        if pg.objects and self.misplaced_copies > self.max_copies_for(candidate):
            self.above_limit = change.pgid
        gains, losses = [tuple([(osd, self.shard_bytes(candidate, osd)) for osd in osds])
                         for osds in (candidate.gains, candidate.losses)]
        self.traffic.add(gains, losses)
        if self._shards is not None:
            self._shards.update(candidate.gains)

    def shard_bytes(self, candidate: Candidate, osd: int) -> int:
        """Bytes of the shard that an OSD gains or loses by the change."""
        pg = candidate.pg
        return self.snapshot.shard_bytes(
            pg, osd, candidate.change.up_after if osd in candidate.gains else pg.up)

    def peak_bytes(self, osd: Osd, candidate: Candidate) -> int:
        """Bytes on a target once all that is coming and one shard more are there. Sources keep
        their copy while targets fill, so nothing that leaves is subtracted."""
        load = self.traffic.of(osd.id)
        return (osd.used_bytes + load.bytes_in + load.arrived_bytes
                + self.shard_bytes(candidate, osd.id))

    def osd_above_transit_limit(self, candidate: Candidate) -> Optional[int]:
        """Returns an OSD that the change would take past max_transit_ratio of its size, or None.
        OSDs without statistics are not checked, since their size is unknown."""
        ratio, emergency = self.settings.max_transit_ratio, self.emergency_osd(candidate)
        for into, osds in ((True, candidate.gains), (False, candidate.losses)):
            for osd_id in osds if ratio else ():
                if not into and osd_id == emergency:
                    continue   # it may give all that it has too much
                osd = self.snapshot.osds.get(osd_id)
                load = self.traffic.of(osd_id)
                now = load.bytes_in if into else load.bytes_out
                if osd is not None and osd.has_statistics:
                    if now + self.shard_bytes(candidate, osd_id) > ratio * osd.size_bytes:
                        return osd_id
        return None

    def added_pairs(self, change: PgChange) -> int:
        """Pairs of upmap items that the change adds to the osdmap; below 0 where it drops some."""
        return len(change.items) - len(self.snapshot.upmap_items.get(change.pgid, ()))

    def pg_shards(self, osd: int) -> int:
        """PG shards on an OSD, on their way to it, or still to leave it."""
        if self._shards is None:
            self._shards = _count_shards(self.snapshot)
        return self._shards[osd]


def _count_shards(snapshot: Snapshot) -> Counter[int]:
    counts: Counter[int] = Counter(chain.from_iterable(
        [pg.up for pg in snapshot.pgs.values()]))
    for pg in snapshot.in_flight().values():
        counts.update(osd for osd in pg.holders if osd not in pg.up and osd != NO_OSD)
    return counts
