"""Plans on clusters made by hand, where it is plain what a good one does."""
from __future__ import annotations

from typing import Any, List, Tuple

from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions

Step = Tuple[str, int, int]   # (pgid, source, target)


def planned(cluster: Cluster, **options: Any) -> Plan:
    snapshot = cluster.snapshot()
    plan = ended_plan(snapshot, PlanOptions(**options))
    assert_legal(snapshot, plan, PlanOptions(**options))
    return plan


def steps(cluster: Cluster, **options: Any) -> List[Step]:
    return [(m.pgid, m.source, m.target) for m in planned(cluster, **options).moves]


def test_shard_that_would_only_exchange_free_space_stays() -> None:
    """60 GiB would only make the other OSD the fullest; the small shard helps."""
    assert steps(single_copies([60, 3], [10])) == [("1.1", 0, 1)]


def test_target_state_counts_not_the_present() -> None:
    """Its backfill has filled osd.1 in the target state already: nothing more goes there."""
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1)
    cluster.pg("1.0", [1], num_bytes=20 * GIB, acting=[0]).pg("1.1", [0], num_bytes=20 * GIB)
    assert steps(cluster) == []
