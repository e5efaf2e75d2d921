"""The trade between the aims as `eval <plan> --aims` shows it, and bounds beside the highest values."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import pytest
from tests.support.clusters.random_clusters import random_cluster
from .looks import evaluated, look_at

from equilibrium_mgr.plan.aim_comparison import AimComparison, AimFigures, figures_of
from equilibrium_mgr.plan.kinds import BALANCE
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.store import PlanHead
from equilibrium_mgr.plan_service.plan_service import PlanProgress
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.cluster.evaluation import evaluate_cluster, evaluate_plan
from equilibrium_mgr.report.command_answer import CommandAnswer
from equilibrium_mgr.report.plans import PlansNow, dump_plan, list_plans, show_plan

PLAN: Plan = make_plan(random_cluster(1).snapshot())._replace(
    aim="even", bounds={"hdd": 0.1234})
SPACE = AimFigures("ready", {"hdd": 0.75, "ssd": 0.5}, 3 << 30, 2 << 30, 17, 100, "converged")
HEAD = PlanHead("p", 0.0, 100, 1, 1, 1, "converged", 1, 1, "even", "", {}, 1, BALANCE)


def comparison(space: AimFigures = SPACE, least: AimFigures = SPACE,
               known: bool = True) -> AimComparison:
    made = AimComparison(HEAD, PlanOptions(), known)
    made.set_figures("space", space)
    made.set_figures("least-motion", least)
    return made


LOOK = look_at(random_cluster(1).snapshot())


def evaluation_of(compared: Optional[AimComparison], plan: Plan = PLAN) -> CommandAnswer:
    return evaluate_plan(evaluated(plan, with_aims=True, comparison=compared), LOOK)


def aims_of(compared: Optional[AimComparison], plan: Plan = PLAN) -> Dict[str, Dict[str, Any]]:
    data = json.loads(json.dumps(evaluation_of(compared, plan).data))
    return {figures["aim"]: figures for figures in data["aims"]}


def aims_lines(compared: Optional[AimComparison]) -> List[str]:
    """The aims' table and the lines under it."""
    parts = evaluation_of(compared).plain.split("\n\n")
    return next(part for part in parts if part.startswith("AIM")).split("\n")


def test_one_line_an_aim_in_their_order() -> None:
    lines = aims_lines(comparison())
    assert lines[0].split() == ["AIM", "%MAX", "hdd", "%MAX", "ssd", "ROOM", "MOVED", "SHARDS"]
    assert lines[1].split() == ["space", "75.00", "50.00", "+3", "GiB", "2", "GiB", "17"]
    assert lines[2].split()[:2] == ["even", "(p)"]
    assert lines[2].split()[2] == f"{100.0 * PLAN.after.classes['hdd'].max:.2f}"
    assert lines[2].split()[-1] == str(len(PLAN.moves))
    assert lines[3].split()[0] == "least-motion" and len(lines) == 4


def test_json_of_the_aims() -> None:
    data, aims = evaluation_of(comparison()).data, aims_of(comparison())
    assert set(aims) == {"space", "even", "least-motion"}
    assert data["options_known"] is True and data["aim"] == "even"
    own = aims["even"]
    assert (own["state"], own["moves"], own["bytes"], own["is_this_plan"]) == (
        "ready", data["moves"], data["bytes"], True)
    assert own["classes"] == [{"device_class": name, "max_utilization": usage.max}
                              for name, usage in PLAN.after.classes.items()]
    assert own["room_gain_bytes"] == _room_gain(PLAN)
    assert [c["max_utilization"] for c in aims["space"]["classes"]] == [0.75, 0.5]
    assert aims["space"]["room_gain_bytes"] == 3 << 30


def test_aims_that_are_being_planned() -> None:
    planning = AimFigures("planning")
    lines = aims_lines(comparison(planning, planning))
    assert [line.split()[0] for line in lines[1:2]] == ["even"]
    assert lines[2:] == ["space, least-motion: being planned; ask again"]
    data = aims_of(comparison(planning))["space"]
    assert data["state"] == "planning" and data["moves"] is None and data["classes"] is None


def test_aim_that_could_not_be_planned() -> None:
    failed = AimFigures("failed", failure="KeyError: 'x'")
    assert aims_lines(comparison(least=failed))[-1] == (
        "least-motion: could not be planned (KeyError: 'x'); ask again")
    assert aims_of(comparison(failed))["space"]["state"] == "failed"


def test_plan_of_an_older_map_and_lost_limits_are_told() -> None:
    assert PLAN.epoch == 100
    lines = aims_lines(comparison(SPACE._replace(osdmap_epoch=107), known=False))
    assert "the plan was made at osdmap epoch 100, the others at 107" in lines
    assert "present settings" in lines[-1]
    assert not any("107" in line or "settings" in line for line in aims_lines(comparison()))


def test_plan_that_was_removed_meanwhile_stands_alone() -> None:
    assert set(aims_of(None)) == {"even"} and evaluation_of(None).data["options_known"] is False
    assert len(aims_lines(None)) == 2


def test_nothing_of_the_aims_where_they_were_not_asked_for() -> None:
    answer = evaluate_plan(evaluated(PLAN), LOOK)
    assert not {"aims", "options_known"} & set(answer.data)
    assert not any(part.startswith("AIM") for part in answer.plain.split("\n\n"))


def test_figures_of_a_plan() -> None:
    figures = figures_of(PLAN)
    assert figures.classes == {name: usage.max for name, usage in PLAN.after.classes.items()}
    assert (figures.moves, figures.bytes, figures.room_gain_bytes) == (
        len(PLAN.moves), PLAN.bytes, _room_gain(PLAN))


def _room_gain(plan: Plan) -> int:
    assert plan.before.room is not None and plan.after.room is not None
    return plan.after.room.bytes - plan.before.room.bytes


def test_bound_beside_the_highest_utilization() -> None:
    rows = evaluate_cluster(LOOK).data["classes"]
    for row in rows:
        assert row["bound_utilization"] == LOOK.view.bounds[row["device_class"]]
    text = evaluation_of(None).plain
    for row in rows:
        assert f"(bound {100.0 * row['bound_utilization']:.2f})" in text
    assert text.count("  < bound") == len(rows)


def test_an_outdated_plan_says_so_in_its_first_line() -> None:
    assert "outdated" not in evaluation_of(None).plain
    newer = evaluate_plan(evaluated(PLAN, epoch=107), LOOK)
    assert "outdated" not in newer.plain and newer.data["is_outdated"] is False
    found = evaluate_plan(evaluated(PLAN, epoch=107, outdated_reason="pool 1 is gone"), LOOK)
    assert found.plain.split("\n")[0].startswith("plan p is outdated (osdmap e100, now e107,")
    assert "elsewhere" not in found.plain   # all of it can be made still
    assert found.data["is_outdated"] is True
    executing = evaluate_plan(evaluated(PLAN, epoch=107, is_executing=True), LOOK)
    assert executing.plain.startswith("plan p is being executed")
    assert executing.data["is_outdated"] is False


def test_age_of_plan_and_figures_is_always_said() -> None:
    for epoch in (PLAN.epoch, PLAN.epoch + 7):
        text = evaluate_plan(evaluated(PLAN, epoch=epoch), LOOK).plain
        assert "1m00s old" in text.split("\n")[0]
        assert "placement of osdmap e100, 3s old" in text


@pytest.mark.parametrize("seed", range(40, 46))
def test_room_is_at_most_raw_free_space_by_the_smallest_replication_factor(seed: int) -> None:
    snapshot = random_cluster(seed).snapshot()
    plan = make_plan(snapshot)
    data = evaluate_plan(evaluated(plan), look_at(snapshot)).data
    factor = min(pool.size / pool.data_shards for pool in snapshot.pools.values())
    raw = sum(max(0.0, osd.size_bytes * snapshot.full_ratio - osd.used_bytes)
              for osd in snapshot.osds.values())
    assert 0 <= data["room"]["bytes"] <= raw / factor
    assert 0 <= data["planned_room"]["bytes"] <= raw / factor


def test_aim_in_what_is_shown_dumped_and_listed() -> None:
    shown, dumped = show_plan("p", PLAN), dump_plan("p", PLAN)
    assert shown.plain.startswith("# plan p, aim even, made at osdmap epoch 100:")
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
    assert set(aims_of(None, PLAN._replace(aim=aim))) == {aim}
