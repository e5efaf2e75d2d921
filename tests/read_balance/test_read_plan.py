"""The plan that evens out primaries: which PGs, which OSDs, what it tells and how it is kept."""
from __future__ import annotations

import random
from collections import Counter
from typing import Any, Set, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import HOST_RULE, SSD_FIRST

from equilibrium_mgr.plan.model import NO_PRIMARY, PgChange, Plan, plan_from_dict
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.read_balance import read_plan as reads
from equilibrium_mgr.read_balance.read_plan import read_plan
from equilibrium_mgr.snapshot import immovable_reasons as reasons


def uneven(pgs: int = 6) -> Cluster:
    """A pool of two copies of which osd.0 leads every PG."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    for number in range(pgs):
        cluster.pg(f"1.{number:x}", [0, 1 + number % 3])
    return cluster


def primaries(cluster: Cluster, plan: Plan) -> Counter[int]:
    chosen = {change.pgid: change.primary for change in plan.changes
              if change.primary is not None}
    return Counter(chosen.get(pgid, up[0]) for pgid, up in cluster.up.items())


def test_each_osd_gets_its_share() -> None:
    cluster = uneven()
    plan = read_plan(cluster.snapshot())
    assert primaries(cluster, plan) == {0: 3, 1: 1, 2: 1, 3: 1}
    assert plan.kind == "read-balance" and not plan.moves and plan.skipped == {}
    pool, = plan.reads
    assert (pool.pgs, pool.most_before, pool.most_after) == (3, 6, 3)
    assert (pool.score_before, pool.score_after) == (4.0, 2.0)   # 6 and 3 ÷ (6 PGs ÷ 4 OSDs)


def test_a_change_keeps_the_osds_and_tells_its_command() -> None:
    change = read_plan(uneven().snapshot()).changes[0]
    assert change.up_after == (change.primary, 0) and change.up_before == (0, change.primary)
    assert change.shards == 0 and change.items == ()
    assert change.command() == f"ceph osd pg-upmap-primary {change.pgid} {change.primary}"
    assert (change._replace(primary=NO_PRIMARY).command()
            == f"ceph osd rm-pg-upmap-primary {change.pgid}")


def test_it_is_stored_and_read() -> None:
    plan = read_plan(uneven().snapshot())
    assert plan_from_dict(plan.to_dict()) == plan


def test_stored_changes_of_upmap_items_have_no_primary() -> None:
    change = PgChange("1.0", (0, 1), (0, 1), (0, 2), ((1, 2),), 1, 5, 6)
    plan = read_plan(uneven().snapshot())._replace(
        changes=(change, change._replace(uneven=((2, 7),))))
    assert [len(row) for row in plan.to_dict()["changes"]] == [8, 9]
    assert plan_from_dict(plan.to_dict()).changes == plan.changes


@pytest.mark.parametrize("state", [
    "active+undersized+degraded", "active+remapped+backfilling", "peering",
    "active+clean+scrubbing", "active+clean+inconsistent", ""])
def test_only_clean_pgs_are_changed(state: str) -> None:
    cluster = uneven()
    cluster.pg("1.0", [0, 1], state=state)
    plan = read_plan(cluster.snapshot())
    assert "1.0" not in [change.pgid for change in plan.changes]
    assert sum(plan.skipped.values()) == 1


@pytest.mark.parametrize("why", ["down", "out", "affinity", "drained"])
def test_osds_that_are_to_lead_nothing_get_nothing(why: str) -> None:
    cluster = uneven()
    if why == "out":
        cluster.mark_out(1)
    elif why == "down":
        cluster.osd(1, up=0, state=["exists"])
    elif why == "affinity":
        cluster.osd(1, primary_affinity=0.0)
    else:
        cluster.drain(1)
    assert 1 not in primaries(cluster, read_plan(cluster.snapshot()))


def test_a_drained_osd_gives_its_primaries_up() -> None:
    assert primaries(uneven(), read_plan(uneven().drain(0).snapshot())) == {1: 2, 2: 2, 3: 2}


def test_half_an_affinity_is_half_a_share() -> None:
    """osd.0 has 12 of 24 shards: with half an affinity 12·½ of 18."""
    cluster = uneven(12).osd(0, primary_affinity=0.5)
    assert primaries(cluster, read_plan(cluster.snapshot()))[0] == 4


def erasure() -> Cluster:
    return Cluster(hosts(4)).pool(1, size=3, k=2).pg("1.0", [0, 1, 2]).pg("1.1", [0, 1, 3])


def ssd_first() -> Cluster:
    cluster = Cluster(hosts(4), {0: SSD_FIRST}, {0: "ssd", 1: "hdd", 2: "hdd", 3: "hdd"})
    return cluster.pool(1, size=2).pg("1.0", [0, 1]).pg("1.1", [0, 2])


@pytest.mark.parametrize("cluster, reason", [
    (erasure(), reads.NOT_REPLICATED), (ssd_first(), reads.NO_CHOICE_OF_RULE)])
def test_pools_without_choice_are_left_alone(cluster: Cluster, reason: str) -> None:
    plan = read_plan(cluster.snapshot())
    assert plan.changes == () and plan.skipped == {reason: 2} and plan.reads == ()


def with_full_upmap(cluster: Cluster) -> Any:
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [0, 1]}]
    return reasons.FULL_UPMAP


def test_what_others_have_placed_stays() -> None:
    cluster = uneven()
    reason = with_full_upmap(cluster)
    plan = read_plan(cluster.snapshot())
    assert plan.skipped == {reason: 1}
    assert "1.0" not in [change.pgid for change in plan.changes]


def test_a_primary_that_was_set_is_set_anew() -> None:
    cluster = uneven()
    cluster.extra["pg_upmap_primaries"] = [
        {"pgid": pgid, "primary_osd": 0} for pgid in cluster.up]
    assert primaries(cluster, read_plan(cluster.snapshot()))[0] == 3


def test_the_target_of_a_pair_is_not_chosen() -> None:
    """Monitors of Ceph 20 do not keep a primary that CRUSH alone does not choose."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    for number in range(4):
        cluster.pg(f"1.{number}", [0, 1], items=[(2, 1)])
    assert read_plan(cluster.snapshot()).changes == ()


def test_pools_are_limited() -> None:
    cluster = uneven().pool(2, size=2).pg("2.0", [0, 1]).pg("2.1", [0, 1])
    assert {change.pgid[0] for change in read_plan(
        cluster.snapshot(), PlanOptions(pool_ids=frozenset({2}))).changes} == {"2"}


def made(seed: int) -> Tuple[Cluster, int]:
    rng = random.Random(seed)
    cluster = Cluster(hosts(12), {0: HOST_RULE}).pool(1, size=3)
    for number in range(128):
        cluster.pg(f"1.{number:x}", rng.sample(range(12), 3))
    return cluster, 128


@pytest.mark.parametrize("seed", range(5))
def test_random_pools_end_within_one_primary_of_the_share(seed: int) -> None:
    cluster, pgs = made(seed)
    plan = read_plan(cluster.snapshot())
    shards = Counter(osd for up in cluster.up.values() for osd in up)
    for osd, count in primaries(cluster, plan).items():
        assert abs(count - shards[osd] / 3) < 1.0
    assert plan.reads[0].score_after <= plan.reads[0].score_before
    assert plan == read_plan(cluster.snapshot())
    assert len(plan.changes) < pgs // 3


def mixed() -> Cluster:
    """osd.0 and osd.1 are SSDs; osd.0 leads the PGs of both pools."""
    cluster = Cluster(hosts(4), {0: HOST_RULE}, {0: "ssd", 1: "ssd", 2: "hdd", 3: "hdd"})
    for pool, others in ((1, (1, 1, 1)), (2, (2, 3, 2))):
        cluster.pool(pool, size=2)
        for number, other in enumerate(others):
            cluster.pg(f"{pool}.{number}", [0, other])
    return cluster


@pytest.mark.parametrize("options, pools", [
    (PlanOptions(), {"1", "2"}),
    (PlanOptions(device_classes=frozenset({"ssd"})), {"1"}),     # to no HDD
    (PlanOptions(device_classes=frozenset({"hdd"})), set()),     # from no SSD
    (PlanOptions(sources=frozenset({1, 2, 3})), set()),
    (PlanOptions(targets=frozenset({0, 2, 3})), {"2"})])
def test_what_no_shard_may_leave_or_come_to_stays(options: PlanOptions, pools: Set[str]) -> None:
    plan = read_plan(mixed().snapshot(), options)
    assert {change.pgid[0] for change in plan.changes} == pools
    assert plan.skipped == ({reads.NO_OTHER: 6 - 3 * len(pools)} if len(pools) < 2 else {})


def ceph_score(cluster: Cluster) -> float:
    """What Ceph 18 to 20 tell of a pool of which each OSD of the rule has PGs, and no OSD of
    affinity 0 leads any: most primaries ÷ mean, over what that is at best."""
    counts = Counter(up[0] for up in cluster.up.values())
    members = {osd for up in cluster.up.values() for osd in up}
    willing = sum(cluster.osds[osd].get("primary_affinity", 1.0) > 0.0 for osd in members)
    raw = round(max(counts.values()) / (len(cluster.up) / len(members)), 2)
    return round(raw / round(len(members) / willing, 2), 2)


@pytest.mark.parametrize("affinity", [0.0, 0.5, 1.0])
def test_the_score_is_the_one_of_ceph(affinity: float) -> None:
    cluster = uneven(12).osd(3, primary_affinity=affinity)
    assert read_plan(cluster.snapshot()).reads[0].score_before == pytest.approx(
        ceph_score(cluster), abs=0.02)
