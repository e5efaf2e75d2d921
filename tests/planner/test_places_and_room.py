"""Shapes from the field, made small and by chance: what the bound says, what the module's own check
allows and what a plan reaches are near each other, and what clients can write decides.

The judge counts by itself: no figure of a plan is used.
"""
from __future__ import annotations

import random
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.units import GIB, TIB

from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds, utilization_bounds
from equilibrium_mgr.snapshot.model import Snapshot
from mgr_stub.crush.hashes import NONE
from mgr_stub.crush.mapper import Mapper

#: Rule (of hosts or rooms of OSDs), outer buckets, pool size, k: more places than shards, and each
#: bucket is needed.
PLACES: Dict[str, Tuple[str, int, int, int]] = {
    "three of two rooms of two": (
        "take default; choose firstn 2 room; chooseleaf firstn 2 host; emit", 2, 3, 0),
    "eight of three hosts of three": (
        "take default; choose indep 3 host; choose indep 3 osd; emit", 3, 8, 5),
    "six of two hosts of four": (
        "take default; choose indep 2 host; choose indep 4 osd; emit", 2, 6, 3),
    "eight of three hosts of three, MSR": (
        "msr_indep; take default; choosemsr 3 host; choosemsr 3 osd; emit", 3, 8, 5)}


def crushed(cluster: Cluster, rng: random.Random, pgs: int, shard_gib: float) -> Cluster:
    """PGs of pool 1 where CRUSH puts them by its weights."""
    mapper, pool = Mapper(cluster.crush), cluster.pools[1]
    ups = (mapper.map(0, x, pool["size"], dict.fromkeys(cluster.osds, 0x10000))
           for x in range(20 * pgs))
    whole = [up for up in ups if len(up) == pool["size"] and NONE not in up][:pgs]
    k = int(cluster.profiles.get(pool["erasure_code_profile"], {}).get("k", 1))
    for ps, up in enumerate(whole):
        cluster.pg(f"1.{ps:x}", up,
                   num_bytes=int(k * shard_gib * rng.uniform(0.9, 1.1) * GIB))
    return cluster


def with_places(name: str, seed: int) -> Cluster:
    """Buckets whose OSDs are of unequal sizes, by their number."""
    rule, buckets, size, k = PLACES[name]
    rng = random.Random(f"{name} {seed}")
    each = rng.choice((6, 7, 8))
    sizes = {osd: rng.choice((100, 120)) * (2 if osd < each else 3)
             for osd in range(buckets * each)}
    tree = {f"host h{b}": list(range(b * each, b * each + each)) for b in range(buckets)}
    if "room" in rule:
        tree = {f"room r{b}": {f"host h{b}-{n}": [b * each + n] for n in range(each)}  # type: ignore
                for b in range(buckets)}
    cluster = Cluster({"root default": tree}, {0: rule},
                      weights={osd: count / 100.0 for osd, count in sizes.items()})
    for osd, count in sizes.items():
        cluster.osd(osd, size=count * GIB)
    return crushed(cluster.pool(1, size=size, k=k), rng, 48,
                   0.6 * sum(sizes.values()) / 48 / size)


def highest(snapshot: Snapshot, ups: Dict[str, List[int]]) -> float:
    """Of an OSD, where all PGs are at these."""
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    for pgid, up in ups.items():
        for osd in up:
            used[osd] += snapshot.pgs[pgid].shard_bytes
        for osd in snapshot.pgs[pgid].up:
            used[osd] -= snapshot.pgs[pgid].shard_bytes
    return max(used[osd] / snapshot.osds[osd].size_bytes for osd in used)


def greedy(snapshot: Snapshot) -> float:
    """How low the fullest OSD gets by single moves that the module's own check allows: always off
    the fullest that has one, to the emptiest that takes it."""
    ups = {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()}
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    size = {osd.id: osd.size_bytes for osd in snapshot.osds.values()}
    rule = snapshot.pools[1].rule
    assert rule is not None

    def move() -> bool:
        for source in sorted(used, key=lambda osd: -used[osd] / size[osd])[:6]:
            for target in sorted(used, key=lambda osd: used[osd] / size[osd]):
                for pgid, up in ups.items():
                    there = used[target] + snapshot.pgs[pgid].shard_bytes
                    if (source in up and there / size[target] < used[source] / size[source]
                            and rule.allows(up, up.index(source), target)):
                        used[source] -= snapshot.pgs[pgid].shard_bytes
                        used[target] = there
                        up[up.index(source)] = target
                        return True
        return False
    while move():
        pass
    return highest(snapshot, ups)


@pytest.mark.parametrize("seed", few(range(6), 1))
@pytest.mark.parametrize("name", PLACES)
def test_the_bound_is_of_what_the_module_allows(name: str, seed: int) -> None:
    """Both by moves that its check allows, and by its plans, the fullest OSD comes within a shard
    and a half of it."""
    snapshot = with_places(name, seed).snapshot()
    bound = utilization_bounds(snapshot).highest["hdd"]
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    planned = highest(snapshot, {change.pgid: list(change.up_after) for change in plan.changes})
    near = bound + 1.5 * max(pg.shard_bytes for pg in snapshot.pgs.values()) / min(
        osd.size_bytes for osd in snapshot.osds.values())
    assert highest(snapshot, {}) > near, "nothing to be done"
    assert bound - 1e-9 <= greedy(snapshot) <= near
    assert bound - 1e-9 <= planned <= near


# -- what clients can write ------------------------------------------------------------------------


class Judged(NamedTuple):
    """Before and after a plan: the fullest OSD, and what clients can write until one is full."""

    highest: Tuple[float, float]
    room: Tuple[float, float]
    moved: float


def judged(snapshot: Snapshot, made: Cluster) -> Judged:
    """By the plan's up sets alone; bytes of no shard are full from the beginning."""
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    found: List[Tuple[float, float]] = []
    ups = {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()}
    used = {osd: float(made.used_bytes(osd)) for osd in made.osds}
    for after in ({}, {change.pgid: list(change.up_after) for change in plan.changes}):
        for pgid, up in after.items():
            for osds, sign in ((ups[pgid], -1), (up, 1)):
                for osd in osds:
                    used[osd] += sign * made.shard_bytes(pgid)
        ups.update(after)
        counts = {osd: sum(osd in up for up in ups.values()) for osd in used}
        k = snapshot.pools[1].data_shards
        found.append((max(used[osd] / made.sizes[osd] for osd in used), min(
            (0.95 * made.sizes[osd] - used[osd]) / count * k * len(ups)
            for osd, count in counts.items() if count)))
    (high, room), (high_after, room_after) = found
    return Judged((high, high_after), (room, room_after), plan.bytes)


class Devices(Cluster):
    """OSDs tell what they have allocated for shards, whatever else they use."""

    def osd_stats(self) -> List[Dict[str, Any]]:
        rows = super().osd_stats()
        for row in rows:
            row["statfs"]["allocated"] = self.allocated_bytes(row["osd"])
        return rows


def flat(sizes: Sequence[float], weights: Sequence[float], each: int) -> Cluster:
    """Hosts of OSDs, in TiB; three copies."""
    tree = {f"host h{h}": list(range(h * each, h * each + each))
            for h in range(len(sizes) // each)}
    cluster = Devices({"root default": tree},
                      {0: "take default; chooseleaf firstn 0 host; emit"},
                      weights=dict(enumerate(weights)))
    for osd, size in enumerate(sizes):
        cluster.osd(osd, size=int(size * TIB))
    return cluster.pool(1, size=3)


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_unequal_bytes_of_no_shard_leave_room_for_each(seed: int) -> None:
    """SIZE and used bytes hold a DB device, of which some hosts have more: clients can write nearly
    all that is free, and more than where all are equally full."""
    rng = random.Random(f"fixed {seed}")
    extra = rng.choice((0.6, 1.2, 2.4))
    fixed = [0.1 + (extra if host % 2 else 0.0) for host in range(10) for _ in range(3)]
    sizes = [8.0 + more for more in fixed]
    cluster = crushed(flat(sizes, sizes, 3), rng, 192, 0.42 * 240 * 1024 / 192 / 3)
    for osd, more in enumerate(fixed):
        cluster.osd(osd, used=cluster.used_bytes(osd) + int(more * TIB))
    result = judged(cluster.snapshot(), cluster)
    free = sum(0.95 * size * TIB for size in sizes) - sum(map(cluster.used_bytes, cluster.osds))
    assert result.room[1] >= 0.94 * free / 3 and result.room[1] > result.room[0]


@pytest.mark.parametrize("seed", few([7, 17, 21, 25, 12, 32, *range(7)], 4))
def test_no_move_wins_nothing_where_crush_weights_lag_sizes(seed: int) -> None:
    """OSDs have grown, and the weights of some with them. The bound is not above what is."""
    rng = random.Random(f"lag {seed}")
    hosts = rng.choice((4, 5, 8))
    part = rng.choice((0.5, 0.6, 0.7))
    weights = [part if host % 4 == 3 else 1.0 for host in range(hosts)]
    cluster = crushed(flat([1.0] * hosts, weights, 1), rng, 64,
                      0.7 * sum(weights) * 1024 / 64 / 3)
    snapshot = cluster.snapshot()
    snapshot = snapshot._replace(osds={number: osd._replace(pg_shards=sum(
        number in up for up in cluster.up.values())) for number, osd in snapshot.osds.items()})
    assert any(osd.share < 1.0 for osd in snapshot.osds.values())
    result = judged(snapshot, cluster)
    assert cluster_bounds(snapshot).highest["hdd"] <= result.highest[0] + 1e-9
    assert not result.moved or result.room[1] > result.room[0] or (
        result.highest[1] < result.highest[0])
