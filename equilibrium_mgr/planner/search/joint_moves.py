"""Shards that only move together: all that a PG has in one bucket, to a bucket it does not use.

Where a rule gives each rack several shards, one shard alone can never leave its rack. What these
moves even out, single ones cannot: the bytes of whole racks.
"""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.shard_groups import ShardGroup
from ..state.shard_index import ShardIndex
from ..state.target_index import TargetIndex

#: Buckets that are looked at for a PG, the best first.
_BUCKETS = 3


class JointMove(NamedTuple):
    """A move of several shards of one PG that lowers the objective by `gain`."""

    gain: float
    steps: Tuple[ShardMove, ...]


class _Choice(NamedTuple):
    """The best targets in a bucket."""

    cost: float
    bucket: int
    osds: Tuple[int, ...]


class JointMoves:
    """Finds such moves. `price` is what a displaced byte costs."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index

    def best(self, source: int, price: float) -> Optional[JointMove]:
        """The best joint move that an OSD takes part in, or None where none gains."""
        placement = self._placement
        best: Optional[JointMove] = None
        for steps in self.candidates(source):
            placement.candidates_examined += 1
            gain = self.gain(steps, price)
            if gain > (best.gain if best else NOISE) and all(
                    placement.used_bytes[target] + placement.pg_bytes[pg] <= placement.fill_limit_bytes[target]
                    for pg, _, target in steps) and placement.is_legal_joint(steps):
                best = JointMove(gain, steps)
        return best

    def candidates(self, source: int) -> Iterator[Tuple[ShardMove, ...]]:
        """Joint moves of the OSD's shards to the best OSDs of each other bucket, and home; whether
        they are legal is for the caller to ask."""
        placement = self._placement
        for index, lists in self._shard_index.by_group(source).items():
            group = placement.groups[index]
            if group.joint is None:
                continue
            beside = group.joint.siblings.get(group.joint.bucket_of[source], ())
            best_in = sorted(self._best_in(group, bucket) for bucket in beside)
            for shards in lists:
                for _, pg in shards:
                    home = self.return_moves(pg, source, group)
                    if home:
                        yield home
                    yield from self._away(pg, source, group, best_in)

    def return_moves(self, pg: int, source: int, group: ShardGroup) -> Tuple[ShardMove, ...]:
        """All that the PG has in the OSD's bucket back to where it started; empty: it is there."""
        if group.joint is None or not group.pool.erasure:
            return ()
        going, span = self._shards_in_bucket(pg, source, group)
        start = self._placement.initial_up[pg][span]
        steps = tuple((pg, osd, start[number]) for number, osd in going)
        return steps if all(osd != first for _, osd, first in steps) else ()

    def _shards_in_bucket(self, pg: int, source: int, group: ShardGroup) -> Tuple[List[Tuple[int, int]], slice]:
        """(position in the block, OSD) of the shards that the OSD's bucket has of the PG."""
        assert group.joint is not None
        bucket = group.joint.bucket_of
        span = slice(group.block.start, group.block.start + group.block.positions)
        return [(number, osd) for number, osd in enumerate(self._placement.up[pg][span])
                if bucket[osd] == bucket[source]], span

    def _away(self, pg: int, source: int, group: ShardGroup,
              best_in: List[_Choice]) -> Iterator[Tuple[ShardMove, ...]]:
        assert group.joint is not None
        going, span = self._shards_in_bucket(pg, source, group)
        used = {group.joint.bucket_of[osd] for osd in self._placement.up[pg][span]}
        seen = 0
        for choice in best_in:
            if choice.bucket not in used and len(choice.osds) >= len(going):
                yield tuple((pg, osd, target) for (_, osd), target in zip(going, choice.osds))
                seen += 1
                if seen >= _BUCKETS:
                    break

    def _best_in(self, group: ShardGroup, bucket: int) -> _Choice:
        """The best OSDs of a bucket, no two in one failure domain below it."""
        joint = group.joint
        assert joint is not None
        taken: Dict[int, int] = {}
        cost = 0.0
        for key, osd in self._targets.in_bucket(group.index, bucket):
            if joint.subdomain_of[osd] not in taken:
                taken[joint.subdomain_of[osd]] = osd
                cost += key
                if len(taken) == joint.max_shards:
                    break
        return _Choice(cost, bucket, tuple(taken.values()))

    def gain(self, steps: Sequence[ShardMove], price: float) -> float:
        """How far the objective falls by the steps."""
        placement, costs = self._placement, self._costs
        gain = 0.0
        for pg, source, target in steps:
            size, start = placement.pg_bytes[pg], placement.initial_up[pg]
            group = placement.group_of(pg, source)
            change = (source in start) - (target in start)
            gain += (costs.utilization_gain(source, target, size) + costs.count_gain_on_leave(group, source)
                     - costs.count_loss_on_enter(group, target)
                     - change * (price * size + costs.move_cost[source]))
        return gain
