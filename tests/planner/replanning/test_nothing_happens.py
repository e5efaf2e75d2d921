"""Planning again while nothing has happened: what was wanted stays, and nothing is looked for."""
from __future__ import annotations

from typing import Iterable, List, Tuple

import pytest
from pytest_mock import MockerFixture
from tests.support.clusters.made_clusters import NAMES, plan_of_cluster, snapshot_of
from tests.support.few import few
from tests.support.replay import Replay, first_part, follow_up

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner import replanning
from equilibrium_mgr.planner.replanning import MAX_REPLANS, FormerPlan, plan_result, replan
from equilibrium_mgr.planner.search.goal_repair import GoalRepair
from equilibrium_mgr.planner.search.search import Search
from equilibrium_mgr.snapshot.model import Snapshot


def half_way(name: str) -> Tuple[Snapshot, FormerPlan]:
    """A cluster when half of its plan has arrived, and the rest of the plan."""
    snapshot, plan = snapshot_of(name), plan_of_cluster(name)
    sent = first_part(plan, 0.5)
    return follow_up(snapshot, sent), FormerPlan(
        plan.changes[len(sent):], plan_result(snapshot, PlanOptions(), plan))


@pytest.mark.parametrize("name", few(NAMES, 2))
def test_exactly_what_was_wanted_is_wanted(name: str, mocker: MockerFixture) -> None:
    snapshot, former = half_way(name)
    lowered = mocker.patch.object(GoalRepair, "_lower_to")
    searched = mocker.patch.object(Search, "run")
    made = replan(snapshot, PlanOptions(), former)
    assert made is not None and not made.dropped
    assert not lowered.called and not searched.called
    assert {change.pgid: set(change.up_after) for change in made.plan.changes} == {
        change.pgid: set(change.up_after) for change in former.changes}


@pytest.mark.parametrize("later, is_taken", [(1.0, True), (0.9, False)])
def test_a_plan_that_scores_lower_than_no_moves_is_not_taken(
        later: float, is_taken: bool, mocker: MockerFixture) -> None:
    snapshot, former = half_way(NAMES[0])
    mocker.patch.object(replanning._Start, "score", side_effect=[1.0, later])
    assert (replan(snapshot, PlanOptions(), former) is not None) is is_taken


def swinging(snapshot: Snapshot, osds: Iterable[int], ratio: float) -> Snapshot:
    """The OSDs report that much more, as a ratio of their size."""
    return snapshot._replace(osds={**snapshot.osds, **{
        osd: snapshot.osds[osd]._replace(used_bytes=snapshot.osds[osd].used_bytes + int(
            ratio * snapshot.osds[osd].size_bytes)) for osd in osds}})


def fullest(snapshot: Snapshot, former: FormerPlan, count: int) -> List[int]:
    """The OSDs that will be fullest once what is wanted is done."""
    done = Replay(follow_up(snapshot, former.changes))
    return sorted(snapshot.osds, key=lambda osd: -done.utilization(osd))[:count]


@pytest.mark.parametrize("name", few(NAMES, 2))
def test_what_osds_report_may_swing_while_data_moves(name: str, mocker: MockerFixture) -> None:
    snapshot, former = half_way(name)
    lowered = mocker.patch.object(GoalRepair, "_lower_to")
    made = replan(swinging(snapshot, fullest(snapshot, former, 3), 0.02), PlanOptions(), former)
    assert made is not None and not lowered.called
    assert {change.pgid: set(change.up_after) for change in made.plan.changes} == {
        change.pgid: set(change.up_after) for change in former.changes}


def test_an_osd_that_reports_far_more_is_relieved() -> None:
    snapshot, former = half_way("demo")
    osd, = fullest(snapshot, former, 1)
    made = replan(swinging(snapshot, [osd], 0.05), PlanOptions(), former)
    assert made is None or any(osd in set(change.up_before) - set(change.up_after) and
                               change not in former.changes for change in made.plan.changes)


@pytest.mark.parametrize("above", [False, True])
def test_an_osd_above_nearfull_is_not_left_alone(above: bool, mocker: MockerFixture) -> None:
    snapshot, former = half_way("demo")
    osd, = fullest(snapshot, former, 1)
    lowered = mocker.spy(GoalRepair, "_lower_to")
    foreseen = Replay(follow_up(snapshot, former.changes)).utilization(osd)
    replan(swinging(snapshot, [osd], 0.02)._replace(
        nearfull_ratio=foreseen + (0.01 if above else 0.03)), PlanOptions(), former)
    assert lowered.called == above


@pytest.mark.parametrize("growth", [1.0, 1.05])
def test_data_that_has_grown_is_no_swing(growth: float, mocker: MockerFixture) -> None:
    snapshot, former = half_way("demo")
    lowered = mocker.spy(GoalRepair, "_lower_to")
    pools = {pool.id: pool._replace(stored_bytes=int(growth * pool.stored_bytes))
             for pool in snapshot.pools.values()}
    replan(swinging(snapshot, fullest(snapshot, former, 3), 0.02)._replace(pools=pools),
           PlanOptions(), former)
    assert lowered.called == (growth > 1.0)


def test_what_cannot_be_any_more_is_dropped_and_counted() -> None:
    snapshot, former = half_way("demo")
    rejected = frozenset(change.pgid for change in former.changes[:5])
    made = replan(snapshot, PlanOptions(rejected_pgs=rejected), former)
    assert made is None or (sum(made.dropped.values()) == 5 and not rejected & {
        change.pgid for change in made.plan.changes})


def test_now_and_then_a_plan_is_made_from_scratch() -> None:
    snapshot, former = half_way("demo")
    assert replan(snapshot, PlanOptions(), former._replace(replans=MAX_REPLANS)) is None


def test_a_placement_that_is_far_from_the_former_result_is_none_to_start_from() -> None:
    snapshot, former = half_way("demo")
    assert replan(snapshot, PlanOptions(), former._replace(changes=())) is None
