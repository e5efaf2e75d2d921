"""The misplaced ratio stays within its limit however late Ceph's own count is."""
from __future__ import annotations

import random
from typing import FrozenSet, Set

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of
from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, uneven
from tests.support.units import GIB
from tests.support.few import few

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot


class LateReports:
    """A cluster whose PGs report some rounds after they have changed, each when it likes; what
    they have reported is what `pg_status` adds up."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.harness = Harness(uneven(pgs=40, num_bytes=GIB))
        self.harness.gateway.ratio = 0.2
        self.cluster: Cluster = self.harness.cluster
        self._reported: Set[str] = set()
        self.foreign = self._rng.randrange(0, 60)

    def moving(self) -> Set[str]:
        return set(self.harness.sent) - self.arrived

    arrived: FrozenSet[str] = frozenset()

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
        self.harness.report(pgid, state=state, reported_epoch=self.cluster.epoch)


def plan_of_forty() -> Plan:
    changes = [change_of(f"1.{ps:x}", "0", [1 + ps % 2]) for ps in range(40)]
    return small_plan(0)._replace(changes=tuple(changes))


@pytest.mark.parametrize("seed", few(range(8), 4))
def test_true_count_never_passes_the_limit(seed: int) -> None:
    late = LateReports(seed)
    late.go_on()
    executing(late.harness, plan_of_forty())
    for _ in range(300):
        before = late.truth()
        late.harness.round(10)
        assert late.truth() <= max(80, before), late.harness.reason
        late.go_on()
        harness = late.harness
        if harness.execution is None or len(harness.sent) == 40:
            break
    assert len(late.harness.sent) == 40   # and it gets there


def test_what_waits_for_recovery_by_its_log_is_misplaced_though_ceph_calls_it_degraded() -> None:
    """`active+recovery_wait+degraded` is no misplaced copy to Ceph: no count shows our moves."""
    harness = Harness(uneven(pgs=40, num_bytes=GIB))
    cluster, builder, harness.gateway.ratio = harness.cluster, SnapshotBuilder(), 0.2
    cluster.pg_status = {"misplaced_objects": 0, "misplaced_total": 400}

    def look(fresh: bool = False) -> Snapshot:
        return builder.build(cluster.reading()._replace(taken_at=harness.now))
    harness.gateway.snapshot = look   # type: ignore[method-assign]
    executing(harness, plan_of_forty())
    for _ in range(6):
        harness.round(61)
        for pgid in harness.sent:
            cluster.acting.pop(pgid, None)
            harness.report(pgid, state="active+recovery_wait+degraded",
                           reported_epoch=cluster.epoch)
        assert 10 * len(harness.sent) <= 80
    assert harness.sent
    assert harness.state == "moving"
