"""What an operator may ask of a plan: pools, classes, PGs that stay; and small oddities."""
from __future__ import annotations

import pytest
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.plan_legality import assert_legal_change
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.options import FILL_MARGIN, PlanOptions, effective_fill_limit
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.state.placement_state import PlacementState


def test_fill_limit_defaults_to_a_margin_below_backfillfull() -> None:
    assert effective_fill_limit(0.0, 0.9) == pytest.approx(0.88)
    assert effective_fill_limit(0.7, 0.9) == 0.7
    assert effective_fill_limit(0.0, 0.01) == 0.0


@pytest.mark.parametrize("fill_limit", [0.0, 0.5, 0.88, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("ratio", [-1.0, 0.0, 0.01, 0.5, 0.85, 0.9, 0.97, 1.0, 90.0, float("nan")])
def test_no_fill_limit_is_above_backfillfull(fill_limit: float, ratio: float) -> None:
    """A ratio that cannot be one counts as the lowest that OSDs would take instead."""
    highest = ratio if 0.0 < ratio < 1.0 else 0.85
    most = max(0.0, highest - FILL_MARGIN)
    limit = effective_fill_limit(fill_limit, ratio)
    assert 0.0 <= limit <= most
    if 0.0 < fill_limit <= highest - FILL_MARGIN:
        assert limit == fill_limit


@pytest.mark.parametrize("limit, left", [(0.4, 0), (1.5, 1), (2.5, 2)])   # up to 1 it is per PG
def test_a_swap_needs_a_pair_for_each_half(limit: float, left: int) -> None:
    """The last pair is for a move of its own."""
    snapshot = single_copies([30], [20], []).snapshot()
    placement = PlacementState(snapshot, PlanOptions(max_upmap_items=limit))
    swap = [(0, 0, 1), (1, 1, 0)]
    for half in swap:
        assert placement.is_legal(*half) == (left > 0)
    assert placement.has_upmap_pairs(swap) is (left == 2)


def test_the_last_pair_is_given_away() -> None:
    """A cluster of one PG may have one pair, at a pair per PG."""
    cluster = single_copies([30], []).drain(0)
    plan = make_plan(cluster.snapshot(), PlanOptions(max_upmap_items=1.0))
    (change,) = plan.changes
    assert change.items == ((0, 1),) and not plan.stuck


def test_an_osd_with_too_many_pg_shards_gets_back_what_left_it_and_nothing_else() -> None:
    """What need not have moved stays: else a plan moves what the OSD has beyond the limit."""
    snapshot = single_copies([30, 20, 10], [20, 10], [10, 5]).snapshot()
    placement = PlacementState(snapshot, PlanOptions(max_pg_shards_per_osd=2))
    placement.move(0, 0, 2)
    placement.move(1, 0, 1)
    assert placement.is_legal(0, 2, 0) and not placement.is_legal(3, 1, 0)


@pytest.mark.parametrize("emptier, fuller", [(0, 8), (8, 6), (6, 9)], ids=[
    "a new class gets data", "each takes from the other", "an overfull class gives"])
def test_a_class_may_end_fuller_where_others_cannot_be_emptier_otherwise(
        emptier: int, fuller: int) -> None:
    """One pool on two classes: SSDs with few or many shards of 8 GiB beside level HDDs."""
    cluster = Cluster(hosts(1, 6), {0: OSD_RULE}, {4: "ssd", 5: "ssd"}).pool(1, size=1)
    fill(cluster, 1, [[0], [1], [2], [3]] * fuller + [[4], [5]] * emptier, gib=8)
    after = make_plan(cluster.snapshot()).after
    mean = (4 * fuller + 2 * emptier) / 6
    for usage in after.classes.values():
        assert usage.max <= 0.08 * (mean + 1.0)


def test_odd_items_of_one_pg_do_not_spoil_the_plan() -> None:
    """By hand, osd.0 of the first take went to the second, which takes the same tree."""
    rules = {0: "take default; choose firstn 1 osd; emit; take default; choose firstn 2 osd; emit"}
    cluster = Cluster(hosts(1, 8), rules).pool(1, size=3)
    fill(cluster, 1, [[5, 0, 2], [4, 7, 2], [3, 6, 2], [4, 7, 2], [3, 6, 2], [4, 7, 2]], gib=8)
    snapshot = cluster.pg("1.0", "5 0 2", 9 * GIB, items="0>5 1>0").snapshot()
    changes = make_plan(snapshot).changes
    assert changes
    for change in changes:
        assert_legal_change(snapshot, change)
