"""Lowered weights that ask for a fuller OSD than there is keep no others from being balanced."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.plan.options import AIMS, PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.planner import make_plan


def weighted() -> Cluster:
    """All OSDs of h0 have lowered reweights, and are equally full; those of h2 are not."""
    cluster = Cluster(hosts(3, 4)).pool(1, size=3)
    uneven = [8] * 22 + [9] * 22 + [10] * 18 + [11] * 18
    for ps in range(80):
        cluster.pg(f"1.{ps:x}", [ps % 4, 4 + ps // 4 % 4, uneven[ps]], GIB)
    for osd, reweight in enumerate((0.7, 0.7, 0.7, 0.85)):
        cluster.osd(osd, weight=reweight)
    return cluster


def test_each_aim_lowers_what_is_fuller_than_its_own_bound() -> None:
    snapshot = weighted().snapshot()
    used = {osd.id: osd.used_bytes for osd in snapshot.osds.values()}
    bound = utilization_bounds(snapshot).highest["hdd"]
    assert bound * snapshot.osds[8].size_bytes > max(used.values())
    for aim in AIMS:
        plan = make_plan(snapshot, PlanOptions(aim=aim))
        lowered = plan.before.classes["hdd"].max - plan.after.classes["hdd"].max
        assert lowered >= (0.009 if aim == "least-motion" else 0.019), aim
