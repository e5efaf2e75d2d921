"""The misplaced ratio stays within its limit however late Ceph's own count is."""
from __future__ import annotations

import random

import pytest
from builders import GIB, Cluster, change_of
from fakes import Desk
from rounds import kept, small_plan, uneven

from equilibrium_mgr.planner.plan import Plan
from equilibrium_mgr.snapshot.build import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.snapshot.reading import PgRecord

LIMIT = 32    # of 120 copies, at a ratio of 0.27
MARGIN = 0.05


def test_what_others_misplace_and_what_we_sent_a_moment_ago_add_up() -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27
    desk.gateway.cluster.pg_status = {"misplaced_objects": 20, "misplaced_total": 120}
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    for _ in range(6):
        desk.round(5)
        desk.gateway.cluster.acting.clear()   # no PG has peered: Ceph shows nothing of it
        assert 20 + 10 * len(desk.gateway.sent) <= LIMIT
    assert len(desk.gateway.sent) == 1
    view = desk.balancer.view
    assert view is not None and view.misplaced_ratio == pytest.approx(30 / 120)


class LateReports:
    """A cluster whose PGs report some rounds after they have changed, each when it likes; what
    they have reported is what `pg_status` adds up."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.desk = Desk(uneven(pgs=40, num_bytes=GIB))
        self.desk.gateway.ratio = 0.2
        self.cluster: Cluster = self.desk.gateway.cluster
        self._reported: set = set()
        self.foreign = self._rng.randrange(0, 60)

    def moving(self) -> set:
        return set(self.desk.gateway.sent) - self.arrived

    arrived: frozenset = frozenset()

    def truth(self) -> int:
        return self.foreign + 10 * len(self.moving())

    def go_on(self) -> None:
        """Some PGs peer, some report, some arrive."""
        for pgid in sorted(self.moving()):
            if pgid not in self._reported and self._rng.random() < 0.4:
                self._reported.add(pgid)
                self._report(pgid, "active+remapped+backfill_wait")
            elif pgid in self._reported and self._rng.random() < 0.2:
                self.arrived |= {pgid}
                self.cluster.acting.pop(pgid, None)
                self._report(pgid, "active+clean")
        self.foreign -= self._rng.randrange(0, min(5, self.foreign) + 1)
        shown = len(self._reported - self.arrived)
        self.cluster.pg_status = {"misplaced_objects": self.foreign + 10 * shown,
                                  "misplaced_total": 400}

    def _report(self, pgid: str, state: str) -> None:
        record: PgRecord = self.cluster.records[pgid]
        self.cluster.records[pgid] = record._replace(
            state=state, reported_epoch=self.cluster.epoch)


def plan_of_forty() -> Plan:
    changes = [change_of("1.%x" % ps, [0], [1 + ps % 2]) for ps in range(40)]
    return small_plan(0)._replace(changes=tuple(changes))


@pytest.mark.parametrize("seed", range(8))
def test_true_count_never_passes_the_limit(seed: int) -> None:
    late = LateReports(seed)
    late.go_on()
    late.desk.balancer.execute("p", kept(late.desk, plan=plan_of_forty()))
    for _ in range(300):
        before = late.truth()
        late.desk.round(10)
        assert late.truth() <= max(80, before), late.desk.balancer.reason
        late.go_on()
        if late.desk.balancer.walk is None or len(late.desk.gateway.sent) == 40:
            break
    assert len(late.desk.gateway.sent) == 40   # and it gets there


def test_what_waits_for_recovery_by_its_log_is_misplaced_though_ceph_calls_it_degraded() -> None:
    """`active+recovery_wait+degraded` is no misplaced copy to Ceph: no count shows our moves."""
    desk = Desk(uneven(pgs=40, num_bytes=GIB))
    cluster, builder, desk.gateway.ratio = desk.gateway.cluster, SnapshotBuilder(), 0.2
    cluster.pg_status = {"misplaced_objects": 0, "misplaced_total": 400}

    def look(fresh: bool = False) -> Snapshot:
        return builder.build(cluster.reading()._replace(taken_at=desk.now))
    desk.gateway.snapshot = look   # type: ignore[method-assign]
    desk.balancer.execute("p", kept(desk, plan=plan_of_forty()))
    for _ in range(6):
        desk.round(61)
        for pgid in desk.gateway.sent:
            cluster.acting.pop(pgid, None)
            cluster.records[pgid] = cluster.records[pgid]._replace(
                state="active+recovery_wait+degraded", reported_epoch=cluster.epoch)
        assert 10 * len(desk.gateway.sent) <= 80
    assert desk.gateway.sent and desk.balancer.state == "throttled"
