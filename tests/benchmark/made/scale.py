"""A large made cluster as one reading."""
from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate
from typing import Any, Dict, List

from tests.support.clusters.crush_maps import crush_map
from tests.support.rules import HOST_RULE
from tests.support.units import GIB, TIB

from equilibrium_mgr.snapshot.model import PgRecord, Reading

SHARDS_PER_OSD = 100
_SIZE = 3                # replicas
_PER_HOST = 20
_PG_GIB = 70             # mean bytes of a PG with so many shards per OSD: devices are 57 % full
_DEVICE_TIB = (8, 12, 16)


def large_reading(osds: int, pools: int, seed: int = 1, pgs: int = 0) -> Reading:
    """A cluster of replicated pools on hosts of 20 OSDs, placed by device size.

    `pgs` is the number of PGs of all pools; 0 for so many that an OSD has 100 shards. Whatever it
    is, the devices are equally full.
    """
    rng = random.Random(seed)
    sizes = [rng.choice(_DEVICE_TIB) * TIB for _ in range(osds)]
    up, records = _place(rng, sizes, pools, pgs or -(-osds * SHARDS_PER_OSD // _SIZE))
    used = [10 * GIB] * osds
    for pgid, members in up.items():
        for osd in members:
            used[osd] += records[pgid].num_bytes
    numbers = range(osds)
    tree = {f"host h{first // _PER_HOST}": numbers[first:first + _PER_HOST]
            for first in range(0, osds, _PER_HOST)}
    weights = {osd: size // TIB for osd, size in enumerate(sizes)}
    crush = crush_map({"root default": tree}, {0: HOST_RULE}, weights=weights)
    pg_num = len(up) // pools
    osd_map = {
        "epoch": 5,
        "crush_version": 1,
        "require_min_compat_client": "luminous",
        "osds": [{"osd": osd, "up": 1, "in": 1, "weight": 1.0, "state": ["exists", "up"]}
                 for osd in numbers],
        "pools": [{"pool": pool, "pool_name": f"pool{pool}", "type": 1, "size": _SIZE,
                   "crush_rule": 0, "pg_num": pg_num} for pool in range(1, pools + 1)],
        "pg_upmap_items": []}
    stats = [{"osd": osd, "statfs": {"total": sizes[osd], "available": sizes[osd] - used[osd]}}
             for osd in numbers]
    return Reading(taken_at=0.0, osd_map=osd_map, crush=crush, up=up, records=records,
                   osd_stats=stats, pool_stats=[], pg_status={})


def _place(rng: random.Random, sizes: List[int], pools: int, pgs: int) -> Any:
    """(pgid → up set, pgid → statistics); hosts of a PG differ."""
    summed = list(accumulate(sizes))
    pg_num = max(1, -(-pgs // pools))
    mean_gib = _PG_GIB * len(sizes) * SHARDS_PER_OSD / (_SIZE * pg_num * pools)
    up: Dict[str, List[int]] = {}
    records: Dict[str, PgRecord] = {}
    for pool in range(1, pools + 1):
        for ps in range(pg_num):
            members: List[int] = []
            while len(members) < _SIZE:
                osd = bisect(summed, rng.random() * summed[-1])
                if osd // _PER_HOST not in [other // _PER_HOST for other in members]:
                    members.append(osd)
            pgid = f"{pool}.{ps:x}"
            up[pgid] = members
            records[pgid] = PgRecord(int(rng.gauss(mean_gib, 2) * GIB), 50_000, 0, "active+clean",
                                     1.0, 5)
    return up, records
