"""What the loop makes of the list: plans that become out of date, options, gains, and reports."""
from __future__ import annotations

from typing import Any

import pytest
from tests.support.clusters.unit_cluster import Cluster, single_copies
from tests.support.plan_legality import ended_plan

from equilibrium_mgr.control.balancing_scope import automatic_options
from equilibrium_mgr.control.plan_validity import gain_reason, mark_of, topology_change
from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.drain.drain_list import DrainList
from equilibrium_mgr.drain.status import DrainStatus, Remaining, StopCheck
from equilibrium_mgr.observation.cluster_view import STUCK
from equilibrium_mgr.plan.model import BALANCE, DRAIN, StuckShards
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.report.operations import drain_list, drain_sentence
from equilibrium_mgr.report.health import STUCK_SECONDS, health_checks
from equilibrium_mgr.settings import read_settings
from equilibrium_mgr.snapshot import reason_codes as codes

ONE = DrainList().with_osds({3: "osd.3"})


def settings(**given: Any) -> Any:
    return read_settings(lambda name: given.get(name))


def test_another_list_makes_a_plan_out_of_date_and_needs_no_settling() -> None:
    cluster = single_copies([10], [10], [])
    before, after = (mark_of(snapshot, PlanOptions(), 0.0)
                     for snapshot in (cluster.snapshot(), cluster.drain(1).snapshot()))
    assert topology_change(before, after) == "osd.1 is being drained"
    assert topology_change(after, before) == "osd.1 is no longer being drained"
    assert before.unsettled == after.unsettled


def test_a_drain_is_for_all_pools_and_classes() -> None:
    snapshot = Cluster({"root default": {"host h0": [0, 1], "host h1": [2]}}).drain(2).snapshot()
    limited = settings(pool_ids="1", device_classes="ssd", from_buckets="h0", not_buckets="osd.1")
    options = automatic_options(limited, snapshot, frozenset(), drain_only=True)
    assert options.drain_only and options.pool_ids is None and options.device_classes is None
    assert options.sources == frozenset((0, 2)) and options.targets == frozenset((0, 2))
    assert automatic_options(limited, snapshot, frozenset()).sources == frozenset((0,))


def test_a_plan_that_drains_is_worth_making() -> None:
    """However little it gains."""
    snapshot = single_copies([1], [50], [50]).drain(0).snapshot()
    plan = ended_plan(snapshot, PlanOptions(drain_only=True))
    assert plan.kind == DRAIN and gain_reason(plan, snapshot, 0.9) == "osd.0 is being drained"
    assert ended_plan(snapshot, PlanOptions()).kind == BALANCE


@pytest.mark.parametrize("status, said", [
    (DrainStatus(ONE), "osd.3: not looked at yet"),
    (DrainStatus(ONE, {3: Remaining(4, 1 << 30, 1)}), "osd.3: 4 shards, 1 GiB left"),
    (DrainStatus(ONE, {3: Remaining(4, 1 << 30)}, (StuckShards(3, "x", 3, 1, "1.0"),)),
     "osd.3: 4 shards, 1 GiB left, of which 3 cannot leave"),
    (DrainStatus(ONE, {3: Remaining()}),
     "osd.3: no shard left; Ceph is asked whether it is safe to stop"),
    (DrainStatus(ONE, {3: Remaining()}, (), StopCheck(True, "")),
     "osd.3: no shard left, safe to stop"),
    (DrainStatus(ONE, {3: Remaining()}, (), StopCheck(False, "1 pgs unknown")),
     "osd.3: no shard left, not safe to stop: 1 pgs unknown")])
def test_how_far_it_is_in_a_clause(status: DrainStatus, said: str) -> None:
    assert drain_sentence(status) == said


def test_nothing_is_safe_to_stop_before_ceph_has_said_so() -> None:
    for check in (None, StopCheck(False, "no"), StopCheck(True, "")):
        data = drain_list(BalancerStatus(drains=DrainStatus(ONE, {3: Remaining()}, (), check)),
                          settings(), 0.0).data
        assert data["safe_to_stop"] is (check is not None and check.is_safe)


def test_what_cannot_leave_is_a_warning_even_while_off() -> None:
    status = BalancerStatus(state=STUCK, reason="3 shards cannot leave osd.3",
                            reason_code=codes.CANNOT_LEAVE,
                            drains=DrainStatus(ONE, {3: Remaining(3, 5)}))
    found = health_checks(status, STUCK_SECONDS + 1.0, False, stuck_since=0.0)
    check = found["MGR_EQUILIBRIUM_STUCK"]
    assert check["summary"] == "shards cannot leave OSDs that are being drained"
    assert "drain ls" in check["detail"][-1]
    assert health_checks(status._replace(drains=DrainStatus()), STUCK_SECONDS + 1.0,
                         False, stuck_since=0.0) == {}
