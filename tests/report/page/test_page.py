"""Pages of clusters that lack something, of hostile names, and of large clusters."""
from __future__ import annotations

import re
from typing import Any, List, Optional
from unittest.mock import Mock

import pytest
from tests.benchmark.made.scale import large_reading
from tests.report.looks import evaluated, look_at
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.plan.model import Move, PgChange, Plan
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.cluster.evaluation import evaluate_cluster
from equilibrium_mgr.report.answer import CommandAnswer
from equilibrium_mgr.report.page import escaped, picture, report_page, table
from equilibrium_mgr.report.status import options_json, report_status
from equilibrium_mgr.settings import read_settings
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot


from .html_reader import Page

HOSTILE = "<b>&\"'\x00\u202e"
MOST_BYTES = 500_000


def answer_of(snapshot: Snapshot, plan: Optional[Plan] = None, **options: Any) -> CommandAnswer:
    """What `report` answers when the cluster has just been looked at."""
    look = look_at(snapshot)
    planning = Mock(plans_in_progress=lambda: {})
    status = report_status(
        BalancerStatus(view=look.view), planning, read_settings(options.get),
        snapshot.taken_at, options=options_json(options.get, snapshot))
    evaluation = evaluate_cluster(look) if plan is None else evaluated(plan, look)
    return report_page(
        evaluation.data, status.data, snapshot, plan, "f", "ceph version 18", snapshot.epoch,
        snapshot.taken_at)


def page_of(cluster: Cluster, plan: Optional[Plan] = None, **options: Any) -> Page:
    return Page(answer_of(cluster.snapshot(), plan, **options).plain)


def uneven() -> Cluster:
    """Two OSDs on each of three hosts, all data on three of them."""
    cluster = Cluster(hosts(3, 2)).pool(1, size=2)
    for number in range(12):
        cluster.pg(f"1.{number:x}", [0, 2 + number % 2 * 2], num_bytes=4 * GIB)
    return cluster


@pytest.mark.parametrize("cluster, pools", [
    (Cluster({"root default": {}}), []),
    (Cluster(hosts(3)).pool(1).pg("1.0", "0 1 2", num_bytes=0), ["pool1"])])
def test_without_osds_or_data(cluster: Cluster, pools: List[str]) -> None:
    found = page_of(cluster)
    assert "There is nothing to balance" in found.text
    assert [row["POOL"] for row in found.table("POOL")] == pools


def test_what_is_left_out() -> None:
    cluster = uneven().pool(2, size=2)
    cluster.pg("2.0", [0, NONE], num_bytes=GIB, state="active+undersized+degraded")
    row, = page_of(cluster).table("WHY", "COUNT")
    assert row == {"WHY": "PG: a shard has no OSD", "COUNT": "1"}


def test_a_plan_that_was_cut_short_says_so() -> None:
    plan = make_plan(uneven().snapshot())
    assert "cut short" not in page_of(uneven(), plan).text
    cut = plan._replace(stop_reason="the time limit is reached")
    assert "cut short: the time limit is reached" in page_of(uneven(), cut).text


def test_a_class_that_balancing_cannot_help() -> None:
    cluster = Cluster(hosts(2), {0: OSD_RULE}).pool(1, size=2)
    for number in range(8):
        cluster.pg(f"1.{number:x}", "0 1", num_bytes=11 * GIB)
    found = page_of(cluster, make_plan(cluster.snapshot()))
    assert "Plan p moves no data: the fullest OSD of class hdd is at 88.00%" in found.text
    assert "Balancing cannot bring class hdd below 88.00%" in found.text
    assert "add capacity" in found.text


def test_a_bound_is_never_above_what_is_there() -> None:
    cluster = fill(Cluster(hosts(6)).pool(1, size=1), 1, [[osd % 6] for osd in range(180)])
    for osd in (0, 1):
        cluster.osd(osd, weight=0.5)
    found = page_of(cluster, make_plan(cluster.snapshot()))
    highest, bound = (float(found.table("CLASS")[0][key]) for key in ("%MAX", "%BOUND"))
    assert highest == bound


def test_text_is_escaped_wherever_it_stands() -> None:
    safe = "&lt;b&gt;&amp;&quot;&#x27;\ufffd\ufffd"
    assert escaped(HOSTILE) == safe
    assert f'<td data-of="B">{safe}</td>' in table("A<|B<", [[HOSTILE, HOSTILE]])
    row = {"device_class": HOSTILE, "osds": 1, "size_bytes": GIB, "bound_utilization": None,
           "histogram": [{"from_ratio": 0.5, "osds": 1, "later_osds": 0}]}
    drawn = picture([row], HOSTILE)
    assert drawn.count(safe) == 3
    assert "<b>" not in drawn


def test_a_bar_is_as_long_as_osds_have_that_utilization() -> None:
    row = {"device_class": "hdd", "osds": 4, "size_bytes": GIB, "bound_utilization": 0.6,
           "histogram": [{"from_ratio": 0.2, "osds": 3, "later_osds": None},
                         {"from_ratio": 0.1, "osds": 1, "later_osds": None}]}
    drawn = picture([row], "")
    long, short = (float(width) for width in re.findall(r'width="([\d.]+)" height="14"', drawn))
    assert long == 3 * short
    assert drawn.index("20%") < drawn.index("10%")
    assert "60.00%" in drawn


def large_plan(snapshot: Snapshot, osds: int) -> Plan:
    """A shard of each of many PGs goes to the next OSD."""
    view = look_at(snapshot).view
    moves: List[Move] = []
    changes: List[PgChange] = []
    for pg in list(snapshot.pgs.values())[:5000]:
        source = pg.up[0]
        target = next(osd for osd in range(source + 1, source + 9) if osd % osds not in pg.up)
        target %= osds
        after = (target, *pg.up[1:])
        moves.append(Move(pg.pgid, source, target, pg.shard_bytes, 1, 0.5, 0.5, 0.5, 0.5))
        changes.append(PgChange(pg.pgid, pg.raw, pg.up, after, ((source, target),), 1,
                                pg.shard_bytes, 1))
    return Plan(snapshot.epoch, "converged", tuple(moves), tuple(changes), view.usage, view.usage,
                {}, "space", view.bounds)


@pytest.mark.full
def test_the_page_of_a_thousand_osds() -> None:
    """100 pools, 33,300 PGs."""
    snapshot = SnapshotBuilder().build(large_reading(1000, 100))
    plan = large_plan(snapshot, 1000)
    answer = answer_of(snapshot, plan)
    assert 200_000 < len(answer.plain.encode()) <= MOST_BYTES
    found = Page(answer.plain)
    shown = [row["COMMAND"] for row in found.table("PG", "SHARDS", "COMMAND")]
    assert 1000 < len(shown) < 5000
    assert shown == [change.command() for change in plan.changes[:len(shown)]]
    assert f"{5000 - len(shown)} more rows left out; 'ceph equilibrium show p'" in found.text
    assert len(found.table("POOL")) == 100
    assert len(answer.data["rollback"]) == 5000
