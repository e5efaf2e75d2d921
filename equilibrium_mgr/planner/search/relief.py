"""Relieves one OSD at the least cost: by a move, a joint move, a swap or an ejection chain.

The OSD gives bytes (OverfullOsd), or shards of one pool per free byte (TooManyShards). After an
operation all OSDs that it touches keep the constraints of the search. Only the relieved OSD may
still be above them, but nearer to them than before. (Ejection chain: F. Glover, "Ejection chains,
reference structures and alternating path methods", Discrete Applied Mathematics 65, 1996.)
"""
from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from ...runtime.time_slice import give_way, piecewise
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.target_index import ShardIndex, Shards, SortedOsds, TargetIndex
from .joint_moves import ANY_GROUP, JointMoves

#: So many targets, swap partners and shards near the wanted size are examined. More cost time and
#: gained nothing, as measured on the sample clusters.
_TARGETS = 6
_PARTNERS = 4
_NEAR = 4

_TARGETS_A_PIECE = 16   # between two yields: a millisecond

class OverfullOsd(NamedTuple):
    """Asks for an OSD with fewer bytes."""

    helpers: Tuple[int, ...]    # OSDs that may take shards
    utilization: float          # wanted in the end, a ratio
    fixed_cost: float           # of an operation, in addition to its bytes (bytes × utilization)
    group: int = ANY_GROUP     # shards of any group may leave


class TooManyShards(NamedTuple):
    """Asks for an OSD with fewer shards of one group, or with more free bytes for each of them."""

    group: int
    max_pressure: float         # allowed shards of the group per free byte
    mean_bytes: float           # of a shard of the group
    fixed_cost: float = 0.0     # as in OverfullOsd


ReliefGoal = Union[OverfullOsd, TooManyShards]

Offer = Tuple[int, int, int]      # (bytes, PG, group)

#: (group, gain of its count if a shard leaves, shards)
_Offered = Tuple[int, float, Shards]


class ReliefMove(NamedTuple):
    """An operation: moves of shards in their order."""

    score: float                # (gain - fixed cost) ÷ bytes of relief; higher is better
    gain: float                 # by how much the objective falls (bytes × utilization)
    steps: Tuple[ShardMove, ...]


class Relief:
    """Finds operations. `price`: of a displaced byte (utilization)."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex,
                 joint_moves: JointMoves, limits: SearchConstraints, price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        #: id of helpers → the helpers, and the same sorted by utilization. By id, because hashing
        #: 10,000 numbers takes long
        self._helpers: Dict[int, Tuple[Tuple[int, ...], SortedOsds]] = {}
        self._price = price

    def find(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """Returns the cheapest operation of the simplest kind that relieves the OSD, or None."""
        found = self._move(source, goal) or self._swap(source, goal, True)
        found = found or self._joint(source, goal) or self._swap(source, goal, False)
        return found or self.ejection_chain(source, goal)

    # -- relief and cost -----------------------------------------------------------------------

    def _relief(self, source: int, goal: ReliefGoal, shed: int, leaving: int,
                entering: int) -> float:
        """Returns the bytes of relief if `shed` bytes and a shard of group `leaving` leave, and a
        shard of group `entering` comes (-1: none)."""
        if isinstance(goal, OverfullOsd):
            return min(shed, self._needed(source, goal))
        counts = (leaving == goal.group) - (entering == goal.group)
        return goal.mean_bytes * (counts + goal.max_pressure * shed)

    def _needed(self, source: int, goal: OverfullOsd) -> float:
        """Returns the bytes that the OSD has above its goal."""
        placement = self._placement
        return placement.used_bytes[source] - goal.utilization * placement.size_bytes[source]

    # -- moves ---------------------------------------------------------------------------------

    def _move(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """Returns the best move of one shard, or None."""
        offers = [offer for offer in self._offers(source, goal) if offer[2]]
        receiving = self._receiving_osds(source, goal)
        if not offers or receiving is None:
            return None
        least = min([shards[0][0] for _, _, shards in offers])
        best: Optional[ReliefMove] = None
        improved = 0
        targets = self._limits.with_room(receiving, least)
        for _, target in piecewise(targets, _TARGETS_A_PIECE):
            if target == source:
                continue
            better = self._move_to(source, target, least, offers, goal, best)
            if better is not best:
                best = better
                improved += 1
                if improved >= _TARGETS:
                    break
            elif best is not None:
                break
        return best

    def _receiving_osds(self, source: int, goal: ReliefGoal) -> Optional[SortedOsds]:
        """Returns the OSDs that may take shards from the source; None if there are none."""
        if isinstance(goal, TooManyShards):
            return self._targets.list_of(goal.group, source)
        helpers = goal.helpers
        known = self._helpers.get(id(helpers))
        if known is None:
            placement = self._placement
            osds = [osd for osd in helpers if placement.is_target[osd]]
            by_use = SortedOsds(placement, osds, placement.capacity_utilization)
            known = self._helpers[id(helpers)] = helpers, by_use
        return known[1]

    def _offers(self, source: int, goal: ReliefGoal) -> Iterable[_Offered]:
        """Yields the shards of a suitable size, by group."""
        over = self._excess(source)
        for group, lists in self._groups_leaving(source, goal):
            count_gain = self._costs.count_gain_on_leave(group, source)
            for shards in lists:
                if not isinstance(goal, OverfullOsd) or len(shards) <= _NEAR:
                    yield group, count_gain, shards[:_NEAR]
                    continue
                # large enough for the present limit, or for the goal at once
                for bytes_to_shed in (over, self._needed(source, goal)):
                    at = bisect_left(shards, (int(bytes_to_shed), -1))
                    first = max(0, min(at, len(shards) - 1) - _NEAR // 2)
                    yield group, count_gain, shards[first:at + _NEAR // 2]

    def _excess(self, osd: int) -> float:
        """Returns the bytes that an OSD has above its limit; negative if it has room."""
        return self._placement.used_bytes[osd] - self._limits.max_used_bytes[osd]

    def _groups_leaving(self, source: int,
                        goal: ReliefGoal) -> List[Tuple[int, Tuple[Shards, Shards]]]:
        """Returns the groups whose shards may leave the source, with their shards."""
        grouped = self._shard_index.by_group(source)
        group = goal.group
        if group == ANY_GROUP:
            return list(grouped.items())
        return [(group, grouped[group])] if group in grouped else []

    def _move_to(self, source: int, target: int, least: int, offers: List[_Offered],
                 goal: ReliefGoal, best: Optional[ReliefMove]) -> Optional[ReliefMove]:
        """Returns the best of the offers for one target, or `best` if none is better. `least`: the
        bytes of the smallest offer."""
        placement = self._placement
        limits = self._limits
        costs = self._costs
        least_score = best.score if best is not None else -inf
        free = limits.max_used_bytes[target] - placement.used_bytes[target]
        # of the shards of many pools: most targets can take none of them
        fits_any = len(offers) == 1 or limits.fits_pressure(target, least, -1, -1)
        placement.candidates_examined += len(offers)
        for group, count_gain, shards in offers:
            smallest = shards[0][0]
            if smallest > free or not placement.groups[group].may_reach(source, target):
                continue
            placement.candidates_examined += len(shards)
            if not (fits_any and limits.fits_pressure(target, smallest, group, -1)):
                continue  # a larger shard does not fit either
            count_loss = costs.count_loss_on_enter(group, target)
            for size, pg in shards:
                if size > free:
                    break
                relief = self._relief(source, goal, size, group, -1)
                if relief <= 0:
                    continue
                gain = (costs.utilization_gain(source, target, size) + count_gain - count_loss
                        - costs.displacement_cost(pg, source, target, size, self._price))
                score = (gain - goal.fixed_cost) / relief
                if score <= least_score:
                    continue
                if limits.fits(target, size, group, -1) and placement.is_legal(pg, source, target):
                    best = ReliefMove(score, gain, ((pg, source, target),))
                    least_score = score
        return best

    # -- joint moves ---------------------------------------------------------------------------

    def _joint(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """Returns the best move of all shards that a PG has in the OSD's bucket to another bucket,
        or None.

        The best has the highest score, not the highest gain: that can be a move of an empty PG.
        """
        placement = self._placement
        joint_moves = self._joint_moves
        best: Optional[ReliefMove] = None
        least_score = -inf
        for steps in joint_moves.candidates(source, goal.group):
            placement.candidates_examined += 1
            pg = steps[0][0]
            relief = self._relief(source, goal, placement.size_on(pg, source),
                                  placement.group_of(pg, source), -1)
            if relief <= 0:
                continue
            gain = self._costs.gain(steps, self._price)
            score = (gain - goal.fixed_cost) / relief
            if score <= least_score:
                continue
            if joint_moves.fits(steps, self._limits) and placement.is_legal_joint(steps):
                best = ReliefMove(score, gain, steps)
                least_score = score
        return best

    # -- swaps ---------------------------------------------------------------------------------

    def _swap(self, source: int, goal: ReliefGoal, displaced_only: bool) -> Optional[ReliefMove]:
        """Returns the best swap, or None. `displaced_only`: the partner gives only shards that are
        displaced already, which can move on at no cost."""
        receiving = self._receiving_osds(source, goal)
        if receiving is None:
            return None
        best: Optional[ReliefMove] = None
        offers = self._shard_index.by_size(source)
        if goal.group != ANY_GROUP:
            offers = [offer for offer in offers if offer[2] == goal.group]
        sizes = [offer[0] for offer in offers]
        tried = 0
        for _, partner in receiving.entries():
            if partner == source or self._excess(partner) >= 0:
                continue
            theirs = self._shard_index.by_size(partner, displaced_only)
            if theirs and offers:
                if tried % _PARTNERS == 0:
                    give_way()
                best = self._swap_with(source, partner, offers, sizes, theirs, goal, best)
                tried += 1
            if best is not None and tried >= _PARTNERS:
                break
        return best

    def _swap_with(self, source: int, partner: int, offers: List[Offer], sizes: List[int],
                   theirs: List[Offer], goal: ReliefGoal,
                   best: Optional[ReliefMove]) -> Optional[ReliefMove]:
        """Returns the best swap with one partner, or `best` if none is better. `sizes`: of the
        offers."""
        placement = self._placement
        limits = self._limits
        costs = self._costs
        initial_up = placement.initial_up
        price = self._price
        least_score = best.score if best is not None else -inf
        #: (group, other group) → the gain of their counts; None if they cannot be swapped
        counts: Dict[Tuple[int, int], Optional[float]] = {}
        examined = 0
        # the bytes that should leave the source: wanted, least and most
        over = self._excess(source)
        most = -self._excess(partner)
        wanted = 0.0
        least = min(0.0, over)
        if isinstance(goal, OverfullOsd):
            wanted = max(over, 0.0)
            least = 1.0
        pairs = pairs_of_shards(offers, sizes, theirs, wanted, least, most)
        for (size, pg, group), (back, other, other_group) in pairs:
            examined += 1
            if other == pg or other_group == goal.group:
                continue
            shed = size - back
            relief = self._relief(source, goal, shed, group, other_group)
            if relief <= 0:
                continue
            both = group, other_group
            if both not in counts:
                counts[both] = self._counts_of_swap(group, source, other_group, partner)
            count_gain = counts[both]
            if count_gain is None:
                continue
            gain = costs.utilization_gain(source, partner, shed)
            there = initial_up[pg]
            here = initial_up[other]
            if (source in there) != (partner in there):   # most cost nothing
                gain -= costs.displacement_cost(pg, source, partner, size, price)
            if (partner in here) != (source in here):
                gain -= costs.displacement_cost(other, partner, source, back, price)
            gain += count_gain
            score = (gain - goal.fixed_cost) / relief
            if score <= least_score:
                continue
            if not placement.is_legal(pg, source, partner):
                continue
            steps = (other, partner, source), (pg, source, partner)
            if not placement.is_legal(*steps[0]) or not placement.has_upmap_pairs(steps):
                continue
            if not limits.fits(partner, shed, group, other_group):
                continue
            if limits.fits_pressure(source, -shed, other_group, group):
                best = ReliefMove(score, gain, steps)
                least_score = score
        placement.candidates_examined += examined
        return best

    def _counts_of_swap(self, group: int, source: int, other: int,
                        partner: int) -> Optional[float]:
        """Returns the gain of counts if a shard of `group` and a shard of `other` are swapped; None
        if one of them cannot go there."""
        for index in (group, other):
            if not self._placement.groups[index].may_reach(source, partner):
                return None
        if group == other:
            return 0.0
        costs = self._costs
        gain = costs.count_gain_on_leave(group, source) - costs.count_loss_on_enter(group, partner)
        gain += costs.count_gain_on_leave(other, partner)
        return gain - costs.count_loss_on_enter(other, source)

    # -- chains --------------------------------------------------------------------------------

    def ejection_chain(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """Returns the best chain, or None: a shard goes to an OSD that is too full for it, and
        another shard goes on from there.

        Nothing else helps an OSD that no single shard can leave, if no shard can come there.
        """
        placement = self._placement
        costs = self._costs
        best: Optional[ReliefMove] = None
        least_score = -inf
        for group, lists in self._groups_leaving(source, goal):
            count_gain = costs.count_gain_on_leave(group, source)
            seen = 0
            for _, middle in self._targets.candidates(group, source):
                if middle == source or not placement.groups[group].may_reach(source, middle):
                    continue
                seen += 1
                if seen > _TARGETS:
                    break
                give_way()
                count_loss = costs.count_loss_on_enter(group, middle)
                for size, pg in (lists[0] + lists[1])[::-1][:2 * _NEAR]:
                    relief = self._relief(source, goal, size, group, -1)
                    if relief <= 0 or not placement.is_legal(pg, source, middle):
                        continue
                    onward = self._onward(middle, size, group, pg, source)
                    if onward is None:
                        continue
                    onward_gain, onward_move = onward
                    gain = (count_gain - count_loss + onward_gain
                            - costs.displacement_cost(pg, source, middle, size, self._price)
                            + costs.utilization_gain(source, middle, size))
                    score = (gain - goal.fixed_cost) / relief
                    if score <= least_score:
                        continue
                    steps = onward_move, (pg, source, middle)
                    if placement.has_upmap_pairs(steps):
                        best = ReliefMove(score, gain, steps)
                        least_score = score
        return best

    def _onward(self, middle: int, coming: int, coming_group: int, not_pg: int,
                source: int) -> Optional[Tuple[float, ShardMove]]:
        """Returns (gain, move) of the shard of highest gain that can leave the middle OSD and makes
        enough room there; None if there is none.

        `coming`, `coming_group`, `not_pg`: bytes, group and PG of the shard that comes there.
        """
        placement = self._placement
        limits = self._limits
        costs = self._costs
        over = max(0, placement.used_bytes[middle] + coming - int(limits.max_used_bytes[middle]))
        best: Optional[Tuple[float, ShardMove]] = None
        least = -inf
        for group, lists in self._shard_index.by_group(middle).items():
            give_way()
            count_gain = costs.count_gain_on_leave(group, middle)
            seen = 0
            for _, target in self._targets.candidates(group, middle):
                free = limits.max_used_bytes[target] - placement.used_bytes[target]
                if target in (middle, source) or free < over:
                    continue
                if not placement.groups[group].may_reach(middle, target):
                    continue
                seen += 1
                if seen > _TARGETS:
                    break
                count_loss = costs.count_loss_on_enter(group, target)
                for shards in lists:
                    start = bisect_left(shards, (over, -1))
                    placement.candidates_examined += 1
                    for size, pg in shards[start:start + _NEAR]:
                        if size > free or pg == not_pg:
                            continue
                        gain = (costs.utilization_gain(middle, target, size)
                                + count_gain - count_loss
                                - costs.displacement_cost(pg, middle, target, size,
                                                          self._price))
                        if gain <= least:
                            continue
                        if not limits.fits(target, size, group, -1):
                            continue
                        if not limits.fits(middle, coming - size, coming_group, group):
                            continue
                        if placement.is_legal(pg, middle, target):
                            best = (gain, (pg, middle, target))
                            least = gain
        return best


def pairs_of_shards(mine: List[Offer], sizes: List[int], theirs: List[Offer], want: float,
                    least: float, most: float) -> Iterator[Tuple[Offer, Offer]]:
    """Yields pairs whose difference in bytes is about `want` and between `least` and `most`.

    Both lists are sorted. `sizes`: the bytes of `mine`, which serve for all partners of an OSD.
    Iterates over the shorter list and finds partners in the other list by bisection.
    """
    is_theirs = len(theirs) <= len(mine)   # the shorter list
    shorter = theirs
    longer = mine
    before = 1
    if not is_theirs:
        shorter = mine
        longer = theirs
        before = 2
        sizes = [offer[0] for offer in theirs]
        want, least, most = -want, -most, -least
    after = 3 - before
    for offer in shorter:
        size = offer[0]
        smallest = int(size + least)
        largest = int(size + most)
        if largest < sizes[0]:
            continue
        if smallest > sizes[-1]:
            break
        low = bisect_left(sizes, smallest)
        high = bisect_left(sizes, largest + 1, low)
        at = bisect_left(sizes, int(size + want))
        for other in longer[max(low, min(at, high) - before):min(high, max(at, low) + after)]:
            yield (other, offer) if is_theirs else (offer, other)
