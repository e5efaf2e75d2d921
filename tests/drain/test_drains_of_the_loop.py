"""What the loop makes of the list: plans that become out of date, options, gains, and reports."""
from __future__ import annotations

from typing import Any

from equilibrium_mgr.control.balancing_scope import automatic_options
from equilibrium_mgr.control.plan_basis import basis_of, topology_change
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.settings import read_settings
from tests.support.clusters.unit_cluster import Cluster, single_copies


def settings(**given: Any) -> Any:
    return read_settings(lambda name: given.get(name))


def test_another_list_makes_a_plan_out_of_date_and_needs_no_settling() -> None:
    cluster = single_copies([10], [10], [])
    before, after = (basis_of(snapshot, PlanOptions(), 0.0)
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
