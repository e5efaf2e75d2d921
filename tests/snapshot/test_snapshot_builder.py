"""A builder that remembers verdicts gives what one without a memory gives.

But for sizes: while shards move, what was known of them before is kept as far as it can be.
"""
from __future__ import annotations

import random
from collections import Counter
from typing import Any, Dict

import pytest
from tests.support.clusters.random_clusters import HDDS, random_cluster
from tests.support.clusters.unit_cluster import Cluster

from equilibrium_mgr.snapshot.builder import SnapshotBuilder, build_snapshot
from equilibrium_mgr.snapshot.model import Snapshot


def essence(snapshot: Snapshot) -> Dict[str, Any]:
    """Everything but the objects that have no equality of their own, and where the shards of PGs
    on their way were before, which a builder knows only if it has seen it."""
    pools = {pool_id: pool._replace(rule=None) for pool_id, pool in snapshot.pools.items()}
    pgs = {pgid: pg._replace(holders=(), doubtful_holders=False, shard_bytes=0)
           for pgid, pg in snapshot.pgs.items()}
    osds = {osd.id: osd._replace(inbound_bytes=0, outbound_bytes=0, base_bytes=0,
                                undeleted_bytes=0, residual_bytes=0, least_residual_bytes=0)
            for osd in snapshot.osds.values()}
    return dict(snapshot._asdict(), crush=None, pools=pools, pgs=pgs, osds=osds, pool_states=None,
                rules={p.id: p.rule is None for p in snapshot.pools.values()})


def shard_bytes_by_osd(snapshot: Snapshot) -> Counter[int]:
    found: Counter[int] = Counter()
    for pg in snapshot.pgs.values():
        found.update(dict.fromkeys(pg.acting, pg.shard_bytes))
    return found


def change_something(rng: random.Random, cluster: Cluster) -> None:
    pgid = rng.choice(sorted(cluster.up))
    osd = rng.choice(HDDS)
    what = rng.randrange(9)
    if what == 0:
        cluster.up[pgid] = cluster.up[pgid][:-1] + [osd]
    elif what == 1:
        cluster.items[pgid] = [(osd, cluster.up[pgid][0])]
    elif what == 2:
        cluster.items.pop(pgid, None)
    elif what == 3:
        cluster.osd(osd, weight=rng.choice((0.0, 1.0)))
    elif what == 4:
        cluster.extra["pg_upmap"] = [{"pgid": pgid, "osds": cluster.up[pgid]}]
    elif what == 5:
        cluster.records[pgid] = cluster.records[pgid]._replace(
            state=rng.choice(("unknown", "active+clean")), num_bytes=rng.randrange(1 << 32))
    elif what == 6:
        pool = cluster.pools[1]
        pool["crush_rule"] = rng.choice((0, 2, 77))
    elif what == 7:
        cluster.pools[3]["size"] = rng.choice((2, 3))
    else:
        change_crush(rng, cluster)
    cluster.epoch += 1


def change_crush(rng: random.Random, cluster: Cluster) -> None:
    item = rng.choice([i for b in cluster.crush["buckets"] for i in b["items"] if i["id"] >= 0])
    item["weight"] = rng.choice((0, 0x10000))
    cluster.extra["crush_version"] = cluster.extra.get("crush_version", 5) + 1


@pytest.mark.parametrize("seed", range(12))
def test_memory_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    cluster, builder = random_cluster(seed, hybrid=True), SnapshotBuilder()
    skipped = set()
    for _ in range(25):
        reading = cluster.reading()
        remembered = builder.build(reading)
        fresh = build_snapshot(reading)
        assert essence(remembered) == essence(fresh)
        sizes = shard_bytes_by_osd(fresh)
        assert shard_bytes_by_osd(remembered) == pytest.approx(
            sizes, rel=0.1, abs=0.1 * sum(sizes.values()) / len(sizes))
        skipped |= set(remembered.skipped)
        change_something(rng, cluster)
    assert len(skipped) >= 2
