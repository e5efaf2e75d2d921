"""Plans on clusters of many rule shapes: legal for CRUSH, the monitor, upmap and the options."""
from __future__ import annotations

from functools import cache

import pytest
from tests.oracle.strict_rule import StrictRules
from tests.support.clusters.rule_shapes import RULE_SHAPES, TROUBLES, make
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan, moved

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
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
                            pool.erasure) is None, change


@pytest.mark.parametrize("shape", few(["hybrid", "replicated-host", "erasure-host", "sites"], 1))
def test_pools_rejected_pgs_and_classes_are_respected(shape: str) -> None:
    snapshot = shape_snapshot(shape, "items")
    whole = shape_plan(shape, "items")
    for pool in snapshot.pools:
        only = PlanOptions(pool_ids=frozenset((pool,)))
        plan = ended_plan(snapshot, only)
        assert plan.changes
        assert_legal(snapshot, plan, only)
    rejected = PlanOptions(rejected_pgs=frozenset(moved(whole)[::2]))
    assert_legal(snapshot, ended_plan(snapshot, rejected), rejected)
    for device_class in whole.after.classes:
        only = PlanOptions(device_classes=frozenset((device_class,)))
        plan = ended_plan(snapshot, only)
        assert plan.changes
        assert_legal(snapshot, plan, only)


@pytest.mark.parametrize("shape, trouble", [("replicated-host", "trouble"), ("hybrid", "items"),
                                            ("racks-2x2-firstn", "trouble")])
def test_a_low_fill_limit_is_kept(shape: str, trouble: str) -> None:
    """Below the mean of some, so that it is in the way."""
    snapshot = shape_snapshot(shape, trouble)
    usage = shape_plan(shape, trouble).after.classes["hdd"]
    low = PlanOptions(fill_limit=usage.mean)
    plan = ended_plan(snapshot, low)
    assert plan.changes and plan != shape_plan(shape, trouble)
    assert_legal(snapshot, plan, low)


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_shards_of_no_bytes_do_not_go_round_and_round(seed: int) -> None:
    """They gain nothing but what rounding makes of it."""
    snapshot = make("erasure-host", "trouble", seed).snapshot()
    empty = {pgid: pg._replace(shard_bytes=0) if number % 3 == 0 else pg
             for number, (pgid, pg) in enumerate(sorted(snapshot.pgs.items()))}
    assert_legal(snapshot._replace(pgs=empty), ended_plan(snapshot._replace(pgs=empty)))
