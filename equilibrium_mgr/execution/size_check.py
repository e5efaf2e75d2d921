"""Compares what OSDs that received shards take with what was believed of these shards.

A plan rests on what the module believes about sizes. Each look tells how much data an OSD has at
least beyond what its shards take (`Osd.least_residual_bytes`: what comes, goes or was written
explains itself). Where that has become clearly more since shards were sent there, the belief is
wrong: their pools are stopped, and what was measured is added to the size of their shards.

What that comes to, pools that are stopped and bytes to add (`SizeCorrections`), survives the mgr.
`on` lets stopped pools go on with the sizes that were measured, and `execute` those of its plan.
"""
from __future__ import annotations

from typing import (
    Any, Collection, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional)

from ..plan.model import PgChange
from ..runtime.formatting import format_bytes
from ..snapshot.model import Snapshot


#: Seconds after its last arrival after which an OSD has reported and compacted what it took.
_SETTLE_SECONDS = 600.0
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


class _Watch:
    """Watches one OSD since shards were sent to it. Bytes are those of its device."""

    def __init__(self, residual_bytes: int) -> None:
        self.residual_bytes = residual_bytes   # before
        self.pgids: Dict[str, float] = {}   # sent there → bytes per object added to its size
        self.last_coming_at = 0.0
        self.since: Optional[float] = None   # when an excess began to show
        self.has_found = False               # no other finding before it has rested


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
        for change in batch:
            for number in set(change.up_after).difference(change.up_before):
                osd, pg = before.osds.get(number), before.pgs.get(change.pgid)
                if osd is not None and osd.has_statistics and pg is not None:
                    watch = self._watches.get(number)
                    if watch is None:
                        # below 0 where its shards are believed to be larger than they are, as
                        # long as it is not known that shards of a pool take less there
                        watch = self._watches[number] = _Watch(
                            max(0, osd.device_bytes(osd.residual_bytes)))
                    watch.pgids[change.pgid] = self.bytes_per_object.get(pg.pool, 0.0)
                    watch.last_coming_at = before.taken_at

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
        if not arrived or excess <= max(_SIZE_RATIO * osd.device_size, _ARRIVED_RATIO * arrived):
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
            known = stopped.pop(found.pool, None)
            stopped[found.pool] = found if known is None or _excess(found) > _excess(
                known) else known
            added[found.pool] = max(added.pop(found.pool, 0.0), measured)
        self.measured_at = max([self.measured_at] + [found.found_at for found in findings])
        self.stopped = dict(list(stopped.items())[-_MOST_POOLS:])
        self.bytes_per_object = dict(list(added.items())[-_MOST_POOLS:])

    def resume(self, now: float, pools: Optional[FrozenSet[int]] = None) -> None:
        """Lets pools go on with the sizes that were measured, all of them where none are named.
        These sizes are believed for as long again, however long the pools were stopped."""
        if self.stopped:
            self.measured_at = now
        self.stopped = {} if pools is None else {
            pool: found for pool, found in self.stopped.items() if pool not in pools}

    def _prune(self, pools: FrozenSet[int], now: float) -> None:
        """Forgets deleted pools, whose ids are never used again, and sizes that were measured more
        than a week ago: a wrong one must not stay for ever, and a right one is measured again.
        Sizes of stopped pools stay, since the pools go on with them."""
        if self.bytes_per_object and now - self.measured_at > _BELIEVED_SECONDS:
            self.bytes_per_object = {pool: per_object for pool, per_object
                                     in self.bytes_per_object.items() if pool in self.stopped}
        if not pools.issuperset(self.bytes_per_object) or not pools.issuperset(self.stopped):
            self.stopped = {p: found for p, found in self.stopped.items() if p in pools}
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
            rows = [Misprediction(int(pool), int(osd), int(predicted), int(measured), float(at))
                    for pool, osd, predicted, measured, at in dump.get("stopped", ())]
            added = {int(pool): float(value)
                     for pool, value in dump.get("bytes_per_object", {}).items()}
            self.measured_at = float(dump.get("measured_at", 0.0))
        except (AttributeError, TypeError, ValueError, OverflowError):
            return
        self.stopped = {found.pool: found for found in rows}
        self.bytes_per_object = {pool: value for pool, value in added.items()
                                 if 0.0 < value <= _MOST_PER_OBJECT}


def sentence(found: Misprediction, name: str) -> str:
    """For people: the misprediction, and the command that lets the pool go on."""
    return (f"pool '{name}' took {format_bytes(found.measured_bytes)} on osd.{found.osd} where"
            f" {format_bytes(found.predicted_bytes)} were predicted; 'ceph equilibrium on' goes on"
            " with the measured size")


def _excess(found: Misprediction) -> int:
    return found.measured_bytes - found.predicted_bytes
