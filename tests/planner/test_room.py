"""Shapes from the field, made small and by chance: what clients can write after a plan.

The judge counts by itself: no figure of a plan is used.
"""
from __future__ import annotations

import random
from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.rules import HOST_RULE
from tests.support.units import TIB

from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds
from equilibrium_mgr.snapshot.model import Snapshot
from mgr_stub.crush.mapper import Mapper


class Devices(Cluster):
    """OSDs tell what they have allocated for shards, whatever else they use."""

    def osd_stats(self) -> List[Dict[str, Any]]:
        rows = super().osd_stats()
        for row in rows:
            row["statfs"]["allocated"] = self.allocated_bytes(row["osd"])
        return rows


def made(sizes: Sequence[float], weights: Sequence[float], each: int) -> Cluster:
    """Hosts of as many OSDs each, in TiB, and an empty pool of three copies."""
    osds = list(range(len(sizes)))
    tree = {f"host h{first}": osds[first:first + each] for first in osds[::each]}
    cluster = Devices({"root default": tree}, {0: HOST_RULE}, weights=dict(enumerate(weights)))
    for osd in osds:
        cluster.osd(osd, size=int(sizes[osd] * TIB))
    return cluster.pool(1, size=3)


def crushed(cluster: Cluster, rng: random.Random, pgs: int, stored: float) -> Cluster:
    """So many PGs where CRUSH puts them by its weights, of so many TiB together."""
    mapper, weights = Mapper(cluster.crush), dict.fromkeys(cluster.osds, 0x10000)
    for ps in range(pgs):
        size = stored * TIB / pgs * rng.uniform(0.9, 1.1)
        cluster.pg(f"1.{ps:x}", mapper.map(0, ps, 3, weights), num_bytes=int(size))
    return cluster


class Judged(NamedTuple):
    """A placement: the fullest OSD, and what clients can write until one is full."""

    highest: float
    room: float


def judge(cluster: Cluster, used: Mapping[int, int], ups: Mapping[str, Sequence[int]]) -> Judged:
    counts = Counter(osd for up in ups.values() for osd in up)
    room = [(0.95 * cluster.sizes[osd] - used[osd]) / counts[osd] for osd in counts]
    return Judged(max(used[osd] / cluster.sizes[osd] for osd in used), min(room) * len(ups))


def judged(snapshot: Snapshot, cluster: Cluster) -> List[Judged]:
    """Before and after a plan, by its up sets alone."""
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    used, ups = {osd: cluster.used_bytes(osd) for osd in cluster.osds}, dict(cluster.up)
    before = judge(cluster, used, ups)
    for change in plan.changes:
        for osd in ups[change.pgid]:
            used[osd] -= cluster.shard_bytes(change.pgid)
        for osd in change.up_after:
            used[osd] += cluster.shard_bytes(change.pgid)
        ups[change.pgid] = list(change.up_after)
    return [before, judge(cluster, used, ups)]


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_unequal_bytes_of_no_shard_leave_room_for_each(seed: int) -> None:
    """SIZE and used bytes hold a DB device, of which some hosts have more: clients can write nearly
    all that is free, and more than where all are equally full."""
    rng = random.Random(f"fixed {seed}")
    more = rng.choice((0.7, 1.3, 2.5))
    fixed = [0.1, 0.1, 0.1, more, more, more] * 5
    sizes = [8.0 + size for size in fixed]
    cluster = crushed(made(sizes, sizes, 3), rng, 192, 33.6)
    for osd, size in enumerate(fixed):
        cluster.osd(osd, used=cluster.used_bytes(osd) + int(size * TIB))
    before, after = judged(cluster.snapshot(), cluster)
    free = 0.95 * TIB * sum(sizes) - sum(map(cluster.used_bytes, cluster.osds))
    assert after.room > before.room and after.room >= 0.94 * free / 3


@pytest.mark.parametrize("seed", few([7, 17, 21, 25, 12, 32, *range(7)], 4))
def test_no_move_wins_nothing_where_crush_weights_lag_sizes(seed: int) -> None:
    """OSDs have grown, and the weights of some with them. The bound is not above what is."""
    rng = random.Random(f"lag {seed}")
    hosts = rng.choice((4, 5, 8))
    weights = ([1.0, 1.0, 1.0, rng.choice((0.5, 0.6, 0.7))] * 2)[:hosts]
    cluster = crushed(made([1.0] * hosts, weights, 1), rng, 64, 0.7 * sum(weights) / 3)
    snapshot = cluster.snapshot()
    counts = Counter(osd for up in cluster.up.values() for osd in up)
    osds = {osd.id: osd._replace(pg_shards=counts[osd.id]) for osd in snapshot.osds.values()}
    assert any(osd.share < 1.0 for osd in osds.values())
    snapshot = snapshot._replace(osds=osds)
    before, after = judged(snapshot, cluster)
    assert cluster_bounds(snapshot).highest["hdd"] <= before.highest + 1e-9
    if after != before:
        assert after.room > before.room or after.highest < before.highest
