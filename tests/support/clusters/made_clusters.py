"""Clusters by name, each planned once: the demo cluster and small made ones of many shapes."""
from __future__ import annotations

import random
from functools import cache
from typing import Callable, Dict

from mgr_stub.console.session import Session
from tests.benchmark.made.shapes import Layout, Osds, PoolPlan, fill
from tests.support.clusters.random_clusters import random_cluster
from tests.support.rules import EC_HDD_HOSTS, EC_PAIRS_IN_3_RACKS, HDD_HOSTS, SSD_FIRST, SSD_HOSTS

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot


def _uneven(rng: random.Random) -> Layout:
    """Unequal hosts and devices, two data pools and one of metadata."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8, 12, 16)) for _ in range(
        rng.randint(3, 7))]) for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan("rbd", 0.6, 256), PoolPlan("fs", 0.4, 128),
        PoolPlan("meta", 0.002, 16, omap_bytes=64 << 20)])


def _erasure(rng: random.Random) -> Layout:
    """4+2 on six hosts: every host has a shard of every PG."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((8, 8, 16)) for _ in range(6)])
            for h in range(6)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, [
        PoolPlan("ec", 1.0, 256, size=6, rule=1, k=4),
        PoolPlan("meta", 0.002, 16)])


def _many_pools(rng: random.Random) -> Layout:
    """Two dozen pools of 16 PGs."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(4)]) for h in range(8)}
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan(f"tenant{n}", rng.lognormvariate(0.0, 0.8), 16)
        for n in range(24)])


def _giant(rng: random.Random) -> Layout:
    """One host larger than three copies can fill."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((4, 8)) for _ in range(4)]) for h in range(5)}
    tree["host giant"] = osds.host([12] * 12)
    return osds.layout(tree, {0: HDD_HOSTS}, [
        PoolPlan("rbd", 0.7, 128), PoolPlan("backup", 0.3, 64)])


def _hybrid(rng: random.Random) -> Layout:
    """Two classes and a pool that is on both."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((8, 12, 16)) for _ in range(4)])
            + osds.host([rng.choice((4, 8)) for _ in range(2)], "ssd") for h in range(7)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: SSD_HOSTS, 2: SSD_FIRST}, [
        PoolPlan("mixed", 0.5, 256, rule=2), PoolPlan("cold", 0.35, 128),
        PoolPlan("fast", 0.06, 64, rule=1)])


def _racks(rng: random.Random) -> Layout:
    """Erasure-coded with two shards in each of three of five racks."""
    osds = Osds()
    tree = {f"rack r{r}": {f"host r{r}h{h}": osds.host(
        [rng.choice((8, 12, 16)) for _ in range(rng.randint(3, 4))]) for h in range(3)}
        for r in range(5)}
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_PAIRS_IN_3_RACKS}, [
        PoolPlan("ec", 0.85, 192, size=6, rule=1, k=4), PoolPlan("rbd", 0.15, 96)])


def _grown(rng: random.Random) -> Layout:
    """A new host, still empty, with upmap items that keep PGs off it."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((8, 12)) for _ in range(4)]) for h in range(7)}
    tree["host new"] = osds.host([16] * 4)
    return osds.layout(tree, {0: HDD_HOSTS}, [PoolPlan("rbd", 0.6, 128), PoolPlan("fs", 0.4, 96)],
                       ["host new"])


_LAYOUTS: Dict[str, Callable[[random.Random], Layout]] = {
    "uneven": _uneven, "erasure": _erasure, "many-pools": _many_pools, "giant": _giant,
    "hybrid": _hybrid, "racks": _racks, "grown": _grown}

#: All names; "random" has few and very unequal PGs, some of them in flight.
NAMES = ["demo"] + sorted(_LAYOUTS) + ["random"]
TWO_CLASSES = ["demo", "hybrid", "random"]


@cache
def snapshot_of(name: str, seed: int = 1) -> Snapshot:
    """The snapshot of a named cluster; do not change it."""
    if name == "demo":
        demo: Snapshot = Session.from_state(None, release=18).module.gateway.snapshot()
        return demo
    if name == "random":
        return random_cluster(seed, hybrid=True).snapshot()
    rng = random.Random(f"{name}/{seed}")
    return fill(_LAYOUTS[name](rng), rng).snapshot()


@cache
def plan_of_cluster(name: str, aim: str = "space", seed: int = 1) -> Plan:
    """The whole plan for a named cluster."""
    return make_plan(snapshot_of(name, seed), PlanOptions(aim=aim))
