"""Random clusters, tiny so that days of them pass in a second: the same for the same numbers."""
from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, Sequence

from tests.benchmark.made.shapes import Layout, Osds, PoolPlan

SSD = "ssd"
_RULES = {
    0: "take default~hdd; chooseleaf firstn 0 host; emit",
    1: "take default~hdd; chooseleaf indep 0 host; emit",
    2: "take default~hdd; chooseleaf firstn 0 rack; emit",
    3: "take default~hdd; choose indep 2 rack; chooseleaf indep 2 host; emit",
    4: "take default~ssd; chooseleaf firstn 0 host; emit",
    5: "take default~ssd; chooseleaf firstn 1 host; emit;"
       "take default~hdd; chooseleaf firstn -1 host; emit",
}
_SIZES_TIB = (0.25, 0.375, 0.5)
#: The fullest OSD's utilization: roomy, usual, and nearfull.
_FILLS = (0.5, 0.7, 0.8, 0.87)
_OMAP_BYTES = 16 << 20


def layout(rng: random.Random) -> Layout:
    """8 to 20 OSDs, 1 to 4 pools with 60 to 250 PGs in all."""
    return rng.choice(_KINDS)(rng)


def with_empty_pgs(rng: random.Random) -> Layout:
    """Such a cluster in which a pool has no data, and PGs of another have none: Ceph has nothing to
    copy of them, and counts nothing of them as misplaced."""
    made = layout(rng)
    place, part = rng.randrange(len(made.pools)), rng.choice((0.1, 0.3, 0.5))
    pools = list(made.pools)
    pools[place] = pools[place]._replace(empty=part)
    likeness = rng.choice(made.pools)
    pools.append(likeness._replace(name="empty", share=0.0, omap_bytes=0,
                                   pg_num=rng.choice((1, 8, 32))))
    return made._replace(pools=pools)


def _replicated(rng: random.Random) -> Layout:
    osds = Osds()
    tree = _hosts(rng, osds, rng.randint(4, 6), (2, 3))
    size = rng.choice((2, 3, 3))
    return _finish(rng, osds, tree, (0,), [
        PoolPlan("rbd", 0.6, rng.choice((64, 96, 128)), size=size),
        PoolPlan("fs", 0.4, rng.choice((16, 32)), size=size),
        PoolPlan("meta", 0.002, 8, omap_bytes=_OMAP_BYTES)][:rng.randint(1, 3)])


def _erasure(rng: random.Random) -> Layout:
    osds = Osds()
    tree = _hosts(rng, osds, rng.randint(5, 7), (2, 2, 3))
    k, m = rng.choice(((2, 1), (2, 2), (3, 1)))
    return _finish(rng, osds, tree, (0, 1), [
        PoolPlan("ec", 0.8, rng.choice((64, 96)), size=k + m, rule=1, k=k),
        PoolPlan("rbd", 0.2, 16)][:rng.randint(1, 2)])


def _racks(rng: random.Random) -> Layout:
    osds = Osds()
    tree = {f"rack r{rack}": _hosts(rng, osds, 2, (2,), f"r{rack}") for rack in range(4)}
    return _finish(rng, osds, tree, (0, 2), [
        PoolPlan("rbd", 0.7, 64, rule=2), PoolPlan("fs", 0.3, 32)][:rng.randint(1, 2)])


def _rack_pairs(rng: random.Random) -> Layout:
    osds = Osds()
    tree = {f"rack r{rack}": _hosts(rng, osds, 3, (1, 2), f"r{rack}") for rack in range(3)}
    return _finish(rng, osds, tree, (0, 3), [
        PoolPlan("ec", 0.8, 64, size=4, rule=3, k=2), PoolPlan("rbd", 0.2, 32)])


def _hybrid(rng: random.Random) -> Layout:
    osds = Osds()
    tree = {f"host h{host}": osds.host([rng.choice(_SIZES_TIB) for _ in range(2)])
            + osds.host([0.25], SSD) for host in range(rng.randint(5, 6))}
    return _finish(rng, osds, tree, (0, 4, 5), [
        PoolPlan("hybrid", 0.5, 64, rule=5), PoolPlan("fast", 0.1, 16, rule=4),
        PoolPlan("cold", 0.4, 48)][:rng.randint(2, 3)])


def _two_classes(rng: random.Random) -> Layout:
    osds = Osds()
    tree = {f"host h{host}": osds.host([rng.choice(_SIZES_TIB) for _ in range(2)])
            + osds.host([0.25, 0.25][:rng.randint(1, 2)], SSD) for host in range(5)}
    return _finish(rng, osds, tree, (0, 4), [
        PoolPlan("cold", 0.8, 64), PoolPlan("fast", 0.2, 32, rule=4),
        PoolPlan("old", 0.1, 16), PoolPlan("meta", 0.002, 8, rule=4, omap_bytes=_OMAP_BYTES)])


_KINDS: Sequence[Callable[[random.Random], Layout]] = (
    _replicated, _replicated, _erasure, _racks, _rack_pairs, _hybrid, _two_classes)


def _hosts(rng: random.Random, osds: Osds, count: int, osds_each: Sequence[int],
           prefix: str = "") -> Dict[str, List[int]]:
    return {f"host {prefix}h{host}": osds.host(
        [rng.choice(_SIZES_TIB) for _ in range(rng.choice(osds_each))]) for host in range(count)}


def _finish(rng: random.Random, osds: Osds, tree: Dict[str, Any], rules: Sequence[int],
            pools: Sequence[PoolPlan]) -> Layout:
    made = osds.layout(tree, {rule: _RULES[rule] for rule in rules}, pools)
    return made._replace(highest_fill=rng.choice(_FILLS))
