"""`metrics`: the figures of the other screens, in the format of Prometheus."""
from __future__ import annotations

from typing import Any, Callable

import pytest
from tests.commands.asking import ask, max_by_class, run
from tests.support.exposition import FAMILIES, PREFIX, Parsed, parse

from equilibrium_mgr.observation.cluster_view import STATES
from equilibrium_mgr.version import VERSION
from mgr_stub.cluster.pg_reports import state_of
from mgr_stub.console.session import Session


def metrics(session: Session) -> Parsed:
    return parse(run(session, "equilibrium metrics"))


def test_figures_are_those_of_the_screens(session: Session) -> None:
    """While something moves and something waits."""
    ops = session.simulation.client_load.ops
    ops.update(dict.fromkeys(session.cluster.map.osds, (5_000_000_000, 1000)))
    run(session, "config set mgr mgr/equilibrium/max_backfills_per_osd 1", "sim backfill rate 4M",
        "equilibrium on", "sim run 5m")
    ops.update(dict.fromkeys(session.cluster.map.osds, (6_000_000_000, 1020)))
    run(session, "sim run 5m")
    status, found = ask(session, "status"), metrics(session)
    loop = session.module.balancer.status
    view, data = loop.view, ask(session, "metrics")
    assert found.by("state") == {state: float(state == status["state"]) for state in STATES}
    assert found.one("active") == 1.0
    assert found.one("statistics_age_seconds") == status["statistics_age_seconds"]
    assert found.by("utilization_max_ratio") == {
        row["device_class"]: row["max_utilization"] for row in status["classes"]}
    assert found.one("misplaced_limit_ratio") == status["limits"]["max_misplaced_ratio"]
    assert found.one("misplaced_ratio") == pytest.approx(status["misplaced_ratio"])
    assert found.by("utilization_max_ratio") == pytest.approx(max_by_class(session))
    assert found.by("bound_ratio") == view.bounds
    assert found.by("threshold_ratio") == {
        name: session.cluster.map.ratio(f"{name}_ratio")
        for name in ("nearfull", "backfillfull", "full")}
    assert found.by("toofull_pgs") == {"backfill_toofull": 0.0, "recovery_toofull": 0.0}
    assert found.one("room_bytes") == view.usage_now().room.bytes
    assert found.by("pool_free_bytes") == {
        str(pool.pool_id): pool.free_bytes for pool in view.usage_now().pools.values()}
    assert found.by("client_op_seconds") == {"recent": 0.05, "before": 0.005} == {
        period: status["client_latency"][f"{period}_seconds"] for period in ("recent", "before")}
    assert sum(found.by("waiting_shards").values()) == sum(
        change.shards for change in loop.wanted) > 0
    assert found.by("moving_shards")["plan"] == view.moving.shards > 0
    assert found.by("moving_bytes")["plan"] == view.moving.bytes > 0
    under_way = ask(session, "history")["episodes"][-1]
    assert (found.one("moves_total"), found.one("moved_bytes_total")) == (
        under_way["shards"], under_way["bytes"])
    assert found.one("remaining_seconds") == pytest.approx(
        status["progress"]["eta_seconds"], rel=0.01)
    assert {family["name"]: {frozenset(sample["labels"].items()): sample["value"]
                             for sample in family["samples"]}
            for family in data["metrics"] if family["samples"]} == found.samples
    assert {family["name"] for family in data["metrics"]} == {PREFIX + name for name in FAMILIES}
    ops.update(dict.fromkeys(session.cluster.map.osds, (7_000_000_000, 1040)))
    run(session, "equilibrium drain add 3", "sim run 1m")
    assert set(metrics(session).samples) == {PREFIX + name for name in FAMILIES}


def test_what_is_not_known_is_absent(open_session: Callable[..., Session]) -> None:
    found = metrics(open_session(18))   # off, and the cluster has not been looked at
    known = {name[len(PREFIX):] for name in found.samples}
    assert known == {"state", "active", "last_round_timestamp_seconds", "rejected_upmaps",
                     "moved_bytes_total", "moves_total", "drained_osds", "info"}
    assert found.by("info") == {VERSION: 1.0}


def test_what_is_left_of_drains_is_told_in_sum(session: Session) -> None:
    names = ("drained_osds", "drain_shards", "drain_stuck_shards", "drain_safe_to_stop")

    def told() -> Any:
        found = metrics(session)
        return [found.one(name) for name in names]
    assert told() == [0.0, None, None, None]
    run(session, "config set mgr mgr/equilibrium/start_delay 0", "sim backfill rate 4M",
        "equilibrium drain add 3 4", "sim run 5m")
    left = session.module.balancer.status.drains.remaining.values()
    assert told() == [2.0, sum(one.shards for one in left), 0.0, 0.0]
    assert 0 < told()[1] < 100
    run(session, "sim backfill rate 400M", "sim run 4h")
    assert ask(session, "drain ls")["safe_to_stop"]
    assert told() == [2.0, 0.0, 0.0, 1.0]
    run(session, "sim osd down 3")
    assert told()[-1] is None   # the osdmap is newer than the last look
    run(session, "sim run 15m")
    assert told()[-1] == 0.0
    run(session, "equilibrium drain rm 3 4")
    assert told() == [0.0, None, None, None]


def test_pgs_that_an_osd_is_too_full_for_are_counted_once(session: Session) -> None:
    run(session, "sim backfill rate 4M", "equilibrium on", "sim run 10m",
        "osd set-nearfull-ratio 0.3", "osd set-backfillfull-ratio 0.31", "sim run 5m")
    held = [pgid for pgid, pg in session.cluster.pgs.items()
            if "backfill_toofull" in state_of(session.cluster, pg)]
    assert metrics(session).by("toofull_pgs") == {
        "backfill_toofull": float(len(held)), "recovery_toofull": 0.0} and held
    assert metrics(session).by("threshold_ratio")["backfillfull"] == 0.31


def test_off_looks_once_an_hour_however_often_it_is_asked(
        open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    for _ in range(3 * 60):
        metrics(session)
        run(session, "sim run 1m")
    assert metrics(session).by("utilization_max_ratio")
    assert session.mgr.calls["pg_progress"] <= 4


def test_names_cannot_break_the_format(demo_state: Any,
                                       open_session: Callable[..., Session]) -> None:
    for node in demo_state["osd_df_dump"]["nodes"]:
        node["device_class"] = 'a"b\\c\nd'
    session = open_session(18, demo_state)
    metrics(session)   # has the cluster looked at
    run(session, "sim run 2m")
    assert metrics(session).by("utilization_max_ratio")
