"""The event of Ceph's progress module: one an episode, in bytes, ended however the episode ends."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session

from ..asking import optimize, run

OpenSession = Callable[..., Session]


def shown(session: Session) -> Dict[str, List[Dict[str, Any]]]:
    found: Dict[str, List[Dict[str, Any]]] = json.loads(run(session, "progress json"))
    return found


def started(open_session: OpenSession) -> Session:
    session = open_session(18)
    optimize(session)
    run(session, "equilibrium execute p", "sim run 3m")
    return session


def test_one_event_an_episode_in_bytes_that_never_falls_and_ends(
        open_session: OpenSession) -> None:
    session = started(open_session)
    ids, ratios = set(), []
    while shown(session)["events"]:
        (event,) = shown(session)["events"]
        assert event["message"] == "equilibrium: plan p"
        assert event["refs"] == []
        ids.add(event["id"])
        ratios.append(event["progress"])
        progress = session.module.balancer.status.progress
        if progress is not None:
            assert event["progress"] == pytest.approx(
                min(0.99, progress.bytes_done / progress.bytes_total), abs=0.1)
        run(session, "sim run 2m")
    assert len(ids) == 1
    assert ratios == sorted(ratios)
    assert ratios[0] < 0.3
    assert ratios[-1] > 0.8
    (ended,) = shown(session)["completed"]
    assert ended["id"] in ids
    assert "failed" not in ended


def test_the_same_event_after_a_failover(open_session: OpenSession) -> None:
    session = started(open_session)
    run(session, "sim run 3m")
    (before,) = shown(session)["events"]
    run(session, "sim failover", "sim run 3m")
    (after,) = shown(session)["events"]
    assert after["id"] == before["id"]
    assert after["progress"] >= before["progress"]


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


@pytest.mark.full
def test_it_works_without_the_progress_module(open_session: OpenSession) -> None:
    session = open_session(20)
    session.simulation.disabled_modules.add("progress")
    optimize(session)
    run(session, "equilibrium execute p", "sim run 3m", "equilibrium off", "sim run 2m")
    assert session.mgr.progress_module.calls == []
    assert session.module.balancer.status.state == "off"
