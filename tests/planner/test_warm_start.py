"""Planning again on the way: what was planned stays planned, and nothing is moved twice."""
from __future__ import annotations

from typing import Dict, Iterable, Tuple

import pytest
from tests.support.clusters.made_clusters import NAMES, plan_of_cluster, snapshot_of
from tests.support.few import few
from tests.support.replay import (
    Replay, changed_bytes, first_part, follow_up, median_size, typical_shard)

from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot


def maxima(snapshot: Snapshot, classes: Iterable[str]) -> Dict[str, float]:
    start = Replay(snapshot)
    return {device_class: start.highest(device_class) for device_class in classes}


def in_parts(name: str, parts: int) -> Tuple[int, Snapshot]:
    """Bytes moved and the end, if of every plan only the first part is made before the next."""
    snapshot, plan = snapshot_of(name), plan_of_cluster(name)
    moved = 0
    for left in range(parts, 1, -1):
        part = first_part(plan, 1 / left)
        assert part
        moved += changed_bytes(part)
        snapshot = follow_up(snapshot, part)
        plan = make_plan(snapshot)
    return moved + plan.bytes, follow_up(snapshot, plan.changes)


@pytest.mark.parametrize("name", few(NAMES, 3))
def test_the_snapshot_after_a_plan_is_what_the_plan_foretold(name: str) -> None:
    """Of the tests' own helper: it does what the plan says, no more and no less."""
    snapshot, plan = snapshot_of(name), plan_of_cluster(name)
    later = follow_up(snapshot, plan.changes)
    assert maxima(later, plan.after.classes) == {
        device_class: pytest.approx(usage.max)
        for device_class, usage in plan.after.classes.items()}
    assert sum(o.target_bytes for o in later.osds.values()) == sum(
        o.target_bytes for o in snapshot.osds.values())


#: A shard is more than 1 % of these small plans, and tightening that begins anew ends elsewhere.
_LUMPY = [("many-pools", 4), ("racks", 3), ("racks", 4), ("random", 4)]
_QUICK = ("demo", "random")


@pytest.mark.parametrize("name, parts", [
    pytest.param(name, parts, marks=[pytest.mark.full] * (name not in _QUICK)
                 + [pytest.mark.xfail(reason="up to 11 % more", strict=False)]
                 * ((name, parts) in _LUMPY))
    for name in NAMES for parts in (
        (2, 3, 4) if name in ("demo", "hybrid", "racks", "random") else (2, 4))])
def test_planning_again_on_the_way_costs_nothing(name: str, parts: int) -> None:
    """Hardly more bytes than the whole plan, and the maxima within half a shard of it."""
    snapshot, plan = snapshot_of(name), plan_of_cluster(name)
    moved, end = in_parts(name, parts)
    highest = maxima(end, plan.after.classes)
    for device_class, usage in plan.after.classes.items():
        shard = typical_shard(snapshot, device_class) / median_size(snapshot, device_class)
        assert highest[device_class] <= usage.max + 0.5 * shard
    assert moved <= 1.03 * plan.bytes, f"{moved / plan.bytes:.3f} of the bytes"


@pytest.mark.parametrize("name", few(NAMES, 3))
def test_a_finished_plan_leaves_nothing_to_do(name: str) -> None:
    plan = plan_of_cluster(name)
    again = make_plan(follow_up(snapshot_of(name), plan.changes))
    done = {change.pgid: change for change in plan.changes}
    for change in again.changes:
        if change.pgid in done:
            left = set(done[change.pgid].up_before) - set(done[change.pgid].up_after)
            assert not left & set(change.up_after), f"{change.pgid} goes back"
    # a few whole shards are all that may be left to try
    assert again.bytes <= 0.02 * plan.bytes or len(again.changes) <= 3, (
        f"{again.bytes / plan.bytes:.3f} of the bytes in {len(again.changes)} changes")
