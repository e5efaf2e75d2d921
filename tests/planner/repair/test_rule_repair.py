"""PGs that upmap items have put where their rule does not allow it are mended, and nothing else."""
from __future__ import annotations

import random
from typing import List, Tuple

import pytest
from tests.oracle.strict_rule import StrictRules
from tests.support.clusters.rule_shapes import RULE_SHAPES, make
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.rules import EC_HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.model import REPAIR, Plan
from equilibrium_mgr.plan.options import MOVE_LIMIT, PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.rule_repair import NOT_MENDED, broken_pgs, repair_plan
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.snapshot.upmap_items import apply_items


def never_out(_osd: int) -> bool:
    return False


def changes(plan: Plan) -> List[Tuple[str, Tuple[int, ...], int]]:
    return [(change.pgid, change.up_after, change.shards) for change in plan.changes]


def two_on_a_host() -> Cluster:
    """Four hosts of two OSDs; PG 1.0 has been put on osd.0 and osd.1, both of the first host."""
    cluster = Cluster(hosts(4, 2)).pool(1, size=2, name="rbd")
    cluster.pg("1.0", [0, 1], 8 * GIB, items=[(2, 1)]).pg("1.1", [2, 4], 4 * GIB)
    cluster.pg("1.2", [6, 5], 2 * GIB)
    return cluster


def test_one_shard_goes_to_the_emptiest_host() -> None:
    """osd.7 is empty, and so is osd.3, where nothing else would have to move either."""
    snapshot = two_on_a_host().snapshot()
    assert [pg.pgid for pg in broken_pgs(snapshot)] == ["1.0"]
    assert not [c for c in make_plan(snapshot).changes if c.pgid == "1.0"]   # balancing leaves it
    plan = repair_plan(snapshot)
    assert plan.kind == REPAIR and len(plan.changes) == 1
    (change,) = plan.changes
    assert change.shards == 1 and plan.moves[0].bytes == 8 * GIB
    assert set(change.up_after) - {0, 1} <= {3, 7} and NOT_MENDED not in plan.skipped


def test_data_that_has_not_left_stays() -> None:
    """The upmap has just been made: the shard is still where CRUSH has it, and nothing moves."""
    cluster = two_on_a_host()
    cluster.acting["1.0"] = [0, 2]
    (change,) = repair_plan(cluster.snapshot()).changes
    assert (change.up_after, change.items) == ((0, 2), ())


def test_data_that_was_moved_before_stays_there() -> None:
    cluster = two_on_a_host()
    cluster.acting["1.0"] = [0, 4]
    (change,) = repair_plan(cluster.snapshot()).changes
    assert (change.up_after, change.items) == ((0, 4), ((2, 4),))


def test_no_target_passes_its_fill_limit() -> None:
    """Only osd.5 has room for the shard; and then none has."""
    cluster = two_on_a_host()
    for osd in (2, 3, 4, 6, 7):
        cluster.osd(osd, used=85 * GIB)
    ((_, up, _),) = changes(repair_plan(cluster.snapshot()))
    assert 5 in up
    cluster.osd(5, used=85 * GIB)
    full = repair_plan(cluster.snapshot())
    assert full.changes == () and full.skipped[NOT_MENDED] == 1


def test_only_what_the_options_allow() -> None:
    snapshot = two_on_a_host().snapshot()
    assert repair_plan(snapshot, PlanOptions(pool_ids=frozenset((7,)))).changes == ()
    none = repair_plan(snapshot, PlanOptions(sources=frozenset((5,))))
    assert none.changes == () and none.skipped[NOT_MENDED] == 1
    only = repair_plan(snapshot, PlanOptions(targets=frozenset((5,))))
    assert [set(up) & {5} for _, up, _ in changes(only)] == [{5}]
    assert repair_plan(snapshot, PlanOptions(max_moves=0)).stop_reason == MOVE_LIMIT


def broken(shape: str, seed: int) -> Tuple[Cluster, Snapshot]:
    """A cluster in which other tools have put every third PG anywhere."""
    cluster, rng = make(shape, "plain", seed), random.Random(f"{shape} {seed}")
    for number, pgid in enumerate(sorted(cluster.up)):
        if number % 3 == 0:
            up = list(cluster.up[pgid])
            position, target = rng.randrange(len(up)), rng.choice(sorted(cluster.osds))
            if target not in up:
                cluster.items[pgid] = [(up[position], target)]
                up[position] = target
                cluster.up[pgid] = up
    return cluster, cluster.snapshot()


@pytest.mark.parametrize("seed", few(range(4), 1))
@pytest.mark.parametrize("shape", sorted(RULE_SHAPES))
def test_all_shapes_of_rules(shape: str, seed: int) -> None:
    """What is left unmended has no legal up set one shard away; the rest is legal, by the tests'
    own reading of the rules, and expressible."""
    cluster, snapshot = broken(shape, seed)
    plan, strict = repair_plan(snapshot), StrictRules(cluster.crush)
    found = broken_pgs(snapshot)
    mended = {change.pgid: change for change in plan.changes}
    assert set(mended) <= {pg.pgid for pg in found}
    for pg in found:
        pool = snapshot.pools[pg.pool]
        assert pool.rule is not None
        change = mended.get(pg.pgid)
        if change is None:
            assert pool.rule.upmap_rejection(pg.raw) is not None, pg
            continue
        assert pool.rule.violation(change.up_after) is None
        assert pool.rule.upmap_rejection(change.up_after) is None
        assert strict.fault(pool.rule_id, pool.size, pg.raw, change.up_after) is None
        assert apply_items(pg.raw, change.items, never_out) == change.up_after
        assert change.shards == 1, change   # one shard had been moved, and one goes somewhere else
    assert plan.skipped.get(NOT_MENDED, 0) == len(found) - len(mended)


def far_from_its_rule() -> Cluster:
    """Four of eleven shards share their hosts."""
    made = Cluster(hosts(11, 12), {0: EC_HOST_RULE}).pool(1, size=11, k=8)
    raw = [12 * host for host in range(11)]
    items = [(raw[i], raw[10 - i] + 1) for i in range(4)]
    return made.pg("1.0", [dict(items).get(osd, osd) for osd in raw], objects=10, items=items)


def test_what_one_move_does_not_mend_returns_to_where_crush_has_it() -> None:
    (change,) = changes(repair_plan(far_from_its_rule().snapshot()))
    assert change == ("1.0", tuple(12 * host for host in range(11)), 4)
