"""Compares the growth of OSDs that received shards with what was predicted of them.

A plan rests on what the module believes about sizes. Where an OSD that has received shards grows by
clearly more than was predicted, or has become the fullest of its class, the belief is wrong: the
pools concerned are stopped, and what was measured is added to the size of their shards.

Only growth is judged. What leaves an OSD is deleted slowly (osd_delete_sleep) and given back by
compaction later still, so bytes that have left are never expected to be free.
"""
from __future__ import annotations

from typing import (AbstractSet, Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence,
                    Set, Tuple)

from ...plan.model import PgChange
from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Osd, Pg, Snapshot
from .recent_arrivals import RecentArrivals

_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond
#: Seconds after its last arrival after which an OSD has reported and compacted what it took.
_SETTLE_SECONDS = 600.0
#: Seconds for which an excess has to show: an OSD reports every few seconds, and the mgr may have
#: its figures a minute late.
_CONFIRM_SECONDS = 90.0
#: Seconds after which a window begins anew, so that client writes do not add up in it.
_LONGEST_SECONDS = 6 * 3600.0

#: Growth beyond the prediction is noise below each of these: a ratio of the OSD's size, a ratio of
#: the predicted growth, and the bytes by which BlueStore's log and caches vary.
_SIZE_RATIO = 0.005
_PREDICTED_RATIO = 0.25
_NOISE_BYTES = 64 << 20
#: Rise of the highest utilization of a class (a ratio) that is still tolerated.
_RISE_RATIO = 0.005

#: A pool that explains less than this ratio of an OSD's excess is not concerned.
_CONCERNED_RATIO = 0.25
#: Rounds of the fit: what remains for pools that explain nothing halves with nearly each of them.
_FIT_ROUNDS = 100
#: The fit is through when no round changes a pool's part by more than this ratio.
_SETTLED_RATIO = 0.001


class Misprediction(NamedTuple):
    """One OSD that took more than was predicted, and a pool that explains it."""

    pool: int
    osd: int
    predicted_bytes: int   # growth of the OSD, whole
    measured_bytes: int    # the same as the OSD reports it
    found_at: float        # seconds since the epoch


class Findings(NamedTuple):
    """The result of one check."""

    mispredictions: Tuple[Misprediction, ...] = ()
    #: pool id → bytes per object of a shard beyond what was believed
    bytes_per_object: Mapping[int, float] = {}


class _Window:
    """Watches one OSD since the first of our shards was sent to it."""

    def __init__(self, used_bytes: int, shards: Dict[str, int], highest: float,
                 begun_at: float, all_used: Mapping[int, int]) -> None:
        self.used_bytes = used_bytes
        self.shards = shards          # pgid → bytes of the shard that the OSD held whole
        self.highest = highest        # utilization of the fullest OSD of its class, a ratio
        self.begun_at = begun_at
        self.size_factor = 1.0        # of the OSD, by which all its bytes are divided
        self.all_used = all_used      # used bytes of every OSD at that time, or a little before
        self.coming: Set[str] = set()     # PGs that we have sent there, arrived or not
        self.arrived_shards: Dict[str, int] = {}  # pgid → bytes of each shard that has come since
        self.last_coming_at = begun_at
        self.unreported: Set[str] = set()   # PGs here whose shards `used_bytes` may not contain
        self.late_bytes = 0    # of shards here that the last mgr moved, not contained either
        self.added_bytes = 0   # by which `used_bytes` has been raised for them

    def add_late(self, used_bytes: int) -> None:
        """Counts what the OSD reports more as held from the beginning, as far as it may be late."""
        late = min(self.late_bytes, max(0, used_bytes - self.used_bytes))
        self.used_bytes += late
        self.added_bytes += late
        self.late_bytes -= late


class _Growth(NamedTuple):
    """The growth of one OSD, and what explains it."""

    osd: int
    predicted: int
    measured: int
    arrived: Mapping[int, int]   # pool id → objects that have come, of pools of which any have
    threshold: float             # excess in bytes above which the OSD has mispredicted
    hidden: int = 0   # bytes that may hide excess: still to come, gone, or there from the beginning

    @property
    def excess(self) -> int:
        return self.measured - self.predicted


class PredictionCheck:
    """Kept by the serve thread."""

    def __init__(self) -> None:
        self._windows: Dict[int, _Window] = {}
        self._unconfirmed: Dict[int, float] = {}   # OSD → since when it has grown too much
        self._all_used: Dict[int, int] = {}
        self._all_used_at = float("-inf")   # seconds since the epoch
        self._arrivals = RecentArrivals()

    @property
    def is_idle(self) -> bool:
        """True where no OSD is being watched."""
        return not self._windows

    @property
    def has_unconfirmed_excess(self) -> bool:
        """True where another observation has to confirm that an OSD took too much."""
        return bool(self._unconfirmed)

    def restore(self, moved: Collection[str]) -> None:
        """Takes over from the last mgr: the PGs that it has moved lately."""
        self._arrivals.restore(moved)

    def expect(self, targets_by_pg: Mapping[str, Sequence[int]], before: Snapshot) -> None:
        """Opens windows for the targets of a batch, with `before` as their beginning.

        `targets_by_pg`: pgid → OSDs that gain a shard.
        """
        targets = {osd for osds in targets_by_pg.values() for osd in osds}
        self._open(targets.difference(self._windows), before)
        self._arrivals.expect(targets_by_pg)
        for pgid, osds in targets_by_pg.items():
            for osd in osds:
                window = self._windows.get(osd)
                if window is not None:
                    window.coming.add(pgid)
                    window.last_coming_at = before.taken_at

    def observe(self, snapshot: Snapshot, pending: Collection[str]) -> Findings:
        """Judges every window; `pending` are PGs that have been sent and have not arrived."""
        self._arrivals.observe(snapshot)
        if not self._windows:
            self._unconfirmed = {}
            return Findings()
        now = snapshot.taken_at
        self._close(now, pending, snapshot)
        self._add_late(snapshot)
        held = _held_by(self._windows, snapshot.pgs)
        others = self._growth_of_others(snapshot)
        growths = [self._growth(osd, held[osd], snapshot, pending, others[osd])
                   for osd in sorted(self._windows) if osd in snapshot.osds
                   and snapshot.osds[osd].has_statistics and osd not in snapshot.stale_osds]
        bad = self._confirmed(
            [growth for growth in growths if growth.excess > growth.threshold and growth.arrived],
            now)
        if not bad:
            return Findings()
        per_object = _fit([(_clear_excess(growth), growth.arrived) for growth in growths
                           if _is_informative(growth)])
        found = [misprediction for growth in bad
                 for misprediction in _concerned(growth, per_object, now)]
        pools = {misprediction.pool for misprediction in found}
        self._windows = {}   # sizes are believed otherwise from here on
        return Findings(tuple(found), {pool: per_object[pool] for pool in pools
                                       if per_object.get(pool, 0.0) > 0.0})

    def _confirmed(self, bad: Sequence[_Growth], now: float) -> List[_Growth]:
        """Those that have grown too much for _CONFIRM_SECONDS: a single report may come late."""
        since = {growth.osd: min(now, self._unconfirmed.get(growth.osd, now)) for growth in bad}
        confirmed = [growth for growth in bad if now - since[growth.osd] >= _CONFIRM_SECONDS]
        self._unconfirmed = {} if confirmed else since
        return confirmed

    # -- windows -------------------------------------------------------------------------------

    def _open(self, osds: Set[int], before: Snapshot) -> None:
        known = {osd for osd in osds if osd in before.osds and before.osds[osd].has_statistics}
        if not known:
            return
        held = _held_by(known, before.pgs)
        all_used = self._used_bytes(before)
        highest = before.max_utilization_by_class()
        for osd in known:
            unreported = {pgid for pgid in held[osd] if self._arrivals.is_recent(pgid, osd)}
            window = _Window(before.osds[osd].used_bytes,
                             self._whole_shards(osd, held[osd] - unreported, before),
                             highest[before.osds[osd].device_class], before.taken_at, all_used)
            window.unreported = unreported
            window.size_factor = before.osds[osd].size_factor
            window.late_bytes = sum(_bytes_there(before, before.pgs[pgid], osd)
                                    for pgid in self._arrivals.came_before(window.shards))
            self._windows[osd] = window

    def _add_late(self, snapshot: Snapshot) -> None:
        """In the first minute of a mgr, OSDs report what had come while the last one was there."""
        for number, window in self._windows.items():
            osd = snapshot.osds.get(number)
            if window.late_bytes and osd is not None and osd.has_statistics:
                window.add_late(osd.used_bytes)
                if self._arrivals.knows_all(snapshot.taken_at):
                    window.late_bytes = 0

    def _used_bytes(self, before: Snapshot) -> Dict[int, int]:
        """Used bytes of every OSD; windows that open within a while share one reading of them,
        which is large on large clusters."""
        if not 0.0 <= before.taken_at - self._all_used_at < _SETTLE_SECONDS:
            self._all_used = {osd.id: osd.used_bytes for osd in before.osds.values()
                              if osd.has_statistics}
            self._all_used_at = before.taken_at
        return self._all_used

    def _whole_shards(self, osd: int, held: Collection[str], before: Snapshot) -> Dict[str, int]:
        """pgid → bytes of the shard that the OSD holds whole, of those it is to keep."""
        give_way()
        pgs = map(before.pgs.__getitem__, held)
        return {pg.pgid: _bytes_there(before, pg, osd) for pg in pgs
                if osd in pg.up and osd in pg.holders}

    def _growth(self, number: int, held: AbstractSet[str], snapshot: Snapshot,
                pending: Collection[str], of_others: float) -> _Growth:
        give_way()
        osd, window = snapshot.osds[number], self._windows[number]
        stayed, hidden = _stayed_and_left(window.shards, held, snapshot, number)
        arrived: Dict[int, int] = {}
        for pgid in held - window.shards.keys():
            pg = snapshot.pgs[pgid]
            # in flight: all of it may be there already
            window.arrived_shards[pgid] = max(_bytes_there(snapshot, pg, number),
                                              window.arrived_shards.get(pgid, 0))
            if pgid in pending or number not in pg.holders or pgid in window.unreported:
                hidden += window.arrived_shards[pgid]
            if pgid in window.coming and pgid not in pending and pg.objects:
                arrived[pg.pool] = arrived.get(pg.pool, 0) + pg.objects
        hidden += window.added_bytes
        hidden += sum(size for pgid, size in window.arrived_shards.items() if pgid not in held)
        # those that have left again are deleted slowly
        arrivals = sum(window.arrived_shards.values())
        written = max(stayed, int(osd.size_bytes * of_others), 0)
        measured = osd.used_bytes - window.used_bytes
        rises = (osd.utilization or 0.0) > window.highest + _RISE_RATIO
        threshold = max(_SIZE_RATIO * osd.size_bytes, _PREDICTED_RATIO * arrivals, _NOISE_BYTES)
        return _Growth(number, arrivals + written, measured, arrived,
                       threshold / 2.0 if rises else threshold, hidden)

    def _growth_of_others(self, snapshot: Snapshot) -> Dict[int, float]:
        """OSD of a window → median growth of those OSDs of its class that took nothing since the
        window began (a ratio of size): client writes, and whatever else nobody predicted."""
        quiet: Dict[str, List[Osd]] = {}
        for osd in snapshot.osds.values():
            if osd.has_statistics and osd.id not in self._windows and not (
                    osd.inbound_bytes or osd.outbound_bytes
                    or osd.leftover_bytes > _SIZE_RATIO * osd.size_bytes):
                quiet.setdefault(osd.device_class, []).append(osd)
        grown: Dict[Tuple[int, str], float] = {}   # windows of one batch share their beginning
        found: Dict[int, float] = {}
        for number, window in self._windows.items():
            if number in snapshot.osds:
                device_class = snapshot.osds[number].device_class
                key = (id(window.all_used), device_class)
                if key not in grown:
                    give_way()
                    grown[key] = _median_growth(quiet.get(device_class, ()), window.all_used)
                found[number] = grown[key]
        return found

    def _close(self, now: float, pending: Collection[str], snapshot: Snapshot) -> None:
        """Ends windows that are settled, without judging them: after hours without an observation
        the growth may be that of others. Windows that have lasted too long end as well; the next
        batch begins new ones."""
        for osd, window in list(self._windows.items()):
            if osd not in snapshot.osds or (
                    snapshot.osds[osd].size_factor != window.size_factor):
                del self._windows[osd]   # its bytes are not comparable any more
                continue
            if window.coming.intersection(pending):
                window.last_coming_at = now
            quiet = now - window.last_coming_at
            if not 0.0 <= quiet < _SETTLE_SECONDS or now - window.begun_at > _LONGEST_SECONDS:
                del self._windows[osd]


def targets_of(changes: Iterable[PgChange]) -> Dict[str, Tuple[int, ...]]:
    """pgid → OSDs that gain a shard."""
    return {change.pgid: tuple(osd for osd in change.up_after if osd not in change.up_before)
            for change in changes}


def _held_by(osds: Collection[int], pgs: Mapping[str, Pg]) -> Dict[int, Set[str]]:
    """OSD → pgids of the PGs that have a shard there, or one in flight to it."""
    found: Dict[int, Set[str]] = {osd: set() for osd in osds}
    for pg in piecewise(pgs.values(), _PGS_A_PIECE):
        for osd in pg.up if pg.holders is pg.up else {*pg.up, *pg.holders}:
            if osd in found:
                found[osd].add(pg.pgid)
    return found


def _bytes_there(snapshot: Snapshot, pg: Pg, osd: int) -> int:
    """Bytes of the shard that a PG has on an OSD, or is to have there."""
    return snapshot.shard_bytes(pg, osd, pg.up if osd in pg.up else pg.holders)


def _stayed_and_left(shards: Mapping[str, int], held: AbstractSet[str], snapshot: Snapshot,
                     osd: int) -> Tuple[int, int]:
    """(bytes by which shards that have stayed on an OSD have grown, bytes of those that have left).
    `shards`: pgid → bytes before; `held`: the PGs that are there now."""
    stayed = left = 0
    for pgid, before in shards.items():
        if pgid in held:
            stayed += _bytes_there(snapshot, snapshot.pgs[pgid], osd) - before
        else:
            left += before
    return stayed, left


def _median_growth(osds: Sequence[Osd], used_before: Mapping[int, int]) -> float:
    grown = sorted((osd.used_bytes - used_before[osd.id]) / osd.size_bytes
                   for osd in osds if osd.id in used_before)
    return grown[len(grown) // 2] if grown else 0.0


def _clear_excess(growth: _Growth) -> int:
    """Bytes beyond the prediction; what may be ordinary growth counts as none."""
    return growth.excess if growth.excess > growth.threshold / 2.0 else 0


def _is_informative(growth: _Growth) -> bool:
    """True where the OSD's growth tells of sizes. It does not where an excess may be hidden: what
    is still to come is predicted already, and what has left may have freed space."""
    return (_clear_excess(growth) > 0 or not growth.hidden
            or growth.excess + growth.hidden <= 0)


def _fit(points: Sequence[Tuple[int, Mapping[int, int]]]) -> Dict[int, float]:
    """Pool → bytes per object, none below 0, that explain the excess of OSDs best.

    Expectation maximization over (excess, pool → objects that have come): each OSD's excess is
    given to its pools in proportion to what each explains so far, beginning with as much for every
    object. Where OSDs do not tell pools apart, each has as much as it brought objects.
    """
    pools = {pool for _, arrived in points for pool, count in arrived.items() if count}
    fitted = dict.fromkeys(pools, 1.0)
    objects = {pool: sum(arrived.get(pool, 0) for _, arrived in points) for pool in pools}
    for _ in range(_FIT_ROUNDS):
        give_way()
        before, shares = fitted, dict.fromkeys(pools, 0.0)
        for excess, arrived in points:
            explained = sum(fitted[pool] * count for pool, count in arrived.items() if count)
            if explained > 0.0 and excess > 0:
                for pool, count in arrived.items():
                    if count:
                        shares[pool] += excess * fitted[pool] * count / explained
        fitted = {pool: share / objects[pool] for pool, share in shares.items()}
        if all(abs(fitted[pool] - before[pool]) <= _SETTLED_RATIO * before[pool]
               for pool in pools):
            break
    return fitted


def _concerned(growth: _Growth, per_object: Mapping[int, float],
               now: float) -> List[Misprediction]:
    """The pools that explain an OSD's excess; the one that brought most where none does."""
    if not growth.arrived:
        return []   # nothing of ours has come: others have filled it
    parts = {pool: per_object.get(pool, 0.0) * count for pool, count in growth.arrived.items()}
    pools = [pool for pool, part in sorted(parts.items())
             if part >= _CONCERNED_RATIO * growth.excess]
    if not pools:
        pools = [max(growth.arrived, key=lambda pool: (growth.arrived[pool], -pool))]
    return [Misprediction(pool, growth.osd, growth.predicted, growth.measured, now)
            for pool in pools]
