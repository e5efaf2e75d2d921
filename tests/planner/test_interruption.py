"""Plans that end early: they are legal, do no harm, and give way often enough."""
from __future__ import annotations

from typing import Tuple

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.few import few
from tests.support.giving_way import Asked
from tests.support.plan_legality import assert_legal
from tests.support.replay import Replay

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot.model import Snapshot

_INTERRUPTED = "the time limit is reached"
_NAMES = ["demo", "uneven", "hybrid"]


def interrupted(name: str, calls: int) -> Tuple[Plan, Asked]:
    asked = Asked(calls)
    with giving_way(asked):
        return make_plan(snapshot_of(name)), asked


def calls_of_whole_plan(name: str) -> int:
    asked = Asked()
    with giving_way(asked):
        make_plan(snapshot_of(name))
    return len(asked)


@pytest.mark.full
@pytest.mark.parametrize("name", _NAMES)
def test_an_interrupted_plan_is_legal_and_does_no_harm(name: str) -> None:
    """After few calls, after all of them, and after many numbers between."""
    snapshot, whole = snapshot_of(name), plan_of_cluster(name)
    calls = calls_of_whole_plan(name)
    start = Replay(snapshot)
    found = []
    for number in [0, 1, 2, 3, 5, 8, *range(calls // 9, calls, calls // 9), calls - 1]:
        plan, _ = interrupted(name, number)
        if plan.stop_reason == _INTERRUPTED:
            found.append(len(plan.changes))
        else:  # it came when only the order was left to be found
            assert plan == whole
        assert_legal(snapshot, plan)
        end = Replay(snapshot, plan.moves)
        for device_class in whole.after.classes:
            assert end.highest(device_class) <= start.highest(device_class) + 1e-9
    assert len(found) > 8 and found[0] == 0 and max(found) > len(whole.changes) // 2


def test_a_no_from_the_beginning_gives_an_empty_plan() -> None:
    plan, _ = interrupted("demo", 0)
    assert plan.moves == plan.changes == () and plan.before == plan.after
    assert plan.stop_reason == _INTERRUPTED


@pytest.mark.parametrize("name", few(_NAMES, 1))
def test_the_search_ends_soon_after_the_no(name: str) -> None:
    """What is still asked then is for others to have their turn while the plan is put in order."""
    calls = calls_of_whole_plan(name)
    plan, asked = interrupted(name, calls // 2)
    assert plan.stop_reason == _INTERRUPTED
    assert len(asked) - calls // 2 <= 10 + 20 * len(plan.changes)


@pytest.mark.parametrize("name", few(_NAMES, 1))
def test_the_moves_found_are_told(name: str) -> None:
    """From none upwards, with no more than one change of a few shards between two calls."""
    asked = Asked()
    with giving_way(asked):
        plan = make_plan(snapshot_of(name))
    assert plan == plan_of_cluster(name)
    assert asked[0] == 0 and asked == sorted(asked)
    assert asked[-1] >= len(plan.moves)
    assert len(asked) >= asked[-1], "asked less often than once per move"


def calls_before_the_first_move(snapshot: Snapshot) -> int:
    asked = Asked()
    with giving_way(lambda moves: not moves and asked(moves)):
        make_plan(snapshot)
    return len(asked)


def test_it_gives_way_while_the_pgs_are_loaded() -> None:
    """Before the first move, on an average after 500 PGs in each pass over them."""
    snapshot = snapshot_of("uneven")
    some = snapshot.pgs["1.0"]._replace(shard_bytes=0, objects=0)
    pgs = dict(snapshot.pgs)
    for number in range(4096, 10_000):
        pgs[f"1.{number:x}"] = some._replace(pgid=f"1.{number:x}")
    more = calls_before_the_first_move(snapshot._replace(pgs=pgs))
    assert more >= calls_before_the_first_move(snapshot) + 2 * 5900 / 500
