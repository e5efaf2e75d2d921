"""The best single move off an OSD: home again, or to an OSD that gains the objective most."""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..state.cost_model import NOISE, CostModel
from ..state.shard_index import Grouped, Shards, ShardIndex
from ..state.target_index import Entry, TargetIndex

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
        grouped = self._shard_index.of(source)
        outs = {group: self._costs.leave_count(group, source) for group in grouped}
        pools = sorted(grouped, key=lambda g: (-outs[g], g))
        if self._targets.own:
            return self._pool_by_pool(source, grouped, outs, pools, price, strict)
        return self._target_by_target(source, grouped, outs, pools, price, strict)

    def _home(self, source: int, group: int, displaced: Shards, price: float, out: float,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Returns of displaced shards, which refund their bytes."""
        placement, costs = self._placement, self._costs
        for size, pg in displaced:
            for home in placement.homes(pg, source, group):
                if placement.used[home] + size > placement.most[home]:
                    continue
                evens = costs.shift(source, home, size) + price * size + costs.per_move[source]
                gain = evens + out - costs.enter_count(group, home)
                if gain > (best.gain if best else NOISE) and placement.legal(pg, source, home):
                    best = Candidate(gain, 1.0, pg, home)
        return best

    # -- where every pool has a list of targets of its own, its counts minded -------------------

    def _pool_by_pool(self, source: int, grouped: Grouped, outs: Dict[int, float],
                      pools: List[int], price: float, strict: bool) -> Optional[Candidate]:
        best: Optional[Candidate] = None
        tried = 0
        for group in pools:
            plan_store, out = grouped[group], outs[group]
            best = self._home(source, group, plan_store[1], price, out, best)
            entries = self._targets.of(group, source)
            if entries and not self._hopeless(source, group, plan_store, price, out, entries):
                best = self._away(source, group, plan_store, price, out, entries, strict, best)
                tried += 1
                if tried >= _POOLS and best:
                    break
        return best

    def _away(self, source: int, group: int, plan_store: Tuple[Shards, Shards], price: float,
              out: float, entries: List[Entry], strict: bool,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Moves to other OSDs, the best first, until some in a row are no better."""
        tried = 0
        for _, target in entries:
            if target == source or not self._open(group, source, target):
                continue
            counts = out - self._costs.enter_count(group, target)
            best, better = self._to(source, target, plan_store, price, counts, strict, best)
            tried += 1
            if tried >= self._targets.patience and not better or tried >= _ENOUGH and best:
                break
        return best

    def _open(self, group: int, source: int, target: int) -> bool:
        """Whether some shard of the group may well go there."""
        members = self._placement.groups[group]
        if not members.bits or members.bucket is None:
            return True
        return bool(members.open.get(members.bucket[source], 0)
                    & members.bits[members.bucket[target]])

    def _hopeless(self, source: int, group: int, plan_store: Tuple[Shards, Shards], price: float,
                  out: float, entries: List[Entry]) -> bool:
        """Whether not even the best target's price per byte can be met: most often, at once."""
        placement, costs = self._placement, self._costs
        first = entries[0][1]
        if first == source and len(entries) > 1:
            first = entries[1][1]
        over = placement.used[source] / placement.size[source] - costs.level[source]
        rate = 2.0 * over * (1.0 if over > 0.0 else costs.weights.below)
        least = min(shards[0][0] for shards in plan_store if shards)
        mean = max(1.0, placement.groups[group].mean_bytes)
        # gains are concave in bytes: the first byte's gain bounds all others'
        return (rate + out / max(1.0, least) - (0.0 if plan_store[1] else price) + mean
                / placement.size[first]) * mean <= costs.enter(group, first, mean)

    # -- where pools share a list of targets, the emptiest first ---------------------------------

    def _target_by_target(self, source: int, grouped: Grouped, outs: Dict[int, float],
                          pools: List[int], price: float, strict: bool) -> Optional[Candidate]:
        best: Optional[Candidate] = None
        lists: Dict[int, List[int]] = {}
        for group in pools:
            if grouped[group][1]:
                best = self._home(source, group, grouped[group][1], price, outs[group], best)
            lists.setdefault(self._targets.list_of(group, source), []).append(group)
        for sharing in lists.values():
            best = self._among(source, grouped, outs, sharing, price, strict, best)
        return best

    def _among(self, source: int, grouped: Grouped, outs: Dict[int, float], pools: List[int],
               price: float, strict: bool, best: Optional[Candidate]) -> Optional[Candidate]:
        """Moves of pools that share a list. What no pool could gain at a target ends the search
        there: at most sources of a large cluster, at once."""
        costs = self._costs
        tried = 0
        least = min(shards[0][0] for group in pools for shards in grouped[group] if shards)
        largest = max(shards[-1][0] for group in pools for shards in grouped[group] if shards)
        paid = 0.0 if any(grouped[group][1] for group in pools) else price
        for _, target in self._targets.of(pools[0], source):
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
                counts = outs[group] - costs.enter_count(group, target)
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
        gain = costs.shift(source, target, middle) - price * middle
        below = costs.weights.below
        x = (placement.used[source] - middle) / placement.size[source] - costs.level[source]
        y = (placement.used[target] + middle) / placement.size[target] - costs.level[target]
        slope = 2.0 * (x if x > 0.0 else below * x) - 2.0 * (y if y > 0.0 else below * y) - price
        # concave in the bytes: the tangent is above it
        return gain + abs(slope) * (largest - least + 1) / 2.0

    # -- one target --------------------------------------------------------------------------------

    def _to(self, source: int, target: int, plan_store: Tuple[Shards, Shards], price: float,
            counts: float, strict: bool,
            best: Optional[Candidate]) -> Tuple[Optional[Candidate], bool]:
        """The best shard of the shelf for one target if it beats the best so far, and whether any
        shard, legal or not, would gain."""
        placement, costs = self._placement, self._costs
        used_b = placement.used[target]
        ends = _Ends(placement.used[source], placement.size[source], costs.level[source], used_b,
                     placement.size[target], costs.level[target],
                     costs.fill(source, placement.used[source]) + costs.fill(target, used_b) + counts)
        better = False
        examined = 1
        for shards, cost, fixed in ((plan_store[0], price, costs.per_move[source]),
                                    (plan_store[1], 0.0, 0.0)):
            for gain, size, pg in _by_gain(shards, ends, costs.weights.below, cost):
                gain -= fixed
                examined += 1
                if gain <= NOISE or (strict and gain <= counts):
                    break
                better = True
                if best and gain <= best.gain:
                    break
                if used_b + size <= placement.most[target] and placement.legal(pg, source, target):
                    best = Candidate(gain, gain - counts, pg, target)
                    break
        placement.examined += examined
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
