"""Relieving one OSD at the least cost: a move, a joint move, a swap or an ejection chain.

An OSD is relieved of bytes (OverfullOsd) or of shards of one pool per free byte (TooManyShards).
Each operation leaves all OSDs that it touches within the search's constraints, except the relieved
one, which it brings nearer to them. (Ejection chain: F. Glover, "Ejection chains, reference
structures and alternating path methods", Discrete Applied Mathematics 65, 1996.)
"""
from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ...runtime.time_slice import give_way, piecewise
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.target_index import ShardIndex, SortedOsds, TargetIndex
from .joint_moves import ANY_GROUP, JointMoves

#: Targets, swap partners and shards near the wanted size that are examined before the best of them
#: is taken. More cost time and gained nothing, as measured on the sample clusters.
_TARGETS = 6
_PARTNERS = 4
_NEAR = 4

_TARGETS_A_PIECE = 16   # asked before it gives way again: a millisecond

class OverfullOsd(NamedTuple):
    """Bytes are to leave the OSD."""

    helpers: Tuple[int, ...]    # OSDs that may take shards
    utilization: float          # wanted in the end, a ratio
    fixed_cost: float           # of an operation beside its bytes (bytes × utilization)
    group: int = ANY_GROUP     # shards of any group may leave


class TooManyShards(NamedTuple):
    """Shards of one group are to leave the OSD, or other bytes for more free space."""

    group: int
    max_pressure: float         # shards of the group per free byte that are allowed
    mean_bytes: float           # of a shard of the group
    fixed_cost: float = 0.0     # as above


ReliefGoal = Union[OverfullOsd, TooManyShards]

Offer = Tuple[int, int, int]      # (bytes, PG, group)


class ReliefMove(NamedTuple):
    """An operation, as the moves of shards that it consists of."""

    score: float                # gain less fixed cost per byte of relief; higher is better
    gain: float                 # by how much the objective falls (bytes × utilization)
    steps: Tuple[ShardMove, ...]


class Relief:
    """Finds operations. `price` is that of a displaced byte (utilization)."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex,
                 joint_moves: JointMoves, limits: SearchConstraints, price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        #: id of helpers → these, by utilization. By id: hashing 10,000 numbers takes long
        self._helpers: Dict[int, Tuple[Tuple[int, ...], SortedOsds]] = {}
        self._price = price

    def find(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """Returns the cheapest operation of the simplest kind that relieves the OSD, or None."""
        return (self._move(source, goal) or self._swap(source, goal, True)
                or self.joint(source, goal) or self._swap(source, goal, False)
                or self.ejection_chain(source, goal))

    # -- relief and cost -----------------------------------------------------------------------

    def _relief(self, source: int, goal: ReliefGoal, shed: int, leaving: int,
                entering: int) -> float:
        """Bytes of relief where `shed` bytes and a shard of group `leaving` go and one of
        `entering` comes (-1: none)."""
        if isinstance(goal, OverfullOsd):
            placement = self._placement
            return min(shed, placement.used_bytes[source]
                       - goal.utilization * placement.size_bytes[source])
        counts = (leaving == goal.group) - (entering == goal.group)
        return goal.mean_bytes * (counts + goal.max_pressure * shed)

    def _displacement_cost(self, pg: int, source: int, target: int, size: int) -> float:
        """The price of displacing a shard; negative where it returns to its initial OSD."""
        initial = self._placement.initial_up[pg]
        left, returned = source in initial, target in initial
        return ((left - returned) * self._price * size + left * self._costs.move_cost[source]
                - returned * self._costs.move_cost[target])

    # -- moves ---------------------------------------------------------------------------------

    def _move(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """The best move of one shard."""
        placement, limits = self._placement, self._limits
        over = placement.used_bytes[source] - limits.max_used_bytes[source]
        offers = [(group, count_gain, shards) for group, count_gain, shards in self._offers(
            source, goal, over) if shards]
        if not offers:
            return None
        least = min(shards[0][0] for _, _, shards in offers)
        receiving = self._receiving_osds(source, goal)
        if receiving is None:
            return None
        best: Optional[ReliefMove] = None
        improved = 0
        for _, target in piecewise(limits.with_room(receiving, least), _TARGETS_A_PIECE):
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
        """The OSDs that may take shards from the source; None where there are none."""
        if isinstance(goal, TooManyShards):
            return self._targets.list_of(goal.group, source)
        known = self._helpers.get(id(goal.helpers))
        if known is None:
            placement = self._placement
            known = self._helpers[id(goal.helpers)] = goal.helpers, SortedOsds(
                placement, [osd for osd in goal.helpers if placement.is_target[osd]],
                placement.capacity_utilization)
        return known[1]

    def _offers(self, source: int, goal: ReliefGoal,
                over: float) -> Iterable[Tuple[int, float, Sequence[Tuple[int, int]]]]:
        """(group, count gain of a shard's leaving, (bytes, PG) of shards of a suitable size)."""
        placement = self._placement
        for group, lists in self._shard_index.by_group(source).items():
            if goal.group not in (ANY_GROUP, group):
                continue
            count_gain = self._costs.count_gain_on_leave(group, source)
            for shards in lists:
                if not isinstance(goal, OverfullOsd) or len(shards) <= _NEAR:
                    yield group, count_gain, shards[:_NEAR]
                    continue
                # large enough for the present limit, or for the goal at once
                need = (placement.used_bytes[source]
                        - goal.utilization * placement.size_bytes[source])
                for size in (int(over), int(need)):
                    at = bisect_left(shards, (size, -1))
                    yield group, count_gain, shards[
                        max(0, min(at, len(shards) - 1) - _NEAR // 2):at + _NEAR // 2]

    def _move_to(self, source: int, target: int, least: int,
                 offers: List[Tuple[int, float, Sequence[Tuple[int, int]]]],
                 goal: ReliefGoal, best: Optional[ReliefMove]) -> Optional[ReliefMove]:
        """The best of the offers, of `least` bytes or more, for one target, or `best` if none is
        better."""
        placement, limits, costs = self._placement, self._limits, self._costs
        free = limits.max_used_bytes[target] - placement.used_bytes[target]
        # of many pools' shards: most targets can take none of them
        fits_any = len(offers) == 1 or limits.fits_pressure(target, least, -1, -1)
        placement.candidates_examined += len(offers)
        for group, count_gain, shards in offers:
            if shards[0][0] > free or not placement.groups[group].may_reach(source, target):
                continue
            placement.candidates_examined += len(shards)
            if not (fits_any and limits.fits_pressure(target, shards[0][0], group, -1)):
                continue  # nor does a larger one
            count_loss = costs.count_loss_on_enter(group, target)
            for size, pg in shards:
                if size > free:
                    break
                relief = self._relief(source, goal, size, group, -1)
                if relief <= 0:
                    continue
                gain = (costs.utilization_gain(source, target, size) + count_gain - count_loss
                        - self._displacement_cost(pg, source, target, size))
                score = (gain - goal.fixed_cost) / relief
                if ((best is None or score > best.score)
                        and limits.fits(target, size, group, -1)
                        and placement.is_legal(pg, source, target)):
                    best = ReliefMove(score, gain, ((pg, source, target),))
        return best

    # -- joint moves ---------------------------------------------------------------------------

    def joint(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """Returns the best joint move off the OSD, or None."""
        found = self._joint_moves.best(source, self._price, self._limits, -inf, goal.group)
        if found is None:
            return None
        placement, pg = self._placement, found.steps[0][0]
        relief = self._relief(source, goal, placement.size_on(pg, source),
                              placement.group_of(pg, source), -1)
        if relief <= 0:
            return None
        return ReliefMove((found.gain - goal.fixed_cost) / relief, found.gain, found.steps)

    # -- swaps ---------------------------------------------------------------------------------

    def _swap(self, source: int, goal: ReliefGoal, displaced_only: bool) -> Optional[ReliefMove]:
        """The best swap; `displaced_only`: for shards that are displaced already, whose further
        move costs nothing."""
        best: Optional[ReliefMove] = None
        offers = self._shard_index.by_size(source)
        if goal.group != ANY_GROUP:
            offers = [offer for offer in offers if offer[2] == goal.group]
        sizes = [offer[0] for offer in offers]
        tried = 0
        receiving = self._receiving_osds(source, goal)
        for _, partner in receiving.entries() if receiving else ():
            if partner == source:
                continue
            free = self._limits.max_used_bytes[partner] - self._placement.used_bytes[partner]
            if free <= 0:
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
        """The best swap with one partner, or `best` if none is better; `sizes` of the offers."""
        placement, limits, costs = self._placement, self._limits, self._costs
        initial_up = placement.initial_up
        #: (group, other group) → the gain of their counts; None where they cannot be swapped
        counts: Dict[Tuple[int, int], Optional[float]] = {}
        examined = 0
        # bytes by which it should relieve the source: wanted, least and most
        over = placement.used_bytes[source] - limits.max_used_bytes[source]
        most = limits.max_used_bytes[partner] - placement.used_bytes[partner]
        wanted, least = ((max(over, 0.0), 1) if isinstance(goal, OverfullOsd)
                         else (0.0, min(0.0, over)))
        for (size, pg, group), (back, other, other_group) in pairs_of_shards(
                offers, sizes, theirs, wanted, least, most):
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
            there, here = initial_up[pg], initial_up[other]
            if (source in there) != (partner in there):   # else it costs nothing, as most do
                gain -= self._displacement_cost(pg, source, partner, size)
            if (partner in here) != (source in here):
                gain -= self._displacement_cost(other, partner, source, back)
            gain += count_gain
            score = (gain - goal.fixed_cost) / relief
            steps = (other, partner, source), (pg, source, partner)
            if ((best is None or score > best.score)
                    and placement.is_legal(pg, source, partner)
                    and placement.is_legal(other, partner, source)
                    and placement.has_upmap_pairs(steps)
                    and limits.fits(partner, shed, group, other_group)
                    and limits.fits_pressure(source, -shed, other_group, group)):
                best = ReliefMove(score, gain, steps)
        placement.candidates_examined += examined
        return best

    def _counts_of_swap(self, group: int, source: int, other: int,
                        partner: int) -> Optional[float]:
        """The gain of counts when a shard of `group` and one of `other` are swapped; None where
        one of them cannot go there."""
        groups = self._placement.groups
        if not (groups[group].may_reach(source, partner)
                and groups[other].may_reach(source, partner)):
            return None
        costs = self._costs
        return 0.0 if group == other else (
            costs.count_gain_on_leave(group, source) - costs.count_loss_on_enter(group, partner)
            + costs.count_gain_on_leave(other, partner) - costs.count_loss_on_enter(other, source))

    # -- chains --------------------------------------------------------------------------------

    def ejection_chain(self, source: int, goal: ReliefGoal) -> Optional[ReliefMove]:
        """A shard goes to an OSD that is too full for it, and another shard goes on from there: the
        one operation that helps an OSD which nothing can come to and no single shard can leave."""
        placement = self._placement
        best: Optional[ReliefMove] = None
        for group, lists in self._shard_index.by_group(source).items():
            if goal.group not in (ANY_GROUP, group):
                continue
            count_gain = self._costs.count_gain_on_leave(group, source)
            seen = 0
            for _, middle in self._targets.candidates(group, source):
                if middle == source or not placement.groups[group].may_reach(source, middle):
                    continue
                seen += 1
                if seen > _TARGETS:
                    break
                give_way()
                count_loss = self._costs.count_loss_on_enter(group, middle)
                for size, pg in (lists[0] + lists[1])[::-1][:2 * _NEAR]:
                    relief = self._relief(source, goal, size, group, -1)
                    if relief <= 0 or not placement.is_legal(pg, source, middle):
                        continue
                    onward = self._onward(middle, size, group, pg, source)
                    if onward is None:
                        continue
                    gain = (count_gain - count_loss + onward[0]
                            - self._displacement_cost(pg, source, middle, size)
                            + self._costs.utilization_gain(source, middle, size))
                    score = (gain - goal.fixed_cost) / relief
                    steps = onward[1], (pg, source, middle)
                    if (best is None or score > best.score) and placement.has_upmap_pairs(steps):
                        best = ReliefMove(score, gain, steps)
        return best

    def _onward(self, middle: int, coming: int, coming_group: int, not_pg: int,
                source: int) -> Optional[Tuple[float, ShardMove]]:
        """(gain, move) of the cheapest shard that can leave the middle OSD for the one that comes
        (`coming` bytes of `coming_group`)."""
        placement, limits = self._placement, self._limits
        over = max(0, placement.used_bytes[middle] + coming - int(limits.max_used_bytes[middle]))
        best: Optional[Tuple[float, ShardMove]] = None
        for group, lists in self._shard_index.by_group(middle).items():
            give_way()
            count_gain = self._costs.count_gain_on_leave(group, middle)
            seen = 0
            for _, target in self._targets.candidates(group, middle):
                free = limits.max_used_bytes[target] - placement.used_bytes[target]
                if (target in (middle, source) or free < over
                        or not placement.groups[group].may_reach(middle, target)):
                    continue
                seen += 1
                if seen > _TARGETS:
                    break
                count_loss = self._costs.count_loss_on_enter(group, target)
                for shards in lists:
                    start = bisect_left(shards, (over, -1))
                    placement.candidates_examined += 1
                    for size, pg in shards[start:start + _NEAR]:
                        if size > free or pg == not_pg:
                            continue
                        gain = (self._costs.utilization_gain(middle, target, size)
                                + count_gain - count_loss
                                - self._displacement_cost(pg, middle, target, size))
                        if ((best is None or gain > best[0])
                                and limits.fits(target, size, group, -1)
                                and limits.fits(middle, coming - size, coming_group, group)
                                and placement.is_legal(pg, middle, target)):
                            best = (gain, (pg, middle, target))
        return best


def pairs_of_shards(mine: List[Offer], sizes: List[int], theirs: List[Offer], want: float,
                    least: float, most: float) -> Iterator[Tuple[Offer, Offer]]:
    """Yields pairs whose difference in bytes is about `want` and between `least` and `most`.

    Both lists are sorted; `sizes` are the bytes of the first one, the same for all partners of an
    OSD. Iterates over the shorter list and finds partners in the other one by bisection.
    """
    is_theirs = len(theirs) <= len(mine)   # the shorter list
    shorter, longer, before, after = (theirs, mine, 1, 2) if is_theirs else (mine, theirs, 2, 1)
    if not is_theirs:
        sizes = [offer[0] for offer in theirs]
        want, least, most = -want, -most, -least
    for offer in shorter:
        size = offer[0]
        if int(size + most) < sizes[0]:
            continue
        if int(size + least) > sizes[-1]:
            break
        low = bisect_left(sizes, int(size + least))
        high = bisect_left(sizes, int(size + most) + 1, low)
        at = bisect_left(sizes, int(size + want))
        for k in range(max(low, min(at, high) - before), min(high, max(at, low) + after)):
            yield (longer[k], offer) if is_theirs else (offer, longer[k])
