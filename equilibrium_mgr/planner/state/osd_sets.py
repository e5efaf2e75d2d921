"""Sets of OSDs that share pools, by OSD index, with the sizes that steer the search."""
from __future__ import annotations

from typing import Callable, FrozenSet

from ..bound.lower_bound import OsdSet, UtilizationBounds
from ..objective import Weights
from .placement_state import PlacementState

#: A set is left as it is if single moves move less than this (a ratio of its bytes) and its fullest
#: OSD is this near to the bound (in typical shards, and at most as a ratio of an OSD).
_FEW_MOVED = 0.002
_NEAR_SHARDS = 0.6
_NEAR_MOST = 0.015

#: Tightening ends this near the bound at the nearest and at the farthest: ratios of an OSD.
_LEAST_GOAL = 0.0005
_MOST_GOAL = 0.0018

#: A fullest OSD this far above the bound is not far from it, however small shards are (a ratio).
_FAR_LEAST = 0.004


class OsdSetState:
    """One set of OSDs in a placement, with its bound and its initial bytes."""

    def __init__(self, placement: PlacementState, osd_set: OsdSet,
                 bounds: UtilizationBounds) -> None:
        self.osds = tuple(placement.index_of[osd] for osd in osd_set.osds)
        self.members = frozenset(self.osds)
        self._initial_used_bytes = [placement.used_bytes[i] for i in self.osds]
        self.needs_tightening = True
        self.bound = osd_set.bound
        lowest = {i: bounds.utilizations[placement.osd_ids[i]] for i in self.osds}
        self.size_bytes = sum(placement.size_bytes[i] for i in self.osds)
        #: bytes that pools can use per 1.0 that the highest utilization is lowered
        self.usable_bytes = sum(lowest[i] * placement.size_bytes[i] for i in self.osds) / max(
            1e-9, osd_set.bound)
        #: bytes above the lowest possible utilizations: a plan that evens out moves no less
        self.excess_bytes = sum(
            max(0.0, placement.used_bytes[i] - lowest[i] * placement.size_bytes[i])
            for i in self.osds)
        self.typical_shard_bytes = _typical_shard_bytes(placement, self.members)
        sizes = sorted(placement.size_bytes[i] for i in self.osds)
        #: as a ratio of an OSD of median size
        self.typical_shard = self.typical_shard_bytes / sizes[len(sizes) // 2]

    def update_needs_tightening(self, placement: PlacementState) -> None:
        """Called after the descent: a set that is near its bound and was hardly changed is left as
        it is, so that a plan made after a finished one finds nothing to do."""
        moved = sum(max(0, placement.used_bytes[i] - used)
                    for i, used in zip(self.osds, self._initial_used_bytes))
        self.needs_tightening = not self.is_near_bound(placement) or (
            moved > _FEW_MOVED * sum(self._initial_used_bytes))

    def is_near_bound(self, placement: PlacementState) -> bool:
        """True where the size of shards may be all that keeps the fullest OSD above the bound."""
        return self.max_utilization(placement) <= self.bound + min(
            _NEAR_SHARDS * self.typical_shard, _NEAR_MOST)

    def max_utilization(self, placement: PlacementState) -> float:
        """The utilization of the fullest OSD, a ratio of its size."""
        return max(placement.used_bytes[i] / placement.size_bytes[i] for i in self.osds)

    def far_threshold(self, weights: Weights) -> float:
        """F of the objective: the utilization above which the fullest OSD is far from the bound."""
        return self.bound + max(_FAR_LEAST, weights.far_shards * self.typical_shard)

    def goal_above_bound(self, weights: Weights) -> float:
        """How near to the bound the highest utilization is to come (a ratio of an OSD)."""
        return min(_MOST_GOAL, max(_LEAST_GOAL, weights.goal_shards * self.typical_shard))

    def value_of_lowering(self, weights: Weights) -> Callable[[float, float], float]:
        """A function of two utilizations: the value, in bytes moved, of lowering the fullest OSD
        from the first to the second; V(high) - V(low) of the objective."""
        far = self.far_threshold(weights)

        def value(high: float, low: float) -> float:
            near = min(high, far) - min(low, far)
            return self.usable_bytes * (
                weights.usable_value * near + weights.far_usable_value * (high - low - near))
        return value


def _typical_shard_bytes(placement: PlacementState, members: FrozenSet[int]) -> float:
    """Mean shard size, in bytes, up to which pools hold half of the bytes on these OSDs."""
    groups = sorted((group.mean_shard_bytes, group.total_bytes) for group in placement.groups
                    if group.shard_count and not group.members.isdisjoint(members))
    half, passed = sum(total for _, total in groups) / 2.0, 0
    for mean, total in groups:
        passed += total
        if passed >= half:
            return mean
    return 0.0
