"""Random clusters of at most 12 OSDs, small enough for their optima, the same for the same seed."""
from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from tests.benchmark.made.placing import NotEnoughBuckets, Placer
from tests.support.clusters.unit_cluster import Cluster
from tests.support.rules import (
    EC_HDD_HOSTS, EC_PAIRS_IN_2_RACKS, HDD_HOSTS, HDD_OSDS, SSD_HOSTS)
from tests.support.units import GIB

Tree = Dict[str, Any]

_RACKS = "take default~hdd; chooseleaf firstn 0 rack; emit"
_EC_OSDS = "take default~hdd; choose indep 0 osd; emit"
_SIZES: Tuple[Tuple[int, ...], ...] = ((100,), (100, 200), (100, 150, 200), (100, 100, 400))


class PoolShape(NamedTuple):
    """A pool of a layout; `k` is 0 for a replicated one."""

    rule: int
    size: int
    k: int
    pgs: int
    share: float              # of the bytes of its device class, relative to the other pools
    pg_sizes: Tuple[float, ...] = (1.0,)   # what PGs hold, relative to each other


class Layout(NamedTuple):
    """A tree, rules and pools to be filled."""

    kind: str
    tree: Tree
    rules: Dict[int, str]
    pools: List[PoolShape]
    ssds: Sequence[int] = ()


def optimum_cluster(seed: int) -> Tuple[str, Cluster]:
    """The kind and a cluster of it: OSDs of mixed sizes, unequally full, some with upmap items."""
    rng = random.Random(f"optimum {seed}")
    layout = _LAYOUTS[seed % len(_LAYOUTS)](rng)
    osds = sorted(_osds_of(layout.tree))
    choice = rng.choice(_SIZES)
    sizes = {osd: rng.choice(choice) for osd in osds}
    cluster = Cluster({"root default": layout.tree}, layout.rules,
                      {osd: "ssd" for osd in layout.ssds},
                      {osd: size / 100.0 for osd, size in sizes.items()})
    for osd, size in sizes.items():
        cluster.osd(osd, size=size * GIB)
    placer = Placer(cluster.crush, rng)
    with_items = rng.choice((0.0, 0.0, 0.2, 0.5))
    for number, pool in enumerate(layout.pools, start=1):
        cluster.pool(number, size=pool.size, rule=pool.rule, k=pool.k)
        for ps in range(pool.pgs):
            _place(cluster, rng, placer, f"{number}.{ps:x}", pool, with_items)
    _fill(cluster, layout, rng.uniform(0.45, 0.84))
    return layout.kind, cluster


def _place(cluster: Cluster, rng: random.Random, placer: Placer, pgid: str, pool: PoolShape,
           with_items: float) -> None:
    raw = _placed(placer, pool)
    up, items = list(raw), []
    if rng.random() < with_items:
        for other in (_placed(placer, pool) for _ in range(20)):
            # CRUSH's other answer for one position, or for as many as a rack has
            items = [(r, o) for r, o in zip(raw, other) if r != o]
            if items and not {o for _, o in items} & set(raw):
                up = list(other)
                break
            items = []
    cluster.pg(pgid, up, num_bytes=1, items=items, objects=10)


def _placed(placer: Placer, pool: PoolShape) -> List[int]:
    while True:
        try:
            return placer.place(pool.rule, pool.size)
        except NotEnoughBuckets:
            continue


def _fill(cluster: Cluster, layout: Layout, top: float) -> None:
    """Gives PGs their bytes so that the fullest OSD of each class is at `top`."""
    for ssd in {osd in layout.ssds for osd in cluster.osds}:
        shapes = {number: pool for number, pool in enumerate(layout.pools, start=1)
                  if ("~ssd" in layout.rules[pool.rule]) == ssd}
        shard_bytes: Dict[str, float] = {}
        for number, pool in shapes.items():
            for ps in range(pool.pgs):
                shard_bytes[f"{number}.{ps:x}"] = (
                    pool.share / (pool.pgs * pool.size) * pool.pg_sizes[ps % len(pool.pg_sizes)])
        highest = max((sum(size for pgid, size in shard_bytes.items() if osd in cluster.up[pgid])
                       / cluster.sizes[osd] for osd in cluster.osds), default=0.0)
        for pgid, size in shard_bytes.items():
            k = layout.pools[int(pgid.split(".")[0]) - 1].k or 1
            cluster.records[pgid] = cluster.records[pgid]._replace(
                num_bytes=int(size * top / highest) * k)


# -- layouts -----------------------------------------------------------------------------------

def _hosts(counts: Sequence[int], first: int = 0, prefix: str = "h") -> Tree:
    tree: Tree = {}
    for number, count in enumerate(counts):
        tree[f"host {prefix}{number}"] = list(range(first, first + count))
        first += count
    return tree


def _osds_of(branch: Any) -> List[int]:
    if isinstance(branch, dict):
        return [osd for below in branch.values() for osd in _osds_of(below)]
    return list(branch)


def _unequal_pgs(rng: random.Random) -> Tuple[float, ...]:
    """PGs of a pool hold alike, or some of them more."""
    return rng.choice(((1.0,), (1.0,), (0.9, 1.1), (0.85, 1.0)))


def _over_hosts(rng: random.Random) -> Layout:
    """Three copies, or two, over hosts."""
    size = rng.choice((2, 3))
    hosts = rng.randint(size + 1, 6)
    each = 12 // hosts
    counts = [rng.randint(max(1, each - 1), each) for _ in range(hosts)]
    pgs = rng.choice((16, 32, 64))
    return Layout("over hosts", _hosts(counts), {0: HDD_HOSTS},
                  [PoolShape(0, size, 0, pgs, 1.0, _unequal_pgs(rng) if pgs < 64 else (1.0,))])


def _over_osds(rng: random.Random) -> Layout:
    """Copies on any OSDs."""
    return Layout("over OSDs", _hosts([rng.randint(4, 9)]), {0: HDD_OSDS},
                  [PoolShape(0, rng.choice((2, 3)), 0, rng.choice((8, 16, 32)), 1.0,
                             _unequal_pgs(rng))])


def _erasure(rng: random.Random) -> Layout:
    """k+m over hosts, as many as shards or one or two more."""
    k, m = rng.choice(((2, 1), (2, 2), (3, 1), (4, 2)))
    hosts = min(6, k + m + rng.randint(0, 2))
    counts = [rng.randint(1, 12 // hosts) for _ in range(hosts)]
    return Layout("erasure-coded", _hosts(counts), {0: EC_HDD_HOSTS},
                  [PoolShape(0, k + m, k, rng.choice((8, 16, 32)), 1.0, _unequal_pgs(rng))])


def _erasure_over_osds(rng: random.Random) -> Layout:
    k, m = rng.choice(((2, 1), (2, 2), (3, 1)))
    return Layout("erasure-coded over OSDs", _hosts([rng.randint(k + m + 1, 8)]), {0: _EC_OSDS},
                  [PoolShape(0, k + m, k, rng.choice((8, 16)), 1.0, _unequal_pgs(rng))])


def _two_pools(rng: random.Random) -> Layout:
    """PGs of two sizes, of two pools."""
    hosts = rng.randint(4, 6)
    counts = [rng.randint(1, 12 // hosts) for _ in range(hosts)]
    return Layout("two pools", _hosts(counts), {0: HDD_HOSTS}, [
        PoolShape(0, 3, 0, rng.choice((16, 32)), 1.0),
        PoolShape(0, rng.choice((2, 3)), 0, rng.choice((8, 16, 32)), rng.uniform(0.2, 2.0))])


def _mixed_pools(rng: random.Random) -> Layout:
    """A replicated pool beside an erasure-coded one."""
    k, m = rng.choice(((2, 1), (2, 2), (4, 2)))
    hosts = max(4, k + m)
    return Layout("replicated and erasure-coded", _hosts([12 // hosts] * hosts),
                  {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, [
                      PoolShape(1, k + m, k, rng.choice((8, 16)), rng.uniform(0.5, 3.0)),
                      PoolShape(0, 3, 0, rng.choice((8, 16, 32)), 1.0)])


def _three_pools(rng: random.Random) -> Layout:
    """Three small pools of unequal shards."""
    return Layout("three pools", _hosts([rng.randint(1, 2) for _ in range(5)]), {0: HDD_HOSTS}, [
        PoolShape(0, rng.choice((2, 3)), 0, rng.choice((4, 8)), rng.uniform(0.3, 1.0))
        for _ in range(3)])


def _two_classes(rng: random.Random) -> Layout:
    """A pool on each of two device classes."""
    hosts = 4
    return Layout(
        "two classes", _hosts([3] * hosts), {0: HDD_HOSTS, 1: SSD_HOSTS}, [
            PoolShape(0, rng.choice((2, 3)), 0, rng.choice((16, 32)), 1.0, _unequal_pgs(rng)),
            PoolShape(1, 2, 0, rng.choice((8, 16)), 1.0)],
        [osd for osd in range(3 * hosts) if osd % 3 == 0])


def _racks(rng: random.Random) -> Layout:
    """A copy in each rack; racks of unequal hosts."""
    tree: Tree = {}
    for rack in range(rng.randint(3, 4)):
        first = len(_osds_of(tree))
        tree[f"rack r{rack}"] = _hosts([rng.randint(1, 2), 1], first, f"r{rack}h")
    return Layout("racks", tree, {0: _RACKS, 1: HDD_HOSTS}, [
        PoolShape(0, rng.choice((2, 3)), 0, rng.choice((16, 32)), 1.0),
        PoolShape(1, 3, 0, rng.choice((8, 16)), rng.uniform(0.2, 1.0))])


def _rack_pairs(rng: random.Random) -> Layout:
    """Erasure-coded with two shards in each of two of three racks."""
    tree: Tree = {}
    for rack in range(3):
        first = len(_osds_of(tree))
        counts = [rng.randint(1, 2) for _ in range(rng.choice((2, 2, 3)))][:4]
        tree[f"rack r{rack}"] = _hosts(counts if sum(counts) <= 4 else [2, 2], first, f"r{rack}h")
    pools = [PoolShape(0, 4, 2, rng.choice((8, 16, 32)), 1.0)]
    if rng.random() < 0.5:
        pools.append(PoolShape(1, 3, 0, rng.choice((8, 16)), rng.uniform(0.1, 0.5)))
    return Layout("pairs in racks", tree, {0: EC_PAIRS_IN_2_RACKS, 1: HDD_HOSTS}, pools)


def _big_host(rng: random.Random) -> Layout:
    """One host with about as many OSDs as all others together."""
    counts = [1] * rng.randint(3, 5) + [rng.randint(4, 6)]
    return Layout("one big host", _hosts(counts), {0: HDD_HOSTS}, [
        PoolShape(0, rng.choice((2, 3)), 0, rng.choice((16, 32)), 1.0),
        PoolShape(0, 2, 0, rng.choice((8, 16)), rng.uniform(0.2, 1.0))])


def _metadata(rng: random.Random) -> Layout:
    """A pool with nearly all bytes and one with nearly none."""
    return Layout("data and metadata", _hosts([2] * rng.randint(4, 6)), {0: HDD_HOSTS}, [
        PoolShape(0, 3, 0, rng.choice((16, 32)), 1.0),
        PoolShape(0, 3, 0, 16, 0.003)])


_LAYOUTS: Tuple[Callable[[random.Random], Layout], ...] = (
    _over_hosts, _over_osds, _erasure, _erasure_over_osds, _two_pools, _mixed_pools, _three_pools,
    _two_classes, _racks, _rack_pairs, _big_host, _metadata)

#: So many neighboring seeds are of as many kinds.
KINDS = len(_LAYOUTS)
