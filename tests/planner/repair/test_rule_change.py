"""Pools are prepared for another CRUSH rule: of each PG the fewest shards move, to OSDs with which
it is legal by both rules, and nothing moves when the pool gets the rule."""
from __future__ import annotations

import random
from itertools import combinations, product
from typing import Any, Dict, List, NamedTuple, Sequence

import pytest
from tests.benchmark.made.placing import Placer
from tests.oracle.strict_rule import StrictRules
from tests.support.clusters.unit_cluster import Cluster, hosts, racks
from tests.support.few import few
from tests.support.replay import Replay
from tests.support.rules import EC_HOST_RULE, EC_OSD_RULE, HOST_RULE, OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.crush.placement import PlacementRule
from equilibrium_mgr.freeze.freeze import pin_of
from equilibrium_mgr.plan.model import REPAIR, PgChange, Plan
from equilibrium_mgr.plan.options import PlanOptions, effective_fill_limit
from equilibrium_mgr.planner.rule_repair import NOT_PREPARED, repair_plan
from equilibrium_mgr.snapshot import reason_codes as codes
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.snapshot.upmap_items import apply_items

RACK_RULE = "take default; chooseleaf firstn 0 rack; emit"
EC_RACK_RULE = "take default; chooseleaf indep 0 rack; emit"
PAIRS = "take default; choose indep 3 rack; chooseleaf indep 2 host; emit"
TO_NEW = PlanOptions(rule_id=1, pool_ids=frozenset((1,)))


class Change(NamedTuple):
    """A pool's rule before and after, its size, and k."""

    before: str
    after: str
    size: int
    k: int = 0


CHANGES: Dict[str, Change] = {
    "host-to-rack": Change(HOST_RULE, RACK_RULE, 3),
    "osd-to-host": Change(OSD_RULE, HOST_RULE, 3),
    "osd-to-rack": Change(OSD_RULE, RACK_RULE, 4),
    "pairs-firstn": Change(
        HOST_RULE, "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit", 4),
    "one-to-two-levels": Change(EC_HOST_RULE, PAIRS, 6, 4),
    "one-to-two-levels-odd": Change(EC_HOST_RULE, PAIRS, 5, 3),
    "osds-of-hosts": Change(
        EC_OSD_RULE, "take default; choose indep 3 host; choose indep 2 osd; emit", 6, 4),
    "two-to-two-levels": Change(
        EC_HOST_RULE, "take default; choose indep 2 rack; chooseleaf indep 3 host; emit", 6, 4),
    "two-to-one-level": Change(PAIRS, EC_HOST_RULE, 6, 4),
    "host-to-rack-indep": Change(EC_HOST_RULE, EC_RACK_RULE, 4, 2),
    "to-msr": Change(
        EC_OSD_RULE, "msr_indep; take default; choosemsr 3 host; choosemsr 2 osd; emit", 6, 4),
    "to-msr-firstn": Change(
        OSD_RULE, "msr_firstn; take default; choosemsr 2 rack; choosemsr 2 osd; emit", 4)}


def made(change: Change, seed: int) -> Cluster:
    """A cluster whose pool is placed by the first rule."""
    rng = random.Random(f"{change} {seed}")
    cluster = Cluster(racks(4, 4, 3), {0: change.before, 1: change.after})
    for osd in cluster.osds:
        cluster.osd(osd, size=rng.choice((100, 200, 300)) * GIB)
    cluster.pool(1, size=change.size, k=change.k)
    placer = Placer(cluster.crush, rng)
    for number in range(32):
        size = rng.randrange(1, 8 * GIB) * max(1, change.k)
        cluster.pg(f"1.{number:x}", placer.place(0, change.size), size, objects=100)
    return cluster


def after_change(cluster: Cluster, plan: Plan, builder: SnapshotBuilder, seed: int) -> Snapshot:
    """The plan is carried out, and the pool gets its rule, by which CRUSH places all PGs again."""
    placer, pool = Placer(cluster.crush, random.Random(seed)), cluster.pools[1]
    for change in plan.changes:
        cluster.up[change.pgid] = list(change.up_after)
        cluster.items[change.pgid] = list(change.items)
    builder.build(cluster.reading())
    pool["crush_rule"] = 1
    cluster.epoch += 1
    cluster.items.clear()
    for pgid, held in list(cluster.up.items()):
        cluster.pg(pgid, placer.place(1, pool["size"]), acting=held, objects=100,
                   state="active+remapped+backfill_wait",
                   num_bytes=cluster.records[pgid].num_bytes, reported=cluster.epoch)
    return builder.build(cluster.reading())


@pytest.mark.parametrize("seed", few(range(12), 1))
@pytest.mark.parametrize("name", sorted(CHANGES))
def test_all_shards_but_the_fewest_stay_and_nothing_moves_at_the_change(
        name: str, seed: int) -> None:
    """By the tests' own reading of the rules, each change is legal by the rule in force and by the
    new one; all is pinned afterwards, but for what upmap items cannot express."""
    change = CHANGES[name]
    cluster, builder = made(change, seed), SnapshotBuilder()
    snapshot = builder.build(cluster.reading())
    plan, strict = repair_plan(snapshot, TO_NEW), StrictRules(cluster.crush)
    assert plan.kind == REPAIR and NOT_PREPARED not in plan.skipped
    crush = snapshot.crush
    rules = [PlacementRule(crush, crush.rules[rule], change.size, False) for rule in (0, 1)]
    wanted = {one.pgid: one for one in plan.changes}
    for pg in snapshot.pgs.values():
        found = wanted.get(pg.pgid)
        up = pg.up if found is None else found.up_after
        for number, rule in enumerate(rules):
            assert strict.fault(number, change.size, (), up) is None
            assert rule.upmap_rejection(up) is None
        if found is not None:
            assert apply_items(pg.raw, found.items, lambda _osd: False) == up
            assert found.shards == len(set(up).difference(pg.up))
            assert not fewer_would_do(rules, pg.up, found.shards)
    now, limit = Replay(snapshot), effective_fill_limit(0.0, snapshot.backfillfull_ratio)
    for move in plan.moves:
        now.move(move)
        assert now.utilization(move.target) <= limit
    later = after_change(cluster, plan, builder, seed)
    moving = 0
    for pg in later.in_flight().values():
        pin = pin_of(later, pg, {})
        assert rules[1].violation(pin.up) is None
        assert pin.obstacle is None or pin.obstacle.code == codes.EXCHANGE
        moving += pin.moving
    most = 0.03 * change.size * len(later.in_flight()) if change.k else 0.0
    assert moving <= most


def is_legal(rules: Sequence[PlacementRule], up: Sequence[int]) -> bool:
    for rule in rules:
        if rule.violation(up) is not None or rule.upmap_rejection(up) is not None:
            return False
    return True


def fewer_would_do(rules: Sequence[PlacementRule], up: Sequence[int], shards: int) -> bool:
    """By trying all up sets that differ in one shard less, of at most two; OSDs of a host are
    alike."""
    if not 0 < shards <= 3:
        return False
    osds = _some_of_each_host(rules[0], up)
    for leaving in combinations(range(len(up)), shards - 1):
        for targets in product(osds, repeat=shards - 1):
            wanted = list(up)
            for position, target in zip(leaving, targets):
                wanted[position] = target
            if is_legal(rules, wanted):
                return True
    return False


def _some_of_each_host(rule: PlacementRule, up: Sequence[int]) -> List[int]:
    """Of each host of three OSDs two that the PG has not, where there are as many."""
    by_host: Dict[int, List[int]] = {}
    for osd in sorted(set(rule.osds()).difference(up)):
        by_host.setdefault(osd // 3, []).append(osd)
    return [osd for osds in by_host.values() for osd in osds[:2]]


def to_racks(up: Sequence[int], tree: Any = racks(4, 4, 3)) -> Cluster:
    """A PG whose pool is to be placed by racks."""
    return Cluster(tree, {0: HOST_RULE, 1: RACK_RULE}).pool(1).pg("1.0", up)


def assert_left(cluster: Cluster, not_prepared: int) -> None:
    plan = repair_plan(cluster.snapshot(), TO_NEW)
    assert plan.changes == () and plan.skipped.get(NOT_PREPARED, 0) == not_prepared


@pytest.mark.parametrize("tree", [racks(2, 4, 3), hosts(4, 3)])
def test_what_has_no_legal_placement_is_left_and_counted(tree: Any) -> None:
    """Two racks cannot take three copies, and hosts outside racks none."""
    assert_left(to_racks([0, 3, 6], tree), 1)


def test_no_osd_becomes_nearfull_for_a_rule_that_is_to_be() -> None:
    """A rack too small for what the rule wants there would end up nearfull as a whole; a PG that
    breaks the rule in force may need the room."""
    cluster = to_racks([0, 3, 12])
    for osd in range(24, 48):
        cluster.osd(osd, used=86 * GIB)
    assert_left(cluster, 1)


def test_other_pools_and_legal_pgs_stay() -> None:
    assert_left(to_racks([0, 12, 24]).pool(2).pg("2.0", "0 3 6"), 0)


def prepared(cluster: Cluster) -> PgChange:
    """The only change."""
    (change,) = repair_plan(cluster.snapshot(), TO_NEW).changes
    return change


@pytest.mark.parametrize("full", [0, 3])
def test_of_two_that_could_leave_the_fuller_osd_loses_its_shard(full: int) -> None:
    change = prepared(to_racks([0, 3, 12]).osd(full, used=50 * GIB))
    assert full not in change.up_after and change.shards == 1


def test_a_long_code_on_many_racks() -> None:
    """20 shards in 14 of 24 racks: six leave, without all being tried."""
    cluster = Cluster(racks(24, 2, 2), {0: EC_HOST_RULE, 1: EC_RACK_RULE}).pool(1, size=20, k=17)
    cluster.pg("1.0", [*range(0, 56, 4), *range(2, 26, 4)])
    assert prepared(cluster).shards == 6
