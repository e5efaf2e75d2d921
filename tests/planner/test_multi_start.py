"""Several searches where they are cheap, and the best of them."""
from __future__ import annotations

from typing import Any, List, Tuple

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.few import few

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner import planner
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.objective import AIM_WEIGHTS
from equilibrium_mgr.planner.planner import make_plan, multi_start_search
from equilibrium_mgr.planner.score import score_placement
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.runtime.time_slice import giving_way


def values_of(mocker: Any) -> List[Tuple[float, PlacementState]]:
    """The score and the placement of every search from now on, in order."""
    seen: List[Tuple[float, PlacementState]] = []

    def noted(placement: PlacementState, *args: Any) -> float:
        seen.append((score_placement(placement, *args), placement))
        return seen[-1][0]
    mocker.patch.object(planner, "score_placement", noted)
    return seen


@pytest.mark.parametrize("name", few(["demo", "uneven", "racks"], 1))
def test_the_most_valuable_attempt_is_taken(name: str, mocker: Any) -> None:
    snapshot, seen = snapshot_of(name), values_of(mocker)
    best, _, finished = multi_start_search(
        snapshot, PlanOptions(), utilization_bounds(snapshot))
    scores = [score for score, _ in seen]
    assert finished and len(set(scores)) > 1
    assert best is seen[scores.index(max(scores))][1]


def test_ended_in_a_later_attempt_the_plan_is_the_best_before(mocker: Any) -> None:
    """Time is up as soon as the second search begins: what the first one found stands."""
    seen = values_of(mocker)
    with giving_way(lambda _moves: len(seen) < 1):
        plan = make_plan(snapshot_of("demo"))
    assert plan.stop_reason == "the time limit is reached" and len(seen) == 2
    assert plan_of_cluster("demo").stop_reason == "converged"
    mocker.patch.dict(AIM_WEIGHTS, {"space": AIM_WEIGHTS["space"][:1]})
    assert plan.changes == make_plan(snapshot_of("demo")).changes
