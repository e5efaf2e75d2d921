"""What stays where it is, each with its reason, counted."""
from __future__ import annotations

import random
from typing import Any, Dict, Set

import pytest
from mgr_stub.crush.hashes import stable_mod
from mgr_stub.osdmap.osd_map import parent_of
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.rules import HOST_RULE
from tests.support.units import GIB, MIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.immovable_reasons import OMAP_ON_SMALL_OSD
from equilibrium_mgr.snapshot.pools import touched_pgs


def one_pg(size: int = 2, count: int = 4, **pool: Any) -> Cluster:
    return Cluster(hosts(count)).pool(1, size=size, **pool)


def reasons(cluster: Cluster) -> Dict[Any, int]:
    return dict(cluster.snapshot().skipped)


def test_missing_member_of_a_replicated_pg() -> None:
    assert reasons(one_pg().pg("1.0", [0]).pg("1.1", [])) == {"a shard has no OSD": 2}


def test_hole_in_an_erasure_coded_pg() -> None:
    cluster = one_pg(size=3, k=2).pg("1.0", [0, NONE, 2])
    assert reasons(cluster) == {"a shard has no OSD": 1}
    assert cluster.snapshot().pgs["1.0"].shard_bytes >= 0


def in_stretch_mode(**fields: int) -> Dict[str, Any]:
    return {"stretch_mode": {"stretch_mode_enabled": True, **fields}}


_STRETCHED = {"the cluster is in degraded stretch mode": 2}


@pytest.mark.parametrize("extra, found", [
    ({"pg_upmap": [{"pgid": "1.1", "osds": [2, 3]}]}, {"placed by a full pg-upmap": 1}),
    ({"pg_upmap_primaries": [{"pgid": "1.0", "primary_osd": 1}]}, {}),
    (in_stretch_mode(degraded_stretch_mode=1), _STRETCHED),
    (in_stretch_mode(recovering_stretch_mode=1), _STRETCHED),
    (in_stretch_mode(degraded_stretch_mode=0, recovering_stretch_mode=0), {})])
def test_what_the_map_says(extra: Dict[str, Any], found: Dict[str, int]) -> None:
    cluster = one_pg().pg("1.0", "1 0").pg("1.1", "2 3")
    cluster.extra = extra
    assert reasons(cluster) == found


def test_pg_upmap_primary_where_the_rule_gives_each_position_its_osds() -> None:
    cluster = random_cluster(1, hybrid=True)
    before = reasons(cluster)
    pgid = cluster.pgids(4)[0]
    cluster.extra["pg_upmap_primaries"] = [{"pgid": pgid, "primary_osd": cluster.up[pgid][0]}]
    assert reasons(cluster) == {**before, "its primary is set by pg-upmap-primary": 1}


_MERGED, _SPLIT, _ANEW = (
    "it is to be merged", "it is to be split", "CRUSH is to place it anew")


@pytest.mark.parametrize("pool, reason, touched", [
    (dict(pg_num_target=6, pg_placement_num_target=6), _MERGED, "2367"),
    (dict(pg_num_pending=7), _MERGED, "37"),
    (dict(pg_num_target=10, pg_placement_num_target=10), _SPLIT, "01"),
    (dict(pg_placement_num_target=5), _ANEW, "567"),
    (dict(pg_placement_num=5, pg_placement_num_target=8), _ANEW, "567"),
    (dict(pg_placement_num=5, pg_placement_num_target=5), "", ""),   # for good
    (dict(pg_placement_num=5, pg_placement_num_target=5, pg_num_target=10), _SPLIT, "01")])
def test_pgs_that_steps_of_pg_num_will_touch(pool: Dict[str, int], reason: str,
                                             touched: str) -> None:
    """Of a pool of eight."""
    cluster = one_pg(pg_num=8, **pool)
    for ps in range(8):
        cluster.pg(f"1.{ps}", "0 1")
    found = {pg.pgid[2]: pg.immovable.partition(",")[0]
             for pg in cluster.snapshot().pgs.values() if pg.immovable}
    assert found == dict.fromkeys(touched, reason)


def test_pgs_that_no_step_of_pg_num_touches() -> None:
    """Step by step, in any order, nothing is merged, split or placed again but what was told."""
    rng = random.Random(5)
    for _ in range(300):
        now, target = rng.randint(1, 70), rng.randint(1, 70)
        pending = now
        if now > target:
            pending -= rng.randint(0, 1)
        pool = {
            "pg_num": now,
            "pg_num_target": target,
            "pg_num_pending": pending,
            "pg_placement_num": rng.randint(1, pending),
            "pg_placement_num_target": rng.randint(1, target)}
        assert touched_pgs(pool).keys() == seen_touched(pool, rng), pool


def seen_touched(pool: Dict[str, int], rng: random.Random) -> Set[int]:
    """PGs that are touched while pg_num and pgp_num go to their targets one by one."""
    now, pgp, seen = pool["pg_num"], pool["pg_placement_num"], set[int]()
    target, pgp_target = pool["pg_num_target"], pool["pg_placement_num_target"]
    origin = {ps: ps for ps in range(now)}   # PG → the one of the beginning that it was split from
    if pool["pg_num_pending"] < now:
        seen.update((now - 1, parent_of(now - 1)))
    while (now, pgp) != (target, pgp_target):
        if rng.random() < 0.5:
            if now < target:
                origin[now] = origin[parent_of(now)]
                seen.add(origin[now])
                now += 1
            elif now > target and pgp < now:
                now -= 1
                seen.update((origin[now], origin[parent_of(now)]))
        elif pgp != pgp_target:
            after = pgp + (1 if pgp < pgp_target else -1)
            if after <= now:
                moved = [ps for ps in range(now) if stable_mod(ps, pgp) != stable_mod(ps, after)]
                seen.update(ps for ps in moved if origin[ps] == ps)
                pgp = after
    return seen


def test_the_pgs_of_a_cache_tier_move_as_others_do() -> None:
    cluster = one_pg(tier_of=2).pg("1.0", "0 1").pool(2, size=2, tiers=[1]).pg("2.0", "0 1")
    assert reasons(cluster) == {}


def test_missing_rule() -> None:
    cluster = one_pg(rule=9).pg("1.0", "0 1").pool(2, size=2).pg("2.0", "0 1")
    assert reasons(cluster) == {"the pool's CRUSH rule does not exist": 1}


def test_unknown_rule_step_is_a_reason_not_an_error() -> None:
    rules = {0: HOST_RULE, 1: "take default; choosemsr indep 2 host; emit"}
    cluster = Cluster(hosts(4), rules).pool(1, size=2, rule=1).pg("1.0", "0 1")
    cluster.pool(2, size=2).pg("2.0", "0 1")
    assert reasons(cluster) == {
        "CRUSH rule not supported: the rule has the unknown step choosemsr_indep": 1}


def test_erasure_code_profile_without_k() -> None:
    cluster = one_pg(size=3, k=2).pg("1.0", "0 1 2")
    cluster.profiles["profile1"] = {"m": "1"}
    assert reasons(cluster) == {"the pool's erasure-code profile has no k": 1}
    cluster.profiles.clear()
    assert reasons(cluster) == {"the pool's erasure-code profile has no k": 1}


def test_placement_that_the_monitor_would_reject() -> None:
    cluster = Cluster(hosts(3, 2)).pool(1, size=2).pg("1.0", "0 1", items="2>1")
    assert reasons(cluster) == {"the monitor would reject its present placement": 1}


def test_placement_by_crush_that_the_monitor_would_reject() -> None:
    cluster = Cluster(hosts(2, 2)).pool(1, size=2).pg("1.0", "0 1").pg("1.1", "0 2")
    pg = cluster.snapshot().pgs["1.0"]
    assert pg.immovable is not None   # it has no upmap items that could be removed
    assert pg.immovable.action(pg.pgid, "pool1").startswith("nothing;")


def test_placement_that_only_crush_would_not_give() -> None:
    racks = {"root default": {f"rack r{r}": list(range(4 * r, 4 * r + 4)) for r in range(3)}}
    rules = {0: "take default; choose indep 3 rack; choose indep 2 osd; emit"}
    cluster = Cluster(racks, rules).pool(1, size=6, k=4)
    cluster.pg("1.0", "0 1 2 4 5 8").pg("1.1", "0 1 4 5 8 9")
    assert reasons(cluster) == {"its present placement breaks its CRUSH rule": 1}


def test_items_that_do_not_explain_the_up_set() -> None:
    cluster = one_pg(size=3, count=6).pg("1.0", "3 2 0", items="3>2 1>3")
    cluster.mark_out(3)
    assert reasons(cluster) == {
        "its CRUSH mapping cannot be recovered from its upmap items": 1}


def test_shard_on_the_osd_that_another_has_left_does_not_hinder() -> None:
    """osd.0 left position 0 for position 1: an order of the items says this and another move."""
    cluster = one_pg(size=3, k=2, count=6).pg("1.0", "5 0 2", items="0>5 1>0")
    cluster.pg("1.1", "5 1 2", items="0>5")
    assert reasons(cluster) == {}
    assert cluster.snapshot().pgs["1.0"].raw == (0, 1, 2)


def test_pg_of_a_pool_that_is_gone() -> None:
    cluster = one_pg().pg("1.0", "0 1").pg("9.0", "0 1")
    snapshot = cluster.snapshot()
    assert set(snapshot.pgs) == {"1.0"}
    assert dict(snapshot.skipped) == {}


@pytest.mark.parametrize("full", [0, 1])
def test_full_osds_are_relieved_of_omap_though_one_is_small(full: int) -> None:
    cluster = one_pg().osd(0, size=2 * GIB).pg("1.0", "0 1", num_bytes=0, objects=60, omap=25 * MIB)
    for ratio, stay in ((0.5, {OMAP_ON_SMALL_OSD: 1}), (0.9, {})):
        cluster.osd(full, used=int(ratio * cluster.sizes[full]))
        reading = cluster.reading()._replace(min_omap_osd_bytes=50 * GIB)
        assert SnapshotBuilder().build(reading).skipped == stay
