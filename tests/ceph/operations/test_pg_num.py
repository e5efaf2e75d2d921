"""A pool is merged, and split again, alone and under a full plan; and a pool whose pgp_num is below
its pg_num for good is balanced as any other."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator

import pytest
from tests.support.pg_num import is_to_be_touched

from ..cluster import DaemonCluster
from ..conftest import SLEEP_INTERVAL
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, execute, optimize, ready_plan, wait_ready
from ..harness.map_history import MapHistory

#: Ten minutes each.
pytestmark = pytest.mark.long

POOL, MEBIBYTES, MOST, LEAST = "steps", 400, 64, 48
STEPS_SECONDS = 400
#: Where PGs are remapped all the time, a plan waits for them three times.
PLAN_SECONDS = 120
#: Between two batches: the whole change takes a minute and a half here.
INTERVAL = 20
#: Of the time that the change takes alone, with slots free.
LONGEST_RATIO = 1.1
#: The machine's own share of that: two runs alone differ by as much.
TOLERANCE_RATIO = 0.1


@pytest.fixture(scope="module")
def pool(cluster: DaemonCluster) -> Iterator[Dict[str, Any]]:
    cluster.ceph("equilibrium off")
    workload.make_pool(cluster, POOL, pgs=MOST)
    workload.wait_clean(cluster)
    workload.write(cluster, POOL, MEBIBYTES)
    cluster.set_option("sleep_interval", INTERVAL)
    try:
        yield workload.pool_of(cluster, POOL)
    finally:
        cluster.set_option("sleep_interval", SLEEP_INTERVAL)
        workload.delete_pool(cluster, POOL)


def seconds_to(cluster: DaemonCluster, pg_num: int, plan: str = "") -> float:
    """Sets pg_num, and has a plan made then and executed; the seconds until the mgr has brought
    pg_num and pgp_num there."""
    begun = time.monotonic()
    cluster.mon("osd pool set", pool=POOL, var="pg_num", val=str(pg_num))
    if plan:
        time.sleep(2)   # until the mgr has the map, too
        optimize(cluster, plan)
        wait_ready(cluster, plan, PLAN_SECONDS)
        assert equilibrium(cluster, "execute", plan=plan).rc == 0

    def there() -> bool:
        now = workload.pool_of(cluster, POOL)
        return {now[name] for name in ("pg_num", "pg_num_pending", "pg_placement_num")} == {pg_num}
    wait_for(f"{pg_num} PGs", there, STEPS_SECONDS, pause=0.5)
    took = time.monotonic() - begun
    workload.wait_clean(cluster)
    return took


def moves_of_touched(cluster: DaemonCluster, history: MapHistory) -> Dict[str, int]:
    """PGs that got items although a step was to touch them by the map before → its epoch."""
    found = {}
    for batch in history.additions():
        pools = {one["pool"]: one for one in cluster.mon_json(
            "osd dump", epoch=batch.epoch - 1)["pools"]}
        for pgid in batch.pgids:
            number, ps = pgid.split(".")
            if is_to_be_touched(pools[int(number)], int(ps, 16)):
                found[pgid] = batch.epoch
    return found


def test_a_merge_and_a_split_go_first(
        cluster: DaemonCluster, pool: Dict[str, Any], figure: Callable[[str], None]) -> None:
    alone = {pg_num: seconds_to(cluster, pg_num) for pg_num in (LEAST, MOST)}
    for pg_num in (LEAST, MOST):
        equilibrium(cluster, "reset")
        workload.clear_upmaps(cluster)
        history = MapHistory(cluster)
        begun = time.time()
        took = seconds_to(cluster, pg_num, f"to-{pg_num}")
        during = [batch for batch in history.additions() if batch.at < begun + took]
        wait_for("a plan that is through", lambda: cluster.mgr_json(
            "equilibrium status")["execution"] is None, STEPS_SECONDS, pause=1.0)
        workload.wait_clean(cluster)
        figure(f"to {pg_num} PGs: alone {alone[pg_num]:.0f} s, under a plan {took:.0f} s, in which"
               f" {sum(len(batch.pgids) for batch in during)} PGs got items in {len(during)} maps"
               f" of {len(history.additions())}; then {workload.settled_usage(cluster)}")
        assert moves_of_touched(cluster, history) == {}
        if pg_num == LEAST:   # a split takes half a minute here: its figure is shown alone
            assert took <= (LONGEST_RATIO + TOLERANCE_RATIO) * alone[pg_num]


def test_a_pgp_num_that_is_lower_for_good(
        cluster: DaemonCluster, pool: Dict[str, Any], figure: Callable[[str], None]) -> None:
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    cluster.mon("osd pool set", pool=POOL, var="pgp_num", val="32")
    wait_for("a lower pgp_num", lambda: workload.pool_of(
        cluster, POOL)["pg_placement_num"] == 32, STEPS_SECONDS)
    workload.wait_clean(cluster)
    before = workload.settled_usage(cluster)
    ready_plan(cluster, "low")
    execute(cluster, "low", STEPS_SECONDS)
    workload.wait_clean(cluster)
    moved = [pgid for pgid in workload.upmap_items(cluster)
             if pgid.startswith(f"{pool['pool']}.")]
    now = workload.pool_of(cluster, POOL)
    figure(f"pgp_num 32 of {now['pg_num']}: {len(moved)} PGs of the pool moved,"
           f" {before} -> {workload.settled_usage(cluster)}")
    assert moved and now["pg_placement_num"] == 32 < now["pg_num"]
