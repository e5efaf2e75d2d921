"""What an operator may ask of a plan: pools, classes, PGs that stay; and small oddities."""
from __future__ import annotations


import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.options import FILL_MARGIN, PlanOptions, effective_fill_limit
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.state.placement_state import PlacementState

def test_pools_that_stay_do_not_hide_the_others() -> None:
    """A pool with an unknown rule and a PG with a hole come first in every dictionary."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE, 1: "take default; choosemsr indep 2 osd; emit"})
    cluster.pool(1, size=2, rule=1).pg("1.0", [0, 1]).pool(2, size=1).pg("2.0", [])
    for ps in range(1, 4):
        cluster.pg(f"2.{ps:x}", [0], num_bytes=10 * GIB)
    plan = make_plan(cluster.snapshot())
    assert len(plan.moves) == 2 and sum(plan.skipped.values()) == 2


def test_filtered_pools_still_count_as_load() -> None:
    """Only pool 1 may move, but the OSD filled by pool 2 is no place for it."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1).pool(2, size=1)
    for ps in range(3):
        cluster.pg(f"1.{ps:x}", [0], num_bytes=10 * GIB)
    cluster.pg("2.0", [1], num_bytes=60 * GIB)
    plan = make_plan(cluster.snapshot(), PlanOptions(pool_ids=frozenset((1,))))
    assert {move.target for move in plan.moves} == {2}


def test_fill_limit_defaults_to_a_margin_below_backfillfull() -> None:
    assert effective_fill_limit(0.0, 0.9) == pytest.approx(0.88)
    assert effective_fill_limit(0.7, 0.9) == 0.7
    assert effective_fill_limit(0.0, 0.01) == 0.0


@pytest.mark.parametrize("fill_limit", [0.0, 0.5, 0.88, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("ratio", [-1.0, 0.0, 0.01, 0.5, 0.85, 0.9, 0.97, 1.0, 90.0, float("nan")])
def test_no_fill_limit_is_above_backfillfull(fill_limit: float, ratio: float) -> None:
    """A ratio that cannot be one counts as the lowest that OSDs would take instead."""
    highest = ratio if 0.0 < ratio < 1.0 else 0.85
    limit = effective_fill_limit(fill_limit, ratio)
    assert 0.0 <= limit <= max(0.0, highest - FILL_MARGIN)
    assert limit == fill_limit or fill_limit in (0.0,) or fill_limit > highest - FILL_MARGIN


def test_a_swap_needs_a_pair_for_each_half() -> None:
    """The last pair is for a move of its own."""
    snapshot = single_copies([30], [20], []).snapshot()
    for limit, left in ((0.4, 0), (1.5, 1), (2.5, 2)):   # up to 1 it is per PG
        placement = PlacementState(snapshot, PlanOptions(max_upmap_items=limit))
        swap = [(pg, placement.up[pg][0], 1 - placement.up[pg][0]) for pg in (0, 1)]
        assert [placement.is_legal(*half) for half in swap] == [left > 0] * 2
        assert placement.has_upmap_pairs(swap) is (left == 2)


def test_the_last_pair_is_given_away() -> None:
    """A cluster of one PG may have one pair, at a pair per PG."""
    cluster = single_copies([30], []).drain(0)
    plan = make_plan(cluster.snapshot(), PlanOptions(max_upmap_items=1.0))
    assert [change.items for change in plan.changes] == [((0, 1),)] and not plan.stuck


def test_an_osd_with_too_many_pg_shards_gets_back_what_left_it_and_nothing_else() -> None:
    """What need not have moved stays: else a plan moves what the OSD has beyond the limit."""
    snapshot = single_copies([30, 20, 10], [20, 10], [10, 5]).snapshot()
    placement = PlacementState(snapshot, PlanOptions(max_pg_shards_per_osd=2))
    mine, other = placement.shards[0][0], placement.shards[1][0]
    placement.move(mine, 0, 2)
    placement.move(placement.shards[0][0], 0, 1)
    assert placement.is_legal(mine, 2, 0) and not placement.is_legal(other, 1, 0)


@pytest.mark.parametrize("emptier, fuller", [(0, 8), (8, 6), (6, 9)], ids=[
    "a new class gets data", "each takes from the other", "an overfull class gives"])
def test_a_class_may_end_fuller_where_others_cannot_be_emptier_otherwise(
        emptier: int, fuller: int) -> None:
    """One pool on two classes: SSDs with few or many shards of 8 GiB beside level HDDs."""
    cluster = Cluster(hosts(1, 6), {0: OSD_RULE}, {osd: "ssd" if osd > 3 else "hdd"
                                                   for osd in range(6)}).pool(1, size=1)
    on = [0, 1, 2, 3] * fuller + [4, 5] * emptier
    for ps, osd in enumerate(on):
        cluster.pg(f"1.{ps:x}", [osd], num_bytes=8 * GIB)
    after = make_plan(cluster.snapshot(), PlanOptions()).after
    assert max(row.max for row in after.classes.values()) <= 0.08 * (len(on) / 6.0 + 1.0)
