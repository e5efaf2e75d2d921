"""What may go in one round: the limits, what is left of them while a batch is being chosen, every
reason for which a wanted change has to wait, as one list of checks, and the choice of the batch.
Pure: a snapshot and limits in, a decision out.

The plan is advice and the osdmap is the truth: every change is compared with the newest snapshot,
and what has become senseless or illegal is dropped with its reason.

Until a PG has peered its acting set still equals its up set, so the snapshot alone shows nothing of
what was sent a moment ago. The pending moves do; `unseen` is the only place that puts both
together.

Those wanted changes come first that relieve OSDs above nearfull. The plan is ordered: the fullest
OSDs first, and what frees space before what needs it. Among all other changes that order is kept.

Each check takes the state of the round and a candidate, and returns a Verdict or None. The first
Verdict counts, so the order of CHECKS is the order in which reasons are named: first conditions of
the pool, the PG and its OSDs, then reservations for urgent changes, then the limits.
"""
from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import (
    Callable, Collection, Container, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional,
    Sequence, Tuple)

from ..crush.placement import NO_OSD
from ..plan.model import (
    BALANCE, FREEZE, MOTIONLESS, OF_ITEMS, REPAIR, PgChange, moves_nothing, takes_back)
from ..plan.options import effective_fill_limit, raised_nearfull_ratio, upmap_pairs_left
from ..plan.usage import share_limits
from ..runtime.formatting import format_deadline, format_percent
from ..runtime.time_slice import piecewise
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.immovable_reasons import (
    OF_MOTION, OF_PG_NUM, OF_RULE, TO_MERGE, TRANSIENT, Immovable, untrusted_state)
from ..snapshot.model import (
    Osd, Pg, Pool, SizedShards, Snapshot, is_same_placement, pg_number, pool_of, shard_changes)
from ..snapshot.operator_weights import held_sentence
from ..snapshot.pg_states import ACTIVE, ACTIVITIES, BACKFILL_WAIT, SHORT, has_any
from ..snapshot.pools import merge_target
from ..snapshot.reason_codes import FULL, LIMIT, REASONS
from .guards import (
    TRANSIENT_RECHECK_SECONDS, PoolGuard, awaits_space, changing_pg_nums, full_osds)
from .outcomes import DroppedChange, Verdict, WaitingChange
from .pending_moves import PendingMove, misplaced_copies


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

    def add_arrived(self, osd: int, size: int) -> None:
        """Adds a shard that has arrived a moment ago."""
        load = self.of(osd)
        self._loads[osd] = load._replace(arrived_bytes=load.arrived_bytes + size)


def unseen(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> Iterator[PendingMove]:
    """Pending moves of PGs that the snapshot does not show as moving."""
    for pgid, entry in pending.items():
        pg = snapshot.pgs.get(pgid)
        if pg is not None and not pg.is_moving:
            yield entry


def osd_traffic(snapshot: Snapshot, pending: Mapping[str, PendingMove],
                arrivals: Sequence[Tuple[float, SizedShards]] = (),
                mispredicted: Container[int] = ()) -> OsdTraffic:
    """OSD → what is in flight to and from it, by the snapshot and by pending moves that it does not
    show, and what has just arrived. Of pools `mispredicted` a shard counts whole until it has
    arrived: when its OSD takes more than what is copied, nobody knows."""
    found = OsdTraffic()
    for pg in snapshot.in_flight().values():
        uncopied = 1.0 if pg.pool in mispredicted else pg.uncopied_ratio
        found.add(*snapshot.sized_transfers(pg), uncopied)
    for entry in unseen(snapshot, pending):
        found.add(entry.gains, entry.losses)
    for osd, size in chain.from_iterable([gains for _, gains in arrivals]):
        found.add_arrived(osd, size)
    return found


def predicted_utilization(snapshot: Snapshot, load: TrafficLoad, osd_id: int) -> float:
    """Utilization of an OSD once everything in flight, our unseen moves included, has arrived: a
    ratio; 0 where unknown. `Osd.target_utilization` is without unseen moves."""
    osd = snapshot.osds.get(osd_id)
    return 0.0 if osd is None or not osd.has_statistics else (
        osd.used_bytes + load.bytes_in - load.leaving_bytes) / osd.size_bytes


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


def by_urgency(snapshot: Snapshot, traffic: OsdTraffic, wanted: Sequence[PgChange]
               ) -> Tuple[List[PgChange], Dict[str, int]]:
    """(the changes in the order in which they are checked; pgid of an urgent one → the OSD above
    nearfull that it relieves). Urgent are as many as bring the OSDs below nearfull again, given
    what is in flight."""
    predicted = {osd: predicted_utilization(snapshot, traffic.of(osd), osd)
                 for osd in snapshot.osds}
    overfull = {osd: utilization for osd, utilization in predicted.items()
                if utilization > snapshot.nearfull_ratio}
    if not overfull:
        return list(wanted), {}
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
    return first + [change for change in wanted if change.pgid not in urgent], urgent


def _losses(snapshot: Snapshot, change: PgChange) -> Tuple[int, ...]:
    pg = snapshot.pgs.get(change.pgid)
    return () if pg is None or len(pg.up) != len(change.up_after) else (
        snapshot.changed_shards(pg, change.up_after)[1])


#: Of the misplaced limit, as a ratio: left free for what clients write to PGs that are in flight,
#: and for what the statistics of a PG do not show yet.
_MISPLACED_MARGIN, _STUCK_MARGIN = 0.05, 0.15


class ThrottleLimits(NamedTuple):
    """What limits a round: the options, and what only the loop knows beside them."""

    settings: Settings
    max_misplaced_ratio: float    # by the option and Ceph's own target
    misplaced_copies: int         # Ceph's count, and ours that it cannot show yet
    in_flight: Collection[str]    # PGs that we have sent and not seen arrive
    cooling: Mapping[str, float] = {}   # pgid → seconds for which it stays
    max_pg_shards: int = 0   # the most that an OSD may get; 0: no limit
    withheld_at: Mapping[int, int] = {}   # the same of OSDs that have withheld a PG
    made_way: Collection[str] = ()   # PGs taken back less than STEP_SECONDS ago


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
        self.full_osds = full_osds(snapshot)
        stuck = [pg for pg in snapshot.in_flight().values()
                 if awaits_space(snapshot, pg, self.full_osds)]
        #: object copies that stay misplaced until one of these OSDs has space
        self._stuck_copies = sum(misplaced_copies(snapshot, pg) for pg in stuck)
        #: OSD → their shards on the way to it or from it
        self.stuck_shards = Counter(chain.from_iterable(
            chain.from_iterable(snapshot.transfers(pg)) for pg in stuck))
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
        self._shards: Optional[Counter[int]] = None   # OSD → PG shards, counted when needed
        self.changing = changing_pg_nums(snapshot)
        #: OSD → the changing pool whose next steps need it
        self.needed_by_steps = _needed_by_steps(snapshot)

    def candidate(self, pg: Pg, change: PgChange, relieves: Optional[int]) -> Candidate:
        """The change with its PG, as the checks read it. What was on its way when it was to be
        taken back may have arrived since: then its shards have to be copied."""
        positional = self.snapshot.is_positional(pg)
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

    def is_relief(self, candidate: Candidate) -> bool:
        """Returns True if the change takes shards off OSDs that need space alone (full_osds)."""
        return bool(candidate.losses) and self.full_osds.issuperset(candidate.losses)

    def misplaced_copies_for(self, candidate: Candidate) -> int:
        """Object copies that count against the misplaced limit of the change.

        PGs that wait for space do not count against relief, which alone lets them move. What can
        move does, so that relief under way stays below the limit.
        """
        if not self.is_relief(candidate):
            return self.misplaced_copies
        return max(0, self.misplaced_copies - self._stuck_copies)

    def max_copies_for(self, candidate: Candidate) -> float:
        """Object copies that may be misplaced, by the limit that holds for the change."""
        return (self.max_misplaced_copies if self.emergency_osd(candidate) is None
                else self._max_urgent_copies)

    def allowed_copies_for(self, candidate: Candidate) -> float:
        """The same less a margin; a wider one where PGs that wait for space are left out, whose
        copies are counted by the snapshot alone."""
        is_uncertain = self._stuck_copies > 0 and self.is_relief(candidate)
        margin = _STUCK_MARGIN if is_uncertain else _MISPLACED_MARGIN
        return (1.0 - margin) * self.max_copies_for(candidate)

    def consume(self, candidate: Candidate) -> None:
        """Counts a change that is to be sent against all limits of the round."""
        self.upmap_pairs += self.added_pairs(candidate.change)
        if candidate.moves_nothing:
            return
        self.moves_left -= candidate.change.shards
        self.misplaced_copies += candidate.copies
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
        return len(change.items) - len(self.snapshot.items_of(change.pgid))

    def pg_shards(self, osd: int) -> int:
        """PG shards on an OSD, on their way to it, or still to leave it; by its own count, of what
        it still deletes, too, and of some that are on their way twice, where that is more."""
        if self._shards is None:
            self._shards = _count_shards(self.snapshot)
        return max(self._shards[osd],
                   self.snapshot.osds[osd].pg_shards + self.traffic.of(osd).shards_in)


#: Seconds after which PGs that have made way to steps of pg_num may go again before these are
#: through, and after which a merge without a step reserves no OSDs for its next pairs.
STEP_SECONDS = 3600.0
#: Pairs of a merge that come due before a batch arrives: by so many the mgr always lets pgp_num be
#: ahead of pg_num.
_PAIRS_AHEAD = 8


def _needed_by_steps(snapshot: Snapshot) -> Dict[int, Pool]:
    """OSD → the pool whose pg_num changes that needs it: it has, or gets, a PG that a step moves,
    or is to move for one of the next pairs that are merged, or one of the very next pair. A merge
    that stands still needs no more than what is on its way."""
    changing = {pool.id: pool for pool in snapshot.pools.values() if pool.touched}
    needing = [pg for pg in piecewise(snapshot.in_flight().values(), _CHANGES_A_PIECE)
               if pg_number(pg.pgid) in snapshot.pools[pg.pool].touched] if changing else []
    for pool in changing.values():
        is_stuck = snapshot.taken_at - pool.stepped_at >= STEP_SECONDS
        for ps in range(pool.pg_num if is_stuck else max(1, pool.pg_num - _PAIRS_AHEAD),
                        pool.pg_num):
            pair = [snapshot.pgs[pgid] for one in (ps, merge_target(ps))
                    for pgid in (f"{pool.id}.{one:x}",)
                    if pool.touched.get(one) == TO_MERGE and pgid in snapshot.pgs]
            if ps == pool.pg_num - 1 or len(pair) == 2 and pair[0].up != pair[1].up:
                needing += pair
    return {osd: changing[pg.pool] for pg in needing for osd in (*pg.up, *pg.raw, *pg.holders)}


def in_the_way(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> FrozenSet[str]:
    """Moves of ours that wait for a slot while steps of pg_num need their OSDs or are to merge the
    PG: they are in the queue before the step's own PGs. Those that relieve OSDs above nearfull
    stay."""
    needed = _needed_by_steps(snapshot)
    waiting = [(pg, entry) for pgid, entry in pending.items()
               for pg in (snapshot.pgs.get(pgid),)
               if pg is not None and BACKFILL_WAIT in pg.state]
    return frozenset(
        pg.pgid for pg, entry in waiting
        if (pg_number(pg.pgid) in snapshot.pools[pg.pool].touched or not needed.keys().isdisjoint(
            (*entry.sources, *entry.targets, *pg.acting[:1])))
        and not any(snapshot.osds[osd].exceeds(snapshot.nearfull_ratio)
                    for osd in entry.sources if osd in snapshot.osds))


def _count_shards(snapshot: Snapshot) -> Counter[int]:
    counts: Counter[int] = Counter(chain.from_iterable(
        [pg.up for pg in snapshot.pgs.values()]))
    for pg in snapshot.in_flight().values():
        counts.update(osd for osd in pg.holders if osd not in pg.up and osd != NO_OSD)
    return counts


Check = Callable[[ThrottleState, Candidate], Optional[Verdict]]


def pool_is_blocked(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Pools with inactive or degraded PGs, and those on the same OSDs, wait
    (guards.blocked_pools); relief of full OSDs is let through (relieve_while_degraded)."""
    guard = state.blocked.get(candidate.pg.pool)
    if guard is None or _is_relief(state, guard, candidate):
        return None
    return Verdict(codes.DEGRADED, guard.reason,
                   {"pool_id": candidate.pg.pool},
                   seconds=TRANSIENT_RECHECK_SECONDS if guard.transient else None)


def pg_is_immovable(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A PG that must not be moved for now (snapshot/immovable_reasons.py, TRANSIENT)."""
    immovable = _binding(state.snapshot, candidate)
    return None if not immovable else Verdict(
        immovable.code, immovable, {"trouble": immovable})


def _binding(snapshot: Snapshot, candidate: Candidate) -> Optional[Immovable]:
    """Why the PG must not be moved, where that binds the change. Steps of pg_num take items away
    themselves, and wait for PGs that are not clean."""
    change, immovable = candidate.change, candidate.pg.immovable
    return None if candidate.moves_nothing and (immovable in OF_MOTION or (
        immovable in OF_PG_NUM
        and set(change.items) <= set(snapshot.items_of(change.pgid)))) else immovable


def pg_is_in_flight(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A PG is moved once at a time: until it has arrived, its sources hold the only copies."""
    pgid = candidate.change.pgid
    if not candidate.pg.is_moving and pgid not in state.limits.in_flight:
        return None
    return Verdict(codes.IN_FLIGHT, numbers={"pgid": pgid})


def target_cannot_take(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A target that is down, out, destroyed or without statistics (Osd.unusable_reason)."""
    for osd in candidate.gains:
        obstacle = state.snapshot.osds[osd].unusable_reason()
        if obstacle is not None:
            return Verdict(codes.TARGET_UNAVAILABLE, numbers={"osd": osd, "obstacle": obstacle})
    return None


def osd_is_silent(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """An OSD whose statistics are too old to be trusted (snapshot/osds.py)."""
    for osd in candidate.gains + candidate.losses:
        if osd in state.snapshot.stale_osds:
            return Verdict(codes.STALE_STATISTICS, numbers={"osd": osd})
    return None


def pg_is_busy(_state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A PG that Ceph scrubs, repairs or snap-trims."""
    states = candidate.pg.state.split("+")
    for busy, activity in ACTIVITIES.items():
        if busy in states:
            return Verdict(codes.BUSY, numbers={
                "pgid": candidate.change.pgid, "activity": activity})
    return None


def pg_is_cooling(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """pg_cooldown: a PG that was moved a short while ago stays, unless an OSD above nearfull_ratio,
    or one that is being drained, loses a shard by the change."""
    seconds = state.limits.cooling.get(candidate.change.pgid, 0.0)
    if seconds <= 0.0:
        return None
    for osd_id in candidate.losses:
        osd = state.snapshot.osds.get(osd_id)
        if osd is not None and (osd.drained or osd.exceeds(state.snapshot.nearfull_ratio)):
            return None
    ends_at = state.snapshot.taken_at + seconds
    return Verdict(codes.COOLDOWN, numbers={
        "pgid": candidate.change.pgid, "ends_at": ends_at, "time": format_deadline(ends_at)})


def is_reserved_for_relief(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A change that only evens out, while relief of an OSD above nearfull_ratio waits: it must not
    take a slot at the OSDs of that relief, nor the misplaced budget that the relief needs."""
    reserved = state.reserved
    if candidate.relieves is not None or reserved.first is None:
        return None
    first, copies = reserved.sharing(candidate.gains + candidate.losses), candidate.copies
    if first is None and state.moves_left > 0 and (
            not copies or state.misplaced_copies_for(candidate) + copies + reserved.copies
            <= state.allowed_copies_for(candidate)):
        return None
    return Verdict(codes.NEARFULL_FIRST,
                   numbers={"osd": reserved.first if first is None else first})


def osd_is_needed_by_steps(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """An OSD that steps of pg_num need next, but for urgent relief: backfills take turns there. A
    PG that has made way to them does so once in STEP_SECONDS, whatever pg_cooldown says."""
    osd = next((osd for osd in candidate.gains + candidate.losses + candidate.pg.acting[:1]
                if osd in state.needed_by_steps), None)
    if candidate.relieves is not None or osd is None and not (
            state.changing and candidate.change.pgid in state.limits.made_way):
        return None
    return Verdict(
        codes.PG_NUM_CHANGING, f"pg {candidate.change.pgid} has made way as pg_num of pool"
        f" '{state.changing[0]}' changes" if osd is None else
        f"osd.{osd} is needed as pg_num of pool '{state.needed_by_steps[osd].name}' changes")


def target_is_full(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A target that is nearfull, or would pass fill_limit or the share that its weights leave it
    while everything that comes is there and nothing that leaves is gone."""
    snapshot = state.snapshot
    for osd_id in candidate.gains:
        osd = snapshot.osds[osd_id]
        if osd.reaches(snapshot.nearfull_ratio):
            return Verdict(codes.NEARFULL, numbers={
                "osd": osd_id, "device_class": osd.device_class,
                "needed": raised_nearfull_ratio(snapshot.backfillfull_ratio)})
        peak = state.peak_bytes(osd, candidate)
        if peak > state.fill_limit * osd.size_bytes:
            return Verdict(codes.FILL_LIMIT, numbers={
                "osd": osd_id, "peak_bytes": peak, "fill_limit_ratio": state.fill_limit})
        most = state.share_bytes.get(osd_id)
        # statistics are not exact to half a shard
        if most is not None and peak - state.shard_bytes(candidate, osd_id) // 2 > most:
            return Verdict(codes.REWEIGHT, numbers={
                "osd": osd_id, "peak_bytes": peak, "share_bytes": most,
                "held": held_sentence(osd)})
    return None


def moves_of_round_are_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_moves_per_round: shard moves of one batch. A first change may be larger than that, and
    urgent_misplaced_ratio lets relief of OSDs above backfillfull pass it."""
    most = state.settings.max_moves_per_round
    if state.moves_left == most or candidate.change.shards <= state.moves_left or (
            state.emergency_osd(candidate) is not None):
        return None
    return Verdict(codes.MAX_MOVES, numbers={"max_moves": most})


def misplaced_budget_is_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_misplaced_ratio, less a margin; for relief of OSDs above backfillfull
    urgent_misplaced_ratio where that is more. PGs that wait for space do not count against relief
    of full_osds. If nothing is misplaced one change may go although it alone is above the limit."""
    copies, allowed = candidate.copies, state.allowed_copies_for(candidate)
    misplaced = state.misplaced_copies_for(candidate)
    if misplaced <= 0 or copies <= 0 or misplaced + copies <= allowed:
        return None
    most = state.max_copies_for(candidate)
    limit = most / max(1, state.snapshot.object_copies)
    numbers = {"misplaced_copies": misplaced, "copies": copies,
               "limit_ratio": limit, "limit": format_percent(limit),
               # of all copies: the most that may be misplaced as it goes
               "fits_ratio": max(0.0, allowed - copies) / max(1, state.snapshot.object_copies),
               "misplaced": _share_of_copies(state, misplaced),
               "own": _share_of_copies(state, copies),
               "option": ("urgent_misplaced_ratio" if most > state.max_misplaced_copies
                          else "max_misplaced_ratio")}
    return Verdict(codes.MISPLACED_ONE_PG if copies > allowed else codes.MISPLACED_LIMIT,
                   numbers=numbers)


def backfills_of_osd_are_used_up(state: ThrottleState,
                                 candidate: Candidate) -> Optional[Verdict]:
    """max_backfills_per_osd: shards in flight to an OSD; as many may be in flight from it, but for
    an OSD above backfillfull that urgent_misplaced_ratio is for."""
    most, emergency = state.settings.max_backfills_per_osd, state.emergency_osd(candidate)
    for direction, osds in (("coming", candidate.gains), ("leaving", candidate.losses)):
        for osd in osds if most else ():
            if direction == "leaving" and osd == emergency:
                continue
            load = state.traffic.of(osd)
            shards = load.shards_in if direction == "coming" else load.shards_out
            if shards >= most and not _is_alone(state, candidate):
                return Verdict(codes.MAX_BACKFILLS, numbers={
                    "osd": osd, "shards": shards, "max_shards": most, "direction": direction})
    return None


def traffic_of_osd_is_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_transit_ratio: bytes on their way to an OSD, or from it, as a ratio of its size. One
    change may pass it where nothing else is in flight at its OSDs."""
    osd = state.osd_above_transit_limit(candidate)
    if osd is None or _is_alone(state, candidate):
        return None
    return Verdict(codes.MAX_TRANSIT,
                   numbers={"osd": osd, "max_ratio": state.settings.max_transit_ratio})


def target_would_be_fullest(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A target that also loses a shard holds both for a while: the change waits where that would
    make it the fullest of its device class."""
    for osd_id in candidate.gains:
        osd = state.snapshot.osds[osd_id]
        highest = state.max_utilization[osd.device_class] * osd.size_bytes
        if (state.traffic.of(osd_id).shards_out
                and state.peak_bytes(osd, candidate) > highest):
            return Verdict(codes.SOURCE_FULL,
                           numbers={"osd": osd_id, "device_class": osd.device_class})
    return None


def upmap_items_are_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_upmap_items: pairs of upmap items in the osdmap, for changes that add some."""
    added, pairs = state.added_pairs(candidate.change), state.upmap_pairs
    left = upmap_pairs_left(state.settings.max_upmap_items, len(state.snapshot.pgs), pairs)
    if left is None or added <= 0 or added <= left:
        return None
    return Verdict(codes.UPMAP_ITEMS, numbers={"pairs": pairs, "max_pairs": pairs + left})


def target_has_too_many_pgs(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """HARD_SHARE (a ratio) of the PG shards from which on an OSD withholds PGs, which would stay
    inactive: mon_max_pg_per_osd times osd_max_pg_per_osd_hard_ratio."""
    limits = state.limits
    for osd in candidate.gains if limits.max_pg_shards or limits.withheld_at else ():
        count, most = state.pg_shards(osd), limits.withheld_at.get(osd, limits.max_pg_shards)
        if count + 1 > most > 0:
            withholds = {"withholds": osd} if osd in limits.withheld_at else {}
            return Verdict(
                codes.PG_COUNT, f"osd.{osd} may have withheld a PG as it has too many, and gets"
                f" none before it has fewer than {most}" if withholds else "", {
                    "osd": osd, "shards": count, "max_shards": most, **withholds})
    return None


#: In the order in which they run.
CHECKS: Tuple[Check, ...] = (
    pool_is_blocked, pg_is_immovable, pg_is_in_flight, target_cannot_take, osd_is_silent,
    pg_is_busy, pg_is_cooling, is_reserved_for_relief, osd_is_needed_by_steps, target_is_full,
    moves_of_round_are_used_up, misplaced_budget_is_used_up, backfills_of_osd_are_used_up,
    traffic_of_osd_is_used_up, target_would_be_fullest, upmap_items_are_used_up,
    target_has_too_many_pgs)


#: A change that moves nothing waits for what tells where the PG's data is, and for nothing else:
#: it makes no OSD fuller, copies nothing, and adds nothing that is misplaced.
_CHECKS_WITHOUT_MOTION: Tuple[Check, ...] = (pg_is_immovable,)


def binding_checks(candidate: Candidate) -> Tuple[Check, ...]:
    """The checks that bind a change: the only place that decides it."""
    return _CHECKS_WITHOUT_MOTION if candidate.moves_nothing else CHECKS


def _is_relief(state: ThrottleState, guard: PoolGuard, candidate: Candidate) -> bool:
    """True where the change may go although PGs are degraded, as it empties full OSDs alone."""
    if guard.inactive or not state.settings.relieve_while_degraded:
        return False
    pg_state = candidate.pg.state
    return state.is_relief(candidate) and ACTIVE in pg_state and not has_any(pg_state, SHORT)


def _share_of_copies(state: ThrottleState, copies: int) -> str:
    """Object copies in per cent of all, as the misplaced ratio counts them."""
    return format_percent(copies / max(1, state.snapshot.object_copies))


def _is_alone(state: ThrottleState, candidate: Candidate) -> bool:
    """True where nothing else is in flight at the OSDs of the change, but for what the relief of a
    full OSD alone lets move."""
    loads = {osd: state.traffic.of(osd) for osd in candidate.gains + candidate.losses}
    stuck = state.stuck_shards if state.is_relief(candidate) else {}
    return all(load.shards_in + load.shards_out <= stuck.get(osd, 0)
               for osd, load in loads.items())


_CHANGES_A_PIECE = 40   # about a millisecond
#: Obstacles of an OSD that end soon; a change waits for these and is dropped for the others.
_TRANSIENT_OBSTACLES = frozenset(("down", "without statistics"))


class Decision(NamedTuple):
    """The wanted changes of this round, by what is to be done with them."""

    send: List[PgChange]
    done: List[PgChange]                  # already where they were wanted
    dropped: List[DroppedChange]          # void or illegal now
    waiting: List[WaitingChange]          # wanted still, with reasons, in the order of the checks

    @property
    def leading(self) -> Optional[Verdict]:
        """The reason for which most shards wait, as the first of them has it; None where none
        waits."""
        shards: Dict[str, int] = {}
        for change, deferral in self.waiting:
            shards[deferral.code] = shards.get(deferral.code, 0) + change.shards
        most = max(shards, key=lambda code: shards[code], default=None)
        return next((deferral for _, deferral in self.waiting if deferral.code == most), None)

    @property
    def holds_up(self) -> bool:
        """True where any change waits for the throttle."""
        return any(deferral.is_throttle for _, deferral in self.waiting)

    @property
    def full(self) -> List[WaitingChange]:
        """The changes whose target is too full."""
        return [row for row in self.waiting if REASONS[row[1].code].kind == FULL]


def next_batch(snapshot: Snapshot, wanted: Sequence[PgChange], limits: ThrottleLimits,
               blocked: Mapping[int, PoolGuard], traffic: Optional[OsdTraffic] = None,
               kind: str = BALANCE) -> Decision:
    """Chooses what may be sent without passing a limit.

    `blocked`: pool id → why none of its PGs may be moved. `traffic` is what is in flight, our own
    unseen moves included; it is used up. Changes that a limit defers do not keep those behind them
    from being looked at. `kind` is the plan's.
    """
    traffic = traffic if traffic is not None else osd_traffic(snapshot, {})
    state = ThrottleState(snapshot, limits, blocked, traffic)
    found = Decision([], [], [], [])
    ranked, urgent = by_urgency(snapshot, traffic, wanted)
    for change in piecewise(ranked, _CHANGES_A_PIECE):
        pg = snapshot.pgs.get(change.pgid)
        if pg is None:
            found.dropped.append(DroppedChange(change, "its pool or PG is gone"))
            continue
        if _is_done(snapshot, pg, change, kind in OF_ITEMS):
            found.done.append(change)
            continue
        if kind in (REPAIR, FREEZE) and pg.immovable in OF_RULE:
            pg = pg._replace(immovable=untrusted_state(pg.state))
        candidate = state.candidate(pg, change, urgent.get(change.pgid))
        void = _void(snapshot, candidate)
        if void is None and kind in MOTIONLESS and not candidate.moves_nothing:
            void = "its data has moved meanwhile"
        if void is not None:
            found.dropped.append(DroppedChange(change, void))
            continue
        deferral = next((verdict for check in binding_checks(candidate)
                         for verdict in (check(state, candidate),) if verdict is not None), None)
        if deferral is None:
            state.consume(candidate)
            found.send.append(candidate.change)
            continue
        found.waiting.append((change, deferral))
        # OSDs and misplaced budget are kept for urgent relief that a limit defers
        if candidate.relieves is not None and REASONS[deferral.code].kind == LIMIT and (
                change.pgid not in limits.cooling):
            state.reserved.add(candidate.relieves, candidate.gains + candidate.losses,
                               candidate.copies)
    few = [change for change in found.send if change.pgid not in urgent and not takes_back(
        snapshot.pgs[change.pgid], change.up_after, snapshot.pools[pool_of(change.pgid)].erasure)
           ] if state.changing else []
    # each map makes PGs peer, for which steps of pg_num wait: fewer maps, of more items each
    if len(few) == len(found.send) < len(limits.in_flight) and kind not in MOTIONLESS:
        found.send[:] = []
        found.waiting[:0] = [(change, Verdict(
            codes.PG_NUM_CHANGING, f"as pg_num of pool '{state.changing[0]}' changes, more is sent"
            " when half of what is on its way has arrived")) for change in few]
    return found


def _is_done(snapshot: Snapshot, pg: Pg, change: PgChange, is_of_items: bool) -> bool:
    if not is_same_placement(pg.up, change.up_after, snapshot.is_positional(pg)):
        return False
    return (not is_of_items and change.up_before != change.up_after
            or snapshot.items_of(change.pgid) == change.items)


def _void(snapshot: Snapshot, candidate: Candidate) -> Optional[str]:
    """Returns why the change no longer makes sense, or None."""
    change, pg, pool = candidate.change, candidate.pg, snapshot.pools[candidate.pg.pool]
    immovable = _binding(snapshot, candidate)
    if immovable is None and not is_same_placement(pg.raw, change.raw, pool.erasure):
        return "CRUSH maps the PG differently now"
    if immovable is None and not is_same_placement(pg.up, change.up_before, pool.erasure):
        return "somebody else has moved the PG"
    if pool.rule is None or len(change.up_after) != pool.size:
        return "the pool's rule or size has changed"
    broken = pool.rule.refusal(change.up_after)
    if broken:
        return f"no longer legal: {broken}"
    for osd in change.up_after:
        if osd not in change.up_before:
            target = snapshot.osds.get(osd)
            obstacle = "gone" if target is None else _obstacle(target, candidate.moves_nothing)
            if obstacle:
                return f"osd.{osd} is {obstacle}"
    return immovable if immovable not in TRANSIENT else None


def _obstacle(target: Osd, holds_data: bool) -> Optional[str]:
    """Returns why an OSD will not take a shard for long, or None. Where it holds the data already,
    only Ceph's own obstacle counts: a pair of upmap items whose target is out has no effect."""
    if holds_data:
        return None if target.is_in and target.reweight > 0.0 else "out"
    obstacle = target.unusable_reason()
    return obstacle if obstacle not in _TRANSIENT_OBSTACLES else None
