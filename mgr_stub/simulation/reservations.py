"""Who may copy: the reservations that Ceph's OSDs give one another.

A PG needs one of `osd_max_backfills` local slots of its acting primary and as many remote slots of
each target. Higher priority goes first and takes the slot of a lower one that runs; within a
priority those that run stay, then the longest waiting goes. A target that would pass the
backfillfull ratio refuses, and is asked again later.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, NamedTuple, Tuple

from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..osdmap.upmap import NONE

#: Seconds after which a target that was too full is asked again (osd_backfill_retry_interval).
RETRY_SECONDS = 30.0


class Request(NamedTuple):
    """A PG that wants to copy; `primary` is the OSD whose local slot it needs.

    `rank` sorts requests of one priority: by the time that they have waited.
    """

    pg: Pg
    priority: int
    primary: int
    targets: Tuple[int, ...]
    rank: Tuple[float, Tuple[int, int]]


def grant(cluster: Cluster, requests: Iterable[Request],
          limit_of: Callable[[int], int], roomy: bool = False) -> List[Pg]:
    """Sets `backfilling` and `toofull` of all PGs that ask; returns those that may copy.

    With `roomy` the caller knows that no target can become too full.
    """
    slots = _Slots(cluster, limit_of)
    granted: List[Pg] = []
    for request in sorted(requests, key=_turn):
        pg = request.pg
        ran, pg.backfilling = pg.backfilling, False
        if pg.toofull and pg.retry_at > cluster.clock.now:
            continue
        pg.toofull = False
        if not slots.free_for(request):
            continue
        pg.toofull = slots.stops_recovery(pg) if _by_log(pg) else (
            not roomy and slots.too_full(pg, ran))
        if pg.toofull:
            pg.retry_at = cluster.clock.now + RETRY_SECONDS
            continue
        pg.backfilling, pg.waiting = True, None
        slots.take(request)
        granted.append(pg)
    return granted


def _by_log(pg: Pg) -> bool:
    return any(flow.by_log for flow in pg.flows.values())


def _turn(request: Request) -> Tuple[int, bool, Tuple[float, Tuple[int, int]]]:
    return -request.priority, not request.pg.backfilling, request.rank


class _Slots:
    """The slots that are taken, and what is on its way to each OSD."""

    def __init__(self, cluster: Cluster, limit_of: Callable[[int], int]) -> None:
        self._cluster = cluster
        self._limit_of = limit_of
        self._local: Dict[int, int] = {}
        self._remote: Dict[int, int] = {}
        #: Bytes still to come to an OSD by copies that have their slots.
        self._incoming: Dict[int, float] = {}

    def free_for(self, request: Request) -> bool:
        limit_of, remote = self._limit_of, self._remote
        if self._local.get(request.primary, 0) >= limit_of(request.primary):
            return False
        for osd in request.targets:
            if remote.get(osd, 0) >= limit_of(osd):
                return False
        return True

    def take(self, request: Request) -> None:
        pg = request.pg
        self._local[request.primary] = self._local.get(request.primary, 0) + 1
        for osd in request.targets:
            self._remote[osd] = self._remote.get(osd, 0) + 1
        for flow in pg.flows.values():
            to_come = flow.shard.total - flow.landed.total
            self._incoming[flow.target] = self._incoming.get(flow.target, 0.0) + to_come

    def stops_recovery(self, pg: Pg) -> bool:
        """Whether one that serves or shall have a part is above the full ratio."""
        full = self._cluster.map.ratio("full_ratio")
        osds = {osd for osd in self._cluster.map.acting(pg.pgid) if osd != NONE} | pg.targets()
        return any(self._cluster.usage[osd].utilization > full for osd in osds
                   if osd in self._cluster.usage)

    def too_full(self, pg: Pg, runs: bool) -> bool:
        """Whether a target refuses. One that has agreed does so only once it is too full itself."""
        ratio = self._cluster.map.ratio("backfillfull_ratio")
        for flow in pg.flows.values():
            usage = self._cluster.usage[flow.target]
            coming = 0.0 if runs else (flow.shard.total - flow.landed.total
                                       + self._incoming.get(flow.target, 0.0))
            if usage.used + coming > ratio * usage.total:
                return True
        return False
