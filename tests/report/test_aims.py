"""The trade between the aims as `eval <plan> --aims` shows it, and bounds beside the highest
values."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from tests.support.clusters.random_clusters import random_cluster
from .looks import evaluated, look_at

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan_service.plan_service import AimComparison, AimFigures
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.answer import CommandAnswer

PLAN: Plan = make_plan(random_cluster(1).snapshot())._replace(
    aim="even", bounds={"hdd": 0.1234})
SPACE = AimFigures(
    "ready", {"hdd": 0.75, "ssd": 0.5}, 3 << 30, 9 << 30, 2 << 30, 17, 100, "converged")


def comparison(space: AimFigures = SPACE, least: AimFigures = SPACE) -> AimComparison:
    return AimComparison({"space": space, "least-motion": least}, True)


LOOK = look_at(random_cluster(1).snapshot())


def evaluation_of(compared: Optional[AimComparison], plan: Plan = PLAN) -> CommandAnswer:
    return evaluated(plan, LOOK, with_aims=True, comparison=compared)


def aims_of(compared: Optional[AimComparison], plan: Plan = PLAN) -> Dict[str, Dict[str, Any]]:
    data = json.loads(json.dumps(evaluation_of(compared, plan).data))
    return {figures["aim"]: figures for figures in data["aims"]}


def aims_lines(compared: Optional[AimComparison]) -> List[str]:
    """The aims' table and the lines under it."""
    parts = evaluation_of(compared).plain.split("\n\n")
    return next(part for part in parts if part.startswith("AIM")).split("\n")


def test_aim_that_could_not_be_planned() -> None:
    failed = AimFigures("failed", failure="KeyError: 'x'")
    assert aims_lines(comparison(least=failed))[-1] == (
        "least-motion: could not be planned (KeyError: 'x'); ask again")
    assert aims_of(comparison(failed))["space"]["state"] == "failed"


def test_plan_that_was_removed_meanwhile_stands_alone() -> None:
    assert set(aims_of(None)) == {"even"} and evaluation_of(None).data["options_known"] is False
    assert len(aims_lines(None)) == 2


def test_an_outdated_plan_says_so_in_its_first_line() -> None:
    assert "outdated" not in evaluation_of(None).plain
    newer = evaluated(PLAN, LOOK, epoch=107)
    assert "outdated" not in newer.plain and newer.data["is_outdated"] is False
    found = evaluated(PLAN, LOOK, epoch=107, outdated_reason="pool 1 is gone")
    assert found.plain.split("\n")[0].startswith("plan p is outdated (osdmap e100, now e107,")
    assert "elsewhere" not in found.plain   # all of it can be made still
    assert found.data["is_outdated"] is True
    executing = evaluated(PLAN, LOOK, epoch=107, is_executing=True)
    assert executing.plain.startswith("plan p is being executed")
    assert executing.data["is_outdated"] is False
