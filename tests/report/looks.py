"""What evaluations of snapshots and plans rest on, without a mgr."""
from __future__ import annotations

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.gateway.cluster_summary import PoolSpaceNow
from equilibrium_mgr.observation.cluster_view import make_view
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.cluster.evaluation import Look, evaluate_plan
from equilibrium_mgr.report.answer import CommandAnswer
from equilibrium_mgr.snapshot.model import Snapshot


def look_at(snapshot: Snapshot) -> Look:
    """A look that is 3 seconds old."""
    view = make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)
    return Look(view, 3.0, {pool.id: PoolSpaceNow(pool.name, pool.stored_bytes, 0.5, 1 << 40)
                            for pool in snapshot.pools.values()})


def evaluated(plan: Plan, look: Look) -> CommandAnswer:
    """`eval` of a plan p of the newest osdmap."""
    return evaluate_plan("p", plan, look, epoch=plan.epoch, age_seconds=60.0)
