"""An OSD that copies far less than others of its class is named, with what tells why; no other."""
from __future__ import annotations

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.scenarios.watch.advice import formed, labelled, told

_LIKES = 100 << 20   # bytes per second of every other OSD


@pytest.mark.parametrize(("osd", "kind", "rate"), [
    (5, "hdd", 300 << 10), *[pytest.param(*one, marks=pytest.mark.full) for one in (
        (12, "hdd", 2 << 20), (13, "hdd", 300 << 10), (19, "ssd", 300 << 10), (19, "ssd", 50 << 20),
        (12, "hdd", 30 << 20))]])
def test_a_slow_osd_is_named_and_no_other(any_session: Session, osd: int, kind: str,
                                          rate: int) -> None:
    session, named = any_session, []
    if 10 * rate < _LIKES:
        named = [osd]
    run(session, f"sim backfill rate {_LIKES}", f"sim backfill rate {rate} {osd}",
        "equilibrium on")
    for _ in range(3):   # before it has copied with others it may be either
        run(session, "sim run 20m")
        status, screen = ask(session, "status"), run(session, "equilibrium status")
        found, action = status["slow_osds"], status["action"]
        assert [one["osd"] for one in found] in ([], named), found
    assert [one["osd"] for one in found] == named, found
    assert list(told(status, screen)) == list(formed(action)) == []
    if not named:
        assert "config show" not in action
        assert "copies" not in screen
        return
    one, = found
    assert 0.2 * rate < one["bytes_per_second"] <= 1.01 * rate, one
    assert 0.2 * _LIKES < one["median_per_second"] <= 2 * _LIKES, one
    moving = [move["left_bytes"] for move in ask(session, "moves")["moves"]
              if osd == move["target"]]
    assert one["shards"] > 0
    assert one["bytes"] >= max(moving, default=1), (one, moving)
    assert one["sentence"] in labelled(screen, "cluster:")
    assert f"osd.{osd} copies " in screen
    assert f"the median of class {kind} " in screen
    assert action.startswith(
        f"'ceph config show osd.{osd} osd_mclock_max_capacity_iops_{kind}' shows"), action
    assert ask(session, "explain")["action"] == action


def test_what_came_while_nobody_looked_tells_nothing_of_speed(any_session: Session) -> None:
    """Off, the module looks only when it is asked; shards begin and end between two looks."""
    weights = [f"sim osd crush-reweight {osd} 0" for osd in (12, 13, 14)]
    run(any_session, "equilibrium on", "sim run 4h", *weights, "sim run 10m", "equilibrium off",
        "sim run 6h", "equilibrium on", "sim run 1m")
    assert ask(any_session, "status")["slow_osds"] == []
