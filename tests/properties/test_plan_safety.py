"""S1, S2, S3, S7, S9 (and L4, in plan_legality.py): no plan asks for anything that it must not."""
from __future__ import annotations

from typing import Any, Tuple

import pytest
from tests.oracle.strict_rule import StrictRules
from tests.properties.planned import Planned
from tests.support.plan_legality import assert_legal
from tests.support.replay import by_change

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import FILL_MARGIN
from equilibrium_mgr.snapshot.model import pool_of

from mgr_stub.osdmap.crush_map import CrushMap
from tests.support.strict_crush import monitor_keeps


def test_everything_that_single_plans_are_held_to(case: Planned) -> None:
    """What tests/planner asks of its own clusters: the prediction and the way to it, too."""
    assert_legal(case.snapshot, case.plan, case.options)


def test_s1_planned_up_sets_obey_their_rule_exactly(case: Planned) -> None:
    """By a reading of CRUSH rules that shares no code with the package; nothing is forgiven for
    what CRUSH itself gave the PG."""
    strict = StrictRules(case.cluster.crush)
    for change in case.plan.changes:
        pool = case.cluster.pools[pool_of(change.pgid)]
        assert strict.fault(pool["crush_rule"], pool["size"], (), change.up_after) is None, change


@pytest.mark.every(4)
def test_s1_a_monitor_keeps_them(case: Planned) -> None:
    """By the monitor's check as it is simulated."""
    crush = CrushMap(case.cluster.crush)
    for change in case.plan.changes:
        pool = case.cluster.pools[pool_of(change.pgid)]
        assert monitor_keeps(crush, pool["crush_rule"], pool["size"], change.up_after), change


def test_s2_targets_are_up_and_in_and_have_weight(case: Planned) -> None:
    """In the osdmap's own words; S1 has the CRUSH weights."""
    reporting = {stats["osd"] for stats in case.cluster.osd_stats()}
    for move in case.plan.moves:
        osd = case.cluster.osds[move.target]
        assert osd["up"] and osd["in"] and osd["weight"] > 0.0, move
        assert "up" in osd["state"] and "destroyed" not in osd["state"]
        assert move.target in reporting


def test_s3_no_target_passes_its_fill_limit_in_the_emitted_order(case: Planned) -> None:
    """The planner's promise: each change's data has arrived, and its sources are free, before the
    next one goes; what was in flight before has arrived. That sources hold their copy until then
    is for the executor, who sends only so much at once (execution/checks.py)."""
    ratio = case.snapshot.backfillfull_ratio - FILL_MARGIN
    now = case.start()
    for change, moves in by_change(case.plan):
        arriving = {move.target: now.used[move.target] + move.bytes for move in moves}
        for osd, used in arriving.items():
            assert used <= ratio * case.snapshot.osds[osd].size_bytes, (change.pgid, osd)
        for move in moves:
            now.move(move)


def test_s7_upmap_items_are_well_formed(case: Planned) -> None:
    """The map holds only items that mean what they say:
    `from` is what CRUSH chose, `to` is not, and no OSD stands in two pairs of a PG."""
    for change in case.plan.changes:
        raw = raw_of(case, change.pgid)
        assert change.raw == raw
        sources = [source for source, _ in change.items]
        targets = [target for _, target in change.items]
        assert set(sources) <= set(raw) and not set(targets) & set(raw)
        assert len(set(sources)) == len(sources) and len(set(targets)) == len(targets)
        instead = dict(change.items)
        assert change.up_after == tuple(instead.get(osd, osd) for osd in raw)


def raw_of(case: Planned, pgid: str) -> Tuple[int, ...]:
    """What CRUSH gave the PG: its up set with the items that took effect taken back."""
    raw = list(case.cluster.up[pgid])
    for source, target in reversed(case.cluster.items.get(pgid, ())):
        if target in raw and source not in raw:
            raw[raw.index(target)] = source
    return tuple(raw)


def legal_plan(case: Planned, **options: Any) -> Plan:
    plan = case.planned(**options)
    assert_legal(case.snapshot, plan, case.options._replace(**options))
    return plan


@pytest.mark.every(10)
def test_s9_other_pools_and_rejected_pgs_are_untouched(case: Planned) -> None:
    rng = case.rng("s9")
    pools = sorted(case.cluster.pools)
    some = frozenset(rng.sample(pools, rng.randint(1, max(1, len(pools) - 1))))
    rejected = frozenset(rng.sample(sorted(case.cluster.up), 10))
    for move in legal_plan(case, pool_ids=some, rejected_pgs=rejected).moves:
        assert pool_of(move.pgid) in some and move.pgid not in rejected


@pytest.mark.every(10)
def test_s9_other_device_classes_are_untouched(case: Planned) -> None:
    classes = sorted({device.get("class", "") for device in case.cluster.crush["devices"]})
    wanted = case.rng("s9 classes").choice(classes)
    of_class = {device["id"] for device in case.cluster.crush["devices"]
                if device.get("class", "") == wanted}
    for move in legal_plan(case, device_classes=frozenset((wanted,))).moves:
        assert move.source in of_class and move.target in of_class, move


@pytest.mark.every(4)
def test_s9_only_sources_give_and_only_targets_get(case: Planned) -> None:
    """By single moves, joint moves and swaps: `assert_legal` looks at both ends of each."""
    osds = sorted(case.cluster.osds)
    half = frozenset(case.rng("s9 osds").sample(osds, len(osds) // 2))
    legal_plan(case, sources=half)
    legal_plan(case, targets=half)
    legal_plan(case, sources=half, targets=half)
