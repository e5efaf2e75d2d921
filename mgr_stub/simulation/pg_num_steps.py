"""The mgr's steps of pg_num and pgp_num towards their targets.

Follows DaemonServer::adjust_pgs. Splits go in one step once all PGs of the pool are active. pgp_num
follows within the misplaced budget. A merge waits until both PGs are clean on the same OSDs,
without upmap items.

Creating, splitting and merging PGs when pg_num changes.
"""
from __future__ import annotations

import json
from operator import add
from typing import Any, Callable, Dict, List, Optional, Set

from ..cluster import operations, pg_reports
from ..cluster.pg_reports import CLEAN, PREMERGE
from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..cluster.shard_copies import discard_copies, update_num_pgs
from ..cluster.usage import NOTHING, ShardBytes
from ..crush.hashes import stable_mod
from ..monitor.config import Config
from ..monitor.monitor import Monitor
from ..osdmap.osd_map import (
    in_transition, is_erasure, is_merging, parent_of, pg_nums, share_of)
from . import statistics
from .deletion import Timer


def change_pg_num(cluster: Cluster, pool_id: int, before: int, after: int) -> Set[str]:
    """Creates, splits or merges PGs after a change of pg_num; returns the ids of PGs that have to
    peer.

    With `before` 0 the pool is new. The raw mappings of existing PGs are already updated.
    """
    cluster.invalidate_sums()
    if before == 0:
        return _create(cluster, pool_id, after)
    operations.settle(cluster, pool_id)
    if after > before:
        return _split(cluster, pool_id, before, after)
    touched: Set[str] = set()
    for position in range(before - 1, after - 1, -1):
        touched |= _merge(cluster, pool_id, position)
    return touched


def _create(cluster: Cluster, pool_id: int, count: int) -> Set[str]:
    pool = cluster.map.pools[pool_id]
    topology = cluster.topology()
    weights = topology.reweights()
    made: Set[str] = set()
    for position in range(count):
        pgid = f"{pool_id}.{position:x}"
        pg = Pg(pgid, pool_id, is_erasure(pool), {"pgid": pgid, "up": [], "acting": []})
        pg.raw = pg.crush = cluster.raw_mapping.compute(topology, pool_id, position, weights)
        pg.creating = True
        pg.writes = 0
        cluster.pgs[pgid] = pg
        pg.held = cluster.up_with_items(pg, ())
        update_num_pgs(cluster, set(), cluster.members(pg))
        made.add(pgid)
    return made


def _split(cluster: Cluster, pool_id: int, before: int, after: int) -> Set[str]:
    children: Dict[int, List[int]] = {}
    for position in range(before, after):
        children.setdefault(stable_mod(position, before), []).append(position)
    touched: Set[str] = set()
    for position, made in children.items():
        parent = cluster.pgs.get(f"{pool_id}.{position:x}")
        if parent is not None:
            shares = [share_of(child, after) for child in made]
            touched |= _split_one(cluster, parent, made, shares, share_of(position, after))
    return touched


def _split_one(cluster: Cluster, parent: Pg, positions: List[int], shares: List[int],
               own: int) -> Set[str]:
    """Splits one PG. Children begin with the parent's OSDs; running transfers start again."""
    discard_copies(cluster, parent)
    parent.forget_reports()
    total = own + sum(shares)
    whole: Dict[str, Any] = {name: getattr(parent, name) for name in _AMOUNTS}
    touched = {parent.pgid}
    for position, share in zip(positions, shares):
        pgid = f"{parent.pool_id}.{position:x}"
        child = Pg(pgid, parent.pool_id, parent.erasure, {**parent.stats, "pgid": pgid})
        child.raw = parent.raw
        child.crush = parent.crush
        child.origin = parent.origin
        child.held = parent.held
        child.reported_epoch = parent.reported_epoch
        child.recovered_bytes = 0
        child.writes = parent.writes  # each gets the log with the same head and tail
        child.short_logs = parent.short_logs
        child.past_intervals = parent.past_intervals
        child.written, child.left_at = parent.written, dict(parent.left_at)
        child.log_entries = parent.log_entries * share // total
        for name, amount in whole.items():
            part = amount * share // total
            setattr(child, name, part)
            setattr(parent, name, getattr(parent, name) - part)
        child.shard = _part(parent.shard, share, total)
        child.strays = {place: _part(there, share, total)
                        for place, there in parent.strays.items()}
        cluster.pgs[pgid] = child
        update_num_pgs(cluster, set(), cluster.members(child))
        touched.add(pgid)
    _split_operations(cluster, parent, positions)
    parent.log_entries = parent.log_entries * own // total
    for child in (cluster.pgs[pgid] for pgid in touched - {parent.pgid}):
        parent.shard = parent.shard.minus(child.shard)
        parent.strays = {place: there.minus(child.strays[place])
                         for place, there in parent.strays.items()}
        # rounding remainders stay with the parent
    return touched


def _split_operations(cluster: Cluster, parent: Pg, positions: List[int]) -> None:
    """Divides the counters of a PG among it and its children; they have its version."""
    *counts, version = parent.operations
    pgs = [parent, *(cluster.pgs[f"{parent.pool_id}.{one:x}"] for one in positions)]
    for number, pg in enumerate(reversed(pgs)):
        parts = [(count + number) // len(pgs) for count in counts]
        pg.operations = (*parts, version)
        pg.has_invalid_counters = True
        pg.primary = parent.primary


#: Figures of a PG that a split divides.
_AMOUNTS = ("num_bytes", "num_objects", "num_copies", "omap_bytes")


def _part(shard: ShardBytes, share: int, total: int) -> ShardBytes:
    return ShardBytes(*(amount * share // total for amount in shard))


def merging_pgs(cluster: Cluster, before: Dict[str, Any], after: Dict[str, Any]) -> List[Pg]:
    """Returns the PGs that peer because they begin, or give up, to get ready for a merge."""
    if before.get("pg_num_pending") == after.get("pg_num_pending"):
        return []
    return [pg for pg in cluster.pgs_of(int(after["pool"]))
            if is_merging(before, pg.order[1]) != is_merging(after, pg.order[1])]


def can_merge(cluster: Cluster, pool_id: int, position: int, state: str = CLEAN) -> bool:
    """Returns True if a PG and the one it is merged into are in a state and on the same OSDs."""
    source = cluster.pgs.get(f"{pool_id}.{position:x}")
    target = cluster.pgs.get(f"{pool_id}.{parent_of(position):x}")
    if source is None or target is None or source.held != target.held:
        return False
    return all(pg_reports.state_of(cluster, pg).startswith(state) for pg in (source, target))


def _merge(cluster: Cluster, pool_id: int, position: int) -> Set[str]:
    source = cluster.pgs[f"{pool_id}.{position:x}"]
    target = cluster.pgs[f"{pool_id}.{parent_of(position):x}"]
    target.forget_reports()
    # a merge leaves an empty log, which is complete only if nothing was ever written
    if not target.writes == source.writes == 0:
        target.writes = None
    target.log_entries = 0
    target.short_logs, target.left_at = frozenset(), {}
    *counts, version = target.operations
    *added, other_version = source.operations
    target.operations = (*map(add, counts, added), max(version, other_version))
    target.has_invalid_counters = True
    for name in _AMOUNTS:
        setattr(target, name, getattr(target, name) + getattr(source, name))
    target.shard = target.shard.minus(NOTHING.minus(source.shard))
    for place, there in source.strays.items():
        target.strays[place] = target.strays.get(place, NOTHING).minus(NOTHING.minus(there))
    update_num_pgs(cluster, cluster.members(source), set())
    source.held = ()
    source.transfers = {}
    source.strays = {}
    cluster.drop_pg(source)
    return {target.pgid}


#: Seconds between two steps; the mgr's statistics come at this interval.
STEP_SECONDS = 5.0

#: Largest number of PGs in creation at once (mon_osd_max_creating_pgs).
_MAX_CREATING = 1024

#: Largest difference between pg_num and pgp_num of a pool (mgr_max_pg_num_change).
_MAX_AHEAD = 128

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
        """Returns True if no pool is in transition, or only pools that are stuck."""
        return not self._changing() or (
            self._cluster.clock.now - self._last_step > _STUCK_SECONDS)

    def run(self) -> None:
        self._next = self._cluster.clock.now + STEP_SECONDS
        if self._mgr_is_alive():
            for pool_id, pool in self._changing().items():
                self._adjust(pool_id, pool, pg_nums(pool))

    def _adjust(self, pool_id: int, pool: Dict[str, Any], now: Dict[str, int]) -> None:
        if now["pg_num_target"] > now["pg_num"]:
            most = min(now["pg_num_target"], now["pg_num"] + _MAX_CREATING,
                       now["pg_placement_num"] + _MAX_AHEAD)
            if most > now["pg_num"] and self._all_active(pool_id):
                self._set(pool, "pg_num_actual", most)
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
            if can_merge(cluster, pool_id, source, PREMERGE):
                self._set(pool, "pg_num_merged", source)
            elif not any(pg.pool_id == pool_id and is_merging(pool, pg.order[1])
                         for pg in map(cluster.pgs.__getitem__, cluster.peering)):
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
        if target < pgp_num and now["pg_placement_num_target"] == now["pg_num_target"]:
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
