"""When the osdmap is dumped, and that a reading without a dump is the same."""
from __future__ import annotations

from pathlib import Path
from typing import List

import pytest
from tests.gateway.fake_mgr import Clock, FakeMgr
from tests.gateway.map_changes import by_a_dump, foreign_items, now, open_gateway, shown, small
from tests.scenarios import clusters, random_events
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.few import few

from equilibrium_mgr.gateway.gateway import Gateway, NotReady


def test_a_plan_is_made_from_a_dump() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    mgr.calls.clear()
    gateway.snapshot(fresh=True)
    assert "dump" not in mgr.calls       # this epoch was dumped
    cluster.epoch += 1
    epoch = gateway.snapshot().epoch
    assert "dump" not in mgr.calls and not gateway.dumped_at_epoch(epoch)
    gateway.snapshot(fresh=True)
    assert mgr.calls["dump"] == 1 and gateway.dumped_at_epoch(epoch)


def test_what_no_cheap_call_tells_is_seen_before_long() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.extra.update(full_ratio=0.97, backfillfull_ratio=0.96)
    for _ in range(3):                   # epochs that show no change at all
        cluster.epoch += 1
        clock.now += 60.0
        gateway.snapshot()
    assert gateway.snapshot().full_ratio == 0.97
    mgr.calls.clear()
    cluster.extra.update(full_ratio=0.98)
    for minute in range(10):             # epochs that show something
        cluster.epoch += 1
        clock.now += 60.0
        cluster.pg("1.1", [1, 2], acting=[minute % 2 + 3, 2], state="active+remapped")
        gateway.snapshot()
    assert gateway.snapshot().full_ratio == 0.98
    assert mgr.calls["dump"] == 2        # one in five minutes


@pytest.mark.parametrize("looks_apart", [30.0, 200.0, 3600.0])
def test_what_an_operator_sets_between_two_looks_is_seen_though_no_epoch_follows(
        looks_apart: float) -> None:
    """`osd set-backfillfull-ratio` shows in no cheap call, and may make the last epoch for days."""
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    cluster.extra["backfillfull_ratio"] = 0.7
    seconds = 0.0
    while seconds < 130.0:
        clock.now += looks_apart
        seconds += looks_apart
        now(gateway)
    clock.now += looks_apart
    assert gateway.snapshot().backfillfull_ratio == 0.7
    mgr.calls.clear()
    for _ in range(20):   # and once is enough
        clock.now += looks_apart
        now(gateway)
    assert mgr.calls.get("dump", 0) == 0


def test_a_pool_whose_raw_use_is_not_size_by_k_makes_no_dump_each_time() -> None:
    """Plugin lrc: k 4, m 2 and l 3 are 8 shards, and Ceph's figure for them is 1.5."""
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    mgr.raw_used_factor = 0.75
    cluster.epoch += 1
    clock.now += 700.0
    now(gateway)         # a dump, which brings the figure
    mgr.calls.clear()
    for _ in range(4):
        cluster.epoch += 1
        clock.now += 20.0
        now(gateway)
    assert mgr.calls.get("dump", 0) == 0


def test_acting_sets_of_pgs_whose_reports_are_late() -> None:
    """On Ceph 20 statistics may be a minute old: `active+clean` is what was true then."""
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    cluster.pg("1.1", [4, 2], reported=100)                      # no pg_temp yet
    assert not now(gateway).acting
    cluster.epoch += 1
    cluster.pg("1.1", [4, 2], acting=[1, 2], reported=100)       # state as before
    assert now(gateway).acting == {"1.1": (1, 2)}
    cluster.epoch += 1
    cluster.acting.clear()
    cluster.pg("1.1", [4, 2], reported=103)
    assert not now(gateway).acting
    mgr.calls.clear()
    cluster.epoch += 1
    gateway.snapshot()
    assert "pg_to_up_acting_osds" not in mgr.calls               # all is believed


def test_acting_as_ceph_computes_it_not_as_the_map_keeps_it() -> None:
    """pg_temp of EC-optimized pools has the shards that can be primary first."""
    cluster = small()
    cluster.extra.update(pg_temp=[{"pgid": "1.1", "osds": [2, 1]}])
    gateway, _, _ = open_gateway(cluster)
    assert not now(gateway).acting and gateway.snapshot().pgs["1.1"].acting == (1, 2)


def test_without_the_monitor_the_map_is_dumped() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    mgr.monitor_answers = False
    cluster.epoch += 1
    cluster.extra.update(flags="norebalance,sortbitwise")
    assert "norebalance" in gateway.snapshot().flags and mgr.calls["dump"] == 2


def test_holes_of_erasure_coded_pools() -> None:
    cluster = Cluster(hosts(6)).pool(1, size=3, k=2).pg("1.0", [0, 1, 2])
    mgr, clock = FakeMgr(cluster), Clock()
    gateway = Gateway(mgr, clock)
    gateway.snapshot()
    cluster.epoch += 1
    cluster.osd(1, up=0, state=["exists"])
    cluster.pg("1.0", [0, NONE, 2], state="active+undersized")
    assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))


def test_a_failed_look_forgets_nothing() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    foreign_items(cluster)
    mgr.missing = ["osd_stats"]
    with pytest.raises(NotReady):
        gateway.snapshot()
    mgr.missing = []
    assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))


@pytest.mark.parametrize("seed", few(range(4), 2))
def test_random_streams_of_a_simulated_cluster(seed: int, tmp_path: Path) -> None:
    """The module works and others do what they do; at any moment both readings are the same."""
    scenario = random_events.scenario(seed)
    session = clusters.session_of(scenario.cluster, scenario.seed, tmp_path)
    ours = Gateway(session.module, session.module.clock)
    dumps: List[int] = []
    for event in scenario.events:
        line = event.line.replace("TRY ", "")
        if "mgr" in line.split()[:2] or "fail" in line:
            continue
        session.command(line)
        for seconds in (0.0, 20.0, 70.0, 300.0):
            session.host.run_for(seconds)
            before = session.mgr.calls.get("osdmap.dump", 0)
            seen = shown(now(ours))
            dumps.append(session.mgr.calls.get("osdmap.dump", 0) - before)
            wanted = shown(by_a_dump(session.module, session.module.clock))
            for key in ("full_ratio", "backfillfull_ratio", "nearfull_ratio"):
                seen.pop(key), wanted.pop(key)
            assert seen == wanted, line
    session.close()
    assert sum(dumps) < len(dumps) / 2 and max(dumps) <= 1
