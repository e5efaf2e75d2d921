"""Counters of clients' operations, and the load of devices by them."""
from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import MIB

from equilibrium_mgr.plan.load import (
    load_ratio, loads_after, loads_of_sets, osd_loads, pools_on)
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.snapshot.loads import (
    PoolCounters, capacities_of, count_operations, pool_loads, relative_speeds)
from equilibrium_mgr.snapshot.model import PoolLoad, PoolRates, Snapshot


def row(pgid: str, version: Any = "12'345", **fields: Any) -> Dict[str, Any]:
    sums = {"num_read": 10, "num_read_kb": 2, "num_write": 999, "num_write_kb": 3}
    return {"pgid": pgid, "version": version, "state": "active+clean", "reported_epoch": 9,
            "stat_sum": sums, **fields}


def test_writes_are_log_versions() -> None:
    found = count_operations([row("1.0"), row("1.1", "7'5")])
    assert found == {1: PoolCounters(2, 20, 350, 4096, 6144)}


@pytest.mark.parametrize("odd", [
    row("2.1", state="unknown"), row("2.1", reported_epoch=0), row("2.1", "x"), row("2.1", 7),
    row("2.1", stat_sum={}), row("2.1", stat_sum=None)])
def test_a_pool_with_a_pg_of_unknown_counters_is_left_out(odd: Dict[str, Any]) -> None:
    assert count_operations([row("2.0"), odd, row("1.0")]).keys() == {1}


def cluster(device_class: str = "hdd", k: int = 0) -> Cluster:
    """Two PGs of pool 1 on the OSDs of four hosts."""
    classes = dict.fromkeys(range(4), device_class)
    found = Cluster(hosts(4, 1), classes=classes).pool(1, size=3, k=k)
    return found.pg("1.0", [0, 1, 2]).pg("1.1", [0, 2, 3])


def snapshot_of(made: Cluster, **rates: float) -> Snapshot:
    """With rates of pool 1."""
    seen = made.snapshot()
    given = {"reads": 0.0, "writes": 0.0, "read_bytes": 0.0, "written_bytes": 0.0, **rates}
    return seen._replace(loads=pool_loads({1: PoolRates(**given)}, seen.pools, seen.osds))


@pytest.mark.parametrize("device_class, k, rates, load", [
    ("hdd", 0, dict(writes=63.0, written_bytes=MIB), (0.0, 0.1)),
    ("hdd", 0, dict(writes=1.0, written_bytes=30.0 * MIB), (0.0, 0.1)),
    ("nvme", 0, dict(writes=4300.0, written_bytes=MIB), (0.0, 0.1)),
    ("ssd", 0, dict(read_bytes=240.0 * MIB), (0.1, 0.0)),
    ("hdd", 2, dict(writes=63.0), (0.0, 0.2)),
    ("hdd", 2, dict(writes=1.0, written_bytes=60.0 * MIB), (0.0, 0.1)),
    ("hdd", 2, dict(reads=63.0, read_bytes=MIB), (0.1, 0.0)),
    ("hdd", 2, dict(read_bytes=60.0 * MIB), (0.1, 0.0))])
def test_load_of_a_pg(device_class: str, k: int, rates: Dict[str, float], load: Any) -> None:
    seen = snapshot_of(cluster(device_class, k), **rates)
    reading, writing, *_ = seen.loads[1]
    assert (reading, writing) == pytest.approx(load)


def test_rates_of_a_deleted_pool_are_no_load() -> None:
    seen = cluster().snapshot()
    assert pool_loads({7: PoolRates(1.0, 1.0, 1.0, 1.0)}, seen.pools, seen.osds) == {}


def test_reads_are_served_by_primaries_or_data_shards() -> None:
    found = [osd_loads(cluster(k=k).snapshot()._replace(loads={1: PoolLoad(1.0, 0.1)}))
             for k in (0, 2)]
    assert found[0] == pytest.approx({0: 2.2, 1: 0.1, 2: 0.2, 3: 0.1})
    assert found[1] == pytest.approx({0: 2.2, 1: 1.1, 2: 1.2, 3: 0.1})


def test_load_of_sets_now_and_after_a_plan() -> None:
    seen = snapshot_of(cluster(), writes=63.0)
    loads = osd_loads(seen)
    (now,) = loads_of_sets(seen, loads).values()
    assert (now.mean, now.max_load) == pytest.approx((0.15, 4 / 3))
    change = PgChange("1.1", (0, 2, 3), (0, 2, 3), (1, 2, 3), ((0, 1),), 0, 0, 1)
    after = loads_after(seen, loads, [change])
    assert after == pytest.approx({0: 0.1, 1: 0.2, 2: 0.2, 3: 0.1})
    assert osd_loads(seen, {"1.1": (1, 2, 3)}) == pytest.approx(after)
    assert pools_on(seen, 0) == {1: 1.0}


def test_unknown_load_is_no_load() -> None:
    seen = cluster().snapshot()
    assert osd_loads(seen) == {}
    assert loads_of_sets(seen, {}) == {}
    assert load_ratio(seen, {}, {}, 0) is None


def test_an_osd_that_is_out_has_no_ratio() -> None:
    seen = snapshot_of(cluster().osd(3, weight=0.0, **{"in": 0}), writes=63.0)
    loads = osd_loads(seen)
    sets = loads_of_sets(seen, loads)
    assert load_ratio(seen, loads, sets, 3) is None
    assert load_ratio(seen, loads, sets, 0) == pytest.approx(0.2 / (0.5 / 3))


def test_a_slow_device_is_busier() -> None:
    seen = snapshot_of(cluster(), writes=63.0)
    speeds = relative_speeds({0: 150.0, 1: 300.0, 2: 310.0, 3: 9000.0, 77: 1.0}, seen.osds)
    assert speeds == pytest.approx({0: 0.5, 1: 300 / 305, 2: 310 / 305, 3: 2.0})
    assert osd_loads(seen._replace(speeds=speeds))[0] == pytest.approx(0.4)


def option(section: str, value: str, name: str = "osd_mclock_max_capacity_iops_ssd") -> Any:
    return {"section": section, "name": name, "value": value}


def test_capacities_in_the_configuration() -> None:
    rows: List[Any] = [
        option("osd.3", "21.5"), option("osd", "1"), option("osd.x", "1"), option("mgr.3", "2"),
        option("osd.4", "0"), option("osd.5", "nan"), option("osd.6", "1", "osd_max_backfills")]
    assert capacities_of(json.dumps(rows)) == {3: 21.5}


@pytest.mark.parametrize("text", [
    "", "null", "{", "[7]", "[{}]", "{}", '"x"', json.dumps([option("osd.1", "fast")])])
def test_garbled_configuration_is_none(text: str) -> None:
    assert capacities_of(text) == {}
