"""Which changes go now: budget, limits, and what has become senseless."""
from __future__ import annotations

from typing import Dict, List

import pytest

from equilibrium_mgr.execution.batch import Decision
from equilibrium_mgr.plan.model import PgChange
from tests.execution.limits import batch, limited, pgs, sent, throttled, wanted, why
from tests.support.clusters.unit_cluster import change_of, single_copies


#: Targets of ten PGs.
ALL = [2] * 10


def later(decision: Decision) -> List[PgChange]:
    return [change for change, _ in decision.waiting]


@pytest.mark.parametrize("limit, misplaced, count", [
    (0.05, 0, 1),      # 200 copies: 10 may be misplaced less a margin of 5 %, a change is 10
    (0.1053, 0, 2), (0.1052, 0, 1), (0.1, 0, 1), (0.157, 0, 2), (0.158, 0, 3),
    (0.158, 10, 2), (0.158, 30, 0), (0.158, 29, 0), (0.5, 95, 0), (0.5, 400, 0),
    (0.01, 0, 1), (0.01, 1, 0)])   # above the limit one goes alone where nothing is misplaced
def test_budget_counts_object_copies(limit: float, misplaced: int, count: int) -> None:
    limits = limited(max_misplaced_ratio=limit, misplaced_copies=misplaced)
    decision = batch(pgs(), wanted(*ALL), limits)
    assert len(decision.send) == count
    assert decision.send + later(decision) == wanted(*ALL)
    assert throttled(decision)
    assert "misplaced" in str(why(decision))


def test_empty_pgs_cost_nothing() -> None:
    cluster = pgs().pg("1.a", "0 1", objects=5)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", "0 1", num_bytes=0)
    limits = limited(max_misplaced_ratio=0.1, misplaced_copies=1)
    assert len(batch(cluster, wanted(*ALL), limits).send) == 10


def test_moves_of_one_pg_stay_together() -> None:
    pairs = [change_of(f"1.{ps:x}", "0 1", "2 3") for ps in range(4)]
    for most in (3, 1):
        assert sent(batch(pgs(), pairs, limited(max_moves_per_round=most))) == ["1.0"]


def test_pg_that_cannot_be_moved_for_now_waits() -> None:
    cluster = pgs()
    cluster.up["1.0"] = cluster.up["1.0"][:1]
    decision = batch(cluster, wanted(2))
    assert later(decision) == wanted(2)
    assert decision.dropped == []
    assert why(decision) == "a shard has no OSD"


def test_change_waits_for_a_target_that_is_down_but_in() -> None:
    """OSDs flap; what was planned for them is not thrown away each time."""
    decision = batch(pgs().osd(2, state=["exists"], up=0), wanted(2))
    assert (decision.send, later(decision)) == ([], wanted(2))
    assert why(decision) == "osd.2 is down"
    assert not throttled(decision)


def test_done_in_a_replicated_pool_means_the_same_set() -> None:
    cluster = pgs().pg("1.0", "1 2")
    assert batch(cluster, wanted(2)).done == wanted(2)


@pytest.mark.parametrize("cooling, going", [({}, ["1.1"]), ({"1.1": 9.0}, [])])
def test_a_target_that_an_earlier_change_relieves_does_not_become_the_fullest(
        cooling: Dict[str, float], going: List[str]) -> None:
    """osd.1, with 55 of 100 GiB beside one of 60, gives 15 before it gets 10."""
    cluster = single_copies([60], [15, 40], [10], [20])
    plan = [change_of("1.1", [1], [3]), change_of("1.3", [2], [1])]
    decision = batch(cluster, plan, limited(cooling=cooling))
    assert [change.pgid for change in decision.send] == going
