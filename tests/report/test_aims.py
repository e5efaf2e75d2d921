"""The trade between the aims as `eval <plan>` shows it, and bounds beside the highest values."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import pytest
from tests.support.clusters.random_clusters import random_cluster

from equilibrium_mgr.plan.aim_comparison import AimFigures, AimComparison, figures_of
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.store import PlanHead
from equilibrium_mgr.plan.usage import snapshot_usage
from equilibrium_mgr.plan_service.plan_queue import PlanProgress
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.cluster.evaluation import class_table, evaluate_cluster, evaluate_plan
from equilibrium_mgr.report.plan_list import PlansNow, list_plans
from equilibrium_mgr.report.plans import dump_plan, show_plan

PLAN: Plan = make_plan(random_cluster(1).snapshot())._replace(
    aim="even", bounds={"hdd": 0.1234})
SPACE = AimFigures("ready", {"hdd": 0.75, "ssd": 0.5}, 3 << 30, 2 << 30, 17, 100, "converged")
HEAD = PlanHead("p", 0.0, 100, 1, 1, 1, "converged", 1, 1, "even")


def comparison(space: AimFigures = SPACE, least: AimFigures = SPACE,
               known: bool = True) -> AimComparison:
    made = AimComparison(HEAD, PlanOptions(), known)
    made.set_figures("space", space)
    made.set_figures("least-motion", least)
    return made


def aims_lines(compared: Optional[AimComparison]) -> List[str]:
    """The aims' table of `eval <plan>` and the lines under it."""
    parts = evaluate_plan("p", PLAN, compared).plain.split("\n\n")
    return next(part for part in parts if part.startswith("AIM")).split("\n")


def test_one_line_an_aim_in_their_order() -> None:
    lines = aims_lines(comparison())
    assert lines[0].split() == ["AIM", "MAX", "hdd", "MAX", "ssd", "GAINED", "BYTES", "MOVES"]
    assert lines[1].split() == ["space", "0.7500", "0.5000", "3", "GiB", "2", "GiB", "17"]
    assert lines[2].split()[:3] == ["even", "(this", "plan)"]
    assert lines[2].split()[3] == f"{PLAN.after.classes['hdd'].max:.4f}"
    assert lines[2].split()[-1] == str(len(PLAN.moves))
    assert lines[3].split()[0] == "least-motion" and len(lines) == 4


def test_json_of_the_aims() -> None:
    data: Dict[str, Any] = json.loads(json.dumps(evaluate_plan("p", PLAN, comparison()).data))
    assert set(data["aims"]) == {"space", "even", "least-motion"}
    assert data["options_known"] is True and data["aim"] == "even"
    own = data["aims"]["even"]
    assert (own["state"], own["moves"], own["bytes"], own["gained_bytes"]) == (
        "ready", data["moves"], data["bytes"], data["gained_bytes"])
    assert own["classes"] == {n: c["max"] for n, c in data["after"]["classes"].items()}
    assert data["aims"]["space"]["classes"] == {"hdd": 0.75, "ssd": 0.5}
    assert data["aims"]["space"]["gained_bytes"] == 3 << 30


def test_aims_that_are_being_planned() -> None:
    planning = AimFigures("planning")
    lines = aims_lines(comparison(planning, planning))
    assert [line.split()[0] for line in lines[1:2]] == ["even"]
    assert lines[2:] == ["space, least-motion: being planned; ask again"]
    data = evaluate_plan("p", PLAN, comparison(planning)).data["aims"]["space"]
    assert data["state"] == "planning" and data["moves"] is None and data["classes"] is None


def test_aim_that_could_not_be_planned() -> None:
    failed = AimFigures("failed", failure="KeyError: 'x'")
    assert aims_lines(comparison(least=failed))[-1] == (
        "least-motion: could not be planned (KeyError: 'x'); ask again")
    assert evaluate_plan("p", PLAN, comparison(failed)).data["aims"]["space"]["state"] == "failed"


def test_plan_of_an_older_map_and_lost_limits_are_told() -> None:
    assert PLAN.epoch == 100
    lines = aims_lines(comparison(SPACE._replace(osdmap_epoch=107), known=False))
    assert "the plan was made at osdmap epoch 100, the others at 107" in lines
    assert "present settings" in lines[-1]
    assert not any("107" in line or "settings" in line for line in aims_lines(comparison()))


def test_plan_that_was_removed_meanwhile_stands_alone() -> None:
    data = evaluate_plan("p", PLAN).data
    assert set(data["aims"]) == {"even"} and data["options_known"] is False
    assert len(aims_lines(None)) == 2


def test_figures_of_a_plan() -> None:
    figures = figures_of(PLAN)
    assert figures.classes == {name: usage.max for name, usage in PLAN.after.classes.items()}
    assert (figures.moves, figures.bytes, figures.gained_bytes) == (
        len(PLAN.moves), PLAN.bytes, PLAN.gained_bytes)


def test_bound_beside_the_highest_utilization() -> None:
    usage = snapshot_usage(random_cluster(1).snapshot())
    header, hdd, ssd = class_table(usage.classes, {"hdd": 0.1234}).split("\n")
    titles = header.split()
    assert titles[4:7] == ["MAX", "BOUND", "MIN"]
    end = header.index("BOUND") + len("BOUND")
    assert hdd[:end].endswith(" 0.1234") and ssd[:end].endswith("     ")
    data = evaluate_cluster(usage, {"hdd": 0.1234}, 100, 3.0).data["classes"]
    assert (data["hdd"]["bound"], data["ssd"]["bound"]) == (0.1234, None)


def test_bound_of_a_plan_before_and_after() -> None:
    answer = evaluate_plan("p", PLAN)
    for when in ("before", "after"):
        classes = answer.data[when]["classes"]
        assert (classes["hdd"]["bound"], classes["ssd"]["bound"]) == (0.1234, None)
    assert answer.plain.count("0.1234") == 1 and "BOUND" in answer.plain


def test_figures_of_a_plan_are_those_of_its_epoch() -> None:
    assert "made at osdmap" not in evaluate_plan("p", PLAN, epoch=PLAN.epoch).plain
    assert "\nmade at osdmap epoch 100, now it is 107: what stands before the arrows" in (
        evaluate_plan("p", PLAN, epoch=107).plain)


def test_aim_in_what_is_shown_dumped_and_listed() -> None:
    shown, dumped = show_plan("p", PLAN), dump_plan("p", PLAN)
    assert shown.plain.startswith("# plan p, aim even, made at osdmap epoch 100: ")
    assert dumped.plain.startswith("# plan p, aim even,")
    assert shown.data["aim"] == dumped.data["aim"] == "even"
    assert dumped.data["bounds"] == {"hdd": 0.1234}
    in_progress = {"q": PlanProgress("q", 0.0, 5, "least-motion"),
                   "p": PlanProgress("p", 0.0, 5, "space")}
    listed = list_plans([HEAD], PlansNow(in_progress))
    assert [(p["plan"], p["aim"]) for p in listed.data["plans"]] == [
        ("p", "even"), ("q", "least-motion")]      # the figures of p are still the old plan's
    assert [line.split()[:2] for line in listed.plain.split("\n")] == [
        ["STATE", "AIM"], ["planning", "even"], ["planning", "least-motion"]]


@pytest.mark.parametrize("aim", ["space", "later"])
def test_plan_without_a_comparison_of_any_aim(aim: str) -> None:
    """A newer release may have made it."""
    assert set(evaluate_plan("p", PLAN._replace(aim=aim)).data["aims"]) == {aim}
