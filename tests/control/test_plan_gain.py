"""What an automatic plan is worth: room for a pool that holds data, not for one of megabytes."""
from __future__ import annotations

from typing import Optional

import pytest
from tests.scenarios import clusters
from tests.support.clusters.unit_cluster import single_copies
from tests.support.plan_legality import ended_plan
from tests.support.units import GIB, MIB

from equilibrium_mgr.control.plan_validity import gain_reason, needed_part
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


@pytest.mark.parametrize("seed", [6, 12])
@pytest.mark.parametrize("min_gain", [0.002, 0.05, 0.15])
def test_what_gains_too_little_is_cut_off(seed: int, min_gain: float) -> None:
    """What is kept gains min_gain wherever the whole plan does, and the rest does not."""
    snapshot = clusters.make("random", seed).snapshot()
    plan = ended_plan(snapshot, PlanOptions())
    kept = needed_part(plan, snapshot, min_gain)
    count, moved = len(kept.changes), {change.pgid for change in kept.changes}
    assert kept.changes == plan.changes[:count]
    assert kept.moves == tuple(move for move in plan.moves if move.pgid in moved)
    assert bool(gain_reason(kept, snapshot, min_gain)) == bool(
        gain_reason(plan, snapshot, min_gain))
    assert kept == plan or not gain_reason(plan._replace(
        before=kept.after, changes=plan.changes[count:], moves=tuple(
            move for move in plan.moves if move.pgid not in moved)), snapshot, min_gain)
    assert needed_part(plan, snapshot, 0.0) == plan
