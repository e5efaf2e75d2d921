"""What an operator may ask of a plan, determinism, and the end by checkpoint."""
from __future__ import annotations

from typing import List

import pytest
from builders import GIB, OSD_RULE, Cluster, hosts
from paper import steps
from random_clusters import random_cluster, shuffled

from equilibrium_mgr.planner.options import PlanOptions, effective_fill_limit
from equilibrium_mgr.planner.planner import make_plan

ALL = make_plan(random_cluster(1).snapshot())


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_max_moves_is_a_prefix_of_the_whole(limit: int) -> None:
    plan = make_plan(random_cluster(1).snapshot(), PlanOptions(max_moves=limit))
    assert len(ALL.moves) > 7
    assert plan.moves == ALL.moves[:limit]
    assert plan.stop_reason == "the limit of moves is reached"


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_max_bytes_is_not_passed(share: float) -> None:
    limit = int(ALL.bytes * share)
    plan = make_plan(random_cluster(1).snapshot(), PlanOptions(max_bytes=limit))
    assert 0 < plan.bytes <= limit
    assert plan.stop_reason == "the limit of bytes is reached"


def test_limits_that_are_not_reached_change_nothing() -> None:
    plan = make_plan(random_cluster(1).snapshot(),
                     PlanOptions(max_bytes=ALL.bytes, max_moves=len(ALL.moves) + 1))
    assert plan.moves == ALL.moves and plan.stop_reason == "converged"


def test_pool_filter() -> None:
    plan = make_plan(random_cluster(1).snapshot(), PlanOptions(pool_ids=frozenset((2,))))
    assert {move.pgid.split(".")[0] for move in plan.moves} == {"2"}


def test_class_filter() -> None:
    snapshot = random_cluster(1).snapshot()
    plan = make_plan(snapshot, PlanOptions(device_classes=frozenset(("ssd",))))
    assert {snapshot.osds[move.source].device_class for move in plan.moves} == {"ssd"}
    nothing = make_plan(snapshot, PlanOptions(device_classes=frozenset(("nvme",))))
    assert nothing.moves == () and nothing.changes == ()


def test_pools_that_stay_do_not_hide_the_others() -> None:
    """A pool with an unknown rule and a PG with a hole come first in every dictionary."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE, 1: "take default; choosemsr indep 2 osd; emit"})
    cluster.pool(1, size=2, rule=1).pg("1.0", [0, 1]).pool(2, size=1).pg("2.0", [])
    for ps in range(1, 4):
        cluster.pg("2.%x" % ps, [0], num_bytes=10 * GIB)
    plan = make_plan(cluster.snapshot())
    assert len(plan.moves) == 2 and sum(plan.skipped.values()) == 2


def test_rejected_pgs_stay() -> None:
    rejected = frozenset(move.pgid for move in ALL.moves[:4])
    plan = make_plan(random_cluster(1).snapshot(), PlanOptions(rejected_pgs=rejected))
    assert plan.moves and not {move.pgid for move in plan.moves} & rejected


def test_filtered_pools_still_count_as_load() -> None:
    """Only pool 1 may move, but the OSD filled by pool 2 is no place for it."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1).pool(2, size=1)
    for ps in range(3):
        cluster.pg("1.%x" % ps, [0], num_bytes=10 * GIB)
    cluster.pg("2.0", [1], num_bytes=60 * GIB)
    plan = make_plan(cluster.snapshot(), PlanOptions(pool_ids=frozenset((1,))))
    assert {move.target for move in plan.moves} == {2}


def test_checkpoint_ends_the_plan_with_what_it_has() -> None:
    asked: List[int] = []

    def three_moves(moves: int) -> bool:
        asked.append(moves)
        return moves < 3
    plan = make_plan(random_cluster(1).snapshot(), PlanOptions(), three_moves)
    assert plan.moves == ALL.moves[:3]
    assert plan.stop_reason == "the time limit is reached"
    assert asked == sorted(asked) and asked[0] == 0


def test_checkpoint_that_never_agrees_gives_an_empty_plan() -> None:
    plan = make_plan(random_cluster(1).snapshot(), PlanOptions(), lambda _moves: False)
    assert plan.moves == () and plan.before == plan.after


@pytest.mark.parametrize("seed", range(6))
def test_order_of_dictionaries_does_not_matter(seed: int) -> None:
    plain = make_plan(random_cluster(seed, hybrid=True).snapshot())
    mixed = make_plan(shuffled(random_cluster(seed, hybrid=True), seed).snapshot())
    assert plain.moves and steps(mixed.moves) == steps(plain.moves)
    assert mixed.to_dict() == plain.to_dict()


def test_planning_leaves_the_snapshot_as_it_was() -> None:
    snapshot = random_cluster(2).snapshot()
    first = make_plan(snapshot)
    assert make_plan(snapshot).to_dict() == first.to_dict()


def test_fill_limit_defaults_to_a_margin_below_backfillfull() -> None:
    assert effective_fill_limit(0.0, 0.9) == pytest.approx(0.88)
    assert effective_fill_limit(0.7, 0.9) == 0.7
    assert effective_fill_limit(0.0, 0.01) == 0.0


def test_empty_cluster_gives_an_empty_plan() -> None:
    plan = make_plan(Cluster(hosts(2)).snapshot())
    assert plan.moves == () and plan.gained_bytes == 0


def test_skipped_are_counted() -> None:
    cluster = random_cluster(1).osd(3, up=0, state=["exists"])
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": cluster.up["1.0"]}]
    skipped = make_plan(cluster.snapshot()).skipped
    assert skipped["PG: placed by a full pg-upmap"] == 1
    assert skipped["OSD: down"] == 1
