"""OSDs above nearfull come first, and nothing else takes what their relief is short of."""
from __future__ import annotations

from typing import List, Mapping, Sequence

import pytest
from tests.execution.limits import FREE, batch, limited, sent, why
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

from equilibrium_mgr.execution.batch import by_urgency, next_batch
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.snapshot.model import Snapshot


def cluster() -> Cluster:
    """PGs 1.0, 1.1, … of 2 GiB on osd.0 to osd.3 by turns; osd.2 is at 90 GiB, osd.3 at 88."""
    made = Cluster(hosts(8)).pool(1, size=1).osd(2, used=90 * GIB).osd(3, used=88 * GIB)
    for ps in range(16):
        made.pg(f"1.{ps:x}", [ps % 4], num_bytes=2 * GIB)
    return made


def plan() -> List[PgChange]:
    return [change_of(f"1.{ps:x}", [ps % 4], [4 + ps % 4]) for ps in range(16)]


def relief(made: Cluster, changes: Sequence[PgChange]) -> Mapping[str, int]:
    """Which changes relieve an overfull OSD, and which one."""
    snapshot = made.snapshot()
    _, urgent = by_urgency(snapshot, osd_traffic(snapshot, {}), changes)
    return urgent


def test_shards_without_data_relieve_nothing() -> None:
    """Else all that leave an overfull OSD would be urgent, before what frees space there."""
    made = cluster().pg("1.2", "2", num_bytes=0).pg("1.6", "2", num_bytes=0)
    assert relief(made, plan()) == {"1.a": 2, "1.e": 2, "1.3": 3, "1.7": 3}


def test_only_what_shares_an_osd_waits_for_relief_that_waits_for_its_osds() -> None:
    """One move each off osd.2 and osd.3 at a time; those between other OSDs go as well."""
    limits = limited(max_backfills_per_osd=1)
    decision = batch(cluster(), plan(), limits)
    assert sent(decision) == ["1.2", "1.3", "1.0", "1.1"]
    assert str(why(decision)).endswith("(max_backfills_per_osd)")
    to_its_target = change_of("1.4", "0", "6")   # where 1.6 is to go
    assert "1.4" not in sent(batch(cluster(), [to_its_target, *plan()[5:]], limits))


def test_the_rest_goes_on_where_relief_is_not_held_up_by_the_throttle() -> None:
    assert len(sent(batch(cluster(), plan(), limited(max_misplaced_ratio=2.0)))) == 16
    made = cluster().osd(6, used=85 * GIB).osd(7, used=85 * GIB)   # its targets are full
    going = sent(batch(made, plan(), FREE))
    assert sorted(going) == ["1.0", "1.1", "1.4", "1.5", "1.8", "1.9", "1.c", "1.d"]


def with_objects() -> Snapshot:
    """Ten copies a PG, 160 in all."""
    snapshot = cluster().snapshot()
    return snapshot._replace(object_copies=160, pgs={
        pgid: pg._replace(objects=10) for pgid, pg in snapshot.pgs.items()})


@pytest.mark.parametrize("limit, count", [
    (0.30, 4), (0.42, 5), (0.5, 6), (1.0, 8)])    # of 160 copies, less 5 %
def test_misplaced_budget_is_left_for_relief_that_waits(limit: float, count: int) -> None:
    """Two shards may leave an OSD: 1.2, 1.6 and 1.3, 1.7 go, 1.a waits and needs 10 copies."""
    limits = limited(max_backfills_per_osd=2, max_misplaced_ratio=limit)
    decision = next_batch(with_objects(), plan(), limits, {})
    assert sent(decision)[:4] == ["1.2", "1.6", "1.3", "1.7"]
    assert len(decision.send) == count


def test_what_is_under_way_counts_as_relief() -> None:
    made = cluster()
    for pgid in ("1.2", "1.6"):
        made.pg(pgid, "6", num_bytes=2 * GIB, acting="2")
    urgent = relief(made, plan())
    assert [pgid for pgid, osd in urgent.items() if osd == 2] == ["1.a"]


def test_most_relief_per_byte_goes_first() -> None:
    """1.0 moves two shards and only one of them leaves the overfull OSD."""
    made = Cluster(hosts(8)).pool(1, size=2).osd(2, used=86 * GIB)
    made.pg("1.0", "2 1", num_bytes=2 * GIB).pg("1.1", "2 1", num_bytes=2 * GIB)
    changes = [change_of("1.0", "2 1", "4 5"), change_of("1.1", "2 1", "4 1")]
    assert relief(made, changes) == {"1.1": 2}
