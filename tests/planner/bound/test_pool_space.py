"""The bound on each pool's free space: closed forms, maximum flows, random placements."""
from __future__ import annotations

from typing import Dict

import pytest
from tests.planner.bound.test_bound_certificates import Rows, skewed_cluster
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.usage import shard_weight
from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds
from equilibrium_mgr.planner.bound.pool_space import FAILURE_DOMAIN, PoolSpaceBound
from equilibrium_mgr.snapshot.model import Snapshot


def bounds_of(cluster: Cluster) -> Dict[int, PoolSpaceBound]:
    return dict(cluster_bounds(cluster.snapshot()).pool_space)


def gib(bound: PoolSpaceBound) -> float:
    return bound.free_bytes / GIB


def own_osd(count: int) -> Cluster:
    """Pool 1 of single copies on any OSD, pool 2 on osd.0 alone."""
    rules = {0: OSD_RULE, 1: "take h0; choose firstn 0 osd; emit"}
    return Cluster(hosts(count), rules).pool(1, size=1).pool(2, size=1, rule=1)


# -- closed forms ------------------------------------------------------------------------------


def test_a_giant_host_takes_one_copy_and_no_more() -> None:
    """The second copy has to be on the three small hosts, and fills them."""
    cluster = Cluster(hosts(4)).osd(3, size=900 * GIB).pool(1, size=2)
    fill(cluster, 1, [[ps % 3, 3] for ps in range(60)])
    bound = bounds_of(cluster)[1]
    assert gib(bound) == pytest.approx(3 * 95 - 60)
    assert (bound.kind, bound.osds) == (FAILURE_DOMAIN, frozenset({0, 1, 2}))


def test_an_osd_above_full_ratio_may_stay_there() -> None:
    """Nothing of the pool has to be on it, and what is there need not be elsewhere."""
    bounds = bounds_of(fill(fill(own_osd(3), 1, [[1]] * 10), 2, [[0]] * 99))
    assert gib(bounds[1]) == pytest.approx(2 * 95 - 10, rel=0.1)
    assert bounds[2].free_bytes <= 1


def test_pg_whose_shards_share_an_osd_does_not_make_its_placement_impossible() -> None:
    """CRUSH gives one OSD several positions where an inner choose step finds too few OSDs."""
    cluster = Cluster(hosts(2, 3), {0: "take default; choose indep 2 host;"
                                       "choose indep 2 osd; emit"}).pool(1, size=4, k=2)
    fill(cluster.osd(4, up=0).osd(5, up=0), 1, [[0, 1, 3, 3]] * 8)
    assert gib(bounds_of(cluster)[1]) >= 2 * (95 - 16) / 2 - 1


def test_pools_whose_pgs_are_not_all_known_share_no_growth() -> None:
    """Two PGs of a map with four: half of what clients write comes to them."""
    cluster = Cluster(hosts(4)).pool(1, size=2).pool(2, size=2, pg_num=4)
    fill(fill(cluster, 1, [[0, 1]] * 40), 2, [[2, 3]] * 2)
    bounds = bounds_of(cluster)
    assert bounds[2].free_bytes == pytest.approx(2 * bounds[1].free_bytes)


def test_pool_whose_rule_is_not_understood_has_none() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=3, rule=99)
    assert bounds_of(fill(cluster, 1, [[0, 1, 2]])) == {}


def test_pgs_of_a_pool_that_are_not_alike_heavy_take_no_more_than_their_parts() -> None:
    """Of three PGs one holds half of what clients write, and its OSD has half of the room."""
    cluster = Cluster(hosts(3), {0: OSD_RULE}).osd(1, size=200 * GIB).pool(1, size=1)
    bound = bounds_of(fill(cluster, 1, [[0], [1], [2]], gib=0))[1]
    assert gib(bound) == pytest.approx(4 * 95, rel=0.001) and gib(bound) >= 4 * 95


def test_rounded_room_is_no_less_than_there_is() -> None:
    """The giant host, which the pool cannot use, makes the steps coarse."""
    cluster = own_osd(4).osd(3, size=900 * GIB)
    bounds = bounds_of(fill(fill(cluster, 1, [[3]], gib=0), 2, [[0]]))
    assert 94 <= gib(bounds[2]) < 94 * 1.000001


def test_rounded_growth_is_no_more_than_there_is() -> None:
    """A PG of 128 misses a shard: 255 shards grow, which is no ratio of six digits."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    ups = [[0], *[[0, 1], [1, 2], [2, 3]] * 42, [2, 3]]
    bound = bounds_of(fill(cluster, 1, ups, gib=0))[1]
    exact = 4 * 95 * GIB * 128 / 255
    assert exact <= bound.free_bytes < exact * 1.00001


def test_shards_outside_of_their_rule_prove_nothing() -> None:
    """A legal placement has them elsewhere: they neither keep an OSD full nor take room from it."""
    cluster = fill(fill(own_osd(3), 1, [[2]] * 8), 2, [[1]] * 40)
    bounds = cluster_bounds(cluster.snapshot())
    (cut,) = [bounds.cuts[osds] for osds in bounds.at_bound.values()]
    assert (cut.osds, cut.can_leave_bytes, cut.least_utilization) == ((1,), 40 * GIB, 0.0)
    assert gib(bounds.pool_space[1]) >= 3 * 95 - 8 - 40


# -- against flows -----------------------------------------------------------------------------


def grown(snapshot: Snapshot, pool_id: int, client_bytes: float) -> Snapshot:
    """The cluster after clients have written so much to a pool."""
    pool, pgs, osds = snapshot.pools[pool_id], dict(snapshot.pgs), dict(snapshot.osds)
    each = client_bytes / (pool.pg_num * pool.data_shards)
    for pgid, pg in snapshot.pgs.items():
        if pg.pool == pool_id:
            added = int(each * shard_weight(pool, pgid))
            pgs[pgid] = pg._replace(shard_bytes=pg.shard_bytes + added)
            for osd in pg.up:
                osds[osd] = osds[osd]._replace(used_bytes=osds[osd].used_bytes + added)
    return snapshot._replace(pgs=pgs, osds=osds)


def fits(before: Snapshot, after: Snapshot) -> bool:
    """True if OSDs up to full_ratio can hold everything, if shards can be split."""
    rows = Rows(after)
    capacities: Dict[int, int] = {}
    for osd, size in rows.size.items():
        most = max(int(size * before.full_ratio), before.osds[osd].target_bytes)
        capacities[osd] = max(0, most - rows.fixed[osd])
    needed = sum(rows.demand.values())
    return rows.flow(capacities) >= needed - max(100, needed // 10 ** 9)


@pytest.mark.parametrize("seed", few(range(25), 8))
def test_split_shards_fit_up_to_the_bound_and_no_further(seed: int) -> None:
    cluster = skewed_cluster(seed) if seed % 5 else random_cluster(seed, hybrid=True)
    for osd in cluster.osds:
        cluster.osd(osd, size=max(cluster.sizes[osd], cluster.used_bytes(osd) * 10 // 9))
    snapshot = cluster.snapshot()
    bounds = cluster_bounds(snapshot).pool_space
    assert set(bounds) == set(snapshot.pools)
    for pool, bound in bounds.items():
        assert fits(snapshot, grown(snapshot, pool, bound.free_bytes * (1 - 1e-6)))
        assert not fits(snapshot, grown(snapshot, pool, bound.free_bytes * (1 + 1e-4)))
