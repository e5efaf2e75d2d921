"""Several searches where they are cheap, and the best of them."""
from __future__ import annotations

from typing import Any, List

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.few import few

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner import multi_start
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.objective import AIM_WEIGHTS, Weights
from equilibrium_mgr.planner.multi_start import score_placement
from equilibrium_mgr.planner.planner import make_plan
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


def test_ended_in_a_later_attempt_the_plan_is_the_best_before(mocker: Any) -> None:
    """Time is up as soon as the second search begins: what the first one found stands."""
    seen = values_of(mocker)
    with giving_way(lambda _moves: len(seen) < 1):
        plan = make_plan(snapshot_of("demo"))
    assert plan.stop_reason == "the time limit is reached" and len(seen) == 2
    assert plan_of_cluster("demo").stop_reason == "converged"
    mocker.patch.dict(AIM_WEIGHTS, {"space": AIM_WEIGHTS["space"][:1]})
    assert plan.changes == make_plan(snapshot_of("demo")).changes
