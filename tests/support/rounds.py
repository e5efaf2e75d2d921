"""Clusters and plans for tests of the loop."""
from __future__ import annotations

from typing import Any, Optional

from tests.support.clusters.unit_cluster import Cluster, change_of, hosts, plan_of
from tests.support.fakes import Harness, KeyValueStore
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan_service.plan_service import Planner


def uneven(pgs: int = 12, osds: int = 3, num_bytes: int = 5 * GIB) -> Cluster:
    """PGs of 5 GiB on osd.0, none on the others."""
    cluster = Cluster(hosts(1, osds), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(pgs):
        cluster.pg(f"1.{ps:x}", [0], num_bytes=num_bytes, objects=10)
    return cluster


def small_plan(count: int = 4, target: int = 1) -> Plan:
    return plan_of([change_of(f"1.{ps:x}", [0], [target], shard_bytes=5 * GIB)
                    for ps in range(count)])


def kept(harness: Harness, name: str = "p", plan: Any = None) -> Plan:
    plan = plan or small_plan()
    harness.plan_store.put(name, plan, harness.now)
    return plan


def executing(harness: Harness, plan: Any = None, name: str = "p") -> Harness:
    """Keeps a plan and asks for its execution."""
    assert harness.balancer.execute(name, kept(harness, name, plan))
    return harness


def idle(cluster: Cluster, planner: Optional[Planner] = None, **options: Any) -> Harness:
    """After a plan that found nothing to do, or whose moves have arrived; `planner` makes it."""
    harness = Harness(cluster, active=True, **options)
    if planner is not None:
        harness.planning.planner = planner
    return run_until_idle(harness)


def run_until_idle(harness: Harness) -> Harness:
    """Rounds in which plans are made and moves arrive, until there is nothing left to do."""
    for _ in range(6):
        harness.round(60)
        harness.jobs.run()
        harness.gateway.arrive()
    harness.round(60)
    return harness


def successor(harness: Harness, **options: Any) -> Harness:
    """Another mgr that takes over: the same cluster, and what stands in the store."""
    again = Harness(harness.gateway.cluster, kv=KeyValueStore(harness.kv.values),
                 **{**harness.options, **options})
    again.now = harness.now
    again.gateway.ratio = harness.gateway.ratio
    return again
