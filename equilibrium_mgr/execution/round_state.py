"""The limits of one round, how much of them is left, and one wanted change: the checks read these.

`ThrottleState.consume` uses the limits up, change by change.
"""
from __future__ import annotations

from collections import Counter
from typing import Collection, Dict, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import PgChange, moves_nothing, redirects
from ..plan.options import effective_fill_limit
from ..plan.usage import share_limits
from ..settings import Settings
from ..snapshot.model import Osd, Pg, Snapshot, shard_changes
from .guards import PoolGuard, awaits_space, changing_pg_nums, full_osds
from .pending_moves import misplaced_copies
from .pg_num_steps import needed_by_steps
from .traffic import OsdTraffic

#: This ratio of the misplaced limit stays free for what clients write to PGs in flight, and for
#: copies that the statistics of a PG do not show yet. The wider one is for relief that does not
#: count the copies of PGs that wait for space.
_MISPLACED_MARGIN = 0.05
_STUCK_MARGIN = 0.15


class ThrottleLimits(NamedTuple):
    """The limits of a round: the options, and figures that only the loop knows."""

    settings: Settings
    max_misplaced_ratio: float    # by the option and Ceph's own target
    misplaced_copies: int         # Ceph's count, and ours that it cannot show yet
    in_flight: Collection[str]    # PGs that we have sent and not seen arrive
    cooling: Mapping[str, float] = {}   # pgid → seconds until it may move
    max_pg_shards: int = 0   # the most PG shards of an OSD; 0: no limit
    withheld_at: Mapping[int, int] = {}   # the same of OSDs that have withheld a PG
    made_way: Collection[str] = ()   # PGs cancelled for a pg_num change, STEP_SECONDS ago at most


class Candidate(NamedTuple):
    """A wanted change, with its PG and OSDs in the snapshot."""

    change: PgChange
    pg: Pg
    gains: Tuple[int, ...]        # OSDs that get a shard
    losses: Tuple[int, ...]       # OSDs that lose one
    relieves: Optional[int] = None   # the OSD above nearfull that it relieves urgently
    moves_nothing: bool = False   # it copies no further shard (plan/model.py)
    redirects: bool = False       # it copies only shards that are copied anyway (the same)

    @property
    def adds_no_copy(self) -> bool:
        """Returns True if it copies nothing that is not copied anyway."""
        return self.moves_nothing or self.redirects

    @property
    def osds(self) -> Tuple[int, ...]:
        """Returns the OSDs that get or lose a shard."""
        return self.gains + self.losses

    @property
    def copies(self) -> int:
        """Returns the object copies that the change misplaces."""
        return self.pg.objects * self.change.shards


class ReliefReservation:
    """Resources kept for relief that has to wait: its OSDs, and the misplaced budget of as much of
    it as can go at a time."""

    def __init__(self, max_backfills: int) -> None:
        """`max_backfills`: shards that may leave an OSD at a time; 0 means any number."""
        self._max_backfills = max_backfills
        self._waiting: Counter[int] = Counter()   # overfull OSD → changes that wait
        self._osds: Dict[int, int] = {}      # OSD → the overfull OSD that it is kept for
        self.copies = 0                      # object copies that the relief misplaces
        self.first: Optional[int] = None     # the first OSD whose relief has to wait

    def add(self, relieves: int, osds: Sequence[int], copies: int) -> None:
        """Reserves for a waiting change that takes a shard off the overfull OSD `relieves`."""
        if self.first is None:
            self.first = relieves
        for osd in osds:
            self._osds.setdefault(osd, relieves)
        self._waiting[relieves] += 1
        if self._waiting[relieves] <= self._max_backfills or not self._max_backfills:
            self.copies += copies

    def sharing(self, osds: Sequence[int]) -> Optional[int]:
        """Returns the overfull OSD whose relief waits at one of these OSDs, or None."""
        for osd in osds:
            if osd in self._osds:
                return self._osds[osd]
        return None


class ThrottleState:
    """What the checks of a batch read: the limits, and how much of them is left."""

    def __init__(self, snapshot: Snapshot, limits: ThrottleLimits,
                 blocked: Mapping[int, PoolGuard], traffic: OsdTraffic) -> None:
        """`blocked`: pool id → why none of its PGs may be moved."""
        settings = limits.settings
        self.snapshot = snapshot
        self.settings = settings
        self.limits = limits
        self.blocked = blocked
        self.traffic = traffic
        self.full_osds = full_osds(snapshot)
        #: misplaced object copies of PGs that wait for space on these OSDs
        self._stuck_copies = 0
        #: OSD → shards of such PGs on the way to it or from it
        self.stuck_shards: Counter[int] = Counter()
        for pg in snapshot.in_flight().values():
            if awaits_space(snapshot, pg, self.full_osds):
                self._stuck_copies += misplaced_copies(snapshot, pg)
                for osds in snapshot.transfers(pg):
                    self.stuck_shards.update(osds)
        self.reserved = ReliefReservation(settings.max_backfills_per_osd)
        self.misplaced_copies = limits.misplaced_copies
        self.max_misplaced_copies = limits.max_misplaced_ratio * snapshot.object_copies
        self._max_urgent_copies = max(
            self.max_misplaced_copies, settings.urgent_misplaced_ratio * snapshot.object_copies)
        self.moves_left = settings.max_moves_per_round
        self.fill_limit = effective_fill_limit(settings.fill_limit, snapshot.backfillfull_ratio)
        self.max_utilization = snapshot.max_utilization_by_class()
        #: OSDs that lose a shard of a change that waits, of those before the candidate
        self.relieved_before: Set[int] = set()
        self.share_bytes = share_limits(snapshot)
        self.upmap_pairs = sum(map(len, snapshot.upmap_items.values()))
        self._shards: Optional[Counter[int]] = None   # OSD → PG shards, counted when needed
        self.changing = changing_pg_nums(snapshot)
        #: OSD → the changing pool whose next steps need it
        self.needed_by_steps = needed_by_steps(snapshot)

    def candidate(self, pg: Pg, change: PgChange, relieves: Optional[int],
                  steers: bool = False) -> Candidate:
        """Returns the change with its PG. `steers`: it may only redirect shards.

        A cancelled move can have completed in the meantime. Its shards must then be copied back.
        """
        positional = self.snapshot.is_positional(pg)
        gains, losses = shard_changes(pg.up, change.up_after, positional)
        if steers:
            is_held = {*pg.holders}
            return Candidate(
                change=change,
                pg=pg,
                gains=tuple([osd for osd in gains if osd not in is_held]),
                losses=losses,
                moves_nothing=moves_nothing(pg, change.up_after, positional),
                redirects=redirects(pg, change.up_after, positional))
        is_motionless = moves_nothing(pg, change.up_after, positional)
        if not is_motionless and change.shards < len(gains):
            change = change._replace(shards=len(gains))
        return Candidate(change, pg, gains, losses, relieves, is_motionless)

    def emergency_osd(self, candidate: Candidate) -> Optional[int]:
        """Returns the OSD above backfillfull that the change relieves urgently, if such changes
        have a misplaced limit of their own; else None."""
        if candidate.relieves is None or not self.settings.urgent_misplaced_ratio:
            return None
        osd = self.snapshot.osds[candidate.relieves]
        return osd.id if osd.reaches(self.snapshot.backfillfull_ratio) else None

    def is_relief(self, candidate: Candidate) -> bool:
        """Returns True if every shard leaves an OSD that needs space (full_osds)."""
        return bool(candidate.losses) and self.full_osds.issuperset(candidate.losses)

    def misplaced_copies_for(self, candidate: Candidate) -> int:
        """Returns the object copies that count against the misplaced limit of the change.

        PGs that wait for space do not count against relief, because only relief lets them move.
        PGs that can move count, so that relief under way stays below the limit.
        """
        if not self.is_relief(candidate):
            return self.misplaced_copies
        return max(0, self.misplaced_copies - self._stuck_copies)

    def max_copies_for(self, candidate: Candidate) -> float:
        """Returns the object copies that may be misplaced, by the limit of the change."""
        if self.emergency_osd(candidate) is None:
            return self.max_misplaced_copies
        return self._max_urgent_copies

    def allowed_copies_for(self, candidate: Candidate) -> float:
        """Returns max_copies_for less a margin. The margin is wider if PGs that wait for space are
        left out, because only the snapshot counts their copies."""
        is_uncertain = self._stuck_copies > 0 and self.is_relief(candidate)
        margin = _STUCK_MARGIN if is_uncertain else _MISPLACED_MARGIN
        return (1.0 - margin) * self.max_copies_for(candidate)

    def consume(self, candidate: Candidate) -> None:
        """Counts a change of the batch against all limits of the round."""
        self.upmap_pairs += self.added_pairs(candidate.change)
        if candidate.moves_nothing:
            return
        self.moves_left -= candidate.change.shards
        self.misplaced_copies += candidate.copies
        gains = [(osd, self.shard_bytes(candidate, osd)) for osd in candidate.gains]
        losses = [(osd, self.shard_bytes(candidate, osd)) for osd in candidate.losses]
        if candidate.redirects:   # until it is kept, shards are on their way to the old targets
            losses = []
        self.traffic.add(gains, losses)
        if self._shards is not None:
            self._shards.update(candidate.gains)

    def shard_bytes(self, candidate: Candidate, osd: int) -> int:
        """Returns the bytes of the shard that an OSD gains or loses by the change."""
        pg = candidate.pg
        up = candidate.change.up_after if osd in candidate.gains else pg.up
        return self.snapshot.shard_bytes(pg, osd, up)

    def peak_bytes(self, osd: Osd, candidate: Candidate) -> int:
        """Returns the bytes on a target once all incoming shards and this one are there. Sources
        keep their copy while targets fill, so it subtracts nothing that leaves."""
        load = self.traffic.of(osd.id)
        return (osd.used_bytes + load.bytes_in + load.arrived_bytes
                + self.shard_bytes(candidate, osd.id))

    def osd_above_transit_limit(self, candidate: Candidate) -> Optional[int]:
        """Returns an OSD that the change would take past max_transit_ratio of its size, or None.
        Does not check OSDs without statistics: their size is unknown."""
        if not self.settings.max_transit_ratio:
            return None
        for osd in candidate.gains:
            if self._passes_transit_limit(candidate, osd, self.traffic.of(osd).bytes_in):
                return osd
        emergency = self.emergency_osd(candidate)
        for osd in candidate.losses:
            if osd == emergency:
                continue   # it may give all that it has too much
            if self._passes_transit_limit(candidate, osd, self.traffic.of(osd).bytes_out):
                return osd
        return None

    def _passes_transit_limit(self, candidate: Candidate, number: int, bytes_now: int) -> bool:
        osd = self.snapshot.osds.get(number)
        if osd is None or not osd.has_statistics:
            return False
        limit = self.settings.max_transit_ratio * osd.size_bytes
        return bytes_now + self.shard_bytes(candidate, number) > limit

    def added_pairs(self, change: PgChange) -> int:
        """Returns the pairs of upmap items that the change adds to the osdmap; below 0 if it drops
        some."""
        return len(change.items) - len(self.snapshot.items_of(change.pgid))

    def pg_shards(self, osd: int) -> int:
        """Returns the number of PG shards on an OSD, including those moving to or from it.

        Uses the OSD's own count plus the incoming shards if that sum is higher. The OSD also counts
        PGs that it still deletes. The sum may count incoming shards twice.
        """
        if self._shards is None:
            self._shards = _count_shards(self.snapshot)
        own_count = self.snapshot.osds[osd].pg_shards
        return max(self._shards[osd], own_count + self.traffic.of(osd).shards_in)


def _count_shards(snapshot: Snapshot) -> Counter[int]:
    counts: Counter[int] = Counter()
    for pg in snapshot.pgs.values():
        counts.update(pg.up)
    for pg in snapshot.in_flight().values():
        counts.update([osd for osd in pg.holders if osd not in pg.up and osd != NO_OSD])
    return counts
