"""Made clusters of different shapes: the same for the same seed, filled until an OSD is 87 % full.

Data differs by a few percent from PG to PG, as hashing leaves it; sizes of devices and hosts, pools
and rules make the rest of the difference.
"""
from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from tests.support.clusters.unit_cluster import Cluster
from tests.support.rules import EC_HDD_HOSTS, EC_PAIRS_IN_3_RACKS, HDD_HOSTS, SSD_FIRST, SSD_HOSTS
from tests.support.units import GIB, TIB
from .placing import Placer

SEED = 1
HIGHEST_FILL = 0.87        # utilization of the fullest OSD, a ratio
FIXED_BYTES = 2 * GIB      # what an empty OSD uses
BYTES_PER_OBJECT = 600     # metadata on each OSD that holds a shard of it
_SPREAD = 0.03             # standard deviation of PG sizes inside a pool, a ratio


class PoolPlan(NamedTuple):
    """A pool to fill. `share` is its part of all client data, against the other pools' shares."""

    name: str
    share: float
    pg_num: int
    size: int = 3
    rule: int = 0
    k: int = 0               # of an erasure-coded pool
    omap_bytes: int = 0      # of each PG
    object_bytes: int = 4 << 20
    empty: float = 0.0       # part of its PGs that have no object, a ratio


#: (pool, number of a PG) → its OSDs
Places = Callable[[int, int], List[int]]


class Layout(NamedTuple):
    """A cluster to make, before any data."""

    tree: Mapping[str, Any]  # as crush_maps.crush_map takes it
    tib: Dict[int, float]    # OSD → size of its device in TiB, also its CRUSH weight
    classes: Dict[int, str]  # OSD → device class; hdd where not named
    rules: Dict[int, str]
    pools: Sequence[PoolPlan]
    empty_hosts: Sequence[str] = ()  # just added: upmap items still keep all PGs off them
    highest_fill: float = HIGHEST_FILL


class Osds:
    """Numbers OSDs while hosts are added."""

    def __init__(self) -> None:
        self.tib: Dict[int, float] = {}
        self.classes: Dict[int, str] = {}

    def host(self, sizes: Sequence[float], device_class: str = "hdd") -> List[int]:
        first = len(self.tib)
        for size in sizes:
            self.classes[len(self.tib)] = device_class
            self.tib[len(self.tib)] = float(size)
        return list(range(first, len(self.tib)))

    def drawn(self, rng: random.Random, sizes: Sequence[float], count: int,
              device_class: str = "hdd") -> List[int]:
        """New OSDs of random ones of these sizes."""
        return self.host([rng.choice(sizes) for _ in range(count)], device_class)

    def hosts(self, count: int, host: Callable[[], List[int]], prefix: str = "h") -> Dict[str, Any]:
        return {f"host {prefix}{number}": host() for number in range(count)}

    def layout(self, tree: Mapping[str, Any], rules: Dict[int, str], pools: Sequence[PoolPlan],
               empty_hosts: Sequence[str] = ()) -> Layout:
        """The cluster of these OSDs, with the tree below one root."""
        return Layout({"root default": tree}, self.tib, self.classes, rules, pools, empty_hosts)


def _uneven(rng: random.Random) -> Layout:
    """Unequal hosts and devices, two data pools and one of metadata."""
    osds = Osds()
    tree = osds.hosts(8, lambda: osds.drawn(rng, (4, 8, 12, 16), rng.randint(3, 7)))
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan("rbd", 0.6, 256), PoolPlan("fs", 0.4, 128),
        PoolPlan("meta", 0.002, 16, omap_bytes=64 << 20)])


def _erasure(rng: random.Random) -> Layout:
    """4+2 on six hosts: every host has a shard of every PG."""
    osds = Osds()
    tree = osds.hosts(6, lambda: osds.drawn(rng, (8, 8, 16), 6))
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, [
        PoolPlan("ec", 1.0, 256, size=6, rule=1, k=4),
        PoolPlan("meta", 0.002, 16)])


def _many_pools(rng: random.Random) -> Layout:
    """Two dozen pools of 16 PGs."""
    osds = Osds()
    tree = osds.hosts(8, lambda: osds.drawn(rng, (4, 8), 4))
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan(f"tenant{n}", rng.lognormvariate(0.0, 0.8), 16)
        for n in range(24)])


def _giant(rng: random.Random) -> Layout:
    """One host larger than three copies can fill."""
    osds = Osds()
    tree = osds.hosts(5, lambda: osds.drawn(rng, (4, 8), 4))
    tree["host giant"] = osds.host([12] * 12)
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan("rbd", 0.7, 128), PoolPlan("backup", 0.3, 64)])


def _hybrid(rng: random.Random) -> Layout:
    """Two classes and a pool that is on both."""
    osds = Osds()
    tree = osds.hosts(7, lambda: (
        osds.drawn(rng, (8, 12, 16), 4) + osds.drawn(rng, (4, 8), 2, "ssd")))
    return osds.layout(tree, {0: HDD_HOSTS, 1: SSD_HOSTS, 2: SSD_FIRST}, [
        PoolPlan("mixed", 0.5, 256, rule=2), PoolPlan("cold", 0.35, 128),
        PoolPlan("fast", 0.06, 64, rule=1)])


def _racks(rng: random.Random) -> Layout:
    """Erasure-coded with two shards in each of three of five racks."""
    osds = Osds()
    tree = {}
    for r in range(5):
        tree[f"rack r{r}"] = osds.hosts(
            3, lambda: osds.drawn(rng, (8, 12, 16), rng.randint(3, 4)), f"r{r}h")
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_PAIRS_IN_3_RACKS}, [
        PoolPlan("ec", 0.85, 192, size=6, rule=1, k=4), PoolPlan("rbd", 0.15, 96)])


def _grown(rng: random.Random) -> Layout:
    """A new host, still empty, with upmap items that keep PGs off it."""
    osds = Osds()
    tree = osds.hosts(7, lambda: osds.drawn(rng, (8, 12), 4))
    tree["host new"] = osds.host([16] * 4)
    return osds.layout(tree, {0: HDD_HOSTS}, [PoolPlan("rbd", 0.6, 128), PoolPlan("fs", 0.4, 96)],
                       ["host new"])


SHAPES: Dict[str, Callable[[random.Random], Layout]] = {
    "uneven": _uneven, "erasure": _erasure, "many-pools": _many_pools, "giant": _giant,
    "hybrid": _hybrid, "racks": _racks, "grown": _grown}


def make_cluster(name: str, seed: int = SEED) -> Cluster:
    """The cluster of a shape with its data. Raises KeyError for a name that is none."""
    rng = random.Random(f"{name}/{seed}")
    return fill(SHAPES[name](rng), rng)


def fill(layout: Layout, rng: random.Random,
         places_of: Optional[Callable[[Cluster], Places]] = None) -> Cluster:
    """Places and sizes all PGs of a layout; without `places_of` at random within the rules."""
    cluster = Cluster(layout.tree, layout.rules, layout.classes, layout.tib)
    placer = Placer(cluster.crush, rng)
    places = places_of(cluster) if places_of is not None else None
    empty = _osds_of(layout)
    placed: Dict[str, List[int]] = {}
    weights: Dict[str, float] = {}   # pgid → client data, in shares
    for number, pool in enumerate(layout.pools, start=1):
        cluster.pool(number, size=pool.size, rule=pool.rule, k=pool.k, name=pool.name,
                     pg_num=pool.pg_num)
        for ps in range(pool.pg_num):
            pgid = f"{number}.{ps:x}"
            if places is not None:
                placed[pgid] = places(number, ps)
            else:
                placed[pgid] = placer.place(pool.rule, pool.size)
            weights[pgid] = pool.share / pool.pg_num * max(0.1, rng.gauss(1.0, _SPREAD))
            if pool.empty and rng.random() < pool.empty:
                weights[pgid] = 0.0
    ups = {pgid: _without(raw, empty, placer, cluster) for pgid, raw in placed.items()}
    scale = _bytes_per_share(layout, ups, weights)
    used = dict.fromkeys(layout.tib, FIXED_BYTES)
    for pgid, raw in placed.items():
        up = ups[pgid]
        data = int(weights[pgid] * scale)
        objects = -(-data // _pool_of(layout, pgid).object_bytes)
        cluster.pg(pgid, up, num_bytes=data, objects=objects,
                   omap=_pool_of(layout, pgid).omap_bytes,
                   items=[(r, u) for r, u in zip(raw, up) if r != u])
        for osd in up:
            used[osd] += cluster.shard_bytes(pgid) + objects * BYTES_PER_OBJECT
    for osd, tib in layout.tib.items():
        cluster.osd(osd, size=int(tib * TIB), used=used[osd])
    return cluster


def _osds_of(layout: Layout) -> List[int]:
    """OSDs of the hosts that have just been added."""
    hosts = layout.tree["root default"]
    return [osd for name in layout.empty_hosts for osd in hosts[name]]


def _without(raw: List[int], empty: Sequence[int], placer: Placer, cluster: Cluster) -> List[int]:
    """The mapping with what lies on empty OSDs put on other hosts."""
    if not set(raw) & set(empty):
        return raw
    root, host_of = 0, dict[int, int]()
    for bucket in cluster.crush["buckets"]:
        if bucket["name"] == "default~hdd":
            root = bucket["id"]
        elif bucket["type_name"] == "host" and bucket["name"].endswith("~hdd"):
            host_of.update((item["id"], bucket["id"]) for item in bucket["items"])
    barred = {host_of[osd] for osd in (*raw, *empty)}
    up = list(raw)
    for position, osd in enumerate(raw):
        if osd in empty:
            host = placer.draw(root, "host", 1, barred)[0]
            barred.add(host)
            up[position] = placer.draw(host, "osd", 1, set())[0]
    return up


def _pool_of(layout: Layout, pgid: str) -> PoolPlan:
    return layout.pools[int(pgid.split(".")[0]) - 1]


def _bytes_per_share(layout: Layout, ups: Mapping[str, Sequence[int]],
                     weights: Mapping[str, float]) -> float:
    """Client bytes per share that bring the fullest OSD to its fill, omap aside."""
    load = dict.fromkeys(layout.tib, 0.0)
    for pgid, up in ups.items():
        for osd in up:
            load[osd] += weights[pgid] / (_pool_of(layout, pgid).k or 1)
    return min(layout.highest_fill * tib * TIB / load[osd]
               for osd, tib in layout.tib.items() if load[osd] > 0.0)
