"""Plans on clusters made by hand, where it is plain what a good one does."""
from __future__ import annotations

from typing import Any, List, Tuple

import pytest
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


def highest(plan: Plan, device_class: str = "hdd") -> float:
    return plan.after.classes[device_class].max


def test_shard_that_would_only_exchange_free_space_stays() -> None:
    """60 GiB would only make the other OSD the fullest; the small shard helps."""
    assert steps(single_copies([60, 3], [10])) == [("1.1", 0, 1)]


def test_larger_osds_are_given_more() -> None:
    cluster = single_copies([10] * 8, []).osd(1, size=300 * GIB)
    plan = planned(cluster)
    assert len(plan.moves) == 6 and highest(plan) == pytest.approx(0.2)


def test_emptiest_legal_target() -> None:
    """osd.5 is emptiest, but its host holds the other copy already."""
    cluster = Cluster(hosts(3, 2)).pool(1, size=2)
    for ps in range(4):
        cluster.pg(f"1.{ps:x}", [0, 4], num_bytes=8 * GIB)
    cluster.osd(2, used=5 * GIB).osd(3, used=3 * GIB).osd(1, used=9 * GIB).osd(5, used=0)
    first = steps(cluster)
    assert first and all(target // 2 != 2 for _, source, target in first if source // 2 == 0)
    assert {3} <= {target for _, source, target in first if source == 0}


def test_stuck_class_does_not_end_the_others() -> None:
    rules = {0: "take default~hdd; choose firstn 0 osd; emit",
             1: "take default~ssd; choose firstn 0 osd; emit"}
    cluster = Cluster(hosts(1, 4), rules, classes={2: "ssd", 3: "ssd"})
    cluster.pool(1, size=1, rule=0).pool(2, size=1, rule=1)
    cluster.pg("1.0", [0], num_bytes=50 * GIB)           # no place would be any better
    for ps in range(4):
        cluster.pg(f"2.{ps:x}", [2], num_bytes=5 * GIB)
    plan = planned(cluster)
    assert [(m.source, m.target) for m in plan.moves] == [(2, 3), (2, 3)]


def test_target_state_counts_not_the_present() -> None:
    """Its backfill has filled osd.1 in the target state already: nothing more goes there."""
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1)
    cluster.pg("1.0", [1], num_bytes=20 * GIB, acting=[0]).pg("1.1", [0], num_bytes=20 * GIB)
    assert steps(cluster) == []
