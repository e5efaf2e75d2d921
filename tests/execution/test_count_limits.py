"""PG shards per OSD and pairs of upmap items are bounded."""
from __future__ import annotations

from typing import Any, List

from tests.execution.limits import limited, why
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts

from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.plan.model import STEER, PgChange


def cluster() -> Cluster:
    """Ten PGs on osd.0, three on osd.1, none on osd.2; two of those on osd.1 by upmaps."""
    made = Cluster(hosts(3)).pool(1, size=1)
    for ps in range(10):
        made.pg(f"1.{ps:x}", "0")
    made.pg("1.a", "1").pg("1.b", "1", items="0>1").pg("1.c", "1", items="0>1")
    return made


def wanted(target: int, count: int = 10) -> List[PgChange]:
    return [change_of(f"1.{ps:x}", "0", [target]) for ps in range(count)]


def batch(changes: List[PgChange], **limits: Any) -> Decision:
    return next_batch(cluster().snapshot(), changes, limited(**limits), {})


def test_shards_that_are_still_to_leave_count_however_they_are_carried() -> None:
    """Where a PG moves by its log, the OSD that loses it is in no acting set."""
    snapshot = cluster().snapshot()
    moving = snapshot.pgs["1.0"]._replace(up=(2,), acting=(2,), holders=(1,))
    snapshot = snapshot._replace(pgs={**snapshot.pgs, "1.0": moving})
    decision = next_batch(snapshot, wanted(1)[1:], limited(max_pg_shards=5), {})
    assert len(decision.send) == 1


def test_what_an_osd_still_deletes_counts_by_its_own_report() -> None:
    """osd.2 has no PG by the map, and reports four; two may come."""
    snapshot = cluster().snapshot()
    snapshot.osds[2] = snapshot.osds[2]._replace(pg_shards=4)
    decision = next_batch(snapshot, wanted(2), limited(max_pg_shards=6), {})
    assert len(decision.send) == 2
    assert "osd_max_pg_per_osd_hard_ratio" in str(why(decision))


def test_changes_that_drop_or_alter_items_go() -> None:
    home = change_of("1.b", "0", "0", before="1")
    altered = change_of("1.c", "0", "2", before="1")
    assert home.items == ()
    assert len(altered.items) == 1
    assert len(batch([altered, home], max_upmap_items=0.1).send) == 2
    # and what was dropped makes room
    assert len(batch([home] + wanted(2), max_upmap_items=2).send) == 2


def test_shards_that_stay_may_have_more_pairs_and_new_targets_may_not() -> None:
    """CRUSH moves a PG from osd.0 to osd.1: it is held, or goes to osd.2 instead."""
    moving = cluster().pg("1.d", "1", acting="0", state="active+remapped+backfill_wait")
    sent = [len(next_batch(moving.snapshot(), [change_of("1.d", "1", target)],
                           limited(max_upmap_items=0.1), {}, kind=STEER).send) for target in "02"]
    assert sent == [1, 0]
