"""Made clusters of different shapes: the same for the same seed, filled until an OSD is 87 % full.

Data differs by a few percent from PG to PG, as hashing leaves it; sizes of devices and hosts, pools
and rules make the rest of the difference.
"""
from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from tests.support.clusters.unit_cluster import Cluster
from tests.support.rules import EC_HDD_HOSTS, HDD_HOSTS, SSD_HOSTS
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


class Shape(NamedTuple):
    description: str
    layout: Callable[[random.Random], Layout]


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

    def layout(self, tree: Mapping[str, Any], rules: Dict[int, str], pools: Sequence[PoolPlan],
               empty_hosts: Sequence[str] = ()) -> Layout:
        """The cluster of these OSDs, with the tree below one root."""
        return Layout({"root default": tree}, self.tib, self.classes, rules, pools, empty_hosts)


def _metadata_pools(rule: int = 0) -> List[PoolPlan]:
    return [PoolPlan("cephfs_meta", 0.002, 32, rule=rule, omap_bytes=64 << 20),
            PoolPlan("rgw.index", 0.0005, 32, rule=rule, omap_bytes=256 << 20),
            PoolPlan(".mgr", 0.00002, 1, rule=rule)]


def _uneven_hosts(rng: random.Random) -> Layout:
    osds = Osds()
    hosts = {f"host h{h}": osds.host([rng.choice((4, 8, 12, 16))
                                        for _ in range(rng.randint(4, 12))]) for h in range(12)}
    pools = [PoolPlan("rbd", 0.6, 1024), PoolPlan("cephfs_data", 0.4, 512)]
    return Layout({"root default": hosts}, osds.tib, osds.classes, {0: HDD_HOSTS},
                  pools + _metadata_pools())


def _ec_tight(rng: random.Random) -> Layout:
    osds = Osds()
    hosts = {f"host h{h}": osds.host([rng.choice((8, 8, 16)) for _ in range(10)])
             for h in range(6)}
    pools = [PoolPlan("ec", 1.0, 1024, size=6, rule=1, k=4)]
    return Layout({"root default": hosts}, osds.tib, osds.classes,
                  {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, pools + _metadata_pools())


def _many_pools(rng: random.Random) -> Layout:
    osds = Osds()
    hosts = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(8)]) for h in range(10)}
    pools = [PoolPlan(f"tenant{n}", rng.lognormvariate(0.0, 0.8), 32) for n in range(120)]
    return Layout({"root default": hosts}, osds.tib, osds.classes, {0: HDD_HOSTS}, pools)


def _giant_host(rng: random.Random) -> Layout:
    osds = Osds()
    hosts = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(6)]) for h in range(5)}
    hosts["host giant"] = osds.host([12] * 24)
    pools = [PoolPlan("rbd", 0.7, 512), PoolPlan("backup", 0.3, 256)]
    return Layout({"root default": hosts}, osds.tib, osds.classes, {0: HDD_HOSTS},
                  pools + _metadata_pools())


def _hybrid(rng: random.Random) -> Layout:
    osds = Osds()
    hosts = {}
    for h in range(10):
        hosts[f"host h{h}"] = (osds.host([rng.choice((8, 12, 16)) for _ in range(8)])
                                 + osds.host([rng.choice((4, 8)) for _ in range(3)], "ssd"))
    rules = {0: HDD_HOSTS, 1: SSD_HOSTS,
             2: "take default~ssd; chooseleaf firstn 1 host; emit;"
                "take default~hdd; chooseleaf firstn -1 host; emit"}
    pools = [PoolPlan("hybrid", 0.5, 1024, rule=2), PoolPlan("cold", 0.35, 512),
             PoolPlan("fast", 0.06, 128, rule=1)]
    return Layout({"root default": hosts}, osds.tib, osds.classes, rules,
                  pools + _metadata_pools(rule=1))


def _rack_ec(rng: random.Random) -> Layout:
    osds = Osds()
    racks = {f"rack r{r}": {f"host r{r}h{h}": osds.host(
        [rng.choice((8, 12, 16)) for _ in range(rng.randint(4, 7))]) for h in range(3)}
        for r in range(6)}
    rules = {0: HDD_HOSTS,
             1: "take default~hdd; choose indep 4 rack; chooseleaf indep 2 host; emit"}
    pools = [PoolPlan("ec", 0.85, 512, size=8, rule=1, k=5), PoolPlan("rbd", 0.15, 256)]
    return Layout({"root default": racks}, osds.tib, osds.classes, rules,
                  pools + _metadata_pools())


def _grown(rng: random.Random) -> Layout:
    osds = Osds()
    hosts = {f"host h{h}": osds.host([rng.choice((8, 12)) for _ in range(8)]) for h in range(10)}
    new = [f"host new{h}" for h in range(2)]
    hosts.update({name: osds.host([16] * 8) for name in new})
    pools = [PoolPlan("rbd", 0.6, 1024), PoolPlan("cephfs_data", 0.4, 512)]
    return Layout({"root default": hosts}, osds.tib, osds.classes, {0: HDD_HOSTS},
                  pools + _metadata_pools(), empty_hosts=new)


SHAPES: Dict[str, Shape] = {
    "uneven-hosts": Shape("replicated, 12 hosts of 4 to 12 devices of four sizes", _uneven_hosts),
    "ec-tight": Shape("erasure-coded 4+2 on 6 hosts: every host has a shard of every PG",
                      _ec_tight),
    "many-pools": Shape("120 pools of 32 PGs", _many_pools),
    "giant-host": Shape("one host larger than CRUSH can fill", _giant_host),
    "hybrid": Shape("two classes; a pool has its primary on SSD, the rest on HDD", _hybrid),
    "rack-ec": Shape("erasure-coded 5+3, two shards in each of 4 of 6 racks", _rack_ec),
    "grown": Shape("two new hosts, still empty, with upmap items that keep PGs off them", _grown),
}


def make_cluster(name: str, seed: int = SEED) -> Cluster:
    """The cluster of a shape with its data. Raises KeyError for a name that is none."""
    rng = random.Random(f"{name}/{seed}")
    return fill(SHAPES[name].layout(rng), rng)


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
            placed[pgid] = (places(number, ps) if places is not None
                            else placer.place(pool.rule, pool.size))
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
    host_of = {item["id"]: bucket["id"] for bucket in cluster.crush["buckets"]
               for item in bucket["items"] if bucket["type_name"] == "host"
               and bucket["name"].endswith("~hdd")}
    root = next(b["id"] for b in cluster.crush["buckets"] if b["name"] == "default~hdd")
    barred = {host_of[osd] for osd in raw} | {host_of[osd] for osd in empty}
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
