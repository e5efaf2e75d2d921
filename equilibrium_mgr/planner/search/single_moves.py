"""The best single move off an OSD: home again, or to an OSD that gains the objective most."""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..state.cost_model import NOISE, CostModel
from ..state.shard_index import ShardsByGroup, Shards, ShardIndex
from ..state.target_index import TargetEntry, TargetIndex

#: Targets at which a shard could go before the search for a still better one ends.
_ENOUGH = 6

#: Pools looked at closely before the rest of an OSD's pools is left for its next turn.
_POOLS = 8


class Candidate(NamedTuple):
    """A move that lowers the objective by `gain`; `evens` is its gain without the counts."""

    gain: float
    evens: float
    pg: int
    target: int


class _Ends(NamedTuple):
    """What the inner loop needs of a source and a target."""

    used_a: int
    size_a: int
    level_a: float
    used_b: int
    size_b: int
    level_b: float
    base: float          # the terms of both before the move, and the counts' gain


class SingleMoves:
    """Finds moves. `price` is what a displaced byte costs; `strict` leaves alone the moves that
    bring nothing but better counts."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index

    def best(self, source: int, price: float, strict: bool) -> Optional[Candidate]:
        """The best single move off an OSD, or None where none lowers the objective."""
        grouped = self._shard_index.by_group(source)
        outs = {group: self._costs.count_gain_on_leave(group, source) for group in grouped}
        pools = sorted(grouped, key=lambda g: (-outs[g], g))
        if self._targets.has_own_lists:
            return self._pool_by_pool(source, grouped, outs, pools, price, strict)
        return self._target_by_target(source, grouped, outs, pools, price, strict)

    def _home(self, source: int, group: int, displaced: Shards, price: float, out: float,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Returns of displaced shards, which refund their bytes."""
        placement, costs = self._placement, self._costs
        for size, pg in displaced:
            for home in placement.initial_osds(pg, source, group):
                if placement.used_bytes[home] + size > placement.fill_limit_bytes[home]:
                    continue
                evens = costs.utilization_gain(source, home, size) + price * size + costs.move_cost[source]
                gain = evens + out - costs.count_loss_on_enter(group, home)
                if gain > (best.gain if best else NOISE) and placement.is_legal(pg, source, home):
                    best = Candidate(gain, 1.0, pg, home)
        return best

    # -- where every pool has a list of targets of its own, its counts minded -------------------

    def _pool_by_pool(self, source: int, grouped: ShardsByGroup, outs: Dict[int, float],
                      pools: List[int], price: float, strict: bool) -> Optional[Candidate]:
        best: Optional[Candidate] = None
        tried = 0
        for group in pools:
            lists, out = grouped[group], outs[group]
            best = self._home(source, group, lists[1], price, out, best)
            entries = self._targets.candidates(group, source)
            if entries and not self._hopeless(source, group, lists, price, out, entries):
                best = self._away(source, group, lists, price, out, entries, strict, best)
                tried += 1
                if tried >= _POOLS and best:
                    break
        return best

    def _away(self, source: int, group: int, lists: Tuple[Shards, Shards], price: float,
              out: float, entries: List[TargetEntry], strict: bool,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Moves to other OSDs, the best first, until some in a row are no better."""
        tried = 0
        for _, target in entries:
            if target == source or not self._open(group, source, target):
                continue
            counts = out - self._costs.count_loss_on_enter(group, target)
            best, better = self._to(source, target, lists, price, counts, strict, best)
            tried += 1
            if tried >= self._targets.patience and not better or tried >= _ENOUGH and best:
                break
        return best

    def _open(self, group: int, source: int, target: int) -> bool:
        """Whether some shard of the group may well go there."""
        members = self._placement.groups[group]
        if not members.domain_bits or members.domain_of is None:
            return True
        return bool(members.reachable_domains.get(members.domain_of[source], 0)
                    & members.domain_bits[members.domain_of[target]])

    def _hopeless(self, source: int, group: int, lists: Tuple[Shards, Shards], price: float,
                  out: float, entries: List[TargetEntry]) -> bool:
        """Whether not even the best target's price per byte can be met: most often, at once."""
        placement, costs = self._placement, self._costs
        first = entries[0][1]
        if first == source and len(entries) > 1:
            first = entries[1][1]
        over = placement.used_bytes[source] / placement.size_bytes[source] - costs.target_utilization[source]
        rate = 2.0 * over * (1.0 if over > 0.0 else costs.weights.underfull_weight)
        least = min(shards[0][0] for shards in lists if shards)
        mean = max(1.0, placement.groups[group].mean_shard_bytes)
        # gains are concave in bytes: the first byte's gain bounds all others'
        return (rate + out / max(1.0, least) - (0.0 if lists[1] else price) + mean
                / placement.size_bytes[first]) * mean <= costs.cost_on_enter(group, first, mean)

    # -- where pools share a list of targets, the emptiest first ---------------------------------

    def _target_by_target(self, source: int, grouped: ShardsByGroup, outs: Dict[int, float],
                          pools: List[int], price: float, strict: bool) -> Optional[Candidate]:
        best: Optional[Candidate] = None
        lists: Dict[int, List[int]] = {}
        for group in pools:
            if grouped[group][1]:
                best = self._home(source, group, grouped[group][1], price, outs[group], best)
            lists.setdefault(self._targets.list_id(group, source), []).append(group)
        for sharing in lists.values():
            best = self._among(source, grouped, outs, sharing, price, strict, best)
        return best

    def _among(self, source: int, grouped: ShardsByGroup, outs: Dict[int, float], pools: List[int],
               price: float, strict: bool, best: Optional[Candidate]) -> Optional[Candidate]:
        """Moves of pools that share a list. What no pool could gain at a target ends the search
        there: at most sources of a large cluster, at once."""
        costs = self._costs
        tried = 0
        least = min(shards[0][0] for group in pools for shards in grouped[group] if shards)
        largest = max(shards[-1][0] for group in pools for shards in grouped[group] if shards)
        paid = 0.0 if any(grouped[group][1] for group in pools) else price
        for _, target in self._targets.candidates(pools[0], source):
            if target == source:
                continue
            evens = self._most(source, target, least, largest, paid)
            if strict and evens <= 0.0:
                break
            better = False
            for group in pools:
                floor = best.gain if best else NOISE
                if evens + outs[group] <= floor:
                    break
                counts = outs[group] - costs.count_loss_on_enter(group, target)
                if evens + counts <= floor or not self._open(group, source, target):
                    continue
                best, gains = self._to(source, target, grouped[group], price, counts, strict, best)
                better = better or gains
            tried += 1
            if tried >= self._targets.patience and not better or tried >= _ENOUGH and best:
                break
        return best

    def _most(self, source: int, target: int, least: int, largest: int, price: float) -> float:
        """What no shard between these sizes can gain more than, counts aside."""
        placement, costs = self._placement, self._costs
        middle = (least + largest) // 2
        gain = costs.utilization_gain(source, target, middle) - price * middle
        below = costs.weights.underfull_weight
        x = (placement.used_bytes[source] - middle) / placement.size_bytes[source] - costs.target_utilization[source]
        y = (placement.used_bytes[target] + middle) / placement.size_bytes[target] - costs.target_utilization[target]
        slope = 2.0 * (x if x > 0.0 else below * x) - 2.0 * (y if y > 0.0 else below * y) - price
        # concave in the bytes: the tangent is above it
        return gain + abs(slope) * (largest - least + 1) / 2.0

    # -- one target --------------------------------------------------------------------------------

    def _to(self, source: int, target: int, lists: Tuple[Shards, Shards], price: float,
            counts: float, strict: bool,
            best: Optional[Candidate]) -> Tuple[Optional[Candidate], bool]:
        """The best shard of the shelf for one target if it beats the best so far, and whether any
        shard, legal or not, would gain."""
        placement, costs = self._placement, self._costs
        used_b = placement.used_bytes[target]
        ends = _Ends(placement.used_bytes[source], placement.size_bytes[source], costs.target_utilization[source], used_b,
                     placement.size_bytes[target], costs.target_utilization[target],
                     costs.utilization_cost(source, placement.used_bytes[source]) + costs.utilization_cost(target, used_b) + counts)
        better = False
        examined = 1
        for shards, cost, fixed in ((lists[0], price, costs.move_cost[source]),
                                    (lists[1], 0.0, 0.0)):
            for gain, size, pg in _by_gain(shards, ends, costs.weights.underfull_weight, cost):
                gain -= fixed
                examined += 1
                if gain <= NOISE or (strict and gain <= counts):
                    break
                better = True
                if best and gain <= best.gain:
                    break
                if used_b + size <= placement.fill_limit_bytes[target] and placement.is_legal(pg, source, target):
                    best = Candidate(gain, gain - counts, pg, target)
                    break
        placement.candidates_examined += examined
        return best, better


def _by_gain(shards: Shards, ends: _Ends, below: float,
             price: float) -> Iterator[Tuple[float, int, int]]:
    """(gain, bytes, PG) of a sorted list of shards, the best first.

    The gain is concave in the bytes: the best is where the slope changes its sign, and the others
    follow to both sides. Written out, since it is most of what a plan costs, as measured.
    """
    used_a, size_a, level_a, used_b, size_b, level_b, base = ends
    low, high = 0, len(shards) if len(shards) > 1 else 0
    while low < high:
        middle = (low + high) // 2
        size = shards[middle][0]
        x = (used_a - size) / size_a - level_a
        y = (used_b + size) / size_b - level_b
        if 2.0 * (x if x > 0.0 else below * x) - 2.0 * (y if y > 0.0 else below * y) > price:
            low = middle + 1
        else:
            high = middle
    left, right, count = low - 1, low, len(shards)
    gains: List[Optional[float]] = [None, None]
    while left >= 0 or right < count:
        for side, index in ((0, left), (1, right)):
            if gains[side] is None and 0 <= index < count:
                size = shards[index][0]
                x = (used_a - size) / size_a - level_a
                y = (used_b + size) / size_b - level_b
                gains[side] = (base - size_a * x * x * (1.0 if x > 0.0 else below)
                               - size_b * y * y * (1.0 if y > 0.0 else below) - price * size)
        down, up = gains
        if up is not None and (down is None or up >= down):
            yield up, shards[right][0], shards[right][1]
            right, gains[1] = right + 1, None
        else:
            assert down is not None
            yield down, shards[left][0], shards[left][1]
            left, gains[0] = left - 1, None
