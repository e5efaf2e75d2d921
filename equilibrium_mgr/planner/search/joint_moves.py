"""Joint moves: all shards that a PG has in one bucket move to a bucket that the PG does not use.

If a rule gives each rack several shards, no shard can leave its rack alone. Only joint moves even
out the bytes of whole racks there. Without them in the descent a plan gained a tenth less on such a
cluster; without them in relief its fullest OSD stayed half a point higher.
"""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.shard_groups import JointDomain, ShardGroup
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
            gain = self._costs.gain(steps, price)
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
            joint = group.joint
            siblings = joint.siblings.get(joint.bucket_of[source], ())
            buckets = sorted([self._best_targets(index, joint, bucket) for bucket in siblings])
            for shards in lists:
                for _, pg in shards:
                    yield from self._candidates_of(pg, source, group, joint, buckets)

    def _candidates_of(self, pg: int, source: int, group: ShardGroup, joint: JointDomain,
                       buckets: List[_BucketTargets]) -> Iterator[Tuple[ShardMove, ...]]:
        """Yields the joint moves of one PG. `buckets`: the other buckets, the best first."""
        back = self.return_moves(pg, source, group)
        if back:
            yield back
        members = group.block.members(self._placement.up[pg])
        used = {joint.bucket_of[osd] for osd in members}
        moving = _shards_in_bucket(members, source, joint)
        free = [osds for _, bucket, osds in buckets
                if bucket not in used and len(osds) >= len(moving)]
        for osds in free[:_BUCKETS]:
            yield tuple([(pg, osd, target) for (_, osd), target in zip(moving, osds)])

    def return_moves(self, pg: int, source: int, group: ShardGroup) -> Tuple[ShardMove, ...]:
        """Returns the moves of the PG's shards in the OSD's bucket to their initial OSDs. Empty if
        one of the shards is not displaced, for replicated pools, and if no shards move together.
        """
        if group.joint is None or not group.pool.erasure:
            return ()
        block = group.block
        initial = block.members(self._placement.initial_up[pg])
        steps: List[ShardMove] = []
        up = block.members(self._placement.up[pg])
        for number, osd in _shards_in_bucket(up, source, group.joint):
            if osd == initial[number]:
                return ()
            steps.append((pg, osd, initial[number]))
        return tuple(steps)

    def _best_targets(self, group: int, joint: JointDomain, bucket: int) -> _BucketTargets:
        """Returns the best OSDs of a bucket, at most one of each failure domain in it."""
        chosen: Dict[int, int] = {}
        cost = 0.0
        for key, osd in self._targets.in_bucket(group, bucket, joint.bucket_of):
            domain = joint.subdomain_of[osd]
            if domain not in chosen:
                chosen[domain] = osd
                cost += key
                if len(chosen) == joint.max_shards:
                    break
        return cost, bucket, tuple(chosen.values())

    def fits(self, steps: Tuple[ShardMove, ...], limits: SearchConstraints) -> bool:
        """Returns True if all targets keep the limits."""
        placement = self._placement
        for pg, source, target in steps:
            size = placement.size_on(pg, source)
            group = placement.group_of(pg, source)
            if not limits.fits(target, size, group, -1):
                return False
        return True


def _shards_in_bucket(members: Sequence[int], source: int,
                      joint: JointDomain) -> List[Tuple[int, int]]:
    """Returns (position in the block, OSD) of the members in the source's bucket."""
    bucket_of = joint.bucket_of
    return [(number, osd) for number, osd in enumerate(members)
            if bucket_of[osd] == bucket_of[source]]
