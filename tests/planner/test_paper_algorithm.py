"""The search on hand-made clusters, and against the paper's algorithm done without shortcuts."""
from __future__ import annotations

from typing import Sequence

import pytest
from builders import GIB, OSD_RULE, Cluster, hosts
from paper import Placement, of_class, paper_moves, steps
from random_clusters import random_cluster

from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan


def single_copies(*gib_by_osd: Sequence[int]) -> Cluster:
    """A pool of size 1 on OSDs of 100 GiB: what PGs, in GiB, each OSD holds."""
    cluster = Cluster(hosts(1, len(gib_by_osd)), {0: OSD_RULE}).pool(1, size=1)
    ps = 0
    for osd, gibs in enumerate(gib_by_osd):
        for gib in gibs:
            cluster.pg("1.%x" % ps, [osd], num_bytes=gib * GIB)
            ps += 1
    return cluster


def planned(cluster: Cluster, **options: object) -> list:
    return steps(make_plan(cluster.snapshot(), PlanOptions(**options)).moves)  # type: ignore


def test_fullest_first_largest_shard_first_to_the_emptiest() -> None:
    cluster = single_copies([20, 10, 5, 1], [8, 8], [4], [2])
    assert planned(cluster) == [("1.0", 0, 3), ("1.1", 0, 2)]


def test_shard_that_would_raise_the_variance_is_passed_over() -> None:
    """60 GiB would only make the other OSD the fullest; the small shard helps."""
    assert planned(single_copies([60, 3], [10])) == [("1.1", 0, 1)]


def test_count_condition_holds_on_both_ends() -> None:
    """Every OSD has its ideal two shards, so bytes alone move nothing."""
    assert planned(single_copies([20, 20], [1, 1])) == []


def test_ideal_count_follows_the_weights() -> None:
    """osd.1 has three times the weight: three of four PGs belong there."""
    cluster = single_copies([20, 20], [1, 1])
    for bucket in cluster.crush["buckets"]:
        for item in bucket["items"]:
            if item["id"] == 1:
                item["weight"] *= 3
    assert planned(cluster) == [("1.0", 0, 1)]


def test_reweight_counts_as_weight() -> None:
    cluster = single_copies([20, 20], [1, 1]).osd(0, weight=0.3)
    assert planned(cluster) == [("1.0", 0, 1)]


def test_emptiest_legal_target() -> None:
    """osd.5 is emptiest, but its host holds the other copy already."""
    cluster = Cluster(hosts(3, 2)).pool(1, size=2)
    for ps in range(4):
        cluster.pg("1.%x" % ps, [0, 4], num_bytes=8 * GIB)
    cluster.osd(2, used=5 * GIB).osd(3, used=3 * GIB).osd(1, used=9 * GIB).osd(5, used=0)
    assert planned(cluster)[0] == ("1.0", 0, 3)


def test_osd_zero_is_a_target() -> None:
    assert planned(single_copies([], [10, 9])) == [("1.0", 1, 0)]


def test_only_k_fullest_osds_are_tried() -> None:
    """The fullest OSD has its ideal count; only the second fullest can give."""
    cluster = single_copies([50, 30], [10, 10, 10], [1])
    assert planned(cluster, max_source_osds=1) == []
    assert planned(cluster, max_source_osds=2) == [("1.2", 1, 2)]


def test_stuck_class_does_not_end_the_others() -> None:
    rules = {0: "take default~hdd; choose firstn 0 osd; emit",
             1: "take default~ssd; choose firstn 0 osd; emit"}
    cluster = Cluster(hosts(1, 4), rules, classes={2: "ssd", 3: "ssd"})
    cluster.pool(1, size=1, rule=0).pool(2, size=1, rule=1)
    cluster.pg("1.0", [0], num_bytes=50 * GIB)           # nowhere to go by variance
    for ps in range(4):
        cluster.pg("2.%x" % ps, [2], num_bytes=5 * GIB)
    assert planned(cluster) == [("2.0", 2, 3), ("2.1", 2, 3)]


@pytest.mark.parametrize("fields", [
    {"state": ["exists"], "up": 0}, {"in": 0, "weight": 0.0}, {"weight": 0.0},
    {"state": ["exists", "destroyed"], "up": 0}])
def test_osds_that_cannot_take_are_no_targets(fields: dict) -> None:
    cluster = single_copies([20, 10, 5, 1], [8, 8], [4], [2]).osd(3, **fields)
    assert {target for _, _, target in planned(cluster)} == {2}


def test_osd_without_statistics_is_neither_source_nor_target() -> None:
    cluster = single_copies([20, 10, 5, 1], [8, 8], [4], [2], [9, 9, 9, 9])
    cluster.without_statistics = [3, 4]
    moves = planned(cluster)
    assert moves and not {o for _, s, t in moves for o in (s, t)} & {3, 4}


def test_fill_limit_is_not_passed() -> None:
    cluster = single_copies([70, 10, 6], [50])
    assert planned(cluster, fill_limit=0.55) == []
    assert planned(cluster, fill_limit=0.57) == [("1.2", 0, 1)]


def test_target_state_counts_not_the_present() -> None:
    """Its backfill has filled osd.1 in the target state already: nothing more goes there."""
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1)
    cluster.pg("1.0", [1], num_bytes=20 * GIB, acting=[0]).pg("1.1", [0], num_bytes=20 * GIB)
    assert planned(cluster) == []


@pytest.mark.parametrize("seed", range(12))
def test_same_moves_as_the_paper(seed: int) -> None:
    snapshot = random_cluster(seed).snapshot()
    found = of_class(snapshot, steps(make_plan(snapshot).moves))
    for device_class in ("hdd", "ssd"):
        assert found.get(device_class, []) == paper_moves(snapshot, device_class)


@pytest.mark.parametrize("seed", range(20, 30))
def test_variance_falls_with_every_move(seed: int) -> None:
    snapshot = random_cluster(seed, hybrid=seed % 2 == 0).snapshot()
    moves = steps(make_plan(snapshot).moves)
    assert moves
    for number, (pgid, source, target) in enumerate(moves):
        before, after = Placement(snapshot, moves[:number]), Placement(snapshot,
                                                                       moves[:number + 1])
        device_class = snapshot.osds[source].device_class
        assert device_class == snapshot.osds[target].device_class
        assert after.variance(device_class) < before.variance(device_class)
        assert after.utilization(target) <= snapshot.backfillfull_ratio
        pg = snapshot.pgs[pgid]
        rule = snapshot.pools[pg.pool].rule
        assert rule is not None and rule.breaks(after.up[pgid]) is None
        assert rule.monitor_refuses(after.up[pgid]) is None


@pytest.mark.parametrize("seed", range(40, 46))
def test_counts_come_no_further_from_their_ideal(seed: int) -> None:
    snapshot = random_cluster(seed).snapshot()
    moves = steps(make_plan(snapshot).moves)
    for number, (pgid, source, target) in enumerate(moves):
        before, after = Placement(snapshot, moves[:number]), Placement(snapshot,
                                                                       moves[:number + 1])
        pool = snapshot.pgs[pgid].pool
        for osd in (source, target):
            ideal = before.ideal(pool, 0, osd)
            assert (abs(after.count(pool, 0, osd) - ideal)
                    <= abs(before.count(pool, 0, osd) - ideal) + 1e-9)
