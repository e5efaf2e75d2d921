"""Plans beside true optima: never better, and on both axes not much worse."""
from __future__ import annotations

from functools import cache
from typing import Dict, List, Tuple

import pytest
from tests.optimum.clusters import KINDS, optimum_cluster
from tests.optimum.comparison import PartResult, compared
from tests.optimum.report import distances, table, worst
from tests.support.plan_legality import assert_legal

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan

pytestmark = pytest.mark.full

CLUSTERS = 2 * KINDS


#: Aim → the mean and the worst distance that its plans may have, for each axis of report.py.
LIMITS: Dict[str, List[Tuple[float, float]]] = {
    "space": [(0.48, 2.3), (4.4, 20.0)],
    "even": [(0.34, 2.3)]}


@cache
def results() -> List[PartResult]:
    return [one for seed in range(CLUSTERS) for one in compared(seed, sorted(LIMITS))]


def test_no_plan_is_better_than_the_optimum_and_no_bound_is_passed() -> None:
    assert [(one.seed, one.contradiction) for one in results() if one.contradiction] == []
    assert all(one.proven for one in results())


@pytest.mark.parametrize("aim", sorted(LIMITS))
def test_plans_are_near_the_optima(aim: str) -> None:
    mine = [one for one in results() if one.aim == aim]
    print("\n".join(table(mine) + worst(mine, 3)))
    for distance, (mean, most) in zip(distances(mine), LIMITS[aim]):
        assert distance.mean <= mean and distance.at(1.0) <= most, (distance.name, distance.unit)


@pytest.mark.parametrize("seed", range(KINDS))
def test_plans_are_legal(seed: int) -> None:
    _, cluster = optimum_cluster(seed)
    snapshot = cluster.snapshot()
    for aim in ("space", "even"):
        options = PlanOptions(aim=aim)
        assert_legal(snapshot, make_plan(snapshot, options), options)
