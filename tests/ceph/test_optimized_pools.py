"""A pool with `allow_ec_optimizations`: its pg_temp is primary first, and may stay for ever."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator

import pytest

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import (
    equilibrium, execute, is_of_now, ready_plan, shards_in_flight, status)

pytestmark = pytest.mark.releases(20)

POOL, PROFILE = "optimized", "eq42"
MEBIBYTES = 160
NEVER_PRIMARY = (0, 3, 7)
PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def optimized(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """4+2 over ten OSDs, three of which shall not lead."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    cluster.mon("osd erasure-code-profile set", name=PROFILE,
                profile=["k=4", "m=2", "crush-failure-domain=osd"])
    cluster.mon("osd pool create", pool=POOL, pg_num=16, pgp_num=16, pool_type="erasure",
                erasure_code_profile=PROFILE)
    cluster.mon("osd pool application enable", pool=POOL, app="rados")
    cluster.mon("osd pool set", pool=POOL, var="allow_ec_optimizations", val="true")
    workload.wait_clean(cluster)
    workload.write(cluster, POOL, MEBIBYTES)
    for osd in NEVER_PRIMARY:
        cluster.mon("osd primary-affinity", id=osd, weight=0.0)
    workload.wait_clean(cluster)
    yield cluster
    equilibrium(cluster, "off")
    for osd in NEVER_PRIMARY:
        cluster.mon("osd primary-affinity", id=osd, weight=1.0)
    workload.delete_pool(cluster, POOL)
    workload.wait_clean(cluster)


def test_nothing_moves_while_all_is_clean(
        optimized: DaemonCluster, figure: Callable[[str], None]) -> None:
    pool = workload.pool_of(optimized, POOL)["pool"]
    kept = [entry["pgid"] for entry in optimized.mon_json("osd dump")["pg_temp"]]
    seen = looked_at(optimized)
    figure(f"EC-optimized 4+2: pg_temp of {len(kept)} PGs kept while clean, of which "
           f"{sum(pgid.startswith(f'{pool}.') for pgid in kept)} of the pool's 16; "
           f"{shards_in_flight(seen)} in flight, misplaced {seen['misplaced_ratio']}")
    assert any(pgid.startswith(f"{pool}.") for pgid in kept), "affinity left no pg_temp"
    assert shards_in_flight(seen) == 0 and seen["misplaced_ratio"] == 0.0


def test_a_plan_is_carried_out_to_the_predicted_up_sets(
        optimized: DaemonCluster, figure: Callable[[str], None]) -> None:
    plan = ready_plan(optimized, "optimized", pools=[POOL], aim="even")
    assert plan["moves"], plan
    done = execute(optimized, "optimized", PATIENCE_SECONDS)
    workload.wait_clean(optimized)
    up = workload.up_sets(optimized)
    figure(f"EC-optimized 4+2: {len(plan['moves'])} moves of {len(plan['predicted_up'])} PGs, all "
           f"up sets as predicted; {done}")
    assert {pgid: up[pgid] for pgid in plan["predicted_up"]} == plan["predicted_up"]
    assert shards_in_flight(looked_at(optimized)) == 0


def looked_at(cluster: DaemonCluster) -> Dict[str, Any]:
    """The module's status after a look that knows the pool, and that still holds."""
    def fresh() -> Dict[str, Any]:
        now = status(cluster)
        return now if is_of_now(now) else {}
    wait_for("the pool", lambda: equilibrium(cluster, "eval", option=POOL).rc == 0, 60)
    return wait_for("a look of now", fresh, 60)
