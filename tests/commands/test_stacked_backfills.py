"""`status` warns where OSDs of rotating disks run several backfills at a time, while moves are in
flight: that costs clients and moves no more."""
from __future__ import annotations

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run, words

_LINE = ("backfills: osd_max_backfills is 4 at osd.0, 4 at osd.1 and 3 more, on rotating disks:"
         " clients wait two to three times as long for each byte moved, and no more is moved; see"
         " 'ceph config show osd.0'")


def said(session: Session) -> str:
    return words(session, "status")


def test_it_warns_while_moves_are_in_flight(any_session: Session) -> None:
    session = any_session
    run(session, "config set osd osd_max_backfills 4", "sim backfill rate 4M", "sim run 10m")
    assert "backfills:" not in said(session)
    assert "config show" not in session.mgr.calls
    run(session, "equilibrium on", "sim run 9m")
    assert _LINE in said(session)
    assert ask(session, "status")["stacked_backfills"] == dict.fromkeys(
        map(str, session.module.balancer.status.view.stacked_backfills), 4)
    assert session.mgr.calls["config show"] == 5, "once in ten minutes"
    run(session, "config set osd osd_max_backfills 1", "sim run 12m")
    assert "backfills:" not in said(session)
    assert ask(session, "status")["stacked_backfills"] == {}


def test_flash_and_what_does_not_move_are_not_asked(any_session: Session) -> None:
    session = any_session
    run(session, "config set osd osd_max_backfills 4", "sim backfill rate 4M",
        "config set mgr mgr/equilibrium/device_classes ssd", "equilibrium on", "sim run 10m")
    assert ask(session, "status")["moving"]["shards"]
    assert "backfills:" not in said(session)
    assert "config show" not in session.mgr.calls
    run(session, "config set mgr mgr/equilibrium/device_classes ''", "sim backfill rate 10G",
        "sim run 12h")
    assert not ask(session, "status")["moving"]["shards"]
    assert "backfills:" not in said(session)


@pytest.mark.parametrize("odd", ["", "many", "-1", "1e9"])
def test_odd_answers_are_none(session: Session, monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    run(session, "sim backfill rate 4M", "equilibrium on")
    core = session.simulation.config.core
    monkeypatch.setattr(session.simulation.config, "core", lambda who, name: (
        odd if (who, name) == ("osd.0", "osd_max_backfills") else core(who, name)))
    session.simulation._backfill_limits[0] = 1
    run(session, "sim run 9m")
    assert session.mgr.calls["config show"] == 5
    assert ask(session, "status")["moving"]["shards"]
    assert "backfills:" not in said(session)


def test_without_monitors_nobody_is_asked(session: Session) -> None:
    run(session, "sim backfill rate 4M", "equilibrium on", "sim run 5m", "sim mon down",
        "sim run 30m")
    assert session.mgr.calls["config show"] == 5
    assert ask(session, "status")["moving"]["shards"]
