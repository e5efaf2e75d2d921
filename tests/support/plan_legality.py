"""Is a plan legal from its first move to its last? Nothing here asks the planner."""
from __future__ import annotations

from functools import cache
from itertools import count
from typing import Dict, Optional, Sequence, Set, Tuple

import pytest
from tests.support.replay import Replay, by_change

from equilibrium_mgr.plan.model import PgChange, Plan
from equilibrium_mgr.plan.options import PlanOptions, effective_fill_limit
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot.model import Pool, Snapshot, pg_number
from equilibrium_mgr.snapshot.upmap_items import apply_items


#: Calls of `give_way` per shard after which a plan cannot be in earnest any more: small plans
#: that end need up to 120, of six searches whose repairs call it between their pieces too.
_CALLS_PER_SHARD = 300


def ended_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """The whole plan; fails, by counting and not by a clock, where the search does not end."""
    most = 1000 + _CALLS_PER_SHARD * sum(len(pg.up) for pg in snapshot.pgs.values())
    calls = count()

    def counted(moves: int) -> bool:
        assert next(calls) < most, f"the search goes on and on: {moves} moves"
        return True
    with giving_way(counted):
        return make_plan(snapshot, options)


def never_out(_osd: int) -> bool:
    return False


def assert_legal(snapshot: Snapshot, plan: Plan, options: PlanOptions = PlanOptions()) -> None:
    """Every change by itself, the way through all moves, and the prediction."""
    assert len({change.pgid for change in plan.changes}) == len(plan.changes)
    for change in plan.changes:
        assert_legal_change(snapshot, change)
        assert_wanted(snapshot, change, options)
    assert_way(snapshot, plan, options)
    assert_prediction(snapshot, plan)


def assert_legal_change(snapshot: Snapshot, change: PgChange) -> None:
    pg = snapshot.pgs[change.pgid]
    pool = snapshot.pools[pg.pool]
    assert pg.immovable is None and pool.rule is not None and pool.immovable is None
    assert (change.raw, change.up_before) == (pg.raw, pg.up)
    assert (change.shard_bytes, change.objects) == (pg.shard_bytes, pg.objects)
    assert pool.rule.violation(change.up_after) is None, change
    assert pool.rule.upmap_rejection(change.up_after) is None, change
    assert apply_items(pg.raw, change.items, never_out) == change.up_after
    differ = tuple((r, w) for r, w in zip(pg.raw, change.up_after) if r != w)
    if set(pg.raw).isdisjoint(w for _, w in differ):
        assert change.items == differ
    else:   # a freeze has left shards where CRUSH wants others
        assert len(differ) <= len(change.items) <= pool.size and pool.erasure
        assert {source for source, _ in change.items} <= set(pg.raw)
    _, gains = losses_and_gains(change)
    assert change.shards == len(gains) > 0
    for osd in gains:
        assert snapshot.osds[osd].unusable_reason() is None, change
    assert_no_shard_follows_another(pool, change)


def losses_and_gains(change: PgChange) -> Tuple[Set[int], Set[int]]:
    before, after = set(change.up_before), set(change.up_after)
    return before - after, after - before


def assert_no_shard_follows_another(pool: Pool, change: PgChange) -> None:
    """Erasure-coded, per position; replicated, between the takes of the rule."""
    assert pool.rule is not None
    if pool.erasure:
        for before, after in zip(change.up_before, change.up_after):
            assert after == before or after not in change.up_before, change
        return
    for block in pool.rule.blocks:
        members = block.members(change.up_before)
        for osd in block.members(change.up_after):
            assert osd in members or osd not in change.up_before, change


def assert_wanted(snapshot: Snapshot, change: PgChange, options: PlanOptions) -> None:
    """The change keeps within what the options allow."""
    losses, gains = losses_and_gains(change)
    assert change.pgid not in options.rejected_pgs
    assert options.pool_ids is None or snapshot.pgs[change.pgid].pool in options.pool_ids
    if options.device_classes is not None:
        classes = {snapshot.osds[osd].device_class for osd in losses | gains}
        assert classes <= set(options.device_classes), change
    assert options.sources is None or losses <= options.sources, change
    assert options.targets is None or gains <= options.targets, change


def assert_way(snapshot: Snapshot, plan: Plan, options: PlanOptions) -> None:
    """Moves lead from each up set to the next; no target is lifted above the fill limit."""
    limit = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
    now = Replay(snapshot)
    for change, moves in by_change(plan):
        assert ({m.source for m in moves}, {m.target for m in moves}) == losses_and_gains(change)
        for move in moves:
            before = (now.utilization(move.source), now.utilization(move.target))
            now.move(move)
            assert (move.source_before, move.target_before) == pytest.approx(before)
            assert move.source_after == pytest.approx(now.utilization(move.source))
            assert move.target_after == pytest.approx(now.utilization(move.target))
            assert now.used[move.target] <= limit * snapshot.osds[move.target].size_bytes, move
            assert move.objects == snapshot.pgs[move.pgid].objects
        assert sorted(now.up[change.pgid]) == sorted(change.up_after)


def assert_prediction(snapshot: Snapshot, plan: Plan) -> None:
    """The figures after the plan, counted again; no byte is lost or made."""
    end = Replay(snapshot, plan.moves)
    for name, usage in plan.after.classes.items():
        levels = end.utilizations(name)
        # the fullest is one that is up, where any is: nothing can be moved off the others
        up = [level for osd, level in levels.items() if snapshot.osds[osd].up]
        assert (usage.max, usage.min) == pytest.approx((max(up or levels.values()),
                                                        min(levels.values())))
        assert usage.stddev == pytest.approx(end.stddev(name))
        assert usage.used_bytes == sum(end.used[osd] for osd in levels)
        assert levels[usage.fullest_osd] == pytest.approx(usage.max)
    for pool in snapshot.pools.values():
        free = free_bytes(snapshot, end, pool)
        space = plan.after.pools[pool.name]
        assert space.free_bytes == pytest.approx(free or 0, abs=2, rel=1e-9)
    assert sum(end.used.values()) == sum(o.target_bytes for o in snapshot.osds.values())


def free_bytes(snapshot: Snapshot, end: Replay, pool: Pool) -> Optional[float]:
    """What fits until the pool's first OSD is full, if new bytes spread over its PGs."""
    parts: Dict[int, float] = {}
    for pg in snapshot.pgs.values():
        for osd in end.up[pg.pgid] if pg.pool == pool.id else ():
            parts[osd] = parts.get(osd, 0.0) + part_of(pg.pgid, pool.pg_num)
    fits = []
    for osd, part in parts.items():
        device = snapshot.osds.get(osd)
        if device and device.has_statistics:
            room = max(0.0, device.size_bytes * snapshot.full_ratio - end.used[osd])
            fits.append(room * pool.data_shards / part)
    return min(fits, default=None)


def part_of(pgid: str, pg_num: int) -> float:
    """The part of a pool's bytes that go to a PG: of all values of the last bits of a hash."""
    mask = (1 << (pg_num - 1).bit_length()) - 1
    found = _numbers(mask, pg_num).count(pg_number(pgid))
    return max(1, found) / (mask + 1)   # a PG that is about to be merged still has its part


@cache
def _numbers(mask: int, pg_num: int) -> Tuple[int, ...]:
    """Hash → number of the PG."""
    return tuple(x if x < pg_num else x & (mask >> 1) for x in range(mask + 1))


def moved(plan: Plan) -> Sequence[str]:
    return [change.pgid for change in plan.changes]
