"""Single and joint moves off the fullest OSDs, at falling prices per byte.

The best single move off an OSD goes back to the initial OSD, or to the target that gains most.

The falling price makes plans cheap: at first only moves between very unequal OSDs pay for their
bytes. Later prices even out smaller differences.
"""
from __future__ import annotations

import heapq
from bisect import bisect_left
from itertools import chain
from math import inf
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ..state.constraints import OsdSetState, SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.target_index import ShardIndex, Shards, ShardsByGroup, TargetEntry, TargetIndex
from .joint_moves import JointMoves


#: Targets examined before the search for a better move ends, if it has found one.
_TARGETS = 6

#: A move that drops upmap items is made instead of the best move if it gains this ratio of it.
_NEARLY = 0.95

#: Groups of an OSD that are examined closely in one turn of the OSD; more while no move is found.
_POOLS = 8

_OSDS_A_PIECE = 2000   # between two yields: a few milliseconds

_NONE: FrozenSet[int] = frozenset()


class Candidate(NamedTuple):
    """A move that lowers the objective by `gain` (bytes × utilization)."""

    gain: float
    utilization_gain: float      # the gain without the count terms; 1 for a return
    pg: int
    target: int


RankedGroup = Tuple[float, int]   # (-gain of its count when a shard leaves, group), best first


class SharingGroups(NamedTuple):
    """Groups on a source that share a list of targets, and the sizes of their shards there."""

    ranked: List[RankedGroup]
    displaced: List[RankedGroup]   # the ranked groups with displaced shards
    least: int                     # bytes
    largest: int


_NO_GROUPS = SharingGroups([], [], 0, 0)

_WITHIN_CAP = 0.0, -1   # the ranked groups before this entry are above their caps


#: Used bytes, size, wanted utilization and utilization term before the move: of the source, then
#: of the target. Last the bytes that gain most.
_Ends = Tuple[int, int, float, float, int, int, float, float, float]


class Descent:
    """Makes moves while they lower the objective.

    `set_of`: OSD → its set. Moves that improve only the counts of pools end when the `count_budget`
    of the set is spent; for far pools, when `far_bytes_left` is.
    """

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex,
                 joint_moves: JointMoves, limits: SearchConstraints,
                 set_of: Mapping[int, OsdSetState]) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        self._set_of = set_of
        #: OSD → its number of changes so far, and its groups then, by the id of their target lists
        self._sharing: Dict[int, Tuple[int, Dict[int, SharingGroups]]] = {}
        #: group → its rank on an OSD where its count gains nothing, as on most OSDs
        self._unranked = [(0.0, group.index) for group in self._placement.groups]

    def run(self, price: float) -> bool:
        """Moves at this price until no OSD has a move that gains; False if told to end before."""
        placement, target = self._placement, self._costs.bound_utilization
        used, size = placement.used_bytes, placement.size_bytes
        queued = [False] * len(used)
        heap: List[Tuple[float, int]] = []   # (utilization below the target, OSD)

        def below_target(osd: int) -> float:
            return target[osd] - used[osd] / size[osd]
        for i in piecewise(range(len(used)), _OSDS_A_PIECE):
            if placement.shards[i] and placement.is_source[i]:
                queued[i] = True
                heap.append((below_target(i), i))
        heapq.heapify(heap)
        while heap:
            if not give_way(placement.moves_made):
                return False
            key, source = heapq.heappop(heap)
            now = below_target(source)
            if now > key + 1e-12:  # it has given bytes since: others come first
                heapq.heappush(heap, (now, source))
                continue
            touched = self._make_best_move(source, price)
            if not touched:
                queued[source] = False
            for osd in touched:
                if osd == source or (not queued[osd] and placement.is_source[osd]):
                    queued[osd] = True
                    heapq.heappush(heap, (below_target(osd), osd))
        return True

    def _make_best_move(self, source: int, price: float) -> List[int]:
        """Makes the move that gains most per shard; returns the OSDs that it touched, none if no
        move gains."""
        osd_set = self._set_of.get(source)
        strict = osd_set is None or osd_set.count_budget <= 0.0
        single = self._best(source, price, strict)
        joint = self._joint_moves.best(source, price, self._limits, NOISE)
        steps: Sequence[ShardMove] = ()
        if single is not None:
            steps = ((single.pg, source, single.target),)
        if joint is not None:
            if single is None or joint.gain > len(joint.steps) * single.gain:
                steps = joint.steps
                single = None
        if single is not None:
            self._spend(source, single, osd_set)
        touched: List[int] = []
        for step in steps:
            self._placement.move(*step)
            touched += step[1:]
        return touched

    def _spend(self, source: int, move: Candidate, osd_set: Optional[OsdSetState]) -> None:
        """Takes the bytes of a move that improves only counts off the budget of far pools or of the
        set."""
        placement, costs, pg = self._placement, self._costs, move.pg
        if move.utilization_gain > 0.0 or source not in placement.initial_up[pg]:
            return
        size = placement.size_on(pg, source)
        if costs.is_far(placement.group_of(pg, source), source):
            costs.far_bytes_left -= size
        elif osd_set is not None:
            osd_set.count_budget -= size

    # -- the best single move ----------------------------------------------------------------------

    def _best(self, source: int, price: float, strict: bool) -> Optional[Candidate]:
        """Returns the best single move off an OSD, or None if none lowers the objective.

        `price`: of a displaced byte (utilization). `strict`: moves that improve only counts are
        left out, except for pools that are far from the space that they can have.
        """
        grouped = self._shard_index.by_group(source)
        if self._targets.has_own_lists:
            gains = {group: self._costs.count_gain_on_leave(group, source) for group in grouped}
            groups = sorted(grouped, key=lambda g: (-gains[g], g))
            best = self._group_by_group(source, grouped, gains, groups, price, strict)
        else:
            best = self._list_by_list(source, grouped, price, strict)
        pinned = self._placement.pinned.get(source)
        if best is None or pinned is None:
            return best
        return self._unpinning(source, pinned, price, best)

    def _unpinning(self, source: int, pinned: Sequence[Tuple[int, int]], price: float,
                   best: Candidate) -> Candidate:
        """Returns the best move of a shard to where CRUSH wants it, or `best` if none of them gains
        nearly as much. Such a move drops upmap items: after `freeze` they are many.

        `pinned`: (PG, the OSD that CRUSH wants) of the shards on the source.
        """
        placement, costs = self._placement, self._costs
        found, floor = best, _NEARLY * best.gain
        least_counts = best.gain - best.utilization_gain   # fewer items are worth no space
        for pg, target in pinned:
            up, size = placement.up[pg], placement.pg_bytes[pg]
            if source not in up or target in up or source not in placement.initial_up[pg]:
                continue
            group = placement.group_of(pg, source)
            if not self._limits.fits(target, size, group, -1):
                continue
            counts = costs.count_gain_on_leave(group, source)
            counts -= costs.count_loss_on_enter(group, target)
            gain = costs.utilization_gain(source, target, size) - price * size
            gain -= costs.move_cost[source]
            whole = gain + counts
            if whole <= floor or counts < least_counts:
                continue
            if placement.is_legal(pg, source, target):
                found = Candidate(whole, gain, pg, target)
                floor = whole
        return found

    def _returns(self, source: int, group: int, displaced: Shards, price: float,
                 count_gain: float, best: Optional[Candidate]) -> Optional[Candidate]:
        """Returns the best return of a displaced shard, which refunds its bytes, or `best` if that
        is better."""
        placement, costs = self._placement, self._costs
        for size, pg in displaced:
            for initial in placement.initial_osds(pg, source, group):
                floor = best.gain if best else NOISE
                gain = (costs.utilization_gain(source, initial, size) + price * size
                        + costs.move_cost[initial] + count_gain)
                if gain <= floor:
                    continue
                gain -= costs.count_loss_on_enter(group, initial)
                if gain <= floor or not self._limits.fits(initial, size, group, -1):
                    continue
                if placement.is_legal(pg, source, initial):
                    best = Candidate(gain, 1.0, pg, initial)
        return best

    # -- every group has its own list of targets, sorted by cost with counts ----------------------

    def _group_by_group(self, source: int, grouped: ShardsByGroup, gains: Dict[int, float],
                        groups: List[int], price: float, strict: bool) -> Optional[Candidate]:
        """Returns the best move, or None. `groups`: those on the source, the best first. `gains`:
        group → the gain of its count when a shard leaves."""
        best: Optional[Candidate] = None
        tried = 0
        for group in groups:
            lists, count_gain = grouped[group], gains[group]
            best = self._returns(source, group, lists[1], price, count_gain, best)
            entries = self._targets.candidates(group, source)
            if not entries or self._cannot_gain(source, group, lists, price, count_gain, entries):
                continue
            strict_here = strict and not self._costs.is_far(group, source)
            best = self._away(source, group, lists, price, count_gain, entries, strict_here, best)
            tried += 1
            if tried >= _POOLS and best:
                break
        return best

    def _away(self, source: int, group: int, lists: Tuple[Shards, Shards], price: float,
              count_gain: float, entries: List[TargetEntry], strict: bool,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Returns the best move to the listed targets, or `best` if that is better. The best
        targets come first; the search ends when some in a row are no better."""
        tried, members = 0, self._placement.groups[group]
        for _, target in entries:
            if target == source or not members.may_reach(source, target):
                continue
            counts = count_gain - self._costs.count_loss_on_enter(group, target)
            best, gains = self._to(source, target, group, lists, price,
                                   self._ends(source, target, price), counts, strict, best)
            tried += 1
            if self._is_enough(tried, gains, best):
                break
        return best

    def _cannot_gain(self, source: int, group: int, lists: Tuple[Shards, Shards], price: float,
                     count_gain: float, entries: List[TargetEntry]) -> bool:
        """Returns True if no shard gains enough per byte even for the best target.

        Gains are concave in bytes: no byte gains more than the first. Nearly always this ends the
        search at once.
        """
        placement, costs = self._placement, self._costs
        cost, first = entries[0]
        if first == source and len(entries) > 1:
            cost, first = entries[1]
        over = (placement.used_bytes[source] / placement.size_bytes[source]
                - costs.bound_utilization[source])
        rate = 2.0 * over * (1.0 if over > 0.0 else costs.weights.underfull_weight)
        least = min([shards[0][0] for shards in lists if shards])
        rate += count_gain / max(1.0, least)
        if not lists[1]:   # displaced shards go on at no price
            rate -= price
        mean = max(1.0, placement.groups[group].mean_shard_bytes)
        return (rate + mean / placement.size_bytes[first]) * mean <= cost

    # -- groups share lists of targets, sorted by utilization -------------------------------------

    def _list_by_list(self, source: int, grouped: ShardsByGroup, price: float,
                      strict: bool) -> Optional[Candidate]:
        """Returns the best move of all lists of targets, or None."""
        best: Optional[Candidate] = None
        known = self._sharing_groups(source, grouped)
        for negative, group in sorted(chain(*[sharing.displaced for sharing in known])):
            best = self._returns(source, group, grouped[group][1], price, -negative, best)
        for sharing in known:
            best = self._among(source, grouped, sharing, price, strict, best)
        return best

    def _sharing_groups(self, source: int, grouped: ShardsByGroup) -> List[SharingGroups]:
        """Returns the groups on a source by their lists of targets, the best first.

        The result is kept, and only groups that have changed are ranked again: with a hundred pools
        it takes longer to rank them than to use them.
        """
        lists_of, changes = self._targets.lists_of, self._placement.changes[source]
        seen, known = self._sharing.get(source, (0, {}))
        new = changes[seen:]
        changed = {group for group, _ in new} if known else set(grouped)
        for lists in {id(lists_of[group]) for group in changed}:
            ranked, _, least, largest = known.pop(lists, _NO_GROUPS)
            if not ranked or not all([least < size < largest for _, size in new]):
                least = largest = -1   # to be found again
            ranked = [entry for entry in ranked if entry[1] not in changed]
            for group in changed:
                if group in grouped and id(lists_of[group]) == lists:
                    ranked.append(self._rank(group, source))
            if ranked:
                ranked.sort()
                if least < 0:
                    least, largest = _sizes_of(ranked, grouped)
                displaced = [entry for entry in ranked if grouped[entry[1]][1]]
                known[lists] = SharingGroups(ranked, displaced, least, largest)
        self._sharing[source] = len(changes), known
        return sorted(known.values())

    def _rank(self, group: int, source: int) -> RankedGroup:
        """Returns the rank of a group on an OSD."""
        gain = self._costs.count_gain_on_leave(group, source)
        return (-gain, group) if gain else self._unranked[group]

    def _among(self, source: int, grouped: ShardsByGroup, sharing: SharingGroups, price: float,
               strict: bool, best: Optional[Candidate]) -> Optional[Candidate]:
        """Returns the best move of groups that share a list of targets, or `best` if that is
        better.

        If `strict` and no pool is far, the search ends at a target at which no shard of any size
        can gain: on a large cluster at once, for most sources.
        """
        costs, groups, ranked = self._costs, self._placement.groups, sharing.ranked
        far = _NONE
        if strict:
            above_caps = ranked[:bisect_left(ranked, _WITHIN_CAP)]
            far = frozenset([group for _, group in above_caps if costs.is_far(group, source)])
        tried = 0
        paid = 0.0 if sharing.displaced else price
        for _, target in self._targets.candidates(ranked[0][1], source):
            if target == source:
                continue
            ends = self._ends(source, target, price)
            limit = self._max_utilization_gain(ends, sharing.least, sharing.largest, paid)
            if strict and limit <= 0.0 and not far:
                break
            improved = False
            for negative, group in ranked:
                floor = best.gain if best else NOISE
                if limit - negative <= floor:
                    break
                # as count_loss_on_enter, without its call
                counts = -negative - costs.last_shard_cost(
                    group, target, groups[group].counts[target] + 1)
                if limit + counts <= floor or not groups[group].may_reach(source, target):
                    continue
                best, any_improves = self._to(
                    source, target, group, grouped[group], price, ends, counts,
                    strict and group not in far, best)
                improved = improved or any_improves
            tried += 1
            if self._is_enough(tried, improved, best):
                break
        return best

    def _is_enough(self, tried: int, any_gains: bool, best: Optional[Candidate]) -> bool:
        """Returns True if so many targets are enough. `any_gains`: a shard gains at the last."""
        if best and tried >= _TARGETS:
            return True
        return not any_gains and tried >= self._targets.patience

    def _max_utilization_gain(self, ends: _Ends, least: int, largest: int, price: float) -> float:
        """Returns an upper bound of the gain, without counts, of a shard of `least` to `largest`
        bytes.

        The gain is concave in the bytes: the tangent in the middle is above it everywhere.
        """
        used_a, size_a, wanted_a, cost_a, used_b, size_b, wanted_b, cost_b, _ = ends
        middle, below = (least + largest) // 2, self._costs.weights.underfull_weight
        x, y = (used_a - middle) / size_a - wanted_a, (used_b + middle) / size_b - wanted_b
        weight_a = 1.0 if x > 0.0 else below
        weight_b = 1.0 if y > 0.0 else below
        gain = (cost_a - size_a * x * x * weight_a
                + cost_b - size_b * y * y * weight_b) - price * middle
        slope = 2.0 * (weight_a * x) - 2.0 * (weight_b * y) - price
        return gain + abs(slope) * (largest - least + 1) / 2.0

    # -- one target --------------------------------------------------------------------------------

    def _ends(self, source: int, target: int, price: float) -> _Ends:
        """Returns the terms that the gains of all shards share that go from `source` to
        `target`."""
        placement, wanted = self._placement, self._costs.bound_utilization
        below = self._costs.weights.underfull_weight
        used_a, size_a = placement.used_bytes[source], placement.size_bytes[source]
        used_b, size_b = placement.used_bytes[target], placement.size_bytes[target]
        a, b = used_a / size_a - wanted[source], used_b / size_b - wanted[target]
        cost_a = size_a * a * a * (1.0 if a > 0.0 else below)
        cost_b = size_b * b * b * (1.0 if b > 0.0 else below)
        return (used_a, size_a, wanted[source], cost_a, used_b, size_b, wanted[target], cost_b,
                _best_bytes(a, size_a, b, size_b, below, price))

    def _to(self, source: int, target: int, group: int, lists: Tuple[Shards, Shards],
            price: float, ends: _Ends, counts: float, strict: bool,
            best: Optional[Candidate]) -> Tuple[Optional[Candidate], bool]:
        """Returns the best shard for one target, or `best` if that is better; and True if any
        shard, legal or not, gains.

        The gain is concave in the bytes. Its slope is 0 at `wanted` bytes: the best shard is next
        to that size, and the others follow to both sides. This loop repeats the formula of the cost
        model without calls, because it takes most of the time of a plan, as measured.
        """
        placement, costs = self._placement, self._costs
        any_improves = False
        examined = 1
        below = costs.weights.underfull_weight
        for shards, cost, fixed in ((lists[0], price, costs.move_cost[source]),
                                    (lists[1], 0.0, 0.0)):
            if not shards:
                continue
            used_a, size_a, wanted_a, cost_a, used_b, size_b, wanted_b, cost_b, wanted = (
                ends if cost == price else self._ends(source, target, cost))
            base, count = cost_a + cost_b + counts, len(shards)
            right = bisect_left(shards, (wanted, -1)) if count > 1 else 0
            left = right - 1
            up = down = -inf   # gains of the next shards; -inf also if there is none, or unknown
            while left >= 0 or right < count:
                if up == -inf and right < count:
                    size = shards[right][0]
                    x, y = (used_a - size) / size_a - wanted_a, (used_b + size) / size_b - wanted_b
                    weight_a = 1.0 if x > 0.0 else below
                    weight_b = 1.0 if y > 0.0 else below
                    up = (base - size_a * x * x * weight_a
                          - size_b * y * y * weight_b - cost * size)
                if down == -inf and left >= 0:
                    size = shards[left][0]
                    x, y = (used_a - size) / size_a - wanted_a, (used_b + size) / size_b - wanted_b
                    weight_a = 1.0 if x > 0.0 else below
                    weight_b = 1.0 if y > 0.0 else below
                    down = (base - size_a * x * x * weight_a
                            - size_b * y * y * weight_b - cost * size)
                if up >= down:
                    gain, at, right, up = up - fixed, right, right + 1, -inf
                else:
                    gain, at, left, down = down - fixed, left, left - 1, -inf
                examined += 1
                if gain <= NOISE or strict and gain <= counts:
                    break
                any_improves = True
                if best and gain <= best.gain:
                    break
                size, pg = shards[at]
                if not self._limits.fits(target, size, group, -1):
                    continue
                if placement.is_legal(pg, source, target):
                    best = Candidate(gain, gain - counts, pg, target)
                    break
        placement.candidates_examined += examined
        return best, any_improves


def _sizes_of(ranked: Sequence[RankedGroup], grouped: ShardsByGroup) -> Tuple[int, int]:
    """Returns the bytes of the smallest and of the largest shard of the groups."""
    ends: List[int] = []
    for _, group in ranked:
        for shards in grouped[group]:
            if shards:
                ends += (shards[0][0], shards[-1][0])
    return min(ends), max(ends)


def _best_bytes(over_a: float, size_a: int, over_b: float, size_b: int, below: float,
                price: float) -> float:
    """Returns the bytes at which the slope of the gain is 0.

    The slope falls with the bytes. It is linear between the bytes that bring the source to its
    wanted utilization and those that bring the target there.
    """
    half = price / 2.0
    at_a = over_b + over_a * size_a / size_b      # the target's, when the source is as wanted
    slope_a = at_a if at_a > 0.0 else below * at_a
    factor_a = below if -slope_a > half else 1.0
    at_b = over_a + over_b * size_b / size_a      # the source's, when the target is as wanted
    slope_b = at_b if at_b > 0.0 else below * at_b
    factor_b = 1.0 if slope_b > half else below
    return (factor_a * over_a - factor_b * over_b - half) / (
        factor_a / size_a + factor_b / size_b)
