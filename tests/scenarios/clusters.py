"""The clusters of the scenarios, placed by CRUSH itself, so that events move what they would.

Random clusters, tiny so that days of them pass in a second: the same for the same numbers.
"""
from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

from mgr_stub.console.session import Session
from mgr_stub.crush.mapper import Mapper, raw_pg_to_osds
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Layout, Osds, PoolPlan, fill
from tests.support.clusters.unit_cluster import Cluster
from tests.support.rules import EC_HDD_HOSTS, EC_PAIRS_IN_3_RACKS, HDD_HOSTS, SSD_FIRST, SSD_HOSTS


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
_SMALL_OBJECT = 64 << 10


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


def _random_erasure(rng: random.Random) -> Layout:
    osds = Osds()
    tree = _hosts(rng, osds, rng.randint(5, 7), (2, 2, 3))
    k, m = rng.choice(((2, 1), (2, 2), (3, 1)))
    return _finish(rng, osds, tree, (0, 1), [
        PoolPlan("ec", 0.8, rng.choice((64, 96)), size=k + m, rule=1, k=k),
        PoolPlan("rbd", 0.2, 16)][:rng.randint(1, 2)])


def _random_racks(rng: random.Random) -> Layout:
    osds = Osds()
    tree = {f"rack r{rack}": _hosts(rng, osds, 2, (2,), f"r{rack}") for rack in range(4)}
    return _finish(rng, osds, tree, (0, 2), [
        PoolPlan("rbd", 0.7, 64, rule=2), PoolPlan("fs", 0.3, 32)][:rng.randint(1, 2)])


def _rack_pairs(rng: random.Random) -> Layout:
    osds = Osds()
    tree = {f"rack r{rack}": _hosts(rng, osds, 3, (1, 2), f"r{rack}") for rack in range(3)}
    return _finish(rng, osds, tree, (0, 3), [
        PoolPlan("ec", 0.8, 64, size=4, rule=3, k=2), PoolPlan("rbd", 0.2, 32)])


def _random_hybrid(rng: random.Random) -> Layout:
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
    _replicated, _replicated, _random_erasure, _random_racks, _rack_pairs, _random_hybrid,
    _two_classes)


def _hosts(rng: random.Random, osds: Osds, count: int, osds_each: Sequence[int],
           prefix: str = "") -> Dict[str, List[int]]:
    return {f"host {prefix}h{host}": osds.host(
        [rng.choice(_SIZES_TIB) for _ in range(rng.choice(osds_each))]) for host in range(count)}


def _finish(rng: random.Random, osds: Osds, tree: Dict[str, Any], rules: Sequence[int],
            pools: Sequence[PoolPlan]) -> Layout:
    made = osds.layout(tree, {rule: _RULES[rule] for rule in rules}, pools)
    return made._replace(highest_fill=rng.choice(_FILLS))


_NESTED = "take default~hdd; choose indep 2 rack; choose indep 2 host; choose indep 1 osd; emit"
_MSR_PAIRS = "msr_indep; take default~hdd; choosemsr 3 host; choosemsr 2 osd; emit"
_WEIGHT_ONE = 0x10000


def _small(rng: random.Random) -> Layout:
    """8 hosts of 4 devices, two data pools and a small one."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(4)]) for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan("rbd", 0.7, 512), PoolPlan("fs", 0.3, 256),
        PoolPlan("meta", 0.002, 16, omap_bytes=64 << 20)])


def _giant(rng: random.Random) -> Layout:
    """One host larger than three copies can fill."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(4)]) for h in range(5)}
    tree["host giant"] = osds.host([12] * 10)
    return osds.layout(tree, {0: HDD_HOSTS}, [PoolPlan("rbd", 0.7, 512), PoolPlan("fs", 0.3, 256)])


def _hybrid(rng: random.Random) -> Layout:
    """One copy on SSD and two on HDD, beside pools of one class."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((8, 12)) for _ in range(4)])
            + osds.host([4, 4], "ssd") for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: SSD_HOSTS, 2: SSD_FIRST}, [
        PoolPlan("hybrid", 0.5, 512, rule=2), PoolPlan("cold", 0.4, 256),
        PoolPlan("fast", 0.06, 128, rule=1)])


def _racks(rng: random.Random) -> Layout:
    """Erasure-coded 4+2 with two shards in each of three of five racks."""
    osds = Osds()
    tree = {f"rack r{r}": {f"host r{r}h{h}": osds.host([rng.choice((4, 8))] * 3)
                           for h in range(3)} for r in range(5)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_PAIRS_IN_3_RACKS}, [
        PoolPlan("ec", 0.85, 256, size=6, rule=1, k=4), PoolPlan("rbd", 0.15, 128)])


def _nested(rng: random.Random) -> Layout:
    """A pool whose rule chooses hosts below racks: the monitor keeps no upmap of it."""
    osds = Osds()
    tree = {f"rack r{r}": {f"host r{r}h{h}": osds.host([rng.choice((0.25, 0.5))] * 2)
                           for h in range(2)} for r in range(3)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: _NESTED}, [
        PoolPlan("ec", 0.7, 64, size=4, rule=1, k=2), PoolPlan("rbd", 0.3, 32)])


def _erasure(rng: random.Random) -> Layout:
    """4+2 on seven hosts."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(4)]) for h in range(7)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, [
        PoolPlan("ec", 1.0, 384, size=6, rule=1, k=4),
        PoolPlan("meta", 0.002, 16)])


def _msr(rng: random.Random) -> Layout:
    """4+2 with two shards in each of three of five hosts, by an MSR rule."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(5)]) for h in range(5)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: _MSR_PAIRS}, [
        PoolPlan("ec", 0.85, 128, size=6, rule=1, k=4), PoolPlan("rbd", 0.15, 64)])


def _logs(rng: random.Random) -> Layout:
    """Devices so small that each PG's log has all its writes: Ceph moves them by log recovery."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((0.1, 0.2)) for _ in range(4)])
            for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, [
        PoolPlan("rbd", 0.6, 384), PoolPlan("ec", 0.4, 128, size=6, rule=1, k=4)])


def _index(rng: random.Random) -> Layout:
    """Small SSDs that hold one pool of nearly nothing but omap, once that has been written."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(2)])
            + osds.host([rng.choice((0.5, 1.0)) for _ in range(2)], "ssd") for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: SSD_HOSTS}, [
        PoolPlan("cold", 1.0, 256), PoolPlan("index", 0.0, 128, rule=1)])


def _small_objects(rng: random.Random) -> Layout:
    """Erasure-coded 4+2 of objects of 40 kB, and a pool of large ones, on devices half full."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(3)]) for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, [
        PoolPlan("rgw", 0.7, 256, size=6, rule=1, k=4, object_bytes=40_000),
        PoolPlan("rbd", 0.3, 128)])._replace(highest_fill=0.55)


def _steps(rng: random.Random) -> Layout:
    """10 hosts of one device, and small PGs of a pool to merge beside large ones: too many objects
    for their logs."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice(_SIZES_TIB)]) for h in range(10)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: _RULES[1]}, [
        PoolPlan("rep", 0.5, 32, object_bytes=_SMALL_OBJECT),
        PoolPlan("ec", 0.38, 16, rule=1, k=2, object_bytes=_SMALL_OBJECT),
        PoolPlan("steps", 0.12, 64, object_bytes=_SMALL_OBJECT)])._replace(highest_fill=0.6)


WITH_EMPTY_PGS = "random_empty"
LAYOUTS: Dict[str, Callable[[random.Random], Layout]] = {
    "random": layout, WITH_EMPTY_PGS: with_empty_pgs,
    "small": _small, "giant": _giant, "hybrid": _hybrid, "racks": _racks, "erasure": _erasure,
    "nested": _nested, "logs": _logs, "index": _index, "small_objects": _small_objects,
    "msr": _msr, "steps": _steps}


def make(name: str, seed: int) -> Cluster:
    """A cluster with its data, mapped by its own CRUSH rules."""
    rng = _rng(name, seed)
    return fill(LAYOUTS[name](rng), rng, crush_places)


def layout_of(name: str, seed: int) -> Layout:
    """The same cluster before any data: its buckets, OSDs and pools."""
    return LAYOUTS[name](_rng(name, seed))


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
