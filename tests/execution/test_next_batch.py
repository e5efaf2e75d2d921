"""Which changes go now: budget, limits, and what has become senseless."""
from __future__ import annotations

from typing import Any, List, Sequence

import pytest

from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.plan.model import PgChange
from tests.execution.limits import FREE, limited, throttled, why
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts


def ten_pgs(objects: int = 10) -> Cluster:
    """PGs 1.0 … 1.9 on osd.0 and osd.1 of six; 20 copies each with the default objects."""
    cluster = Cluster(hosts(6)).pool(1, size=2)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", "0 1", objects=objects)
    return cluster


def wanted(count: int = 10, **fields: Any) -> List[PgChange]:
    return [change_of(f"1.{ps:x}", "0 1", "2 1", **fields) for ps in range(count)]


def batch(cluster: Cluster, changes: Sequence[PgChange],
          limits: ThrottleLimits = FREE) -> Decision:
    return next_batch(cluster.snapshot(), changes, limits, {})


def sent(decision: Decision) -> List[str]:
    return [change.pgid for change in decision.send]


def later(decision: Decision) -> List[PgChange]:
    return [change for change, _ in decision.waiting]


@pytest.mark.parametrize("limit, misplaced, count", [
    (0.05, 0, 1),      # 200 copies: 10 may be misplaced less a margin of 5 %, a change is 10
    (0.1053, 0, 2), (0.1052, 0, 1), (0.157, 0, 2), (0.158, 0, 3),
    (0.158, 10, 2), (0.158, 30, 0), (0.158, 29, 0), (0.5, 95, 0), (0.5, 400, 0)])
def test_budget_counts_object_copies(limit: float, misplaced: int, count: int) -> None:
    limits = limited(max_misplaced_ratio=limit, misplaced_copies=misplaced)
    decision = batch(ten_pgs(), wanted(), limits)
    assert len(decision.send) == count
    assert decision.send + later(decision) == wanted()
    assert throttled(decision)
    assert "misplaced" in str(why(decision))


def test_one_change_may_go_alone_above_the_limit_where_nothing_is_misplaced() -> None:
    limits = limited(max_misplaced_ratio=0.01)
    alone = batch(ten_pgs(), wanted(), limits)
    assert sent(alone) == ["1.0"]
    waiting = batch(ten_pgs(), wanted(), limits._replace(misplaced_copies=1))
    assert waiting.send == []
    for enough in (0.05, 0.1):      # that a margin is left of the limit is no matter here
        ample = batch(ten_pgs(), wanted(), limits._replace(max_misplaced_ratio=enough))
        assert sent(ample) == ["1.0"]


def test_empty_pgs_cost_nothing() -> None:
    cluster = Cluster(hosts(6)).pool(1, size=2).pg("1.a", "0 1", objects=5)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", "0 1", num_bytes=0, objects=0)
    limits = limited(max_misplaced_ratio=0.1, misplaced_copies=1)
    assert len(batch(cluster, wanted(), limits).send) == 10


def test_moves_of_one_pg_stay_together() -> None:
    pairs = [change_of(f"1.{ps:x}", "0 1", "2 3") for ps in range(4)]
    assert sent(batch(ten_pgs(), pairs, limited(max_moves_per_round=3))) == ["1.0"]
    assert sent(batch(ten_pgs(), pairs, limited(max_moves_per_round=1))) == ["1.0"]


def test_pg_that_cannot_be_moved_for_now_waits() -> None:
    cluster = ten_pgs()
    cluster.up["1.0"] = cluster.up["1.0"][:1]
    decision = batch(cluster, wanted(1))
    assert later(decision) == wanted(1)
    assert decision.dropped == []
    assert why(decision) == "a shard has no OSD"


def test_change_waits_for_a_target_that_is_down_but_in() -> None:
    """OSDs flap; what was planned for them is not thrown away each time."""
    decision = batch(ten_pgs().osd(2, state=["exists"], up=0), wanted(1))
    assert (decision.send, later(decision)) == ([], wanted(1))
    assert why(decision) == "osd.2 is down"
    assert not throttled(decision)


def test_done_in_a_replicated_pool_means_the_same_set() -> None:
    cluster = ten_pgs().pg("1.0", "1 2")
    assert batch(cluster, wanted(1)).done == wanted(1)
