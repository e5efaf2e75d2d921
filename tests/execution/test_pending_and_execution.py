"""Our own account of what is on its way, the monitor's result, and a plan's progress."""
from __future__ import annotations

from typing import Sequence

import pytest

from equilibrium_mgr.execution.dispatcher import SentBefore
from equilibrium_mgr.execution.outcomes import Cooldown
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.snapshot.model import Snapshot, UpmapItems
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.fakes import Harness
from tests.support.placed import pairs
from tests.support.tables import rows
from tests.support.units import GIB

CHANGE = change_of("1.0", "0 1", "2 1", shard_bytes=3 * GIB, objects=10)


def after_sending(state: str = "active+clean", reported: int = 100, moving: bool = False,
                  up: str = "2 1") -> Cluster:
    """The map of epoch 101 has the items; the PG was last reported at `reported`."""
    cluster = Cluster(hosts(6)).pool(1, size=2)
    cluster.epoch = 101
    return cluster.pg("1.0", up, objects=10, items="0>2", acting="0 1" if moving else None,
                      state=state, reported=reported, uncopied_ratio=0.5)


def before_sending() -> Snapshot:
    """The map of epoch 100, without the items."""
    cluster = Cluster(hosts(6)).pool(1, size=2)
    cluster.epoch = 100
    cluster.pg("1.0", "0 1", objects=10)
    cluster.pg("1.1", "0 1", objects=5)
    return cluster.snapshot()


def pending(now: float = 990.0) -> PendingMoves:
    ours = PendingMoves()
    ours.add(CHANGE, before_sending(), now)
    return ours


def is_pending(ours: PendingMoves) -> bool:
    return list(ours.entries) == ["1.0"]


def recalled(snapshot: Snapshot, sent_at: float = 990.0, items: UpmapItems = ()) -> PendingMoves:
    """The account of another mgr after 1.0 was sent at epoch 100, when it had these items."""
    ours = PendingMoves()
    ours.restore_sending({"1.0": (sent_at, 100, items)}, snapshot, 1000.0)
    return ours


@pytest.mark.parametrize("state, moving", [
    ("active+clean", True), ("active+remapped+backfill_wait", False), ("peering", False),
    ("activating", False), ("active+recovering", False)])
def test_moving_pg_has_not_arrived_whatever_it_reported(state: str, moving: bool) -> None:
    ours = pending()
    ours.remove_arrived(after_sending(state, 105, moving).snapshot())
    assert is_pending(ours)


@pytest.mark.parametrize("up, waits", [("2 1", True), ("1 2", False)])
def test_silent_pg_is_believed_in_time_though_the_clock_was_set_back(up: str, waits: bool) -> None:
    """A new primary reports within seconds, unless it withholds the PG."""
    ours = pending(now=1000.0 + 3600.0)
    snapshot = after_sending(up=up).snapshot()
    ours.remove_arrived(snapshot)
    assert is_pending(ours)
    ours.remove_arrived(snapshot._replace(taken_at=1000.0 + 601.0))
    assert is_pending(ours) == waits


@pytest.mark.parametrize("state, moving, sent_at", [
    ("active+remapped+backfilling", True, 990.0), ("active+clean", False, 800.0),
    ("active+clean", False, 1100.0)])
def test_recall_of_what_shows_or_is_long_over(state: str, moving: bool, sent_at: float) -> None:
    assert not recalled(after_sending(state, moving=moving).snapshot(), sent_at).entries


def test_recall_of_what_the_map_shows_and_reports_do_not() -> None:
    """The PG has its pg_temp, and Ceph's count of misplaced objects is as old as its state."""
    snapshot = after_sending(moving=True).snapshot()
    assert recalled(snapshot).uncounted_copies(snapshot) == 10


def test_recall_of_what_was_sent_back() -> None:
    assert recalled(before_sending(), items=pairs("0>2")).entries["1.0"].sources == (2,)


def test_recall_of_what_has_reported_since_or_never_does() -> None:
    """A failover makes an epoch at which clean PGs do not report."""
    snapshot = after_sending(reported=101).snapshot()._replace(epoch=140)
    ours = recalled(snapshot)
    ours.remove_arrived(snapshot)
    assert not ours.entries
    assert not ours.awaits_reports
    silent = after_sending().snapshot()._replace(epoch=140)
    ours = recalled(silent)
    assert ours.awaits_reports
    ours.remove_arrived(silent._replace(taken_at=1059.0))
    assert not ours.entries
    assert not ours.awaits_reports


def test_items_of_a_steered_pg_do_not_tell_where_its_data_was() -> None:
    """The OSD that CRUSH would have chosen in place of a lost one never had it."""
    harness = Harness(after_sending())
    now = harness.now
    sent = SentBefore({}, {"1.0": (now, 100, ())}, {}, {}, {"1.0": now})
    harness.balancer.dispatcher.restore(sent, {})
    assert not harness.gateway.sent_before


@pytest.mark.parametrize("reported, unseen, state", rows("""
100  10  active+clean
100  10  active+remapped+backfilling
101  10  peering
105  10  remapped+peering
0    10  unknown
101  10
101  0   activating+remapped
101  0   active+recovering+undersized+remapped
"""))
def test_report_that_counts_what_we_misplace(reported: str, unseen: str, state: str) -> None:
    snapshot = after_sending(state, int(reported), True).snapshot()
    assert pending().uncounted_copies(snapshot) == int(unseen)


def by_log(acting: str, state: str = "active+recovery_wait+undersized+degraded+remapped"
           ) -> Snapshot:
    """1.0 was sent from osd.1 to osd.3, which its log fills."""
    cluster = Cluster(hosts(8)).pool(1, size=3)
    return cluster.pg("1.0", "6 2 3", acting=acting, items="1>3", objects=10,
                      state=state).snapshot()


def test_another_mgr_s_moves_that_wait_for_recovery_by_their_log_are_recalled() -> None:
    """However long ago they were sent: Ceph counts them as degraded, nobody else as misplaced."""
    ours, others = PendingMoves(), PendingMoves()
    waits = by_log("6 2 1", "active+recovery_wait+degraded+remapped")
    ours.restore_log_recovery(waits, ())
    assert ours.uncounted_copies(waits) == 10
    counted = by_log("6 2 1", "active+remapped+backfilling")
    others.restore_log_recovery(counted, ())
    assert ours.uncounted_copies(counted) == others.uncounted_copies(counted) == 0


@pytest.mark.parametrize("sent_before, copies", [(["1.0"], 10), ([], 0)])
def test_of_those_whose_former_osd_is_not_known_the_ones_that_it_sent_are_recalled(
        sent_before: Sequence[str], copies: int) -> None:
    """Of others an OSD may as well have lost its copy, and they are not ours."""
    ours = PendingMoves()
    ours.restore_log_recovery(by_log("6 2"), sent_before)
    assert ours.uncounted_copies(by_log("6 2")) == copies


def test_change_that_landed_earlier_than_it_was_seen() -> None:
    """The map that shows the batch is of epoch 108; the PG has reported at 104."""
    ours = pending()
    ours.confirm([CHANGE], 108)
    moving = after_sending("active+remapped+backfill_wait", 104, True)
    assert ours.uncounted_copies(moving.snapshot()) == 0
    assert ours.uncounted_copies(after_sending("active+clean", 104, True).snapshot()) == 10


def test_all_that_was_sent_cools_down_and_what_is_gone_is_forgotten() -> None:
    """pg_cooldown is for each PG, however many were sent; those that are gone take no memory."""
    cooldown, pgids = Cooldown(), [f"1.{ps:x}" for ps in range(5000)]
    cooldown.start(pgids[:3000], 100.0)
    cooldown.start(pgids[3000:], 200.0)
    assert len(cooldown.seconds_left(300.0, 3600.0)) == 5000
    cooldown.observe(300.0, frozenset(pgids[:10]))
    assert sorted(cooldown.moved) == sorted(pgids[:10])
