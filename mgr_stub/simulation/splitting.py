"""Creating, splitting and merging PGs when pg_num changes."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from ..cluster import pg_reports
from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..cluster.shard_copies import discard_copies, update_num_pgs
from ..cluster.usage import NOTHING, ShardBytes
from ..crush.placement_seed import stable_mod
from ..osdmap.osd_map import is_erasure
from ..osdmap.pool_entry import parent_of, share_of


def change_pg_num(cluster: Cluster, pool_id: int, before: int, after: int) -> Set[str]:
    """Creates, splits or merges PGs after a change of pg_num; the ids of those that have to peer.

    With `before` 0 the pool is new. The raw mappings of existing PGs are already updated.
    """
    cluster.invalidate_sums()
    if before == 0:
        return _create(cluster, pool_id, after)
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
    """Children begin with the parent's OSDs; running transfers start again."""
    discard_copies(cluster, parent)
    parent.forget_reports()
    total = own + sum(shares)
    whole: Dict[str, Any] = {name: getattr(parent, name) for name in _AMOUNTS}
    touched = {parent.pgid}
    for position, share in zip(positions, shares):
        pgid = f"{parent.pool_id}.{position:x}"
        child = Pg(pgid, parent.pool_id, parent.erasure, {**parent.stats, "pgid": pgid})
        child.raw, child.crush, child.held = parent.raw, parent.crush, parent.held
        child.reported_epoch = parent.reported_epoch
        child.recovered_bytes = 0
        child.writes = parent.writes  # each gets the log with the same head and tail
        child.short_logs, child.past_intervals = parent.short_logs, parent.past_intervals
        child.complete_strays = parent.complete_strays
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
    parent.log_entries = parent.log_entries * own // total
    for child in (cluster.pgs[pgid] for pgid in touched - {parent.pgid}):
        parent.shard = parent.shard.minus(child.shard)
        parent.strays = {place: there.minus(child.strays[place])
                         for place, there in parent.strays.items()}
        # rounding remainders stay with the parent
    return touched


#: Figures of a PG that a split divides.
_AMOUNTS = ("num_bytes", "num_objects", "num_copies", "omap_bytes")


def _part(shard: ShardBytes, share: int, total: int) -> ShardBytes:
    return ShardBytes(*(amount * share // total for amount in shard))


def can_merge(cluster: Cluster, pool_id: int, position: int) -> bool:
    """True if a PG and the one it is merged into are clean and on the same OSDs."""
    source = cluster.pgs.get(f"{pool_id}.{position:x}")
    target = cluster.pgs.get(f"{pool_id}.{parent_of(position):x}")
    if source is None or target is None or source.held != target.held:
        return False
    return all(pg_reports.state_of(cluster, pg).startswith("active+clean")
               for pg in (source, target))


def _merge(cluster: Cluster, pool_id: int, position: int) -> Set[str]:
    source = cluster.pgs[f"{pool_id}.{position:x}"]
    target = cluster.pgs[f"{pool_id}.{parent_of(position):x}"]
    target.forget_reports()
    # a merge leaves an empty log, which is complete only if nothing was ever written
    target.writes, target.log_entries = 0 if target.writes == source.writes == 0 else None, 0
    target.short_logs, target.complete_strays = frozenset(), frozenset()
    for name in _AMOUNTS:
        setattr(target, name, getattr(target, name) + getattr(source, name))
    target.shard = target.shard.minus(NOTHING.minus(source.shard))
    for place, there in source.strays.items():
        target.strays[place] = target.strays.get(place, NOTHING).minus(NOTHING.minus(there))
    update_num_pgs(cluster, cluster.members(source), set())
    source.held, source.transfers, source.strays = (), {}, {}
    cluster.drop_pg(source)
    return {target.pgid}
