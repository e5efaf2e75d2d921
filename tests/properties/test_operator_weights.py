"""An operator's weights are wishes: no plan works against them, and each of their steps is made.

What an OSD may hold is computed here from what the operator meant, not from the weights
(tests/properties/test_operator_weights.py): its share of what all OSDs would hold if they were
equally full for their shares.

Random clusters whose operator has lowered weights, with the share that each OSD is left.

The truth is made here and not computed from the weights: `shares` is what the operator meant.
"""
from __future__ import annotations

import pytest
import random
from typing import Dict, List, NamedTuple, Sequence

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import AIMS, PlanOptions
from equilibrium_mgr.plan.usage import bytes_beyond_share
from equilibrium_mgr.snapshot.model import Snapshot
from tests.properties.planned import Planned
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.replay import Replay, follow_up, largest_shard_on
from tests.support.rules import EC_HDD_HOSTS, HDD_HOSTS
from tests.support.units import GIB, TIB


class Layout(NamedTuple):
    """Hosts of OSDs, and what CRUSH weights come to for a size."""

    hosts: int
    each: int
    sizes: Dict[int, int]     # OSD → bytes
    unit: float               # CRUSH weight per TiB


def layout(rng: random.Random, unit: float = -1.0) -> Layout:
    """6 to 9 hosts of 2 to 4 OSDs. Weights are TiB, or in another unit."""
    count, each = rng.randint(6, 9), rng.randint(2, 4)
    some = rng.choice(((400,), (400, 800), (200, 400, 800)))
    sizes = {osd: rng.choice(some) * GIB for osd in range(count * each)}
    if unit < 0.0:
        unit = rng.choice((1.0, 1.0, 1.0, 0.1, 40.0))
    return Layout(count, each, sizes, unit)


def weighted(seed: int, shares: Dict[int, float], crush: bool, made: Layout,
             empty: Sequence[int] = ()) -> Cluster:
    """Held by CRUSH weights or by reweights; filled by sizes, as before the operator came."""
    rng = random.Random(f"weighted {seed}")
    weights = {osd: made.unit * size / TIB for osd, size in made.sizes.items()}
    if crush:
        weights.update({osd: weights[osd] * share for osd, share in shares.items()})
    cluster = Cluster(hosts(made.hosts, made.each), {0: HDD_HOSTS, 1: EC_HDD_HOSTS},
                      weights=weights)
    for osd, size in made.sizes.items():
        cluster.osd(osd, size=size)
    if not crush:
        for osd, share in shares.items():
            cluster.osd(osd, weight=share)
    cluster.pool(1, size=3).pool(2, size=4, rule=1, k=2)
    whole = sum(made.sizes.values()) / made.hosts
    for pool, k, size, part, count in ((1, 1, 3, 0.4, 32), (2, 2, 4, 0.2, 16)):
        mean = part * whole / (size * count)
        for ps in range(count * made.hosts):
            up = place(rng, made, size, empty)
            cluster.pg(f"{pool}.{ps:x}", up, k * int(mean * rng.uniform(0.7, 1.3)), objects=100)
    return cluster


def place(rng: random.Random, made: Layout, size: int, empty: Sequence[int]) -> List[int]:
    """An up set by sizes, one shard a host; nothing on the OSDs that are empty."""
    by_host: Dict[int, Dict[int, int]] = {}
    for osd in sorted(made.sizes.keys() - empty):
        by_host.setdefault(osd // made.each, {})[osd] = made.sizes[osd]
    up: List[int] = []
    for _ in range(size):
        (host,) = rng.choices(list(by_host), [sum(osds.values()) for osds in by_host.values()])
        osds = by_host.pop(host)
        up += rng.choices(list(osds), list(osds.values()))
    return up


_SEEDS = few(range(4), 1)
_FEW = few(range(2), 1)


def operator(seed: int) -> random.Random:
    return random.Random(f"operator {seed}")


def lowered(rng: random.Random, made: Layout) -> Dict[int, float]:
    """One OSD to a quarter of them, each to a share of its own."""
    osds = sorted(made.sizes)
    return {osd: rng.choice((0.05, 0.1, 0.3, 0.5, 0.8))
            for osd in rng.sample(osds, rng.randint(1, len(osds) // 4))}


def level_of(snapshot: Snapshot, shares: Dict[int, float]) -> float:
    """How full all would be for their shares, a ratio."""
    osds = snapshot.osds.values()
    capacity = sum(osd.size_bytes * shares.get(osd.id, 1.0) for osd in osds)
    return sum(osd.target_bytes for osd in osds) / capacity


def limits(snapshot: Snapshot, shares: Dict[int, float]) -> Dict[int, float]:
    """OSD → the bytes that the operator leaves it."""
    level = level_of(snapshot, shares)
    return {osd: level * snapshot.osds[osd].size_bytes * share for osd, share in shares.items()}


def assert_respected(snapshot: Snapshot, plan: Plan, shares: Dict[int, float],
                     options: PlanOptions = PlanOptions()) -> None:
    """No shard goes to a held OSD beyond its share, and at most one shard more stays there."""
    assert_legal(snapshot, plan, options)
    most = limits(snapshot, shares)
    now = Replay(snapshot)
    for move in plan.moves:
        now.move(move)
        if move.target in most:
            assert now.used[move.target] <= most[move.target] * (1.0 + 1e-6), move
    for osd, limit in most.items():
        assert now.used[osd] <= limit + largest_shard_on(now, osd), osd


def assert_others_even(snapshot: Snapshot, plan: Plan, shares: Dict[int, float]) -> None:
    """The fullest of the rest is within a shard of the level that all would have."""
    level, end = level_of(snapshot, shares), Replay(snapshot, plan.moves)
    for osd in snapshot.osds.keys() - shares:
        shard = largest_shard_on(end, osd) / snapshot.osds[osd].size_bytes
        assert end.utilization(osd) <= level + shard, osd


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("crush", [False, True])
def test_held_osds_are_drained_to_their_share(seed: int, crush: bool) -> None:
    rng = operator(seed)
    made = layout(rng)
    shares = lowered(rng, made)
    snapshot = weighted(seed, shares, crush, made).snapshot()
    options = PlanOptions(aim=AIMS[seed % len(AIMS)])
    plan = ended_plan(snapshot, options)
    assert_respected(snapshot, plan, shares, options)
    if options.aim != "least-motion":
        assert_others_even(snapshot, plan, shares)
    again = ended_plan(follow_up(snapshot, plan.changes), options)
    assert again.bytes <= 0.2 * plan.bytes


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("crush", [False, True])
def test_held_osds_that_are_empty_are_filled_to_their_share(seed: int, crush: bool) -> None:
    """A new OSD with a lowered weight."""
    rng = operator(seed)
    made = layout(rng, 1.0)
    shares = lowered(rng, made)
    snapshot = weighted(seed, shares, crush, made, empty=sorted(shares)).snapshot()
    plan = ended_plan(snapshot)
    assert_respected(snapshot, plan, shares)
    end = Replay(snapshot, plan.moves)
    for osd, limit in limits(snapshot, shares).items():
        assert end.used[osd] >= limit - 2 * typical_shard(snapshot) - 0.1 * limit, osd


def typical_shard(snapshot: Snapshot) -> int:
    sizes = sorted(pg.shard_bytes for pg in snapshot.pgs.values())
    return sizes[len(sizes) * 9 // 10]


@pytest.mark.parametrize("seed", _FEW)
@pytest.mark.parametrize("crush", few([False, True], 1))
@pytest.mark.parametrize("steps", few([(0.7, 0.4, 0.1), (0.1, 0.4, 0.7, 1.0)], 1))
def test_each_step_of_a_gradual_change_is_followed(seed: int, crush: bool,
                                                   steps: List[float]) -> None:
    """A drain or a weight-in by steps: what one step has moved off (or onto) the OSD no plan
    before the next one brings back."""
    rng = operator(seed)
    made = layout(rng, 1.0)
    some = rng.sample(sorted(made.sizes), rng.choice((1, 1, made.each)))
    is_drain = steps[0] > 0.5
    placement: Dict[str, List[int]] = {}
    held: List[int] = []
    for step in steps:
        lowered_to = dict.fromkeys(some, step)
        shares = lowered_to if step < 1.0 else {}
        cluster = weighted(seed, shares, crush, made, empty=() if is_drain else some)
        cluster.up.update(placement)
        snapshot = cluster.snapshot()
        plan = ended_plan(snapshot)
        assert_respected(snapshot, plan, shares)
        end = Replay(snapshot, plan.moves)
        placement = end.up
        held.append(sum(end.used[osd] for osd in some))
        wanted = sum(limits(snapshot, lowered_to).values())
        most = 2 * len(some) * typical_shard(snapshot) + 0.1 * wanted
        assert abs(held[-1] - wanted) <= most
        later = follow_up(snapshot, plan.changes)
        assert_respected(later, ended_plan(later), shares)
    assert held == sorted(held, reverse=is_drain) and len(set(held)) == len(held)


@pytest.mark.parametrize("seed", few([2123, 2146, 2035], 1))
def test_of_several_searches_one_that_leaves_less_beyond_shares_is_taken(seed: int) -> None:
    """To leave it there costs no bytes, and counted as cheap."""
    case = Planned(seed)
    assert bytes_beyond_share(case.snapshot) and case.plan.moves
    assert not bytes_beyond_share(case.later)
