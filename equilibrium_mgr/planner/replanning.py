"""A plan after an event, from the placement that the former plan wanted.

An OSD that is out, a host that is added or a pool that has grown changes little of a placement that
was good. The placement that was wanted is restored as far as it is legal today, and only what is
above the former plan's result is relieved; nothing is where nothing has happened. Where that does
not come near the former result, or costs clearly more bytes than the event calls for, there is no
such plan, and one has to be made from scratch.

While data moves, the figures of an OSD swing: its own report is newer than that of a PG that has
just arrived, and the sizes of shards are fitted to bytes that exist twice. The pools' own bytes,
and the PGs that are wanted on each OSD, are free of that. Where these are on all OSDs what the plan
foresaw, nothing has happened, and an OSD that reports more is left alone: a shard that left it
today would be wanted there again tomorrow.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange, Plan
from ..plan.options import PlanOptions
from ..runtime.time_slice import told_to_end
from ..snapshot.model import Snapshot, without_shares
from .bound.lower_bound import OsdSet, UtilizationBounds, utilization_bounds
from .changes import wanted_changes
from .move_order import order_changes
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from .placement_score import pool_free_bytes, score_placement
from .planner import CONVERGED, INTERRUPTED, finished_plan
from .search.evacuation import drained_osds
from .search.goal_repair import GoalRepair, Goals
from .search.search import Search
from .state.constraints import SearchConstraints
from .state.placement_state import PlacementState, ShardMove

#: Plans in a row that may start from the one before; the next is made from scratch.
MAX_REPLANS = 8

#: How far above the former plan's result an OSD is left alone: utilization (a ratio), and pressure
#: (a ratio of it). Noise is not worth moving bytes for.
_LEFT_ALONE = 0.0003
_PRESSURE_LEFT_ALONE = 0.04

#: How far above its bound a plan from scratch may have ended for its result to be one that later
#: plans are held to, in typical shards and as a utilization: whichever is more. What was made while
#: much could not be moved ends far above it, and is no measure for what is possible later.
_MOST_SHARDS_ABOVE_BOUND, _MOST_ABOVE_BOUND = 1.0, 0.005

#: How far above the former result a replan may end: utilization (a ratio; half a typical shard
#: where that is less), and pressure (a ratio of it).
_MOST_ABOVE = 0.0015
_MOST_PRESSURE_ABOVE = 0.03

#: Bytes that a replan may displace: so many times those that were still wanted, and those that the
#: event has left above the goals. A plan from scratch does with less than the sum, as measured.
_MOST_OF_WANTED = 1.02
_MOST_OF_ABOVE = 0.7


#: Bytes by which what OSDs hold may differ while nothing has happened: a ratio of their size.
_SAME = 0.002

#: An OSD that reports so much more than was foreseen is not left alone: a ratio of its size. The
#: loop plans anew for the same difference.
_MOST_SWING = 0.03

# Reasons for which a wanted move is dropped.
NOT_MOVABLE = "its PG is gone or may not be moved"
NOT_THERE = "its shard is no longer where the plan expected it"
REFUSED = "its target may not take the shard any more"

#: A move may have to wait for another one that makes room for it.
_PASSES = 3


class ForeseenOsd(NamedTuple):
    """One OSD once a plan is done."""

    size_bytes: int
    used_bytes: int       # as the plan foresees them
    shards_bytes: float   # of its shards: the pools' logical bytes, each shard the mean of its pool


class PlanResult(NamedTuple):
    """How near to what is possible a plan from scratch has come: what later plans are held to."""

    shards_above_bound: Mapping[str, float]   # OSD set → highest utilization, in typical shards
    pressures: Mapping[int, float]            # pool id → highest pressure ÷ the lowest possible
    osds: Mapping[int, ForeseenOsd]           # OSD id → what the plan foresees there


class FormerPlan(NamedTuple):
    """A plan under way, or what is left of it."""

    changes: Tuple[PgChange, ...]   # what is still wanted, in the plan's order
    result: PlanResult              # of the last plan from scratch
    replans: int = 0                # plans since that one


class Replanned(NamedTuple):
    """A plan after an event."""

    plan: Plan
    dropped: Dict[str, int]   # reason → wanted moves that are no longer possible


def plan_result(snapshot: Snapshot, options: PlanOptions, plan: Plan) -> PlanResult:
    """The result of a plan that was made from this snapshot with these options."""
    start = _Start(snapshot, options, plan.changes)
    placement, search = start.placement, start.search
    above = {_name(osd_set): (state.max_utilization(placement) - state.bound)
             / max(1e-9, state.typical_shard)
             for osd_set, state in zip(start.bounds.sets, search.sets)}
    limits = SearchConstraints(placement, search.data_groups)
    pressures: Dict[int, float] = {}
    for group, highest in limits.max_pressure.items():
        pool, least = placement.groups[group].pool.id, search.costs.min_pressure[group]
        if least > 0.0:
            pressures[pool] = max(pressures.get(pool, 0.0), highest / least)
    return PlanResult(above, pressures, _foreseen_osds(placement))


def replan(snapshot: Snapshot, options: PlanOptions, former: FormerPlan) -> Optional[Replanned]:
    """Plans from what the former plan wanted; None where a plan from scratch is to be made.

    The moves are those from the snapshot's target state, as always: what the former plan wanted
    and was not sent may go elsewhere at no cost. As `make_plan` it ends with what it has where the
    thread's work is told to end.
    """
    if former.replans >= MAX_REPLANS or options.max_moves is not None or (
            options.max_bytes is not None) or options.drain_only:
        return None
    start = _Start(snapshot, options, former.changes)
    placement, search = start.placement, start.search
    goals = _goals(start, former.result)
    if goals is None:
        return None
    drains = bool(drained_osds(placement))
    if drains:
        search.evacuate()   # its bytes are not to be saved: they count as wanted
    most_bytes = (_MOST_OF_WANTED * _displaced_bytes(placement)
                  + _MOST_OF_ABOVE * _bytes_above(start, goals))
    repair = GoalRepair(placement, search, goals)
    repair.run()
    was_stopped = told_to_end()
    if not was_stopped:
        if _displaced_bytes(placement) > most_bytes or (
                not _is_reached(start, goals, repair)) or (
                not drains and start.score() < start.initial_score):
            return None
    placement.observers.clear()
    groups = order_changes(placement, wanted_changes(placement))
    stop_reason = INTERRUPTED if was_stopped else CONVERGED
    return Replanned(finished_plan(placement, groups, stop_reason, start.snapshot, options,
                                   start.bounds), start.dropped)


class _Start:
    """The wanted placement as far as it is legal, and a search over it that has not begun."""

    def __init__(self, snapshot: Snapshot, options: PlanOptions,
                 changes: Tuple[PgChange, ...]) -> None:
        self.snapshot = snapshot if options.respect_weights else without_shares(snapshot)
        self._options = options
        fixed = (frozenset() if options.pool_ids is None
                 else frozenset(snapshot.pools) - options.pool_ids)
        self.bounds: UtilizationBounds = utilization_bounds(self.snapshot, fixed)
        self.placement = PlacementState(self.snapshot, options)
        self._weights = AIM_WEIGHTS[options.aim][0]
        self.search = Search(self.placement, self.bounds, self._weights)
        self._initial_free = pool_free_bytes(self.placement, self.search.data_groups)
        self.initial_score = self.score()
        #: reason → moves of the wanted placement that were dropped
        self.dropped = _restore_wanted(self.placement, changes)

    def score(self) -> float:
        """The score of the placement as it is; 0 bytes are displaced at the beginning."""
        return score_placement(
            self.placement, self.search.sets, self.search.data_groups, self._initial_free,
            self.search.near_free_bytes(), self._weights, AIM_SCORE_WEIGHTS[self._options.aim])


def _goals(start: _Start, former: PlanResult) -> Optional[Goals]:
    """What no OSD shall be above; None where the former result does not say, or is no measure."""
    utilizations: List[float] = []
    for osd_set, state in zip(start.bounds.sets, start.search.sets):
        shards = former.shards_above_bound.get(_name(osd_set))
        if shards is None or shards > max(
                _MOST_SHARDS_ABOVE_BOUND, _MOST_ABOVE_BOUND / max(1e-9, state.typical_shard)):
            return None
        utilizations.append(state.bound + _LEFT_ALONE + max(
            state.goal_above_bound(start.search.weights), shards * state.typical_shard))
    pressures: Dict[int, float] = {}
    for group in start.search.data_groups:
        ratio = former.pressures.get(start.placement.groups[group].pool.id)
        least = start.search.costs.min_pressure[group]
        if ratio is not None and least > 0.0:
            pressures[group] = (1.0 + _PRESSURE_LEFT_ALONE) * ratio * least
    return Goals(tuple(utilizations), pressures,
                 _osds_as_foreseen(start.placement, former.osds))


def _name(osd_set: OsdSet) -> str:
    """A name of a set that stays as OSDs come and go."""
    return " ".join((osd_set.device_class, *osd_set.takes))


def _displaced_bytes(placement: PlacementState) -> int:
    return sum(change.bytes * len(change.moves) for change in wanted_changes(placement))


def _bytes_above(start: _Start, goals: Goals) -> float:
    """Bytes that have to leave the OSDs that are above the goals."""
    used, size = start.placement.used_bytes, start.placement.size_bytes
    return sum(max(0.0, used[i] - goal * size[i])
               for state, goal in zip(start.search.sets, goals.utilizations)
               for i in state.osds
               if start.placement.is_source[i] and i not in goals.left_alone)


def _is_reached(start: _Start, goals: Goals, repair: GoalRepair) -> bool:
    """True where the placement is about as near to what is possible as the former plan came."""
    return not any(
        repair.above(state.osds, goal + min(_MOST_ABOVE, state.typical_shard / 2.0))
        for state, goal in zip(start.search.sets, goals.utilizations)) and not any(
        repair.pressed(group, (1.0 + _MOST_PRESSURE_ABOVE) * pressure)
        for group, pressure in goals.pressures.items())


# -- what was wanted, restored ------------------------------------------------------------------


def _restore_wanted(placement: PlacementState, changes: Sequence[PgChange]) -> Dict[str, int]:
    """Makes the moves of the changes that are still possible; returns reason → moves dropped.

    A wanted move is made where its shard is still where the plan expected it and where the move is
    legal today; for what is dropped the search that follows finds something else. Moves that have
    been made meanwhile are no moves any more and count as nothing.
    """
    dropped: Counter[str] = Counter()
    index_of_pg = {pg.pgid: index for index, pg in enumerate(placement.pgs)}
    left: List[List[ShardMove]] = []
    for change in changes:
        pg = index_of_pg.get(change.pgid)
        if pg is None:
            dropped[NOT_MOVABLE] += change.shards
            continue
        moves = _moves_left(placement, pg, change, dropped)
        if moves:
            left.append(moves)
    for _ in range(_PASSES):
        waiting = [rest for rest in (_made(placement, moves) for moves in left) if rest]
        if sum(map(len, waiting)) == sum(map(len, left)):
            break
        left = waiting
    refused = sum(map(len, left))
    if refused:
        dropped[REFUSED] = refused
    return dict(dropped)


def _moves_left(placement: PlacementState, pg: int, change: PgChange,
                dropped: Counter[str]) -> List[ShardMove]:
    """The change's moves that are still to be made, shard by shard."""
    index_of, up = placement.index_of, placement.up[pg]
    moves: List[ShardMove] = []
    for span in placement.block_spans(pg):
        before, after = change.up_before[span], change.up_after[span]
        if placement.groups[placement.groups_of_pool[placement.pool_of_pg[pg]][0]].pool.erasure:
            pairs = [(a, b) for a, b in zip(before, after) if a != b]
        else:
            pairs = list(zip([a for a in before if a not in after],
                             [b for b in after if b not in before]))
        for a, b in pairs:
            source, target = index_of.get(a, -1), index_of.get(b, -1)
            if target in up and source not in up:
                continue   # it has been made
            if source in up and target >= 0 and target not in up:
                moves.append((pg, source, target))
            else:
                dropped[NOT_THERE] += 1
    return moves


def _made(placement: PlacementState, moves: List[ShardMove]) -> List[ShardMove]:
    """Makes those of a PG's moves that are possible now; returns the others."""
    rest: List[ShardMove] = []
    for step in moves:
        if placement.has_room(step[2], placement.size_on(*step[:2])) and placement.is_legal(*step):
            placement.move(*step)
        else:
            rest.append(step)
    if len(rest) > 1 and placement.is_legal_joint(rest) and all(
            placement.has_room(target, placement.size_on(pg, source))
            for pg, source, target in rest):
        for step in rest:
            placement.move(*step)
        rest = []
    return rest


# -- what was foreseen ---------------------------------------------------------------------------


def _foreseen_osds(placement: PlacementState) -> Dict[int, ForeseenOsd]:
    """OSD id → what the placement as it is comes to there."""
    held = [0.0] * len(placement.osd_ids)
    for group in placement.groups:
        pool, counts = group.pool, group.counts
        shard = pool.stored_bytes / max(1, pool.pg_num * pool.data_shards)
        if shard:
            for i in group.osds:
                held[i] += counts[i] * shard
    return {osd: ForeseenOsd(placement.size_bytes[i], placement.used_bytes[i], held[i])
            for i, osd in enumerate(placement.osd_ids)}


def _osds_as_foreseen(placement: PlacementState,
                     foreseen: Mapping[int, ForeseenOsd]) -> FrozenSet[int]:
    """Indices of the OSDs that may be left alone as nothing has happened; none where something
    has, and none above nearfull."""
    now = _foreseen_osds(placement)
    if now.keys() != foreseen.keys() or any(
            osd.size_bytes != foreseen[number].size_bytes
            or abs(osd.shards_bytes - foreseen[number].shards_bytes) > _SAME * osd.size_bytes
            for number, osd in now.items()):
        return frozenset()
    return frozenset(
        placement.index_of[number] for number, osd in now.items()
        if osd.used_bytes <= min(foreseen[number].used_bytes + _MOST_SWING * osd.size_bytes,
                                 placement.snapshot.nearfull_ratio * osd.size_bytes))
