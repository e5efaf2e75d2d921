"""Shards in flight, one by one: from where to where, how much is left, and who moves them.

Computed once an observation and kept in the ClusterView, since shards in flight are few and PGs are
many.

How fast data arrives at OSDs, measured from one observation to the next, and how long that which
is left takes by it.

A plan is complete when its last OSD has its last shard. So the time left is that of the OSD with
the most to come, at the rate that OSDs were measured to get. It is no less than the time that all
bytes left take at the rate of the whole cluster, which counts where a limit such as that of
misplaced copies lets only a few shards move at once.
"""
from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate, chain, zip_longest
from typing import (
    Any, Container, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..crush.placement import NO_OSD
from ..execution.pending_moves import PendingMove
from ..runtime.formatting import format_bytes, plural
from ..runtime.time_slice import grouped
from ..snapshot import pg_states
from ..snapshot.model import Pg, Snapshot, UpmapItems, is_same_placement, shard_changes


#: Who moves a shard: equilibrium; Ceph, to restore a lost copy; Ceph, as CRUSH maps the PG
#: differently; Ceph, as pg_num changes; somebody else, by an upmap item.
PLAN, RECOVERY, CRUSH, PG_NUM, UPMAP = "plan", "recovery", "crush", "pg_num", "upmap"
ORIGINS = (PLAN, RECOVERY, CRUSH, PG_NUM, UPMAP)

#: Beside these flags OSDs halt what they were copying.
HALTING = frozenset(("norebalance", "nobackfill", "norecover"))

Pair = Tuple[Optional[int], int]   # (OSD that loses a shard, None where its copy is lost; target)


class Movement(NamedTuple):
    """One shard in flight."""

    pgid: str
    pool_id: int
    source: Optional[int]   # OSD that loses the shard; None where no OSD has this copy any more
    target: Optional[int]   # OSD that gets it; None where the upmap items do not tell
    bytes: int              # of the shard
    left_bytes: int         # of these, still to be copied
    state: str              # a part of the PG's state as Ceph names it, or PEERING
    origin: str             # one of ORIGINS

    @property
    def is_running(self) -> bool:
        """True while its data is being copied."""
        return self.state in pg_states.COPIED


class MovingTotals(NamedTuple):
    """Sums of shards in flight: of equilibrium's own, and of those that others move."""

    shards: int = 0
    bytes: int = 0           # still to be copied
    states: Sequence[Mapping[str, Any]] = ()   # as by_state
    other_shards: int = 0
    other_bytes: int = 0
    other_states: Sequence[Mapping[str, Any]] = ()


def movements(snapshot: Snapshot, moving: Iterable[Pg], pending: Mapping[str, PendingMove],
              sent: Container[str], before: Sequence[Movement],
              earlier: Optional[Snapshot]) -> Tuple[Movement, ...]:
    """Every shard in flight, whoever moves it, in the order of PGs.

    `moving`: the PGs of the snapshot that move. `pending`: what was sent and has not been seen to
    arrive. `sent`: PGs that were sent a while ago, by this mgr or the last one. `before` and
    `earlier`: movements and snapshot of the last observation; empty and None at the first.
    """
    origins, found = _Origins(snapshot, pending, sent, before, earlier), []
    for pg in moving:
        items, state = snapshot.items_of(pg.pgid), _state_of(pg)
        for source, target in _pairs(pg, items, snapshot.is_positional(pg)):
            if source is None:
                source = origins.source_by_log(pg, items, target)
            osd, size = snapshot.osds.get(target), pg.shard_bytes
            if osd is not None:   # what it takes on the device
                size = osd.device_bytes(snapshot.shard_bytes(pg, osd.id, pg.up))
            found.append(Movement(pg.pgid, pg.pool, source, target, size,
                                  int(size * pg.uncopied.get(target, pg.uncopied_ratio)), state,
                                  origins.of(pg, items, source, target)))
    for pgid, entry in list(pending.items()):
        found += _of_pending(snapshot, pgid, entry)
    return tuple(found)


def moving_totals(found: Sequence[Movement]) -> MovingTotals:
    """The sums of movements."""
    ours, others = ([movement for movement in found if (movement.origin == PLAN) is is_ours]
                    for is_ours in (True, False))
    return MovingTotals(
        len(ours), sum(movement.left_bytes for movement in ours), by_state(ours),
        len(others), sum(movement.left_bytes for movement in others), by_state(others))


def by_state(found: Iterable[Movement]) -> Tuple[Mapping[str, Any], ...]:
    """How many are in each state, JSON-ready, those that are being copied first."""
    counts = Counter(movement.state for movement in found)
    return tuple([{"state": state, "shards": counts[state]} for state in sorted(
        counts, key=lambda state: (state not in pg_states.COPIED, state))])


def states_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """': 9 backfilling, 23 backfill_wait', of what by_state returns; empty for nothing."""
    return ": " * bool(rows) + ", ".join(f"{row['shards']} {row['state']}" for row in rows)


def _state_of(pg: Pg) -> str:
    """Returns what the shards of a PG that are in flight do."""
    parts = pg.state.split("+")
    return next((part for part in pg_states.SHOWN if part in parts), pg_states.PEERING)


def _of_pending(snapshot: Snapshot, pgid: str, entry: PendingMove) -> List[Movement]:
    """The shards of a pending move that the snapshot does not show yet."""
    pg = snapshot.pgs.get(pgid)
    if pg is None or pg.is_moving or not entry.shards:
        return []
    sizes, mean = dict(entry.gains), entry.bytes // entry.shards
    pairs = list(zip_longest(entry.sources, entry.targets))[:entry.shards]
    pairs += [(None, None)] * (entry.shards - len(pairs))
    state = _state_of(pg)   # after a failover nothing else tells that its log fills a new OSD
    return [Movement(pgid, pg.pool, source, target, size, size, state, PLAN)
            for source, target in pairs
            for size in [mean if target is None else sizes[target]]]


def _pairs(pg: Pg, items: UpmapItems, positional: bool) -> List[Pair]:
    """(source, target) of each shard in flight. What has no target goes nowhere and is left out."""
    gains, losses = shard_changes(pg.holders, pg.up, positional)
    if positional:
        return [(None if source == NO_OSD else source, target)
                for source, target in zip(losses, gains) if target != NO_OSD]
    targets = [osd for osd in gains if osd != NO_OSD]
    sources = [osd for osd in losses if osd != NO_OSD]
    by_target = {target: source for source, target in items
                 if target in targets and source in sources}
    others = iter([osd for osd in sources if osd not in by_target.values()])
    return [(by_target[target] if target in by_target else next(others, None), target)
            for target in targets]


class _Origins:
    """Tells who moves a shard.

    What was told once stays so until the shard has arrived: the reason may be gone by then, as the
    mgr sets pg_num to its last value long before the data has moved.
    """

    def __init__(self, snapshot: Snapshot, pending: Mapping[str, PendingMove],
                 sent: Container[str], before: Sequence[Movement],
                 earlier: Optional[Snapshot]) -> None:
        self._pools = snapshot.pools
        self._osds = snapshot.osds
        self._pending = pending
        self._sent = sent
        self._earlier = earlier
        self._known = {(movement.pgid, movement.target): movement.origin for movement in before}

    def of(self, pg: Pg, items: UpmapItems, source: Optional[int], target: int) -> str:
        """The origin of one shard in flight."""
        entry = self._pending.get(pg.pgid)
        if entry is not None and (target in entry.targets or not entry.targets):
            return PLAN
        known = self._known.get((pg.pgid, target))
        if known is not None and (known != RECOVERY or source is None):
            return known   # an OSD with the lost copy may come back
        if source is None:
            return RECOVERY
        ours = pg.pgid in self._sent and (self._earlier is None or known is not None)
        if target not in pg.raw and any(to == target for _, to in items):
            return PLAN if ours else UPMAP
        # it moves to an OSD of the raw mapping: that has changed, or an item has been removed
        pool = self._pools[pg.pool]
        if pool.touched:
            return PG_NUM
        earlier = self._earlier.pgs.get(pg.pgid) if self._earlier is not None else None
        if earlier is not None:
            return UPMAP if is_same_placement(earlier.raw, pg.raw, pool.erasure) else CRUSH
        return PLAN if ours and source not in pg.raw else CRUSH

    def source_by_log(self, pg: Pg, items: UpmapItems, target: int) -> Optional[int]:
        """The OSD that a shard of ours leaves, of a PG that is filled by its log; None otherwise.

        The new OSD is recovered while the others serve (PeeringState::choose_async_recovery): the
        PG looks as if it had lost the copy, which a mgr that has not seen it before cannot tell.
        """
        known = self._known.get((pg.pgid, target))
        ours = known == PLAN or (self._earlier is None and pg.pgid in self._sent)
        if not ours or pg_states.RECOVERY not in pg.state or pg_states.BACKFILL in pg.state:
            return None
        return next((source for source, to in items if to == target and source not in pg.up
                     and source in self._osds and self._osds[source].up), None)


#: Seconds after which a measurement counts e times less: long for estimates, as OSDs that wait for
#: their turn get nothing for minutes; shorter for the rate of now.
_ESTIMATE_SECONDS = 1800.0
_NOW_SECONDS = 600.0
#: Bytes a second that an OSD is taken to get where nothing has been measured.
ASSUMED_RATE = 50 << 20
#: Where nothing has arrived for so many seconds, as told by looks a minute apart, nothing moves.
_STILL_SECONDS = 59.0
#: Measurements that count for less than so many seconds, or bytes, are forgotten.
_FORGOTTEN_SECONDS, _FORGOTTEN_BYTES = 1.0, 1.0
#: A longer estimate says only that nothing has arrived for long.
_LONGEST_SECONDS = 365 * 86400.0
#: An OSD that copies less than this share of the median of its class is slow.
_SLOW_SHARE = 0.1
#: An OSD is judged by so many seconds of copying, and beside so many of its class.
_JUDGED_SECONDS, _JUDGED_OSDS = 900.0, 4
#: Objects below so many bytes each take longer than their bytes: their shards judge no OSD.
_SMALL_OBJECT = 64 << 10


class Rate(NamedTuple):
    """Bytes that have arrived in so many seconds; older measurements count less."""

    bytes: float = 0.0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Bytes per second; 0 where nothing was measured."""
        return self.bytes / self.seconds if self.seconds > 0.0 else 0.0

    def aged(self, seconds: float, lasting: float) -> Rate:
        """The rate after `seconds`: then it counts less, e times less after `lasting` seconds."""
        factor = math.exp(-seconds / lasting)
        aged = Rate(self.bytes * factor, self.seconds * factor)
        if aged.seconds < _FORGOTTEN_SECONDS:
            return Rate()
        return aged if aged.bytes >= _FORGOTTEN_BYTES else Rate(0.0, aged.seconds)

    def plus(self, count: float, seconds: float) -> Rate:
        """The rate with one more measurement."""
        return Rate(self.bytes + count, self.seconds + seconds)


class TransferRates(NamedTuple):
    """Rates at one observation. Immutable."""

    by_osd: Mapping[int, Rate] = {}   # OSDs that shards were on their way to
    copying: Mapping[int, Rate] = {}  # OSDs that a shard was being copied from, or to
    ours: Rate = Rate()               # of all shards that equilibrium moves
    ours_now: Rate = Rate()           # the same, of the last minutes
    all_now: Rate = Rate()            # of all shards, whoever moves them, of the last minutes
    #: seconds since the epoch: the last observation at which some of ours had arrived; None: none
    moved_at: Optional[float] = None

    def stand_still(self, now: float) -> bool:
        """True where nothing of ours arrives at present, but has."""
        return self.moved_at is not None and now - self.moved_at > _STILL_SECONDS


class TimeLeft(NamedTuple):
    """An estimate of when everything has arrived."""

    seconds: float
    osd: Optional[int]   # the OSD that takes longest; None where all of them together do


def measured_rates(before: TransferRates, earlier: Sequence[Movement], seconds: float,
                   snapshot: Snapshot, movements: Iterable[Movement]) -> TransferRates:
    """The rates at an observation that is so many seconds after that of `before` and the `earlier`
    movements. At the same moment, as after a batch, and where the clock was set back nothing is
    measured."""
    if seconds <= 0.0:
        return before
    left = {(shard.pgid, shard.target): shard for shard in movements}
    arrived = [(shard, _arrived(snapshot, shard, left.get((shard.pgid, shard.target))))
               for shard in earlier]
    by_osd = {osd: rate.aged(seconds, _ESTIMATE_SECONDS) for osd, rate in before.by_osd.items()}
    for target, counts in grouped((shard.target, count) for shard, count in arrived).items():
        if target is not None:
            by_osd[target] = by_osd.get(target, Rate()).plus(sum(counts), seconds)
    ours = sum(count for shard, count in arrived if shard.origin == PLAN)
    everything = sum(count for _, count in arrived)
    ran = grouped((osd, count) for shard, count in arrived if shard.is_running
                  for osd in _copied_by(shard, snapshot))
    copying = {**before.copying, **{
        osd: before.copying.get(osd, Rate()).aged(seconds, _ESTIMATE_SECONDS).plus(
            sum(counts), seconds) for osd, counts in ran.items()}}   # what rests keeps its rate
    return TransferRates(
        {osd: rate for osd, rate in by_osd.items() if rate.seconds > 0.0},
        copying,
        before.ours.aged(seconds, _ESTIMATE_SECONDS).plus(
            ours, seconds if any(shard.origin == PLAN for shard in earlier) else 0.0),
        before.ours_now.aged(seconds, _NOW_SECONDS).plus(ours, seconds),
        before.all_now.aged(seconds, _NOW_SECONDS).plus(everything, seconds),
        snapshot.taken_at if ours else before.moved_at)


def _copied_by(shard: Movement, snapshot: Snapshot) -> FrozenSet[int]:
    """Returns the OSDs that its speed depends on: a replica is read from the primary. None of
    objects so small that their number takes the time."""
    pg = snapshot.pgs.get(shard.pgid)
    if pg is None or shard.bytes < _SMALL_OBJECT * pg.objects:
        return frozenset()
    readers = (shard.source,) if snapshot.is_positional(pg) else pg.acting[:1]
    return frozenset(osd for osd in (*readers, shard.target)
                     if osd is not None and osd in snapshot.osds)


class SlowOsd(NamedTuple):
    """An OSD that copies clearly less than others of its class; bytes per second."""

    osd: int
    device_class: str
    bytes_per_second: float
    median_per_second: float
    shards: int   # to and from it
    bytes: int    # of these, still to be copied

    def sentence(self) -> str:
        """What an operator reads of it."""
        speeds = (f"{format_bytes(self.bytes_per_second)}/s, the median of class"
                  f" {self.device_class} {format_bytes(self.median_per_second)}/s")
        waiting = f"{plural(self.shards, 'shard')}, {format_bytes(self.bytes)} wait for it"
        return f"osd.{self.osd} copies {speeds}; {waiting}"


def slow_osds(rates: TransferRates, found: Sequence[Movement],
              snapshot: Snapshot) -> List[SlowOsd]:
    """Returns the OSDs that hold up what is copied; none where a flag does.

    A PG is as slow as the slowest of its OSDs: of slow ones that is meant which has most such PGs.
    """
    if not HALTING.isdisjoint(snapshot.flags):
        return []
    class_of = {osd: snapshot.osds[osd].device_class for osd in rates.copying
                if osd in snapshot.osds}
    likes = grouped((name, rates.copying[osd]) for osd, name in class_of.items())
    medians = {name: _typical(alike) for name, alike in likes.items()
               if len(alike) >= _JUDGED_OSDS}
    slow = {osd: rates.copying[osd].per_second for osd, name in class_of.items()
            if rates.copying[osd].seconds >= _JUDGED_SECONDS
            and rates.copying[osd].per_second < _SLOW_SHARE * medians.get(name, 0.0)}
    shards = [(shard, osd) for shard in found for osd in _copied_by(shard, snapshot) & slow.keys()]
    of_pg = grouped((shard.pgid, osd) for shard, osd in shards if shard.is_running)
    counts = Counter(chain(*of_pg.values()))
    named = {osd for osds in of_pg.values() for osd in osds
             if counts[osd] == max(counts[one] for one in osds)}
    waiting = grouped((osd, shard.left_bytes) for shard, osd in shards if osd in named)
    return [SlowOsd(osd, class_of[osd], slow[osd], medians[class_of[osd]], len(left), sum(left))
            for osd, left in sorted(waiting.items())]


def time_left(rates: TransferRates, movements: Iterable[Movement],
              wanted: Mapping[int, int]) -> Optional[TimeLeft]:
    """When all that equilibrium moves has arrived. `wanted`: OSD → bytes still to be sent to it.
    None where something is left and nothing was seen to arrive yet."""
    left, own = dict(wanted), sum(wanted.values())
    ours = {osd for osd, count in wanted.items() if count > 0}
    for shard in movements:
        own += shard.left_bytes if shard.origin == PLAN else 0
        if shard.target is not None:
            left[shard.target] = left.get(shard.target, 0) + shard.left_bytes
            if shard.origin == PLAN:
                ours.add(shard.target)
    if not own:
        return TimeLeft(0.0, None)
    measured = {osd: rate.per_second for osd, rate in rates.by_osd.items() if rate.bytes > 0.0}
    if not measured:
        return None
    typical = _typical(rates.by_osd.values())
    # that with the most to come is seldom without a shard that is being copied, and so gets more
    # than the median, but less and less to its end
    longest = max((TimeLeft(left[osd] / (
        (typical + max(typical, measured.get(osd, 0.0))) / 2.0), osd)
                   for osd in sorted(ours)), default=TimeLeft(0.0, None),
                  key=lambda estimate: estimate.seconds)
    rate = rates.ours.per_second
    together = TimeLeft(own / rate, None) if rate > 0.0 else longest
    found = max(longest, together, key=lambda estimate: estimate.seconds)
    return found if found.seconds <= _LONGEST_SECONDS else None


def expected_time(rates: TransferRates, movements: Iterable[Movement],
                  to_come: Mapping[int, int]) -> Optional[Tuple[float, str]]:
    """(seconds that moves are likely to take, what that rests on, for people). By the OSD that gets
    most, at the rate at which OSDs were measured to get shards, else at an assumed one.

    `to_come`: OSD → bytes that moves bring it. None where they bring nothing.
    """
    if not any(to_come.values()):
        return None
    measured = time_left(rates, movements, to_come)
    if measured is not None:
        return measured.seconds, "at the rates last measured"
    return (max(to_come.values()) / ASSUMED_RATE,
            f"if each OSD takes {format_bytes(ASSUMED_RATE)}/s")


def _typical(rates: Iterable[Rate]) -> float:
    """The rate at which the median byte has arrived: OSDs that wait for their turn got few bytes,
    and count as little."""
    slowest_first = sorted(rates, key=lambda rate: rate.per_second)
    half = sum(rate.bytes for rate in slowest_first) / 2.0
    so_far = accumulate(rate.bytes for rate in slowest_first)
    return next(rate.per_second for rate, count in zip(slowest_first, so_far) if count >= half)


def _arrived(snapshot: Snapshot, before: Movement, now: Optional[Movement]) -> int:
    """Bytes of a shard that have arrived; 0 where it was sent elsewhere meanwhile."""
    if now is not None:
        return max(0, before.left_bytes - now.left_bytes)
    pg = snapshot.pgs.get(before.pgid)
    return before.left_bytes if pg is not None and (
        before.target is None or before.target in pg.up) else 0
