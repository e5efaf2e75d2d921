"""The osdmap between dumps: what others change is seen at the next look, and dumps are rare."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from tests.gateway.test_gateway import Clock, FakeMgr
from tests.scenarios import clusters, random_events
from tests.support.few import few
from tests.support.unit_cluster import NONE, Cluster, change_of, hosts

from equilibrium_mgr.gateway import osd_map_reader
from equilibrium_mgr.gateway.gateway import Gateway, NotReady
from equilibrium_mgr.snapshot.reading import Reading

Mutation = Callable[[Cluster], object]


def small() -> Cluster:
    cluster = Cluster(hosts(6)).pool(1, size=2, name="rbd").pool(2, size=2, name="data")
    for ps in range(8):
        cluster.pg(f"1.{ps:x}", [ps % 6, (ps + 1) % 6]).pg(f"2.{ps:x}", [ps % 6, (ps + 2) % 6])
    return cluster


def open_gateway(cluster: Cluster) -> Tuple[Gateway, FakeMgr, Clock]:
    mgr, clock = FakeMgr(cluster), Clock()
    gateway = Gateway(mgr, clock)
    gateway.snapshot()
    return gateway, mgr, clock


def shown(reading: Any) -> Dict[str, Any]:
    """What placement follows from."""
    osd_map = reading.osd_map
    plain = ("epoch", "require_min_compat_client", "crush_version", "full_ratio",
             "backfillfull_ratio", "nearfull_ratio", "erasure_code_profiles")
    return {
        **{key: osd_map.get(key) for key in plain},
        "flags": set(osd_map["flags"].split(",")), "crush": reading.crush,
        "osds": sorted((o["osd"], o["up"], o.get("in", 1), o["weight"], sorted(o["state"]))
                       for o in osd_map["osds"]),
        "pools": sorted((p["pool"], p["pool_name"], p["size"], p["crush_rule"], p["pg_num"])
                        for p in osd_map["pools"]),
        "items": {e["pgid"]: [(m["from"], m["to"]) for m in e["mappings"]]
                  for e in osd_map["pg_upmap_items"]},
        "up": dict(reading.up), "acting": dict(reading.acting or {})}


def now(gateway: Gateway) -> Reading:
    gateway.snapshot()
    reading = gateway.last_reading()
    assert reading is not None
    return reading


def by_a_dump(mgr: Any, clock: Any) -> Reading:
    """What a gateway reads that knows nothing yet."""
    return now(Gateway(mgr, clock))


def set_extra(**values: Any) -> Mutation:
    return lambda cluster: cluster.extra.update(values)


def grown_pool(cluster: Cluster) -> None:
    cluster.pools[1].update(pg_num=9)
    cluster.pg("1.8", [4, 5])


def shrunk_pool(cluster: Cluster) -> None:
    cluster.pools[2].update(pg_num=7)
    del cluster.up["2.7"], cluster.records["2.7"]


def deleted_pool(cluster: Cluster) -> None:
    del cluster.pools[2]


def moved_bucket(cluster: Cluster) -> None:
    """The up sets stay what they are: only the version tells."""
    cluster.crush = dict(cluster.crush, buckets=list(reversed(cluster.crush["buckets"])))
    cluster.extra.update(crush_version=6)


def out(cluster: Cluster) -> None:
    cluster.osd(3, weight=0.0)
    cluster.osds[3]["in"] = 0


def down(cluster: Cluster) -> None:
    cluster.osd(3, up=0, state=["exists"])
    for pgid, osds in cluster.up.items():
        cluster.up[pgid] = [osd for osd in osds if osd != 3]


def foreign_items(cluster: Cluster) -> None:
    cluster.pg("1.0", [5, 1], items=[(0, 5)])


def replaced_items(cluster: Cluster) -> None:
    foreign_items(cluster)
    cluster.items["1.0"] = [(0, 5)]


#: Everything that can change behind the module's back: (how, whether a dump is needed to see it).
CHANGES: List[Tuple[str, Mutation, bool]] = [
    ("foreign upmap", foreign_items, True),
    ("pool created", lambda c: c.pool(3, size=2, name="new").pg("3.0", [0, 1]), True),
    ("pool deleted", deleted_pool, True),
    ("pool renamed", lambda c: c.pools[1].update(pool_name="other"), True),
    ("pool's size", lambda c: c.pools[1].update(size=3), True),
    ("pg_num up", grown_pool, True),
    ("pg_num down", shrunk_pool, True),
    ("flags set", set_extra(flags="noout,norebalance,sortbitwise"), False),
    ("min_compat_client", set_extra(require_min_compat_client="jewel"), False),
    ("OSD out", out, True),
    ("OSD down", down, False),
    ("reweight", lambda c: c.osd(2, weight=0.3), True),
    ("primary affinity", lambda c: c.osd(2, primary_affinity=0.0), True),
    ("OSD destroyed", lambda c: c.osd(2, up=0, state=["exists", "destroyed"]), True),
    ("crush move", moved_bucket, True),
    ("backfill begins", lambda c: c.pg("1.1", [4, 2], acting=[1, 2], state="active+remapped"), True),
    ("pg_temp alone", lambda c: c.pg("1.1", [1, 2], acting=[3, 2], state="active+remapped"), False),
    ("nothing that matters", lambda c: None, False),
]


@pytest.mark.parametrize("whole_pools", [64, 0])   # 0: PG by PG, as pools of many PGs are mapped
@pytest.mark.parametrize("name, mutate, dumps", CHANGES, ids=[c[0] for c in CHANGES])
def test_one_look_later_it_is_as_a_dump_has_it(
        name: str, mutate: Mutation, dumps: bool, whole_pools: int,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osd_map_reader, "MAP_WHOLE_POOL_PGS", whole_pools)
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    mutate(cluster)
    mgr.calls.clear()
    clock.now += 60.0
    seen = now(gateway)
    assert mgr.calls.get("dump", 0) == int(dumps)
    assert shown(seen) == shown(by_a_dump(mgr, clock))


@pytest.mark.parametrize("name, mutate, _dumps", CHANGES, ids=[c[0] for c in CHANGES])
def test_and_when_it_is_undone(name: str, mutate: Mutation, _dumps: bool) -> None:
    changed, before = small(), small()
    changed.epoch, before.epoch = 101, 102
    mutate(changed)
    gateway, mgr, clock = open_gateway(small())
    for mgr.cluster in (changed, before):
        clock.now += 60.0
        if name == "crush move" and mgr.cluster is before:
            before.extra["crush_version"] = 7
        assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))


def test_an_osd_comes_up_without_a_dump() -> None:
    cluster = small()
    down(cluster)
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    cluster.osd(3, up=1, state=["exists", "up"])
    cluster.up = small().up
    mgr.calls.clear()
    seen = now(gateway)
    assert "dump" not in mgr.calls and shown(seen) == shown(by_a_dump(mgr, clock))


@pytest.mark.parametrize("is_seen_down", [False, True])
def test_an_osd_that_was_down_meanwhile_has_missed_writes(is_seen_down: bool) -> None:
    """Its PG moves by its log: Ceph calls it degraded anyway, only the OSD's restart tells."""
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    change = move(cluster, "1.0", [3, 1])
    gateway.collect_replies(gateway.submit_upmaps([change]), 0.0)
    cluster.epoch += 1
    cluster.pg("1.0", [3, 1], items=change.items, state="active+recovering+degraded",
               reported=cluster.epoch)
    assert gateway.snapshot().pool_states[1].degraded == 0
    if is_seen_down:
        cluster.epoch += 1
        cluster.osd(0, up=0, state=["exists"])
        gateway.snapshot()
    cluster.epoch += 2
    cluster.osd(0, up=1, up_from=cluster.epoch, state=["exists", "up"])
    cluster.pg("1.0", [3, 1], items=change.items, state="active+recovering+degraded",
               reported=cluster.epoch)
    mgr.calls.clear()
    assert gateway.snapshot().pool_states[1].degraded == 1
    reading = gateway.last_reading()
    assert reading is not None and "dump" not in mgr.calls
    assert [o["up_from"] for o in reading.osd_map["osds"] if o["osd"] == 0] == [cluster.epoch]
def test_a_stretched_cluster_may_be_degraded_when_an_osd_is_down() -> None:
    cluster = small()
    cluster.extra.update(stretch_mode={"stretch_mode_enabled": True, "degraded_stretch_mode": 0})
    gateway, mgr, _ = open_gateway(cluster)
    cluster.epoch += 1
    down(cluster)
    cluster.extra.update(stretch_mode={"stretch_mode_enabled": True, "degraded_stretch_mode": 1})
    gateway.snapshot()
    assert mgr.calls["dump"] == 2


def test_a_foreign_upmap_hides_behind_no_osd_that_goes_down() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    down(cluster)
    foreign_items(cluster)
    assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))


def move(cluster: Cluster, pgid: str, after: List[int]) -> Any:
    return change_of(pgid, cluster.up[pgid], after)


def land(cluster: Cluster, change: Any) -> None:
    cluster.pg(change.pgid, change.up_after, items=change.items, state="active+remapped",
               acting=change.up_before)


def test_our_own_upmaps_need_no_dump() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    batch = [move(cluster, "1.0", [5, 1]), move(cluster, "2.1", [1, 5])]
    mgr.calls.clear()
    gateway.send(batch, 30.0)
    cluster.epoch += 1
    for change in batch:
        land(cluster, change)
    seen = now(gateway)
    assert "dump" not in mgr.calls
    assert shown(seen) == shown(by_a_dump(mgr, clock))
    assert gateway.snapshot().upmap_items["1.0"] == ((0, 5),)
    cluster.epoch += 1                   # and it goes back
    back = change_of("1.0", [0, 1], [0, 1], before=[5, 1])
    gateway.send([back], 30.0)
    cluster.items.clear()
    cluster.items["2.1"] = [(3, 5)]
    cluster.acting.clear()
    cluster.pg("1.0", [0, 1])
    mgr.calls.clear()
    assert "1.0" not in gateway.snapshot().upmap_items and "dump" not in mgr.calls


@pytest.mark.parametrize("kept", [0, 1])
def test_a_batch_that_is_not_kept_in_full_is_looked_up(kept: int) -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    batch = [move(cluster, "1.0", [5, 1]), move(cluster, "2.1", [1, 5])]
    gateway.send(batch, 30.0)
    cluster.epoch += 1
    for change in batch[:kept]:
        land(cluster, change)
    mgr.calls.clear()
    assert shown(now(gateway)) == shown(by_a_dump(FakeMgr(cluster), clock))
    assert mgr.calls["dump"] == 1
    cluster.epoch += 1                   # and what comes late is found
    land(cluster, batch[1])
    assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))


def test_somebody_else_is_faster_than_our_batch() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    gateway.send([move(cluster, "1.0", [5, 1])], 30.0)
    cluster.epoch += 1
    cluster.pg("1.0", [0, 4], items=[(1, 4)])
    assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))


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
