"""What the planner minimizes, in one place.

With u an OSD's utilization, C its size, T the lowest utilization that the rules allow the fullest
OSD of its set (planner/bound/lower_bound.py), c a pool's shards on the OSD and cap the count at which the OSD
would limit the pool's free space (planner/state/apportionment.py), the planner minimizes, in bytes × utilization²:

    sum over OSDs            C · (u - T)² · (1 if u > T else below)
  + sum over pools and OSDs  counts · weight(pool) · C · max(0, c / cap - 1)²
  + price · bytes displaced
  + per_move · bytes of a typical shard · shards displaced
  + price · worth · (highest u of a set) · (bytes that grow with the room of its fullest OSDs),
    where far_worth takes the place of worth for what is more than `far` shards above T
  - price · room_worth · weight(pool) · (raw bytes that the pool's free space takes)

The first line evens out utilization and pulls hardest at what is above the reachable level; the
second stands for the pools' predicted free space, as far as single OSDs can tell. Moving one shard
changes both for two OSDs only, so that every candidate is computed in constant time. The third and
fourth are what it costs: each upmap entry makes a PG peer again and is checked by the monitors at
every epoch, however little it moves. The last two price what no single OSD tells; they decide how
far the squeeze goes (planner/search/tightening.py).

Where several searches are compared (planner/multi_start.py), a finished placement is worth, in bytes
moved,

    room · (free space that the data pools gain)  +  worst_room · (that of the one that gains least)
  - bytes displaced
  - sum over sets  size · (top · (highest u - T) + far_top · (what of it is more than far shards))

For an OSD that an operator's weights hold to a share of its size (snapshot/operator_weights.py) T is what
that share comes to, and caps follow its capacity; what it has beyond its share leaves at any price.

The numbers below were chosen by measurement on clusters of many shapes; what they are applied to
(levels, caps, shard sizes) comes from the cluster at hand.
"""
from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

#: A pool with less than this share of the bytes holds no data worth making room for.
DATA_SHARE = 0.01

#: The weight of a pool that holds DATA_SHARE.
_DATA_WEIGHT = 0.4


class Weights(NamedTuple):
    """What an aim sets. Prices and worths are per byte."""

    underfull_weight: float = 0.1            # how much OSDs below the reachable level count
    count_weight: float = 0.03          # pools' shard counts against utilization
    count_slack: float = 0.03           # a ratio of the cap that is not worth a move
    prices: Tuple[float, ...] = (0.30, 0.10, 0.03, 0.01, 0.004)  # of displacing, by and by
    move_cost: float = 0.002
    count_move_budget: float = 0.07     # bytes that may move for counts alone: a ratio of those in excess

    tightening_price: float = 0.01   # of displacing, while limits are tightened
    phases: str = "max room max"  # what the squeeze does, in turn
    usable_value: float = 3.5            # bytes moved that a byte of usable space is worth
    far_usable_value: float = 12.0       # the same while the fullest OSD is far from the bound
    far_shards: float = 0.47             # which is so many typical shards above it
    pool_space_value: float = 0.6       # bytes moved that a byte of one pool's raw space is worth
    pool_space_budget: float = 0.15            # bytes that may move for it: a ratio of those in excess
    goal_shards: float = 0.25            # how near the bound is near enough, in typical shards per OSD
    step_shards: float = 0.25            # how far the highest utilization sinks at once, likewise
    max_rise: float = 0.0059          # how far above the bound it may rise again to make room
    pressure_slack: float = 0.01          # of a pool's room that may go again for a lower maximum
    fixed_cost_steps: float = 0.5          # an operation's cost beside its bytes, in steps
    return_value: float = 0.02          # what a byte that need not move is worth in the end


class ScoreWeights(NamedTuple):
    """What finished placements are compared by. Bytes moved that a byte is worth."""

    free_space: float = 0.25            # of the data pools' free space
    min_free_space: float = 0.3       # of the one that gains least, on top of that
    max_utilization: float = 1.5              # of all OSDs of a set, by how far the fullest is above the bound
    far_max_utilization: float = 8.0          # by how far it is more than `far` above it


_SPACE = Weights()
_EVEN = Weights(underfull_weight=1.0, prices=(0.30, 0.10, 0.03, 0.01, 0.004, 0.001), count_weight=0.005,
                phases="max", usable_value=20.0, far_usable_value=20.0, goal_shards=0.05, tightening_price=0.002,
                return_value=0.0)

#: Per aim the weights of one search, or of several whose results are compared (attempts.py). The
#: further ones differ in what the squeeze weighs; which of them ends best no rule foretells.
AIM_WEIGHTS: Dict[str, Tuple[Weights, ...]] = {
    "space": (
        _SPACE,
        _SPACE._replace(usable_value=5.0, count_weight=0.08, pool_space_budget=0.1, pressure_slack=0.003, max_rise=0.008, step_shards=0.15),
        _SPACE._replace(usable_value=3.0, underfull_weight=0.2, pool_space_budget=0.25, move_cost=0.004, pressure_slack=0.003, max_rise=0.008,
                        phases="max room max room max"),
        _SPACE._replace(usable_value=5.0, count_weight=0.05, pool_space_budget=0.1, pressure_slack=0.003, phases="room max"),
        _SPACE._replace(count_weight=0.02, pool_space_budget=0.2, pressure_slack=0.02),
        _SPACE._replace(count_weight=0.08, phases="max room max room max", step_shards=0.15)),
    "even": (_EVEN, _EVEN._replace(underfull_weight=0.1, count_weight=0.03),
             _EVEN._replace(underfull_weight=0.1, phases="max room max")),
    "least-motion": (Weights(prices=(0.30, 0.10, 0.05), tightening_price=0.05, usable_value=0.5,
                             far_usable_value=0.5, count_move_budget=0.0, pool_space_budget=0.03, return_value=0.1),),
}

#: Per aim what its results are compared by.
AIM_SCORE_WEIGHTS: Dict[str, ScoreWeights] = {
    "space": ScoreWeights(),
    "even": ScoreWeights(free_space=0.0, min_free_space=0.0, max_utilization=20.0),
    "least-motion": ScoreWeights(),
}


def pool_weight(share: float) -> float:
    """How much a pool's free space matters, 0 to 1, by its share of all OSDs' bytes.

    Nobody waits for the space of a pool that holds nothing: below DATA_SHARE the weight falls with
    the sixth power, which is to say at once, but without an edge that a growing pool would trip.
    """
    if share >= DATA_SHARE:
        return min(1.0, _DATA_WEIGHT * share / DATA_SHARE)
    return _DATA_WEIGHT * (share / DATA_SHARE) ** 6 if share > 0.2 * DATA_SHARE else 0.0


def holds_data(weight: float) -> bool:
    """Whether a pool of this weight is one that room is made for."""
    return weight >= 0.5 * _DATA_WEIGHT
