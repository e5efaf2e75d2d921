"""The limits of one round, and what is left of them while a batch is being chosen.

Data in flight from and to every OSD, whoever moves it.

Until a PG has peered its acting set still equals its up set, so the snapshot alone shows nothing of
what was sent a moment ago. The pending moves do; `unseen` is the only place that puts both
together.

Puts those wanted changes first that relieve OSDs above nearfull.

The plan is ordered: the fullest OSDs first, and what frees space before what needs it. Among all
other changes that order is kept.
"""
from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import PgChange, moves_nothing
from ..plan.options import effective_fill_limit
from ..plan.usage import share_limits
from ..settings import Settings
from ..snapshot.model import Osd, Pg, SizedShards, Snapshot, shard_changes
from .guards import PoolGuard, full_osds
from .pending_moves import Arrival, PendingMove


class TrafficLoad(NamedTuple):
    """One OSD's shards in flight, and their bytes that are still to be copied."""

    shards_in: int = 0
    shards_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    leaving_bytes: int = 0   # whole shards: what becomes free when everything has arrived
    arrived_bytes: int = 0    # just arrived: the OSD's statistics may not count them yet


_IDLE = TrafficLoad()


class OsdTraffic:
    """OSD → load; grows while a batch is being chosen."""

    def __init__(self) -> None:
        self._loads: Dict[int, TrafficLoad] = {}

    def of(self, osd: int) -> TrafficLoad:
        """The load of one OSD."""
        return self._loads.get(osd, _IDLE)

    def add(self, gains: SizedShards, losses: SizedShards, uncopied_ratio: float = 1.0) -> None:
        """Adds one PG's shards in flight, of whose bytes this ratio is still to be copied."""
        loads = self._loads
        for osd, size in gains:
            shards_in, shards_out, bytes_in, *rest = loads.get(osd, _IDLE)
            loads[osd] = TrafficLoad(shards_in + 1, shards_out,
                                     bytes_in + int(size * uncopied_ratio), *rest)
        for osd, size in losses:
            shards_in, shards_out, bytes_in, bytes_out, leaving, arrived = loads.get(osd, _IDLE)
            loads[osd] = TrafficLoad(shards_in, shards_out + 1, bytes_in,
                                     bytes_out + int(size * uncopied_ratio), leaving + size,
                                     arrived)

    def add_arrival(self, targets: SizedShards) -> None:
        """Adds one PG that has arrived a moment ago."""
        for osd, shard_bytes in targets:
            load = self.of(osd)
            self._loads[osd] = load._replace(arrived_bytes=load.arrived_bytes + shard_bytes)


def unseen(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> Iterator[PendingMove]:
    """Pending moves of PGs that the snapshot does not show as moving."""
    for pgid, entry in pending.items():
        pg = snapshot.pgs.get(pgid)
        if pg is not None and not pg.is_moving:
            yield entry


def osd_traffic(snapshot: Snapshot, pending: Mapping[str, PendingMove],
                arrivals: Sequence[Arrival] = ()) -> OsdTraffic:
    """OSD → what is in flight to and from it, by the snapshot and by pending moves that it does not
    show, and what has just arrived."""
    found = OsdTraffic()
    for pg in snapshot.in_flight().values():
        found.add(*snapshot.sized_transfers(pg), pg.uncopied_ratio)
    for entry in unseen(snapshot, pending):
        found.add(entry.gains, entry.losses)
    for arrival in arrivals:
        found.add_arrival(arrival.gains)
    return found


def predicted_utilization(snapshot: Snapshot, load: TrafficLoad, osd_id: int) -> float:
    """Utilization of an OSD once everything in flight, our unseen moves included, has arrived: a
    ratio; 0 where unknown. `Osd.target_utilization` is without unseen moves."""
    osd = snapshot.osds.get(osd_id)
    if osd is None or not osd.has_statistics:
        return 0.0
    return (osd.used_bytes + load.bytes_in - load.leaving_bytes) / osd.size_bytes


class Ranked(NamedTuple):
    """The wanted changes in the order in which they are checked."""

    changes: List[PgChange]
    urgent: Dict[str, int]   # pgid → the OSD above nearfull that its change relieves


class ReliefReservation:
    """Resources kept for relief that has to wait: its OSDs, and the misplaced budget of as much of
    it as can go at a time."""

    def __init__(self, max_backfills: int) -> None:
        """`max_backfills`: shards that may leave an OSD at a time; 0 means any number."""
        self._max_backfills = max_backfills
        self._waiting: Dict[int, int] = {}   # overfull OSD → changes that wait
        self._osds: Dict[int, int] = {}      # OSD → the overfull OSD that it is kept for
        self.copies = 0                      # object copies that the relief is to misplace
        self.first: Optional[int] = None     # the first OSD whose relief has to wait

    def add(self, relieves: int, osds: Sequence[int], copies: int) -> None:
        """Reserves for a waiting change that takes a shard off the overfull OSD `relieves`."""
        self.first = relieves if self.first is None else self.first
        for osd in osds:
            self._osds.setdefault(osd, relieves)
        waiting = self._waiting[relieves] = self._waiting.get(relieves, 0) + 1
        if waiting <= self._max_backfills or not self._max_backfills:
            self.copies += copies

    def sharing(self, osds: Sequence[int]) -> Optional[int]:
        """The overfull OSD whose relief waits at one of these, or None."""
        return next((self._osds[osd] for osd in osds if osd in self._osds), None)


def by_urgency(snapshot: Snapshot, traffic: OsdTraffic, wanted: Sequence[PgChange]) -> Ranked:
    """Ranks changes: urgent are as many as bring the OSDs below nearfull again, given what is in
    flight."""
    overfull = _overfull(snapshot, traffic)
    if not overfull:
        return Ranked(list(wanted), {})
    leaving: Dict[int, List[Tuple[float, int, PgChange]]] = {osd: [] for osd in overfull}
    for place, change in enumerate(wanted):
        losses = _losses(snapshot, change)
        relieved = [osd for osd in losses if osd in leaving]
        for osd in relieved:
            leaving[osd].append((-len(relieved) / len(losses), place, change))
    urgent: Dict[str, int] = {}
    first: List[PgChange] = []
    for osd in sorted(overfull, key=lambda o: (-overfull[o], o)):
        excess = (overfull[osd] - snapshot.nearfull_ratio) * snapshot.osds[osd].size_bytes
        for _, _, change in sorted(leaving[osd], key=lambda row: row[:2]):
            if excess <= 0.0:
                break
            pg = snapshot.pgs[change.pgid]
            relief = snapshot.shard_bytes(pg, osd, pg.up)
            excess -= relief
            if change.pgid not in urgent and relief > 0:
                urgent[change.pgid] = osd
                first.append(change)
    return Ranked(first + [change for change in wanted if change.pgid not in urgent], urgent)


def _overfull(snapshot: Snapshot, traffic: OsdTraffic) -> Dict[int, float]:
    """OSD → its utilization once everything has arrived, where that is above nearfull."""
    predicted = {osd: predicted_utilization(snapshot, traffic.of(osd), osd)
                 for osd in snapshot.osds}
    return {osd: utilization for osd, utilization in predicted.items()
            if utilization > snapshot.nearfull_ratio}


def _losses(snapshot: Snapshot, change: PgChange) -> Tuple[int, ...]:
    pg = snapshot.pgs.get(change.pgid)
    if pg is None or len(pg.up) != len(change.up_after):
        return ()
    return shard_changes(pg.up, change.up_after, snapshot.pools[pg.pool].erasure)[1]


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
    moves_nothing: bool = False   # it copies no shard (plan/model.py)

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
