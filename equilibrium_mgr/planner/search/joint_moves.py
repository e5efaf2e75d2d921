"""Joint moves: all shards that a PG has in one bucket move to a bucket that it does not use.

Where a rule gives each rack several shards, one shard alone can never leave its rack. Only joint
moves even out the bytes of whole racks there.

Pairs of shards of two OSDs whose swap moves about the bytes that are wanted.
"""
from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..state.constraints import SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.shard_groups import ShardGroup
from ..state.target_index import ShardIndex, TargetIndex


#: Buckets that are examined for a PG, the best first.
_BUCKETS = 3


class JointMove(NamedTuple):
    """A move of several shards of one PG that lowers the objective by `gain`."""

    gain: float
    steps: Tuple[ShardMove, ...]


#: (cost, bucket, the best targets in it)
_BucketTargets = Tuple[float, int, Tuple[int, ...]]


class JointMoves:
    """Finds joint moves. `price` is that of a displaced byte (utilization)."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._has_any = any(group.joint is not None for group in costs.placement.groups)

    def best(self, source: int, price: float, limits: SearchConstraints,
             least: float = NOISE) -> Optional[JointMove]:
        """Returns the best joint move that an OSD takes part in within the limits, or None where
        none gains more than `least`."""
        placement = self._placement
        best: Optional[JointMove] = None
        for steps in self.candidates(source):
            placement.candidates_examined += 1
            gain = self.gain(steps, price)
            if gain > (best.gain if best else least) and all(
                    limits.fits(target, placement.size_on(pg, a), placement.group_of(pg, a), -1)
                    for pg, a, target in steps) and placement.is_legal_joint(steps):
                best = JointMove(gain, steps)
        return best

    def candidates(self, source: int) -> Iterator[Tuple[ShardMove, ...]]:
        """Yields joint moves of the OSD's shards: back to the initial OSDs, and to the best OSDs of
        each other bucket. The caller checks that they are legal."""
        placement = self._placement
        for index, lists in (
                self._shard_index.by_group(source).items() if self._has_any else ()):
            group = placement.groups[index]
            if group.joint is None:
                continue
            siblings = group.joint.siblings.get(group.joint.bucket_of[source], ())
            targets = sorted(self._best_targets(group, bucket) for bucket in siblings)
            for shards in lists:
                for _, pg in shards:
                    back = self.return_moves(pg, source, group)
                    if back:
                        yield back
                    # to the best buckets that the PG does not use
                    moving, span = self._shards_in_bucket(pg, source, group)
                    used = {group.joint.bucket_of[osd] for osd in placement.up[pg][span]}
                    for _, osds in islice(((bucket, osds) for _, bucket, osds in targets
                                           if bucket not in used and len(osds) >= len(moving)),
                                          _BUCKETS):
                        yield tuple((pg, osd, target) for (_, osd), target in zip(moving, osds))

    def return_moves(self, pg: int, source: int, group: ShardGroup) -> Tuple[ShardMove, ...]:
        """Moves of all that the PG has in the OSD's bucket to the initial OSDs; empty where a
        shard of them is not displaced."""
        if group.joint is None or not group.pool.erasure:
            return ()
        moving, span = self._shards_in_bucket(pg, source, group)
        initial = self._placement.initial_up[pg][span]
        steps = tuple((pg, osd, initial[number]) for number, osd in moving)
        return steps if all(osd != first for _, osd, first in steps) else ()

    def _shards_in_bucket(self, pg: int, source: int,
                          group: ShardGroup) -> Tuple[List[Tuple[int, int]], slice]:
        """(position in the block, OSD) of the PG's shards in the OSD's bucket, the block's span."""
        assert group.joint is not None
        bucket_of = group.joint.bucket_of
        span = slice(group.block.start, group.block.start + group.block.positions)
        return [(number, osd) for number, osd in enumerate(self._placement.up[pg][span])
                if bucket_of[osd] == bucket_of[source]], span

    def _best_targets(self, group: ShardGroup, bucket: int) -> _BucketTargets:
        """The best OSDs of a bucket, no two in one failure domain below it."""
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

    def gain(self, steps: Sequence[ShardMove], price: float) -> float:
        """By how much the steps lower the objective."""
        placement, costs = self._placement, self._costs
        gain = 0.0
        for pg, source, target in steps:
            size, initial = placement.size_on(pg, source), placement.initial_up[pg]
            group = placement.group_of(pg, source)
            left, returned = source in initial, target in initial
            gain += (costs.utilization_gain(source, target, size)
                     + costs.count_gain_on_leave(group, source)
                     - costs.count_loss_on_enter(group, target)
                     - (left - returned) * price * size
                     - left * costs.move_cost[source] + returned * costs.move_cost[target])
        return gain


Offer = Tuple[int, int, int]      # (bytes, PG, group)


def pairs_of_shards(mine: List[Offer], sizes: List[int], theirs: List[Offer], want: float,
                    least: float, most: float) -> Iterator[Tuple[Offer, Offer]]:
    """Yields pairs whose difference in bytes is about `want` and between `least` and `most`.

    Both lists are sorted; `sizes` are the bytes of the first one, the same for all partners of an
    OSD. Iterates over the shorter list and finds partners in the other one by bisection.
    """
    is_theirs = len(theirs) <= len(mine)   # the shorter list
    shorter, longer, before, after = (theirs, mine, 1, 2) if is_theirs else (mine, theirs, 2, 1)
    if not is_theirs:
        sizes = [offer[0] for offer in theirs]
        want, least, most = -want, -most, -least
    for offer in shorter:
        size = offer[0]
        if int(size + most) < sizes[0]:
            continue
        if int(size + least) > sizes[-1]:
            break
        low = bisect_left(sizes, int(size + least))
        high = bisect_left(sizes, int(size + most) + 1, low)
        at = bisect_left(sizes, int(size + want))
        for k in range(max(low, min(at, high) - before), min(high, max(at, low) + after)):
            yield (longer[k], offer) if is_theirs else (offer, longer[k])
