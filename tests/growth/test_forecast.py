"""When OSDs are nearfull: by the shards of the pools that grow, and at the bound."""
from __future__ import annotations

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.growth.forecast import (
    Nearfull, Placed, days_at_bound, forecast, members, pg_num_advice)
from equilibrium_mgr.growth.recorder import Growth
from equilibrium_mgr.growth.trend import GROWING, STEADY, Trend
from equilibrium_mgr.plan.usage import shard_counts
from equilibrium_mgr.snapshot.model import Snapshot


def growing(**rates: float) -> Growth:
    """pool1=…, pool2=…, hdd=…: bytes a day."""
    return Growth(10, 0, 1, {int(name[4:]): Trend(GROWING if rate else STEADY, rate)
                             for name, rate in rates.items() if name.startswith("pool")},
                  {name: Trend(GROWING, rate) for name, rate in rates.items()
                   if not name.startswith("pool")})


def placed(snapshot: Snapshot) -> Placed:
    return Placed({osd.id: osd.target_bytes for osd in snapshot.osds.values()}, shard_counts(
        snapshot, ((pg, pg.up) for pg in snapshot.pgs.values())))


def cluster() -> Cluster:
    """OSDs 0 and 1 hold two PGs of pool 1, osd.2 one; osd.3 and osd.2 hold pool 2."""
    made = Cluster(hosts(4)).pool(1, size=2, pg_num=2).pool(2, size=2, pg_num=2)
    made.pg("1.0", [0, 1], 20 * GIB).pg("1.1", [0, 2], 20 * GIB)
    return made.pg("2.0", [3, 2], 10 * GIB).pg("2.1", [3, 2], 10 * GIB)


def test_the_osd_with_most_shards_for_its_space_is_first() -> None:
    snapshot = cluster().snapshot()
    found = forecast(snapshot, growing(pool1=10 * GIB), placed(snapshot))
    assert found.rates == {0: 10 * GIB, 1: 5 * GIB, 2: 5 * GIB}
    first, of_pool = found.first_of([0, 1, 2, 3]), found.first_of_pool(placed(snapshot), 2)
    assert first is not None and of_pool is not None
    assert first.osd == 0 and first.days == pytest.approx(4.5)   # 85 - 40 GiB
    assert found.first_of([3]) is None
    assert of_pool.osd == 2 and of_pool.days == pytest.approx(9.0)


def test_an_osd_that_is_nearfull_has_no_days_left_whether_it_grows_or_not() -> None:
    snapshot = cluster().osd(3, used=86 * GIB).snapshot()
    found = forecast(snapshot, growing(pool1=0.0), placed(snapshot))
    assert found.first_of([0, 1, 2, 3]) == Nearfull(0.0, 3)


def test_of_osds_that_are_nearfull_already_the_fullest_is_named() -> None:
    made = cluster().osd(1, used=87 * GIB).osd(2, used=95 * GIB).osd(3, used=87 * GIB)
    snapshot = made.snapshot()
    found = forecast(snapshot, growing(pool1=0.0), placed(snapshot))
    assert found.first_of([0, 1, 2, 3]) == Nearfull(0.0, 2)
    assert found.first_of([1, 3]) == Nearfull(0.0, 1)


def test_what_shrinks_makes_space() -> None:
    snapshot = cluster().snapshot()
    found = forecast(snapshot, growing(pool1=10 * GIB, pool2=-10 * GIB), placed(snapshot))
    assert found.rates[2] == pytest.approx(-5 * GIB) and 2 not in found.days


@pytest.mark.parametrize("measured, factor", [(30, 1.5), (40, 2.0), (400, 2.0), (1, 0.5)])
def test_what_the_class_takes_in_fact_counts_within_limits(measured: float, factor: float) -> None:
    snapshot = cluster().snapshot()
    found = forecast(snapshot, growing(pool1=10 * GIB, hdd=measured * GIB), placed(snapshot))
    assert found.rates[0] == pytest.approx(factor * 10 * GIB)   # 20 GiB a day by shards


def test_shards_of_erasure_coded_pools_get_a_part_each() -> None:
    made = Cluster(hosts(3)).pool(1, size=3, k=2, pg_num=1).pg("1.0", [0, 1, 2], 10 * GIB)
    snapshot = made.snapshot()
    found = forecast(snapshot, growing(pool1=10 * GIB), placed(snapshot))
    assert found.rates == {0: 5 * GIB, 1: 5 * GIB, 2: 5 * GIB}


def test_days_at_the_bound() -> None:
    snapshot = cluster().snapshot()
    found = forecast(snapshot, growing(pool1=10 * GIB), placed(snapshot))
    # 120 GiB on 400 GiB are even at 30 %; 85 % are 220 GiB more, of which 20 come a day
    assert days_at_bound(snapshot, found, "hdd", 0.30) == pytest.approx(11.0)
    assert days_at_bound(snapshot, found, "hdd", 0.90) == 0.0
    assert days_at_bound(snapshot, found, "hdd", 0.30, (Nearfull(12.0, 3), None)) == 12.0
    assert days_at_bound(snapshot, found, "hdd", None) is None
    assert days_at_bound(snapshot, found, "ssd", 0.5) is None
    assert members(snapshot, "hdd") == [0, 1, 2, 3]


def test_a_drained_osd_is_not_nearfull_first_and_its_data_grows_elsewhere() -> None:
    made = cluster().osd(0, used=84 * GIB).drain(0)
    snapshot = made.snapshot()
    found = forecast(snapshot, growing(pool1=10 * GIB), placed(snapshot))
    first = found.first_of([0, 1, 2, 3])
    assert first is not None and first.osd == 2
    # 164 GiB have to be on three OSDs: 255 are 85 % of them, and 20 come a day
    assert days_at_bound(snapshot, found, "hdd", 164 / 300) == pytest.approx((255 - 164) / 20)


def test_advice_on_pg_num() -> None:
    snapshot = cluster().snapshot()
    where = placed(snapshot)
    advice = pg_num_advice(snapshot, where, 1, 0, 0.0, 0.0)
    assert advice is not None and advice.pg_num == 32   # 40 GiB ÷ 32 are 1.25 % of 100 GiB
    assert advice.shard_ratio == pytest.approx(0.2)
    assert advice.advised_shard_ratio == pytest.approx(0.0125)
    assert advice.ahead_shard_ratio == advice.shard_ratio
    more = pg_num_advice(snapshot, where, 1, 0, 30.0, 4 * GIB)   # 160 GiB by then
    assert more is not None and more.ahead_shard_ratio == pytest.approx(4 * more.shard_ratio)
    assert more is not None and more.pg_num == 128
    limited = pg_num_advice(snapshot, where, 1, 10, 0.0, 0.0)
    assert limited is not None and limited.pg_num == 8
    assert limited.advised_shards_per_osd <= 10 < advice.advised_shards_per_osd
    assert pg_num_advice(snapshot, where, 1, 2, 0.0, 0.0) is None


def test_a_pool_of_small_shards_needs_no_more_pgs() -> None:
    made = Cluster(hosts(3)).pool(1, size=2, pg_num=1).pg("1.0", [0, 1], GIB)
    snapshot = made.snapshot()
    assert pg_num_advice(snapshot, placed(snapshot), 1, 0, 0.0, 0.0) is None
    empty = Cluster(hosts(3)).pool(1, size=2, pg_num=1).pg("1.0", [0, 1], 0).snapshot()
    assert pg_num_advice(empty, placed(empty), 1, 0, 0.0, 0.0) is None
