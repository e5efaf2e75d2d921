"""`explain PGID OSD` on the simulated cluster: the one check that refuses, with its figure."""
from __future__ import annotations

from typing import Any, Dict

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.readme.blocks import HANDBOOK
from tests.commands.conftest import demo_state, open_session, session  # noqa: F401

from equilibrium_mgr.execution.checks import CHECKS
from equilibrium_mgr.report.explain.pair import SENDER

_OPTION = "config set mgr mgr/equilibrium/"


def first_refusing(data: Dict[str, Any]) -> Dict[str, Any]:
    """The row of the first check that refuses."""
    return [row for row in data["checks"] if not row["allows"]][0]


@pytest.mark.parametrize("lines, osd, check, text, action", [
    (("sim osd out 14",), 14, "OSD", "out", "bring osd.14 up and in; 'ceph osd tree' shows it"),
    (("equilibrium drain add 14",), 14, "OSD", "being drained",
     "'ceph equilibrium drain rm 14' ends its drain"),
    ((f"{_OPTION}to_buckets host1",), 14, "scope", "to_buckets leaves osd.14 out",
     "'ceph config rm mgr mgr/equilibrium/to_buckets' lets shards move there"),
    (("equilibrium pool add backup",), 14, "pool_ids", "pool vms",
     "'ceph equilibrium pool add vms'"),
    ((f"{_OPTION}fill_limit 0.7",), 14, "fill_limit", "79.11%, at most 70.00%",
     "'ceph config set mgr mgr/equilibrium/fill_limit 0' (now 0.7)"),
])
def test_the_first_check_that_refuses(session: Session, lines: Any, osd: int,   # noqa: F811
                                      check: str, text: str, action: str) -> None:
    run(session, *lines, "sim run 1m", "equilibrium explain", "sim run 2s")   # a look
    data = ask(session, f"explain 2.1f {osd}")
    row = first_refusing(data)
    assert row["check"] == check, data
    assert text in row["text"], data
    assert data["action"].startswith(action), data
    assert data["reason_code"] == row["code"]
    assert not data["is_there"]
    assert not data["may_go"]


def test_a_planned_move_is_explained_as_planned(session: Session) -> None:   # noqa: F811
    """Before it goes with what defers it, then as under way."""
    run(session, "equilibrium on", "sim run 2m")
    status = session.module.balancer.status
    for change, why in [one for one in status.deferred if one[0].shards == 1][:5]:
        (source,), (target,) = (set(one) - set(other) for one, other in (
            (change.up_before, change.up_after), (change.up_after, change.up_before)))
        data = ask(session, f"explain {change.pgid} {target}")
        assert (data["source"], data["may_go"], data["may_go_now"]) == (source, True, False)
        assert why.reason in [row for row in data["checks"] if row["check"] == "plan"][0]["text"]
    moving = ask(session, "moves")["moves"][0]
    data = ask(session, f"explain {moving['pgid']} osd.{moving['target']}")
    assert data["is_there"]
    assert data["reason_text"] == "its shard there is on its way"


def test_every_check_of_the_throttle_is_shown(session: Session) -> None:   # noqa: F811
    rows = ask(session, "explain 2.1f 14")["checks"]
    assert len([row for row in rows if row["stage"] == SENDER]) == 1 + sum(
        not check.of_batch for check in CHECKS)
    page = (HANDBOOK / "troubleshooting.md").read_text(encoding="utf-8").partition("| check |")[2]
    told = [name for line in page.partition("\n\n")[0].split("\n")[2:]
            for name in line.split("|")[1].strip().split(", ")]
    assert len(told) == len(set(told))
    assert set(told) == {*(row["check"] for row in rows), "plan"}
