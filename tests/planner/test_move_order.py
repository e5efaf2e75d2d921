"""A plan is useful wherever it is cut: the fullest OSDs give first, and nothing is overfilled."""
from __future__ import annotations

from collections import Counter
from typing import List, Sequence, Tuple

import pytest
from tests.support.clusters.made_clusters import NAMES, TWO_CLASSES, plan_of_cluster, snapshot_of
from tests.support.clusters.unit_cluster import single_copies
from tests.support.few import few
from tests.support.replay import Replay, by_change, largest_shard_on, sets_of

from equilibrium_mgr.plan.model import Move, Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.move_order import order_changes, wanted_changes
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.snapshot.model import Snapshot

_SAME = 1e-9


def skimmed(levels: List[Tuple[int, int]], amount: int) -> float:
    """How high (used, size) pairs stand once as many bytes are skimmed off the highest."""
    used = size = 0
    ordered = sorted(levels, key=lambda pair: -pair[0] / pair[1])
    for number, (u, s) in enumerate(ordered, start=1):
        used, size = used + u, size + s
        level = (used - amount) / size
        if number == len(ordered) or level >= ordered[number][0] / ordered[number][1]:
            return level
    raise ValueError("no OSDs")


def cut(snapshot: Snapshot, plan: Plan, device_class: str, share: float) -> Tuple[Replay, int]:
    """The placement after the first changes that together stay within a share of a class's
    bytes, and how many bytes of the class these are."""
    left = share * taken(snapshot, plan.moves, device_class)
    replay, done = Replay(snapshot), 0
    for _, moves in by_change(plan):
        amount = taken(snapshot, moves, device_class)
        if amount and done + amount > left:
            break
        done += amount
        for move in moves:
            replay.move(move)
    return replay, done


def taken(snapshot: Snapshot, moves: Sequence[Move], device_class: str) -> int:
    """Bytes that moves take from a class."""
    return sum(move.bytes for move in moves if snapshot.set_of(move.source) == device_class)


@pytest.mark.parametrize("share", [0.10, 0.25, 0.50, 0.75])
@pytest.mark.parametrize("name", few(NAMES, 1))
def test_a_cut_plan_lowers_the_maximum_nearly_as_far_as_its_bytes_can(name: str,
                                                                      share: float) -> None:
    """At least 80 % of what skimming the fullest OSDs would give, but for one shard."""
    snapshot, plan = snapshot_of(name), plan_of_cluster(name)
    start = Replay(snapshot)
    assert sets_of(snapshot, plan)
    for device_class in sets_of(snapshot, plan):
        levels = start.utilizations(device_class)
        fullest = max(levels, key=lambda osd: levels[osd])
        now, moved = cut(snapshot, plan, device_class, share)
        possible = levels[fullest] - skimmed(
            [(start.used[osd], snapshot.osds[osd].size_bytes) for osd in levels], moved)
        largest = max(largest_shard_on(start, osd) for osd in levels)
        shard = largest / snapshot.osds[fullest].size_bytes
        fall = levels[fullest] - now.highest(device_class)
        assert fall >= 0.8 * possible - shard, (
            f"{device_class}: {fall:.4f} of {possible:.4f}, a shard is {shard:.4f}")


@pytest.mark.parametrize("name", few(TWO_CLASSES, 1))
def test_classes_take_turns(name: str) -> None:
    """At no time is one class much further than the other: a sixth, and two large changes."""
    snapshot, plan = snapshot_of(name), plan_of_cluster(name)
    assert len(sets_of(snapshot, plan)) == 2
    steps: List[Counter[str]] = []
    for _, moves in by_change(plan):
        steps.append(Counter())
        for move in moves:
            steps[-1][snapshot.set_of(move.source)] += move.bytes
    total = sum(steps, Counter())
    largest = max(step[name] / total[name] for step in steps for name in total)
    through: Counter[str] = Counter()
    for step in steps:
        through.update(step)
        shares = [through[name] / total[name] for name in total]
        assert max(shares) - min(shares) <= 1 / 6 + 2 * largest


def test_what_cannot_go_without_passing_the_highest_at_the_start_is_left_out() -> None:
    """Two OSDs of 50 % would exchange 10 for 9 GiB; whichever goes first, one has 59 % or more."""
    placement = PlacementState(single_copies([10, 40], [9, 41]).snapshot(), PlanOptions())
    placement.move(0, 0, 1)
    placement.move(2, 1, 0)
    assert not any(order_changes(placement, wanted_changes(placement)))
