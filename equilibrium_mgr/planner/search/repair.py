"""How one OSD is relieved at the least cost: a move, a joint move, a swap, or a chain.

What relief means is asked of a complaint: too many bytes, or too many shards of one pool per free
byte. Every operation leaves all the OSDs it touches within the limits, but for the relieved one,
which it brings nearer to them.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.shard_index import ShardIndex
from ..state.target_index import TargetIndex
from .joint_moves import JointMoves

Offer = Tuple[int, int, int]      # (bytes, PG, group)

#: How many targets, partners and shards near the wanted size are looked at before the best of
#: them is taken: more cost time and gained nothing, as measured on the sample clusters.
_TARGETS = 6
_PARTNERS = 4
_NEAR = 4
_ALL = 1 << 30


class RepairGoal(NamedTuple):
    """Why an OSD must be relieved."""

    osds: Tuple[int, ...]     # who may help
    group: int                # the pool's group with too many shards, or -1: too many bytes
    per_byte: float           # shards of it per free byte that are allowed
    goal: float               # the utilization that is wanted in the end
    shard: float              # bytes that one shard too many stands for
    trouble: float            # cost of an operation beside its bytes, so that small ones are rare


class RepairMove(NamedTuple):
    score: float              # gain per byte of relief
    gain: float               # of the objective
    steps: Tuple[ShardMove, ...]


class Repair:
    """Finds operations; `price` is what a displaced byte costs."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex,
                 joint_moves: JointMoves, limits: SearchConstraints, price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        self._price = price

    def find(self, source: int, complaint: RepairGoal) -> Optional[RepairMove]:
        """The cheapest operation of the simplest kind that helps, or None."""
        return (self._move(source, complaint, _NEAR) or self._swap(source, complaint, True)
                or self._move(source, complaint, _ALL) or self._joint(source, complaint)
                or self._swap(source, complaint, False) or self._ejection_chain(source, complaint))

    # -- what an operation is worth ------------------------------------------------------------

    def _relief(self, source: int, complaint: RepairGoal, shed: int, out: int, into: int) -> float:
        """Bytes of relief where `shed` bytes and a shard of `out` leave and one of `into` comes."""
        if complaint.group < 0:
            placement = self._placement
            return min(shed, placement.used_bytes[source] - complaint.goal * placement.size_bytes[source])
        counts = (out == complaint.group) - (into == complaint.group)
        return complaint.shard * (counts + complaint.per_byte * shed)

    def _displacement_cost(self, pg: int, source: int, target: int, size: int) -> float:
        """What displacing costs, or refunds."""
        start = self._placement.initial_up[pg]
        change = (source in start) - (target in start)
        return change * (self._price * size + self._costs.move_cost[source]) if change else 0.0

    def _reaches(self, group: int, source: int, target: int) -> bool:
        placement = self._placement
        members = placement.groups[group].members
        return (source in members and target in members
                and placement.groups[group].may_reach(source, target))

    # -- moves ---------------------------------------------------------------------------------

    def _move(self, source: int, complaint: RepairGoal, near: int) -> Optional[RepairMove]:
        placement, limits = self._placement, self._limits
        over = placement.used_bytes[source] - limits.max_used_bytes[source]
        offers = [(group, out, shards) for group, out, shards in self._offers(
            source, complaint, near, over) if shards]
        if not offers:
            return None
        least = min(shards[0][0] for _, _, shards in offers)
        best: Optional[RepairMove] = None
        legal = 0
        for target in self._receiving_osds(source, complaint):
            room = limits.max_used_bytes[target] - placement.used_bytes[target]
            if room < least or target == source:
                continue
            better = self._move_to(source, target, room, offers, complaint, best)
            if better is not best:
                best = better
                legal += 1
                if legal >= _TARGETS:
                    break
            elif best is not None:
                break
        return best

    def _receiving_osds(self, source: int, complaint: RepairGoal) -> Iterator[int]:
        if complaint.group >= 0:
            return iter([osd for _, osd in self._targets.candidates(complaint.group, source)])
        return (osd for _, osd in self._targets.by_utilization(complaint.osds))

    def _offers(self, source: int, complaint: RepairGoal, near: int,
                over: float) -> Iterable[Tuple[int, float, Sequence[Tuple[int, int]]]]:
        """(group, what its leaving gains, shards of about the wanted size)."""
        placement = self._placement
        for group, lists in self._shard_index.by_group(source).items():
            if complaint.group in (-1, group):
                out = self._costs.count_gain_on_leave(group, source)
                for shards in lists:
                    if complaint.group >= 0 or near >= len(shards):
                        yield group, out, shards[:near]
                        continue
                    # enough for now, or all that is too much at once
                    need = placement.used_bytes[source] - complaint.goal * placement.size_bytes[source]
                    for size in (int(over), int(need)):
                        at = bisect_left(shards, (size, -1))
                        yield group, out, shards[max(0, min(at, len(shards) - 1) - near // 2):
                                                 at + near // 2]

    def _move_to(self, source: int, target: int, room: float,
                 offers: List[Tuple[int, float, Sequence[Tuple[int, int]]]],
                 complaint: RepairGoal, best: Optional[RepairMove]) -> Optional[RepairMove]:
        placement, limits, costs = self._placement, self._limits, self._costs
        placement.candidates_examined += len(offers)
        for group, out, shards in offers:
            if shards[0][0] > room or not self._reaches(group, source, target):
                continue
            into = costs.count_loss_on_enter(group, target)
            placement.candidates_examined += len(shards)
            for size, pg in shards:
                if size > room:
                    break
                helps = self._relief(source, complaint, size, group, -1)
                if helps <= 0:
                    continue
                gain = (self._costs.utilization_gain(source, target, size) + out - into
                        - self._displacement_cost(pg, source, target, size))
                score = (gain - complaint.trouble) / helps
                if ((best is None or score > best.score)
                        and limits.fits(target, size, group, -1)
                        and placement.is_legal(pg, source, target)):
                    best = RepairMove(score, gain, ((pg, source, target),))
        return best

    # -- shards that only move together ----------------------------------------------------------

    def _joint(self, source: int, complaint: RepairGoal) -> Optional[RepairMove]:
        placement, limits = self._placement, self._limits
        best: Optional[RepairMove] = None
        for steps in self._joint_moves.candidates(source):
            placement.candidates_examined += 1
            size = placement.pg_bytes[steps[0][0]]
            group = placement.group_of(steps[0][0], source)
            if complaint.group not in (-1, group):
                continue
            helps = self._relief(source, complaint, size, group, -1)
            if helps <= 0:
                continue
            gain = self._joint_moves.gain(steps, self._price)
            score = (gain - complaint.trouble) / helps
            if ((best is None or score > best.score)
                    and all(limits.fits(target, size, group, -1) for _, _, target in steps)
                    and placement.is_legal_joint(steps)):
                best = RepairMove(score, gain, steps)
        return best

    # -- swaps ---------------------------------------------------------------------------------

    def _swap(self, source: int, complaint: RepairGoal, cheap: bool) -> Optional[RepairMove]:
        """`cheap`: only against shards that are displaced already and cost nothing more."""
        best: Optional[RepairMove] = None
        offers = self._shard_index.by_size(source)
        if complaint.group >= 0:
            offers = [offer for offer in offers if offer[2] == complaint.group]
        tried = 0
        for partner in self._receiving_osds(source, complaint):
            if partner == source:
                continue
            room = self._limits.max_used_bytes[partner] - self._placement.used_bytes[partner]
            if room <= 0:
                continue
            theirs = (self._shard_index.displaced(partner) if cheap
                      else self._shard_index.by_size(partner))
            if theirs:
                best = self._swap_with(source, partner, offers, theirs, complaint, best)
                tried += 1
            if best is not None and tried >= _PARTNERS:
                break
        return best

    def _swap_with(self, source: int, partner: int, offers: List[Offer], theirs: List[Offer],
                   complaint: RepairGoal, best: Optional[RepairMove]) -> Optional[RepairMove]:
        placement, limits, costs = self._placement, self._limits, self._costs
        over = placement.used_bytes[source] - limits.max_used_bytes[source]
        most = limits.max_used_bytes[partner] - placement.used_bytes[partner]
        least = 1 if complaint.group < 0 else min(0.0, over)
        want = max(over, 0.0) if complaint.group < 0 else 0.0
        reach: Dict[int, bool] = {}
        for (size, pg, group), (back, other, other_group) in _pairs(
                offers, theirs, want, least, most):
            placement.candidates_examined += 1
            if other == pg or other_group == complaint.group:
                continue
            shed = size - back
            helps = self._relief(source, complaint, shed, group, other_group)
            if helps <= 0:
                continue
            for name in (group, other_group):
                if name not in reach:
                    reach[name] = self._reaches(name, source, partner)
            if not (reach[group] and reach[other_group]):
                continue
            gain = (self._costs.utilization_gain(source, partner, shed) - self._displacement_cost(pg, source, partner, size)
                    - self._displacement_cost(other, partner, source, back))
            if other_group != group:
                gain += (costs.count_gain_on_leave(group, source) - costs.count_loss_on_enter(group, partner)
                         + costs.count_gain_on_leave(other_group, partner)
                         - costs.count_loss_on_enter(other_group, source))
            score = (gain - complaint.trouble) / helps
            if ((best is None or score > best.score)
                    and limits.fits(partner, shed, group, other_group)
                    and limits.fits_pressure(source, -shed, other_group, group)
                    and placement.is_legal(pg, source, partner)
                    and placement.is_legal(other, partner, source)):
                best = RepairMove(score, gain, ((other, partner, source), (pg, source, partner)))
        return best

    # -- chains --------------------------------------------------------------------------------

    def _ejection_chain(self, source: int, complaint: RepairGoal) -> Optional[RepairMove]:
        """A shard goes where there is no room yet, and another goes on from there."""
        placement, costs = self._placement, self._costs
        best: Optional[RepairMove] = None
        for group, lists in self._shard_index.by_group(source).items():
            if complaint.group not in (-1, group):
                continue
            out = costs.count_gain_on_leave(group, source)
            seen = 0
            for _, middle in self._targets.candidates(group, source):
                if middle == source or not self._reaches(group, source, middle):
                    continue
                seen += 1
                if seen > _TARGETS:
                    break
                into = costs.count_loss_on_enter(group, middle)
                for size, pg in (lists[0] + lists[1])[::-1][:2 * _NEAR]:
                    helps = self._relief(source, complaint, size, group, -1)
                    if helps <= 0 or not placement.is_legal(pg, source, middle):
                        continue
                    onward = self._onward(middle, size, group, pg, source)
                    if onward is None:
                        continue
                    gain = (out - into + onward[0] - self._displacement_cost(pg, source, middle, size)
                            + self._costs.utilization_gain(source, middle, size))
                    score = (gain - complaint.trouble) / helps
                    if best is None or score > best.score:
                        best = RepairMove(score, gain, (onward[1], (pg, source, middle)))
        return best

    def _onward(self, middle: int, coming: int, coming_group: int, not_pg: int,
                source: int) -> Optional[Tuple[float, ShardMove]]:
        """The cheapest shard whose leaving makes room on the middle OSD for what comes."""
        placement, costs, limits = self._placement, self._costs, self._limits
        over = max(0, placement.used_bytes[middle] + coming - int(limits.max_used_bytes[middle]))
        best: Optional[Tuple[float, ShardMove]] = None
        for group, lists in self._shard_index.by_group(middle).items():
            out = costs.count_gain_on_leave(group, middle)
            seen = 0
            for _, target in self._targets.candidates(group, middle):
                room = limits.max_used_bytes[target] - placement.used_bytes[target]
                if (target in (middle, source) or room < over
                        or not self._reaches(group, middle, target)):
                    continue
                seen += 1
                if seen > _TARGETS:
                    break
                into = costs.count_loss_on_enter(group, target)
                for shards in lists:
                    start = bisect_left(shards, (over, -1))
                    placement.candidates_examined += 1
                    for size, pg in shards[start:start + _NEAR]:
                        if size > room or pg == not_pg:
                            continue
                        gain = (self._costs.utilization_gain(middle, target, size) + out - into
                                - self._displacement_cost(pg, middle, target, size))
                        if ((best is None or gain > best[0])
                                and limits.fits(target, size, group, -1)
                                and limits.fits(middle, coming - size, coming_group, group)
                                and placement.is_legal(pg, middle, target)):
                            best = (gain, (pg, middle, target))
        return best


def _pairs(mine: List[Offer], theirs: List[Offer], want: float, least: float,
           most: float) -> Iterator[Tuple[Offer, Offer]]:
    """Pairs whose difference in bytes is about `want` and between `least` and `most`.

    Walks the shorter list and looks the other's partners up by size.
    """
    if len(theirs) <= len(mine):
        for other in theirs:
            low = bisect_left(mine, (int(other[0] + least), -1, -1))
            high = bisect_left(mine, (int(other[0] + most) + 1, -1, -1))
            at = bisect_left(mine, (int(other[0] + want), -1, -1))
            for k in range(max(low, min(at, high) - 1), min(high, max(at, low) + 2)):
                yield mine[k], other
    else:
        for offer in mine:
            low = bisect_left(theirs, (int(offer[0] - most), -1, -1))
            high = bisect_left(theirs, (int(offer[0] - least) + 1, -1, -1))
            at = bisect_left(theirs, (int(offer[0] - want), -1, -1))
            for k in range(max(low, min(at, high) - 2), min(high, max(at, low) + 1)):
                yield offer, theirs[k]
