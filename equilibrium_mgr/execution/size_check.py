"""Compares what OSDs that received shards take with what was believed of these shards.

A plan rests on what the module believes about sizes. Each look tells how much data an OSD has at
least beyond what its shards take (`Osd.least_residual_bytes`: what comes, goes or was written
explains itself). Where that has become clearly more since shards were sent there, the belief is
wrong: their pools are stopped, and what was measured is added to the size of their shards. An hour
later a few shards of such a pool go again, and are watched; another hour later all may. Each time
that they take too much again these times are twice as long.

What that comes to, pools that are stopped and bytes to add (`SizeCorrections`), survives the mgr.
`on` lets stopped pools go on at once with the sizes that were measured, and `execute` those of its
plan.
"""
from __future__ import annotations

from typing import (
    Any, Collection, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple)

from ..plan.model import PgChange
from ..runtime.formatting import format_bytes, format_deadline
from ..runtime.time_slice import piecewise
from ..snapshot.model import Snapshot, pool_of
from .outcomes import retry_seconds


#: Seconds after its last arrival after which an OSD has reported and compacted what it took.
_SETTLE_SECONDS = 600.0
_PGS_A_PIECE = 1000   # before it gives way again
#: Seconds for which an excess has to show: an OSD reports every few seconds, and the mgr may have
#: its figures a minute late.
_CONFIRM_SECONDS = 90.0
#: An excess is noise below each of these: a ratio of the OSD's size, and of what has arrived.
_SIZE_RATIO = 0.005
_ARRIVED_RATIO = 0.25
#: A pool that brought less than this ratio of what has arrived is not concerned.
_CONCERNED_RATIO = 0.25


class Misprediction(NamedTuple):
    """One OSD that took more than was predicted, and a pool that explains it."""

    pool: int
    osd: int
    predicted_bytes: int   # of the shards that have arrived
    measured_bytes: int    # the same as the OSD reports them
    found_at: float        # seconds since the epoch
    tries: int = 1         # after which the pool was stopped, one after the other

    @property
    def seconds(self) -> float:
        """For so long the pool is stopped, and as long again few of its shards are sent."""
        return retry_seconds(self.tries)

    @property
    def until(self) -> float:
        """When a few of its shards are tried again, in seconds since the epoch."""
        return self.found_at + self.seconds


class _Watch:
    """Watches one OSD since shards were sent to it. Bytes are those of its device."""

    def __init__(self, residual_bytes: int) -> None:
        self.residual_bytes = residual_bytes   # before
        #: pgid of each shard that was there before → (bytes by the belief of then, objects)
        self.believed: Dict[str, Tuple[int, int]] = {}
        self.pgids: Dict[str, float] = {}   # sent there → bytes per object added to its size
        self.last_coming_at = 0.0
        self.since: Optional[float] = None   # when an excess began to show
        self.has_found = False               # no other finding before it has rested


#: Shards of a pool that is tried again that are watched at a time.
_TRIAL_SHARDS = 4
#: Pools that are remembered; the oldest go first. A cluster has fewer pools of such a kind.
_MOST_POOLS = 200
#: Seconds for which measured sizes are used.
_BELIEVED_SECONDS = 7 * 86400.0
#: No object has taken more bytes than this on a device beyond what was believed.
_MOST_PER_OBJECT = 1e12


class SizeCorrections:
    """Both mappings are replaced whole: commands read them while the serve thread works."""

    def __init__(self) -> None:
        self._watches: Dict[int, _Watch] = {}
        self.stopped: Mapping[int, Misprediction] = {}      # by pool id, the worst of each
        #: pool id → bytes of each shard per object beyond what was believed
        self.bytes_per_object: Mapping[int, float] = {}
        self.measured_at = 0.0   # the newest of them, seconds since the epoch

    @property
    def has_unconfirmed_excess(self) -> bool:
        """True where another observation has to confirm that an OSD took too much."""
        return any(watch.since is not None for watch in self._watches.values())

    def expect(self, batch: Iterable[PgChange], before: Snapshot) -> None:
        """Watches the targets of a batch; what was measured is part of the sizes in `before`."""
        new: Set[int] = set()
        for change in batch:
            for number in change.gained_by:
                osd, pg = before.osds.get(number), before.pgs.get(change.pgid)
                if osd is not None and osd.has_statistics and pg is not None:
                    watch = self._watches.get(number)
                    if watch is None:
                        # below 0 where its shards are believed to be larger than they are, as
                        # long as it is not known that shards of a pool take less there
                        watch = self._watches[number] = _Watch(
                            max(0, osd.device_bytes(osd.residual_bytes)))
                        new.add(number)
                    watch.pgids[change.pgid] = self.bytes_per_object.get(pg.pool, 0.0)
                    watch.last_coming_at = before.taken_at
        for pg in piecewise(before.pgs.values(), _PGS_A_PIECE) if new else ():
            for number in new.intersection(pg.up):
                self._watches[number].believed[pg.pgid] = (
                    before.shard_bytes(pg, number, pg.up), pg.objects)

    def observe(self, snapshot: Snapshot, pending: Collection[str]) -> List[Misprediction]:
        """Judges every watch, stops the pools that were mispredicted, and adds what was measured to
        their shards; returns what is new. `pending` are PGs that have been sent and have not
        arrived."""
        self._prune(frozenset(snapshot.pools), snapshot.taken_at)
        now = snapshot.taken_at
        new: Dict[Misprediction, float] = {}
        for number, watch in sorted(self._watches.items()):
            if any(pgid in pending for pgid in watch.pgids):
                watch.last_coming_at = now
            if number not in snapshot.osds or not (
                    0.0 <= now - watch.last_coming_at < _SETTLE_SECONDS):
                del self._watches[number]
            elif (not watch.has_found and snapshot.osds[number].has_statistics
                    and number not in snapshot.stale_osds):
                new.update(self._judge(number, watch, snapshot))
            else:   # what does not report confirms nothing
                watch.since = None
        if new:
            self.add(new)
        return list(new)

    def _judge(self, number: int, watch: _Watch,
               snapshot: Snapshot) -> Dict[Misprediction, float]:
        """What is found of an OSD → bytes per object to be added to the pool's shards: what was as
        they were sent, however much it is by now, and the excess that they explain."""
        osd, now = snapshot.osds[number], snapshot.taken_at
        bytes_of: Dict[int, int] = {}      # by pool id, of what has arrived
        objects_of: Dict[int, int] = {}
        added_of: Dict[int, float] = {}    # bytes that were added to their size as they were sent
        excess = float(osd.device_bytes(osd.least_residual_bytes) - watch.residual_bytes)
        for pgid, measured in watch.pgids.items():
            pg = snapshot.pgs.get(pgid)
            if pg is not None and number in pg.up and number in pg.acting:
                bytes_of[pg.pool] = bytes_of.get(pg.pool, 0) + osd.device_bytes(
                    snapshot.shard_bytes(pg, number, pg.up))
                objects_of[pg.pool] = objects_of.get(pg.pool, 0) + pg.objects
                added_of[pg.pool] = added_of.get(pg.pool, 0.0) + measured * pg.objects
        excess -= sum(added_of.values())
        arrived = sum(bytes_of.values())
        noise = max(_SIZE_RATIO * osd.device_size, _ARRIVED_RATIO * arrived)
        if excess > noise:   # what belief alone explains is no finding, and makes none smaller
            noise += osd.device_bytes(_shrunk_bytes(number, watch, snapshot))
        if not arrived or excess <= noise:
            watch.since = None
            return {}
        watch.since = now if watch.since is None else min(now, watch.since)
        if now - watch.since < _CONFIRM_SECONDS:
            return {}
        watch.since, watch.has_found = None, True
        return {Misprediction(pool, number, arrived, arrived + int(excess), now):
                (added_of[pool] + excess * count / arrived) / max(1, objects_of[pool])
                for pool, count in sorted(bytes_of.items()) if count >= _CONCERNED_RATIO * arrived}

    def add(self, findings: Mapping[Misprediction, float]) -> None:
        """Stops pools, and adds what was measured to their shards: of several OSDs the most, which
        show the same."""
        stopped, added = dict(self.stopped), dict(self.bytes_per_object)
        for found, measured in findings.items():
            known = stopped.pop(found.pool, found)
            if known.until <= found.found_at:   # it was tried again
                known = found._replace(tries=known.tries + 1)
            stopped[found.pool] = max(known, found, key=_excess)._replace(
                found_at=known.found_at, tries=known.tries)
            added[found.pool] = max(added.pop(found.pool, 0.0), measured)
        self.measured_at = max([self.measured_at] + [found.found_at for found in findings])
        self.stopped = dict(list(stopped.items())[-_MOST_POOLS:])
        self.bytes_per_object = dict(list(added.items())[-_MOST_POOLS:])

    def trial_shards(self, pool: int, now: float) -> int:
        """Shards of a stopped pool that may be sent now: none for a time, then a few."""
        if now < self.stopped[pool].until:
            return 0
        return _TRIAL_SHARDS - sum(
            pool_of(pgid) == pool for watch in self._watches.values() for pgid in watch.pgids)

    def resume(self, pools: Optional[FrozenSet[int]] = None) -> None:
        """Lets pools go on with the sizes that were measured, all of them if none are named."""
        self.stopped = {} if pools is None else {
            pool: found for pool, found in self.stopped.items() if pool not in pools}

    def _prune(self, pools: FrozenSet[int], now: float) -> None:
        """Lets pools go on whose shards, tried again, took what was predicted. Forgets deleted
        pools, whose ids are never used again, and sizes that were measured more than a week ago: a
        wrong one must not stay for ever, and a right one is measured again."""
        self.stopped = {pool: found for pool, found in self.stopped.items()
                        if pool in pools and now < found.until + found.seconds}
        if now - self.measured_at > _BELIEVED_SECONDS:
            self.bytes_per_object = {}
        if not pools.issuperset(self.bytes_per_object):
            self.bytes_per_object = {
                p: per_object for p, per_object in self.bytes_per_object.items() if p in pools}

    def to_dict(self) -> Dict[str, Any]:
        """For the key-value store."""
        return {"measured_at": self.measured_at,
                "stopped": [list(found) for found in self.stopped.values()],
                "bytes_per_object": {str(p): v for p, v in self.bytes_per_object.items()}}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over what another mgr has kept; what cannot be understood counts as absent."""
        try:
            rows = [Misprediction(int(pool), int(osd), int(predicted), int(measured), float(at),
                                  *map(int, tries[:1]))
                    for pool, osd, predicted, measured, at, *tries in dump.get("stopped", ())]
            added = {int(pool): float(value)
                     for pool, value in dump.get("bytes_per_object", {}).items()}
            self.measured_at = float(dump.get("measured_at", 0.0))
        except (AttributeError, TypeError, ValueError, OverflowError):
            return
        self.stopped = {found.pool: found for found in rows}
        self.bytes_per_object = {pool: value for pool, value in added.items()
                                 if 0.0 < value <= _MOST_PER_OBJECT}


def sentence(found: Misprediction, name: str) -> str:
    """For people: the misprediction, and when the pool goes on."""
    return (f"pool '{name}' took {format_bytes(found.measured_bytes)} on osd.{found.osd} where"
            f" {format_bytes(found.predicted_bytes)} were predicted; a few of its shards go"
            f" again from {format_deadline(found.until)}, with the measured size")


def _shrunk_bytes(number: int, watch: _Watch, snapshot: Snapshot) -> int:
    """Returns by how much less the shards that have stayed on an OSD are believed to take than
    before, without a loss of objects: the belief alone has changed."""
    shrunk = 0
    for pgid, (believed, objects) in watch.believed.items():
        pg = snapshot.pgs.get(pgid)
        if pg is not None and number in pg.up and pg.objects >= objects:
            shrunk += max(0, believed - snapshot.shard_bytes(pg, number, pg.up))
    return shrunk


def _excess(found: Misprediction) -> int:
    return found.measured_bytes - found.predicted_bytes
