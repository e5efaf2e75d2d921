"""The event of Ceph's progress module: one an episode, in bytes, ended however the episode ends."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict, List

import pytest

from equilibrium_mgr.report.history import ProgressEvents
from mgr_stub.console.session import Session
from tests.support.releases import RELEASES

from ..asking import optimize, run

OpenSession = Callable[..., Session]


def shown(session: Session) -> Dict[str, List[Dict[str, Any]]]:
    found: Dict[str, List[Dict[str, Any]]] = json.loads(run(session, "progress json"))
    return found


def started(open_session: OpenSession, release: int = 18) -> Session:
    session = open_session(release)
    optimize(session)
    run(session, "equilibrium execute p", "sim run 3m")
    return session


@pytest.mark.parametrize("release", RELEASES)
def test_one_event_an_episode_in_bytes_that_never_falls_and_ends(
        open_session: OpenSession, release: int) -> None:
    session = started(open_session, release)
    ids, ratios = set(), []
    while shown(session)["events"]:
        (event,) = shown(session)["events"]
        assert event["message"] == "equilibrium: plan p" and event["refs"] == []
        ids.add(event["id"])
        ratios.append(event["progress"])
        progress = session.module.balancer.status.progress
        if progress is not None:
            assert event["progress"] == pytest.approx(
                min(0.99, progress.bytes_done / progress.bytes_total), abs=0.1)
        run(session, "sim run 2m")
    assert len(ids) == 1 and ratios == sorted(ratios)
    assert ratios[0] < 0.3 and ratios[-1] > 0.8
    (ended,) = shown(session)["completed"]
    assert ended["id"] in ids and "failed" not in ended


def test_no_more_than_one_call_a_round(open_session: OpenSession) -> None:
    session = started(open_session)
    calls, rounds, step = session.mgr.progress_module.calls, [], session.module.step

    def counted() -> float:
        before = len(calls)
        delay: float = step()
        rounds.append(len(calls) - before)
        return delay
    session.module.step = counted
    run(session, "sim run 10m", "equilibrium off", "sim run 5m")
    assert len(rounds) > 10 and max(rounds) == 1


def test_the_same_event_after_a_failover(open_session: OpenSession) -> None:
    session = started(open_session)
    run(session, "sim run 3m")
    (before,) = shown(session)["events"]
    run(session, "sim failover", "sim run 3m")
    (after,) = shown(session)["events"]
    assert after["id"] == before["id"] and after["progress"] >= before["progress"]


def test_off_ends_it(open_session: OpenSession) -> None:
    session = started(open_session)
    run(session, "equilibrium off", "sim run 2s")
    assert shown(session)["events"] == []
    (ended,) = shown(session)["completed"]
    assert ended["failure_message"] == "stopped: by 'ceph equilibrium off'"
    run(session, "sim run 10m")
    assert len(shown(session)["completed"]) == 1


def test_an_error_ends_it_and_it_comes_back_when_that_is_over(
        open_session: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session = started(open_session)

    def fail() -> float:
        raise ValueError("broken")
    with monkeypatch.context() as patch:
        patch.setattr(session.module.balancer, "round", fail)
        session.module.step()
        session.module.step()
    assert shown(session)["events"] == []
    (ended,) = shown(session)["completed"]
    assert ended["failure_message"] == "ValueError: broken"
    session.module.step()
    (event,) = shown(session)["events"]
    assert event["id"] == ended["id"]


def test_automatic_balancing_has_one_event_too(open_session: OpenSession) -> None:
    session = open_session(18)
    run(session, "config set mgr mgr/equilibrium/start_delay 0", "equilibrium on", "sim run 5m")
    (event,) = shown(session)["events"]
    assert event["message"] == "equilibrium: automatic balancing"


def test_it_works_without_the_progress_module(open_session: OpenSession) -> None:
    session = open_session(20)
    session.simulation.disabled_modules.add("progress")
    optimize(session)
    run(session, "equilibrium execute p", "sim run 3m", "equilibrium off", "sim run 2m")
    assert session.mgr.progress_module.calls == []
    assert session.module.balancer.status.state == "off"


def test_it_works_where_the_progress_module_fails(open_session: OpenSession) -> None:
    session = open_session(18)
    session.mgr.progress_module.update = None  # type: ignore[method-assign, assignment]
    optimize(session)
    run(session, "equilibrium execute p", "sim run 3m")
    assert session.module.balancer.status.progress is not None


def test_a_successor_shows_no_less_than_was_shown(open_session: OpenSession) -> None:
    """Though it may know less of what has arrived, or plan for more bytes."""
    session = started(open_session)
    run(session, "sim run 10m")
    (before,) = shown(session)["events"]
    assert before["progress"] > 0.2
    run(session, "sim failover", "sim run 1m")
    session.mgr.progress_module.calls.clear()
    status = session.module.balancer.status
    assert status.episode["progress"] >= before["progress"]
    less = status._replace(progress=status.progress._replace(bytes_done=0))
    shown_now: List[float] = []
    ProgressEvents(lambda _id, _message, ratio: shown_now.append(ratio),
                   lambda _id, _failure: None).report(less)
    assert shown_now == [status.episode["progress"]]


def test_progress_is_stored_no_more_often_than_it_is_shown_to_change(
        open_session: OpenSession) -> None:
    session = started(open_session)
    ratios = []
    while shown(session)["events"]:
        ratios.append(shown(session)["events"][0]["progress"])
        run(session, "sim run 1m")
    assert all(ratio == pytest.approx(round(ratio, 2)) for ratio in ratios)
