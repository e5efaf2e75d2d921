"""Clusters by name, each planned once: the demo cluster and small made ones of many shapes."""
from __future__ import annotations

from functools import cache

from mgr_stub.console.session import Session
from tests.benchmark.made.shapes import SHAPES, make_cluster
from tests.support.clusters.random_clusters import random_cluster

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot


#: All names; "random" has few and very unequal PGs, some of them in flight.
NAMES = ["demo"] + sorted(SHAPES) + ["random"]
TWO_CLASSES = ["demo", "hybrid", "random"]


@cache
def snapshot_of(name: str, seed: int = 1) -> Snapshot:
    """The snapshot of a named cluster; do not change it."""
    if name == "demo":
        demo: Snapshot = Session.from_state(None, release=18).module.gateway.snapshot()
        return demo
    if name == "random":
        return random_cluster(seed, hybrid=True).snapshot()
    return make_cluster(name, seed).snapshot()


@cache
def plan_of_cluster(name: str, aim: str = "space", seed: int = 1) -> Plan:
    """The whole plan for a named cluster."""
    return make_plan(snapshot_of(name, seed), PlanOptions(aim=aim))
