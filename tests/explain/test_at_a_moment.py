"""What screens say of OSDs that have just gone down, or are too full for a moment."""
from __future__ import annotations

from pathlib import Path
from typing import List

import pytest
from tests.commands.asking import ask, run
from tests.explain.followed import OPTION, explained, open_cluster
from tests.explain.same_figures import differing
from tests.report.explanations import said
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB
from tests.what_if.test_failure import RACKS

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.upmap_check import UpmapCheck, kept_rule
from equilibrium_mgr.execution.execution import ExecutionProgress
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import MOVING, OFF, PLANNING, THROTTLED, make_view
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.report.explain.relief import is_relieved


def test_a_down_osd_is_not_the_fullest(tmp_path: Path) -> None:
    """It was; nothing can be moved off it, so that it has no part in the bound."""
    session = open_cluster("random", 20, tmp_path)
    run(session, "equilibrium status", "sim run 2m")
    fullest = ask(session, "status")["classes"][0]["fullest_osd"]
    run(session, "equilibrium on", "osd set noout", f"sim osd down {fullest}", "sim run 5m")
    explained(session, "")
    assert not differing(session)
    row, = ask(session, "status")["classes"]
    assert row["fullest_osd"] != fullest
    assert row["bound_utilization"] < row["max_utilization"]
    session.close()


def test_status_and_explain_begin_with_the_same_class(tmp_path: Path) -> None:
    """One is above its bound by 0.4 points, the other is at it, with larger shards."""
    session = open_cluster("index", 0, tmp_path)
    run(session, f"{OPTION}max_misplaced_ratio 0.3", "sim backfill rate 500M", "equilibrium on",
        "sim run 3h")
    assert ask(session, "status")["state"] == "balanced"
    assert not differing(session)
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


@pytest.mark.parametrize("state, moved, relieved", [
    (MOVING, "", True), (PLANNING, "", True), (THROTTLED, "", False),
    (OFF, "backfilling", True), (THROTTLED, "recovering", True), (OFF, "backfill_toofull", False),
    (THROTTLED, "backfill_wait", False)])
def test_what_only_waits_relieves_no_osd(state: str, moved: str, relieved: bool) -> None:
    """The plan takes 1.0 off osd.0; throttled, nothing of it moves. Else CRUSH has moved 1.0, and
    nothing runs that it waits for."""
    change = PgChange("1.0", (0,), (0,), (1,), ((0, 1),), 1, 1, 1)
    cluster = Cluster(hosts(2)).pool(1, size=1)
    if moved:
        cluster.pg("1.0", [1], acting="0", state=f"active+remapped+{moved}")
    else:
        cluster.pg("1.0", [0])
    view = make_view(cluster.snapshot(), None, PendingMoves(), 0.05, False)
    status = BalancerStatus(state=state, progress=None if state == OFF else ExecutionProgress(
        "", {}), wanted=[] if moved else [change], view=view)
    osds = view.snapshot.osds
    assert is_relieved(osds[0], status, view) == relieved
    assert not is_relieved(osds[1], status, view)


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


def test_bytes_of_no_pg_are_named_as_such() -> None:
    """48 of 50 GiB on osd.0."""
    cluster = Cluster(hosts(3)).pool(1, size=1, name="rbd")
    for ps in range(3):
        cluster.pg(f"1.{ps:x}", [ps], 2 * GIB)
    assert not any("belong to no PG" in one for one in said(cluster, "osd.0"))
    cluster.osd(0, used=50 * GIB)
    for what in ("", "osd.0"):
        assert any("48 GiB on osd.0 belong to no PG" in one for one in said(cluster, what)), what
    assert not any("on osd.1 belong to no PG" in one for one in said(cluster, "osd.1"))


def test_an_equivalent_rule_is_named_whose_upmaps_monitors_keep() -> None:
    """Of two takes: buckets are counted over both, so that `choose` forbids every upmap."""
    steps = "take default~{0}; choose firstn 2 rack; chooseleaf firstn 1 host; emit"
    text = "; ".join([steps.format("ssd"), steps.format("hdd")])
    classes = dict(enumerate(["ssd", "hdd"] * 4))
    crush, up = CrushHierarchy(crush_map(RACKS, {0: text}, classes)), (0, 4, 1, 5)
    rule = crush.rules[0]
    assert UpmapCheck(crush, rule, 4).rejection(up) is not None
    assert kept_rule(crush, rule, up) == (
        "take default class ssd; chooseleaf firstn 2 type rack; emit;"
        " take default class hdd; chooseleaf firstn 2 type rack; emit")
    for step in rule["steps"]:
        if "num" in step:
            step["num"] = 2
    assert kept_rule(crush, rule, up) is None   # two hosts of each rack: none is known


@pytest.mark.full
def test_nothing_is_waited_for_while_no_osd_reports(tmp_path: Path) -> None:
    """PGs seem to be degraded still, by figures of 20 minutes ago."""
    session = open_cluster("racks", 1, tmp_path)
    run(session, "equilibrium on", "sim run 20m", "sim osd lose 3", "sim run 20m",
        "sim stats freeze 30m", "sim run 20m")
    status = ask(session, "status")
    assert status["reason_code"] == "degraded"
    assert status["action"] == explained(session, "")["action"] == (
        "'ceph mgr fail' where OSDs do not report again by themselves")
    session.close()


def test_a_class_whose_osds_have_to_be_nearfull_needs_room(tmp_path: Path) -> None:
    session = open_cluster("random", 20, tmp_path)
    run(session, "sim write rbd 500G", "equilibrium on", "sim run 3h")
    status = ask(session, "status")
    assert status["state"] == "balanced"
    assert status["classes"][0]["bound_utilization"] > 0.85
    assert status["action"].startswith("add capacity to class hdd, or delete data: no placement is")
    session.close()
