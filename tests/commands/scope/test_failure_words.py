"""`eval --fail` of what the cluster cannot recover from."""

from __future__ import annotations

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run
from tests.support.few import few


def test_what_is_down_or_degraded_already_is_told(session: Session) -> None:
    """The figures have neither back: an operator is told what else may come."""
    run(session, "sim osd down 3", "sim run 30s", "equilibrium eval", "sim run 1s")
    data = ask(session, "eval --fail osd.6")
    text = " ".join(run(session, "equilibrium eval --fail osd.6").split())
    assert data["down_osds"] == [3] and data["degraded_pgs"] > 0
    assert "down: osd.3, and in: their PGs count as they are now, short of a shard" in text
    assert f"degraded: {data['degraded_pgs']} PGs now: if it failed before they are whole" in text
    both = " ".join(run(session, "equilibrium eval --fail osd.6,osd.3").split())
    assert "down:" not in both and "more could be lost" in both
    assert "osd.3, and in" in run(session, "equilibrium eval --worst-failure")


@pytest.mark.parametrize("what", few(["host0,host1", "osd.6,osd.14"], 1))
def test_pgs_without_service_are_those_that_are_inactive(session: Session, what: str) -> None:
    data = ask(session, f"eval --fail {what}")
    text = " ".join(run(session, f"equilibrium eval --fail {what}").split())
    assert ("without service" in text) == bool(data["inactive_pgs"])
    run(session, "sim flag set noout",
        "sim osd down " + " ".join(map(str, data["failure"]["osds"])), "sim run 1m")
    states = session.module.gateway.snapshot().pool_states
    assert data["inactive_pgs"] + data["lost_pgs"] == sum(
        states[pool["id"]].inactive for pool in data["pools"])
    assert sum(pool["inactive_pgs"] for pool in data["pools"]) == data["inactive_pgs"]
