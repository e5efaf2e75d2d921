"""The cheap summary: what it reads, and when it asks a monitor."""
from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.fake_mgr import open_gateway, small

from equilibrium_mgr.gateway.gateway import NotReady


def test_summary_reads_no_large_structure_and_asks_nobody() -> None:
    gateway, mgr, _ = open_gateway(small())
    summary = gateway.summary()
    assert set(mgr.calls) == {"osd_map_tree", "osd_stats", "pool_stats", "pg_status", "health"}
    assert mgr.sent == [] and (summary.flags, summary.min_compat_client) == (None, None)
    assert (summary.epoch, summary.crush_version, summary.taken_at) == (100, 5, 1000.0)
    assert set(summary.osds) == {0, 1, 2, 3} and set(summary.pools) == {1, 2}


def test_flags_are_asked_for_once_an_epoch() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    asked = [{"prefix": "osd stat"}, {"prefix": "osd get-require-min-compat-client"}]
    for number, flags in enumerate(("noout,norebalance", "noout"), start=1):
        cluster.extra["flags"] = flags
        cluster.epoch += 1
        for _ in range(5):
            summary = gateway.summary(with_map_settings=True)
            assert summary.flags == set(flags.split(","))
            assert summary.min_compat_client == "luminous"
        assert mgr.sent == asked * number


def test_monitor_that_does_not_answer_leaves_the_flags_unknown() -> None:
    gateway, mgr, clock = open_gateway(small())

    def silent(result: Any) -> None:
        result.ev.done = False
        result.ev.on_timeout = lambda seconds: setattr(clock, "now", clock.now + seconds)
    mgr.answer = silent
    assert gateway.summary(with_map_settings=True).flags is None
    assert clock.now <= 1010.0
    mgr.answer = lambda result: None
    assert gateway.summary(with_map_settings=True).flags == set()


@pytest.mark.parametrize("name", ["osd_map_tree", "osd_stats", "pool_stats", "pg_status"])
def test_summary_is_not_ready_without_its_parts(name: str) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.missing = [name]
    with pytest.raises(NotReady, match=name):
        gateway.summary()


def test_summary_does_not_wait_for_a_full_look() -> None:
    """A command may have one read while a look holds the gateway's lock for seconds."""
    gateway, _, _ = open_gateway(small())
    with gateway._lock:
        assert gateway.summary().epoch == 100
