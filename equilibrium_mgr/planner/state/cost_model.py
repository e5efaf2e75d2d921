"""The objective of a placement: the change of an OSD's terms by one shard, in constant time.

Also the apportionment of a pool's shards to OSDs, so that no OSD limits the pool's free space
early.
"""
from __future__ import annotations

import math
from math import inf
from typing import Callable, Dict, List, Sequence, Tuple

from ...runtime.time_slice import give_way
from ..objective import (
    COUNT_SLACK, FAR_MOVE_SHARDS, MOVE_COST, Weights, holds_data, pool_weight)
from .placement_state import PlacementState, ShardMove
from .shard_groups import ShardGroup


_PRECISION = 1e-4   # of the result, a ratio
_ROUNDING = 1e-9


def pressures(placement: PlacementState, group: ShardGroup,
              free: Sequence[float]) -> Tuple[float, float]:
    """Returns (least, even): shards of the group per free byte.

    `free`: bytes per OSD index, 0 for an OSD that can take none. Least is the lowest M so that M
    shards per free byte, rounded down, place all of them. No OSD has to hold more than M × its free
    bytes. This is D'Hondt's method of apportioning seats, which maximizes the smallest free space
    per shard. Even is the highest pressure if each OSD has its part of the shards by size, rounded
    up: about the result of balancing only PG counts. Even ignores failure domains. Both are 0 if
    the group has no shards, or no OSD can take any.
    """
    osds = [i for i in group.osds if placement.is_usable[i] and free[i] > 0.0]
    count = group.shard_count
    if not osds or not count:
        return 0.0, 0.0
    total = sum([placement.capacity_bytes[i] for i in osds])
    even = 0.0
    for i in osds:
        shards = count * placement.capacity_bytes[i] / total
        even = max(even, math.ceil(shards - _ROUNDING) / free[i])
    give_way()
    pgs = count // max(1, group.block.positions)
    levels = _domain_levels(placement, group, osds, pgs)
    room = [free[i] for i in osds]

    def places_all(pressure: float) -> bool:
        """Returns True if all shards have a place with at most so many per free byte."""
        give_way()
        sums = [min(pgs, int(pressure * bytes_free)) for bytes_free in room]
        for parent, buckets, most in levels:
            above = [0] * buckets
            for index, value in zip(parent, sums):
                above[index] += value
            sums = [min(most, value) for value in above]
        return sum(sums) >= count

    low = high = count / sum(room)
    most = 4.0 * count / min(room)
    while high < most and not places_all(high):
        low = high
        high = high * 1.5
    while high - low > _PRECISION * high:
        middle = (low + high) / 2.0
        if places_all(middle):
            high = middle
        else:
            low = middle
    return high, even


def _domain_levels(placement: PlacementState, group: ShardGroup, osds: List[int],
                   pgs: int) -> List[Tuple[List[int], int, int]]:
    """Returns per domain, innermost first, (bucket per child, buckets, most shards per bucket)."""
    levels: List[Tuple[List[int], int, int]] = []
    children = [placement.osd_ids[i] for i in osds]   # one OSD represents each child
    for domain in reversed(group.block.domains):
        number: Dict[int, int] = {}
        first: List[int] = []
        parent: List[int] = []
        for osd in children:
            bucket = domain.bucket_of[osd]
            if bucket not in number:
                number[bucket] = len(number)
                first.append(osd)
            parent.append(number[bucket])
        levels.append((parent, len(number), domain.shards_per_bucket * pgs))
        children = first
    return levels


#: Gains are differences of terms of up to 1e12, so a smaller gain is a rounding error. The search
#: would move empty shards for it without end (bytes × utilization).
NOISE = 1.0

#: Shards of at most this ratio of their PG's mean shard hold no data of their pool.
_NO_DATA = 0.05


class CostModel:
    """Costs in bytes × utilization, as in planner/objective.py. All sequences are by OSD index.

    `bound_utilization`: the lowest utilization that the fullest OSD of the set can have. `free`:
    the free bytes of the OSD then. `typical`: the bytes of a typical shard of its set.
    """

    def __init__(self, placement: PlacementState, weights: Weights,
                 bound_utilization: Sequence[float], free: Sequence[float],
                 typical: Sequence[float]) -> None:
        self.placement = placement
        self.weights = weights
        self.bound_utilization = bound_utilization
        self.free = free
        #: the cost of a shard that leaves its initial OSD, by this OSD
        self.move_cost: List[float] = [MOVE_COST * t for t in typical]
        #: group → weight of its pool, 0 to 1
        self.pool_weights = pool_weights(placement)
        #: group → the lowest pressure that places all of its shards (shards per free byte)
        self.min_pressure: List[float] = []
        #: group → the pressure above which its pool is far from its possible free space. Infinite
        #: if no pool is far, or nothing can be placed; 0 if the weight of the pool is 0
        self.far_pressure: List[float] = []
        shards = max(1, sum(placement.shard_counts))
        budget = max(weights.least_far_move_budget, FAR_MOVE_SHARDS / shards)
        #: bytes left for moves that only lower the counts of pools far from their free space
        self.far_bytes_left = sum(placement.used_bytes) * min(weights.far_move_budget, budget)
        known: Dict[Tuple[int, int], Tuple[float, float]] = {}   # pools of one shape share it
        for group in placement.groups:
            least = far = 0.0
            if self.pool_weights[group.index]:
                shape = id(group.block), group.shard_count
                if shape not in known:
                    known[shape] = pressures(placement, group, free)
                least, even = known[shape]
                far = inf
                if weights.near_space and least:
                    far = max(least, even) / weights.near_space
            self.min_pressure.append(least)
            self.far_pressure.append(far)
        #: group → its cap per free byte of an OSD. A cap is at least 1 shard, otherwise the largest
        #: OSDs would attract all small pools. There is no list of caps: one for each pool would
        #: take more memory than all shards
        self.cap_pressure = [least * (1.0 + COUNT_SLACK) for least in self.min_pressure]

    def is_far(self, group: int, osd: int) -> bool:
        """Returns True if the OSD's shards of a group keep their pool far from the free space that
        it can have.

        Returns False once no bytes are left for moves that improve this.
        """
        count = self.placement.groups[group].counts[osd]
        if count < 2 or self.far_bytes_left <= 0.0:
            return False
        if not holds_data(self.pool_weights[group]):
            return False
        free = self.free[osd]
        return not free or count > self.far_pressure[group] * free

    def count_gain_on_leave(self, group: int, osd: int) -> float:
        """Returns by how much the count term falls when a shard leaves."""
        return self.last_shard_cost(group, osd, self.placement.groups[group].counts[osd])

    def count_loss_on_enter(self, group: int, osd: int) -> float:
        """Returns by how much the count term rises when a shard comes."""
        return self.last_shard_cost(group, osd, self.placement.groups[group].counts[osd] + 1)

    def displacement_cost(self, pg: int, source: int, target: int, size: int,
                          price: float) -> float:
        """Returns the price of displacing a shard; negative if it returns to its initial OSD."""
        initial = self.placement.initial_up[pg]
        left = source in initial
        returned = target in initial
        return ((left - returned) * price * size + left * self.move_cost[source]
                - returned * self.move_cost[target])

    def gain(self, steps: Sequence[ShardMove], price: float) -> float:
        """Returns by how much moves of one PG's shards lower the objective."""
        placement = self.placement
        gain = 0.0
        for pg, source, target in steps:
            size = placement.size_on(pg, source)
            group = placement.group_of(pg, source)
            of_step = self.utilization_gain(source, target, size)
            of_step += self.count_gain_on_leave(group, source)
            of_step -= self.count_loss_on_enter(group, target)
            gain += of_step - self.displacement_cost(pg, source, target, size, price)
        return gain

    def last_shard_cost(self, group: int, osd: int, count: int) -> float:
        """Returns the part of the count term that the last of `count` shards adds."""
        if count < 2:
            return 0.0   # a cap is never below 1
        cap = self.cap_pressure[group] * self.free[osd]
        weight = self.pool_weights[group]
        if count <= cap or not weight:
            return 0.0
        if cap < 1.0:
            cap = 1.0
        factor = self.weights.count_weight * weight * self.placement.size_bytes[osd]
        over = count / cap - 1.0
        before = max(0.0, (count - 1) / cap - 1.0)
        return factor * over * over - factor * before * before

    def entry_cost(self, group: int, size: float) -> Callable[[int], float]:
        """Returns a function of an OSD: the rise of both its terms when `size` bytes come.

        The function makes no calls: the keys of sorted lists took an eighth of a large plan.
        """
        used_bytes = self.placement.used_bytes
        sizes = self.placement.size_bytes
        wanted = self.bound_utilization
        free = self.free
        counts = self.placement.groups[group].counts
        weight = self.weights.count_weight * self.pool_weights[group]
        cap_pressure = self.cap_pressure[group]
        below = self.weights.underfull_weight

        def cost(osd: int) -> float:
            used = used_bytes[osd]
            capacity = sizes[osd]
            now = used / capacity - wanted[osd]
            then = (used + size) / capacity - wanted[osd]
            rise = (capacity * then * then * (1.0 if then > 0.0 else below)
                    - capacity * now * now * (1.0 if now > 0.0 else below))
            count = counts[osd] + 1
            cap = cap_pressure * free[osd]
            if cap < 1.0:
                cap = 1.0
            if not weight or count <= cap:
                return rise
            over = count / cap - 1.0
            before = (count - 1) / cap - 1.0
            more = weight * capacity * over * over
            if before > 0.0:
                more -= weight * capacity * before * before
            return rise + more
        return cost

    def utilization_gain(self, source: int, target: int, size: int) -> float:
        """Returns by how much the utilization term falls when `size` bytes move.

        This is `evenness_cost` four times, without its calls: they took a tenth of a plan's time.
        """
        placement = self.placement
        wanted = self.bound_utilization
        below = self.weights.underfull_weight
        size_a = placement.size_bytes[source]
        size_b = placement.size_bytes[target]
        used_a = placement.used_bytes[source]
        used_b = placement.used_bytes[target]
        a = used_a / size_a - wanted[source]
        b = used_b / size_b - wanted[target]
        x = (used_a - size) / size_a - wanted[source]
        y = (used_b + size) / size_b - wanted[target]
        gain_a = (size_a * a * a * (1.0 if a > 0.0 else below)
                  - size_a * x * x * (1.0 if x > 0.0 else below))
        before_b = size_b * b * b * (1.0 if b > 0.0 else below)
        return gain_a + before_b - size_b * y * y * (1.0 if y > 0.0 else below)


def pool_weights(placement: PlacementState) -> List[float]:
    """Returns the weight of each group's pool; 0 for groups whose shards hold no data."""
    totals = placement.bytes_by_pool()
    everything = max(1, sum(totals.values()))
    weights: List[float] = []
    for group in placement.groups:
        weight = 0.0
        if group.size_ratio > _NO_DATA:
            weight = pool_weight(totals[group.pool.id] / everything)
        weights.append(weight)
    return weights


def evenness_cost(used: float, size: int, bound_utilization: float,
                  underfull_weight: float) -> float:
    """Returns the utilization term of one OSD (planner/objective.py)."""
    over = used / size - bound_utilization
    return size * over * over * (1.0 if over > 0.0 else underfull_weight)
