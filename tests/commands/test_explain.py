"""`explain`, and the bound beside the highest utilization, on the simulated cluster."""

from __future__ import annotations

import errno
import re
from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session

from equilibrium_mgr.runtime.formatting import format_bytes, format_percent

from .asking import ask, optimize, refused, run


def forget_view(session: Session) -> None:
    balancer = session.module.balancer
    balancer.observer.view = None
    balancer.publish()


def test_before_the_first_look(session: Session) -> None:
    for line in ("explain", "explain osd.1", "explain vms", "explain 2.1f", "explain nope"):
        forget_view(session)   # each of them starts an observation
        rc, text = refused(session, "equilibrium " + line)
        assert rc == -errno.EAGAIN and "not been looked at yet" in text
    forget_view(session)
    assert ask(session, "status")["classes"] == []


def by_class(data: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    return {row["device_class"]: row for row in data["classes"]}


def test_after_balancing(session: Session) -> None:
    run(session, "equilibrium on", "sim run idle", "sim run 1h")
    status = ask(session, "status")
    assert status["state"] == "balanced"
    distance = re.fullmatch("no move improves the placement; osd[.]([0-9]+), the fullest of class"
                            " (hdd|ssd), is ([0-9.]+) points above the bound", status["reason"])
    assert distance is not None
    figures = by_class(status)[distance.group(2)]
    assert figures["fullest_osd"] == int(distance.group(1))
    assert 100 * (figures["max_utilization"] - figures["bound_utilization"]) == pytest.approx(
        float(distance.group(3)), abs=0.051)
    above = [found["above_bound"] for found in ask(session, "explain")["sets"]]
    assert all(points < 0.02 for points in above)


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
    assert data["reason_code"] == "immovable" and "rm-pg-upmap" in data["action"]
    (row,) = data["counts"]
    assert row["code"] == "immovable" and row["count"] == data["census"]["pairs"] > 0
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
    classes = by_class(ask(session, "status"))
    for found in ask(session, "explain")["sets"]:
        row = classes[found["device_class"]]
        assert (found["fullest_osd"], found["max"], found["soon_fullest_osd"], found["soon_max"]
                ) == (row["fullest_osd"], row["max_utilization"], row["soon_fullest_osd"],
                      row["soon_max_utilization"])
    osds = {osd["id"]: osd for osd in ask(session, "osds")["osds"]}
    moving = ask(session, "moves")["moves"][0]
    said = ask(session, "explain " + moving["pgid"])["sentences"]
    target = osds[moving["target"]]
    assert (f"osd.{target['id']}: {format_percent(target['utilization'])}%,"
            f" {format_percent(target['soon_utilization'])}% when all has arrived") in said


def test_shards_that_wait_are_counted_as_status_does(session: Session) -> None:
    """No row ascribes to one OSD what waits for many."""
    optimize(session)
    run(session, "equilibrium execute p", "sim run 2m", "equilibrium df")
    rows, reason = ask(session, "explain")["counts"], ask(session, "status")["reason"]
    assert rows and "more)" in reason
    for row in rows:
        assert f"{row['count']} {row['text']}" in reason


@pytest.mark.parametrize("option, value", [("device_classes", "nvme"), ("pool_ids", "99")])
def test_an_option_that_matches_nothing_is_named_with_its_command(
        session: Session, option: str, value: str) -> None:
    run(session, f"config set mgr mgr/equilibrium/{option} {value}", "equilibrium on",
        "sim run 5m")
    command = f"'ceph config rm mgr mgr/equilibrium/{option}'"
    assert command in ask(session, "status")["action"]
    data = ask(session, "explain")
    assert command in data["action"] and "no OSD above any bound" not in data["what"]


def test_an_old_view_is_renewed(session: Session) -> None:
    """Of a cluster at rest thrice an hour, however often somebody asks."""
    run(session, "sim run 5m")
    assert [ask(session, "explain")["snapshot_age_seconds"] > 60 for _ in range(2)] == [True] * 2
    run(session, "sim run 20m")
    ask(session, "explain")
    assert ask(session, "explain")["snapshot_age_seconds"] < 60


def test_stuck_tells_what_refuses_the_shards_of_the_fullest_osd(
        open_session: Callable[..., Session]) -> None:
    session = open_session()
    run(session, "config set mgr mgr/equilibrium/fill_limit 0.3", "equilibrium on", "sim run 20m")
    assert ask(session, "status")["state"] == "stuck"
    data = ask(session, "explain")
    fullest = max(data["sets"], key=lambda found: found["above_bound"])["fullest_osd"]
    held = sum(pg["up"].count(fullest) for pg in ask(session, "dump-state")["pg_dump"]["pg_map"][
        "pg_stats"])
    census = data["census"]
    assert census["shards"] == held == census["counted_shards"]
    assert data["reason_code"] == "fill_limit" == data["counts"][0]["code"]
    assert sum(row["count"] for row in data["counts"]) == census["pairs"]
    assert f"{held} shards on osd.{fullest} x " in data["reason_text"]
    by_limit = data["counts"][0]["count"]
    assert f"{by_limit:>5}  target would pass fill_limit (30.00%)" in run(
        session, "equilibrium explain")


@pytest.mark.parametrize("option, code, said", [
    ("mgr mgr/equilibrium/fill_limit 0.3", "fill_limit", "would pass fill_limit"),
    ("mgr mgr/equilibrium/from_buckets osd.2", "osd_excluded", "are not used, as filters"),
    ("global mon_max_pg_per_osd 5", "pg_count", "have all the PG shards that")])
def test_status_of_a_stuck_cluster_names_the_reason_that_explain_counts(
        open_session: Callable[..., Session], option: str, code: str, said: str) -> None:
    session = open_session()
    run(session, f"config set {option}", "equilibrium on", "sim run 4h")
    status, data = ask(session, "status"), ask(session, "explain")
    assert status["state"] == "stuck"
    assert status["reason_code"] == data["reason_code"] == code
    assert status["action"] == data["action"]
    refused = next(row["count"] for row in data["counts"] if row["code"] == code)
    assert f"{refused} of the {data['census']['pairs']} targets for the " in status["reason"]
    assert said in status["reason"] and f"{code} refuses" not in status["reason"]
    run(session, "sim run 2h")
    detail = run(session, "health detail")
    assert "MGR_EQUILIBRIUM_STUCK" in detail and data["action"] in detail


def test_shards_of_an_empty_pool_are_not_said_to_have_fuller_targets(session: Session) -> None:
    """They are on the fullest OSD, and moving them evens out nothing."""
    run(session, "sim pool create new pg_num=64 size=3", "sim run 2m")
    refused(session, "equilibrium explain new")   # has the cluster looked at
    run(session, "sim run 1m")
    said = run(session, "equilibrium explain new")
    assert "or the shard is empty" in said
    assert "or the shard is empty" not in run(session, "equilibrium explain vms")
