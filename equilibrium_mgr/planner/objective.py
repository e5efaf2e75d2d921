"""What the planner minimises, in one place.

With u an OSD's utilisation, C its size, T the lowest utilisation that the rules allow the fullest
OSD of its set (planner/bound.py), c a pool's shards on the OSD and cap the count at which the OSD
would limit the pool's free space (planner/room.py), the planner minimises, in bytes × utilisation²:

    sum over OSDs            C · (u - T)² · (1 if u > T else below)
  + sum over pools and OSDs  counts · weight(pool) · C · max(0, c / cap - 1)²
  + price · bytes displaced
  + per_move · bytes of a typical shard · shards displaced
  + price · worth · (highest u of a set) · (bytes that grow with the room of its fullest OSDs)
  - price · room_worth · weight(pool) · (raw bytes that the pool's free space takes)

The first line evens out utilisation and pulls hardest at what is above the reachable level; the
second stands for the pools' predicted free space, as far as single OSDs can tell. Moving one shard
changes both for two OSDs only, so that every candidate is computed in constant time. The third and
fourth are what it costs: each upmap entry makes a PG peer again and is checked by the monitors at
every epoch, however little it moves. The last two price what no single OSD tells; they decide how
far the squeeze goes (planner/squeeze.py).

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

    below: float = 0.1            # how much OSDs below the reachable level count
    counts: float = 0.03          # pools' shard counts against utilisation
    slack: float = 0.03           # a ratio of the cap that is not worth a move
    prices: Tuple[float, ...] = (0.30, 0.10, 0.03, 0.01, 0.004)  # of displacing, by and by
    per_move: float = 0.002
    even_counts: float = 0.07     # bytes that may move for counts alone: a ratio of those in excess

    squeeze_price: float = 0.01   # of displacing, while limits are tightened
    rounds: str = "max room max"  # what the squeeze does, in turn
    worth: float = 3.5            # bytes moved that a byte of usable space is worth
    room_worth: float = 0.6       # bytes moved that a byte of one pool's raw space is worth
    room: float = 0.15            # bytes that may move for it: a ratio of those in excess
    goal: float = 0.05            # how near the bound is near enough, in typical shards per OSD
    step: float = 0.25            # how far the highest utilisation sinks at once, likewise
    lift: float = 0.0059          # how far above the bound it may rise again to make room
    loosen: float = 0.01          # of a pool's room that may go again for a lower maximum
    trouble: float = 0.5          # an operation's cost beside its bytes, in steps
    thrift: float = 0.02          # what a byte that need not move is worth in the end


AIM_WEIGHTS: Dict[str, Weights] = {
    "space": Weights(),
    "even": Weights(below=1.0, prices=(0.30, 0.10, 0.03, 0.01, 0.004, 0.001), counts=0.005,
                    rounds="max", worth=20.0, squeeze_price=0.002, thrift=0.0),
    "least-motion": Weights(prices=(0.30, 0.10, 0.05), squeeze_price=0.05, worth=0.5,
                            even_counts=0.0, room=0.03, thrift=0.1),
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
