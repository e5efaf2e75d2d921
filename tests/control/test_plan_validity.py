"""What of a changed cluster makes a plan out of date, and what does not."""
from __future__ import annotations

import random
from typing import Any, Callable, Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB, MIB

from equilibrium_mgr.control.plan_validity import (
    data_change, rest_change, unplanned_change, topology_change, fingerprint_of)
from equilibrium_mgr.execution.osd_traffic import osd_traffic

MIN_GAIN = 0.002


def quiet() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2, name="data").pool(2, size=2)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", [ps % 4, (ps + 1) % 4], num_bytes=10 * GIB)
    return cluster.pg("2.0", [0, 1], num_bytes=GIB)


def change(edit: Callable[[Cluster], Any]) -> Optional[str]:
    after = quiet()
    edit(after)
    return topology_change(fingerprint_of(quiet().snapshot()), fingerprint_of(after.snapshot()))


@pytest.mark.parametrize("edit, said", [
    (lambda c: c.mark_out(2), "osd.2 is out"),
    (lambda c: c.osd(2, weight=0.5), "osd.2 has another weight"),
    (lambda c: c.osds.pop(3), "osd.3 is gone"),
    (lambda c: c.extra.update(crush_version=6), None),
    (lambda c: c.extra.update(nearfull_ratio=0.8), "a full ratio has changed"),
    (lambda c: c.pool(3, size=2).pg("3.0", [0, 1]), "the pools have changed"),
    (lambda c: c.pool(2, size=3), "the pools have changed"),
    (lambda c: c.pool(2, size=2, pg_num_target=8), "the pools have changed")])
def test_topology(edit: Callable[[Cluster], Any], said: Optional[str]) -> None:
    assert change(edit) == said


def test_osd_that_comes_back_in() -> None:
    out = quiet().mark_out(2)
    assert topology_change(fingerprint_of(out.snapshot()),
                           fingerprint_of(quiet().snapshot())) == "osd.2 is in again"


def flapped(cluster: Cluster) -> None:
    cluster.osd(2, up=0, state=["exists"])
    for pgid, up in cluster.up.items():
        cluster.up[pgid] = [osd for osd in up if osd != 2]


@pytest.mark.parametrize("edit", [
    flapped, lambda c: setattr(c, "epoch", 400),
    lambda c: c.osd(2, used=90 * GIB), lambda c: c.pg("1.0", [0, 3])])
def test_no_change_of_the_topology(edit: Callable[[Cluster], Any]) -> None:
    assert change(edit) is None


def test_pg_num_that_changes_step_by_step_is_one_change() -> None:
    first = quiet().pool(1, size=2, pg_num=10, pg_num_target=16)
    second = quiet().pool(1, size=2, pg_num=12, pg_num_target=16)
    assert topology_change(fingerprint_of(first.snapshot()),
                           fingerprint_of(second.snapshot())) is None


def grown(**num_bytes: int) -> Optional[str]:
    after = quiet()
    for pgid, size in num_bytes.items():
        after.records[pgid.replace("_", ".")[1:]] = after.records["1.0"]._replace(num_bytes=size)
    return data_change(fingerprint_of(quiet().snapshot()), fingerprint_of(after.snapshot()),
                       MIN_GAIN)


def test_pools_that_grow_and_shrink() -> None:
    assert grown() is None
    assert grown(p1_0=21 * GIB) == "pool 1 has grown"          # 11 % of 100 GiB and a shard
    assert grown(p1_0=15 * GIB) is None                        # 5 %
    assert grown(p1_0=0, p1_1=8 * GIB) == "pool 1 has shrunk"


def test_small_pool_must_grow_by_a_shard() -> None:
    """A single PG of 1 GiB: to twice its size."""
    assert grown(p2_0=int(1.9 * GIB)) is None and grown(p2_0=3 * GIB) == "pool 2 has grown"


def test_osd_that_was_down_when_the_plan_was_made() -> None:
    down = quiet()
    flapped(down)
    assert data_change(fingerprint_of(down.snapshot()),
                       fingerprint_of(quiet().snapshot()), MIN_GAIN) == "osd.2 is up again"
    assert data_change(fingerprint_of(quiet().snapshot()), fingerprint_of(down.snapshot()),
                       MIN_GAIN) is None


def test_drift() -> None:
    then = fingerprint_of(quiet().osd(1, used=50 * GIB).snapshot())
    little, much = (fingerprint_of(quiet().osd(1, used=int(used * GIB)).snapshot())
                    for used in (50.04, 54))
    assert rest_change(then, little, MIN_GAIN, 0.0) is None
    assert rest_change(then, much, MIN_GAIN, 0.005) == "osd.1 is at 54.0 % instead of 50.0 %"
    assert rest_change(then, fingerprint_of(quiet().osd(1, used=52 * GIB).snapshot()),
                       MIN_GAIN, 0.011) is None
    assert rest_change(then, much, MIN_GAIN, 0.5) is not None   # others swing


@pytest.mark.parametrize("seed", range(40))
def test_noise_of_a_per_cent_never_counts(seed: int) -> None:
    """Of full OSDs, too, and between two noisy moments of which the noise is known."""
    rng = random.Random(seed)

    def noisy() -> Any:
        cluster = quiet()
        for osd in range(4):
            cluster.osd(osd, used=int(95 * GIB * rng.uniform(0.99, 1.01)))
        for pgid, record in cluster.records.items():
            cluster.records[pgid] = record._replace(
                num_bytes=int(record.num_bytes * rng.uniform(0.99, 1.01)))
        return fingerprint_of(cluster.snapshot())
    one, other = noisy(), noisy()
    assert topology_change(one, other) is None
    assert data_change(one, other, MIN_GAIN) is None
    assert rest_change(one, other, MIN_GAIN, 0.95 * 0.02 / 4.0) is None


def many(num_bytes: int) -> Any:
    cluster = Cluster(hosts(4)).pool(1, size=1)
    for ps in range(100):
        cluster.pg(f"1.{ps:x}", [ps % 4], num_bytes=num_bytes)
    return fingerprint_of(cluster.snapshot())


@pytest.mark.parametrize("ratio, said", [
    (1.03, None), (0.96, None), (1.06, "pool 1 has grown"), (0.94, "pool 1 has shrunk")])
def test_a_few_per_cent_of_a_big_pool(ratio: float, said: Any) -> None:
    assert data_change(many(GIB), many(int(GIB * ratio)), MIN_GAIN) == said


def with_small_pool(num_bytes: int, pgs: int = 32) -> Any:
    """Beside a pool that fills OSDs of 100 GiB by a quarter."""
    cluster = Cluster(hosts(4)).pool(1, size=1).pool(2, size=1)
    for ps in range(100):
        cluster.pg(f"1.{ps:x}", [ps % 4], num_bytes=GIB)
    for ps in range(pgs):
        cluster.pg(f"2.{ps:x}", [ps % 4], num_bytes=num_bytes // pgs)
    return fingerprint_of(cluster.snapshot())


@pytest.mark.parametrize("before, after, min_gain, said", [
    (MIB, 2 * MIB, MIN_GAIN, None), (MIB, 100 * MIB, MIN_GAIN, None), (MIB, 2 * MIB, 0.0, None),
    (0, 700 * MIB, MIN_GAIN, None), (0, 900 * MIB, MIN_GAIN, "pool 2 has grown"),
    (0, 900 * MIB, 0.01, None), (900 * MIB, 0, MIN_GAIN, "pool 2 has shrunk")])
def test_change_of_a_small_pool_counts_by_what_it_means_for_osds(
        before: int, after: int, min_gain: float, said: Any) -> None:
    assert data_change(with_small_pool(before), with_small_pool(after), min_gain) == said


def test_few_pgs_make_a_change_felt() -> None:
    """500 MiB in one PG are all on one OSD."""
    one, other = with_small_pool(0, pgs=1), with_small_pool(500 * MIB, pgs=1)
    assert data_change(one, other, MIN_GAIN) == "pool 2 has grown"


def test_pgs_that_somebody_has_let_go_are_worth_a_plan() -> None:
    held = quiet()
    held.extra["pg_upmap"] = [{"pgid": pgid, "osds": up} for pgid, up in list(held.up.items())[:2]]
    then, now = fingerprint_of(held.snapshot()), fingerprint_of(quiet().snapshot())
    assert data_change(then, now, 0.0) == "2 PGs may be moved again"
    assert data_change(now, then, 0.0) is None   # nothing is gained by another plan


def test_omap_that_has_left_and_is_not_free_yet_ends_no_plan() -> None:
    """A plan takes it for free, and so do the utilizations that the plan is compared with."""
    snapshot = quiet().snapshot()
    osd = snapshot.osds[0]
    snapshot = snapshot._replace(osds={**snapshot.osds, 0: osd._replace(
        used_bytes=osd.size_bytes // 2, uncompacted_bytes=osd.size_bytes // 5)})
    assert unplanned_change(fingerprint_of(snapshot), snapshot, osd_traffic(snapshot, {}), (),
                            {}) is None
