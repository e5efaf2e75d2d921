"""OSD sets in indices, with the sizes that steer the search."""
from __future__ import annotations

from typing import Callable, FrozenSet

from ..bound.lower_bound import OsdSet, UtilizationBounds
from ..objective import Weights
from .placement_state import PlacementState

#: Of an OSD set's bytes: if single moves move less, and the fullest OSD is this near to the bound
#: (in typical shards, and at most as a ratio), the set is at rest.
_AT_REST = 0.002
_NEAR = 0.6
_NEAR_MOST = 0.015

#: A fullest OSD that is nearer to the bound than this is near, however small the shards are.
_FAR_LEAST = 0.004


class OsdSetState:
    """One set on a board; what it was like at the start is kept."""

    def __init__(self, placement: PlacementState, osd_set: OsdSet, bounds: UtilizationBounds) -> None:
        self.osds = tuple(placement.index_of[osd] for osd in osd_set.osds)
        self.members = frozenset(self.osds)
        self._initial_used_bytes = [placement.used_bytes[i] for i in self.osds]
        self.needs_tightening = True
        self.bound = osd_set.bound
        level = {i: bounds.utilizations[placement.osd_ids[i]] for i in self.osds}
        self.size_bytes = sum(placement.size_bytes[i] for i in self.osds)
        #: bytes that grow where the fullest OSDs get room: pools that lean on them grow everywhere
        self.usable_bytes = sum(level[i] * placement.size_bytes[i] for i in self.osds) / max(
            1e-9, osd_set.bound)
        #: bytes above the reachable levels: no plan that evens out moves less
        self.excess_bytes = sum(max(0.0, placement.used_bytes[i] - level[i] * placement.size_bytes[i]) for i in self.osds)
        self.typical_shard_bytes = _typical_shard(placement, self.members)
        sizes = sorted(placement.size_bytes[i] for i in self.osds)
        self.typical_shard = self.typical_shard_bytes / sizes[len(sizes) // 2]  # of an OSD, a ratio

    def update_needs_tightening(self, placement: PlacementState) -> None:
        """A set that is near its bound, and that single moves hardly change, is at rest: a plan
        made after a finished one finds nothing to do."""
        moved = sum(max(0, placement.used_bytes[i] - used) for i, used in zip(self.osds, self._initial_used_bytes))
        self.needs_tightening = not self.is_near_bound(placement) or moved > _AT_REST * sum(self._initial_used_bytes)

    def is_near_bound(self, placement: PlacementState) -> bool:
        """Whether whole shards may well be all that keeps the fullest OSD off the bound."""
        return self.max_utilization(placement) <= self.bound + min(_NEAR * self.typical_shard, _NEAR_MOST)

    def max_utilization(self, placement: PlacementState) -> float:
        return max(placement.used_bytes[i] / placement.size_bytes[i] for i in self.osds)

    def far_threshold(self, weights: Weights) -> float:
        """The utilization above which the fullest OSD is far from the bound."""
        return self.bound + max(_FAR_LEAST, weights.far_shards * self.typical_shard)

    def value_of_lowering(self, weights: Weights) -> Callable[[float, float], float]:
        """Bytes moved that it is worth to bring the fullest OSD from one utilization to another."""
        far = self.far_threshold(weights)

        def worth(high: float, low: float) -> float:
            near = min(high, far) - min(low, far)
            return self.usable_bytes * (
                weights.usable_value * near + weights.far_usable_value * (high - low - near))
        return worth


def _typical_shard(placement: PlacementState, known: FrozenSet[int]) -> float:
    """Half of the bytes on these OSDs are in pools whose mean shard is at most this large."""
    groups = sorted((group.mean_shard_bytes, group.total_bytes) for group in placement.groups
                    if group.shard_count and group.members & known)
    half, passed = sum(total for _, total in groups) / 2.0, 0
    for mean, total in groups:
        passed += total
        if passed >= half:
            return mean
    return 0.0
