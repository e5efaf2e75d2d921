"""Shards that only move together: all that a PG has in one bucket, to a bucket it does not use.

Where a rule gives each rack several shards, one shard alone can never leave its rack. What these
moves even out, single ones cannot: the bytes of whole racks.
"""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.shard_groups import Group
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
        for steps in self.of(source):
            placement.examined += 1
            gain = self.gain(steps, price)
            if gain > (best.gain if best else NOISE) and all(
                    placement.used[target] + placement.pg_bytes[pg] <= placement.most[target]
                    for pg, _, target in steps) and placement.legal_together(steps):
                best = JointMove(gain, steps)
        return best

    def of(self, source: int) -> Iterator[Tuple[ShardMove, ...]]:
        """Joint moves of the OSD's shards to the best OSDs of each other bucket, and home; whether
        they are legal is for the caller to ask."""
        placement = self._placement
        for index, plan_store in self._shard_index.of(source).items():
            group = placement.groups[index]
            if group.joint is None:
                continue
            beside = group.joint.beside.get(group.joint.bucket[source], ())
            best_in = sorted(self._best_in(group, bucket) for bucket in beside)
            for shards in plan_store:
                for _, pg in shards:
                    home = self.home(pg, source, group)
                    if home:
                        yield home
                    yield from self._away(pg, source, group, best_in)

    def home(self, pg: int, source: int, group: Group) -> Tuple[ShardMove, ...]:
        """All that the PG has in the OSD's bucket back to where it started; empty: it is there."""
        if group.joint is None or not group.pool.erasure:
            return ()
        going, span = self._going(pg, source, group)
        start = self._placement.start[pg][span]
        steps = tuple((pg, osd, start[number]) for number, osd in going)
        return steps if all(osd != first for _, osd, first in steps) else ()

    def _going(self, pg: int, source: int, group: Group) -> Tuple[List[Tuple[int, int]], slice]:
        """(position in the block, OSD) of the shards that the OSD's bucket has of the PG."""
        assert group.joint is not None
        bucket = group.joint.bucket
        span = slice(group.block.start, group.block.start + group.block.positions)
        return [(number, osd) for number, osd in enumerate(self._placement.up[pg][span])
                if bucket[osd] == bucket[source]], span

    def _away(self, pg: int, source: int, group: Group,
              best_in: List[_Choice]) -> Iterator[Tuple[ShardMove, ...]]:
        assert group.joint is not None
        going, span = self._going(pg, source, group)
        used = {group.joint.bucket[osd] for osd in self._placement.up[pg][span]}
        seen = 0
        for choice in best_in:
            if choice.bucket not in used and len(choice.osds) >= len(going):
                yield tuple((pg, osd, target) for (_, osd), target in zip(going, choice.osds))
                seen += 1
                if seen >= _BUCKETS:
                    break

    def _best_in(self, group: Group, bucket: int) -> _Choice:
        """The best OSDs of a bucket, no two in one failure domain below it."""
        joint = group.joint
        assert joint is not None
        taken: Dict[int, int] = {}
        cost = 0.0
        for key, osd in self._targets.within(group.index, bucket):
            if joint.apart[osd] not in taken:
                taken[joint.apart[osd]] = osd
                cost += key
                if len(taken) == joint.shards:
                    break
        return _Choice(cost, bucket, tuple(taken.values()))

    def gain(self, steps: Sequence[ShardMove], price: float) -> float:
        """How far the objective falls by the steps."""
        placement, costs = self._placement, self._costs
        gain = 0.0
        for pg, source, target in steps:
            size, start = placement.pg_bytes[pg], placement.start[pg]
            group = placement.group_of(pg, source)
            change = (source in start) - (target in start)
            gain += (costs.shift(source, target, size) + costs.leave_count(group, source)
                     - costs.enter_count(group, target)
                     - change * (price * size + costs.per_move[source]))
        return gain
