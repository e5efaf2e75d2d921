"""Single and joint moves off the fullest OSDs, at falling prices per byte.

The best single move off an OSD goes back to the initial OSD, or to the target that gains most.

The falling price is what makes plans cheap: at first only moves between very unequal OSDs pay for
their bytes, and smaller differences are evened out later.
"""
from __future__ import annotations

import heapq
from bisect import bisect_left
from math import inf
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ..state.constraints import SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.target_index import ShardIndex, Shards, ShardsByGroup, TargetEntry, TargetIndex
from .joint_moves import JointMoves


#: Legal targets examined before the search for a still better one ends.
_TARGETS = 6

#: Pools examined closely before the rest of an OSD's pools is left for its next turn.
_POOLS = 8

_OSDS_A_PIECE = 2000   # looked at before it gives way again: a few milliseconds

_NONE: FrozenSet[int] = frozenset()


class Candidate(NamedTuple):
    """A move that lowers the objective by `gain` (bytes × utilization)."""

    gain: float
    utilization_gain: float      # the gain without the count terms
    pg: int
    target: int


RankedGroup = Tuple[float, int]   # (-gain of its count when a shard leaves, group), best first


class SharingGroups(NamedTuple):
    """Groups on a source that share a list of targets, and the sizes of their shards there."""

    ranked: List[RankedGroup]
    displaced: List[RankedGroup]   # those of them with displaced shards
    least: int                     # bytes
    largest: int


_NO_GROUPS = SharingGroups([], [], 0, 0)

_WITHIN_CAP = 0.0, -1   # of ranked groups, those before it are beyond their caps


#: Of a source and of a target: used bytes, size, target utilization, and the utilization term
#: before the move; and the bytes that gain most.
_Ends = Tuple[int, int, float, float, int, int, float, float, float]


class Descent:
    """Makes moves while they lower the objective.

    `budget_of` is, per OSD, the index in `budgets` (bytes) of what moves may cost that improve
    nothing but pools' counts; where it is used up no such moves are made.
    """

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex,
                 joint_moves: JointMoves, limits: SearchConstraints, budgets: List[float],
                 budget_of: Sequence[int]) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        self._budgets = budgets
        self._budget_of = budget_of
        #: OSD → how many changes it had had, and its groups then by the id of their targets' lists
        self._sharing: Dict[int, Tuple[int, Dict[int, SharingGroups]]] = {}
        #: each group as it is ranked on an OSD where its count gains nothing, as on most
        self._unranked = [(0.0, group.index) for group in self._placement.groups]

    def run(self, price: float) -> bool:
        """Moves at this price until no OSD has a move that gains; False if asked to end before."""
        placement, target = self._placement, self._costs.bound_utilization
        used, size = placement.used_bytes, placement.size_bytes
        heap = [(target[i] - used[i] / size[i], i)
                for i in piecewise(range(len(used)), _OSDS_A_PIECE)
                if placement.shards[i] and placement.is_source[i]]
        heapq.heapify(heap)
        give_way()
        queued = [bool(placement.shards[i]) and placement.is_source[i]
                  for i in piecewise(range(len(used)), _OSDS_A_PIECE)]
        while heap:
            if not give_way(placement.moves_made):
                return False
            key, source = heapq.heappop(heap)
            now = target[source] - used[source] / size[source]
            if now > key + 1e-12:  # it has given bytes since: others come first
                heapq.heappush(heap, (now, source))
                continue
            touched = self._make_best_move(source, price)
            if not touched:
                queued[source] = False
            for osd in touched:
                if osd == source or (not queued[osd] and placement.is_source[osd]):
                    queued[osd] = True
                    heapq.heappush(heap, (target[osd] - used[osd] / size[osd], osd))
        return True

    def _make_best_move(self, source: int, price: float) -> List[int]:
        """Makes the move that gains most per shard; returns the OSDs it touched, none if none."""
        budget = self._budget_of[source]
        single = self._best(source, price, self._budgets[budget] <= 0.0)
        joint = self._joint_moves.best(source, price, self._limits, NOISE)
        if joint is not None and (single is None
                                  or joint.gain > len(joint.steps) * single.gain):
            for step in joint.steps:
                self._placement.move(*step)
            return [osd for _, a, b in joint.steps for osd in (a, b)]
        if single is None:
            return []
        if single.utilization_gain <= 0.0 and source in self._placement.initial_up[single.pg]:
            if self._costs.is_far(self._placement.group_of(single.pg, source), source):
                self._costs.far_bytes_left -= self._placement.size_on(single.pg, source)
            else:
                self._budgets[budget] -= self._placement.size_on(single.pg, source)
        self._placement.move(single.pg, source, single.target)
        return [source, single.target]

    # -- the best single move ----------------------------------------------------------------------

    def _best(self, source: int, price: float, strict: bool) -> Optional[Candidate]:
        """Returns the best single move off an OSD, or None where none lowers the objective. `price`
        is that of a displaced byte (utilization); with `strict`, moves that improve nothing but
        counts are left out where pools are not far from the space they can have."""
        grouped = self._shard_index.by_group(source)
        if self._targets.has_own_lists:
            gains = {group: self._costs.count_gain_on_leave(group, source) for group in grouped}
            groups = sorted(grouped, key=lambda g: (-gains[g], g))
            return self._group_by_group(source, grouped, gains, groups, price, strict)
        return self._list_by_list(source, grouped, price, strict)

    def _returns(self, source: int, group: int, displaced: Shards, price: float,
                 count_gain: float, best: Optional[Candidate]) -> Optional[Candidate]:
        """The best return of a displaced shard, which refunds its bytes, or `best` if better."""
        placement, costs = self._placement, self._costs
        for size, pg in displaced:
            for initial in placement.initial_osds(pg, source, group):
                floor = best.gain if best else NOISE
                gain = (costs.utilization_gain(source, initial, size) + price * size
                        + costs.move_cost[initial] + count_gain)
                if gain <= floor:
                    continue
                gain -= costs.count_loss_on_enter(group, initial)
                if gain > floor and self._limits.fits(initial, size, group, -1) and (
                        placement.is_legal(pg, source, initial)):
                    best = Candidate(gain, 1.0, pg, initial)
        return best

    # -- where every group has a list of targets of its own, sorted by cost with counts ----------

    def _group_by_group(self, source: int, grouped: ShardsByGroup, gains: Dict[int, float],
                        groups: List[int], price: float, strict: bool) -> Optional[Candidate]:
        best: Optional[Candidate] = None
        tried = 0
        for group in groups:
            lists, count_gain = grouped[group], gains[group]
            best = self._returns(source, group, lists[1], price, count_gain, best)
            entries = self._targets.candidates(group, source)
            if entries and not self._cannot_gain(source, group, lists, price, count_gain, entries):
                best = self._away(source, group, lists, price, count_gain, entries,
                                  strict and not self._costs.is_far(group, source), best)
                tried += 1
                if tried >= _POOLS and best:
                    break
        return best

    def _away(self, source: int, group: int, lists: Tuple[Shards, Shards], price: float,
              count_gain: float, entries: List[TargetEntry], strict: bool,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """The best move to the listed targets, the best first, until some in a row are no better;
        or `best` if that is better."""
        tried, members = 0, self._placement.groups[group]
        for _, target in entries:
            if target == source or not members.may_reach(source, target):
                continue
            counts = count_gain - self._costs.count_loss_on_enter(group, target)
            best, gains = self._to(source, target, group, lists, price,
                                   self._ends(source, target, price), counts, strict, best)
            tried += 1
            if tried >= self._targets.patience and not gains or tried >= _TARGETS and best:
                break
        return best

    def _cannot_gain(self, source: int, group: int, lists: Tuple[Shards, Shards], price: float,
                     count_gain: float, entries: List[TargetEntry]) -> bool:
        """True where no shard gains enough per byte for even the best target.

        Gains are concave in bytes: the gain of the first byte is an upper bound for all others.
        Nearly always this ends the search at once.
        """
        placement, costs = self._placement, self._costs
        cost, first = entries[0]
        if first == source and len(entries) > 1:
            cost, first = entries[1]
        over = (placement.used_bytes[source] / placement.size_bytes[source]
                - costs.bound_utilization[source])
        rate = 2.0 * over * (1.0 if over > 0.0 else costs.weights.underfull_weight)
        least = min([shards[0][0] for shards in lists if shards])
        mean = max(1.0, placement.groups[group].mean_shard_bytes)
        return (rate + count_gain / max(1.0, least) - (0.0 if lists[1] else price) + mean
                / placement.size_bytes[first]) * mean <= cost

    # -- where groups share a list of targets, sorted by utilization -----------------------------

    def _list_by_list(self, source: int, grouped: ShardsByGroup, price: float,
                      strict: bool) -> Optional[Candidate]:
        best: Optional[Candidate] = None
        known = self._sharing_groups(source, grouped)
        displaced = known[0].displaced if len(known) == 1 else sorted(
            entry for sharing in known for entry in sharing.displaced)
        for negative, group in displaced:
            best = self._returns(source, group, grouped[group][1], price, -negative, best)
        for sharing in known:
            best = self._among(source, grouped, sharing, price, strict, best)
        return best

    def _sharing_groups(self, source: int, grouped: ShardsByGroup) -> List[SharingGroups]:
        """The groups on a source, those first whose best one is best. Kept, and those ranked anew
        that have changed: with a hundred pools it takes longer to rank them than to use them."""
        lists_of, changes = self._targets.lists_of, self._placement.changes[source]
        seen, known = self._sharing.get(source, (0, {}))
        new = changes[seen:]
        changed = {group for group, _ in new} if known else grouped
        for lists in {id(lists_of[group]) for group in changed}:
            ranked, _, least, largest = known.pop(lists, _NO_GROUPS)
            is_known = ranked and all([least < size < largest for _, size in new])
            ranked = sorted([entry for entry in ranked if entry[1] not in changed] + [
                (-gain, group) if gain else self._unranked[group] for group, gain in [
                    (group, self._costs.count_gain_on_leave(group, source)) for group in changed
                    if group in grouped and id(lists_of[group]) == lists]])
            if ranked:
                sizes = (least, largest) if is_known else [
                    size for _, group in ranked for shards in grouped[group] if shards
                    for size in (shards[0][0], shards[-1][0])]
                known[lists] = SharingGroups(
                    ranked, [entry for entry in ranked if grouped[entry[1]][1]],
                    min(sizes), max(sizes))
        self._sharing[source] = len(changes), known
        return sorted(known.values())

    def _among(self, source: int, grouped: ShardsByGroup, sharing: SharingGroups, price: float,
               strict: bool, best: Optional[Candidate]) -> Optional[Candidate]:
        """The best move of groups that share a list of targets, or `best` if that is better.

        A target at which no shard of any size can gain ends the search: on a large cluster, for
        most sources at once.
        """
        costs, groups, ranked = self._costs, self._placement.groups, sharing.ranked
        far = frozenset([group for _, group in ranked[:bisect_left(ranked, _WITHIN_CAP)]
                         if costs.is_far(group, source)]) if strict else _NONE
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
            if tried >= self._targets.patience and not improved or tried >= _TARGETS and best:
                break
        return best

    def _max_utilization_gain(self, ends: _Ends, least: int, largest: int, price: float) -> float:
        """An upper bound of the gain, without counts, of a shard of `least` to `largest` bytes.

        The gain is concave in the bytes: the tangent in the middle is above it everywhere.
        """
        used_a, size_a, wanted_a, cost_a, used_b, size_b, wanted_b, cost_b, _ = ends
        middle, below = (least + largest) // 2, self._costs.weights.underfull_weight
        x, y = (used_a - middle) / size_a - wanted_a, (used_b + middle) / size_b - wanted_b
        gain = (cost_a - size_a * x * x * (1.0 if x > 0.0 else below)
                + cost_b - size_b * y * y * (1.0 if y > 0.0 else below)) - price * middle
        slope = 2.0 * (x if x > 0.0 else below * x) - 2.0 * (y if y > 0.0 else below * y) - price
        return gain + abs(slope) * (largest - least + 1) / 2.0

    # -- one target --------------------------------------------------------------------------------

    def _ends(self, source: int, target: int, price: float) -> _Ends:
        """What the gains of all shards have in common that go from one OSD to the other."""
        placement, wanted = self._placement, self._costs.bound_utilization
        below = self._costs.weights.underfull_weight
        used_a, size_a = placement.used_bytes[source], placement.size_bytes[source]
        used_b, size_b = placement.used_bytes[target], placement.size_bytes[target]
        a, b = used_a / size_a - wanted[source], used_b / size_b - wanted[target]
        return (used_a, size_a, wanted[source], size_a * a * a * (1.0 if a > 0.0 else below),
                used_b, size_b, wanted[target], size_b * b * b * (1.0 if b > 0.0 else below),
                _best_bytes(a, size_a, b, size_b, below, price))

    def _to(self, source: int, target: int, group: int, lists: Tuple[Shards, Shards],
            price: float, ends: _Ends, counts: float, strict: bool,
            best: Optional[Candidate]) -> Tuple[Optional[Candidate], bool]:
        """The best shard for one target if it is better than `best`, and True if any shard, legal
        or not, gains.

        The gain is concave in the bytes: the best shard is next to where the slope is 0, at
        `wanted` bytes, and the others follow to both sides. The formula of the cost model is
        repeated here without calls: this loop takes most of a plan's time, as measured.
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
            up = down = -inf   # the gains of the next shards; also where there is none, or unknown
            while left >= 0 or right < count:
                if up == -inf and right < count:
                    size = shards[right][0]
                    x, y = (used_a - size) / size_a - wanted_a, (used_b + size) / size_b - wanted_b
                    up = (base - size_a * x * x * (1.0 if x > 0.0 else below)
                          - size_b * y * y * (1.0 if y > 0.0 else below) - cost * size)
                if down == -inf and left >= 0:
                    size = shards[left][0]
                    x, y = (used_a - size) / size_a - wanted_a, (used_b + size) / size_b - wanted_b
                    down = (base - size_a * x * x * (1.0 if x > 0.0 else below)
                            - size_b * y * y * (1.0 if y > 0.0 else below) - cost * size)
                if up >= down:
                    gain, at, right, up = up - fixed, right, right + 1, -inf
                else:
                    gain, at, left, down = down - fixed, left, left - 1, -inf
                examined += 1
                if gain <= NOISE or (strict and gain <= counts):
                    break
                any_improves = True
                if best and gain <= best.gain:
                    break
                size, pg = shards[at]
                if self._limits.fits(target, size, group, -1) and (
                        placement.is_legal(pg, source, target)):
                    best = Candidate(gain, gain - counts, pg, target)
                    break
        placement.candidates_examined += examined
        return best, any_improves


def _best_bytes(over_a: float, size_a: int, over_b: float, size_b: int, below: float,
                price: float) -> float:
    """The bytes at which the gain's slope is 0: it falls with the bytes and is linear between those
    that bring the source, and the target, to its wanted utilization."""
    half = price / 2.0
    at_a = over_b + over_a * size_a / size_b      # the target's, once the source is as wanted
    factor_a = below if -(at_a if at_a > 0.0 else below * at_a) > half else 1.0
    at_b = over_a + over_b * size_b / size_a      # the source's, once the target is as wanted
    factor_b = 1.0 if (at_b if at_b > 0.0 else below * at_b) > half else below
    return (factor_a * over_a - factor_b * over_b - half) / (
        factor_a / size_a + factor_b / size_b)
