"""`metrics`: the figures of the other screens, in the format of Prometheus."""
from __future__ import annotations

from typing import Any, Callable, Dict

import pytest
from tests.commands.asking import ask, max_by_class, run
from tests.support.exposition import FAMILIES, PREFIX, Labels, Parsed, parse

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.report.metrics import report_metrics
from equilibrium_mgr.version import VERSION
from mgr_stub.console.session import Session


def metrics(session: Session) -> Parsed:
    return parse(run(session, "equilibrium metrics"))


def test_json_has_the_same_and_all_families_are_there(session: Session) -> None:
    """While something moves and something waits; the golden screens have the figures."""
    ops = session.simulation.client_load.ops
    ops.update(dict.fromkeys(session.cluster.map.osds, (5_000_000_000, 1000)))
    run(session, "config set mgr mgr/equilibrium/max_backfills_per_osd 1", "sim backfill rate 4M",
        "equilibrium on", "equilibrium drain add 3", "sim run 5m")
    ops.update(dict.fromkeys(session.cluster.map.osds, (6_000_000_000, 1020)))
    run(session, "sim run 5m")
    found, highest = metrics(session), max_by_class(session)
    assert found.by("utilization_max_ratio") == pytest.approx(highest)
    assert found.by("client_op_seconds") == {"recent": 0.05, "before": 0.005}
    samples: Dict[str, Dict[Labels, float]] = {}
    for family in ask(session, "metrics")["metrics"]:
        for sample in family["samples"]:
            labels = frozenset(sample["labels"].items())
            samples.setdefault(family["name"], {})[labels] = sample["value"]
    assert samples == found.samples
    assert set(samples) == {PREFIX + name for name in FAMILIES if name != "load_max_ratio"}


def test_what_is_not_known_is_absent(open_session: Callable[..., Session]) -> None:
    found = metrics(open_session(18))   # off, and the cluster has not been looked at
    known = {name[len(PREFIX):] for name in found.samples}
    assert known == {"state", "active", "last_round_timestamp_seconds", "rejected_upmaps",
                     "moved_bytes_total", "moves_total", "drained_osds", "info"}
    assert found.by("info") == {VERSION: 1.0}


def test_what_is_not_known_of_drains_is_absent(session: Session) -> None:
    def is_safe() -> Any:
        return metrics(session).one("drain_safe_to_stop")
    assert is_safe() is None
    run(session, "sim backfill rate 400M", "equilibrium drain add 3 4", "sim run 4h")
    assert ask(session, "drain ls")["safe_to_stop"]
    assert is_safe() == 1.0
    run(session, "sim osd down 3")
    assert is_safe() is None   # the osdmap is newer than the last look
    run(session, "sim run 15m")
    assert is_safe() == 0.0
    run(session, "equilibrium drain rm 3 4")
    assert is_safe() is None


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


def test_what_may_be_tried_again_is_no_rejected_upmap() -> None:
    status = BalancerStatus(rejected={
        "1.0": Rejection("refused", "m", 9e5), "1.1": Rejection("refused", "m", 0.0)})
    text = report_metrics(status, None, 9e5, True, None, None).plain
    assert "equilibrium_rejected_upmaps 1\n" in text
