"""--aim, the option `aim`, and `eval <plan> --aims` with what the others would give."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from tests.support.giving_way import give_way

from ..asking import ask, by, optimize, refused, run

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


# -- a real mgr: the planner runs in a thread of its own -------------------------------------------

def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "that took too long"
        time.sleep(0.005)


def states(session: Session, plan: str = "p") -> Dict[str, str]:
    return {aim: found["state"] for aim, found in aims_of(
        ask(session, f"eval {plan} --aims")).items()}


def test_a_handler_does_not_wait(open_session: Callable[..., Session]) -> None:
    session, let_go = open_session(18, own_job_thread=True), threading.Event()
    service = session.module.plan_service
    make_plan = service.planner

    def slow(snapshot: Any, options: Any) -> Any:
        """Holds back the plans of all aims but `space` until `let_go` is set or they are ended."""
        while options.aim != "space" and not let_go.wait(0.002) and give_way(7):
            pass
        return make_plan(snapshot, options)
    service.planner = slow
    run(session, "sim run 1s", "equilibrium optimize p")
    wait_until(lambda: not service.plans_in_progress())
    session.command("equilibrium eval")
    run(session, "sim run 1s")
    started = time.monotonic()
    assert states(session) == {"space": "ready", "even": "planning", "least-motion": "planning"}
    assert time.monotonic() - started < 5
    let_go.set()
    wait_until(lambda: states(session) == {aim: "ready" for aim in AIMS})
