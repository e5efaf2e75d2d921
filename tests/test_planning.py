"""The planning desk: plans in the making, what becomes of them, and comparisons of aims."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import pytest
from fakes import Desk, KeyValueStore
from random_clusters import random_cluster

from equilibrium_mgr import planning, turns
from equilibrium_mgr.comparing import MAX_COMPARISONS, Comparison
from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.plan import Plan
from equilibrium_mgr.planner.planner import make_plan

OPTIONS = PlanOptions()


def open_desk() -> Desk:
    return Desk(random_cluster(1))


def test_named_plan_is_made_by_the_job_and_kept() -> None:
    desk = open_desk()
    assert desk.planning.submit_named("p", OPTIONS, 10.0)
    assert set(desk.planning.in_the_making()) == {"p"} and desk.shelf.heads() == {}
    assert desk.gateway.looks == 0                  # nobody who submits waits for a reading
    desk.jobs.run()
    assert desk.planning.in_the_making() == {}
    assert desk.shelf.get("p") == make_plan(random_cluster(1).snapshot())


def test_one_plan_of_a_name_at_a_time() -> None:
    desk = open_desk()
    assert desk.planning.submit_named("p", OPTIONS, 10.0)
    assert not desk.planning.submit_named("p", OPTIONS, 10.0)
    assert desk.planning.submit_named("q", OPTIONS, 10.0)
    assert desk.jobs.run() == 2
    assert desk.planning.submit_named("p", OPTIONS, 10.0)


def test_failure_is_remembered_until_the_next_attempt() -> None:
    desk = open_desk()
    desk.gateway.not_ready = "the mgr has no df yet"
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.jobs.run()
    assert "no df yet" in str(desk.planning.failure("p"))
    assert desk.planning.in_the_making() == {} and desk.shelf.heads() == {}
    desk.gateway.not_ready = ""
    desk.planning.submit_named("p", OPTIONS, 10.0)
    assert desk.planning.failure("p") is None
    desk.jobs.run()
    assert set(desk.shelf.heads()) == {"p"} and desk.planning.failure("p") is None


def test_automatic_plan_is_handed_over_and_not_kept() -> None:
    desk = open_desk()
    handed: List[Plan] = []
    snapshot = desk.gateway.cluster.snapshot()
    assert desk.planning.submit_automatic(snapshot, OPTIONS, 10.0, handed.append)
    desk.jobs.run()
    assert handed == [make_plan(snapshot)]
    assert desk.shelf.heads() == {} and desk.gateway.looks == 0


def test_a_plan_waits_until_remapped_pgs_show_whether_they_move() -> None:
    desk = open_desk()
    desk.gateway.unsettled = [20.0, 3.0]
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.jobs.run()
    assert desk.jobs.waited == [21.0, 4.0] and desk.gateway.looks == 3
    assert set(desk.shelf.heads()) == {"p"}


def test_a_plan_does_not_wait_for_ever_for_a_map_that_never_rests() -> None:
    desk = open_desk()
    desk.gateway.unsettled = [20.0] * 99
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.jobs.run()
    assert len(desk.jobs.waited) == 3 and set(desk.shelf.heads()) == {"p"}


def test_a_plan_that_waits_makes_do_with_what_it_has_when_the_mgr_is_not_ready() -> None:
    desk = open_desk()
    desk.gateway.unsettled = [20.0]

    def wait(_seconds: float) -> bool:
        desk.gateway.not_ready = "a pool is being created"
        return True
    desk.jobs.wait = wait  # type: ignore[method-assign]
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.jobs.run()
    assert set(desk.shelf.heads()) == {"p"} and desk.planning.failure("p") is None


def test_a_plan_waits_no_longer_than_the_module_lives() -> None:
    desk = open_desk()
    desk.gateway.unsettled = [20.0] * 99
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.jobs.is_over = True
    desk.planning.stop()
    desk.jobs.run()
    assert desk.gateway.looks == 1 and desk.shelf.heads() == {}


def test_stopped_desk_keeps_nothing() -> None:
    desk = open_desk()
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.planning.stop()
    desk.jobs.run()
    assert desk.shelf.heads() == {} and desk.planning.in_the_making() == {}


def test_time_limit_ends_the_plan_with_what_it_has() -> None:
    desk = open_desk()
    desk.planning.submit_named("p", OPTIONS, 0.0)
    desk.jobs.run()
    plan = desk.shelf.get("p")
    assert plan.moves == () and plan.stop_reason == "the time limit is reached"


def test_progress_tells_the_moves_so_far(mocker: Any) -> None:
    desk = open_desk()
    seen: List[int] = []

    def slow(snapshot: Any, options: Any, checkpoint: Any) -> Plan:
        assert checkpoint(0) and not pauses.sleep.called      # not yet worth a pause
        for moves in (3, 8):
            now.append(now[-1] + 1.0)
            assert checkpoint(moves)
            seen.append(desk.planning.in_the_making()["p"].moves)
        return make_plan(snapshot, options)
    now = [50.0]
    clock = mocker.patch.object(planning, "time")
    pauses = mocker.patch.object(turns, "time")
    clock.monotonic.side_effect = pauses.monotonic.side_effect = lambda: now[-1]
    mocker.patch.object(planning, "make_plan", side_effect=slow)
    desk.planning.submit_named("p", OPTIONS, 100.0)
    desk.jobs.run()
    assert seen == [3, 8] and pauses.sleep.call_count == 2     # others get the interpreter


# -- comparisons ---------------------------------------------------------------------------------

LIMITED = PlanOptions(pool_ids=frozenset((1, 2)), max_moves=6, fill_limit=0.8, aim="even")
PRESENT = PlanOptions(device_classes=frozenset(("ssd",)))


class Planner:
    """Stands in for make_plan: notes the options of every plan; some aims fail."""

    def __init__(self, mocker: Any, *failing: str) -> None:
        self.asked: List[PlanOptions] = []
        self.failing = failing
        self.meanwhile: Callable[[], None] = lambda: None
        mocker.patch.object(planning, "make_plan", side_effect=self)

    def __call__(self, snapshot: Any, options: PlanOptions, checkpoint: Any) -> Plan:
        self.asked.append(options)
        self.meanwhile()
        if options.aim in self.failing:
            raise RuntimeError("no plan\nfor you")
        return make_plan(snapshot, options, checkpoint)


def desk_with_plan(name: str = "p", options: PlanOptions = LIMITED) -> Desk:
    desk = open_desk()
    add_plan(desk, name, options)
    return desk


def add_plan(desk: Desk, name: str, options: PlanOptions = LIMITED) -> None:
    assert desk.planning.submit_named(name, options, 10.0)
    desk.jobs.run()


def compare(desk: Desk, name: str = "p", seconds: float = 10.0) -> Comparison:
    comparison = desk.planning.compare(name, PRESENT, seconds)
    assert comparison is not None
    return comparison


def states(comparison: Optional[Comparison]) -> Dict[str, str]:
    assert comparison is not None
    return {aim: figures.state for aim, figures in comparison.aims.items()}


def test_other_aims_are_planned_by_jobs_and_not_by_who_asks(mocker: Any) -> None:
    desk, planner = desk_with_plan(), Planner(mocker)
    for _ in range(3):
        assert states(compare(desk)) == {"space": "planning", "least-motion": "planning"}
    assert planner.asked == [] and len(desk.jobs.waiting) == 1
    desk.jobs.run()
    for _ in range(3):
        assert states(compare(desk)) == {"space": "ready", "least-motion": "ready"}
    assert len(planner.asked) == 2 and desk.jobs.waiting == []


def test_comparison_has_the_limits_that_the_plan_had(mocker: Any) -> None:
    desk, planner = desk_with_plan(), Planner(mocker)
    assert compare(desk).options_known
    desk.jobs.run()
    assert planner.asked == [LIMITED._replace(aim="space"), LIMITED._replace(aim="least-motion")]


def test_figures_are_those_of_the_plan_that_would_be_made() -> None:
    desk = desk_with_plan()
    compare(desk)
    desk.jobs.run()
    figures = compare(desk).aims["space"]
    plan = make_plan(random_cluster(1).snapshot(), LIMITED._replace(aim="space"))
    assert plan.moves
    assert (figures.gained_bytes, figures.bytes, figures.moves, figures.osdmap_epoch) == (
        plan.gained_bytes, plan.bytes, len(plan.moves), plan.epoch)
    assert figures.classes == {name: usage.max for name, usage in plan.after.classes.items()}


def test_both_aims_are_planned_on_one_look() -> None:
    desk = desk_with_plan()
    looks = desk.gateway.looks
    compare(desk)
    desk.jobs.run()
    assert desk.gateway.looks == looks + 1


def test_after_a_failover_the_present_settings_are_taken(mocker: Any) -> None:
    first = desk_with_plan()
    desk = Desk(random_cluster(1), kv=KeyValueStore(first.kv.values))
    planner = Planner(mocker)
    assert not compare(desk).options_known
    desk.jobs.run()
    assert planner.asked == [PRESENT._replace(aim="space"), PRESENT._replace(aim="least-motion")]
    assert states(compare(desk)) == {"space": "ready", "least-motion": "ready"}


def test_comparison_is_no_plan_in_the_making(mocker: Any) -> None:
    desk, planner = desk_with_plan(), Planner(mocker)
    seen: List[Any] = []
    planner.meanwhile = lambda: seen.append(desk.planning.in_the_making())
    last = desk.planning.last_plan
    compare(desk)
    assert desk.planning.in_the_making() == {}
    desk.jobs.run()
    assert seen == [{}, {}] and desk.planning.last_plan == last
    assert set(desk.shelf.heads()) == {"p"}


def test_plan_that_somebody_waits_for_comes_between_two_aims(mocker: Any) -> None:
    desk, planner = desk_with_plan(), Planner(mocker)
    compare(desk)
    desk.planning.submit_named("q", OPTIONS, 10.0)
    desk.jobs.run()
    assert [options.aim for options in planner.asked] == ["space", "space", "least-motion"]
    assert planner.asked[1] == OPTIONS


def test_comparison_of_an_unknown_plan() -> None:
    desk = open_desk()
    assert desk.planning.compare("p", PRESENT, 10.0) is None and desk.jobs.waiting == []


def test_time_limit_holds_for_each_aim() -> None:
    desk = desk_with_plan()
    compare(desk, seconds=0.0)
    desk.jobs.run()
    assert {figures.stop_reason for figures in compare(desk).aims.values()} == {
        "the time limit is reached"}


def test_failure_is_told_once_and_tried_again(mocker: Any) -> None:
    desk, planner = desk_with_plan(), Planner(mocker, "least-motion")
    compare(desk)
    desk.jobs.run()
    told = compare(desk)
    assert states(told) == {"space": "ready", "least-motion": "failed"}
    assert "RuntimeError" in str(told.aims["least-motion"].failure)
    assert desk.planning.failure("p") is None
    planner.failing = ()
    assert states(compare(desk)) == {"space": "planning", "least-motion": "planning"}
    desk.jobs.run()
    assert states(compare(desk)) == {"space": "ready", "least-motion": "ready"}


def test_cluster_that_cannot_be_read_fails_both() -> None:
    desk = desk_with_plan()
    desk.gateway.not_ready = "the mgr has no df yet"
    compare(desk)
    desk.jobs.run()
    told = compare(desk)
    assert states(told) == {"space": "failed", "least-motion": "failed"}
    assert "no df yet" in str(told.aims["space"].failure)


def test_few_comparisons_are_kept_those_asked_for_last(mocker: Any) -> None:
    desk = open_desk()
    names = ["p%d" % number for number in range(MAX_COMPARISONS + 1)]
    for name in names:
        add_plan(desk, name, OPTIONS._replace(max_moves=1))
    for name in names[:-1]:
        compare(desk, name)
        desk.jobs.run()
    compare(desk, names[0])                          # the second is now the oldest
    compare(desk, names[-1])
    desk.jobs.run()
    planner = Planner(mocker)
    for name in [names[0]] + names[2:]:
        assert set(states(compare(desk, name)).values()) == {"ready"}
    assert planner.asked == [] and desk.jobs.waiting == []
    assert set(states(compare(desk, names[1])).values()) == {"planning"}


@pytest.mark.parametrize("how", ["forgotten", "replaced", "to be replaced", "pushed out"])
def test_comparison_that_nobody_can_ask_for_is_given_up(mocker: Any, how: str) -> None:
    desk, planner = desk_with_plan(), Planner(mocker)
    compare(desk)
    if how == "forgotten":
        desk.planning.forget("p")
    elif how == "to be replaced":
        desk.planning.submit_named("p", OPTIONS, 10.0)
        del desk.jobs.waiting[1:]
    elif how == "replaced":
        job = desk.jobs.waiting.pop()
        add_plan(desk, "p")
        desk.jobs.waiting.append(job)
    else:
        job = desk.jobs.waiting.pop()
        for number in range(MAX_COMPARISONS):
            add_plan(desk, "q%d" % number, OPTIONS._replace(max_moves=1))
            compare(desk, "q%d" % number)
        desk.jobs.waiting = [job]
    planner.asked = []
    desk.jobs.run()
    assert planner.asked == []


def test_new_plan_of_a_name_is_compared_anew(mocker: Any) -> None:
    desk = desk_with_plan()
    compare(desk)
    desk.jobs.run()
    add_plan(desk, "p", OPTIONS)
    planner = Planner(mocker)
    assert states(compare(desk)) == {"even": "planning", "least-motion": "planning"}
    desk.jobs.run()
    assert planner.asked == [OPTIONS._replace(aim="even"), OPTIONS._replace(aim="least-motion")]


def test_plan_that_fails_to_be_made_again_leaves_the_old_one_s_limits(mocker: Any) -> None:
    desk = desk_with_plan()
    planner = Planner(mocker, "space")
    add_plan(desk, "p", OPTIONS)
    assert desk.planning.failure("p")
    planner.failing, planner.asked = (), []
    assert compare(desk).options_known
    desk.jobs.run()
    assert planner.asked[0] == LIMITED._replace(aim="space")


def test_shutdown_ends_a_comparison(mocker: Any) -> None:
    desk, planner = desk_with_plan(), Planner(mocker)
    comparison = compare(desk)
    planner.meanwhile = desk.planning.stop
    assert desk.jobs.run() == 1 and len(planner.asked) == 1
    assert states(comparison) == {"space": "planning", "least-motion": "planning"}


def test_comparison_lets_others_have_their_turn_and_ends_at_shutdown(mocker: Any) -> None:
    desk = desk_with_plan()
    went_on: List[bool] = []

    def slow(snapshot: Any, options: Any, checkpoint: Any) -> Plan:
        for _ in range(2):
            now.append(now[-1] + 1.0)
            went_on.append(checkpoint(1))
        desk.planning.stop()
        went_on.append(checkpoint(1))
        return make_plan(snapshot, options)
    now = [50.0]
    pauses = mocker.patch.object(turns, "time")
    clock = mocker.patch.object(planning, "time")
    clock.monotonic.side_effect = pauses.monotonic.side_effect = lambda: now[-1]
    mocker.patch.object(planning, "make_plan", side_effect=slow)
    compare(desk)
    desk.jobs.run()
    assert went_on == [True, True, False] and pauses.sleep.call_count == 2
