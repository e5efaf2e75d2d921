"""Plans after a freeze: pins are dropped as data goes to where CRUSH wants it."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.snapshot.model import Snapshot


def frozen_expansion() -> Snapshot:
    """Four OSDs hold twelve PGs each, of which CRUSH wants four on one of two new OSDs."""
    cluster = Cluster(hosts(1, 6), {0: OSD_RULE}).pool(1, size=1)
    for number in range(48):
        osd, new = number % 4, 4 + number // 4 % 2
        is_pinned = number // 8 % 3 == 0
        cluster.pg(f"1.{number:x}", [osd], num_bytes=5 * GIB,
                   items=[(new, osd)] if is_pinned else [])
    return cluster.snapshot()


def pairs_after(snapshot: Snapshot, plan: Plan) -> int:
    items = {**snapshot.upmap_items, **{change.pgid: change.items for change in plan.changes}}
    return sum(map(len, items.values()))


def unpinned(plan: Plan) -> int:
    """Moves of the plan that leave a PG without items."""
    return sum(not change.items for change in plan.changes)


def test_what_moves_goes_where_crush_wants_it() -> None:
    snapshot = frozen_expansion()
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    assert len(plan.changes) == 16 == unpinned(plan)
    assert pairs_after(snapshot, plan) == 0
