"""What an automatic plan is worth: room for a pool that holds data, not for one of megabytes."""
from __future__ import annotations

from typing import Optional

import pytest
from tests.support.clusters.unit_cluster import single_copies
from tests.support.plan_legality import ended_plan
from tests.support.units import GIB, MIB

from equilibrium_mgr.control.auto_planner import gain_reason
from equilibrium_mgr.plan.model import PoolSpace, Usage
from equilibrium_mgr.plan.options import PlanOptions


@pytest.mark.parametrize("stored, reason", [
    (8 * MIB, None), (8 * GIB, "pool .mgr can have 20 GiB more")])
def test_room_of_a_small_pool_is_no_reason(stored: int, reason: Optional[str]) -> None:
    """Beside 80 GiB of another pool, to which the plan gives no more."""
    cluster = single_copies([20, 20, 20], [20])
    cluster.pool(2, size=1, name=".mgr").pg("2.0", [0], num_bytes=stored)
    plan = ended_plan(cluster.snapshot(), PlanOptions())
    assert plan.changes
    before, after = [Usage({}, {".mgr": PoolSpace(2, stored, free * GIB, 0, None)})
                     for free in (10, 30)]
    plan = plan._replace(before=before, after=after)
    assert gain_reason(plan, cluster.snapshot(), 0.01) == reason
