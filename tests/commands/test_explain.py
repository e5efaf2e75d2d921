"""`explain`, and the bound beside the highest utilization, on the simulated cluster."""

from __future__ import annotations

import errno
import re
from typing import Any, Callable, Dict

from mgr_stub.console.session import Session

from equilibrium_mgr.runtime.formatting import format_bytes

from .asking import ask, optimize, refuses, run


def forget_view(session: Session) -> None:
    balancer = session.module.balancer
    balancer.observer.view = None
    balancer.publish()


def test_before_the_first_look(session: Session) -> None:
    for line in ("explain", "explain osd.1", "explain vms", "explain 2.1f", "explain nope"):
        forget_view(session)   # each of them starts an observation
        refuses(session, line, errno.EAGAIN, "not been looked at yet")
    forget_view(session)
    assert ask(session, "status")["classes"] == []


def pinned_cluster(demo_state: Dict[str, Any]) -> Dict[str, Any]:
    """Every PG is placed by a full pg-upmap, so that nothing can be moved."""
    stats = demo_state["pg_dump"]["pg_map"]["pg_stats"]
    demo_state["osd_dump"]["pg_upmap"] = [
        {"pgid": pg["pgid"], "osds": pg["up"]} for pg in stats]
    return demo_state


def test_stuck(open_session: Callable[..., Session], demo_state: Dict[str, Any]) -> None:
    session = open_session(18, pinned_cluster(demo_state))
    run(session, "equilibrium on", "sim run 10m")
    status = ask(session, "status")
    assert status["state"] == "stuck"
    assert re.search("is [12][0-9][.][0-9] points above the bound, and no legal move helped it at ",
                     status["reason"])
    data = ask(session, "explain")
    (reason, count), = data["skipped_pgs"].items()
    assert f"{count} PGs cannot be moved: {reason}" in data["sentences"]
    assert data["reason_code"] == "immovable"
    assert "rm-pg-upmap" in data["action"]
    (row,) = data["counts"]
    assert row["code"] == "immovable"
    assert row["count"] > 0
    pool = ask(session, "explain vms")
    assert pool["immovable_pgs"] == {reason: pool["pgs"]}
    assert ask(session, "explain 2.1f")["immovable"] == reason


def test_figures_are_of_now_or_labelled_while_shards_move(session: Session) -> None:
    """What the sentences call present is what `df` and `status` have at the same moment."""
    optimize(session)
    run(session, "equilibrium execute p", "sim run 2m", "equilibrium df")
    for pool in ask(session, "df")["pools"]:
        data = ask(session, "explain pool/" + pool["name"])
        assert (data["free_bytes"], data["limiting_osd"]) == (
            pool["free_bytes"], pool["limiting_osd"]), pool["name"]
        later = format_bytes(data["soon_free_bytes"])
        if later != format_bytes(pool["free_bytes"]):
            assert f"({later} when all has arrived)" in data["what"]


def test_an_old_view_is_renewed(session: Session) -> None:
    """Of a cluster at rest thrice an hour, however often somebody asks."""
    run(session, "sim run 5m")
    assert [ask(session, "explain")["snapshot_age_seconds"] > 60 for _ in range(2)] == [True] * 2
    run(session, "sim run 20m")
    ask(session, "explain")
    assert ask(session, "explain")["snapshot_age_seconds"] < 60
