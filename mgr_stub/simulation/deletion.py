"""Deletion, little by little, of the data of shards that have left OSDs.

Seen on 16.2.15 with its default of 5 s between two deletions of 30 objects on rotating disks
(osd_delete_sleep_hdd). The PG is active+clean at once. Its old OSD counts it in `num_pgs` until all
of its objects are gone, and until then reports the bytes of the rest.

Actions that are due at moments of virtual time.
"""
from __future__ import annotations

from bisect import insort
from typing import Callable, List, Optional, Tuple

from ..cluster.cluster import Cluster
from ..cluster.usage import ShardBytes


class Timer:
    """Something that runs at its next moment; the base class never runs."""

    def next_moment(self) -> Optional[float]:
        """Returns the moment of `clock.now` at which it is to run, None if it is not."""
        return None

    def run(self) -> None:
        """Runs the action; called at that moment or later."""

    def idle(self) -> bool:
        """Returns True if nothing in the cluster waits for it."""
        return True


class Schedule(Timer):
    """Single actions at given moments, in the order of the moments."""

    def __init__(self) -> None:
        self._waiting: List[Tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Schedules an action at a moment."""
        self._count += 1
        insort(self._waiting, (moment, self._count, action))   # no two have the same count

    def next_moment(self) -> Optional[float]:
        if self._waiting:
            return self._waiting[0][0]
        return None

    def run(self) -> None:
        self._waiting.pop(0)[2]()


#: Pieces in which a shard is deleted.
_PIECES = 8


def set_span(cluster: Cluster, schedule: Schedule, seconds: float) -> None:
    """Makes OSDs delete a shard that leaves them over so many seconds; 0: at once."""

    def delete_later(pool_id: int, osd: int, shard: ShardBytes, position: int) -> None:
        usage = cluster.usage[osd]
        usage.count_pg(1)
        place = (pool_id, osd)
        for piece in range(_PIECES):
            part = _piece(shard, piece)
            cluster.undeleted[place] = cluster.undeleted.get(place, 0) + part.total
            schedule.at(cluster.clock.now + seconds * (piece + 1) / _PIECES,
                        _deletion(cluster, pool_id, osd, part, position, piece == _PIECES - 1))
    cluster.on_shard_left = None
    if seconds > 0:
        cluster.on_shard_left = delete_later


def _deletion(cluster: Cluster, pool_id: int, osd: int, part: ShardBytes, position: int,
              is_last: bool) -> Callable[[], None]:
    usage = cluster.usage[osd]
    place = (pool_id, osd)

    def delete() -> None:
        cluster.undeleted[place] = cluster.undeleted.get(place, 0) - part.total
        if cluster.usage.get(osd) is not usage:   # its disk has been replaced in the meantime
            return
        if pool_id in cluster.map.pools:
            cluster.discard(pool_id, osd, part, position)
        else:
            usage.remove(part)
        if is_last:
            usage.count_pg(-1)
        cluster.invalidate_sums()
    return delete


def _piece(shard: ShardBytes, piece: int) -> ShardBytes:
    """Returns one of _PIECES parts, which add up to the shard."""
    return ShardBytes(*(count * (piece + 1) // _PIECES - count * piece // _PIECES
                        for count in shard))
