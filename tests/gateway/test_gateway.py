"""The gateway: how often it reads the structures of the mgr, and what it does without them."""
from __future__ import annotations

from typing import Any, Callable, List

import pytest
from tests.gateway.fake_mgr import Clock, FakeMgr, open_gateway, small
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.gateway.gateway import Gateway, NotReady


def test_pg_stats_at_most_hourly() -> None:
    gateway, mgr, clock = open_gateway(small())
    for minutes in range(0, 59, 5):
        clock.now = 1000.0 + 60.0 * minutes
        gateway.snapshot()
    assert mgr.calls["pg_stats"] == 1
    clock.now = 10.0                    # a clock set back does not freeze the statistics
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 2


@pytest.mark.parametrize("what, change, readings", [
    ("nothing", lambda c: None, 1),
    ("bytes", lambda c: c.pg("1.0", [0, 1], num_bytes=5 * GIB, objects=100, omap=GIB), 1),
    ("a little", lambda c: c.pg("1.0", [0, 1], objects=101, omap=GIB), 1),
    ("objects", lambda c: c.pg("1.0", [0, 1], objects=102, omap=GIB), 2),
    ("omap", lambda c: c.pg("1.0", [0, 1], objects=100, omap=2 * GIB), 2),
    ("a pool", lambda c: c.pool(3, size=2).pg("3.0", [0, 1]), 2),
    ("a split", lambda c: c.pg("2.4", [0, 1]), 2)], ids=lambda value: str(value)[:9])
def test_pg_stats_only_where_pools_have_changed(what: str, change: Callable[[Cluster], Any],
                                                readings: int) -> None:
    cluster = small()
    cluster.pg("1.0", [0, 1], objects=100, omap=GIB)
    gateway, mgr, clock = open_gateway(cluster)
    gateway.snapshot()
    change(cluster)
    clock.now += 3599.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 1
    clock.now += 2.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == readings
    clock.now += 86_400.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == readings + 1


def test_pg_stats_again_where_some_pgs_had_not_reported() -> None:
    cluster = small()
    cluster.pg("1.0", [0, 1], state="unknown", reported=0)
    gateway, mgr, clock = open_gateway(cluster)
    gateway.snapshot()
    cluster.pg("1.0", [0, 1])
    clock.now += 3601.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 2


@pytest.mark.parametrize("name", ["pg_progress", "osd_stats", "pool_stats", "pg_status",
                                  "pg_stats"])
def test_missing_answers_are_not_ready(name: str) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.missing = [name]
    with pytest.raises(NotReady, match=name):
        gateway.snapshot()
    mgr.missing = []
    assert len(gateway.snapshot().pgs) == 8


def test_not_ready_until_all_pgs_have_reported() -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.pg_ready = False
    with pytest.raises(NotReady):
        gateway.snapshot()
    assert gateway.last_reading is None


def test_large_pools_are_mapped_in_slices() -> None:
    cluster = Cluster(hosts(4)).pool(1, size=2).pool(2, size=2)
    for ps in range(1100):
        cluster.pg(f"1.{ps:x}", [ps % 4, (ps + 1) % 4])
    cluster.pg("2.0", [0, 1])
    mgr = FakeMgr(cluster)
    mapped: List[int] = []   # PGs each time that it gives way

    def note(_moves: int) -> bool:
        mapped.append(mgr.calls.get("pg_to_up_acting_osds", 0))
        return True
    with giving_way(note):
        snapshot = Gateway(mgr, Clock()).snapshot()
    gaps = [later - earlier for earlier, later in zip(mapped, mapped[1:])]
    assert 0 < max(gaps) <= 50          # the interpreter is given up now and then
    assert {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()} == cluster.up
