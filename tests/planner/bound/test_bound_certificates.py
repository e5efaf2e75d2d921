"""The utilization bound against certificates: maximum flows, closed forms, random clusters."""
from __future__ import annotations

import random
from typing import Dict, List, Tuple

import pytest
from tests.support.clusters.rule_shapes import RULE_SHAPES, make
from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB

from equilibrium_mgr.planner.bound.demand import movable_bytes
from equilibrium_mgr.planner.bound.lower_bound import UtilizationBounds, leveled_bounds
from equilibrium_mgr.snapshot.model import Snapshot, without_shares


def skewed_cluster(seed: int) -> Cluster:
    """Of all shapes of rules, with unequal hosts and OSDs."""
    rng, shapes = random.Random(seed), sorted(RULE_SHAPES)
    cluster = make(shapes[seed % len(shapes)], "plain", seed)
    largest = rng.choice((2, 8, 20))
    for osd in cluster.osds:
        cluster.osd(osd, size=cluster.sizes[osd] * rng.choice((1, 1, 2, largest)))
        if rng.random() < 0.2:   # something that is of no pool
            cluster.osd(osd, used=cluster.used_bytes(osd) + rng.randrange(100 * GIB))
    return cluster


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
        edges = list(self.edges)
        edges += [("source", root, demand) for root, demand in self.demand.items()]
        edges += [(osd, "sink", capacity) for osd, capacity in capacities.items()]
        for tail, head, capacity in edges:
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
        below = [osd for osd in capacities if result.utilizations[osd] < level * (1 - 1e-9)]
        most = rows.flow({**dict.fromkeys(capacities, 0), **dict.fromkeys(below, needed)})
        assert sum(capacities[osd] for osd in below) == pytest.approx(most, abs=slack)


@pytest.mark.parametrize("seed", range(80))
def test_levels_are_the_fairest_possible(seed: int) -> None:
    snapshot = without_shares(skewed_cluster(seed).snapshot())
    assert_certified(snapshot, leveled_bounds(snapshot, movable_bytes(snapshot, frozenset())))
