"""Plans as the service keeps them."""
from __future__ import annotations

from equilibrium_mgr.plan.model import Plan, topology_of
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot, pool_of


def plan_as_kept(snapshot: Snapshot) -> Plan:
    """The planner's plan, with what it rests on of the map."""
    plan = make_plan(snapshot)
    pools = {pool_of(change.pgid) for change in plan.changes}
    mark = topology_of(snapshot.crush_version, snapshot.osds)
    assert pools and mark
    return plan._replace(topology=mark, pool_pgs={
        str(pool): snapshot.pools[pool].pg_num for pool in pools})
