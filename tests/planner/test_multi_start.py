"""Several searches where they are cheap, and the best of them."""
from __future__ import annotations

from typing import Any, List

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner import multi_start
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.objective import AIM_WEIGHTS, ScoreWeights, Weights
from equilibrium_mgr.planner.multi_start import pool_free_bytes, score_placement
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.state.constraints import OsdSetState
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.runtime.time_slice import giving_way


def values_of(mocker: Any) -> List[float]:
    """The score of every search from now on, in order."""
    seen: List[float] = []

    def noted(*args: Any) -> float:
        seen.append(score_placement(*args))
        return seen[-1]
    mocker.patch.object(multi_start, "score_placement", noted)
    return seen


def best(name: str, max_candidates: int = multi_start.MAX_CANDIDATES) -> PlacementState:
    snapshot = snapshot_of(name)
    found, finished = multi_start.multi_start_search(
        snapshot, PlanOptions(), utilization_bounds(snapshot), max_candidates)
    assert finished
    return found


def used_after(name: str, weights: Weights, mocker: Any) -> List[int]:
    """Used bytes after a single search with these weights."""
    mocker.patch.dict(AIM_WEIGHTS, {"space": (weights,)})
    return best(name).used_bytes


@pytest.mark.parametrize("name", few(["demo", "uneven", "racks"], 1))
def test_the_most_valuable_attempt_is_taken(name: str, mocker: Any) -> None:
    variants = AIM_WEIGHTS["space"]
    seen = values_of(mocker)
    chosen = best(name).used_bytes
    assert len(seen) > 1 and len(set(seen)) > 1
    winner = variants[seen.index(max(seen))]
    assert chosen == used_after(name, winner, mocker)


def test_no_second_attempt_where_the_first_examined_much(mocker: Any) -> None:
    seen = values_of(mocker)
    best("demo", max_candidates=1)
    assert len(seen) == 1


def test_no_second_attempt_where_nothing_is_to_be_done(mocker: Any) -> None:
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(3):
        cluster.pg(f"1.{ps:x}", [ps], num_bytes=GIB)
    seen = values_of(mocker)
    assert not make_plan(cluster.snapshot()).changes and len(seen) == 1


def test_ended_in_a_later_attempt_the_plan_is_the_best_before(mocker: Any) -> None:
    """Time is up as soon as the second search begins: what the first one found stands."""
    seen = values_of(mocker)
    with giving_way(lambda _moves: len(seen) < 1):
        plan = make_plan(snapshot_of("demo"))
    assert plan.stop_reason == "the time limit is reached" and len(seen) == 2
    assert plan_of_cluster("demo").stop_reason == "converged"
    mocker.patch.dict(AIM_WEIGHTS, {"space": AIM_WEIGHTS["space"][:1]})
    assert plan.changes == make_plan(snapshot_of("demo")).changes


def scored(used_gib: List[int], moved: bool = False) -> float:
    """The value of a placement of 1 GiB copies on OSDs of 100 GiB with 4 to share."""
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1)
    numbers = iter(range(100))
    for osd, gib in enumerate(used_gib):
        for _ in range(gib // 10):
            cluster.pg(f"1.{next(numbers):x}", [osd], num_bytes=10 * GIB)
    snapshot = cluster.snapshot()
    bounds = utilization_bounds(snapshot)
    placement = PlacementState(snapshot, PlanOptions())
    sets = [OsdSetState(placement, osd_set, bounds) for osd_set in bounds.sets]
    free = {1: 0.0}
    if moved:
        pg = placement.shards[0][0]
        placement.move(pg, 0, 1)
        placement.move(placement.shards[1][0], 1, 0)
    return score_placement(placement, sets, [0], free, {1: 0.0}, Weights(), ScoreWeights())


def test_a_lower_maximum_scores_higher_and_needless_moves_lower() -> None:
    assert scored([40, 40]) > scored([50, 30]) > scored([60, 20])
    assert scored([40, 40]) > scored([40, 40], moved=True)


def test_free_space_is_what_the_fullest_osd_of_a_pool_leaves() -> None:
    """95 GiB less 50, for 8 PGs of which 5 are there: 9 GiB each, 72 in all."""
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1, pg_num=8)
    for ps in range(8):
        cluster.pg(f"1.{ps:x}", [0 if ps < 5 else 1], num_bytes=10 * GIB)
    placement = PlacementState(cluster.snapshot(), PlanOptions())
    assert pool_free_bytes(placement, [0])[1] == pytest.approx(72 * GIB, rel=0.01)
