"""What screens say of OSDs that have just gone down, or are too full for a moment."""
from __future__ import annotations

from pathlib import Path
from typing import List

import pytest
from tests.commands.asking import ask, run
from tests.explain.followed import explained, open_cluster
from tests.explain.same_figures import differing
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.execution import ExecutionProgress
from equilibrium_mgr.observation.cluster_view import MOVING, PLANNING, THROTTLED
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.report.explain.advice import is_relieved


def test_a_down_osd_is_not_the_fullest(tmp_path: Path) -> None:
    """It was; nothing can be moved off it, so that it has no part in the bound."""
    session = open_cluster("random", 20, tmp_path)
    run(session, "equilibrium status", "sim run 2m")
    fullest = ask(session, "status")["classes"][0]["fullest_osd"]
    run(session, "equilibrium on", "osd set noout", f"sim osd down {fullest}", "sim run 5m")
    explained(session, "")
    assert not differing(session)
    row, = ask(session, "status")["classes"]
    assert row["fullest_osd"] != fullest and row["bound_utilization"] < row["max_utilization"]
    session.close()


def test_the_fullest_is_of_osds_that_are_up_now(tmp_path: Path) -> None:
    """Metrics look at nothing: OSDs have come up and gone down since the look."""
    session = open_cluster("random", 20, tmp_path)
    run(session, "equilibrium status", "sim run 2m")
    row, = ask(session, "status")["classes"]
    highest = (f'ceph_equilibrium_utilization_max_ratio{{device_class="hdd"}}'
               f' {row["max_utilization"]}\n')
    for way, is_highest in (("down", False), ("up", True)):
        run(session, f"sim osd {way} {row['fullest_osd']}", "sim run 10s")
        assert (highest in run(session, "equilibrium metrics")) == is_highest, way
        run(session, "equilibrium status", "sim run 1m")   # a look
    session.close()


def test_an_osd_that_is_down_and_out_is_named_where_pgs_find_no_room(tmp_path: Path) -> None:
    """Ceph is still to rebuild what it held: to start it helps more than a higher ratio."""
    session = open_cluster("random", 20, tmp_path)
    run(session, "sim osd full-ratios 0.75 0.8 0.95", "sim osd down 9", "equilibrium on",
        "sim run 30m")
    assert explained(session, "")["action"].startswith("start osd.9 of h3")
    assert ask(session, "status")["outage"]["down_osds"] == [9]
    run(session, "osd set noout", "sim run 1m")   # too late to keep anything
    assert ask(session, "status")["outage"]["flags"] == []
    session.close()


@pytest.mark.parametrize("state, relieved", [(MOVING, True), (PLANNING, True), (THROTTLED, False)])
def test_what_only_waits_relieves_no_osd(state: str, relieved: bool) -> None:
    """The plan takes 1.0 off osd.0; throttled, nothing of it moves."""
    change = PgChange("1.0", (0,), (0,), (1,), ((0, 1),), 1, 1, 1)
    status = BalancerStatus(state=state, progress=ExecutionProgress("", {}), wanted=[change])
    osds = Cluster(hosts(2)).pool(1, size=1).pg("1.0", [0]).snapshot().osds
    assert is_relieved(osds[0], status) == relieved and not is_relieved(osds[1], status)


@pytest.mark.parametrize("lines, code, begins", [
    (["osd set norebalance"], "flag", "'ceph osd unset norebalance'"),
    (["config set mgr mgr/equilibrium/begin_time 0300",
      "config set mgr mgr/equilibrium/end_time 0400"], "too_full",
     "make room on osd.")])
def test_all_screens_say_one_thing_of_an_osd_that_is_too_full(
        tmp_path: Path, lines: List[str], code: str, begins: str) -> None:
    """What an operator has set comes first; a window that is closed does not."""
    session = open_cluster("random", 20, tmp_path)
    run(session, "sim osd full-ratios 0.75 0.8 0.95", *lines, "equilibrium on", "sim osd out 9",
        "sim run 30m")
    whole, status = explained(session, ""), ask(session, "status")
    osd = ask(session, f"explain osd.{status['too_full'][0]['osd']}")
    for answer in (whole, osd)[:1 if code == "flag" else 2]:
        assert (answer["reason_code"], answer["action"]) == (code, status["action"])
    assert status["action"].startswith(begins)
    session.close()
