"""Counters of clients' operations, and the load of devices by them."""
from __future__ import annotations

import json
from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.tables import rows

from equilibrium_mgr.plan.load import load_ratio, loads_after, loads_of_sets, osd_loads
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.snapshot.loads import (
    PoolCounters, capacities_of, count_operations, pool_loads, relative_speeds)
from equilibrium_mgr.snapshot.model import PoolRates, Snapshot

_SUMS = {"num_read": 10, "num_read_kb": 2, "num_write": 999, "num_write_kb": 3}
#: PG 2.1, of which the mgr does not know all.
_ODD: Any = [
    {"version": "x"}, {"version": 7}, {"reported_epoch": 0}, {"stat_sum": None}]


def pg(pgid: str, **fields: Any) -> Dict[str, Any]:
    return {"pgid": pgid, "version": "12'345", "state": "active+clean", "reported_epoch": 9,
            "stat_sum": _SUMS, **fields}


@pytest.mark.parametrize("odd", _ODD, ids=str)
def test_writes_are_log_versions_of_pools_that_are_known(odd: Dict[str, Any]) -> None:
    found = count_operations([pg("2.0"), pg("2.1", **odd), pg("1.0"), pg("1.1", version="7'5")])
    assert found == {1: PoolCounters(2, 20, 350, 4096, 6144)}


def loaded(device_class: str = "hdd", k: int = 0, rates: str = "0 63 0 0") -> Snapshot:
    """A pool of two PGs on four OSDs. Rates: reads, writes, MiB read, MiB written a second."""
    made = Cluster(hosts(4, 1), classes=dict.fromkeys(range(4), device_class)).pool(1, size=3, k=k)
    seen = made.pg("1.0", [0, 1, 2]).pg("1.1", [0, 2, 3]).osd(3, weight=0.0, **{"in": 0}).snapshot()
    reads, writes, *mib = map(float, rates.split())
    found = PoolRates(reads, writes, *[one * (1 << 20) for one in mib])
    return seen._replace(loads=pool_loads({1: found, 7: found}, seen.pools, seen.osds))


@pytest.mark.parametrize("device_class, k, rates, loads", rows("""
hdd   0  0 63 0 1     0.2 0.1 0.2 0.1
hdd   0  0 1 0 30     0.2 0.1 0.2 0.1
nvme  0  0 4300 0 1   0.2 0.1 0.2 0.1
ssd   0  1 0 240 0    0.2 0.0 0.0 0.0
hdd   2  0 63 0 0     0.4 0.2 0.4 0.2
hdd   2  0 1 0 60     0.2 0.1 0.2 0.1
hdd   2  63 0 1 0     0.2 0.1 0.1 0.0
hdd   2  1 0 60 0     0.2 0.1 0.1 0.0"""))
def test_load_of_osds(device_class: str, k: str, rates: str, loads: str) -> None:
    found = osd_loads(loaded(device_class, int(k), rates))
    assert [found[osd] for osd in range(4)] == pytest.approx(list(map(float, loads.split())))


def test_ratios_now_and_after_a_plan() -> None:
    """osd.3 is out: it counts for no mean."""
    seen = loaded()
    loads = osd_loads(seen)
    sets = loads_of_sets(seen, loads)
    ratios = [load_ratio(seen, loads, sets, osd) for osd in (0, 1, 3)]
    assert ratios == [pytest.approx(1.2), pytest.approx(0.6), None]
    change = PgChange("1.1", (0, 2, 3), (0, 2, 3), (1, 2, 3), ((0, 1),), 0, 0, 1)
    assert loads_after(seen, loads, [change]) == pytest.approx({0: 0.1, 1: 0.2, 2: 0.2, 3: 0.1})
    assert not loads_of_sets(seen, osd_loads(seen._replace(loads={})))


def test_a_slow_device_is_busier() -> None:
    seen = loaded()
    speeds = relative_speeds({0: 100.0, 1: 300.0, 2: 300.0, 3: 9000.0, 77: 1.0}, seen.osds)
    assert speeds == {0: 0.5, 1: 1.0, 2: 1.0, 3: 2.0}
    assert osd_loads(seen._replace(speeds=speeds))[0] == pytest.approx(0.4)


@pytest.mark.parametrize("section, name, value, found", rows("""
osd.3  osd_mclock_max_capacity_iops_ssd  21.5  {3: 21.5}
osd.3  osd_max_backfills                 21.5  {}
osd    osd_mclock_max_capacity_iops_hdd  21.5  {}
osd.x  osd_mclock_max_capacity_iops_hdd  21.5  {}
osd.3  osd_mclock_max_capacity_iops_hdd  0     {}
osd.3  osd_mclock_max_capacity_iops_hdd  nan   {}
osd.3  osd_mclock_max_capacity_iops_hdd  fast  {}"""))
def test_capacities(section: str, name: str, value: str, found: str) -> None:
    text = json.dumps([{"section": section, "name": name, "value": value}])
    assert str(capacities_of(text)) == found
    assert not any(map(capacities_of, ("", "null", "{", "[7]", "[{}]")))
