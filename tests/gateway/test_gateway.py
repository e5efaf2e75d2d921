"""The gateway: how often it reads the structures of the mgr, and what it does without them."""
from __future__ import annotations

from typing import Any, List

import pytest
from tests.gateway.fake_mgr import open_gateway, small
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.gateway.gateway import NotReady


def test_pg_stats_at_most_hourly() -> None:
    gateway, mgr, clock = open_gateway(small())
    for minutes in range(0, 59, 5):
        clock.now = 1000.0 + 60.0 * minutes
        gateway.snapshot()
    assert mgr.calls["pg_stats"] == 1
    clock.now = 10.0                    # a clock set back does not freeze the statistics
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 2


def with_data(objects: int, omap: int = GIB, **more: Any) -> Cluster:
    return small().pg("1.0", "0 1", objects=objects, omap=omap, **more)


@pytest.mark.parametrize("changed, readings", [
    (with_data(100), 1),
    (with_data(100, num_bytes=5 * GIB), 1),
    (with_data(101), 1),
    (with_data(102), 2),
    (with_data(100, omap=2 * GIB), 2),
    (with_data(100).pool(3, size=2).pg("3.0", "0 1"), 2),
    (with_data(100).pg("2.4", "0 1"), 2)],
    ids=["nothing", "bytes", "a little", "objects", "omap", "a pool", "a split"])
def test_pg_stats_only_where_pools_have_changed(changed: Cluster, readings: int) -> None:
    gateway, mgr, clock = open_gateway(with_data(100))
    gateway.snapshot()
    mgr.cluster = changed
    for seconds, count in (3599.0, 1), (2.0, readings), (86_400.0, readings + 1):
        clock.now += seconds
        gateway.snapshot()
        assert mgr.calls["pg_stats"] == count


def test_pg_stats_again_where_some_pgs_had_not_reported() -> None:
    gateway, mgr, clock = open_gateway(small().pg("1.0", "0 1", state="unknown", reported=0))
    gateway.snapshot()
    mgr.cluster = small()
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
    cluster = Cluster(hosts(4)).pool(1, size=2)
    for ps in range(1100):
        cluster.pg(f"1.{ps:x}", [ps % 4, (ps + 1) % 4])
    gateway, mgr, _ = open_gateway(cluster)
    mapped: List[int] = []   # PGs each time that it gives way

    def note(_moves: int) -> bool:
        mapped.append(mgr.calls.get("pg_to_up_acting_osds", 0))
        return True
    with giving_way(note):
        snapshot = gateway.snapshot()
    gaps = {later - earlier for earlier, later in zip(mapped, mapped[1:])}
    assert 0 < max(gaps) <= 50          # the interpreter is given up now and then
    assert {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()} == cluster.up
