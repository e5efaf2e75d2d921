"""The fewest moves that lead from one placement to another within limits."""
from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tests.optimum.count_sets import Vector, bits_of, up_to
from tests.optimum.problem import Node, Part
from tests.optimum.reachable import Counts, Limits, Reachable

#: Sets of vectors by how many counts differ from the placement's.
_Layers = List[int]

#: From one OSD to another; and of which PG.
_Pair = Tuple[int, int]
_PgMove = Tuple[str, int, int]

#: Moves of one class beyond which nobody looks for the PGs that could make them.
_MOST_OF_A_CLASS = 6


class ShardMove(NamedTuple):
    """One shard of a PG from one OSD to another."""

    pgid: str
    shard_bytes: int
    source: int
    target: int


class Nearest:
    """Searches placements within limits by how many counts differ from a given placement's."""

    def __init__(self, part: Part, ups: Mapping[str, Sequence[int]], most_moves: int) -> None:
        self.part = part
        self.ups = {pgid: frozenset(ups[pgid]) for one in part.classes for pgid in one.pgs}
        self.own: Counts = {osd: tuple(
            sum(osd in self.ups[pgid] for pgid in one.pgs) for one in part.classes)
            for osd in part.size_bytes}
        self._reachable = Reachable(part)
        self._space = self._reachable.space
        self._depth = 2 * most_moves
        self._limits = Limits(float("inf"), ())
        self._known: Dict[int, _Layers] = {}

    def counts(self, limits: Limits) -> Optional[Counts]:
        """Counts within the limits that the fewest moves lead to; None where more are needed than
        `most_moves`."""
        self._known.clear()
        self._limits = limits
        target = self._reachable.target
        for cost, one in enumerate(self._of_node(self.part.root)):
            if self._space.holds(one, target):
                found: Counts = {}
                self._divide(self.part.root, target, cost, found)
                return found
        return None

    def move_count(self, counts: Counts) -> int:
        return sum(abs(a - b) for osd, vector in counts.items()
                   for a, b in zip(vector, self.own[osd])) // 2

    def moves(self, counts: Counts, allowed: Mapping[int, FrozenSet[FrozenSet[int]]]
              ) -> Optional[List[ShardMove]]:
        """Moves of PGs that lead to the counts, or None where none are found; `allowed` are up sets
        by pool."""
        found: List[ShardMove] = []
        for number, one in enumerate(self.part.classes):
            change = Counter({osd: counts[osd][number] - self.own[osd][number] for osd in counts})
            sources, targets = sorted((-change).elements()), sorted((+change).elements())
            if len(sources) > _MOST_OF_A_CLASS:
                return None
            finder = _PgFinder(one.pgs, one.osds, self.ups, allowed[one.pool])
            chosen = next((made for made in (
                finder.moves(list(zip(sources, order)))
                for order in sorted(set(permutations(targets)))) if made is not None), None)
            if chosen is None:
                return None
            found += [ShardMove(pgid, one.shard_bytes, a, b) for pgid, a, b in chosen]
        return found

    # -- layers of a node ----------------------------------------------------------------------

    def _of_node(self, node: Node) -> _Layers:
        key = id(node)
        if key not in self._known:
            self._known[key] = self._made(node) if node.children else self._of_osd(node)
        return self._known[key]

    def _of_osd(self, node: Node) -> _Layers:
        osd, = node.osds
        layers = [0] * (self._depth + 1)
        for bit in bits_of(self._reachable.measures[osd].within(self._limits)):
            cost = sum(abs(a - b) for a, b in zip(self._space.vector(bit), self.own[osd]))
            if cost <= self._depth:
                layers[cost] |= 1 << bit
        return layers

    def _made(self, node: Node) -> _Layers:
        layers = [0] * (self._depth + 1)
        children = [self._of_node(child) for child in node.children]
        for users in self._users(node):
            for cost, one in enumerate(self._sums(self._limited(children, node, users))[-1]):
                layers[cost] |= self._in_users(node, one, users)
        cap = self._reachable.cap(node)
        return [one & cap for one in layers]

    def _users(self, node: Node) -> Iterator[Vector]:
        grouped = self._reachable.grouped(node)
        return up_to([len(one.pgs) if number in grouped else 0
                      for number, one in enumerate(self.part.classes)])

    def _limited(self, children: Sequence[_Layers], node: Node, users: Vector) -> List[_Layers]:
        grouped = self._reachable.grouped(node)
        most = self._space.at_most([users[number] if number in grouped else most
                                    for number, most in enumerate(self._space.most)])
        return [[one & most for one in layers] for layers in children]

    def _in_users(self, node: Node, counts: int, users: Vector) -> int:
        """Counts of shards as counts of PGs, for the classes that a node groups."""
        for number in self._reachable.grouped(node):
            shards = users[number] * self.part.classes[number].spread.group_size
            counts = (self._space.exactly(counts, number, shards)
                      >> (shards - users[number]) * self._space.strides[number])
        return counts

    def _sums(self, children: Sequence[_Layers]) -> List[_Layers]:
        """The layers of the sums of the first 0, 1, 2, ... children."""
        sums: List[_Layers] = [[1] + [0] * self._depth]
        everything = self._space.at_most(self._space.most)
        for layers in children:
            total = [0] * (self._depth + 1)
            for cost, one in enumerate(layers):
                for bit in bits_of(one):
                    for before in range(self._depth + 1 - cost):
                        total[cost + before] |= sums[-1][before] << bit & everything
            sums.append(total)
        return sums

    def _divide(self, node: Node, target: Vector, cost: int, found: Counts) -> None:
        """Divides the counts of a node among its OSDs."""
        if not node.children:
            osd, = node.osds
            found[osd] = target
            return
        grouped = self._reachable.grouped(node)
        children = self._limited([self._of_node(child) for child in node.children], node, target)
        target = tuple(n * one.spread.group_size if number in grouped else n
                       for number, (n, one) in enumerate(zip(target, self.part.classes)))
        sums = self._sums(children)
        for number in range(len(children) - 1, -1, -1):
            own_cost, own = next(
                (c, vector) for c in range(cost + 1)
                for vector in self._space.vectors(children[number][c])
                if all(a <= b for a, b in zip(vector, target)) and self._space.holds(
                    sums[number][cost - c], [b - a for a, b in zip(vector, target)]))
            self._divide(node.children[number], own, own_cost, found)
            target = tuple(b - a for a, b in zip(own, target))
            cost -= own_cost


class _PgFinder:
    """Finds PGs that can make the moves of one class: each by itself, two shards of one PG
    together, or one shard over a third OSD by two PGs."""

    def __init__(self, pgids: Sequence[str], osds: FrozenSet[int],
                 ups: Mapping[str, FrozenSet[int]], allowed: FrozenSet[FrozenSet[int]]) -> None:
        self._pgids = pgids
        self._osds = sorted(osds)
        self._ups = ups
        self._allowed = allowed

    def moves(self, pairs: Sequence[_Pair], taken: FrozenSet[str] = frozenset()
              ) -> Optional[List[_PgMove]]:
        """Moves for all pairs, each PG for one choice at most, or None."""
        if not pairs:
            return []
        for made, left in self._choices(pairs, taken):
            others = self.moves(left, taken | {pgid for pgid, _, _ in made})
            if others is not None:
                return made + others
        return None

    def _choices(self, pairs: Sequence[_Pair], taken: FrozenSet[str]
                 ) -> Iterator[Tuple[List[_PgMove], Sequence[_Pair]]]:
        """Moves for the first pair, and the pairs that are left then."""
        (a, b), others = pairs[0], pairs[1:]
        made = self._made({a: b}, taken)
        if made:
            yield made, others
        for number, (c, d) in enumerate(others):
            made = self._made({a: b, c: d}, taken) if c != a else None
            if made:
                yield made, [*others[:number], *others[number + 1:]]
        for middle in self._osds:
            first = self._made({a: middle}, taken) if middle not in (a, b) else None
            second = self._made({middle: b}, taken | {first[0][0]}) if first else None
            if first and second:
                yield first + second, others

    def _made(self, change: Mapping[int, int], taken: FrozenSet[str]) -> Optional[List[_PgMove]]:
        """The moves of one PG, of those not taken, from each source to its target."""
        sources, targets = frozenset(change), frozenset(change.values())
        for pgid in self._pgids:
            up = self._ups[pgid]
            if (pgid not in taken and sources <= up and not targets & up
                    and up - sources | targets in self._allowed):
                return [(pgid, a, b) for a, b in change.items()]
        return None
