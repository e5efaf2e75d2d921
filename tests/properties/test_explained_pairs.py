"""`explain PGID OSD` answers as the planner and the throttle do."""
from __future__ import annotations

import random
from typing import Any, Dict, List, Sequence, Tuple

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.guards import blocked_pools
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.execution.batch import next_batch
from equilibrium_mgr.execution.round_state import ThrottleState
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.observation.cluster_view import MOVING, make_view
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.plan.options import PgShardLimits
from equilibrium_mgr.plan.usage import share_limits_within
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.report.explain.context import ExplainContext
from equilibrium_mgr.report.explain.pair import PLANNER, SENDER, Pair, ask
from equilibrium_mgr.settings import Settings, default_settings
from equilibrium_mgr.snapshot import reason_codes as codes
from equilibrium_mgr.snapshot.model import Snapshot, without_shares
from tests.execution.limits import FREE
from tests.properties.planned import Planned
from tests.support.plan_legality import ended_plan
from tests.support.replay import follow_up

_PAIRS = 150


def asked(snapshot: Snapshot, settings: Settings, pairs: List[Tuple[str, int]],
          limits: PgShardLimits = PgShardLimits(), wanted: Sequence[PgChange] = ()
          ) -> Tuple[ExplainContext, List[Pair]]:
    view = make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)
    context = ExplainContext(view, BalancerStatus(MOVING, wanted=wanted), settings,
                             max_pg_shards=limits)
    state = ThrottleState(snapshot, FREE._replace(settings=settings), blocked_pools(snapshot),
                          osd_traffic(snapshot, {}))
    return context, [ask(snapshot.pgs[pgid], snapshot.osds[osd], context, state)
                     for pgid, osd in pairs]


def narrowed(snapshot: Snapshot, rng: random.Random) -> Settings:
    """Options that leave out pools, OSDs and moves."""
    osds = [f"osd.{osd}" for osd in snapshot.osds]
    some = [frozenset(rng.sample(osds, 3)) for _ in range(2)]
    choices: List[Dict[str, Any]] = [
        {}, {"pool_ids": frozenset(sorted(snapshot.pools)[:1])}, {"not_buckets": some[0]},
        {"to_buckets": some[0] | some[1]}, {"respect_weights": False}, {"fill_limit": 0.6},
        {"device_classes": frozenset([snapshot.osds[min(snapshot.osds)].device_class])},
        {"max_upmap_items": 1e-9}]
    return default_settings()._replace(**rng.choice(choices))


def test_a_shard_may_go_where_a_plan_may_move_it(case: Planned) -> None:
    rng, snapshot = case.rng("pairs"), case.snapshot
    pgids, osds = sorted(snapshot.pgs), sorted(snapshot.osds)
    pairs = [(rng.choice(pgids), rng.choice(osds)) for _ in range(_PAIRS)]
    context, answers = asked(snapshot, narrowed(snapshot, rng), pairs, PgShardLimits(
        0, rng.choice((0, 0, snapshot.pools[min(snapshot.pools)].pg_num // 8))))
    shown = snapshot if context.settings.respect_weights else without_shares(snapshot)
    fresh = PlacementState(shown, context.options)
    fresh.set_share_limits(share_limits_within(
        shown, utilization_bounds(snapshot).utilizations))
    numbers = {pg.pgid: number for number, pg in enumerate(fresh.pgs)}
    for (pgid, osd), found in zip(pairs, answers):
        legal: List[int] = []
        if pgid in numbers and osd in fresh.index_of:
            legal = legal_sources(fresh, numbers[pgid], osd)
        assert found.allows(PLANNER) == bool(legal), (pgid, osd, found)
        if legal:
            assert found.source in legal and set(legal) <= set(found.sources)


def legal_sources(placement: PlacementState, number: int, osd: int) -> List[int]:
    """OSDs of a PG that may give their shard to an OSD."""
    snapshot, pg, there = placement.snapshot, placement.pgs[number], placement.index_of[osd]
    legal: List[int] = []
    for source in pg.up:
        if placement.is_legal(number, placement.index_of[source], there):
            up = [osd if one == source else one for one in pg.up]
            if placement.has_room(there, snapshot.shard_bytes(pg, osd, up)):
                legal.append(source)
    return legal


def test_each_move_of_a_plan_may_go_and_goes_as_the_throttle_says(case: Planned) -> None:
    """Changes of several shards aside: one by one these may be illegal."""
    settings = default_settings()
    context, _ = asked(case.snapshot, settings, [])
    plan = ended_plan(case.snapshot, context.options)
    single = [number for number, change in enumerate(plan.changes) if change.shards == 1]
    for number in case.rng("moves").sample(single, min(8, len(single))):
        change, later = plan.changes[number], follow_up(case.snapshot, plan.changes[:number])
        (target,) = set(change.up_after) - set(change.up_before)
        _, (found,) = asked(later, settings, [(change.pgid, target)], wanted=[change])
        assert found.allows(PLANNER), (change, found)
        sent = next_batch(later, [change], FREE._replace(settings=settings),
                          blocked_pools(later)).send
        rows = [row for row in found.rows if row["stage"] == SENDER]
        assert all(row["allows"] for row in rows) == bool(sent), (change, rows)
        assert not {row["code"] for row in rows} & {codes.NOT_READY, codes.SWITCHED_OFF}
