"""make_plan: from a snapshot and options to a plan.

A search ends in one of many placements that are nearly equally good. On a small cluster one shard
is a percent of an OSD, so it matters which. There a second search costs little: several searches
with different weights run, and the best of their results becomes the plan.

A plan that follows drift (`least_gain`) moves as few bytes as possible. A whole plan is worth its
bytes once, but drift undoes most of it within hours.
"""
from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from math import inf
from typing import (
    Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..plan.fixed_bytes import without_fixed_bytes
from ..plan.model import BALANCE, DRAIN, Move, PgChange, Plan
from ..plan.options import PlanOptions
from ..plan.placement import placement as placement_of
from ..plan.usage import bytes_beyond_share
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Snapshot, without_shares
from ..snapshot.upmap_items import items_for, keep_raw_positions
from .bound.demand import movable_bytes
from .bound.lower_bound import UtilizationBounds, leveled_bounds, of_sizes
from .load_leveling import level_loads
from .limited_search import LimitedSearch, limited_placement
from .move_order import (
    Change, ChangeGroup, apply, draining, order_changes, take_back, wanted_changes)
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from .score import pool_free_bytes, score_placement
from .search.evacuation import stuck_shards
from .search.search import Search, first_search
from .state.constraints import MOST_LOST, PLENTY
from .state.placement_state import PlacementState

#: PGs and changes between two yields: a few milliseconds.
_CHANGES_A_PIECE = 100

# Values of Plan.stop_reason, in addition to those of plan/options.py.
CONVERGED = "converged"
INTERRUPTED = "the time limit is reached"


def make_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """Plans the moves from the snapshot's target state to a better placement.

    The same snapshot and options give the same plan. If `give_way` ends it early, the plan has the
    moves found so far.
    """
    if not options.respect_weights:
        snapshot = without_shares(snapshot)
    leveled = without_fixed_bytes(snapshot)
    other_pools: FrozenSet[int] = frozenset()
    if options.pool_ids is not None:
        other_pools = frozenset(snapshot.pools) - options.pool_ids
    bounds = leveled_bounds(leveled, movable_bytes(snapshot, other_pools))
    placement, groups, finished = multi_start_search(leveled, options, bounds)
    if options.least_gain > 0.0 and finished:
        groups = drift_changes(placement, groups, bounds, options)
    without = sum(map(_bytes_of, groups))
    if options.levels_load and finished and not options.drain_only:
        groups, finished = _leveled(placement, groups, options)
    load_bytes = sum(map(_bytes_of, groups)) - without
    stop_reason, kept = _within_limits(groups, options)
    beginning = _changes_of(kept)
    # evacuation goes first, even if other moves gain more
    if len(kept) < len(groups) and not draining(placement, beginning):
        limited = limited_placement(leveled, options, bounds, beginning)
        if limited is not None:
            placement = limited
            kept = _within_limits(order_changes(limited, wanted_changes(limited)), options)[1]
    changes = PlannedChanges(snapshot)
    osds = placement.osd_ids
    for group in piecewise(kept, _CHANGES_A_PIECE):
        for change in group:
            wanted = tuple([osds[i] for i in placement.up[change.pg]])
            changes.add(placement.pgs[change.pg], wanted,
                        [(osds[a], osds[b]) for a, b in change.moves])
    if not finished:
        stop_reason = INTERRUPTED
    plan = changes.plan(stop_reason, options, of_sizes(bounds, leveled, snapshot))
    kind = DRAIN if options.drain_only else BALANCE
    return plan._replace(stuck=stuck_shards(placement, options), kind=kind, load_bytes=load_bytes)


def _ordered(placement: PlacementState, bounds: UtilizationBounds,
             options: PlanOptions) -> Tuple[List[ChangeGroup], bool]:
    """Returns the changes of a whole plan in order, and True.

    If some changes cannot be ordered legally, drops them and the moves made only to enable them,
    and returns False. For a drain, drops only the changes themselves, and returns True.
    """
    wanted = wanted_changes(placement)
    groups = order_changes(placement, wanted)
    if sum(map(len, groups)) == len(wanted) or options.drain_only:
        return groups, True
    made = {change.pg for change in _changes_of(groups)}
    take_back(placement, [change for change in wanted if change.pg not in made])
    first_search(placement, bounds, options).reduce()
    placement.observers.clear()
    return order_changes(placement, wanted_changes(placement)), False


def _leveled(placement: PlacementState, groups: List[ChangeGroup],
             options: PlanOptions) -> Tuple[List[ChangeGroup], bool]:
    """Levels the load after the changes of `groups`. Returns all changes in order, and False if it
    was told to end.

    If they pass a limit, or some of them cannot be ordered legally, leaves the placement with
    `groups` alone.
    """
    if not placement.snapshot.loads or _within_limits(groups, options)[0] != CONVERGED:
        return groups, True
    changes = _changes_of(groups)
    finished = level_loads(placement, changes, options)
    wanted = wanted_changes(placement)
    leveled = order_changes(placement, wanted)
    is_whole = sum(map(len, leveled)) == len(wanted)
    if is_whole and _within_limits(leveled, options)[0] == CONVERGED:
        return leveled, finished
    take_back(placement, wanted)
    apply(placement, changes)
    return groups, finished


def _within_limits(groups: List[ChangeGroup],
                   options: PlanOptions) -> Tuple[str, List[ChangeGroup]]:
    """Returns the stop reason, and the first groups that keep the limits. Moves of no bytes are
    free."""
    moves = moved_bytes = 0
    for number, group in enumerate(piecewise(groups, 10 * _CHANGES_A_PIECE)):
        moves += sum([len(change.moves) for change in group if change.bytes])
        moved_bytes += _bytes_of(group)
        reason = options.limit_passed(moves, moved_bytes)
        if reason is not None:
            return reason, groups[:number]
    return CONVERGED, groups


def _changes_of(groups: Iterable[ChangeGroup]) -> List[Change]:
    """Returns the changes of the groups in order."""
    return list(chain.from_iterable(groups))


def _bytes_of(group: ChangeGroup) -> int:
    """Returns the bytes that the changes move."""
    return sum([len(change.moves) * change.bytes for change in group])


class PlannedChanges:
    """The changes of a plan in their order, with their moves and the used bytes per OSD id."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.used: Dict[int, int] = {o.id: o.target_bytes for o in snapshot.osds.values()}
        self.moves: List[Move] = []
        self.changes: List[PgChange] = []

    def add(self, pg: Pg, wanted: Tuple[int, ...], pairs: Sequence[Tuple[int, int]],
            copied: Optional[int] = None) -> None:
        """Adds the change of a PG to an up set. `pairs`: (source, target) of its moves. `copied`:
        how many shards it copies; None: as many as it moves."""
        pool = self._snapshot.pools[pg.pool]
        raw = pg.raw
        self.add_moves(pg, wanted, pairs)
        if not pool.erasure and pool.rule is not None:
            wanted = keep_raw_positions(raw, wanted, pool.rule)
        change = PgChange(
            pgid=pg.pgid,
            raw=raw,
            up_before=pg.up,
            up_after=wanted,
            items=items_for(raw, wanted),
            shards=len(pairs) if copied is None else copied,
            shard_bytes=pg.shard_bytes,
            objects=pg.objects,
            uneven=pool.uneven_bytes(pg.shard_bytes, pg.up, wanted))
        self.changes.append(change)

    def add_moves(self, pg: Pg, wanted: Sequence[int], pairs: Iterable[Tuple[int, int]]) -> None:
        """Adds the moves of a PG's change, without the change. Their OSDs may not exist any
        more."""
        pool = self._snapshot.pools[pg.pool]
        osds = self._snapshot.osds
        used = self.used
        for source, target in pairs:
            source_before = used.get(source, 0)
            target_before = used.get(target, 0)
            there = pool.bytes_on(pg.shard_bytes, target, wanted)
            used[source] = source_before - pool.bytes_on(pg.shard_bytes, source, pg.up)
            used[target] = target_before + there
            source_size = self._size_of(source)
            target_size = self._size_of(target)
            if target in osds:
                there = osds[target].device_bytes(there)
            move = Move(
                pgid=pg.pgid,
                source=source,
                target=target,
                bytes=there,
                objects=pg.objects,
                source_before=source_before / source_size,
                source_after=used[source] / source_size,
                target_before=target_before / target_size,
                target_after=used[target] / target_size)
            self.moves.append(move)

    def _size_of(self, osd: int) -> int:
        """Returns the size of an OSD in bytes, 1 if that is not known."""
        known = self._snapshot.osds.get(osd)
        return known.size_bytes or 1 if known is not None else 1

    def plan(self, stop_reason: str, options: PlanOptions, bounds: UtilizationBounds) -> Plan:
        """Returns the plan of these changes, of kind `balance`."""
        snapshot = self._snapshot
        placed = placement_of(snapshot)
        after = placed.after(self.changes).usage()
        highest = dict(bounds.highest)
        for name, usage in after.classes.items():
            # if fixed bytes are unequal, the bound is only an aim: a plan can end below it
            if name in highest:
                highest[name] = min(highest[name], usage.max)
        return Plan(
            epoch=snapshot.epoch,
            stop_reason=stop_reason,
            moves=tuple(self.moves),
            changes=tuple(self.changes),
            before=placed.usage(),
            after=after,
            skipped=skipped(snapshot),
            aim=options.aim,
            bounds=highest)


def skipped(snapshot: Snapshot) -> Dict[str, int]:
    """Returns reason → how many PGs or OSDs the plan leaves out for it. A reason begins with `PG: `
    or `OSD: `."""
    found = Counter({f"PG: {reason}": n for reason, n in snapshot.skipped.items()})
    for osd in piecewise(snapshot.osds.values(), 10 * _CHANGES_A_PIECE):
        reason = osd.unusable_reason()
        if reason:
            found[f"OSD: {reason}"] += 1
    return dict(sorted(found.items()))


#: Candidates that all searches together may examine. Another search begins if all stay within this
#: number, should it examine as many as the mean of those before. It is a count and not a time, so
#: that the same snapshot gives the same plan.
MAX_CANDIDATES = 860_000


def multi_start_search(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                       max_candidates: int = MAX_CANDIDATES,
                       ) -> Tuple[PlacementState, List[ChangeGroup], bool]:
    """Returns the best placement found, its changes in order, and True; or False in place of True
    if a search was told to end."""
    best: Optional[Tuple[Tuple[bool, float], PlacementState, List[ChangeGroup]]] = None
    examined = 0
    variants = AIM_WEIGHTS[options.aim]
    if options.drain_only:
        variants = variants[:1]
    for number, weights in enumerate(variants, start=1):
        placement = PlacementState(snapshot, options)
        search = Search(placement, bounds, weights)
        data_groups = search.data_groups
        if number == 1:
            free = pool_free_bytes(placement, data_groups)
            near = search.near_free_bytes()
        finished = search.run(options.drain_only)
        judge = partial(score_placement, placement, search.sets, data_groups, free, near,
                        AIM_SCORE_WEIGHTS[options.aim])
        score = True, judge()
        placement.observers.clear()
        del search   # most of the memory
        if best is None or (finished and score > best[0]):
            groups, is_whole = _ordered(placement, bounds, options)
            if not is_whole:   # the remaining changes may take space from pools
                score = _keeps_space(placement, data_groups, free), judge()
            if best is None or score > best[0]:
                best = score, placement, groups
        examined += placement.candidates_examined
        if not finished or number > 1 and not best[1].moved_pgs:
            break
        if examined * (number + 1) > number * max_candidates:
            break
    assert best is not None
    return (*best[1:], finished)


def _keeps_space(placement: PlacementState, data_groups: List[int],
                 free: Mapping[int, float]) -> bool:
    """Returns True if no pool has lost more free space than it may. `free`: before the moves."""
    now = pool_free_bytes(placement, data_groups)
    return all([now[pool] >= (1.0 - MOST_LOST) * free[pool] for pool in now])


#: How far a plan that follows drift may end above a whole plan, as ratios of the gain that a plan
#: needs to start (`least_gain`). The search aims at the first. Up to the second, one result is as
#: good as another, because no plan would start for the rest. From the third on, a whole plan is
#: made.
_DRIFT_SLACK = 0.75
_DRIFT_ENOUGH = 1.0
_DRIFT_MOST = 1.25
#: Utilizations that differ by less are equal.
_SAME_RATIO = 1e-9


class _DriftGoal(NamedTuple):
    """The figures that a plan that follows drift has to reach."""

    gain: float                     # of the whole plan, in least gains
    levels: List[float]             # utilizations of the sets of a Search, in their order
    least_free: Dict[int, float]    # pool → bytes
    worth: Dict[int, float]         # pool → bytes that are worth the least gain

    def left(self, search: Search, placement: PlacementState) -> float:
        """Returns how much of the whole plan's gain a placement leaves to gain for pools, in least
        gains; infinite if an OSD set is above its level."""
        reached, free = _figures(placement, search)
        for utilization, level in zip(reached, self.levels):
            if utilization > level + _SAME_RATIO:
                return inf
        missed = [(self.least_free[pool] - free[pool]) / least
                  for pool, least in self.worth.items()]
        return _DRIFT_SLACK + max(missed, default=0.0)


def _figures(placement: PlacementState, search: Search) -> Tuple[List[float], Dict[int, float]]:
    """Returns the highest utilization of each set, and pool id → its free bytes."""
    highest = [osd_set.max_utilization(placement) for osd_set in search.sets]
    return highest, pool_free_bytes(placement, search.data_groups)


def drift_changes(placement: PlacementState, whole: List[ChangeGroup], bounds: UtilizationBounds,
                  options: PlanOptions) -> List[ChangeGroup]:
    """Returns the changes that follow drift, in order, and leaves the placement with them.

    They bring each OSD set and pool nearly to where a whole plan brings it, with the fewest bytes.
    There are none if the whole plan gives no set and no pool the least gain. The whole plan is made
    if it drains an OSD, if an OSD has bytes above its share, or if fewer bytes reach too little.
    """
    changes = _changes_of(whole)
    if draining(placement, changes) or bytes_beyond_share(placement.snapshot):
        return whole
    take_back(placement, changes)
    search = first_search(placement, bounds, options)
    goal = _drift_goal(placement, search, changes, options)
    if goal.gain < 1.0:
        take_back(placement, changes)
        return []
    # one way: revert the moves of the whole plan that are not needed; the other: find new ones
    for osd_set, level in zip(search.sets, goal.levels):
        search.limits.set_max_utilization(osd_set.osds, level)
    for index in search.data_groups:
        search.limits.set_least_free(
            index, goal.least_free.get(placement.groups[index].pool.id, 0.0))
    search.reduce_within_limits()
    placement.observers.clear()
    limited = PlacementState(placement.snapshot, options)
    LimitedSearch(limited, first_search(limited, bounds, options), options).reach(goal.levels)
    limited.observers.clear()
    found: List[Tuple[float, int, List[ChangeGroup]]] = []   # the gain left, bytes
    for other in (placement, limited):
        groups, _ = _ordered(other, bounds, options)
        found.append((max(_DRIFT_ENOUGH, goal.left(search, other)), sum(map(_bytes_of, groups)),
                      groups))
    left, _, best = min(found, key=lambda one: one[:2])
    if min(left, goal.gain) >= _DRIFT_MOST:
        best = whole
    take_back(placement, wanted_changes(placement))
    apply(placement, _changes_of(best))
    return best


def _drift_goal(placement: PlacementState, search: Search, changes: Sequence[Change],
                options: PlanOptions) -> _DriftGoal:
    """Makes the changes of a whole plan, and returns how much of it a cheaper plan has to reach.
    Pools that have plenty of space without it gain nothing."""
    highest, free = _figures(placement, search)
    apply(placement, changes)
    lowest, most_free = _figures(placement, search)
    worth: Dict[int, float] = {}
    least_gain = options.least_gain
    for pool, bytes_free in free.items():
        stored = placement.snapshot.pools[pool].stored_bytes
        if bytes_free < PLENTY * search.room * stored:
            worth[pool] = least_gain * (bytes_free + stored)
    gains = [(a - b) / least_gain for a, b in zip(highest, lowest)]
    gains += [(most_free[pool] - free[pool]) / least for pool, least in worth.items()]
    slack = _DRIFT_SLACK * least_gain
    return _DriftGoal(
        gain=max(gains, default=0.0),
        levels=[min(a, b + slack) for a, b in zip(highest, lowest)],
        least_free={pool: most_free[pool] - _DRIFT_SLACK * least for pool, least in worth.items()},
        worth=worth)
