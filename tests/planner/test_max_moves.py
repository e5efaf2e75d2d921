"""Limits on moves and bytes cut the whole plan off and change nothing in it."""
from __future__ import annotations

from typing import Dict, List

import pytest
from legality import assert_legal, ended_plan
from made_clusters import plan_of_cluster, snapshot_of
from replay import changed_bytes

from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.plan import PgChange, Plan
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot

_NAMES = ["demo", "erasure", "hybrid"]

#: Changes that wait for each other in a circle are not torn apart: so many may come next at once.
_CIRCLE = 4


def counting(changes: List[PgChange]) -> int:
    """Shard moves that a limit counts."""
    return sum(change.shards for change in changes if change.shard_bytes)


def assert_prefix(plan: Plan, whole: Plan) -> List[PgChange]:
    """The plan is the beginning of the whole one; the changes that were left out."""
    assert plan.changes == whole.changes[:len(plan.changes)]
    assert plan.moves == whole.moves[:len(plan.moves)]
    assert len(plan.moves) == sum(change.shards for change in plan.changes)
    return list(whole.changes[len(plan.changes):])


@pytest.mark.parametrize("name", _NAMES)
def test_max_moves_gives_the_beginning_of_the_whole_plan(name: str) -> None:
    snapshot, whole = snapshot_of(name), plan_of_cluster(name)
    every = counting(list(whole.changes))
    assert every > 40
    for limit in [0, 1, 2, 3, 5, every // 2, every - 1]:
        plan = make_plan(snapshot, PlanOptions(max_moves=limit))
        left = assert_prefix(plan, whole)
        assert counting(list(plan.changes)) <= limit
        assert counting(list(plan.changes) + left[:_CIRCLE]) > limit, "more would fit"
        assert plan.stop_reason == "the limit of moves is reached"
        assert_legal(snapshot, plan)


@pytest.mark.parametrize("name", _NAMES)
def test_max_bytes_gives_the_beginning_of_the_whole_plan(name: str) -> None:
    snapshot, whole = snapshot_of(name), plan_of_cluster(name)
    for share in (0.0, 0.001, 0.01, 0.1, 0.5, 0.999):
        limit = int(share * whole.bytes)
        plan = make_plan(snapshot, PlanOptions(max_bytes=limit))
        left = assert_prefix(plan, whole)
        assert plan.bytes == changed_bytes(plan.changes) <= limit
        assert plan.bytes + changed_bytes(left[:_CIRCLE]) > limit, "more would fit"
        assert plan.stop_reason == "the limit of bytes is reached"
        assert_legal(snapshot, plan)


@pytest.mark.parametrize("name", _NAMES)
def test_limits_that_are_not_reached_change_nothing(name: str) -> None:
    snapshot, whole = snapshot_of(name), plan_of_cluster(name)
    exact = PlanOptions(max_moves=counting(list(whole.changes)), max_bytes=whole.bytes)
    assert make_plan(snapshot, exact) == whole
    assert whole.stop_reason == "converged"


def with_empty_pgs(snapshot: Snapshot, changes: List[PgChange]) -> Snapshot:
    """The same with no bytes in a pool's PGs that a plan moved; what OSDs use stays."""
    pgs = dict(snapshot.pgs)
    for change in changes:
        pgs[change.pgid] = pgs[change.pgid]._replace(shard_bytes=0, objects=0)
    return snapshot._replace(pgs=pgs)


def test_moves_of_empty_pgs_do_not_count() -> None:
    """On a cluster of empty PGs that hold too many shards on one OSD, so that they move, too."""
    snapshot = snapshot_of("demo")
    crowded = with_empty_pgs(snapshot, list(plan_of_cluster("demo").changes)[::3])
    whole = ended_plan(crowded)
    empty: Dict[str, PgChange] = {c.pgid: c for c in whole.changes if not c.shard_bytes}
    every = counting(list(whole.changes))
    assert empty, "this cluster tests nothing"
    for limit in range(0, every, every // 6):
        plan = make_plan(crowded, PlanOptions(max_moves=limit))
        left = assert_prefix(plan, whole)
        assert counting(list(plan.changes)) <= limit < counting(list(plan.changes) + left[:1])
    assert make_plan(crowded, PlanOptions(max_moves=every)) == whole
