"""The osdmap between dumps: what others change shows at the next reading."""
from __future__ import annotations

from typing import List, Tuple

import pytest
from tests.gateway.fake_mgr import FakeMgr
from tests.gateway.map_changes import (
    Mutation, by_a_dump, deleted_pool, down, foreign_items, grown_pool, land, move, moved_bucket,
    now,
    open_gateway, out, set_extra, shown, shrunk_pool, small)
from tests.support.clusters.unit_cluster import change_of

from equilibrium_mgr.gateway import up_sets


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
    ("backfill begins",
     lambda c: c.pg("1.1", [4, 2], acting=[1, 2], state="active+remapped"), True),
    ("pg_temp alone", lambda c: c.pg("1.1", [1, 2], acting=[3, 2], state="active+remapped"), False),
    ("nothing that matters", lambda c: None, False),
]


@pytest.mark.parametrize("whole_pools", [64, 0])   # 0: PG by PG, as pools of many PGs are mapped
@pytest.mark.parametrize("name, mutate, dumps", CHANGES, ids=[c[0] for c in CHANGES])
def test_one_look_later_it_is_as_a_dump_has_it(
        name: str, mutate: Mutation, dumps: bool, whole_pools: int,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up_sets, "MAP_WHOLE_POOL_PGS", whole_pools)
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
