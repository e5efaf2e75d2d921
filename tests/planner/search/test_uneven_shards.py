"""Plans where the shards of a PG differ in size by position."""
from __future__ import annotations

from typing import List

import pytest
from tests.snapshot.test_position_ratios import optimized_cluster, settle
from tests.support.clusters.unit_cluster import OSD_BYTES, Cluster, change_of

from equilibrium_mgr.observation.cluster_view import count_placement
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.plan.placement import placement


def utilizations(cluster: Cluster) -> List[float]:
    return sorted(count / OSD_BYTES for count in cluster.used.values())


@pytest.mark.parametrize("seed", range(4))
def test_osds_become_equally_full(seed: int) -> None:
    """And as full as the plan says; the bound is below that."""
    cluster = optimized_cluster(seed=seed)
    snapshot = cluster.snapshot()
    plan = make_plan(snapshot, PlanOptions(aim="even"))
    before = utilizations(cluster)
    for change in plan.changes:
        cluster.up[change.pgid] = list(change.up_after)
    settle(cluster)
    after = utilizations(cluster)
    (usage,) = plan.after.classes.values()
    (bound,) = plan.bounds.values()
    assert (usage.max, usage.min) == pytest.approx((after[-1], after[0]), abs=0.003)
    assert usage.max - usage.min < 0.25 * (before[-1] - before[0])
    assert usage.max >= bound - 1e-6


def test_moves_have_the_bytes_of_their_positions() -> None:
    snapshot = optimized_cluster().snapshot()
    plan = make_plan(snapshot, PlanOptions(aim="even"))
    assert plan.moves
    ratios = snapshot.pools[1].position_ratios
    for change in plan.changes:
        pg = snapshot.pgs[change.pgid]
        for source, target, ratio in zip(change.up_before, change.up_after, ratios):
            if source != target:
                wanted = ratio * pg.shard_bytes
                assert change.bytes_on(target) == pytest.approx(wanted, abs=1)
                assert change.bytes_on(source) == change.bytes_on(target)
    assert {move.bytes > 0 for move in plan.moves} == {True}   # nothing is gained by the others


def test_an_osd_of_shards_without_data_limits_nothing() -> None:
    """Neither now nor when a move brings it such a shard, or takes its last one."""
    cluster = optimized_cluster(osds=14)
    for pgid, up in cluster.up.items():   # osd.13 is at position 1 of one PG
        if 13 in up:
            up[up.index(13)] = min(set(range(13)).difference(up))
    before = list(cluster.up["1.0"])
    cluster.up["1.0"][1] = 13
    settle(cluster)
    snapshot = cluster.snapshot()
    assert snapshot.pools[1].position_ratios[1] == 0.0
    assert 13 not in count_placement(snapshot).soon[1]
    placed = placement(snapshot)
    for changes in ([], [change_of("1.0", cluster.up["1.0"], before)]):
        space = placed.after(changes).usage().pools["pool1"]
        assert space.limiting_osd != 13 and space.free_bytes > 0
