"""Shards in flight: from where to where, how much is left, who moves them, and how fast.

Computed once for each ClusterView, because shards in flight are few and PGs are many. Rates are
measured from one view to the next.

A plan is complete when its last OSD has its last shard. So the estimate of the time left is that of
the OSD that gets most, at the rate that OSDs get. It is at least the time that all bytes take at
the rate of the whole cluster. That is longer if a limit, such as that of misplaced copies, lets
only a few shards move at a time.
"""
from __future__ import annotations

import math
from collections import Counter
from itertools import zip_longest
from typing import (
    Any, Collection, Container, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional,
    Sequence, Set, Tuple)

from ..crush.placement import NO_OSD
from ..execution.pending_moves import PendingMove
from ..runtime.formatting import format_bytes, plural
from ..runtime.time_slice import grouped, piecewise
from ..snapshot import pg_states
from ..snapshot.model import Pg, Snapshot, UpmapItems, is_same_placement, shard_changes


#: Who moves a shard: equilibrium; Ceph, which copies it anyway, to an OSD that equilibrium has
#: chosen; Ceph, to restore a lost copy; Ceph, as CRUSH maps the PG differently; Ceph, as pg_num
#: changes; somebody else, by an upmap item.
PLAN, STEERED, RECOVERY, CRUSH, PG_NUM, UPMAP = (
    "plan", "steered", "recovery", "crush", "pg_num", "upmap")
ORIGINS = (PLAN, STEERED, RECOVERY, CRUSH, PG_NUM, UPMAP)

#: Flags of the osdmap with which OSDs do not copy all that they should.
HALTING = frozenset(("norebalance", "nobackfill", "norecover"))

Pair = Tuple[Optional[int], int]   # (OSD that loses a shard, None if its copy is lost; target)


class Movement(NamedTuple):
    """One shard in flight."""

    pgid: str
    pool_id: int
    source: Optional[int]   # OSD that loses the shard; None if no OSD has this copy any more
    target: Optional[int]   # OSD that gets it; None if the upmap items do not name it
    bytes: int              # of the shard
    left_bytes: int         # of these, still to be copied
    state: str              # one of pg_states.SHOWN
    origin: str             # one of ORIGINS

    @property
    def is_running(self) -> bool:
        """Returns True while Ceph copies its data."""
        return self.state in pg_states.COPIED


class MovingTotals(NamedTuple):
    """Sums of shards in flight: of equilibrium's own, and of all others."""

    shards: int = 0
    bytes: int = 0           # still to be copied
    states: Sequence[Mapping[str, Any]] = ()   # the result of by_state
    other_shards: int = 0
    other_bytes: int = 0
    other_states: Sequence[Mapping[str, Any]] = ()


def movements(snapshot: Snapshot, moving: Iterable[Pg], pending: Mapping[str, PendingMove],
              sent: Container[str], before: Sequence[Movement], earlier: Optional[Snapshot],
              steered: Container[str], logged: Mapping[str, Any]) -> Tuple[Movement, ...]:
    """Returns every shard in flight, whoever moves it. Pending moves that the snapshot does not
    show come last.

    `moving`: the PGs of the snapshot that move. `pending`: our moves that have not arrived.
    `sent`: PGs that this mgr or the last one has moved at some time. `before` and `earlier`:
    movements and snapshot of the last view; empty and None for the first. `steered`: PGs whose
    shards are copied anyway, to OSDs that equilibrium has chosen. `logged`: pgid → (raw mapping,
    upmap items) as the last mgr has sent it.
    """
    origins = _Origins(snapshot, pending, sent, before, earlier, steered, logged)
    found: List[Movement] = []
    for pg in moving:
        items = snapshot.items_of(pg.pgid)
        state = _state_of(pg)
        for source, target in _pairs(pg, items, snapshot.is_positional(pg)):
            if source is None:
                source = origins.source_by_log(pg, items, target)
            size = pg.shard_bytes
            osd = snapshot.osds.get(target)
            if osd is not None:   # the bytes that it takes on the device
                size = osd.device_bytes(snapshot.shard_bytes(pg, osd.id, pg.up))
            left = int(size * pg.uncopied.get(target, pg.uncopied_ratio))
            origin = origins.of(pg, items, source, target)
            found.append(Movement(pg.pgid, pg.pool, source, target, size, left, state, origin))
    for pgid, entry in list(pending.items()):
        found += _of_pending(snapshot, pgid, entry)
    return tuple(found)


def moving_totals(found: Sequence[Movement]) -> MovingTotals:
    """Returns the sums of movements."""
    ours = [one for one in found if one.origin == PLAN]
    others = [one for one in found if one.origin != PLAN]
    return MovingTotals(*_sums(ours), *_sums(others))


def _sums(found: Sequence[Movement]) -> Tuple[int, int, Sequence[Mapping[str, Any]]]:
    return len(found), sum([one.left_bytes for one in found]), by_state(found)


def by_state(found: Iterable[Movement]) -> Tuple[Mapping[str, Any], ...]:
    """Counts the movements by state; the states in which Ceph copies come first. JSON-ready."""
    counts = Counter(movement.state for movement in found)
    copied_first = sorted(counts, key=lambda state: (state not in pg_states.COPIED, state))
    return tuple([{"state": state, "shards": counts[state]} for state in copied_first])


def states_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the result of by_state as ': 9 backfilling, 23 backfill_wait'; empty for no rows."""
    if not rows:
        return ""
    return ": " + ", ".join(f"{row['shards']} {row['state']}" for row in rows)


def _state_of(pg: Pg) -> str:
    """Returns the state that `moves` shows for the shards in flight of a PG."""
    states = pg.state.split("+")
    # the snapshot shows a PG as it was until it reports that it moves
    return next((state for state in pg_states.SHOWN if state in states), pg_states.PEERING)


def _of_pending(snapshot: Snapshot, pgid: str, entry: PendingMove) -> List[Movement]:
    """Returns the shards of a pending move that the snapshot does not show yet."""
    pg = snapshot.pgs.get(pgid)
    shards = entry.shards
    if pg is None or pg.is_moving or not shards:
        return []
    sizes = dict(entry.gains)
    mean = entry.bytes // shards
    pairs = list(zip_longest(entry.sources, entry.targets))[:shards]
    pairs += [(None, None)] * (shards - len(pairs))
    state = _state_of(pg)   # after a failover only this shows that recovery by log fills a new OSD
    found: List[Movement] = []
    for source, target in pairs:
        size = mean if target is None else sizes[target]
        found.append(Movement(pgid, pg.pool, source, target, size, size, state, PLAN))
    return found


def _pairs(pg: Pg, items: UpmapItems, positional: bool) -> List[Pair]:
    """Returns (source, target) of each shard in flight. A shard without a target goes nowhere and
    is left out."""
    gains, losses = shard_changes(pg.holders, pg.up, positional)
    if positional:
        positions = [pair for pair in zip(losses, gains) if pair[1] != NO_OSD]
        return [(_known_osd(source), target) for source, target in positions]
    targets = [osd for osd in gains if osd != NO_OSD]
    sources = [osd for osd in losses if osd != NO_OSD]
    by_target = {target: source for source, target in items
                 if target in targets and source in sources}
    others = iter([osd for osd in sources if osd not in by_target.values()])
    pairs: List[Pair] = []
    for target in targets:
        source = by_target.get(target)
        if source is None:
            source = next(others, None)
        pairs.append((source, target))
    return pairs


def _known_osd(osd: int) -> Optional[int]:
    return None if osd == NO_OSD else osd


class _Origins:
    """Finds who moves a shard.

    The origin of a shard stays the same until the shard has arrived, unless we move it or a lost
    copy comes back. Its reason may be gone by then: the mgr sets pg_num to its last value long
    before the data has moved.
    """

    def __init__(self, snapshot: Snapshot, pending: Mapping[str, PendingMove],
                 sent: Container[str], before: Sequence[Movement],
                 earlier: Optional[Snapshot], steered: Container[str],
                 logged: Mapping[str, Any]) -> None:
        self._pools = snapshot.pools
        self._osds = snapshot.osds
        self._pending = pending
        self._sent = sent
        self._earlier = earlier
        self._steered = steered
        self._logged = logged
        self._known = {(movement.pgid, movement.target): movement.origin for movement in before}

    def _is_as_logged(self, pg: Pg, items: UpmapItems, positional: bool) -> bool:
        """Returns True if the items of a PG and its raw mapping are those of the log, or it has no
        row there."""
        if pg.pgid not in self._logged:
            return True
        raw, logged_items = self._logged[pg.pgid]
        return logged_items == items and is_same_placement(raw, pg.raw, positional)

    def of(self, pg: Pg, items: UpmapItems, source: Optional[int], target: int) -> str:
        """Returns the origin of one shard in flight."""
        pgid = pg.pgid
        entry = self._pending.get(pgid)
        if entry is not None and (target in entry.targets or not entry.targets):
            return PLAN
        known = self._known.get((pgid, target))
        if known is not None and (known != RECOVERY or source is None):
            return known   # an OSD with the lost copy may come back
        is_by_item = target not in pg.raw and any(to == target for _, to in items)
        is_steered = pgid in self._steered   # and not moved by a later plan
        if is_by_item and is_steered:
            return STEERED
        if source is None:
            return RECOVERY
        is_ours = pgid in self._sent and (self._earlier is None or known is not None)
        is_ours = is_ours and not is_steered
        if is_by_item:
            return PLAN if is_ours else UPMAP
        # its target is in the raw mapping: CRUSH maps it differently, or an item was removed
        pool = self._pools[pg.pool]
        if pool.touched:
            return PG_NUM
        earlier = self._earlier.pgs.get(pgid) if self._earlier is not None else None
        if earlier is None:   # monitors drop items, too, and CRUSH moves the PG then
            is_ours = is_ours and self._is_as_logged(pg, items, pool.erasure)
            return PLAN if is_ours and source not in pg.raw else CRUSH
        was_dropped = known == RECOVERY   # its item, by monitors; then the lost copy came back
        if not was_dropped and is_same_placement(earlier.raw, pg.raw, pool.erasure):
            return STEERED if is_steered else UPMAP
        return CRUSH

    def source_by_log(self, pg: Pg, items: UpmapItems, target: int) -> Optional[int]:
        """Returns the OSD that our shard leaves if recovery by log fills its target, else None.

        The new OSD is recovered while the others serve (PeeringState::choose_async_recovery). So
        the PG looks as if it had lost the copy. A new mgr cannot see the difference.
        """
        known = self._known.get((pg.pgid, target))
        is_ours = known == PLAN or (self._earlier is None and pg.pgid in self._sent)
        if not is_ours or pg_states.RECOVERY not in pg.state or pg_states.BACKFILL in pg.state:
            return None
        for source, to in items:
            if to == target and source not in pg.up and self._is_up(source):
                return source
        return None

    def _is_up(self, number: int) -> bool:
        osd = self._osds.get(number)
        return osd is not None and osd.up


_SHARDS_A_PIECE = 200   # before it gives way again
#: Seconds after which a measurement counts e times less. Estimates need a long time, because an OSD
#: that waits for its turn gets nothing for minutes. The present rate needs a shorter one.
_ESTIMATE_SECONDS = 1800.0
_NOW_SECONDS = 600.0
#: The rate of an OSD, in bytes a second, if nothing has been measured.
ASSUMED_RATE = 50 << 20
#: If nothing has arrived for so many seconds, although views are a minute apart, nothing moves.
_STILL_SECONDS = 59.0
#: A measurement that counts for fewer seconds, or bytes, is forgotten.
_FORGOTTEN_SECONDS = 1.0
_FORGOTTEN_BYTES = 1.0
#: A longer estimate says only that nothing has arrived for long.
_LONGEST_SECONDS = 365 * 86400.0
#: An OSD that copies less than this share of the median of its class is slow.
_SLOW_SHARE = 0.1
#: An OSD is judged after so many seconds of copying, if so many OSDs of its class copy.
_JUDGED_SECONDS = 900.0
_JUDGED_OSDS = 4
#: An OSD is not judged by smaller objects (bytes): their number takes the time.
_SMALL_OBJECT = 64 << 10


class Rate(NamedTuple):
    """Bytes that have arrived in so many seconds; older measurements count less."""

    bytes: float = 0.0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Returns the bytes per second; 0 if nothing was measured."""
        if self.seconds <= 0.0:
            return 0.0
        return self.bytes / self.seconds

    def aged(self, seconds: float, lasting: float) -> Rate:
        """Returns the rate after `seconds`. It counts e times less after `lasting` seconds."""
        factor = math.exp(-seconds / lasting)
        aged = Rate(self.bytes * factor, self.seconds * factor)
        if aged.seconds < _FORGOTTEN_SECONDS:
            return Rate()
        if aged.bytes < _FORGOTTEN_BYTES:
            return Rate(0.0, aged.seconds)
        return aged

    def plus(self, count: float, seconds: float) -> Rate:
        """Returns the rate with one more measurement."""
        return Rate(self.bytes + count, self.seconds + seconds)


class TransferRates(NamedTuple):
    """The rates of one view. Immutable."""

    by_osd: Mapping[int, Rate] = {}   # OSDs that shards were on their way to
    copying: Mapping[int, Rate] = {}  # OSDs that Ceph copied a shard from, or to
    ours: Rate = Rate()               # of all shards that equilibrium moves
    rebuilt: Rate = Rate()            # of all shards that no OSD has
    ours_now: Rate = Rate()           # of the first, of the last minutes
    all_now: Rate = Rate()            # of all shards, whoever moves them, of the last minutes
    #: the last view at which shards of ours had arrived, seconds since the epoch; None: no view
    moved_at: Optional[float] = None

    def stand_still(self, now: float) -> bool:
        """Returns True if shards of ours have arrived before, and none does at present."""
        return self.moved_at is not None and now - self.moved_at > _STILL_SECONDS


class TimeLeft(NamedTuple):
    """An estimate of when everything has arrived."""

    seconds: float
    osd: Optional[int]   # the OSD that takes longest; None if all of them together take longer


def measured_rates(before: TransferRates, earlier: Sequence[Movement], seconds: float,
                   snapshot: Snapshot, movements: Iterable[Movement]) -> TransferRates:
    """Returns the rates of a view that is so many seconds newer than `before` and its movements,
    `earlier`.

    Measures nothing between views of the same moment, as after a batch, or if the clock was set
    back.
    """
    if seconds <= 0.0:
        return before
    left = {(shard.pgid, shard.target): shard for shard in movements}
    arrived = [(shard, _arrived(snapshot, shard, left.get((shard.pgid, shard.target))))
               for shard in earlier]
    everything = [count for _, count in arrived]
    ours = [count for shard, count in arrived if shard.origin == PLAN]
    rebuilt = [count for shard, count in arrived if shard.source is None]
    moved_at = snapshot.taken_at if sum(ours) else before.moved_at
    return TransferRates(
        by_osd=_rates_by_osd(before.by_osd, arrived, seconds),
        copying=_copying_rates(before.copying, arrived, seconds, snapshot),
        ours=_with_more(before.ours, ours, seconds, _ESTIMATE_SECONDS),
        rebuilt=_with_more(before.rebuilt, rebuilt, seconds, _ESTIMATE_SECONDS),
        ours_now=_with_more(before.ours_now, ours, seconds, _NOW_SECONDS),
        all_now=_with_more(before.all_now, everything, seconds, _NOW_SECONDS),
        moved_at=moved_at)


def _with_more(before: Rate, arrived: Sequence[int], seconds: float, lasting: float) -> Rate:
    """Returns the rate with the bytes of some shards. The seconds without shards do not count.
    `lasting`: as in Rate.aged."""
    aged = before.aged(seconds, lasting)
    return aged.plus(sum(arrived), seconds) if arrived else aged


def _rates_by_osd(before: Mapping[int, Rate], arrived: Iterable[Tuple[Movement, int]],
                  seconds: float) -> Dict[int, Rate]:
    """Returns the rate at which each OSD gets shards."""
    rates: Dict[int, Rate] = {}
    for osd, rate in before.items():
        aged = rate.aged(seconds, _ESTIMATE_SECONDS)
        if aged.seconds > 0.0:
            rates[osd] = aged
    counts: Counter[int] = Counter()
    for shard, count in piecewise(arrived, _SHARDS_A_PIECE):
        if shard.target is not None:
            counts[shard.target] += count
    for target, count in counts.items():
        rates[target] = rates.get(target, Rate()).plus(count, seconds)
    return rates


def _copying_rates(before: Mapping[int, Rate], arrived: Iterable[Tuple[Movement, int]],
                   seconds: float, snapshot: Snapshot) -> Dict[int, Rate]:
    """Returns the rate at which each OSD copies. An OSD that copies nothing keeps its rate.

    So do all if nobody looked for long: shards have begun and ended meanwhile.
    """
    rates = dict(before)
    if seconds > _JUDGED_SECONDS:
        return rates
    counts_of: Counter[int] = Counter()
    for shard, count in piecewise(arrived, _SHARDS_A_PIECE):
        if shard.is_running:
            counts_of.update(dict.fromkeys(_copied_by(shard, snapshot), count))
    for osd, count in counts_of.items():
        aged = before.get(osd, Rate()).aged(seconds, _ESTIMATE_SECONDS)
        rates[osd] = aged.plus(count, seconds)
    return rates


def _copied_by(shard: Movement, snapshot: Snapshot) -> FrozenSet[int]:
    """Returns the OSDs on which the speed of a shard depends; none if its objects are small. A
    replica is read from the primary."""
    pg = snapshot.pgs.get(shard.pgid)
    if pg is None or shard.bytes < _SMALL_OBJECT * pg.objects:
        return frozenset()
    reader: Optional[int] = shard.source
    if not snapshot.is_positional(pg):
        reader = pg.acting[0] if pg.acting else None
    return frozenset(osd for osd in (reader, shard.target)
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
        """Returns a sentence about it for operators."""
        speeds = (f"{format_bytes(self.bytes_per_second)}/s, the median of class"
                  f" {self.device_class} {format_bytes(self.median_per_second)}/s")
        waiting = f"{plural(self.shards, 'shard')}, {format_bytes(self.bytes)} wait for it"
        return f"osd.{self.osd} copies {speeds}; {waiting}"


def slow_osds(rates: TransferRates, found: Sequence[Movement],
              snapshot: Snapshot) -> List[SlowOsd]:
    """Returns the OSDs that slow down Ceph's copying; none if a flag stops it.

    A PG is as slow as the slowest of its OSDs. So of several slow OSDs of a PG only those count
    that have most such PGs.
    """
    if not HALTING.isdisjoint(snapshot.flags):
        return []
    class_of = {osd: snapshot.osds[osd].device_class for osd in rates.copying
                if osd in snapshot.osds}
    medians = _class_medians(rates, class_of)
    slow: Set[int] = set()
    for osd, name in class_of.items():
        rate = rates.copying[osd]
        is_judged = rate.seconds >= _JUDGED_SECONDS
        if is_judged and rate.per_second < _SLOW_SHARE * medians.get(name, 0.0):
            slow.add(osd)
    osds_of: Dict[str, List[int]] = {}      # PG that Ceph copies → slow OSD of each shard
    waiting: Dict[int, List[int]] = {}      # slow OSD → bytes of each shard that waits for it
    for shard in piecewise(found, _SHARDS_A_PIECE):
        for osd in _copied_by(shard, snapshot) & slow:
            waiting.setdefault(osd, []).append(shard.left_bytes)
            if shard.is_running:
                osds_of.setdefault(shard.pgid, []).append(osd)
    named: List[SlowOsd] = []
    for osd in sorted(_with_most_pgs(osds_of.values())):
        name = class_of[osd]
        left = waiting[osd]
        named.append(SlowOsd(osd, name, rates.copying[osd].per_second, medians[name], len(left),
                             sum(left)))
    return named


def _class_medians(rates: TransferRates, class_of: Mapping[int, str]) -> Dict[str, float]:
    """Returns the median rate of each class in which enough OSDs copy, in bytes per second."""
    rates_of = grouped((name, rates.copying[osd]) for osd, name in class_of.items())
    return {name: _typical(alike) for name, alike in rates_of.items()
            if len(alike) >= _JUDGED_OSDS}


def _with_most_pgs(osds_of_pgs: Collection[Sequence[int]]) -> Set[int]:
    """Returns, of each PG's OSDs, the one with the most PGs; several if they have equally many."""
    counts: Counter[int] = Counter()
    for osds in osds_of_pgs:
        counts.update(osds)
    found: Set[int] = set()
    for osds in osds_of_pgs:
        most = max(map(counts.__getitem__, osds))
        for osd in osds:
            if counts[osd] == most:
                found.add(osd)
    return found


def time_left(rates: TransferRates, movements: Sequence[Movement],
              wanted: Mapping[int, int]) -> Optional[TimeLeft]:
    """Estimates when everything that equilibrium moves has arrived. `wanted`: OSD → bytes still to
    be sent to it. Returns None if something is left and nothing has arrived yet, or if it would
    take longer than a year."""
    ours = [shard for shard in movements if shard.origin == PLAN]
    return _time_left(rates, movements, ours, wanted, rates.ours.per_second)


def rebuild_time_left(rates: TransferRates, movements: Sequence[Movement]) -> Optional[TimeLeft]:
    """Estimates when Ceph has rebuilt all missing copies, as `time_left`; None if none has
    arrived, or none is missing."""
    rebuilt = [shard for shard in movements if shard.source is None]
    together = rates.rebuilt.per_second
    if not (rebuilt and together):
        return None
    return _time_left(rates, movements, rebuilt, {}, together)


def _time_left(rates: TransferRates, movements: Iterable[Movement], own: Sequence[Movement],
               wanted: Mapping[int, int], together: float) -> Optional[TimeLeft]:
    """Estimates the same of some movements. `together`: bytes of them that arrive a second."""
    left = Counter(wanted)
    targets = {osd for osd, count in wanted.items() if count > 0}
    targets.update([shard.target for shard in own if shard.target is not None])
    for shard in movements:
        if shard.target is not None:
            left[shard.target] += shard.left_bytes
    own_bytes = sum(wanted.values()) + sum([shard.left_bytes for shard in own])
    nothing = TimeLeft(0.0, None)
    if not own_bytes:
        return nothing
    rate = _typical(rates.by_osd.values())
    if rate <= 0.0:
        return None
    found = [TimeLeft(left[osd] / rate, osd) for osd in sorted(targets)]
    if together > 0.0:
        found.append(TimeLeft(own_bytes / together, None))
    longest = max(found, key=lambda one: one.seconds, default=nothing)
    return longest if longest.seconds <= _LONGEST_SECONDS else None


def expected_time(rates: TransferRates, movements: Sequence[Movement],
                  to_come: Mapping[int, int]) -> Optional[Tuple[float, str]]:
    """Returns (seconds that moves are likely to take, what that rests on, for people), or None if
    they bring nothing. `to_come`: OSD → bytes that moves bring it."""
    if not any(to_come.values()):
        return None
    measured = time_left(rates, movements, to_come)
    if measured is not None:
        return measured.seconds, "at the rates last measured"
    return (max(to_come.values()) / ASSUMED_RATE,
            f"if each OSD takes {format_bytes(ASSUMED_RATE)}/s")


def _typical(rates: Iterable[Rate]) -> float:
    """Returns the rate at which the median byte has arrived, 0 if there is none. An OSD that waits
    for its turn got few bytes, and counts as little."""
    slowest_first = sorted(rates, key=lambda rate: rate.per_second)
    half = sum(rate.bytes for rate in slowest_first) / 2.0
    so_far = 0.0
    for rate in slowest_first:
        so_far += rate.bytes
        if so_far >= half:
            return rate.per_second
    return 0.0


def _arrived(snapshot: Snapshot, before: Movement, now: Optional[Movement]) -> int:
    """Returns the bytes of a shard that have arrived; 0 if it was sent elsewhere."""
    if now is not None:
        return max(0, before.left_bytes - now.left_bytes)
    pg = snapshot.pgs.get(before.pgid)
    if pg is None or before.target not in (None, *pg.up):
        return 0
    return before.left_bytes
