"""A pool is merged, and split again, alone and under a full plan; and a pool whose pgp_num is below
its pg_num for good is balanced as any other."""

from __future__ import annotations

import time
from itertools import product
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from tests.support.pg_num import is_to_be_touched

from ..cluster import DaemonCluster
from ..conftest import MAX_MISPLACED, SLEEP_INTERVAL
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, execute, ready_plan, run, status
from ..harness.map_history import MapHistory, seconds_of

#: The first takes half an hour.
pytestmark = pytest.mark.long

POOL, MEBIBYTES, MOST, LEAST = "steps", 400, 64, 48
STEPS_SECONDS = 400
#: Both under a plan and alone, by turns: two runs alone differ by a tenth.
TURNS = 3
#: Between two batches: the whole change takes a minute and a half here.
INTERVAL = 20
#: Of the time that a merge takes alone, with slots free; medians.
LONGEST_RATIO = 1.1


@pytest.fixture(scope="module")
def pool(cluster: DaemonCluster) -> Iterator[Dict[str, Any]]:
    cluster.ceph("equilibrium off")
    workload.make_pool(cluster, POOL, pgs=MOST)
    workload.wait_clean(cluster)
    workload.write(cluster, POOL, MEBIBYTES)
    cluster.set_option("sleep_interval", INTERVAL)
    cluster.set_option("max_misplaced_ratio", 0)   # else moves alone would pass Ceph's own limit
    try:
        yield workload.pool_of(cluster, POOL)
    finally:
        cluster.set_option("sleep_interval", SLEEP_INTERVAL)
        cluster.set_option("max_misplaced_ratio", MAX_MISPLACED)
        workload.delete_pool(cluster, POOL)


def seconds_to(cluster: DaemonCluster, pg_num: int) -> float:
    """Sets pg_num; the seconds until the mgr has brought pg_num and pgp_num there, by the monitor's
    maps."""
    first, begun = int(cluster.mon_json("osd stat")["epoch"]), time.time()
    workload.set_pool(cluster, POOL, "pg_num", pg_num)

    def is_there(now: Dict[str, Any]) -> bool:
        return now["pg_num"] == now["pg_num_pending"] == now["pg_placement_num"] == pg_num
    wait_for(f"{pg_num} PGs", lambda: is_there(workload.pool_of(cluster, POOL)), STEPS_SECONDS)
    epoch = first + 1
    while not is_there(workload.pool_of(cluster, POOL, epoch=epoch)):
        epoch += 1
    return seconds_of(cluster.osd_dump(epoch=epoch)["modified"]) - begun


def moves_of_touched(cluster: DaemonCluster, history: MapHistory) -> Dict[str, int]:
    """PGs that got items although a step was to touch them by the map before → its epoch."""
    found = {}
    for batch in history.additions():
        dump = cluster.osd_dump(epoch=batch.epoch - 1)
        pools = {one["pool"]: one for one in dump["pools"]}
        for pgid in batch.pgids:
            number, ps = pgid.split(".")
            if is_to_be_touched(pools[int(number)], int(ps, 16)):
                found[pgid] = batch.epoch
    return found


def test_a_merge_and_a_split_go_first(
        cluster: DaemonCluster, pool: Dict[str, Any], figure: Callable[[str], None]) -> None:
    """The plan begins first, so that its moves are in flight."""
    took: Dict[Tuple[int, bool], List[float]] = {}
    for _, planned, pg_num in product(range(TURNS), (True, False), (LEAST, MOST)):
        equilibrium(cluster, "reset")
        workload.clear_upmaps(cluster)
        history = MapHistory(cluster)
        if planned:
            ready_plan(cluster, "beside")
            run(cluster, "execute", plan="beside")
            wait_for("its first moves", history.additions, 60)
        took.setdefault((pg_num, planned), []).append(seconds_to(cluster, pg_num))
        during = history.additions()
        wait_for("a plan that is through", lambda: status(cluster)["execution"] is None,
                 STEPS_SECONDS, pause=1.0)
        workload.wait_clean(cluster)
        assert moves_of_touched(cluster, history) == {}
        if planned:
            count = sum(len(batch.pgids) for batch in during)
            figure(f"to {pg_num} PGs: {count} PGs got items in {len(during)} maps before its end,"
                   f" of {len(history.additions())}; then {workload.settled_usage(cluster)}")
    for (pg_num, planned), seconds in took.items():
        figure(f"to {pg_num} PGs, under a plan: {planned}: {list(map(round, seconds))} s")
    # a split takes half a minute here: its figures are shown alone
    assert median(took[LEAST, True]) <= LONGEST_RATIO * median(took[LEAST, False]), took


def test_a_pgp_num_that_is_lower_for_good(
        cluster: DaemonCluster, pool: Dict[str, Any], figure: Callable[[str], None]) -> None:
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    workload.set_pool(cluster, POOL, "pgp_num", 32)
    wait_for("a lower pgp_num",
             lambda: workload.pool_of(cluster, POOL)["pg_placement_num"] == 32, STEPS_SECONDS)
    workload.wait_clean(cluster)
    before = workload.settled_usage(cluster)
    ready_plan(cluster, "low")
    execute(cluster, "low", STEPS_SECONDS)
    workload.wait_clean(cluster)
    prefix = f"{pool['pool']}."
    moved = [pgid for pgid in workload.upmap_items(cluster) if pgid.startswith(prefix)]
    now = workload.pool_of(cluster, POOL)
    figure(f"pgp_num 32 of {now['pg_num']}: {len(moved)} PGs of the pool moved,"
           f" {before} -> {workload.settled_usage(cluster)}")
    assert moved and now["pg_placement_num"] == 32 < now["pg_num"]
