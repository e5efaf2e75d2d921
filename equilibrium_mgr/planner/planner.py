"""make_plan: from a snapshot and options to a plan.

A search ends in one of many placements that are nearly equally good. On a small cluster, where one
shard is a percent of an OSD, it matters which, and there a second search costs little: several
searches with different weights are made, and the best of their results is taken.

Where a plan is limited to a number of moves or of bytes, the first changes of a whole plan are not
the best that so much can do: some of them prepare later ones. Instead the lowest utilizations that
the limit allows are found by bisection, all sets of OSDs by the same part of their way to their
bounds. Moves that are left relieve the fullest OSDs.

A plan that follows drift (`least_gain`) is made of fewest bytes: a whole plan is worth its bytes
once, and drift takes most of it back within hours.
"""
from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from functools import partial
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from ..plan.model import BALANCE, DRAIN, Move, PgChange, Plan
from ..plan.options import PlanOptions
from ..plan.usage import bytes_beyond_share, usage_before_and_after
from ..runtime.time_slice import give_way, piecewise
from ..snapshot.model import Pg, Snapshot, without_shares
from ..snapshot.upmap_items import items_for, keep_raw_positions
from .bound.lower_bound import UtilizationBounds, utilization_bounds
from .move_order import Change, ChangeGroup, draining, order_changes, wanted_changes
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS, ScoreWeights, Weights
from .search.evacuation import stuck_shards
from .search.relief import OverfullOsd, Relief
from .search.search import Search
from .state.constraints import MOST_LOST, PLENTY, OsdSetState
from .state.placement_state import PlacementState, ShardMove

#: Before it gives way again, a few milliseconds: PGs counted, changes written down.
_CHANGES_A_PIECE = 100

# Values of Plan.stop_reason beside those of plan/options.py.
CONVERGED = "converged"
INTERRUPTED = "the time limit is reached"


def make_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """Plans the moves from the snapshot's target state to a better placement.

    The same snapshot and options give the same plan. Where `give_way` tells the thread's work to
    end, the plan ends there, with what it has.
    """
    if not options.respect_weights:
        snapshot = without_shares(snapshot)
    bounds = utilization_bounds(snapshot, frozenset() if options.pool_ids is None
                                else frozenset(snapshot.pools) - options.pool_ids)
    placement, groups, finished = multi_start_search(snapshot, options, bounds)
    if options.least_gain > 0.0 and finished:
        groups = drift_changes(placement, groups, bounds, options)
    stop_reason, kept = _within_limits(groups, options)
    beginning = [change for group in kept for change in group]
    # what is to leave goes first, whatever else would gain more
    if len(kept) < len(groups) and not draining(placement, beginning):
        limited = limited_placement(snapshot, options, bounds, beginning)
        if limited is not None:
            placement = limited
            kept = _within_limits(order_changes(limited, wanted_changes(limited)), options)[1]
    changes, osds = PlannedChanges(snapshot), placement.osd_ids
    for group in piecewise(kept, _CHANGES_A_PIECE):
        for change in group:
            wanted = tuple([osds[i] for i in placement.up[change.pg]])
            changes.add(placement.pgs[change.pg], wanted,
                        [(osds[a], osds[b]) for a, b in change.moves])
    return changes.plan(stop_reason if finished else INTERRUPTED, options, bounds)._replace(
        stuck=stuck_shards(placement, options), kind=DRAIN if options.drain_only else BALANCE)


def _ordered(placement: PlacementState, bounds: UtilizationBounds,
             options: PlanOptions) -> Tuple[List[ChangeGroup], bool]:
    """The changes of a whole plan in order. Where some have no order in which they may be made,
    what was to help them is taken back as well, and what is left told by False."""
    wanted = wanted_changes(placement)
    groups = order_changes(placement, wanted)
    if sum(map(len, groups)) == len(wanted) or options.drain_only:
        return groups, True
    made = {change.pg for group in groups for change in group}
    _take_back(placement, [change for change in wanted if change.pg not in made])
    Search(placement, bounds, AIM_WEIGHTS[options.aim][0]).reduce()
    placement.observers.clear()
    return order_changes(placement, wanted_changes(placement)), False


def _within_limits(groups: List[ChangeGroup],
                   options: PlanOptions) -> Tuple[str, List[ChangeGroup]]:
    """The stop reason, and the first groups that keep the limits; moves of no bytes are free."""
    moves = moved_bytes = 0
    for number, group in enumerate(piecewise(groups, 10 * _CHANGES_A_PIECE)):
        moves += sum(len(change.moves) for change in group if change.bytes)
        moved_bytes += sum(len(change.moves) * change.bytes for change in group)
        reason = options.limit_passed(moves, moved_bytes)
        if reason is not None:
            return reason, groups[:number]
    return CONVERGED, groups


class PlannedChanges:
    """The changes of a plan in their order, with the moves and the used bytes per OSD id that they
    come to."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.used: Dict[int, int] = {o.id: o.target_bytes for o in snapshot.osds.values()}
        self.moves: List[Move] = []
        self.changes: List[PgChange] = []

    def add(self, pg: Pg, wanted: Tuple[int, ...], pairs: Sequence[Tuple[int, int]]) -> None:
        """Adds the change of a PG to an up set; `pairs` has (source, target) of its moves."""
        pool = self._snapshot.pools[pg.pool]
        assert pool.rule is not None
        self.add_moves(pg, wanted, pairs)
        if not pool.erasure:
            wanted = keep_raw_positions(pg.raw, wanted, pool.rule)
        self.changes.append(PgChange(
            pgid=pg.pgid, raw=pg.raw, up_before=pg.up, up_after=wanted,
            items=items_for(pg.raw, wanted), shards=len(pairs), shard_bytes=pg.shard_bytes,
            objects=pg.objects, uneven=pool.uneven_bytes(pg.shard_bytes, pg.up, wanted)))

    def add_moves(self, pg: Pg, wanted: Sequence[int], pairs: Iterable[Tuple[int, int]]) -> None:
        """Adds the moves of such a change alone. OSDs may be gone."""
        pool, osds, used = self._snapshot.pools[pg.pool], self._snapshot.osds, self.used
        for source, target in pairs:
            before = used.get(source, 0), used.get(target, 0)
            there = pool.bytes_on(pg.shard_bytes, target, wanted)
            used[source] = before[0] - pool.bytes_on(pg.shard_bytes, source, pg.up)
            used[target] = before[1] + there
            sizes = [max(1, osds[osd].size_bytes) if osd in osds else 1
                     for osd in (source, target)]
            self.moves.append(Move(
                pgid=pg.pgid, source=source, target=target, objects=pg.objects,
                bytes=osds[target].device_bytes(there) if target in osds else there,
                source_before=before[0] / sizes[0], source_after=used[source] / sizes[0],
                target_before=before[1] / sizes[1], target_after=used[target] / sizes[1]))

    def plan(self, stop_reason: str, options: PlanOptions, bounds: UtilizationBounds) -> Plan:
        """The plan of these changes, to balance."""
        snapshot = self._snapshot
        before, after = usage_before_and_after(snapshot, self.used, self.changes)
        return Plan(epoch=snapshot.epoch, stop_reason=stop_reason, moves=tuple(self.moves),
                    changes=tuple(self.changes), before=before, after=after,
                    skipped=skipped(snapshot), min_compat_client=snapshot.min_compat_client,
                    aim=options.aim, bounds=bounds.highest)


def skipped(snapshot: Snapshot) -> Dict[str, int]:
    """Reason → how many PGs or OSDs are left out of the plan for it."""
    found = Counter({f"PG: {reason}": n for reason, n in snapshot.skipped.items()})
    found.update([f"OSD: {reason}" for reason in (
        osd.unusable_reason() for osd in piecewise(snapshot.osds.values(), 10 * _CHANGES_A_PIECE))
                  if reason])
    return dict(sorted(found.items()))


def score_placement(placement: PlacementState, sets: Sequence[OsdSetState],
                    data_groups: Sequence[int], initial_free_bytes: Dict[int, float],
                    near_free_bytes: Dict[int, float], weights: Weights,
                    score_weights: ScoreWeights) -> float:
    """Higher is better; the formula is in planner/objective.py.

    `initial_free_bytes` is what `pool_free_bytes` gave before the first move, `near_free_bytes`
    the free space below which a pool is far from what it can have; both by pool id.
    """
    free_bytes = pool_free_bytes(placement, data_groups)
    gained: List[float] = [free - initial_free_bytes[pool] for pool, free in free_bytes.items()]
    missing = sum(max(0.0, near_free_bytes[pool] - free) for pool, free in free_bytes.items())
    displaced = sum(change.bytes * len(change.moves) for change in wanted_changes(placement))
    score = (score_weights.free_space * sum(gained)
             + score_weights.min_free_space * min(gained, default=0.0)
             - score_weights.far_free_space * missing - displaced
             - score_weights.beyond_share * sum([
                 max(0, placement.used_bytes[i] - limit)
                 for i, limit in placement.share_limit_bytes.items()]))
    for osd_set in sets:
        highest = osd_set.max_utilization(placement)
        score -= osd_set.size_bytes * (
            score_weights.max_utilization * (highest - osd_set.bound)
            + score_weights.far_max_utilization * max(
                0.0, highest - osd_set.far_threshold(weights)))
    return score


def pool_free_bytes(placement: PlacementState, data_groups: Sequence[int]) -> Dict[int, float]:
    """Pool id → client bytes that fit before the pool's first OSD is full."""
    full = placement.snapshot.full_ratio
    usable = [max(0.0, full * size - used)
              for size, used in zip(placement.size_bytes, placement.used_bytes)]
    found: Dict[int, float] = {}
    for index in data_groups:
        give_way()
        group = placement.groups[index]
        chunks = group.pool.pg_num * group.pool.data_shards / (group.size_ratio or 1.0)
        least = min([free * chunks / count for free, count in zip(usable, group.counts) if count],
                    default=0.0)
        found[group.pool.id] = min(found.get(group.pool.id, least), least)
    return found


#: Candidates that all searches together may examine: one more search begins while the mean of those
#: before lets it stay within this. A count and not a time, so that the same snapshot gives the same
#: plan.
MAX_CANDIDATES = 860_000


def multi_start_search(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                       max_candidates: int = MAX_CANDIDATES,
                       ) -> Tuple[PlacementState, List[ChangeGroup], bool]:
    """Returns the best placement found, its changes in order, and False where a search was told to
    end."""
    best: Optional[Tuple[Tuple[bool, float], PlacementState, List[ChangeGroup]]] = None
    examined = 0
    variants = AIM_WEIGHTS[options.aim][:1 if options.drain_only else None]
    for number, weights in enumerate(variants, start=1):
        placement = PlacementState(snapshot, options)
        search = Search(placement, bounds, weights)
        if number == 1:
            free = pool_free_bytes(placement, search.data_groups)
            near = search.near_free_bytes()
        finished = search.run(options.drain_only)
        judge = partial(score_placement, placement, search.sets, search.data_groups, free, near,
                        variants[0], AIM_SCORE_WEIGHTS[options.aim])
        score, data_groups = (True, judge()), search.data_groups
        placement.observers.clear()
        del search   # most of the memory
        if best is None or (finished and score > best[0]):
            groups, is_whole = _ordered(placement, bounds, options)
            if not is_whole:   # no limit holds what is left
                score = all(now >= (1.0 - MOST_LOST) * free[pool] for pool, now in
                            pool_free_bytes(placement, data_groups).items()), judge()
            if best is None or score > best[0]:
                best = score, placement, groups
        examined += placement.candidates_examined
        if not finished:
            return (*best[1:], False)
        if number > 1 and not best[1].moved_pgs or (
                examined * (number + 1) > number * max_candidates):
            break
    assert best is not None
    return (*best[1:], True)


#: A plan that follows drift ends at most so far above the maximum of a whole one: a ratio of the
#: gain at which it begins. Where that cannot be reached it is whole from this multiple of it on.
_DRIFT_SLACK, _DRIFT_MOST = 0.75, 1.25


def drift_changes(placement: PlacementState, whole: List[ChangeGroup], bounds: UtilizationBounds,
                  options: PlanOptions) -> List[ChangeGroup]:
    """The changes that follow drift, in order, and the placement with them: those of fewest bytes
    that bring each OSD set and pool nearly to where a whole plan brings it. None where that gives
    no set and no pool the least gain; the whole plan where it drains, or relieves an OSD that is
    held to a share."""
    changes = [change for group in whole for change in group]
    if draining(placement, changes) or bytes_beyond_share(placement.snapshot):
        return whole
    _take_back(placement, changes)
    search = Search(placement, bounds, AIM_WEIGHTS[options.aim][0])
    highest = [osd_set.max_utilization(placement) for osd_set in search.sets]
    free = pool_free_bytes(placement, search.data_groups)
    _apply(placement, changes)
    lowest = [osd_set.max_utilization(placement) for osd_set in search.sets]
    most_free = pool_free_bytes(placement, search.data_groups)
    pools = placement.snapshot.pools
    room = placement.snapshot.full_ratio / max([1e-9, *bounds.utilizations.values()]) - 1.0
    worth = {pool: options.least_gain * (bytes_free + pools[pool].stored_bytes)
             for pool, bytes_free in free.items()
             if bytes_free < PLENTY * room * pools[pool].stored_bytes}
    gain = max([(a - b) / options.least_gain for a, b in zip(highest, lowest)]
               + [(most_free[pool] - free[pool]) / least for pool, least in worth.items()],
               default=0.0)   # in least gains
    if gain < 1.0:
        _take_back(placement, changes)
        return []
    levels = [min(a, b + _DRIFT_SLACK * options.least_gain) for a, b in zip(highest, lowest)]
    least_free = {pool: most_free[pool] - _DRIFT_SLACK * least for pool, least in worth.items()}
    for osd_set, level in zip(search.sets, levels):
        search.limits.set_max_utilization(osd_set.osds, level)
    for index in search.data_groups:
        search.limits.set_least_free(index, least_free.get(placement.groups[index].pool.id, 0.0))
    search.reduce_within_limits()
    placement.observers.clear()
    limited = PlacementState(placement.snapshot, options)
    LimitedSearch(limited, bounds, options).reach(levels)
    limited.observers.clear()
    found: List[Tuple[bool, int, List[ChangeGroup]]] = []   # whether it falls short, bytes
    for other in (placement, limited):
        groups, _ = _ordered(other, bounds, options)   # some may have no order
        found.append((any(osd_set.max_utilization(other) > level + _SAME_RATIO
                          for osd_set, level in zip(search.sets, levels))
                      or any(left < least_free.get(pool, 0.0) - _SAME_BYTES for pool, left in
                             pool_free_bytes(other, search.data_groups).items()),
                      sum(change.bytes * len(change.moves) for group in groups for change in group),
                      groups))
    falls_short, _, best = min(found, key=lambda one: one[:2])
    if falls_short and gain >= _DRIFT_MOST:
        best = whole
    _take_back(placement, wanted_changes(placement))
    _apply(placement, [change for group in best for change in group])
    return best


def _apply(placement: PlacementState, changes: Sequence[Change]) -> None:
    for change in changes:
        for source, target in change.moves:
            placement.move(change.pg, source, target)


def _take_back(placement: PlacementState, changes: Sequence[Change]) -> None:
    for change in reversed(changes):
        for source, target in reversed(change.moves):
            placement.move(change.pg, target, source)


#: Utilizations tried by bisection.
_HALVINGS = 12

#: Shards and targets examined for one move.
_SHARDS = 12
_TARGETS = 40

#: Usable bytes, and utilizations, that differ by less are equal.
_SAME_BYTES, _SAME_RATIO = 1 << 20, 1e-9


def limited_placement(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                      beginning: Sequence[Change]) -> Optional[PlacementState]:
    """Returns the placement that a limited search finds, or None where `beginning`, the changes of
    a whole plan up to the limits, lowers the highest utilizations further."""
    placement = PlacementState(snapshot, options)
    search = LimitedSearch(placement, bounds, options)
    free = pool_free_bytes(placement, search.data_groups)
    other = PlacementState(snapshot, options)
    _apply(other, beginning)
    other.share_limit_bytes.update(placement.share_limit_bytes)   # a Search sets them
    search.run()
    placement.observers.clear()

    def score(placed: PlacementState) -> Tuple[float, float]:
        highest = sum(
            osd_set.usable_bytes * max(placed.capacity_utilization(i) for i in osd_set.osds)
            for osd_set in search.sets)
        return -round(highest / _SAME_BYTES), score_placement(
            placed, search.sets, search.data_groups, free, search.near_free_bytes,
            AIM_WEIGHTS[options.aim][0],
            AIM_SCORE_WEIGHTS[options.aim])
    return placement if score(placement) >= score(other) else None


class LimitedSearch:
    """One search over a placement on which no moves have been made."""

    def __init__(self, placement: PlacementState, bounds: UtilizationBounds,
                 options: PlanOptions) -> None:
        self._placement = placement
        self._options = options
        self._moves = self._bytes = 0   # of what has been made; moves of no bytes are free
        self._best_fit = False   # shards go where they just fit, to keep the emptiest for others
        search = Search(placement, bounds, AIM_WEIGHTS[options.aim][0])
        self.sets: List[OsdSetState] = search.sets
        self.data_groups = search.data_groups
        self.near_free_bytes = search.near_free_bytes()
        self._limits = search.limits
        self._limits.tighten_to_current(0.0)
        self._relief: Relief = search.relief(self._limits)
        self._targets = search.targets
        self._shard_index = search.shard_index

    def run(self) -> None:
        """Makes the limited moves: all sets come nearer to their bounds by the same part, then each
        by what is left."""
        by_value = sorted(self.sets, key=lambda s: -s.usable_bytes * (self._highest(s) - s.bound))
        for some in (by_value, *([osd_set] for osd_set in by_value)):
            self._make(self._lowest(some))
        self._even_out()

    def reach(self, levels: Sequence[float]) -> None:
        """Makes moves until all sets are at their levels (utilizations), as far as it is possible."""
        for osd_set, level in zip(self.sets, levels):
            self._reach(osd_set, level, [])

    def _make(self, steps: Sequence[ShardMove]) -> None:
        for step in steps:
            self._placement.move(*step)
            size = self._placement.pg_bytes[step[0]]
            self._moves += 1 if size else 0
            self._bytes += size

    # -- utilizations ------------------------------------------------------------------------------

    def _lowest(self, sets: Sequence[OsdSetState]) -> List[ShardMove]:
        """The moves by which the sets come as near to their bounds as the limits allow on top of
        what has been made, none where that is not nearer. The placement is left unchanged."""
        ends = [(self._highest(osd_set), osd_set.bound) for osd_set in sets]
        made = self._moves, self._bytes
        low, high = 0.0, 1.0   # parts of the way from the bound to the present utilization
        best: List[ShardMove] = []
        for number in range(_HALVINGS + 1):
            part = (low + high) / 2.0 if number else 0.0
            steps: List[ShardMove] = []
            is_near = all(
                self._reach(osd_set, min(highest, bound + part * (highest - bound)), steps)
                for osd_set, (highest, bound) in zip(sets, ends))
            self._moves, self._bytes = made
            for pg, source, target in reversed(steps):
                self._placement.move(pg, target, source)
            if not is_near:
                low = part
                continue
            best, high = steps, part
            if not number:
                break
        return best

    def _highest(self, osd_set: OsdSetState) -> float:
        return max(self._placement.capacity_utilization(i) for i in osd_set.osds)

    def _reach(self, osd_set: OsdSetState, utilization: float, steps: List[ShardMove]) -> bool:
        """Makes moves until all OSDs of a set are at a utilization, and adds them to `steps`;
        False, with none of them made, where that is not possible within the limits."""
        placement, made, before = self._placement, (self._moves, self._bytes), len(steps)
        # a ratio of the capacity that an operator's weights leave may be far above any OSD's limit
        real = max(osd_set.max_utilization(placement), osd_set.bound + osd_set.typical_shard)
        for self._best_fit in (False, True):
            self._limits.set_max_utilization(osd_set.osds, min(utilization, real))
            above = sorted((i for i in osd_set.osds if self._excess(i, utilization) > 0.0),
                           key=lambda i: (-placement.capacity_utilization(i), i))
            if all(self._relieve(osd, osd_set, utilization, steps) for osd in above):
                return True
            for pg, source, target in reversed(steps[before:]):
                placement.move(pg, target, source)
            del steps[before:]
            self._moves, self._bytes = made
        return False

    def _relieve(self, osd: int, osd_set: OsdSetState, utilization: float,
                 steps: List[ShardMove]) -> bool:
        """Moves shards off an OSD until it is at the utilization, and adds them to `steps`; False
        where that is not possible within the limits."""
        placement = self._placement
        while self._excess(osd, utilization) > 0.0:
            if not (placement.is_source[osd] and give_way()):
                return False
            found = self._single(osd, self._excess(osd, utilization))
            if not found:   # a joint move, a swap or a chain
                wanted = (placement.used_bytes[osd]
                          - self._excess(osd, utilization)) / placement.size_bytes[osd]
                relief = self._relief.find(osd, OverfullOsd(osd_set.helpers, wanted, 0.0))
                if relief is None:
                    return False
                found = relief.steps
            self._make(found)
            steps += found
            if self._options.limit_passed(self._moves, self._bytes):
                return False
        return True

    def _excess(self, osd: int, utilization: float) -> float:
        """Bytes above a utilization of the capacity; for an OSD that is held to a share never more
        than what is beyond the share."""
        placement = self._placement
        most = max(utilization * placement.capacity_bytes[osd] + placement.spared_bytes[osd],
                   placement.share_limit_bytes.get(osd, 0))
        return placement.used_bytes[osd] - most - 1.0

    def _single(self, osd: int, need: float) -> Tuple[ShardMove, ...]:
        """A move of the smallest shard of `need` bytes or more that can go, else of the largest."""
        shards = self._shard_index.by_size(osd)
        enough = bisect_left(shards, (need, -1, -1))
        for offers in (shards[enough:enough + _SHARDS],
                       shards[max(0, enough - _SHARDS):enough][::-1]):
            for size, pg, group in offers:
                target = self._target(osd, size, pg, group) if size else None
                if target is not None:
                    return ((pg, osd, target),)
        return ()

    def _target(self, osd: int, size: int, pg: int, group: int) -> Optional[int]:
        """The OSD that the shard goes to: the best one, or for best fit the fullest possible."""
        placement, limits = self._placement, self._limits
        best: Optional[int] = None
        for number, (_, target) in enumerate(self._targets.candidates(group, osd)):
            if number >= _TARGETS:
                break
            if (target != osd and limits.fits(target, size, group, -1)
                    and placement.is_legal(pg, osd, target)):
                if not self._best_fit:
                    return target
                if best is None or (placement.capacity_utilization(target)
                                    > placement.capacity_utilization(best)):
                    best = target
        return best

    # -- what is left ------------------------------------------------------------------------------

    def _even_out(self) -> None:
        """Uses moves that are left: from the fullest OSDs to OSDs that stay emptier than these."""
        placement = self._placement
        for osd_set in sorted(self.sets, key=lambda s: -s.usable_bytes):
            for osd in sorted(osd_set.osds,
                              key=lambda i: (-placement.capacity_utilization(i), i)):
                wanted = placement.capacity_utilization(osd) - osd_set.typical_shard / 4.0
                if wanted <= osd_set.bound or not give_way():
                    break
                self._limits.set_max_utilization(
                    osd_set.osds, min(wanted, osd_set.max_utilization(placement)))
                found = (self._single(osd, self._excess(osd, wanted))
                         if placement.is_source[osd] else ())
                if found and self._excess(osd, wanted) <= 0.0:
                    return
                self._make(found)
                if self._options.limit_passed(self._moves, self._bytes):
                    for pg, source, target in found:
                        placement.move(pg, target, source)
                    return
