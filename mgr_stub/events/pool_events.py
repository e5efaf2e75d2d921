"""Creating, deleting, filling and emptying pools, and changing their pg_num.

StubError for pools that do not exist and similar errors.

OSDs that allocate more or less for shards, and pools whose shards differ by position.
"""
from __future__ import annotations

import errno
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..cluster.cluster import Cluster
from ..cluster.shard_copies import account_copied
from ..cluster.usage import NOTHING, ShardBytes, position_ratios
from ..crush.hashes import NONE
from ..errors import StubError, invalid
from ..osdmap.osd_map import ERASURE, MapChange
from ..simulation.simulation import Simulation


_REPLICATED = 1

#: Sender of the simulation's own commands in the monitor's log.
_SENDER = "sim"


def create_pool(simulation: Simulation, name: str, pg_num: int, size: int,
                data_chunks: Optional[int] = None, rule: Optional[str] = None,
                profile: Optional[str] = None) -> int:
    """Creates an empty pool; its id. With `data_chunks` (k) it is erasure-coded, k + m = size.

    `rule` is the name of a CRUSH rule, by default the first one of the pool's type; `profile` is an
    existing erasure-code profile, by default a new one with the pool's name.
    """
    osdmap = simulation.cluster.map
    if osdmap.pool_named(name) is not None:
        raise StubError(errno.EEXIST, f"pool '{name}' already exists")
    if not 0 < pg_num <= 65536 or size < 1:
        raise invalid("a pool needs a pg_num between 1 and 65536 and a size of at least 1")
    if data_chunks is not None and not 1 <= data_chunks < size:
        raise invalid(f"of {size} shards k={data_chunks} cannot be data")
    pool_id = max([int(osdmap.rest.get("pool_max", 0)), *osdmap.pools], default=0) + 1
    rest: Dict[str, Any] = {"pool_max": pool_id}
    if data_chunks is not None and profile is None:
        rest["erasure_code_profiles"] = {
            **osdmap.rest["erasure_code_profiles"],
            name: {"k": str(data_chunks), "m": str(size - data_chunks), "plugin": "jerasure"}}
    entry = _entry(pool_id, name, pg_num, size, data_chunks,
                   _rule_id(simulation, rule, data_chunks is not None))
    if profile is not None:
        if profile not in osdmap.rest["erasure_code_profiles"]:
            raise StubError(errno.ENOENT, f"there is no erasure-code profile '{profile}'")
        entry["erasure_code_profile"] = profile
    simulation.apply_change(MapChange(rest=rest, pools={pool_id: entry}))
    return pool_id


def set_rule(simulation: Simulation, name: str, rule: str) -> None:
    """Gives a pool another CRUSH rule: CRUSH places all of its PGs again."""
    pool_id = pool_id_of(simulation, name)
    pool = simulation.cluster.map.pools[pool_id]
    simulation.apply_change(MapChange(pools={pool_id: {
        **pool, "crush_rule": _rule_id(simulation, rule, False)}}))


def _rule_id(simulation: Simulation, name: Optional[str], erasure: bool) -> int:
    rules: List[Dict[str, Any]] = list(simulation.cluster.crush.rules.values())
    if name is not None:
        for rule in rules:
            if rule.get("rule_name") == name:
                return int(rule["rule_id"])
        raise StubError(errno.ENOENT, f"there is no CRUSH rule '{name}'")
    word = "firstn"
    if erasure:
        word = "indep"
    for rule in rules:
        if any(word in step["op"] for step in rule["steps"]):
            return int(rule["rule_id"])
    raise StubError(errno.ENOENT, f"there is no CRUSH rule with {word} steps")


#: Default values in the entry of a new pool.
_DEFAULTS: Dict[str, Any] = {
    "peering_crush_bucket_count": 0, "peering_crush_bucket_target": 0,
    "peering_crush_bucket_barrier": 0, "peering_crush_bucket_mandatory_member": NONE,
    "last_pg_merge_meta": {"ready_epoch": 0, "last_epoch_started": 0, "last_epoch_clean": 0,
                           "source_pgid": "0.0", "source_version": "0'0", "target_version": "0'0"},
    "auid": 0, "snap_mode": "selfmanaged", "snap_seq": 0, "snap_epoch": 0, "pool_snaps": [],
    "target_max_bytes": 0, "target_max_objects": 0, "cache_target_dirty_ratio_micro": 400000,
    "cache_target_dirty_high_ratio_micro": 600000, "cache_target_full_ratio_micro": 800000,
    "cache_min_flush_age": 0, "cache_min_evict_age": 0, "hit_set_params": {"type": "none"},
    "hit_set_period": 0, "hit_set_count": 0, "use_gmt_hitset": True,
    "min_read_recency_for_promote": 0, "min_write_recency_for_promote": 0,
    "hit_set_grade_decay_rate": 0, "hit_set_search_last_n": 0, "grade_table": [],
    "stripe_width": 0, "expected_num_objects": 0, "fast_read": False,
    "create_time": "2026-01-01T00:00:00.000000+0000", "last_change": "1",
    "last_force_op_resend": "0", "last_force_op_resend_prenautilus": "0",
    "last_force_op_resend_preluminous": "0", "removed_snaps": "[]"}


def _entry(pool_id: int, name: str, pg_num: int, size: int, data_chunks: Optional[int],
           rule: int) -> Dict[str, Any]:
    kind = _REPLICATED
    profile = ""
    min_size = size - size // 2
    if data_chunks is not None:
        kind = ERASURE
        profile = name
        min_size = data_chunks + min(1, size - data_chunks - 1)
    return {**_DEFAULTS, "pool": pool_id, "pool_name": name,
            "flags": 1, "flags_names": "hashpspool",
            "type": kind, "size": size, "min_size": min_size,
            "crush_rule": rule, "object_hash": 2, "pg_autoscale_mode": "off", "pg_num": pg_num,
            "pg_placement_num": pg_num, "pg_placement_num_target": pg_num,
            "pg_num_target": pg_num, "pg_num_pending": pg_num, "tiers": [], "tier_of": -1,
            "read_tier": -1, "write_tier": -1, "cache_mode": "none", "quota_max_bytes": 0,
            "quota_max_objects": 0, "erasure_code_profile": profile,
            "options": {}, "application_metadata": {}}


def set_tier(simulation: Simulation, name: str, base: Optional[str]) -> None:
    """Makes a pool the cache tier of another, like `ceph osd tier add BASE NAME`; None ends that.
    """
    pools = simulation.cluster.map.pools
    pool_id = pool_id_of(simulation, name)
    base_id = -1
    if base is not None:
        base_id = pool_id_of(simulation, base)
    if base_id == pool_id:
        raise invalid("a pool is not its own cache tier")
    changed = {pool_id: {**pools[pool_id], "tier_of": base_id}}
    for other_id in {base_id, int(pools[pool_id].get("tier_of", -1))} - {-1}:
        tiers = [tier for tier in pools[other_id].get("tiers", []) if tier != pool_id]
        if other_id == base_id:
            tiers.append(pool_id)
        changed[other_id] = {**pools[other_id], "tiers": tiers}
    simulation.apply_change(MapChange(pools=changed))


def remove_pool(simulation: Simulation, name: str) -> None:
    """Removes a pool, like `ceph osd pool rm`; frees its bytes at once."""
    _command(simulation, {"prefix": "osd pool rm", "pool": name})


def set_pg_num(simulation: Simulation, name: str, pg_num: int, variable: str = "pg_num") -> None:
    """Sets the target of the mgr's steps, like `ceph osd pool set NAME pg_num N` or pgp_num."""
    _command(simulation, {"prefix": "osd pool set", "pool": name, "var": variable,
                          "val": str(pg_num)})


def _command(simulation: Simulation, command: Dict[str, Any]) -> None:
    code, _, message = simulation.answer_to(_SENDER, command)
    if code:
        raise StubError(code, message)


# -- data -----------------------------------------------------------------------------------------

def write(simulation: Simulation, name: str, count: int) -> int:
    """Writes bytes to a pool at once; returns the number of bytes written."""
    return simulation.client_load.write(pool_id_of(simulation, name), count)


def delete(simulation: Simulation, name: str, count: int) -> int:
    """Deletes bytes of a pool at once; returns the number of bytes deleted."""
    return -simulation.client_load.write(pool_id_of(simulation, name), -count)


def grow(simulation: Simulation, name: str, bytes_per_second: float) -> None:
    """Makes clients write to a pool continuously (negative: delete); 0 ends that."""
    simulation.client_load.grow(pool_id_of(simulation, name), bytes_per_second)


def pool_id_of(simulation: Simulation, name: str) -> int:
    pool_id = simulation.cluster.map.pool_named(name)
    if pool_id is None:
        raise StubError(errno.ENOENT, f"pool '{name}' does not exist")
    return pool_id


_Shard = Tuple[int, int, int, ShardBytes]   # pool, OSD, position, bytes


def set_allocation(simulation: Simulation, ratio: float, osds: Sequence[int],
                   pool_id: Optional[int] = None) -> None:
    """Makes OSDs allocate `ratio` bytes for each stored byte: of one pool, or of all others."""
    if not 0.0 < ratio <= 100.0:
        raise invalid("a ratio of allocated to stored bytes is above 0 and at most 100")
    allocation = simulation.cluster.shard_ratios.allocation
    ratios = {(pool_id, osd): ratio for osd in osds}
    _change(simulation, partial(allocation.update, ratios))


def optimize_pool(simulation: Simulation, pool_id: int, chunk: int) -> None:
    """Sets allow_ec_optimizations of a pool, as if all of it had been written since: objects of its
    mean size, in chunks of so many bytes."""
    cluster = simulation.cluster
    pool: Dict[str, Any] = cluster.map.pools[pool_id]
    data_chunks = cluster.map.data_chunks(pool_id)
    size = int(pool["size"])
    pgs = cluster.pgs_of(pool_id)
    objects = sum(pg.num_objects for pg in pgs)
    is_of_pages = chunk > 0 and chunk % 4096 == 0
    if data_chunks < 2 or not objects or not is_of_pages:
        raise invalid("an erasure-coded pool with objects can be optimized, with chunks of whole"
                      " pages of 4096 bytes")
    mean = max(1, sum(pg.num_bytes for pg in pgs) // objects)
    ratios = position_ratios(size, data_chunks, chunk, mean)
    flags = [name for name in str(pool.get("flags_names", "")).split(",") if name]
    later = ",".join(map(str, range(1, data_chunks)))
    simulation.apply_change(MapChange(pools={pool_id: {
        **pool, "flags_names": ",".join([*flags, "ec_optimizations"]),
        "nonprimary_shards": f"{{{later}}}", "stripe_width": chunk * data_chunks}}))
    positions = cluster.shard_ratios.positions
    _change(simulation, partial(positions.update, {pool_id: ratios}))


def _change(simulation: Simulation, set_ratios: Callable[[], None]) -> None:
    """Sets ratios, and gives all shards the bytes that they take by them."""
    cluster = simulation.cluster
    shards = _shards(cluster)
    for pool_id, osd, position, shard in shards:
        cluster.store(pool_id, osd, NOTHING.minus(shard), position)
    cluster.pool_usage.begin()
    set_ratios()
    for pool_id, osd, position, shard in shards:
        cluster.store(pool_id, osd, shard, position)
    cluster.invalidate_sums()


def _shards(cluster: Cluster) -> List[_Shard]:
    """Returns all shards on OSDs, and all partial ones."""
    found: List[_Shard] = []
    for pg in cluster.pgs.values():
        account_copied(cluster, pg)
        found += [(pg.pool_id, osd, position, pg.shard)
                  for position, osd in enumerate(pg.held) if osd != NONE]
        found += [(pg.pool_id, osd, position, shard)
                  for (position, osd), shard in pg.strays.items()]
        found += [(pg.pool_id, transfer.target, position, transfer.accounted)
                  for (position, _), transfer in pg.transfers.items()]
    return found
