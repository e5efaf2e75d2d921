"""The mgr's steps of pg_num and pgp_num towards their targets.

Follows DaemonServer::adjust_pgs: splits go in one step as soon as all PGs of the pool are active,
pgp_num follows as the misplaced budget allows, and a merge waits until both PGs are clean on the
same OSDs, without upmap items.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Optional

from ..cluster import pg_reports
from ..cluster.cluster import Cluster
from ..monitor.config import Config
from ..monitor.monitor import Monitor
from ..osdmap.pool_entry import in_transition, parent_of, pg_nums
from . import statistics
from .splitting import can_merge
from .timers import Timer

#: Seconds between two steps; the mgr's statistics come at this interval.
STEP_SECONDS = 5.0

#: Largest number of PGs in creation at once (mon_osd_max_creating_pgs).
_MAX_CREATING = 1024

#: Seconds without a step after which the pool counts as stuck, and the simulation as idle.
_STUCK_SECONDS = 600.0

SENDER = "mgr.x pg_num"


class PgNumSteps(Timer):
    """Sends the mgr's commands while a pool is in transition."""

    def __init__(self, cluster: Cluster, monitor: Monitor, config: Config,
                 mgr_is_alive: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._monitor = monitor
        self._config = config
        self._mgr_is_alive = mgr_is_alive
        self._next = 0.0
        self._last_step = 0.0
        #: The pools of the last map in which none was in transition.
        self._stable_pools: Optional[Dict[int, Dict[str, Any]]] = None

    def _changing(self) -> Dict[int, Dict[str, Any]]:
        pools = self._cluster.map.pools
        if pools is self._stable_pools:
            return {}
        changing = {pool_id: pool for pool_id, pool in pools.items() if in_transition(pool)}
        if not changing:
            self._stable_pools = pools
        return changing

    def next_moment(self) -> Optional[float]:
        if not self._changing():
            return None
        if self._next < self._cluster.clock.now - STEP_SECONDS:
            self._next = self._last_step = self._cluster.clock.now
        return self._next

    def idle(self) -> bool:
        """True if no pool is in transition, or only pools that are stuck."""
        return not self._changing() or (
            self._cluster.clock.now - self._last_step > _STUCK_SECONDS)

    def run(self) -> None:
        self._next = self._cluster.clock.now + STEP_SECONDS
        if self._mgr_is_alive():
            for pool_id, pool in self._changing().items():
                self._adjust(pool_id, pool, pg_nums(pool))

    def _adjust(self, pool_id: int, pool: Dict[str, Any], now: Dict[str, int]) -> None:
        if now["pg_num_target"] > now["pg_num"]:
            if self._all_active(pool_id):
                self._set(pool, "pg_num_actual", min(now["pg_num_target"],
                                                     now["pg_num"] + _MAX_CREATING))
        elif now["pg_num_target"] < now["pg_num"]:
            if self._merge_step(pool_id, pool, now):
                return
        self._adjust_pgp_num(pool_id, pool, now)

    def _merge_step(self, pool_id: int, pool: Dict[str, Any], now: Dict[str, int]) -> bool:
        """Makes a step of merging the last PG if possible; True if one was made."""
        cluster = self._cluster
        source = now["pg_num"] - 1
        if now["pg_num_pending"] < now["pg_num"]:
            # both PGs have stopped serving clients and can be merged
            if can_merge(cluster, pool_id, source):
                self._set(pool, "pg_num_merged", source)
            else:
                self._set(pool, "pg_num_actual", now["pg_num"])
            return True
        if now["pg_num"] <= now["pg_placement_num"]:
            return False
        clear = True
        for position in (source, parent_of(source)):
            pgid = f"{pool_id}.{position:x}"
            if pgid in cluster.map.upmap_items:
                self._send({"prefix": "osd rm-pg-upmap-items", "pgid": pgid})
                clear = False
        if clear and can_merge(cluster, pool_id, source):
            self._set(pool, "pg_num_actual", source)
            return True
        return False

    def _adjust_pgp_num(self, pool_id: int, pool: Dict[str, Any], now: Dict[str, int]) -> None:
        target = min(now["pg_num_pending"], now["pg_placement_num_target"])
        pgp_num = now["pg_placement_num"]
        if target == pgp_num:
            return
        status = statistics.pg_status(self._cluster)
        if any(f"{name}_ratio" in status for name in ("inactive_pgs", "degraded", "unknown_pgs")):
            return
        limit = float(self._config.core("mgr", "target_max_misplaced_ratio"))
        misplaced = status.get("misplaced_ratio", 0.0)
        if misplaced > limit:
            return
        budget = min(limit - misplaced, limit / 2)
        step = max(int(now["pg_num"] * budget), 1)
        objects = statistics.pool_sums(self._cluster)[pool_id].stat_sum["num_objects"]
        if target > pgp_num and objects <= target:
            step = target  # an empty pool has nothing to move
        next_pgp_num = max(pgp_num - step, min(pgp_num + step, target))
        if target < pgp_num and now["pg_num_target"] < now["pg_num"]:
            # not far ahead of the merges, as in Ceph, so that PGs do not pile up
            next_pgp_num = max(next_pgp_num, now["pg_num"] - max(8, int(now["pg_num"] * limit)))
        if next_pgp_num != pgp_num:
            self._set(pool, "pgp_num_actual", next_pgp_num)

    def _all_active(self, pool_id: int) -> bool:
        cluster = self._cluster
        return all({"active", "peered"} & set(pg_reports.state_of(cluster, pg).split("+"))
                   for pg in cluster.unclean.values() if pg.pool_id == pool_id)

    def _set(self, pool: Dict[str, Any], name: str, value: int) -> None:
        self._last_step = self._cluster.clock.now
        self._send({"prefix": "osd pool set", "pool": pool["pool_name"], "var": name,
                    "val": str(value)})

    def _send(self, command: Dict[str, Any]) -> None:
        self._monitor.submit_from(SENDER, json.dumps(command), lambda *_: None)
