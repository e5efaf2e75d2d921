"""Clusters and plans for tests of the loop."""
from __future__ import annotations

from typing import Any

from builders import GIB, OSD_RULE, Cluster, change_of, hosts, plan_of
from fakes import Desk, KeyValueStore

from equilibrium_mgr.planner.plan import Plan


def uneven(pgs: int = 12, osds: int = 3, num_bytes: int = 5 * GIB) -> Cluster:
    """PGs of 5 GiB on osd.0, none on the others."""
    cluster = Cluster(hosts(1, osds), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(pgs):
        cluster.pg("1.%x" % ps, [0], num_bytes=num_bytes, objects=10)
    return cluster


def small_plan(count: int = 4, target: int = 1) -> Plan:
    return plan_of([change_of("1.%x" % ps, [0], [target], shard_bytes=5 * GIB)
                    for ps in range(count)])


def kept(desk: Desk, name: str = "p", plan: Any = None) -> Plan:
    plan = plan or small_plan()
    desk.shelf.put(name, plan, desk.now)
    return plan


def at_rest(cluster: Cluster, **options: Any) -> Desk:
    """After a plan that found nothing to do, or whose moves have arrived."""
    desk = Desk(cluster, active=True, **options)
    for _ in range(6):
        desk.round(60)
        desk.jobs.run()
        desk.gateway.arrive()
    desk.round(60)
    return desk


def successor(desk: Desk, **options: Any) -> Desk:
    """Another mgr that takes over: the same cluster, and what stands in the store."""
    again = Desk(desk.gateway.cluster, kv=KeyValueStore(desk.kv.values),
                 **{**desk.options, **options})
    again.now = desk.now
    again.gateway.ratio = desk.gateway.ratio
    return again
