"""Limits on moves and bytes: the plan is the best that so much can do.

What that is tells the planner's own unlimited plan (no beginning of it may be better), and on small
clusters an exhaustive search.
"""
from __future__ import annotations

import random
from itertools import combinations, product
from typing import List, Sequence

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.clusters.unit_cluster import OSD_BYTES, Cluster, single_copies
from tests.support.few import few

from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan

_NAMES = ["demo", "erasure", "hybrid"]


def counting(changes: Sequence[PgChange]) -> int:
    """Shard moves that a limit counts."""
    return sum(change.shards for change in changes if change.shard_bytes)


@pytest.mark.parametrize("seed", few(range(12), 1))
def test_as_good_as_an_exhaustive_search(seed: int) -> None:
    """Single copies on a handful of OSDs: the lowest maximum that one to four moves can reach."""
    rng = random.Random(seed)
    sizes: List[List[int]] = [[], [], [], [], []]
    for on_osd in sizes:
        on_osd += [rng.randint(2, 12) for _ in range(rng.randint(0, 6))]
    cluster = single_copies(*sizes)
    snapshot = cluster.snapshot()
    for limit in (1, 2, 3):
        plan = make_plan(snapshot, PlanOptions(max_moves=limit))
        best = lowest_maximum(cluster, limit)
        assert plan.after.classes["hdd"].max <= best + 0.01, (limit, best)


def lowest_maximum(cluster: Cluster, limit: int) -> float:
    """By trying all sets of moves."""
    shards = [(up[0], cluster.shard_bytes(pgid)) for pgid, up in cluster.up.items()]
    start = [cluster.used_bytes(osd) for osd in cluster.osds]
    best = max(start)
    for some in combinations(shards, limit):
        for targets in product(cluster.osds, repeat=limit):
            used = list(start)
            for (source, size), target in zip(some, targets):
                used[source] -= size
                used[target] += size
            best = min(best, max(used))
    return best / OSD_BYTES


@pytest.mark.parametrize("name", few(_NAMES, 1))
def test_limits_that_are_not_reached_change_nothing(name: str) -> None:
    snapshot, whole = snapshot_of(name), plan_of_cluster(name)
    exact = PlanOptions(max_moves=counting(whole.changes), max_bytes=whole.bytes)
    assert make_plan(snapshot, exact) == whole
    assert whole.stop_reason == "converged"


@pytest.mark.parametrize("options", [PlanOptions(max_moves=0), PlanOptions(max_bytes=0)])
def test_nothing_is_a_limit_too(options: PlanOptions) -> None:
    assert make_plan(snapshot_of("demo"), options).changes == ()
