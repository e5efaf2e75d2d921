"""Joint moves: all shards that a PG has in one bucket move to a bucket that the PG does not use.

If a rule gives each rack several shards, no shard can leave its rack alone. Only joint moves even
out the bytes of whole racks there. Without them in the descent a plan gained a tenth less on such a
cluster; without them in relief its fullest OSD stayed half a point higher.
"""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.shard_groups import ShardGroup
from ..state.target_index import ShardIndex, TargetIndex

#: Buckets that are examined for a PG, the best first.
_BUCKETS = 3

ANY_GROUP = -1


class JointMove(NamedTuple):
    """A move of several shards of one PG that lowers the objective by `gain`."""

    gain: float                   # bytes × utilization
    steps: Tuple[ShardMove, ...]


#: (cost, bucket, the best targets in it)
_BucketTargets = Tuple[float, int, Tuple[int, ...]]


class JointMoves:
    """Finds joint moves."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._has_any = any(group.joint is not None for group in costs.placement.groups)

    def best(self, source: int, price: float, limits: SearchConstraints,
             least: float) -> Optional[JointMove]:
        """Returns the best joint move off an OSD within the limits, or None.

        `price`: of a displaced byte (utilization). `least`: the gain that a move has to exceed.
        """
        placement = self._placement
        best: Optional[JointMove] = None
        for steps in self.candidates(source):
            placement.candidates_examined += 1
            gain = self.gain(steps, price)
            if gain <= least:
                continue
            if self.fits(steps, limits) and placement.is_legal_joint(steps):
                best = JointMove(gain, steps)
                least = gain
        return best

    def candidates(self, source: int, only: int = ANY_GROUP) -> Iterator[Tuple[ShardMove, ...]]:
        """Yields joint moves off the OSD: back to the initial OSDs, and to the best OSDs of other
        buckets. The caller checks that they are legal. `only`: the group whose shards move."""
        if not self._has_any:
            return
        for index, lists in self._shard_index.by_group(source).items():
            group = self._placement.groups[index]
            if group.joint is None or only not in (ANY_GROUP, index):
                continue
            siblings = group.joint.siblings.get(group.joint.bucket_of[source], ())
            buckets = sorted([self._best_targets(group, bucket) for bucket in siblings])
            for shards in lists:
                for _, pg in shards:
                    yield from self._candidates_of(pg, source, group, buckets)

    def _candidates_of(self, pg: int, source: int, group: ShardGroup,
                       buckets: List[_BucketTargets]) -> Iterator[Tuple[ShardMove, ...]]:
        """Yields the joint moves of one PG. `buckets`: the other buckets, the best first."""
        back = self.return_moves(pg, source, group)
        if back:
            yield back
        assert group.joint is not None
        bucket_of = group.joint.bucket_of
        used = {bucket_of[osd] for osd in self._placement.up[pg][_span(group)]}
        moving = self._shards_in_bucket(pg, source, group)
        tried = 0
        for _, bucket, osds in buckets:
            if bucket in used or len(osds) < len(moving):
                continue
            yield tuple([(pg, osd, target) for (_, osd), target in zip(moving, osds)])
            tried += 1
            if tried == _BUCKETS:
                break

    def return_moves(self, pg: int, source: int, group: ShardGroup) -> Tuple[ShardMove, ...]:
        """Returns the moves of the PG's shards in the OSD's bucket to their initial OSDs. Empty if
        one of the shards is not displaced, for replicated pools, and if no shards move together.
        """
        if group.joint is None or not group.pool.erasure:
            return ()
        initial = self._placement.initial_up[pg][_span(group)]
        steps: List[ShardMove] = []
        for number, osd in self._shards_in_bucket(pg, source, group):
            if osd == initial[number]:
                return ()
            steps.append((pg, osd, initial[number]))
        return tuple(steps)

    def _shards_in_bucket(self, pg: int, source: int, group: ShardGroup) -> List[Tuple[int, int]]:
        """Returns (position in the block, OSD) of the PG's shards in the OSD's bucket."""
        assert group.joint is not None
        bucket_of = group.joint.bucket_of
        return [(number, osd) for number, osd in enumerate(self._placement.up[pg][_span(group)])
                if bucket_of[osd] == bucket_of[source]]

    def _best_targets(self, group: ShardGroup, bucket: int) -> _BucketTargets:
        """Returns the best OSDs of a bucket, at most one of each failure domain in it."""
        joint = group.joint
        assert joint is not None
        chosen: Dict[int, int] = {}
        cost = 0.0
        for key, osd in self._targets.in_bucket(group.index, bucket):
            if joint.subdomain_of[osd] not in chosen:
                chosen[joint.subdomain_of[osd]] = osd
                cost += key
                if len(chosen) == joint.max_shards:
                    break
        return cost, bucket, tuple(chosen.values())

    def gain(self, steps: Tuple[ShardMove, ...], price: float) -> float:
        """Returns by how much the steps lower the objective."""
        placement = self._placement
        costs = self._costs
        gain = 0.0
        for pg, source, target in steps:
            size = placement.size_on(pg, source)
            initial = placement.initial_up[pg]
            group = placement.group_of(pg, source)
            left = source in initial
            returned = target in initial
            of_step = costs.utilization_gain(source, target, size)
            of_step += costs.count_gain_on_leave(group, source)
            of_step -= costs.count_loss_on_enter(group, target)
            of_step -= (left - returned) * price * size
            of_step -= left * costs.move_cost[source]
            of_step += returned * costs.move_cost[target]
            gain += of_step
        return gain

    def fits(self, steps: Tuple[ShardMove, ...], limits: SearchConstraints) -> bool:
        """Returns True if all targets keep the limits."""
        placement = self._placement
        for pg, source, target in steps:
            size = placement.size_on(pg, source)
            group = placement.group_of(pg, source)
            if not limits.fits(target, size, group, -1):
                return False
        return True


def _span(group: ShardGroup) -> slice:
    """Returns the positions of the group's block in an up set."""
    return slice(group.block.start, group.block.start + group.block.positions)
