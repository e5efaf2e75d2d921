"""Plans and executions outlive the mgr; damaged ones harm nobody else."""

from __future__ import annotations

import errno
import json
from typing import Any, List, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr.mgr import Mgr

from ..asking import ask, count_commands, optimize, refused, run, state, up_sets
from ..conftest import look

PREFIX = "mgr/equilibrium/plan/"


def keys(session: Session, name: str = "") -> List[str]:
    """What the monitor itself holds of the plans."""
    return sorted(k for k in session.simulation.store.keys if k.startswith(PREFIX + name))


def parts(session: Session, name: str) -> List[str]:
    return [key for key in keys(session, name + "/") if not key.endswith("/head")]


def but_epochs(answer: Any) -> Any:
    return json.loads(json.dumps(answer), object_hook=lambda found: {
        key: value for key, value in found.items() if key != "osdmap_epoch"})


def test_plans_survive_a_failover(any_session: Session) -> None:
    session = any_session
    plan = optimize(session)
    shown, listed, effect = ask(session, "show p"), ask(session, "ls"), ask(session, "eval p")
    run(session, "sim failover")
    assert ask(session, "dump p") == plan
    assert (ask(session, "show p"), ask(session, "ls")) == (shown, listed)
    look(session)
    later = ask(session, "eval p")
    for key in ("now", "age_seconds"):
        later.pop(key), effect.pop(key)
    # the failover itself has made an epoch, which is no reason for another plan
    assert but_epochs(later) == but_epochs(effect)
    before = up_sets(session)
    run(session, "equilibrium execute p", "sim run idle")
    assert up_sets(session) == {**before, **plan["predicted_up"]}


def test_an_execution_goes_on_after_a_failover(any_session: Session) -> None:
    session = any_session
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.02")
    plan = optimize(session)
    before = up_sets(session)
    run(session, "equilibrium execute p", "sim run 2m")
    sent = ask(session, "status")["execution"]["sent_moves"]
    assert 0 < sent < len(plan["moves"])
    run(session, "sim failover", "sim run 10s")
    status = ask(session, "status")
    assert status["execution"]["plan"] == "p" and status["state"] == "moving"
    run(session, "sim run 2m", "sim failover", "sim run idle")
    assert up_sets(session) == {**before, **plan["predicted_up"]}
    assert ask(session, "status")["last_execution"]["outcome"] == "completed"
    run(session, "sim failover", "sim run 2m")
    assert ask(session, "status")["execution"] is None


def test_automatic_balancing_goes_on_after_a_failover(session: Session) -> None:
    """Also where OSDs have not reported yet what had arrived when the former mgr ended."""
    run(session, "config set mgr mgr/equilibrium/start_delay 60", "equilibrium on",
        "sim run 2m", "sim failover", "sim run idle")
    assert state(session) == "balanced" and ask(session, "status")["active"] is True


def damage(session: Session, how: str) -> None:
    """Damages plan `bad` in the monitor's store; another mgr takes over."""
    store = session.simulation.store.keys
    head, part = PREFIX + "bad/head", parts(session, "bad")[0]
    if how == "truncated part":
        store[part] = store[part][:len(store[part]) // 2]
    elif how == "newer head":
        store[head] = json.dumps({**json.loads(store[head]), "version": 99})
    elif how == "missing head":
        del store[head]
    run(session, "sim failover")


#: Other damages are those of tests/properties/test_garbled_store.py and tests/plan/test_store.py.
DAMAGES = ["truncated part", "newer head", "missing head"]


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_plan(session: Session, how: str) -> None:
    good = optimize(session, "good")
    optimize(session, "bad")
    damage(session, how)
    for verb in ("show", "eval", "dump", "execute"):
        rc, text = refused(session, f"equilibrium {verb} bad")
        assert rc == -2 or rc == -5 and "rm bad" in text
    assert ask(session, "dump good") == good
    assert "good" in [p["plan"] for p in ask(session, "ls")["plans"]]
    run(session, "sim run 5m")
    assert ask(session, "dump good") == good
    again = optimize(session, "bad")                               # the name can be used again
    assert again == {**good, "plan": "bad", "osdmap_epoch": again["osdmap_epoch"]}
    damage(session, how)
    if "part" in how:
        assert ask(session, "rm bad") == {"removed": ["bad"], "stopped_plan": None}
        run(session, "sim run 2m")
        assert keys(session, "bad/") == [] and keys(session, "good/")


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_plan_is_not_resumed(session: Session, how: str) -> None:
    """The plan under way is damaged while the mgr is gone: no move, no crash, no ghost."""
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.01")
    optimize(session, "bad")
    run(session, "equilibrium execute bad", "sim run 1s")
    damage(session, how)
    sent = count_commands(session)
    run(session, "sim run 30m")
    assert sent == [] and ask(session, "status")["execution"] is None
    assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks


@pytest.mark.parametrize("hours, goes_on", [(23, True), (30, False)])
def test_who_enables_the_module_much_later_starts_nothing(session: Session, hours: int,
                                                          goes_on: bool) -> None:
    """`ceph mgr module disable` in the middle of an execution, and `enable` after a while."""
    run(session, "config set mgr mgr/equilibrium/max_moves_per_round 3")
    optimize(session)
    run(session, "equilibrium execute p", "sim run 4m")
    sent = count_commands(session)
    session.module.shutdown()
    session.clock.jump(hours * 3600.0)
    run(session, "sim failover", "sim run 10m")
    assert bool(sent) is goes_on
    assert state(session) != "off" if goes_on else state(session) == "off"
    if not goes_on:
        episode, = ask(session, "history")["episodes"]
        assert "has not run" in episode["outcome_reason"]
        assert ask(session, "ls")["plans"]   # it is kept, and can be executed anew


@pytest.mark.parametrize("line, sentence", [
    ("optimize p --max-moves 1", "is being executed"),
    ("execute q", "plan 'p' is being executed")])
def test_the_plan_that_is_executed_is_safe_in_a_new_mgrs_first_round(
        session: Session, mocker: Any, line: str, sentence: str) -> None:
    """Commands come while the new mgr reads the cluster for the first time."""
    optimize(session, "p")
    optimize(session, "q")
    run(session, "equilibrium execute p", "sim run 5m")
    answers = _in_the_first_round(session, mocker, f"equilibrium {line}")
    assert [(rc, sentence in err) for rc, _, err in answers] == [(-errno.EBUSY, True)]
    assert keys(session, "p")


def test_rm_in_a_new_mgrs_first_round_stops_the_plan(session: Session, mocker: Any) -> None:
    optimize(session, "p")
    run(session, "equilibrium execute p", "sim run 5m")
    answer, = _in_the_first_round(session, mocker, "equilibrium rm p --format json")
    assert (answer[0], json.loads(answer[1])["stopped_plan"]) == (0, "p")
    sent = count_commands(session)
    run(session, "sim run 10m")
    assert [command for command in sent if "upmap" in command] == []
    assert state(session) == "off" and not ask(session, "ls")["plans"]


def test_reset_in_a_new_mgrs_first_round_keeps_the_plan_that_is_executed(
        session: Session, mocker: Any) -> None:
    optimize(session, "p")
    run(session, "equilibrium execute p", "sim run 5m")
    answers = _in_the_first_round(session, mocker, "equilibrium reset")
    assert [rc for rc, _, _ in answers] == [0]
    assert keys(session, "p")


def _in_the_first_round(session: Session, mocker: Any,
                        line: str) -> List[Tuple[int, str, str]]:
    """Lets the mgr die; the answers to a command that comes while the next one reads the map."""
    answers: List[Tuple[int, str, str]] = []
    get = Mgr.get

    def get_and_ask(mgr: Mgr, name: str) -> Any:
        if name == "osd_map_tree" and not answers:
            answers.append((0, "", ""))   # the command itself reads, too
            answers[0] = session.dispatch(line.split())
        return get(mgr, name)
    mocker.patch.object(Mgr, "get", get_and_ask)
    session.host.kill_mgr(takeover=5.0)
    run(session, "sim run 1m")
    return answers
