"""OSDs above nearfull come first, and nothing else takes their room in the budget."""
from __future__ import annotations

from typing import List

from builders import GIB, Cluster, change_of, hosts

from equilibrium_mgr.executor.batch import Limits, next_batch
from equilibrium_mgr.executor.transit import transit
from equilibrium_mgr.executor.urgency import by_urgency
from equilibrium_mgr.planner.plan import PgChange

FREE = Limits(max_misplaced_ratio=1.0, max_moves=1000, fill_limit=0.0, misplaced_copies=0,
              in_flight=())


def cluster() -> Cluster:
    """PGs 1.0, 1.1, … of 2 GiB on osd.0 to osd.3 by turns; osd.2 is at 90 GiB, osd.3 at 88."""
    made = Cluster(hosts(8)).pool(1, size=1).osd(2, used=90 * GIB).osd(3, used=88 * GIB)
    for ps in range(16):
        made.pg("1.%x" % ps, [ps % 4], num_bytes=2 * GIB)
    return made


def plan() -> List[PgChange]:
    return [change_of("1.%x" % ps, [ps % 4], [4 + ps % 4]) for ps in range(16)]


def test_what_relieves_the_fullest_comes_first_and_no_more_than_it_takes() -> None:
    """osd.2 needs three moves to get below 85 GiB, osd.3 two."""
    snapshot = cluster().snapshot()
    ranked = by_urgency(snapshot, transit(snapshot, {}), plan())
    assert [change.pgid for change in ranked.changes[:5]] == ["1.2", "1.6", "1.a", "1.3", "1.7"]
    assert ranked.urgent == {"1.2": 2, "1.6": 2, "1.a": 2, "1.3": 3, "1.7": 3}
    rest = [change.pgid for change in ranked.changes[5:]]
    assert rest == [c.pgid for c in plan() if c.pgid not in ranked.urgent]


def test_what_is_under_way_counts_as_relief() -> None:
    made = cluster()
    for pgid in ("1.2", "1.6"):
        made.pg(pgid, [6], num_bytes=2 * GIB, acting=[2])
    snapshot = made.snapshot()
    ranked = by_urgency(snapshot, transit(snapshot, {}), plan())
    assert [pgid for pgid, osd in ranked.urgent.items() if osd == 2] == ["1.a"]


def test_most_relief_per_byte_goes_first() -> None:
    """1.0 moves two shards and only one of them leaves the overfull OSD."""
    made = Cluster(hosts(8)).pool(1, size=2).osd(2, used=86 * GIB)
    made.pg("1.0", [2, 1], num_bytes=2 * GIB).pg("1.1", [2, 1], num_bytes=2 * GIB)
    changes = [change_of("1.0", (2, 1), (4, 5)), change_of("1.1", (2, 1), (4, 1))]
    snapshot = made.snapshot()
    ranked = by_urgency(snapshot, transit(snapshot, {}), changes)
    assert ranked.urgent == {"1.1": 2}


def test_plan_order_where_nothing_is_overfull() -> None:
    made = cluster().osd(2, used=80 * GIB).osd(3, used=84 * GIB)
    snapshot = made.snapshot()
    assert by_urgency(snapshot, transit(snapshot, {}), plan()).changes == plan()


def test_batch_relieves_first_and_keeps_the_rest_of_the_budget_for_it() -> None:
    """One move each off osd.2 and osd.3; what only evens out waits though it would fit."""
    decision = next_batch(cluster().snapshot(), plan(), FREE._replace(max_backfills=1), {})
    assert [change.pgid for change in decision.send] == ["1.2", "1.3"]
    assert decision.throttled and len(decision.later) == 14
    assert [c.pgid for c in decision.later] == [
        c.pgid for c in plan() if c.pgid not in ("1.2", "1.3")]


def test_the_rest_goes_on_where_relief_is_not_held_up_by_the_throttle() -> None:
    everything = next_batch(cluster().snapshot(), plan(),
                            FREE._replace(max_misplaced_ratio=2.0), {})
    assert len(everything.send) == 16
    made = cluster().osd(6, used=85 * GIB).osd(7, used=85 * GIB)   # its targets are full
    decision = next_batch(made.snapshot(), plan(), FREE, {})
    assert {change.pgid for change in decision.send} == {
        "1.0", "1.1", "1.4", "1.5", "1.8", "1.9", "1.c", "1.d"}


def test_change_of_a_pg_that_is_gone_is_not_urgent() -> None:
    snapshot = cluster().snapshot()
    gone = [change_of("9.0", [2], [6])]
    assert by_urgency(snapshot, transit(snapshot, {}), gone).urgent == {}
    assert [reason for _, reason in next_batch(snapshot, gone, FREE, {}).dropped] == [
        "its pool or PG is gone"]


def test_fullest_osd_first() -> None:
    made = cluster().osd(3, used=94 * GIB)
    snapshot = made.snapshot()
    ranked = by_urgency(snapshot, transit(snapshot, {}), plan())
    assert list(ranked.urgent.values())[:5] == [3, 3, 3, 3, 2]
