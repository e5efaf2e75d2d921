"""Failures where shards differ: by their position, by the OSD, and where OSDs are being drained."""
from __future__ import annotations

import random
from typing import Dict, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.clusters.usages import placement_usage
from tests.support.units import GIB

from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.plan.placement import placement
from equilibrium_mgr.what_if.failure import Failure, Recovery, recover

RATIOS = (1.5, 0.0, 1.5)


def optimized(*ratios: float) -> Snapshot:
    """Pool 1 is 2+1, its shards are as large as `ratios` say; pool 2 has two copies. pg_num is no
    power of two."""
    rng = random.Random(3)
    cluster = Cluster(hosts(8)).pool(1, size=3, k=2).pool(2, size=2)
    for ps in range(12):
        cluster.pg(f"1.{ps:x}", rng.sample(range(8), 3), 2 * GIB)
        cluster.pg(f"2.{ps:x}", rng.sample(range(8), 2), GIB)
    snapshot = cluster.snapshot()
    pool = snapshot.pools[1]._replace(is_optimized=bool(ratios), position_ratios=ratios)
    return snapshot._replace(pools={**snapshot.pools, 1: pool})


def without(snapshot: Snapshot, failed: int) -> Tuple[Recovery, Dict[str, Tuple[int, ...]]]:
    """Each shard of the OSD goes to the next one that has none of the PG; with the up sets."""
    mapped: Dict[str, Tuple[int, ...]] = {}
    for pgid, pg in snapshot.pgs.items():
        target = next(osd for osd in range(8) if osd not in (failed, *pg.up))
        mapped[pgid] = tuple(target if osd == failed else osd for osd in pg.up)
    return recover(placement(snapshot), Failure("it", "osd", frozenset({failed})), mapped), mapped


@pytest.mark.parametrize("ratios", [(), RATIOS])
@pytest.mark.parametrize("failed", [0, 5])
def test_the_space_after_a_failure_is_that_of_its_placement(
        ratios: Tuple[float, ...], failed: int) -> None:
    snapshot = optimized(*ratios)
    found, up = without(snapshot, failed)
    after = found.after
    left = snapshot._replace(osds={
        osd: entry for osd, entry in snapshot.osds.items() if osd != failed})
    wanted = placement_usage(left, found.used, [
        (pg, up[pg.pgid]) for pg in snapshot.pgs.values()])
    assert after.room is not None
    assert wanted.room is not None
    assert after.room.limiting_osd == wanted.room.limiting_osd
    assert after.room.bytes == pytest.approx(wanted.room.bytes, rel=1e-9)
    for name, pool in wanted.pools.items():
        assert after.pools[name].free_bytes == pytest.approx(pool.free_bytes, rel=1e-9)
        assert after.pools[name].limiting_osd == pool.limiting_osd


def test_what_is_copied_is_as_large_as_it_is_where_it_goes() -> None:
    cluster = Cluster(hosts(5)).pool(1, size=3, k=2).pg("1.0", "0 1 2", 20 * GIB)
    cluster.pg("1.1", "1 0 2", 20 * GIB).osd(3, used=80 * GIB)
    snapshot = cluster.snapshot()
    pool = snapshot.pools[1]._replace(position_ratios=RATIOS)
    snapshot = snapshot._replace(pools={1: pool})
    found = recover(placement(snapshot), Failure("it", "osd", frozenset({0})),
                    {"1.0": (3, 1, 2), "1.1": (1, 3, 2)})
    assert found.copied_bytes == 15 * GIB
    assert found.copied_shards == 2
    assert found.too_full == {"1.0": 15 * GIB}   # 80 of 90 GiB: the empty shard of the other fits


def test_a_drained_osd_counts_in_all_figures() -> None:
    """CRUSH places on it what is recovered."""
    cluster = Cluster(hosts(4)).pool(1, size=2).pg("1.0", "0 1", 10 * GIB).drain(3)
    placed = placement(cluster.pg("1.1", "3 1", 30 * GIB).snapshot())
    found = recover(placed, Failure("it", "osd", frozenset({0})), {"1.0": (3, 1)})
    assert found.fullest[0] == pytest.approx(0.4)
    assert found.fullest[1] == 3
    assert found.after.classes["hdd"].osds == 3
