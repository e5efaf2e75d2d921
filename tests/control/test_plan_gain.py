"""What an automatic plan is worth: room for a pool that holds data, not for one of megabytes."""
from __future__ import annotations

from typing import Optional

import pytest
from tests.support.clusters.unit_cluster import single_copies
from tests.support.plan_legality import ended_plan
from tests.support.units import GIB, MIB

from equilibrium_mgr.control.auto_planner import _with_changes
from equilibrium_mgr.control.plan_gain import gain_reason
from equilibrium_mgr.plan.model import PoolSpace, Usage
from equilibrium_mgr.plan.options import PlanOptions


@pytest.mark.parametrize("stored, reason", [
    (8 * MIB, None), (8 * GIB, "pool .mgr can have 20 GiB more")])
def test_room_of_a_small_pool_is_no_reason(stored: int, reason: Optional[str]) -> None:
    """Beside 80 GiB of another pool, to which the plan gives no more."""
    cluster = single_copies([20, 20, 20], [20])
    cluster.pool(2, size=1, name=".mgr").pg("2.0", "0", num_bytes=stored)
    plan = ended_plan(cluster.snapshot(), PlanOptions())
    assert plan.changes
    before, after = [Usage({}, {".mgr": PoolSpace(2, stored, free * GIB, 0)})
                     for free in (10, 30)]
    plan = plan._replace(before=before, after=after)
    assert gain_reason(plan, cluster.snapshot(), 0.01) == reason


def test_gain_of_a_plan_that_has_lost_changes_is_that_of_the_others() -> None:
    """The topology keeps changing: what of the plan it touches falls away."""
    cluster = single_copies([20, 20, 20, 1], [20], [20], [1])
    snapshot = cluster.snapshot()
    plan = ended_plan(snapshot, PlanOptions())
    assert len(plan.changes) > 1
    assert gain_reason(plan, snapshot, 0.3)
    least = min(plan.changes, key=lambda change: change.shard_bytes)
    flapping = {osd for change in plan.changes for osd in change.up_before + change.up_after}
    flapping.difference_update(least.up_before, least.up_after)
    later = snapshot._replace(osds={
        number: osd._replace(reweight=0.99) if number in flapping else osd
        for number, osd in snapshot.osds.items()})
    left = _with_changes(plan, (least,), later)
    assert {move.pgid for move in left.moves} == {least.pgid}
    assert gain_reason(left, later, 0.3) is None
    whole = _with_changes(plan, plan.changes, snapshot)
    assert whole.after.classes == plan.after.classes
    assert whole.moves == plan.moves
