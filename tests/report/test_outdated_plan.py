"""What `eval` says of a plan that rests on what has changed."""
from __future__ import annotations

from tests.support.clusters.random_clusters import random_cluster
from .looks import evaluated, look_at

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.planner import make_plan

PLAN: Plan = make_plan(random_cluster(1).snapshot())
LOOK = look_at(random_cluster(1).snapshot())


def test_an_outdated_plan_says_so_in_its_first_line() -> None:
    assert "outdated" not in evaluated(PLAN, LOOK).plain
    newer = evaluated(PLAN, LOOK, epoch=107)
    assert "outdated" not in newer.plain
    assert newer.data["is_outdated"] is False
    found = evaluated(PLAN, LOOK, epoch=107, outdated_reason="pool 1 is gone")
    assert found.plain.split("\n")[0].startswith("plan p is outdated (osdmap e100, now e107,")
    assert "elsewhere" not in found.plain   # all of it can be made still
    assert found.data["is_outdated"] is True
    executing = evaluated(PLAN, LOOK, epoch=107, is_executing=True)
    assert executing.plain.startswith("plan p is being executed")
    assert executing.data["is_outdated"] is False
