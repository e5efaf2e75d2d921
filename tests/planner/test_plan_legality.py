"""Plans on clusters of many rule shapes: legal for CRUSH, the monitor, upmap and the options."""
from __future__ import annotations

from functools import cache

import pytest
from tests.oracle.strict_rule import StrictRules
from tests.support.clusters.rule_shapes import RULE_SHAPES, TROUBLES, make
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.snapshot.model import Snapshot

SHAPES_WITH_TROUBLES = [(shape, trouble) for shape in RULE_SHAPES for trouble in TROUBLES]


@cache
def shape_snapshot(shape: str, trouble: str) -> Snapshot:
    return make(shape, trouble).snapshot()


@cache
def shape_plan(shape: str, trouble: str) -> Plan:
    return ended_plan(shape_snapshot(shape, trouble))


@pytest.mark.parametrize("shape, trouble", [
    case if number % 3 == 0 else pytest.param(*case, marks=pytest.mark.full)
    for number, case in enumerate(SHAPES_WITH_TROUBLES)])
def test_plans_are_legal(shape: str, trouble: str) -> None:
    """By a second reading of CRUSH rules, too, that shares no code with the package."""
    cluster, snapshot = make(shape, trouble), shape_snapshot(shape, trouble)
    plan, strict = shape_plan(shape, trouble), StrictRules(cluster.crush)
    assert len(plan.changes) > 3
    assert_legal(snapshot, plan)
    for change in plan.changes:
        pool = snapshot.pools[snapshot.pgs[change.pgid].pool]
        assert strict.fault(pool.rule_id, pool.size, change.raw, change.up_after,
                            pool.positional) is None, change


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_shards_of_no_bytes_do_not_go_round_and_round(seed: int) -> None:
    """They gain nothing but what rounding makes of it."""
    snapshot = make("erasure-host", "trouble", seed).snapshot()
    empty = {pgid: pg._replace(shard_bytes=0) if number % 3 == 0 else pg
             for number, (pgid, pg) in enumerate(sorted(snapshot.pgs.items()))}
    assert_legal(snapshot._replace(pgs=empty), ended_plan(snapshot._replace(pgs=empty)))
