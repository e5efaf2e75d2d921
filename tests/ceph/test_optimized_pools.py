"""A pool with `allow_ec_optimizations`: its pg_temp is primary first, and may stay for ever."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator

import pytest

from .cluster import DaemonCluster
from .daemons import ClusterError, wait_for
from .harness import workload
from .harness.commands import (
    equilibrium, equilibrium_json, execute, is_of_now, ready_plan, shards_in_flight, status,
    stop_and_reset)

pytestmark = pytest.mark.releases(20)

POOL, PROFILE = "optimized", "eq42"
MEBIBYTES = 160
NEVER_PRIMARY = (0, 3, 7)
PATIENCE_SECONDS = 120
PEERED_SECONDS = 60
"""So long at most the module takes a PG for one that may move, after its acting set has changed."""
LOOKS = 3


@pytest.fixture(scope="module")
def optimized(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """4+2 over ten OSDs, three of which shall not lead."""
    stop_and_reset(cluster)
    cluster.mon("osd erasure-code-profile set", name=PROFILE,
                profile=["k=4", "m=2", "crush-failure-domain=osd"])
    workload.make_pool(cluster, POOL, "erasure", 16, PROFILE)
    workload.set_pool(cluster, POOL, "allow_ec_optimizations", "true")
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
    kept = [entry["pgid"] for entry in optimized.osd_dump()["pg_temp"]]
    of_pool = [pgid for pgid in kept if pgid.startswith(f"{pool}.")]
    assert of_pool, "affinity left no pg_temp"
    began = time.time()
    try:
        wait_for("a look in which nothing moves", lambda: is_at_rest(optimized), PEERED_SECONDS)
    except ClusterError:
        moving = equilibrium_json(optimized, "moves")
        pytest.fail(f"moves {moving}, pg_temp of {kept}")
    waited = time.time() - began
    looks = [looked_at(optimized) for _ in range(LOOKS)]
    in_flight = [shards_in_flight(look) for look in looks]
    misplaced = [look["misplaced_ratio"] for look in looks]
    figure(f"EC-optimized 4+2: pg_temp of {len(kept)} PGs kept while clean, of which "
           f"{len(of_pool)} of the pool's 16; nothing in flight after {waited:.0f} s, "
           f"then {in_flight}, misplaced {misplaced}")
    assert in_flight == [0] * LOOKS
    assert misplaced == [0.0] * LOOKS


def test_a_plan_is_carried_out_to_the_predicted_up_sets(
        optimized: DaemonCluster, figure: Callable[[str], None]) -> None:
    plan = ready_plan(optimized, "optimized", pools=[POOL], aim="even")
    assert plan["moves"], plan
    done = execute(optimized, "optimized", PATIENCE_SECONDS)
    workload.wait_clean(optimized)
    up = workload.up_sets(optimized)
    predicted = plan["predicted_up"]
    figure(f"EC-optimized 4+2: {len(plan['moves'])} moves of {len(predicted)} PGs, all up sets as "
           f"predicted; {done}")
    assert {pgid: up[pgid] for pgid in predicted} == predicted
    wait_for("the shards to have arrived", lambda: is_at_rest(optimized), PEERED_SECONDS)


def is_at_rest(cluster: DaemonCluster) -> bool:
    return shards_in_flight(looked_at(cluster)) == 0


def looked_at(cluster: DaemonCluster) -> Dict[str, Any]:
    """The module's status after a look that knows the pool, and that still holds."""
    def fresh() -> Dict[str, Any]:
        now = status(cluster)
        return now if is_of_now(now) else {}
    wait_for("the pool", lambda: equilibrium(cluster, "eval", option=POOL).rc == 0, 60)
    return wait_for("a look of now", fresh, 60)
