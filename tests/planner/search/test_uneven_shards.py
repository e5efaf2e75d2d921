"""Plans where the shards of a PG differ in size by position."""
from __future__ import annotations

from typing import Dict

import pytest
from tests.snapshot.test_position_ratios import optimized_cluster, settle
from tests.support.clusters.unit_cluster import OSD_BYTES, Cluster, change_of

from equilibrium_mgr.observation.cluster_view import count_placement
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.plan.placement import placement


def utilizations(cluster: Cluster) -> Dict[int, float]:
    return {osd: count / OSD_BYTES for osd, count in cluster.used.items()}


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
    assert usage.max == pytest.approx(max(after.values()), abs=0.003)
    assert usage.min == pytest.approx(min(after.values()), abs=0.003)
    assert usage.max - usage.min < 0.25 * (max(before.values()) - min(before.values()))
    assert usage.max >= max(plan.bounds.values()) - 1e-6


def test_moves_have_the_bytes_of_their_positions() -> None:
    snapshot = optimized_cluster().snapshot()
    plan = make_plan(snapshot, PlanOptions(aim="even"))
    assert plan.moves
    for change in plan.changes:
        pg = snapshot.pgs[change.pgid]
        for position, (source, target) in enumerate(zip(change.up_before, change.up_after)):
            if source != target:
                wanted = snapshot.pools[1].position_ratios[position] * pg.shard_bytes
                assert change.bytes_on(target) == pytest.approx(wanted, abs=1)
                assert change.bytes_on(source) == change.bytes_on(target)
    assert {move.bytes > 0 for move in plan.moves} == {True}   # nothing is gained by the others


def test_an_osd_of_shards_without_data_limits_nothing() -> None:
    """Neither now nor when a move brings it such a shard, or takes its last one."""
    cluster = optimized_cluster(osds=14)
    for pgid, up in cluster.up.items():   # osd.13 is at position 1 or nowhere
        cluster.up[pgid] = [osd for osd in up if osd != 13]
        cluster.up[pgid] += [osd for osd in range(13) if osd not in up][:6 - len(cluster.up[pgid])]
    pgid = next(iter(cluster.up))
    before = list(cluster.up[pgid])
    cluster.up[pgid] = [before[0], 13, *before[2:]]
    settle(cluster)
    snapshot = cluster.snapshot()
    assert snapshot.pools[1].position_ratios[1] == 0.0
    counts = count_placement(snapshot)
    assert 13 not in counts.soon[1]
    change = change_of(pgid, cluster.up[pgid], before)
    placed = placement(snapshot)
    for usage in (placed.usage(), placed.after([change]).usage()):
        assert usage.pools["pool1"].limiting_osd != 13 and usage.pools["pool1"].free_bytes > 0
