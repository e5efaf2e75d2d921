"""The busiest OSDs give load; fullness and the free space of pools come first."""
from __future__ import annotations

from functools import cache
from typing import Mapping

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.clusters.unit_cluster import Cluster
from tests.support.giving_way import Asked
from tests.support.plan_legality import assert_legal

from equilibrium_mgr.plan.load import osd_loads
from equilibrium_mgr.plan.model import Plan, plan_from_dict
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import INTERRUPTED, make_plan
from equilibrium_mgr.planner.state.load_state import LoadState
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot.model import PoolLoad, Snapshot

_LEVELED = PlanOptions(levels_load=True)
#: The last pool of each has few bytes, and most of the load.
_LOADS: Mapping[str, Mapping[int, PoolLoad]] = {
    "uneven": {1: PoolLoad(1.0, 1.0), 2: PoolLoad(2.0, 1.0), 3: PoolLoad(10.0, 30.0)},
    "erasure": {1: PoolLoad(1.0, 1.0), 2: PoolLoad(10.0, 30.0)}}

_DATA_POOLS = {"uneven": ("rbd", "fs"), "erasure": ("ec",)}


@cache
def loaded(name: str) -> Snapshot:
    return snapshot_of(name)._replace(loads=_LOADS[name])


@cache
def leveled(name: str) -> Plan:
    return make_plan(loaded(name), _LEVELED)


def busiest(snapshot: Snapshot, plan: Plan) -> float:
    """As a ratio of the mean, by the up sets that the plan's upmap items give."""
    loads = osd_loads(snapshot, {change.pgid: change.up_after for change in plan.changes})
    return max(loads.values()) * len(snapshot.osds) / sum(loads.values())


@pytest.mark.parametrize("name, less", [("uneven", 0.4), ("erasure", 0.4)])
def test_the_busiest_osd_gives_load_and_nothing_else_is_worse(name: str, less: float) -> None:
    snapshot, plan, without = loaded(name), leveled(name), plan_of_cluster(name)
    assert busiest(snapshot, plan) < busiest(snapshot, without) - less
    assert_legal(snapshot, plan)
    assert plan.load_bytes == plan.bytes - without.bytes
    assert plan_from_dict(plan.to_dict()).load_bytes == plan.load_bytes
    for title, usage in without.after.classes.items():
        assert plan.after.classes[title].max <= usage.max + 1e-9
    for title in _DATA_POOLS[name]:
        least = 0.9995 * without.after.pools[title].free_bytes
        assert plan.after.pools[title].free_bytes >= least


def test_the_same_input_gives_the_same_plan() -> None:
    assert make_plan(loaded("uneven"), _LEVELED) == leveled("uneven")


def test_load_moves_nothing_above_the_limits_of_a_plan() -> None:
    limited = _LEVELED._replace(max_moves=len(plan_of_cluster("uneven").moves))
    assert make_plan(loaded("uneven"), limited).changes == plan_of_cluster("uneven").changes


def test_an_interrupted_plan_is_legal() -> None:
    asked = Asked()
    with giving_way(asked):
        make_plan(loaded("uneven"), _LEVELED)
    with giving_way(Asked(len(asked) * 9 // 10)):
        plan = make_plan(loaded("uneven"), _LEVELED)
    assert plan.stop_reason == INTERRUPTED
    assert_legal(loaded("uneven"), plan)


def test_reads_stay_where_the_raw_mapping_has_the_first_osd() -> None:
    """An OSD of the raw mapping gets its position back, and with it all reads of the PG."""
    cluster = Cluster({"root default": {f"host h{n}": [n] for n in range(4)}},
                      {0: "take default; chooseleaf firstn 0 host; emit"})
    cluster.pool(1, size=2)
    cluster.pg("1.0", [2, 1], items=[(0, 2)])
    state = LoadState(PlacementState(cluster.snapshot(), PlanOptions()))
    assert state.takes_load(0, 2, 3)
    assert not state.takes_load(0, 1, 0)
