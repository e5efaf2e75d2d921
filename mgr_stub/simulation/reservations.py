"""Local and remote reservations of Ceph's OSDs, which decide which PGs may copy.

A PG needs one of `osd_max_backfills` local slots of its acting primary and as many remote slots of
each target. Higher priorities go first and take the slots of lower ones that run; within a
priority those that run keep their slots, then the longest waiting PG goes. A target that would
exceed the backfillfull ratio refuses, and is asked again later.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, NamedTuple, Tuple

from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..crush.constants import NONE

#: Seconds after which a target that was too full is asked again (osd_backfill_retry_interval).
RETRY_SECONDS = 30.0


class Request(NamedTuple):
    """A PG that has to copy; `primary` is the OSD whose local slot it needs.

    `order` sorts requests of one priority: moment since which they wait, then the PG.
    """

    pg: Pg
    priority: int
    primary: int
    targets: Tuple[int, ...]
    order: Tuple[float, Tuple[int, int]]


def grant(cluster: Cluster, requests: Iterable[Request],
          limit_of: Callable[[int], int], targets_have_space: bool = False) -> List[Pg]:
    """Sets `backfilling` and `toofull` of all PGs with a request; returns those that may copy.

    `targets_have_space` spares the check of the targets: none can become too full.
    """
    slots = _Slots(cluster, limit_of)
    granted: List[Pg] = []
    ranked = sorted([(-request.priority, not request.pg.backfilling, request.order, request)
                     for request in requests])   # no two PGs have one `order`
    for _, _, _, request in ranked:
        pg = request.pg
        ran, pg.backfilling = pg.backfilling, False
        if pg.toofull and pg.retry_at > cluster.clock.now:
            continue
        pg.toofull = False
        if not slots.free_for(request):
            continue
        pg.toofull = slots.is_above_full(pg) if _by_log(pg) else (
            not targets_have_space and slots.too_full(pg, ran))
        if pg.toofull:
            pg.retry_at = cluster.clock.now + RETRY_SECONDS
            continue
        pg.backfilling, pg.waiting_report = True, None
        slots.reserve(request)
        granted.append(pg)
    return granted


def _by_log(pg: Pg) -> bool:
    return any(transfer.by_log for transfer in pg.transfers.values())


class _Slots:
    """Reserved slots, and bytes in flight to each OSD."""

    def __init__(self, cluster: Cluster, limit_of: Callable[[int], int]) -> None:
        self._cluster = cluster
        self._limit_of = limit_of
        self._local: Dict[int, int] = {}
        self._remote: Dict[int, int] = {}
        #: Bytes still to come to an OSD by transfers that hold their slots.
        self._incoming: Dict[int, float] = {}

    def free_for(self, request: Request) -> bool:
        limit_of, remote = self._limit_of, self._remote
        if self._local.get(request.primary, 0) >= limit_of(request.primary):
            return False
        for osd in request.targets:
            if remote.get(osd, 0) >= limit_of(osd):
                return False
        return True

    def reserve(self, request: Request) -> None:
        pg = request.pg
        self._local[request.primary] = self._local.get(request.primary, 0) + 1
        for osd in request.targets:
            self._remote[osd] = self._remote.get(osd, 0) + 1
        for transfer in pg.transfers.values():
            to_come = transfer.total - transfer.accounted.total
            self._incoming[transfer.target] = self._incoming.get(transfer.target, 0.0) + to_come

    def is_above_full(self, pg: Pg) -> bool:
        """True if an acting OSD or a target is above the full ratio, which stops recovery."""
        full = self._cluster.map.ratio("full_ratio")
        osds = {osd for osd in self._cluster.map.acting(pg.pgid) if osd != NONE} | pg.targets()
        return any(self._cluster.usage[osd].utilization > full for osd in osds
                   if osd in self._cluster.usage)

    def too_full(self, pg: Pg, runs: bool) -> bool:
        """True if a target refuses; for a running PG only what the target holds now counts."""
        ratio = self._cluster.map.ratio("backfillfull_ratio")
        for transfer in pg.transfers.values():
            usage = self._cluster.usage[transfer.target]
            coming = 0.0 if runs else (transfer.total - transfer.accounted.total
                                       + self._incoming.get(transfer.target, 0.0))
            if usage.used + coming > ratio * usage.total:
                return True
        return False
