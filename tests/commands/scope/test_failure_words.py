"""`eval --fail` of what the cluster cannot recover from."""

from __future__ import annotations

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run, words
from tests.support.few import few


@pytest.mark.parametrize("what", few(["host0,host1", "osd.6,osd.14"], 1))
def test_pgs_without_service_are_those_that_are_inactive(session: Session, what: str) -> None:
    data = ask(session, f"eval --fail {what}")
    text = words(session, f"eval --fail {what}")
    assert ("without service" in text) == bool(data["inactive_pgs"])
    run(session, "sim flag set noout",
        "sim osd down " + " ".join(map(str, data["failure"]["osds"])), "sim run 1m")
    states = session.module.gateway.snapshot().pool_states
    assert data["inactive_pgs"] + data["lost_pgs"] == sum(
        states[pool["id"]].inactive for pool in data["pools"])
    assert sum(pool["inactive_pgs"] for pool in data["pools"]) == data["inactive_pgs"]
