"""Pages of clusters that lack something."""
from __future__ import annotations

from typing import Any, Dict, List

from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.page.page import report_page

from .html_reader import Page
from .views import page_of, sources_of, view_of


def uneven() -> Cluster:
    """Two OSDs on each of three hosts, all data on three of them."""
    cluster = Cluster(hosts(3, 2)).pool(1, size=2)
    for number in range(12):
        cluster.pg(f"1.{number:x}", [0, 2 + number % 2 * 2], num_bytes=4 * GIB)
    return cluster


def test_no_osd_and_no_pool() -> None:
    found = page_of(Cluster({"root default": {}}))
    assert "There is nothing to balance" in found.text
    assert "No OSD is in and has reported statistics" in found.text
    assert found.table("POOL") == [] and "svg" not in [name for name, _ in found.tags]


def test_pools_without_data() -> None:
    found = page_of(Cluster(hosts(3)).pool(1).pg("1.0", [0, 1, 2], num_bytes=0))
    assert "There is nothing to balance" in found.text
    assert [row["POOL"] for row in found.table("POOL")] == ["pool1"]


def test_osds_without_class_or_host() -> None:
    cluster = Cluster({"root default": [0, 1, 2]}, {0: OSD_RULE},
                      dict.fromkeys(range(3), "")).pool(1, size=1)
    for number in range(6):
        cluster.pg(f"1.{number:x}", [0], num_bytes=5 * GIB)
    plan = make_plan(cluster.snapshot())
    found = page_of(cluster, ("p", plan))
    rows = found.table("OSD", "CLASS")
    assert {row["CLASS"] for row in rows} == {"none"}
    assert {row["HOST"] for row in rows} == {"no host"}
    assert found.table("FROM \\ TO")[0]["FROM \\ TO"] == "no host"


def test_a_plan_and_what_stays() -> None:
    cluster = uneven().osd(5, up=0, state=["exists"]).pool(2, size=2)
    cluster.pg("2.0", [0, NONE], num_bytes=GIB, state="active+undersized+degraded")
    plan = make_plan(cluster.snapshot())
    found = page_of(cluster, ("p", plan), pool_ids="1", begin_time="2200", end_time="0600",
                    begin_weekday=1, end_weekday=6)
    stays = {(row["WHAT"], row["WHY"]): row["WHAT TO DO"] for row in found.table("WHAT", "WHY")}
    assert ("1 pool", "the option pool_ids leaves them out") in stays
    assert stays["osd.5", "down: can take no shards"].startswith("bring osd.5 up and in")
    assert ("1 PG", "a shard has no OSD") in stays
    assert all(stays.values())
    limits = {row["OPTION"]: row["IN FORCE"] for row in found.table("OPTION")}
    assert limits["max_misplaced_ratio"] == "5.00%" and limits["fill_limit"] == "88.00%"
    assert limits["max_backfills_per_osd"] == "4" and limits["pool_ids"] == "pool1 (set)"
    assert limits["begin_time, end_time"].startswith("22:00 to 06:00 ")
    assert limits["begin_time, end_time"].endswith(", from Monday to Friday")


def test_a_plan_page_tells_the_limits_while_it_runs_and_how_it_stops() -> None:
    plan = make_plan(uneven().snapshot())
    found = page_of(uneven(), ("p", plan), max_backfills_per_osd=2)
    assert ("While it runs, moves are sent until 5.00% of the object copies are misplaced, and up"
            " to 2 shards to an OSD and 2 from it at a time." in found.text)
    assert ("'ceph equilibrium off' stops it, but for what moves already; Rollback, below, takes it"
            " back." in found.text)
    assert "Nothing throttles them" in found.text
    text = page_of(uneven(), ("p", plan), max_backfills_per_osd=0).text
    assert "object copies are misplaced. The old copy" in text
    assert "While it runs" not in page_of(uneven()).text


def test_a_plan_that_was_cut_short_says_so() -> None:
    plan = make_plan(uneven().snapshot())
    assert "converged" not in page_of(uneven(), ("p", plan)).text
    cut = plan._replace(stop_reason="the time limit is reached")
    assert "cut short: the time limit is reached" in page_of(uneven(), ("p", cut)).text


def test_a_class_that_balancing_cannot_help() -> None:
    cluster = Cluster(hosts(2), {0: OSD_RULE}).pool(1, size=2)
    for number in range(8):
        cluster.pg(f"1.{number:x}", [0, 1], num_bytes=11 * GIB)
    found = page_of(cluster, ("p", make_plan(cluster.snapshot())))
    assert "Plan p moves nothing: the fullest OSD of class hdd is at 88.00%" in found.text
    assert "Balancing cannot bring class hdd below 88.00%" in found.text
    assert "add capacity" in found.text


def test_history_of_another_release() -> None:
    sources = sources_of(view_of(uneven().snapshot()))
    odd: List[Dict[str, Any]] = [
        {}, {"started_at": "x", "bytes": None, "max_before": 3},
        {"started_at": 60.0, "ended_at": 3660.0, "moves": 3, "bytes": GIB,
         "outcome": "completed", "max_before": {"hdd": 0.87, "ssd": "?"},
         "max_after": {"hdd": 0.6}}]
    status = sources.status._replace(history=odd)
    found = Page(report_page(sources._replace(status=status)).plain)
    rows = found.table("STARTED (UTC)")
    assert rows[0]["STARTED (UTC)"] == "1970-01-01 00:01" and rows[0]["TOOK"] == "1h00m"
    assert rows[0]["%MAX"] == "hdd 87.00 → 60.00, ssd ?" and rows[0]["SENT"] == "1 GiB"
    assert len(rows) == 3
