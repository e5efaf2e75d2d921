"""What OSDs took, held against what was believed of the shards that came."""
from __future__ import annotations

from typing import List, Sequence, Set

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.execution.size_check import Misprediction, SizeCorrections
from equilibrium_mgr.snapshot.model import Snapshot

TARGET = 2


def cluster() -> Cluster:
    """OSDs of 100 GiB; two pools of 12 PGs of 1 GiB and one copy each, on osd.0 and 1."""
    made = Cluster(hosts(1, 6), {0: OSD_RULE})
    for pool in (1, 2):
        made.pool(pool, size=1)
        for ps in range(12):
            made.pg(f"{pool}.{ps:x}", [ps % 2], num_bytes=GIB, objects=1000)
    return made


class Story:
    """Moves PGs to osd.2, beside whose shards there is then as much as the test says."""

    def __init__(self) -> None:
        self.cluster, self.check = cluster(), SizeCorrections()
        self.pending: Sequence[str] = ()

    def send(self, *pgids: str, at: float = 1000.0) -> Story:
        self.check.expect([change_of(pgid, self.cluster.up[pgid], [TARGET]) for pgid in pgids],
                          self.snapshot(at, 0))
        for pgid in pgids:
            self.cluster.up[pgid] = [TARGET]
        return self

    def snapshot(self, at: float, beside: int) -> Snapshot:
        made = self.cluster.snapshot()
        osds = {number: osd._replace(residual_bytes=beside, least_residual_bytes=beside)
                if number == TARGET else osd for number, osd in made.osds.items()}
        return made._replace(taken_at=at, osds=osds)

    def look(self, at: float, beside: int) -> List[Misprediction]:
        return self.check.observe(self.snapshot(at, beside), self.pending)

    def confirmed(self, beside: int, at: float = 1100.0) -> List[Misprediction]:
        """What is found of an excess that lasts."""
        assert not self.look(at, beside)
        return self.look(at + 95.0, beside)


@pytest.mark.parametrize("objects, stops", [(1000, False), (100, True)])
def test_a_belief_that_shrinks_is_no_excess(objects: int, stops: bool) -> None:
    """A shard that was there before is believed to be smaller than then: of as many objects it
    takes what it took, and what the OSD has beside its shards only seems to grow."""
    story = Story()
    story.cluster.pg("2.1", [TARGET], num_bytes=6 * GIB, objects=1000)
    story.send("1.0", "1.2")
    story.cluster.pg("2.1", [TARGET], num_bytes=2 * GIB, objects=objects)
    assert bool(story.look(1100.0, 4 * GIB) or story.look(1195.0, 4 * GIB)) == stops


@pytest.mark.parametrize("pgs, beside", [(1, GIB // 2), (12, 2 * GIB), (1, -GIB)])
def test_noise_is_no_excess(pgs: int, beside: int) -> None:
    story = Story().send(*[f"1.{ps:x}" for ps in range(pgs)])
    story.look(1100.0, beside)
    assert not story.check.has_unconfirmed_excess


def test_a_single_report_is_not_believed() -> None:
    story = Story().send("1.0")
    story.look(1100.0, 4 * GIB)
    assert story.check.has_unconfirmed_excess
    story.look(1150.0, 0)
    assert not story.check.has_unconfirmed_excess
    assert not story.look(1200.0, 4 * GIB)


@pytest.mark.parametrize("of_second, stopped", [(2, {1, 2}), (1, {1})])
def test_pools_that_brought_much_are_concerned(of_second: int, stopped: Set[int]) -> None:
    story = Story().send("1.0", "1.1", "1.2", "1.3", *[f"2.{ps}" for ps in range(of_second)])
    found = story.confirmed(6 * GIB)
    assert {m.pool for m in found} == set(story.check.bytes_per_object) == stopped


def test_an_osd_is_found_once_until_it_has_rested() -> None:
    story = Story().send("1.0")
    assert story.confirmed(4 * GIB)
    story.look(1300.0, 8 * GIB)
    assert not story.check.has_unconfirmed_excess
    story.look(1700.0, 8 * GIB)   # ends the watch
    story.check.bytes_per_object = {}
    story.send("1.2", at=1800.0)
    assert story.confirmed(4 * GIB, at=1900.0)


def test_what_is_pending_is_waited_for() -> None:
    story = Story().send("1.0")
    story.pending = ["1.0"]
    for at in range(1100, 3000, 300):
        story.look(at, 0)
    story.pending = ()
    assert story.confirmed(4 * GIB, at=3100.0)


def test_an_osd_that_falls_silent_after_an_excess_holds_nothing_up() -> None:
    """Whatever is sent waits for a second look at an excess."""
    story = Story().send("1.0")
    story.check.observe(story.snapshot(1100.0, 4 * GIB), ())
    assert story.check.has_unconfirmed_excess
    silent = story.snapshot(1110.0, 4 * GIB)._replace(stale_osds=frozenset([TARGET]))
    story.check.observe(silent, ("1.0",))
    assert not story.check.has_unconfirmed_excess
