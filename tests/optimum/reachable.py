"""Which counts of shards whole up sets can reach under limits: exact."""
from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Dict, FrozenSet, List, NamedTuple, Sequence, Tuple

from tests.optimum.count_sets import CountSpace, Vector, number_of, up_to
from tests.optimum.problem import Node, Part


class Limits(NamedTuple):
    """What a placement has to keep: a ratio of each OSD, and client bytes free of each pool."""

    max_utilization: float
    free_bytes: Tuple[float, ...]    # of each pool with data, as in Part.pools


class OsdMeasures:
    """What each count vector comes to on one OSD, and the vectors within a limit."""

    def __init__(self, part: Part, osd: int, space: CountSpace) -> None:
        size, base = part.size_bytes[osd], part.base_bytes[osd]
        own = [len(one.pgs) if osd in one.osds else 0 for one in part.classes]
        vectors = list(up_to(own))
        used = [base + sum(n * one.shard_bytes for n, one in zip(vector, part.classes))
                for vector in vectors]
        bits = [space.bit(vector) for vector in vectors]
        self._sorted = [sorted(zip([u / size for u in used], bits))]
        for pool in part.pools:
            shares = [sum(n * one.parts for n, one in zip(vector, part.classes)
                          if one.pool == pool) for vector in vectors]
            free = [max(0.0, size * part.full_ratio - u) * part.data_shards[pool]
                    for u in used]
            # negated: less is better, as for utilization; an OSD without the pool limits nothing
            self._sorted.append(sorted(
                (-f / share if share else float("-inf"), bit)
                for f, share, bit in zip(free, shares, bits)))
        self.values = [[value for value, _ in pairs] for pairs in self._sorted]
        self._known: Dict[Tuple[int, int], int] = {}

    def within(self, limits: Limits) -> int:
        """The vectors that keep all limits."""
        found = self._at_most(0, limits.max_utilization)
        for number, free in enumerate(limits.free_bytes, start=1):
            found &= self._at_most(number, -free)
        return found

    def _at_most(self, measure: int, limit: float) -> int:
        rank = bisect_right(self.values[measure], limit)
        key = measure, rank
        if key not in self._known:
            self._known[key] = number_of(bit for _, bit in self._sorted[measure][:rank])
        return self._known[key]


class Reachable:
    """The counts that a part can have within limits."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.target = tuple(len(one.pgs) * one.shards // one.spread.group_size
                            for one in part.classes)
        self.space = CountSpace([len(one.pgs) * one.shards for one in part.classes])
        alike: Dict[Tuple[object, ...], OsdMeasures] = {}
        self.measures: Dict[int, OsdMeasures] = {}
        for osd in sorted(part.size_bytes):
            key = (part.size_bytes[osd], part.base_bytes[osd],
                   tuple(osd in one.osds for one in part.classes))
            if key not in alike:
                alike[key] = OsdMeasures(part, osd, self.space)
            self.measures[osd] = alike[key]

    def is_possible(self, limits: Limits) -> bool:
        return self.space.holds(self._within(self.part.root, limits), self.target)

    # -- sets of a node ------------------------------------------------------------------------

    def _within(self, node: Node, limits: Limits) -> int:
        """The counts that a node can have; in PGs, not shards, for classes grouped by it."""
        if not node.children:
            osd, = node.osds
            return self.measures[osd].within(limits)
        sets = [self._within(child, limits) for child in node.children]
        grouped = self.grouped(node)
        if not grouped:
            return self._sums(sets)[-1] & self.cap(node)
        found = 0
        for users in up_to([len(one.pgs) if number in grouped else 0
                            for number, one in enumerate(self.part.classes)]):
            found |= self._of_users(sets, grouped, users)
        return self.space.closed(found & self.cap(node))

    def _of_users(self, sets: Sequence[int], grouped: FrozenSet[int], users: Vector) -> int:
        """The counts of a grouped node that as many PGs of the grouped classes use."""
        found = self._sums(self._of_children(sets, grouped, users))[-1]
        for number in grouped:
            shards = users[number] * self.part.classes[number].spread.group_size
            found = (self.space.exactly(found, number, shards)
                     >> (shards - users[number]) * self.space.strides[number])
        return found

    def _of_children(self, sets: Sequence[int], grouped: FrozenSet[int],
                     users: Vector) -> List[int]:
        most = self.space.at_most([users[number] if number in grouped else most
                                   for number, most in enumerate(self.space.most)])
        return [one & most for one in sets]

    def _sums(self, sets: Sequence[int]) -> List[int]:
        """The sums of the first 0, 1, 2, ... sets."""
        return list(accumulate(sets, self.space.sum, initial=1))

    def cap(self, node: Node) -> int:
        """No PG has two shards in a bucket that keeps them apart."""
        return self.space.at_most([
            len(one.pgs) if node.type_name in (one.spread.alone, one.spread.group) else most
            for one, most in zip(self.part.classes, self.space.most)])

    def grouped(self, node: Node) -> FrozenSet[int]:
        """The numbers of the classes whose rule gives the node's type several shards or none."""
        return frozenset(number for number, one in enumerate(self.part.classes)
                         if one.spread.group == node.type_name)
