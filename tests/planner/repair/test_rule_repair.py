"""PGs that upmap items have put where their rule does not allow it are mended, and nothing else."""
from __future__ import annotations

import random
from typing import Any, Tuple

import pytest
from tests.oracle.strict_rule import StrictRules
from tests.support.clusters.rule_shapes import RULE_SHAPES, make
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.rules import EC_HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.model import REPAIR, PgChange
from equilibrium_mgr.plan.options import MOVE_LIMIT, PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.rule_repair import NOT_MENDED, broken_pgs, repair_plan
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.snapshot.upmap_items import apply_items


def never_out(_osd: int) -> bool:
    return False


def mended(cluster: Cluster, **options: Any) -> PgChange:
    """The only change."""
    (change,) = repair_plan(cluster.snapshot(), PlanOptions(**options)).changes
    return change


def assert_none(cluster: Cluster, not_mended: int, **options: Any) -> None:
    plan = repair_plan(cluster.snapshot(), PlanOptions(**options))
    assert plan.changes == () and plan.skipped.get(NOT_MENDED, 0) == not_mended


def two_on_a_host() -> Cluster:
    """Four hosts of two OSDs; PG 1.0 has been put on osd.0 and osd.1, both of the first host."""
    cluster = Cluster(hosts(4, 2)).pool(1, size=2, name="rbd")
    cluster.pg("1.0", "0 1", 8 * GIB, items="2>1").pg("1.1", "2 4", 4 * GIB)
    cluster.pg("1.2", "6 5", 2 * GIB)
    return cluster


def test_one_shard_goes_to_the_emptiest_host() -> None:
    """osd.7 is empty, and so is osd.3, where nothing else would have to move either."""
    snapshot = two_on_a_host().snapshot()
    assert [pg.pgid for pg in broken_pgs(snapshot)] == ["1.0"]
    assert not [c for c in make_plan(snapshot).changes if c.pgid == "1.0"]   # balancing leaves it
    plan = repair_plan(snapshot)
    (change,) = plan.changes
    assert plan.kind == REPAIR and change.shards == 1 and plan.moves[0].bytes == 8 * GIB
    assert set(change.up_after) - {0, 1} <= {3, 7} and NOT_MENDED not in plan.skipped


@pytest.mark.parametrize("other, items", [(2, ()), (4, ((2, 4),))])
def test_data_stays_where_it_is(other: int, items: Any) -> None:
    """The upmap has just been made: the shard is still where CRUSH has it, or where it was moved
    before, and nothing moves."""
    cluster = two_on_a_host()
    cluster.acting["1.0"] = [0, other]
    change = mended(cluster)
    assert (change.up_after, change.items) == ((0, other), items)


def test_no_target_passes_its_fill_limit() -> None:
    """Only osd.5 has room for the shard; and then none has."""
    cluster = two_on_a_host()
    for osd in (2, 3, 4, 6, 7):
        cluster.osd(osd, used=85 * GIB)
    assert 5 in mended(cluster).up_after
    assert_none(cluster.osd(5, used=85 * GIB), 1)


def test_only_what_the_options_allow() -> None:
    cluster, five = two_on_a_host(), frozenset({5})
    assert_none(cluster, 0, pool_ids=frozenset({7}))
    assert_none(cluster, 1, sources=five)
    assert 5 in mended(cluster, targets=five).up_after
    none = repair_plan(cluster.snapshot(), PlanOptions(max_moves=0))
    assert none.stop_reason == MOVE_LIMIT


def broken(shape: str, seed: int) -> Tuple[Cluster, Snapshot]:
    """A cluster in which other tools have put every third PG anywhere."""
    cluster, rng = make(shape, "plain", seed), random.Random(f"{shape} {seed}")
    for pgid in sorted(cluster.up)[::3]:
        up = cluster.up[pgid]
        position, target = rng.randrange(len(up)), rng.choice(sorted(cluster.osds))
        if target not in up:
            cluster.items[pgid] = [(up[position], target)]
            up[position] = target
    return cluster, cluster.snapshot()


@pytest.mark.parametrize("seed", few(range(4), 1))
@pytest.mark.parametrize("shape", sorted(RULE_SHAPES))
def test_all_shapes_of_rules(shape: str, seed: int) -> None:
    """What is left unmended has no legal up set one shard away; the rest is legal, by the tests'
    own reading of the rules, and expressible."""
    cluster, snapshot = broken(shape, seed)
    plan, strict = repair_plan(snapshot), StrictRules(cluster.crush)
    found = broken_pgs(snapshot)
    changes = {change.pgid: change for change in plan.changes}
    assert set(changes) <= {pg.pgid for pg in found}
    for pg in found:
        pool = snapshot.pools[pg.pool]
        assert pool.rule is not None
        change = changes.get(pg.pgid)
        if change is None:
            assert pool.rule.upmap_rejection(pg.raw) is not None, pg
            continue
        assert pool.rule.violation(change.up_after) is None
        assert pool.rule.upmap_rejection(change.up_after) is None
        assert strict.fault(pool.rule_id, pool.size, pg.raw, change.up_after) is None
        assert apply_items(pg.raw, change.items, never_out) == change.up_after
        assert change.shards == 1, change   # one shard had been moved, and one goes somewhere else
    assert plan.skipped.get(NOT_MENDED, 0) == len(found) - len(changes)


def test_what_one_move_does_not_mend_returns_to_where_crush_has_it() -> None:
    """Four of eleven shards share their hosts."""
    cluster = Cluster(hosts(11, 2), {0: EC_HOST_RULE}).pool(1, size=11, k=8)
    raw = range(0, 22, 2)
    cluster.pg("1.0", [21, 19, 17, 15, *raw[4:]],
               items="0>21 2>19 4>17 6>15", objects=10)
    change = mended(cluster)
    assert change.up_after == tuple(raw) and change.shards == 4
