"""The utilization bound against certificates: maximum flows, closed forms, random clusters."""
from __future__ import annotations

import random
from typing import Dict, List, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster
from tests.support.few import few
from tests.support.rules import HOST_RULE, OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.crush.placement import PlacementBlock, PlacementRule
from equilibrium_mgr.planner.bound.demand import movable_bytes
from equilibrium_mgr.planner.bound.lower_bound import UtilizationBounds, leveled_bounds
from equilibrium_mgr.snapshot.model import Snapshot

SKEWED_RULES = {
    0: HOST_RULE,
    1: "take default; chooseleaf indep 0 host; emit",
    2: OSD_RULE,
    3: "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit",
    4: "take default; choose indep 3 rack; choose indep 2 osd; emit",
    5: "take default~ssd; chooseleaf firstn 1 host; emit;"
       "take default~hdd; chooseleaf firstn -1 host; emit",
    6: "take r0; chooseleaf firstn 0 host; emit",
    7: "take default~hdd; choose firstn 0 osd; emit"}
SKEWED_SIZES = {0: 3, 1: 5, 2: 2, 3: 4, 4: 6, 5: 3, 6: 2, 7: 2}


def skewed_cluster(seed: int) -> Cluster:
    """Three or four racks, unequal hosts and OSDs, two device classes, one to four pools."""
    rng = random.Random(seed)
    racks: Dict[str, Dict[str, List[int]]] = {}
    osds = 0
    for rack in range(rng.choice((3, 4))):
        for host in range(rng.randint(2, 4)):
            count = rng.randint(2, 5)
            racks.setdefault(f"rack r{rack}", {})[f"host h{rack}-{host}"] = list(
                range(osds, osds + count))
            osds += count
    classes = {osd: "ssd" for osd in range(osds) if rng.random() < 0.3}
    cluster = Cluster({"root default": racks}, SKEWED_RULES, classes)
    largest = rng.choice((2, 8, 20))
    for osd in range(osds):
        cluster.osd(osd, size=100 * GIB * rng.choice((1, 1, 2, largest)))
    for number, rule in enumerate(rng.sample(sorted(SKEWED_RULES), rng.randint(1, 4)), start=1):
        cluster.pool(number, SKEWED_SIZES[rule], rule, k=2 if rule in (1, 4) else 0)
    rules = {pool.id: pool.rule for pool in cluster.snapshot().pools.values()}
    for number, parsed in sorted(rules.items(), key=lambda entry: entry[0]):
        assert parsed is not None
        for ps in range(rng.choice((3, 12))):
            up = random_up(rng, parsed)
            if up:
                cluster.pg(f"{number}.{ps:x}", up, num_bytes=rng.randrange(1, 30 * GIB))
    for osd in range(osds):
        if rng.random() < 0.2:   # something that is of no pool
            cluster.osd(osd, used=cluster.used_bytes(osd) + rng.randrange(GIB))
    return cluster


def random_up(rng: random.Random, rule: PlacementRule) -> List[int]:
    """Some up set that keeps the rule; nothing where chance finds none."""
    for _ in range(200):
        up: List[int] = []
        for block in rule.blocks:
            up += _members(rng, block, sorted(block.weights), 0, block.positions)
        if rule.violation(up) is None:
            return up
    return []


def _members(rng: random.Random, block: PlacementBlock, osds: List[int], level: int,
             count: int) -> List[int]:
    if level == len(block.domains):
        return rng.sample(osds, min(count, len(osds)))
    domain = block.domains[level]
    buckets = sorted({domain.bucket_of[osd] for osd in osds})
    up: List[int] = []
    for bucket in rng.sample(buckets, len(buckets)):
        inside = [osd for osd in osds if domain.bucket_of[osd] == bucket]
        up += _members(rng, block, inside, level + 1,
                       min(count - len(up), domain.shards_per_bucket))
    return up


class Rows:
    """The linear program's rows for every pool and take by themselves: nothing merged."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.size = {o.id: o.size_bytes for o in snapshot.osds.values() if not o.unusable_reason()}
        self.fixed = {osd: snapshot.osds[osd].target_bytes for osd in self.size}
        self.edges: List[Tuple[object, object, int]] = []
        self.demand: Dict[object, int] = {}
        for pool in snapshot.pools.values():
            assert pool.rule is not None
            pgs = [pg for pg in snapshot.pgs.values() if pg.pool == pool.id]
            single = sum(pg.shard_bytes for pg in pgs)
            for number, block in enumerate(pool.rule.blocks):
                root = (pool.id, number)
                osds = [osd for osd in block.weights if osd in self.size]
                self.demand[root] = 0
                for pg in pgs:
                    for osd in block.members(pg.up):
                        if osd in osds:
                            self.demand[root] += pg.shard_bytes
                            self.fixed[osd] -= pg.shard_bytes
                for osd in osds:
                    above: object = root
                    for domain in block.domains:
                        inside = (root, domain.bucket_of[osd])
                        edge = (above, inside, domain.shards_per_bucket * single)
                        if edge not in self.edges:
                            self.edges.append(edge)
                        above = inside
                    self.edges.append((above, osd, single))

    def flow(self, capacities: Dict[int, int]) -> int:
        """The bytes that can be placed if OSDs take so much (Edmonds and Karp)."""
        residual: Dict[object, Dict[object, int]] = {"source": {}, "sink": {}}
        for tail, head, capacity in (
                [("source", root, demand) for root, demand in self.demand.items()] + self.edges
                + [(osd, "sink", capacity) for osd, capacity in capacities.items()]):
            residual.setdefault(tail, {})[head] = capacity
            residual.setdefault(head, {}).setdefault(tail, 0)
        flow = 0
        while True:
            came_from: Dict[object, object] = {"source": None}
            queue: List[object] = ["source"]
            node: object
            for node in queue:
                for head, left in residual[node].items():
                    if left > 0 and head not in came_from:
                        came_from[head] = node
                        queue.append(head)
            if "sink" not in came_from:
                return flow
            path: List[Tuple[object, object]] = []
            node = "sink"
            while node != "source":
                path.append((came_from[node], node))
                node = came_from[node]
            amount = min(residual[tail][head] for tail, head in path)
            for tail, head in path:
                residual[tail][head] -= amount
                residual[head][tail] += amount
            flow += amount

    def capacities(self, utilizations: Dict[int, float]) -> Dict[int, int]:
        return {osd: max(0, round(level * self.size[osd]) - self.fixed[osd])
                for osd, level in utilizations.items() if osd in self.size}


def assert_certified(snapshot: Snapshot, result: UtilizationBounds) -> None:
    """The levels can be reached, and no group of the fullest OSDs could hold less together.

    Together this makes them the lexicographically fairest (Fujishige 1980).
    """
    rows = Rows(snapshot)
    needed = sum(rows.demand.values())
    slack = max(100, needed // 10 ** 9)
    capacities = rows.capacities(result.utilizations)
    assert sum(capacities.values()) == pytest.approx(needed, rel=1e-9, abs=100)
    assert rows.flow(capacities) >= needed - slack
    for level in sorted(set(result.utilizations.values())):
        below = {osd for osd in capacities if result.utilizations[osd] < level * (1 - 1e-9)}
        most = rows.flow({osd: needed if osd in below else 0 for osd in capacities})
        assert sum(capacities[osd] for osd in below) == pytest.approx(most, abs=slack)


@pytest.mark.parametrize("seed", few(range(40), 12))
def test_levels_are_the_fairest_possible(seed: int) -> None:
    snapshot = skewed_cluster(seed).snapshot()
    assert_certified(snapshot, leveled_bounds(snapshot, movable_bytes(snapshot, frozenset())))
