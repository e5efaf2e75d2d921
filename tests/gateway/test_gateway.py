"""The gateway: how often it reads the structures of the mgr, and what it does without them."""
from __future__ import annotations

from typing import Any, List

import pytest
from tests.gateway.fake_mgr import open_gateway, small
from tests.support.clusters.unit_cluster import Cluster, hosts

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
    clock.now += 3601.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 3


@pytest.mark.parametrize("answers, speeds", [(True, {0: 1.0}), (False, {})])
def test_pg_stats_hourly_without_snapshots(answers: bool, speeds: Any) -> None:
    """The loop counts operations also while nobody wants a snapshot; the first reading waits until
    PGs have reported. With it come the capacities of OSDs."""
    gateway, mgr, clock = open_gateway(small())
    mgr.monitor_answers = answers
    mgr.config = '''[{"section": "osd.0", "name": "osd_mclock_max_capacity_iops_hdd",
                     "value": "300.5"}]'''
    for readings in (0, 0, 1, 1, 2):
        gateway.refresh_hourly()
        assert mgr.calls.get("pg_stats", 0) == readings
        clock.now += 1801.0
    assert gateway.operations == (clock.now - 1801.0, {})   # these PGs show no counters
    assert gateway.snapshot().speeds == speeds


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
