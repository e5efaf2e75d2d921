"""Which changes go now: budget, limits, and what has become senseless."""
from __future__ import annotations

from typing import Any, List, Sequence

import pytest

from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.execution.outcomes import DroppedChange
from equilibrium_mgr.plan.model import PgChange
from tests.execution.limits import FREE, limited, throttled, why
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB


def ten_pgs(objects: int = 10) -> Cluster:
    """PGs 1.0 … 1.9 on osd.0 and osd.1 of six; 20 copies each with the default objects."""
    cluster = Cluster(hosts(6)).pool(1, size=2)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", [0, 1], objects=objects)
    return cluster


def wanted(count: int = 10, **fields: Any) -> List[PgChange]:
    return [change_of(f"1.{ps:x}", (0, 1), (2, 1), **fields) for ps in range(count)]


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
    assert throttled(decision) and "misplaced" in str(why(decision))


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
    cluster = Cluster(hosts(6)).pool(1, size=2).pg("1.a", [0, 1], objects=5)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", [0, 1], num_bytes=0, objects=0)
    limits = limited(max_misplaced_ratio=0.1, misplaced_copies=1)
    assert len(batch(cluster, wanted(), limits).send) == 10


def test_moves_of_one_pg_stay_together() -> None:
    pairs = [change_of(f"1.{ps:x}", (0, 1), (2, 3)) for ps in range(4)]
    assert sent(batch(ten_pgs(), pairs, limited(max_moves_per_round=3))) == ["1.0"]
    assert sent(batch(ten_pgs(), pairs, limited(max_moves_per_round=1))) == ["1.0"]


def test_immovable_pg_is_given_up_with_its_reason() -> None:
    cluster = ten_pgs()
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [0, 1]}]
    decision = batch(cluster, wanted(1))
    assert decision.waiting == []
    assert decision.dropped == [DroppedChange(wanted(1)[0], "placed by a full pg-upmap")]


def test_another_primary_voids_nothing() -> None:
    cluster = ten_pgs().pg("1.0", [1, 0]).pg("1.1", [1, 2], items=[(0, 2)])
    decision = batch(cluster, wanted(2))
    assert sent(decision) == ["1.0"]
    assert [change.pgid for change in decision.done] == ["1.1"]


def test_pg_that_cannot_be_moved_for_now_waits() -> None:
    cluster = ten_pgs()
    cluster.up["1.0"] = cluster.up["1.0"][:1]
    decision = batch(cluster, wanted(1))
    assert later(decision) == wanted(1) and decision.dropped == []
    assert why(decision) == "a shard has no OSD"


def reason_of(cluster: Cluster, change: PgChange) -> str:
    decision = batch(cluster, [change])
    assert not (decision.send or decision.waiting or decision.done)
    dropped, = decision.dropped
    assert dropped.change == change
    return dropped.reason


def test_raw_mapping_has_changed() -> None:
    change = change_of("1.0", (3, 1), (2, 1))
    assert reason_of(ten_pgs(), change) == "CRUSH maps the PG differently now"


def test_somebody_else_has_moved_the_pg() -> None:
    cluster = ten_pgs().pg("1.0", [4, 1], items=[(0, 4)])
    assert reason_of(cluster, change_of("1.0", (0, 1), (2, 1))) == (
        "somebody else has moved the PG")


def test_change_waits_for_a_target_that_is_down_but_in() -> None:
    """OSDs flap; what was planned for them is not thrown away each time."""
    decision = batch(ten_pgs().osd(2, state=["exists"], up=0), wanted(1))
    assert (decision.send, later(decision)) == ([], wanted(1))
    assert why(decision) == "osd.2 is down" and not throttled(decision)


def test_done_in_a_replicated_pool_means_the_same_set() -> None:
    cluster = ten_pgs().pg("1.0", [1, 2])
    assert batch(cluster, wanted(1)).done == wanted(1)


def test_done_in_an_erasure_coded_pool_means_the_same_positions() -> None:
    cluster = Cluster(hosts(6)).pool(1, size=3, k=2).pg("1.0", [2, 1, 0])
    change = change_of("1.0", (0, 1, 5), (0, 1, 2))
    assert batch(cluster, [change]).done == []


def test_fill_limit_counts_the_peak() -> None:
    """Sources keep their copy while targets fill: inbound counts, outbound does not help."""
    cluster = ten_pgs().pg("1.a", [2, 3], num_bytes=40 * GIB, acting=[4, 3])
    cluster.pg("1.b", [5, 3], num_bytes=20 * GIB, acting=[2, 3]).osd(2, used=46 * GIB)
    cluster.osd(5, used=89 * GIB)       # and osd.2 is not the fullest meanwhile
    decision = batch(cluster, wanted(), FREE)
    assert len(decision.send) == 2      # 46 + 40 + 2 x 1 <= 88
    assert throttled(decision)
    assert str(why(decision)).startswith("osd.2 would pass its fill limit of 88.0%")


@pytest.mark.parametrize("used, count", [(8.9, 1), (9.1, 0), (7.9, 2)])
def test_an_osd_that_gives_and_takes_is_not_the_fullest_meanwhile(used: float, count: int) -> None:
    """osd.0 and osd.1 hold 10 GiB; a shard of 5 GiB leaves osd.2 while those of 1 GiB come."""
    cluster = ten_pgs().pg("1.b", [5, 3], num_bytes=5 * GIB, acting=[2, 3])
    decision = batch(cluster.osd(2, used=int(used * GIB)), wanted(), FREE)
    assert len(decision.send) == count and throttled(decision) and not decision.full
    assert "would be the fullest of class hdd" in str(why(decision))
