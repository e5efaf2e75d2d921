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
from typing import Any, Dict, List, NamedTuple, Sequence

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import AIMS, PlanOptions
from equilibrium_mgr.plan.usage import bytes_beyond_share
from equilibrium_mgr.snapshot.model import Snapshot
from tests.properties.planned import Planned
from tests.support.clusters.unit_cluster import Cluster
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.replay import Replay, by_change, follow_up, largest_shard_on
from tests.support.units import GIB, TIB


_RULE = "take default~%s; chooseleaf firstn 0 host; emit"
_EC_RULE = "take default~%s; chooseleaf indep 0 host; emit"


class Weighted(NamedTuple):
    """A cluster and OSD → the share of its size that it is to be filled by."""

    cluster: Cluster
    shares: Dict[int, float]


class Layout(NamedTuple):
    """Hosts of OSDs, and what CRUSH weights come to for a size."""

    hosts: int
    each: int
    sizes: Dict[int, int]     # OSD → bytes
    unit: float               # CRUSH weight per TiB; 0: every OSD has the weight 1.0


def layout(rng: random.Random, unit: float = -1.0, sizes: Sequence[int] = ()) -> Layout:
    """6 to 9 hosts of 2 to 4 OSDs. Weights are TiB, or in another unit."""
    hosts, each = rng.randint(6, 9), rng.randint(2, 4)
    sizes = sizes or rng.choice(((400,), (400, 800), (200, 400, 800)))
    return Layout(hosts, each, {osd: rng.choice(sizes) * GIB for osd in range(hosts * each)},
                  rng.choice((1.0, 1.0, 1.0, 0.1, 40.0)) if unit < 0.0 else unit)


def weighted(seed: int, shares: Dict[int, float], crush: bool, made: Layout,
             **fields: Any) -> Weighted:
    """Held by CRUSH weights or by reweights; filled by sizes, as before the operator came."""
    rng = random.Random(f"weighted {seed}")
    osds = sorted(made.sizes)
    weights = {osd: made.unit * made.sizes[osd] / TIB if made.unit else 1.0 for osd in osds}
    if crush:
        weights.update({osd: weights[osd] * share for osd, share in shares.items()})
    tree = {"root default": {f"host h{h}": osds[h * made.each:(h + 1) * made.each]
                             for h in range(made.hosts)}}
    cluster = Cluster(tree, {0: _RULE % "hdd", 1: _EC_RULE % "hdd"}, weights=weights)
    for osd in osds:
        cluster.osd(osd, size=made.sizes[osd])
        if not crush and osd in shares:
            cluster.osd(osd, weight=shares[osd])
    cluster.pool(1, size=3).pool(2, size=4, rule=1, k=2)
    whole = sum(made.sizes.values())
    for pool, size, part, count in ((1, 3, 0.4, 32 * made.hosts), (2, 4, 0.2, 16 * made.hosts)):
        mean = part * whole / (size * count)
        for ps in range(count):
            up = place(rng, made, size, fields.get("empty", ()))
            cluster.pg(f"{pool}.{ps:x}", up, objects=100,
                       num_bytes=int(mean * rng.uniform(0.7, 1.3)) * (2 if pool == 2 else 1))
    return Weighted(cluster, dict(shares))


def place(rng: random.Random, made: Layout, size: int, empty: Sequence[int]) -> List[int]:
    """An up set by sizes, one shard a host; nothing on the OSDs that are empty."""
    sizes = {osd: 0 if osd in empty else made.sizes[osd] for osd in made.sizes}
    by_host = [[osd for osd in sizes if osd // made.each == host] for host in range(made.hosts)]
    left = [host for host in range(made.hosts) if any(sizes[osd] for osd in by_host[host])]
    up: List[int] = []
    for _ in range(size):
        host = rng.choices(left, [sum(sizes[osd] for osd in by_host[h]) for h in left])[0]
        left.remove(host)
        up.append(rng.choices(by_host[host], [sizes[osd] for osd in by_host[host]])[0])
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


def limits(snapshot: Snapshot, shares: Dict[int, float]) -> Dict[int, float]:
    """OSD → the bytes that the operator leaves it."""
    capacity = {osd.id: osd.size_bytes * shares.get(osd.id, 1.0)
                for osd in snapshot.osds.values()}
    level = sum(osd.target_bytes for osd in snapshot.osds.values()) / sum(capacity.values())
    return {osd: level * capacity[osd] for osd in shares}


def assert_respected(snapshot: Snapshot, plan: Plan, shares: Dict[int, float],
                     options: PlanOptions = PlanOptions()) -> None:
    """No shard goes to a held OSD beyond its share, and at most one shard more stays there."""
    assert_legal(snapshot, plan, options)
    most = limits(snapshot, shares)
    now = Replay(snapshot)
    for _, moves in by_change(plan):
        for move in moves:
            now.move(move)
            if move.target in most:
                assert now.used[move.target] <= most[move.target] * (1.0 + 1e-6), move
    for osd, limit in most.items():
        assert now.used[osd] <= limit + largest_shard_on(now, osd), osd


def assert_others_even(snapshot: Snapshot, plan: Plan, shares: Dict[int, float]) -> None:
    """The fullest of the rest is within a shard of the level that all would have."""
    capacity = sum(osd.size_bytes * shares.get(osd.id, 1.0) for osd in snapshot.osds.values())
    level = sum(osd.target_bytes for osd in snapshot.osds.values()) / capacity
    end = Replay(snapshot, plan.moves)
    for osd in snapshot.osds:
        if osd not in shares:
            shard = largest_shard_on(end, osd) / snapshot.osds[osd].size_bytes
            assert end.utilization(osd) <= level + shard, osd


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("crush", [False, True])
def test_held_osds_are_drained_to_their_share(seed: int, crush: bool) -> None:
    rng = operator(seed)
    made = layout(rng)
    case = weighted(seed, lowered(rng, made), crush, made)
    snapshot = case.cluster.snapshot()
    options = PlanOptions(aim=AIMS[seed % len(AIMS)])
    plan = ended_plan(snapshot, options)
    assert_respected(snapshot, plan, case.shares, options)
    if options.aim != "least-motion":
        assert_others_even(snapshot, plan, case.shares)
    again = ended_plan(follow_up(snapshot, plan.changes), options)
    assert again.bytes <= 0.2 * plan.bytes


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("crush", [False, True])
def test_held_osds_that_are_empty_are_filled_to_their_share(seed: int, crush: bool) -> None:
    """A new OSD with a lowered weight."""
    rng = operator(seed)
    made = layout(rng, 1.0)
    shares = lowered(rng, made)
    case = weighted(seed, shares, crush, made, empty=sorted(shares))
    snapshot = case.cluster.snapshot()
    plan = ended_plan(snapshot)
    assert_respected(snapshot, plan, case.shares)
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
    placement: Dict[str, List[int]] = {}
    held_before = None
    for step in steps:
        shares = {osd: step for osd in some} if step < 1.0 else {}
        case = weighted(seed, shares, crush, made, empty=some if steps[0] < 0.5 else ())
        case.cluster.up.update(placement)
        snapshot = case.cluster.snapshot()
        plan = ended_plan(snapshot)
        assert_respected(snapshot, plan, shares)
        end = Replay(snapshot, plan.moves)
        held = sum(end.used[osd] for osd in some)
        wanted = sum(limits(snapshot, {osd: step for osd in some}).values())
        assert abs(held - wanted) <= len(some) * 2 * typical_shard(snapshot) + 0.1 * wanted
        if held_before is not None:
            assert (held < held_before) == (steps[0] > 0.5)
        held_before = held
        placement = {pgid: list(up) for pgid, up in end.up.items()}
        still = ended_plan(follow_up(snapshot, plan.changes))
        assert_respected(follow_up(snapshot, plan.changes), still, shares)


@pytest.mark.parametrize("seed", few([2123, 2146, 2035], 1))
def test_of_several_searches_one_that_leaves_less_beyond_shares_is_taken(seed: int) -> None:
    """To leave it there costs no bytes, and counted as cheap."""
    case = Planned(seed)
    assert bytes_beyond_share(case.snapshot) and case.plan.moves
    assert not bytes_beyond_share(case.later)
