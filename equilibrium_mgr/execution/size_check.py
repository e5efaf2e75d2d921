"""Compares the bytes that OSDs take for new shards with the predicted size of these shards.

A plan rests on the sizes that the module predicts. Each snapshot shows how much data an OSD has at
least that no shard explains (`Osd.least_residual_bytes`). If this has clearly grown since shards
were sent to the OSD, the prediction was wrong: the module stops moving shards of these pools and
corrects their predicted size. An hour later a few shards of such a pool may go, and are watched.
After another hour all may. Both times double each time that the shards take too much again.

The fill limit does not hold without this: an OSD reports too late for all that is under way. In a
simulated cluster whose shards take three times their bytes, with one backfill at a time per OSD,
seven OSDs passed a fill_limit of 0.66, up to 0.72; with the check none did. With the default limits
more is under way at a time: the fullest ended at 0.75, with the check at 0.69. At eight times the
bytes and a fill_limit of 0.75, one OSD came to 0.99, with the check to 0.83.

Stopped pools and corrections (`SizeCorrections`) survive a failover. `on` lets stopped pools go on
at once with the corrected sizes, and `execute` those of its plan.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from typing import (
    Any, Collection, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple)

from ..plan.model import PgChange, typed
from ..runtime.formatting import format_bytes, format_deadline
from ..runtime.time_slice import piecewise
from ..snapshot.model import Osd, Snapshot, pool_of
from .outcomes import retry_seconds


#: Seconds after its last arrival after which an OSD has reported and compacted its new shards.
_WATCH_SECONDS = 600.0
_PGS_A_PIECE = 1000   # before it gives way again
#: An excess must last so many seconds. An OSD reports every few seconds, and the mgr gets that up
#: to a minute late.
_CONFIRM_SECONDS = 90.0
#: A smaller excess is noise: ratios of the OSD's size, and of the bytes that have arrived.
_SIZE_RATIO = 0.005
_ARRIVED_RATIO = 0.25
#: A pool that brought less than this ratio of the bytes that have arrived is not stopped.
_CONCERNED_RATIO = 0.25


class Misprediction(NamedTuple):
    """One OSD that took more than was predicted, and a pool that brought a part of the bytes."""

    pool: int
    osd: int
    predicted_bytes: int   # of the shards of all pools that have arrived
    measured_bytes: int    # the same as the OSD reports them
    found_at: float        # seconds since the epoch
    tries: int = 1         # how many times in a row the pool was stopped

    @property
    def seconds(self) -> float:
        """Returns how many seconds the pool is stopped. For as long after that only a few of its
        shards go."""
        return retry_seconds(self.tries)

    @property
    def until(self) -> float:
        """Returns when a few of its shards may go again, in seconds since the epoch."""
        return self.found_at + self.seconds


class _Watch:
    """One OSD that is watched because shards were sent to it. Bytes are those of its device."""

    def __init__(self, residual_bytes: int) -> None:
        self.residual_bytes = residual_bytes   # before the first of them
        #: pgid of each shard that was there before them → (bytes as predicted then, objects)
        self.believed: Dict[str, Tuple[int, int]] = {}
        self.pgids: Dict[str, float] = {}   # sent there → bytes per object added to its size
        self.last_coming_at = 0.0
        self.since: Optional[float] = None   # when an excess began to show
        self.has_found = False               # one finding is enough until it is idle again


#: So many shards of a pool are in flight or watched at a time when it is tried again.
_TRIAL_SHARDS = 4
#: The most pools that are remembered; the oldest are forgotten first.
_MOST_POOLS = 200
#: Corrected sizes are used for so many seconds.
_BELIEVED_SECONDS = 7 * 86400.0
#: A larger correction per object, in bytes, is a wrong reading.
_MOST_PER_OBJECT = 1e12


class SizeCorrections:
    """Stopped pools and corrected sizes. Both mappings are replaced whole, because commands read
    them while the serve thread works."""

    def __init__(self) -> None:
        self._watches: Dict[int, _Watch] = {}
        self.stopped: Mapping[int, Misprediction] = {}      # by pool id, the worst of each
        #: pool id → bytes per object that are added to the predicted size of each shard
        self.bytes_per_object: Mapping[int, float] = {}
        self.measured_at = 0.0   # the newest of them, seconds since the epoch

    @property
    def has_unconfirmed_excess(self) -> bool:
        """Returns True if an OSD seems to have taken too much and a later snapshot has to confirm
        it."""
        return any(watch.since is not None for watch in self._watches.values())

    def expect(self, batch: Iterable[PgChange], before: Snapshot) -> None:
        """Watches the targets of a batch. Sizes in `before` include the corrections."""
        new: Set[int] = set()
        for change in batch:
            pg = before.pgs.get(change.pgid)
            for number in change.gained_by:
                osd = before.osds.get(number)
                if osd is None or not osd.has_statistics or pg is None:
                    continue
                watch = self._watches.get(number)
                if watch is None:
                    # it is negative if the predicted sizes are too large; the affected pools
                    # are not known, so it does not count
                    residual = max(0, osd.device_bytes(osd.residual_bytes))
                    watch = self._watches[number] = _Watch(residual)
                    new.add(number)
                watch.pgids[change.pgid] = self.bytes_per_object.get(pg.pool, 0.0)
                watch.last_coming_at = before.taken_at
        if not new:
            return
        for pg in piecewise(before.pgs.values(), _PGS_A_PIECE):
            for number in new.intersection(pg.up):
                self._watches[number].believed[pg.pgid] = (
                    before.shard_bytes(pg, number, pg.up), pg.objects)

    def observe(self, snapshot: Snapshot, pending: Collection[str]) -> List[Misprediction]:
        """Checks every watched OSD, stops mispredicted pools and corrects the size of their shards.
        Returns the new findings. `pending`: PGs of our moves that have not arrived."""
        self._prune(frozenset(snapshot.pools), snapshot.taken_at)
        now = snapshot.taken_at
        new: Dict[Misprediction, float] = {}
        for number, watch in sorted(self._watches.items()):
            if any(pgid in pending for pgid in watch.pgids):
                watch.last_coming_at = now
            is_watched = 0.0 <= now - watch.last_coming_at < _WATCH_SECONDS
            osd = snapshot.osds.get(number)
            if osd is None or not is_watched:
                del self._watches[number]
                continue
            reports = osd.has_statistics and number not in snapshot.stale_osds
            if watch.has_found or not reports:
                watch.since = None   # an OSD that does not report confirms nothing
                continue
            new.update(self._judge(osd, watch, snapshot))
        if new:
            self.add(new)
        return list(new)

    def _judge(self, osd: Osd, watch: _Watch, snapshot: Snapshot) -> Dict[Misprediction, float]:
        """Returns each misprediction found on an OSD → the bytes per object that the pool's shards
        take in addition to the uncorrected prediction.

        That is the correction of the time when they were sent, plus the new excess.
        """
        now = snapshot.taken_at
        number = osd.id
        bytes_of: Counter[int] = Counter()      # pool id → bytes that have arrived
        objects_of: Counter[int] = Counter()
        added_of: Dict[int, float] = defaultdict(float)   # of these, the corrections of then
        for pgid, measured in watch.pgids.items():
            pg = snapshot.pgs.get(pgid)
            if pg is None or number not in pg.up or number not in pg.acting:
                continue
            pool = pg.pool
            bytes_of[pool] += osd.device_bytes(snapshot.shard_bytes(pg, number, pg.up))
            objects_of[pool] += pg.objects
            added_of[pool] += measured * pg.objects
        excess = float(osd.device_bytes(osd.least_residual_bytes) - watch.residual_bytes)
        excess -= sum(added_of.values())
        arrived = sum(bytes_of.values())
        noise = max(_SIZE_RATIO * osd.device_size, _ARRIVED_RATIO * arrived)
        if excess > noise:   # a smaller prediction for the same shard is no excess of the OSD
            noise += osd.device_bytes(_shrunk_bytes(osd.id, watch, snapshot))
        if not arrived or excess <= noise:
            watch.since = None
            return {}
        watch.since = now if watch.since is None else min(now, watch.since)
        if now - watch.since < _CONFIRM_SECONDS:
            return {}
        watch.since = None
        watch.has_found = True
        found: Dict[Misprediction, float] = {}
        for pool, count in sorted(bytes_of.items()):
            if count >= _CONCERNED_RATIO * arrived:
                too_much = added_of[pool] + excess * count / arrived
                misprediction = Misprediction(pool, osd.id, arrived, arrived + int(excess), now)
                found[misprediction] = too_much / max(1, objects_of[pool])
        return found

    def add(self, findings: Mapping[Misprediction, float]) -> None:
        """Stops pools and corrects the size of their shards. If several OSDs show the same, the
        largest correction counts."""
        stopped = dict(self.stopped)
        added = dict(self.bytes_per_object)
        for found, measured in findings.items():
            pool = found.pool
            known = stopped.pop(pool, found)
            if known.until <= found.found_at:   # it was tried again
                known = found._replace(tries=known.tries + 1)
            stopped[pool] = max(known, found, key=_excess)._replace(
                found_at=known.found_at, tries=known.tries)
            added[pool] = max(added.pop(pool, 0.0), measured)
        self.measured_at = max([self.measured_at] + [found.found_at for found in findings])
        self.stopped = dict(list(stopped.items())[-_MOST_POOLS:])
        self.bytes_per_object = dict(list(added.items())[-_MOST_POOLS:])

    def trial_shards(self, pool: int, now: float) -> int:
        """Returns how many shards of a stopped pool may be sent now: none for a time, then a few.
        It can be below 0."""
        if now < self.stopped[pool].until:
            return 0
        left = _TRIAL_SHARDS
        for watch in self._watches.values():
            for pgid in watch.pgids:
                if pool_of(pgid) == pool:
                    left -= 1
        return left

    def resume(self, pools: Optional[FrozenSet[int]] = None) -> None:
        """Lets stopped pools go on with the corrected sizes: those in `pools`, all for None."""
        if pools is None:
            self.stopped = {}
            return
        self.stopped = {pool: found for pool, found in self.stopped.items() if pool not in pools}

    def _prune(self, pools: FrozenSet[int], now: float) -> None:
        """Lets pools go on if the time in which a few of their shards went has shown no excess.

        Forgets deleted pools, whose ids are never used again. Forgets all corrections when the
        newest is a week old: a wrong one must not stay for ever, a right one is measured again.
        """
        self.stopped = {pool: found for pool, found in self.stopped.items()
                        if pool in pools and now < found.until + found.seconds}
        if now - self.measured_at > _BELIEVED_SECONDS:
            self.bytes_per_object = {}
        if not pools.issuperset(self.bytes_per_object):
            self.bytes_per_object = {
                p: per_object for p, per_object in self.bytes_per_object.items() if p in pools}

    def to_dict(self) -> Dict[str, Any]:
        """Returns the state for the key-value store."""
        return {"measured_at": self.measured_at,
                "stopped": [list(found) for found in self.stopped.values()],
                "bytes_per_object": {str(p): v for p, v in self.bytes_per_object.items()}}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Restores the state of another mgr. Ignores a state that it cannot read."""
        try:
            rows: List[Misprediction] = [
                typed(row, Misprediction) for row in dump.get("stopped", ())]
            added = {int(pool): float(value)
                     for pool, value in dump.get("bytes_per_object", {}).items()}
            self.measured_at = float(dump.get("measured_at", 0.0))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return
        self.stopped = {found.pool: found for found in rows}
        self.bytes_per_object = {pool: value for pool, value in added.items()
                                 if 0.0 < value <= _MOST_PER_OBJECT}


def sentence(found: Misprediction, name: str) -> str:
    """Returns the misprediction, and when the pool goes on, for people."""
    return (f"osd.{found.osd} took {format_bytes(found.measured_bytes)} of new shards where"
            f" {format_bytes(found.predicted_bytes)} were predicted, among them those of pool"
            f" '{name}'; a few of its shards go again from {format_deadline(found.until)}, with the"
            f" measured size")


def _shrunk_bytes(number: int, watch: _Watch, snapshot: Snapshot) -> int:
    """Returns how many bytes less the module predicts for shards that have stayed on an OSD and
    lost no objects: only the prediction has changed."""
    shrunk = 0
    for pgid, (believed, objects) in watch.believed.items():
        pg = snapshot.pgs.get(pgid)
        if pg is not None and number in pg.up and pg.objects >= objects:
            shrunk += max(0, believed - snapshot.shard_bytes(pg, number, pg.up))
    return shrunk


def _excess(found: Misprediction) -> int:
    return found.measured_bytes - found.predicted_bytes
