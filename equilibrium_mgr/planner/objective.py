"""The objective that the planner minimizes: the formula, and its weights, found by tuning.

Symbols, with i an OSD, g a group (the shards that one pool places under one take), S the OSDs of
one device class in a set, which pools connect (planner/bound/lower_bound.py):

    u_i   utilization: used bytes ÷ C_i                                        (ratio)
    C_i   size of the OSD                                                      (bytes)
    T_i   target: the bound of the OSD's set, or the utilization of its share  (ratio)
    n_gi  shards of the group on the OSD                                       (count)
    N_gi  cap: shards at which the OSD would limit the pool's free space       (count)
    w_g   weight of the pool, 0 to 1, see `pool_weight`
    E_g   even space: the pool's free space if every OSD has its part of the pool's shards by
          size, rounded up; at most the space that the pool can have            (bytes)
    U_S   highest utilization of an OSD in the set                             (ratio)
    B_S   the set's bound: the lowest U_S that the rules allow                 (ratio)
    p     price of a displaced byte; falls during the search                   (utilization)

A search lowers, in bytes × utilization,

    J =   Σ_i     C_i · (u_i - T_i)² · (1 if u_i > T_i else underfull_weight)
        + Σ_g,i   count_weight · w_g · C_i · max(0, n_gi / N_gi - 1)²
        + p · (bytes displaced)
        + MOVE_COST · Σ (bytes of a typical shard of the set), over shards displaced
        + p · Σ_S V_S(U_S)
        - p · Σ_g POOL_SPACE_VALUE · w_g · (raw bytes of free space of the pool)

    V_S(U) = usable_bytes(S) · (usable_value · (min(U, F_S) - B_S)
                                + far_usable_value · max(0, U - F_S)),
    F_S    = B_S + max(0.004, FAR_SHARDS typical shards of S); infinite if S has fixed bytes.

The first line evens out utilization, above all on OSDs above their target. The second line stands
for the pools' free space, as far as single OSDs show it. A move changes both lines for two OSDs
only, so that the search computes each candidate in constant time. Lines three and four are the cost
of moves: every upmap entry makes a PG peer again, and the monitors check it at every epoch, however
few bytes it moves. The last two lines depend only on the fullest OSDs. They decide how far limits
are tightened (planner/search/tightening.py).

A pool with less than near_space · E_g is far from the space that balancing counts alone would give
it. Then moves for its counts have a large budget of their own (far_move_budget), and its space is
worth FAR_SPACE_VALUE instead of POOL_SPACE_VALUE. Without a budget two fifths of all shards moved
only for their counts, on a cluster of a hundred pools with 1 % of the data each.

Of several searches with different weights (planner/planner.py) the plan comes from the search with
the highest score, in bytes moved:

    score =   free_space · Σ (free bytes that the data pools gain)
            + min_free_space · (free bytes that the data pool gains that gains least)
            - FAR_FREE_SPACE · Σ (free bytes that data pools lack to near_space · E_g)
            - (bytes displaced) - BEYOND_SHARE · (bytes on OSDs above their shares)
            - Σ_S size(S) · (max_utilization · (U_S - B_S)
                             + FAR_MAX_UTILIZATION · max(0, U_S - F_S))

Load comes third (planner/load_leveling.py). After the best search, steps off the busiest OSD raise
no U_S and take no free space from pools. With l_i the load of an OSD (plan/load.py), m_S its mean
in a set, and D_S the used bytes of the set, they lower, in bytes moved,

    LOAD_VALUES · D_S · (max l_i) / m_S
        + (bytes moved) + LOAD_SHARD_COST · D_S / |S| · (shards moved)

An OSD with a lowered weight has a share of its size (snapshot/operator_weights.py). Its target is
the utilization of the share, and its caps follow its capacity. Bytes above the share leave at any
price.

The numbers were chosen by measurement on clusters of many shapes. Bounds, caps and shard sizes come
from the cluster itself. Numbers that only limit the effort of a step (candidates, passes, patience)
are constants of its file.
"""
from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

#: The share of all bytes (ratio) below which a pool's weight falls steeply (`pool_weight`).
DATA_SHARE = 0.01

#: The weight of a pool that holds exactly DATA_SHARE.
_DATA_WEIGHT = 0.4


#: A phase of tightening lowers one of these limits: the highest utilization of each OSD set, or the
#: shards per free byte of each data pool.
UTILIZATION = "utilization"
PRESSURE = "pressure"


class Weights(NamedTuple):
    """The weights of one search. The file's docstring explains the symbols. Typical shards are of
    a set."""

    underfull_weight: float = 0.1     # factor of the utilization term below the target
    count_weight: float = 0.03        # factor of the count term
    prices: Tuple[float, ...] = (     # p of the descent, in turn
        0.30, 0.20, 0.14, 0.10, 0.06, 0.03, 0.02, 0.01, 0.004)
    near_space: float = 0.93          # a pool is far below this ratio of E; 0: none is far
    far_move_budget: float = 0.1      # bytes moved for far pools' counts alone: ratio of all bytes
    least_far_move_budget: float = 0.01   # the same on large clusters (FAR_MOVE_SHARDS)
    count_move_budget: float = 0.07   # bytes moved for counts alone: ratio of a set's excess bytes

    tightening_price: float = 0.01    # p while limits are tightened
    phases: Tuple[str, ...] = (UTILIZATION, PRESSURE, UTILIZATION)
    usable_value: float = 3.5         # bytes moved that a usable byte is worth
    far_usable_value: float = 12.0    # the same while U is above F
    pool_space_budget: float = 0.15   # bytes moved for pressure: ratio of a set's excess bytes
    goal_shards: float = 0.25         # tightening ends so near the bound, in typical shards
    step_shards: float = 0.25         # how far U is lowered per step, in typical shards
    max_rise: float = 0.0059          # how far above the bound U may rise to lower pressure (ratio)
    pressure_slack: float = 0.01      # how far pressure may rise again to lower U (ratio of it)
    return_value: float = 2.0         # p at which moves are reverted in the end; 0: never


#: Weights of the objective that all searches share.
COUNT_SLACK = 0.03        # caps are raised by this: a ratio of the cap
MOVE_COST = 0.002         # per shard displaced: utilization × a typical shard's bytes
FAR_MOVE_SHARDS = 3500    # far_move_budget falls to the bytes of so many mean shards
FAR_SHARDS = 0.47         # F above the bound, in typical shards
POOL_SPACE_VALUE = 0.6    # bytes moved that a raw byte of one pool's space is worth
FAR_SPACE_VALUE = 2.0     # the same while the pool is far from E
FIXED_COST_STEPS = 0.5    # cost of an operation beside its bytes: p × step × OSD bytes


#: Per aim, what it is worth to lower the busiest OSD of a set by the mean load: bytes moved, as a
#: ratio of the set's used bytes.
LOAD_VALUES = {"space": 0.2, "even": 0.2, "least-motion": 0.05}
LOAD_SHARD_COST = 3e-4   # per shard moved for load: a ratio of the mean used bytes of an OSD


class ScoreWeights(NamedTuple):
    """The weights of the score of finished placements: bytes moved per byte."""

    free_space: float = 0.25
    min_free_space: float = 0.3
    max_utilization: float = 1.5


#: Weights of the score that all aims share.
FAR_FREE_SPACE = 0.8
FAR_MAX_UTILIZATION = 8.0
BEYOND_SHARE = 4.0   # more than the moves off the OSD cost


_SPACE = Weights()
_EVEN = Weights(
    underfull_weight=1.0, prices=(0.30, 0.10, 0.03, 0.01, 0.004, 0.001), count_weight=0.005,
    phases=(UTILIZATION,), usable_value=20.0, far_usable_value=20.0, goal_shards=0.05,
    tightening_price=0.002, return_value=0.0, near_space=0.0)
_LEAST_MOTION = Weights(
    prices=(0.30, 0.10, 0.05), tightening_price=0.05, usable_value=0.5, far_usable_value=0.5,
    count_move_budget=0.0, pool_space_budget=0.03, near_space=0.0)

#: The aim of searches for targets of shards that are copied anyway: their bytes cost next to
#: nothing. Only planner/steering.py asks for it.
STEERED = "steered"
_PRICE = 0.001   # as a ratio of the usual price


def _steered(weights: Weights) -> Weights:
    """Returns the weights with bytes at next to no price and without budgets. Worth is in bytes
    moved, so that it rises as the price falls."""
    return weights._replace(
        prices=tuple([_PRICE * price for price in weights.prices]),
        tightening_price=_PRICE * weights.tightening_price,
        usable_value=weights.usable_value / _PRICE,
        far_usable_value=weights.far_usable_value / _PRICE,
        count_move_budget=1.0,
        pool_space_budget=1.0,
        far_move_budget=1.0,
        least_far_move_budget=1.0)


#: Per aim the weights of each search. If searches are cheap, all of them run and are scored. The
#: later ones differ in the weights of tightening, because nobody can predict which ends best. The
#: default aim also has weights of the other aims, so that no plan of theirs is better in all.
AIM_WEIGHTS: Dict[str, Tuple[Weights, ...]] = {
    "space": (
        _SPACE,
        _EVEN._replace(return_value=_SPACE.return_value),
        _LEAST_MOTION,
        _SPACE._replace(count_weight=0.003),
        _SPACE._replace(usable_value=5.0, count_weight=0.08, pool_space_budget=0.1,
                        pressure_slack=0.003, max_rise=0.008, step_shards=0.15),
        _SPACE._replace(usable_value=5.0, count_weight=0.05, pool_space_budget=0.1,
                        pressure_slack=0.003, phases=(PRESSURE, UTILIZATION)),
        _SPACE._replace(count_weight=0.02, pool_space_budget=0.2, pressure_slack=0.02),
        _SPACE._replace(count_weight=0.08, step_shards=0.15,
                        phases=(UTILIZATION, PRESSURE, UTILIZATION, PRESSURE, UTILIZATION))),
    "even": (
        _EVEN,
        _EVEN._replace(underfull_weight=0.1, count_weight=0.03),
        _EVEN._replace(underfull_weight=0.1, phases=(UTILIZATION, PRESSURE, UTILIZATION))),
    "least-motion": (_LEAST_MOTION,),
    STEERED: (_steered(_SPACE), _steered(_EVEN._replace(return_value=_SPACE.return_value))),
}

#: Per aim the weights of the score.
AIM_SCORE_WEIGHTS: Dict[str, ScoreWeights] = {
    "space": ScoreWeights(),
    "even": ScoreWeights(free_space=0.0, min_free_space=0.0, max_utilization=20.0),
    "least-motion": ScoreWeights(),
    STEERED: ScoreWeights(*[weight / _PRICE for weight in ScoreWeights()]),
}


def pool_weight(share: float) -> float:
    """Returns the weight w of a pool, 0 to 1, by its share of the bytes of all pools (ratio).

    The free space of a pool without data does not matter. Below DATA_SHARE the weight falls with
    the sixth power: steeply, but without a threshold that a growing pool would jump over.
    """
    if share >= DATA_SHARE:
        return min(1.0, _DATA_WEIGHT * share / DATA_SHARE)
    if share > 0.2 * DATA_SHARE:
        return _DATA_WEIGHT * (share / DATA_SHARE) ** 6
    return 0.0


def holds_data(weight: float) -> bool:
    """Returns True if a pool of this weight has its pressure lowered, for more free space."""
    return weight >= 0.5 * _DATA_WEIGHT


def keeps_space(weight: float) -> bool:
    """Returns True if no plan may take free space from a pool of this weight."""
    return weight >= pool_weight(DATA_SHARE / 2.0)
