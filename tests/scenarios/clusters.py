"""The clusters of the scenarios, placed by CRUSH itself, so that events move what they would.

Random clusters, tiny so that days of them pass in a second: the same for the same numbers.
"""
from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

from mgr_stub.console.session import Session
from mgr_stub.crush.mapper import Mapper, raw_pg_to_osds
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Layout, Osds, PoolPlan, fill
from tests.support.clusters.unit_cluster import Cluster
from tests.support.rules import EC_HDD_HOSTS, EC_PAIRS_IN_3_RACKS, HDD_HOSTS, SSD_FIRST, SSD_HOSTS


SSD = "ssd"
_RACKS = "take default~hdd; chooseleaf firstn 0 rack; emit"
_RACK_PAIRS = "take default~hdd; choose indep 2 rack; chooseleaf indep 2 host; emit"
_NESTED = "take default~hdd; choose indep 2 rack; choose indep 2 host; choose indep 1 osd; emit"
_MSR_PAIRS = "msr_indep; take default~hdd; choosemsr 3 host; choosemsr 2 osd; emit"
_SIZES_TIB = (0.25, 0.375, 0.5)
#: The fullest OSD's utilization: roomy, usual, and nearfull.
_FILLS = (0.5, 0.7, 0.8, 0.87)
_WEIGHT_ONE = 0x10000
Tree = Dict[str, Any]
#: How many there are, and their sizes in TiB: each is drawn of these.
Devices = Tuple[Sequence[int], Sequence[float]]
_NONE: Devices = (0,), (0.0,)


def layout(rng: random.Random) -> Layout:
    """8 to 20 OSDs, 1 to 4 pools with 60 to 250 PGs in all."""
    return rng.choice(_KINDS)(Maker(rng))


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


def plans(text: str) -> List[PoolPlan]:
    """Pools by name, share, pg_num, and what else of them is not usual."""
    return [_plan(*pool.split()) for pool in text.split("; ")]


def _plan(name: str, share: str, pg_num: str, *others: str) -> PoolPlan:
    plan = PoolPlan(name, float(share), int(pg_num))
    for other in others:
        field, _, value = other.partition("=")
        plan = plan._replace(**{field: int(value)})
    return plan


class Maker:
    """Numbers OSDs while hosts are added, and draws what they are."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._osds = Osds()

    def hosts(self, count: int, each: Sequence[int], sizes: Sequence[float] = _SIZES_TIB,
              prefix: str = "", ssds: Devices = _NONE, alike: int = 1) -> Tree:
        """`alike`: so often each device of a host is there."""
        tree: Tree = {}
        for host in range(count):
            hdds = self._osds.host(self._devices(each, sizes) * alike)
            tree[f"host {prefix}h{host}"] = hdds + self._osds.host(self._devices(*ssds), SSD)
        return tree

    def giant(self, sizes: Sequence[float]) -> Tree:
        return {"host giant": self._osds.host(sizes)}

    def racks(self, count: int, hosts: int, each: Sequence[int],
              sizes: Sequence[float] = _SIZES_TIB, alike: int = 1) -> Tree:
        return {f"rack r{rack}": self.hosts(hosts, each, sizes, f"r{rack}", alike=alike)
                for rack in range(count)}

    def layout(self, tree: Tree, rules: Dict[int, str], pools: str) -> Layout:
        return self._osds.layout(tree, rules, plans(pools))

    def random(self, tree: Tree, rules: Dict[int, str], pools: str,
               least: int = 0, most: int = 0) -> Layout:
        """With some of the pools, from the first on, or with all, and as full as it comes."""
        made = self.layout(tree, rules, pools)
        count = self.rng.randint(least, most) if most else len(made.pools)
        return made._replace(pools=made.pools[:count], highest_fill=self.rng.choice(_FILLS))

    def _devices(self, each: Sequence[int], sizes: Sequence[float]) -> List[float]:
        return [self._one(sizes) for _ in range(int(self._one(each)))]

    def _one(self, values: Sequence[float]) -> float:
        if len(values) == 1:
            return values[0]
        return self.rng.choice(values)


def _replicated(maker: Maker) -> Layout:
    rng = maker.rng
    tree = maker.hosts(rng.randint(4, 6), (2, 3))
    size, most, fewer = rng.choice((2, 3, 3)), rng.choice((64, 96, 128)), rng.choice((16, 32))
    return maker.random(
        tree, {0: HDD_HOSTS}, f"rbd 0.6 {most} size={size}; fs 0.4 {fewer} size={size};"
        " meta 0.002 8 omap_bytes=16777216", 1, 3)


def _random_erasure(maker: Maker) -> Layout:
    rng = maker.rng
    tree = maker.hosts(rng.randint(5, 7), (2, 2, 3))
    k, m = rng.choice(((2, 1), (2, 2), (3, 1)))
    ec = f"ec 0.8 {rng.choice((64, 96))} size={k + m} rule=1 k={k}"
    return maker.random(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, f"{ec}; rbd 0.2 16", 1, 2)


def _random_racks(maker: Maker) -> Layout:
    return maker.random(maker.racks(4, 2, (2, 2)), {0: HDD_HOSTS, 2: _RACKS},
                        "rbd 0.7 64 rule=2; fs 0.3 32", 1, 2)


def _rack_pairs(maker: Maker) -> Layout:
    return maker.random(maker.racks(3, 3, (1, 2)), {0: HDD_HOSTS, 3: _RACK_PAIRS},
                        "ec 0.8 64 size=4 rule=3 k=2; rbd 0.2 32")


def _random_hybrid(maker: Maker) -> Layout:
    tree = maker.hosts(maker.rng.randint(5, 6), (2,), ssds=((1,), (0.25,)))
    return maker.random(tree, {0: HDD_HOSTS, 4: SSD_HOSTS, 5: SSD_FIRST},
                        "hybrid 0.5 64 rule=5; fast 0.1 16 rule=4; cold 0.4 48", 2, 3)


def _two_classes(maker: Maker) -> Layout:
    tree = maker.hosts(5, (2,), ssds=((1, 2), (0.25,)))
    return maker.random(
        tree, {0: HDD_HOSTS, 4: SSD_HOSTS}, "cold 0.8 64; fast 0.2 32 rule=4; old 0.1 16;"
        " meta 0.002 8 rule=4 omap_bytes=16777216")


_KINDS: Sequence[Callable[[Maker], Layout]] = (
    _replicated, _replicated, _random_erasure, _random_racks, _rack_pairs, _random_hybrid,
    _two_classes)


_HDD, _HDD_EC, _BOTH = {0: HDD_HOSTS}, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, {0: HDD_HOSTS, 1: SSD_HOSTS}
#: Name → the tree as _tree reads it, the rules, and the pools.
_SHAPES: Dict[str, Tuple[str, Dict[int, str], str]] = {
    # 8 hosts of 4 devices, two data pools and a small one
    "small": ("8 4 4|8", _HDD, "rbd 0.7 512; fs 0.3 256; meta 0.002 16 omap_bytes=67108864"),
    # one host larger than three copies can fill
    "giant": ("5 4 4|8", _HDD, "rbd 0.7 512; fs 0.3 256"),
    # one copy on SSD and two on HDD, beside pools of one class
    "hybrid": ("8 4 8|12 2 4", {**_BOTH, 2: SSD_FIRST},
               "hybrid 0.5 512 rule=2; cold 0.4 256; fast 0.06 128 rule=1"),
    # erasure-coded 4+2 with two shards in each of three of five racks
    "racks": ("5 racks of 3, 3 4|8", {0: HDD_HOSTS, 1: EC_PAIRS_IN_3_RACKS},
              "ec 0.85 256 size=6 rule=1 k=4; rbd 0.15 128"),
    # a pool whose rule chooses hosts below racks: the monitor keeps no upmap of it
    "nested": ("3 racks of 2, 2 0.25|0.5", {0: HDD_HOSTS, 1: _NESTED},
               "ec 0.7 64 size=4 rule=1 k=2; rbd 0.3 32"),
    # 4+2 on seven hosts
    "erasure": ("7 4 4|8", _HDD_EC, "ec 1 384 size=6 rule=1 k=4; meta 0.002 16"),
    # 4+2 with two shards in each of three of five hosts, by an MSR rule
    "msr": ("5 5 4|8", {0: HDD_HOSTS, 1: _MSR_PAIRS},
            "ec 0.85 128 size=6 rule=1 k=4; rbd 0.15 64"),
    # devices so small that each PG's log has all its writes: Ceph moves them by log recovery
    "logs": ("8 4 0.1|0.2", _HDD_EC, "rbd 0.6 384; ec 0.4 128 size=6 rule=1 k=4"),
    # small SSDs that hold one pool of nearly nothing but omap, once that has been written
    "index": ("8 2 4|8 2 0.5|1", _BOTH, "cold 1 256; index 0 128 rule=1"),
    # erasure-coded 4+2 of objects of 40 kB, and a pool of large ones, on devices half full
    "small_objects": ("8 3 4|8", _HDD_EC,
                      "rgw 0.7 256 size=6 rule=1 k=4 object_bytes=40000; rbd 0.3 128"),
    # 10 hosts of one device, and small PGs of a pool to merge beside large ones: too many objects
    # for their logs
    "steps": ("10 1 0.25|0.375|0.5", _HDD_EC,
              "rep 0.5 32 object_bytes=65536; ec 0.38 16 rule=1 k=2 object_bytes=65536;"
              " steps 0.12 64 object_bytes=65536")}
_FILL_OF = {"small_objects": 0.55, "steps": 0.6}


def _tree(maker: Maker, text: str) -> Tree:
    """How many hosts, their devices and the sizes of which these are drawn, SSDs likewise; in racks
    all devices of a host are alike."""
    racks, _, hosts = text.rpartition(" racks of ")
    if racks:
        count, each, sizes = hosts.replace(",", "").split()
        return maker.racks(int(racks), int(count), (1,), _sizes(sizes), alike=int(each))
    count, each, sizes, *ssds = text.split()
    devices = ((int(ssds[0]),), _sizes(ssds[1])) if ssds else _NONE
    return maker.hosts(int(count), (int(each),), _sizes(sizes), ssds=devices)


def _sizes(text: str) -> List[float]:
    return list(map(float, text.split("|")))


def _made(name: str, maker: Maker) -> Layout:
    tree, rules, pools = _SHAPES[name]
    devices = _tree(maker, tree)
    if name == "giant":
        devices.update(maker.giant([12] * 10))
    made = maker.layout(devices, rules, pools)
    return made._replace(highest_fill=_FILL_OF.get(name, made.highest_fill))


WITH_EMPTY_PGS = "random_empty"
def make(name: str, seed: int) -> Cluster:
    """A cluster with its data, mapped by its own CRUSH rules."""
    rng = _rng(name, seed)
    return fill(_layout_by(name, rng), rng, crush_places)


def layout_of(name: str, seed: int) -> Layout:
    """The same cluster before any data: its buckets, OSDs and pools."""
    return _layout_by(name, _rng(name, seed))


def _layout_by(name: str, rng: random.Random) -> Layout:
    if name in _SHAPES:
        return _made(name, Maker(rng))
    if name == WITH_EMPTY_PGS:
        return with_empty_pgs(rng)
    return layout(rng)


def _rng(name: str, seed: int) -> random.Random:
    return random.Random(f"{name}/{seed}")


def crush_places(cluster: Cluster) -> Callable[[int, int], List[int]]:
    """(pool, number of the PG) → the OSDs that CRUSH gives."""
    mapper = Mapper(cluster.crush)
    reweights = dict.fromkeys(cluster.osds, _WEIGHT_ONE)

    def places(pool: int, number: int) -> List[int]:
        return list(raw_pg_to_osds(mapper, cluster.pools[pool], number, reweights,
                                   cluster.osds.__contains__))
    return places


def session_of(name: str, seed: int, folder: Path, release: int = 18) -> Session:
    """A simulated mgr on such a cluster, or on the demo's; `folder` is for the state file."""
    if name == "demo":
        return Session.from_state(None, release=release, seed=seed, frozen=False)
    path = folder / "state.json"
    path.write_text(json.dumps(state_of(make(name, seed))))
    return Session.from_state(str(path), release=release, seed=seed)
