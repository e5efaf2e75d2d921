"""--aim, the option `aim`, and `eval <plan> --aims` with what the others would give."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Iterator, List

import pytest

from mgr_stub.console.session import Session
from tests.support.giving_way import give_way

from ..asking import ask, by, optimize, refused, run
from ..conftest import look

AIMS = ["space", "even", "least-motion"]


def test_aim_of_a_plan_is_told_everywhere(any_session: Session) -> None:
    for aim in AIMS:
        answer = ask(any_session, f"optimize {aim} --aim {aim}")
        assert answer == {"plan": aim, "state": "planning", "aim": aim}
        assert ask(any_session, "dump " + aim)["aim"] == aim
        assert ask(any_session, "show " + aim)["aim"] == aim
        assert ask(any_session, "eval " + aim)["aim"] == aim
        first = run(any_session, "equilibrium show " + aim).splitlines()[0]
        assert first.startswith(f"# plan {aim}, aim {aim}, ")
    assert {p["plan"]: p["aim"] for p in ask(any_session, "ls")["plans"]} == {a: a for a in AIMS}
    assert ask(any_session, "status")["last_plan"]["aim"] == AIMS[-1]


def test_option_is_the_default(any_session: Session) -> None:
    session = any_session
    assert optimize(session)["aim"] == "space"
    run(session, "config set mgr mgr/equilibrium/aim even")
    assert optimize(session)["aim"] == "even"
    assert optimize(session, "p --aim least-motion")["aim"] == "least-motion"
    run(session, "config rm mgr mgr/equilibrium/aim", "sim failover")
    assert optimize(session)["aim"] == "space"


def test_option_holds_for_automatic_plans(session: Session) -> None:
    asked = note_aims(session)
    run(session, "config set mgr mgr/equilibrium/aim least-motion", "equilibrium on",
        "sim run 1m")
    assert set(asked) == {"least-motion"}
    assert ask(session, "status")["last_plan"]["aim"] == "least-motion"


def note_aims(session: Session) -> List[str]:
    """The aims of the plans that are made from now on, in their order."""
    service, asked = session.module.plan_service, []
    make_plan = service.planner

    def noting(snapshot: Any, options: Any) -> Any:
        asked.append(options.aim)
        return make_plan(snapshot, options)
    service.planner = noting
    return asked


# -- eval ------------------------------------------------------------------------------------------

def effect_of(session: Session, arguments: str = "p") -> Dict[str, Any]:
    optimize(session, arguments)
    effect: Dict[str, Any] = ask(session, f"eval {arguments.split()[0]} --aims")
    return effect


def aims_of(effect: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    return by("aim", effect["aims"])


def _highest(figures: Dict[str, Any], device_class: str) -> float:
    found: float = by("device_class", figures["classes"])[device_class]["max_utilization"]
    return found


def test_first_answer_has_all_aims_where_no_time_passes(any_session: Session) -> None:
    effect = effect_of(any_session)
    aims = aims_of(effect)
    assert set(aims) == set(AIMS) and effect["options_known"] is True
    for aim in AIMS[1:]:
        found = aims[aim]
        other = optimize(any_session, "q --aim " + aim)
        assert found["state"] == "ready"
        assert (found["moves"], found["bytes"], found["room_gain_bytes"]) == (
            len(other["moves"]), other["bytes"],
            other["after"]["room"]["bytes"] - other["before"]["room"]["bytes"])
        assert {name: _highest(found, name) for name in ("hdd", "ssd")} == {
            name: c["max"] for name, c in other["after"]["classes"].items()}
    own = aims["space"]
    assert (own["moves"], own["bytes"], own["room_gain_bytes"]) == (
        effect["moves"], effect["bytes"],
        effect["planned_room"]["bytes"] - effect["room"]["bytes"])
    lines = run(any_session, "equilibrium eval p --aims").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("AIM"))
    assert [line.split()[0] for line in lines[start + 1:start + 4]] == AIMS


def test_what_is_not_asked_for_is_neither_planned_nor_told(session: Session) -> None:
    asked = note_aims(session)
    optimize(session)
    effect, text = ask(session, "eval p"), run(session, "equilibrium eval p")
    run(session, "sim run 5m")
    assert asked == ["space"]
    assert not {"aims", "options_known"} & set(effect)
    assert not [line for line in text.splitlines() if line.startswith("AIM")]
    told = ask(session, "eval p --aims")
    assert {key: told[key] for key in effect if key not in ("now", "age_seconds")} == {
        key: effect[key] for key in effect if key not in ("now", "age_seconds")}
    assert asked == ["space", "even", "least-motion"]


@pytest.mark.parametrize("line", ["eval --aims", "eval vms --aims"])
def test_only_a_plan_has_other_aims(session: Session, line: str) -> None:
    code, said = refused(session, "equilibrium " + line)
    assert code == -22 and "--aims is for a plan" in said


def test_other_aims_keep_the_plan_s_limits(session: Session) -> None:
    effect = effect_of(session, "p fast --max-moves 4 --aim even")
    assert all(0 < aims_of(effect)[aim]["moves"] <= 4 for aim in AIMS)
    hdd = by("device_class", effect["classes"])["hdd"]["max_utilization"]
    assert all(_highest(aims_of(effect)[aim], "hdd") == hdd for aim in AIMS)


def test_comparison_is_made_once(session: Session) -> None:
    effect = effect_of(session)
    asked = note_aims(session)
    assert ask(session, "eval p --aims") == effect and asked == []
    optimize(session)
    ask(session, "eval p --aims")
    assert asked == ["space", "even", "least-motion"]
    run(session, "equilibrium rm p")
    optimize(session)
    ask(session, "eval p --aims")
    assert asked[3:] == ["space", "even", "least-motion"]


def test_memory_is_bounded(session: Session) -> None:
    names = [f"p{number}" for number in range(12)]
    for name in names:
        optimize(session, name + " --max-moves 1")
        ask(session, f"eval {name} --aims")
    asked = note_aims(session)
    for name in reversed(names[2:]):
        ask(session, f"eval {name} --aims")
    assert asked == []
    ask(session, f"eval {names[0]} --aims")
    assert asked == ["even", "least-motion"]


def test_after_a_failover_the_limits_are_not_known(session: Session) -> None:
    effect = effect_of(session, "p --max-moves 3")
    run(session, "sim failover")
    look(session)
    later = ask(session, "eval p --aims")
    assert later["options_known"] is False
    assert aims_of(later)["space"] == aims_of(effect)["space"]
    assert aims_of(later)["even"]["moves"] > 3 >= aims_of(effect)["even"]["moves"]
    text = run(session, "equilibrium eval p --aims")
    assert "present settings" in text
    assert "present settings" not in run(session, "equilibrium optimize q",
                                         "equilibrium eval q --aims")


def test_a_comparison_that_fails(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    optimize(session)
    service = session.module.plan_service
    make_plan = service.planner

    def fail(snapshot: Any, options: Any) -> Any:
        if options.aim == "even":
            raise RuntimeError("boom")
        return make_plan(snapshot, options)
    with monkeypatch.context() as patch:
        patch.setattr(service, "planner", fail)
        aims = aims_of(ask(session, "eval p --aims"))
        assert {aim: found["state"] for aim, found in aims.items()} == {
            "space": "ready", "even": "failed", "least-motion": "ready"}
        assert "even: could not be planned (RuntimeError: boom)" in run(
            session, "equilibrium eval p --aims")
    assert aims_of(ask(session, "eval p --aims"))["even"]["state"] == "ready"
    assert ask(session, "ls")["plans"][0]["state"] == "ready"
    assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks


# -- a real mgr: the planner runs in a thread of its own -------------------------------------------

class SlowAims:
    """Holds back the plans of all aims but `space` until `let_go` is set or they are ended."""

    def __init__(self, make_plan: Callable[..., Any]) -> None:
        self.started, self.let_go = threading.Event(), threading.Event()
        self.ended = 0
        self._make_plan = make_plan

    def __call__(self, snapshot: Any, options: Any) -> Any:
        if options.aim != "space":
            self.started.set()
            while not self.let_go.wait(0.002):
                if not give_way(7):
                    self.ended += 1
                    break
        return self._make_plan(snapshot, options)


@pytest.fixture
def threaded(open_session: Callable[..., Session]) -> Session:
    """Plan `p` is ready; jobs run in the module's own thread."""
    session = open_session(18, own_job_thread=True)
    look(session)
    run(session, "sim run 1s", "equilibrium optimize p")
    wait_until(lambda: not session.module.plan_service.plans_in_progress())
    return session


@pytest.fixture
def slow(threaded: Session) -> Iterator[SlowAims]:
    service = threaded.module.plan_service
    planner = service.planner = SlowAims(service.planner)
    yield planner
    planner.let_go.set()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "that took too long"
        time.sleep(0.005)


def states(session: Session, plan: str = "p") -> Dict[str, str]:
    return {aim: found["state"] for aim, found in aims_of(
        ask(session, f"eval {plan} --aims")).items()}


ALL_READY = {aim: "ready" for aim in AIMS}


def test_a_handler_does_not_wait(threaded: Session, slow: SlowAims) -> None:
    started = time.monotonic()
    assert states(threaded) == {"space": "ready", "even": "planning", "least-motion": "planning"}
    assert time.monotonic() - started < 5
    text = run(threaded, "equilibrium eval p --aims")
    assert "even, least-motion: being planned; ask again" in text and "space (p)" in text
    slow.let_go.set()
    wait_until(lambda: states(threaded) == ALL_READY)


def test_a_comparison_is_no_plan_in_the_making(threaded: Session, slow: SlowAims) -> None:
    states(threaded)
    assert slow.started.wait(10)
    assert [(p["plan"], p["state"]) for p in ask(threaded, "ls")["plans"]] == [("p", "ready")]
    assert ask(threaded, "status")["planning"] == []
    for line in ("show p", "dump p", "eval p --aims"):
        ask(threaded, line)
    assert ask(threaded, "execute p")["state"] == "executing"


def test_removal_ends_a_comparison(threaded: Session, slow: SlowAims) -> None:
    states(threaded)
    assert slow.started.wait(10)
    run(threaded, "equilibrium rm p")
    wait_until(lambda: slow.ended == 1)
    run(threaded, "equilibrium optimize p --replace")
    wait_until(lambda: not threaded.module.plan_service.plans_in_progress())
    assert slow.ended == 1


def test_a_new_plan_of_the_name_does_not_wait_for_a_comparison(
        threaded: Session, slow: SlowAims) -> None:
    states(threaded)
    assert slow.started.wait(10)
    run(threaded, "equilibrium optimize p --replace")
    wait_until(lambda: not threaded.module.plan_service.plans_in_progress())
    assert slow.ended == 1


def test_shutdown_ends_a_comparison(threaded: Session, slow: SlowAims) -> None:
    states(threaded)
    assert slow.started.wait(10)
    worker = next(t for t in threading.enumerate() if t.name == "eq-jobs" and t.is_alive())
    started = time.monotonic()
    threaded.close()
    worker.join(3)
    assert not worker.is_alive() and time.monotonic() - started < 3 and slow.ended == 1


def test_time_limit_of_a_comparison(threaded: Session, slow: SlowAims) -> None:
    run(threaded, "config set mgr mgr/equilibrium/max_plan_seconds 1")
    states(threaded)
    wait_until(lambda: states(threaded) == ALL_READY)
    assert slow.ended == 2
    even = aims_of(ask(threaded, "eval p --aims"))["even"]
    assert even["stop_reason"] == "the time limit is reached"


def test_a_plan_in_the_making_is_not_compared(threaded: Session, slow: SlowAims) -> None:
    run(threaded, "equilibrium optimize p --aim even --replace")
    assert slow.started.wait(10)
    assert refused(threaded, "equilibrium eval p --aims")[0] == -11
    slow.let_go.set()
    wait_until(lambda: not threaded.module.plan_service.plans_in_progress())
    assert ask(threaded, "eval p --aims")["aim"] == "even"
