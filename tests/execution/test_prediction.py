"""What moves did to OSDs, held against what was predicted of them."""
from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts, single_copies
from tests.support.rules import OSD_RULE
from tests.support.units import GIB, MIB

from equilibrium_mgr.execution.size_check import prediction
from equilibrium_mgr.execution.size_check.prediction import Findings, PredictionCheck, targets_of
from equilibrium_mgr.snapshot.model import Osd

OSDS = 6


def cluster(pools: int = 1, objects: int = 1000) -> Cluster:
    """OSDs of 100 GiB that use 40; each pool has 12 PGs of 1 GiB and one copy, on osd.0 and 1."""
    made = Cluster(hosts(1, OSDS), {0: OSD_RULE})
    for pool in range(1, pools + 1):
        made.pool(pool, size=1)
        for ps in range(12):
            made.pg(f"{pool}.{ps:x}", [ps % 2], num_bytes=GIB, objects=objects)
    for osd in range(OSDS):
        made.osd(osd, used=40 * GIB)
    return made


class Story:
    """Moves PGs to osd.2, and lets OSDs grow as the test says."""

    def __init__(self, made: Optional[Cluster] = None) -> None:
        self.cluster = made or cluster()
        self.check = PredictionCheck()
        self.now = 1000.0
        self.check.observe(self.cluster.snapshot()._replace(taken_at=400.0), ())
        self.moved: List[str] = []
        self.pending: List[str] = []

    def send(self, *pgids: str) -> Story:
        before = self.cluster.snapshot()._replace(taken_at=self.now)
        self.check.expect({pgid: (2,) for pgid in pgids}, before)
        for pgid in pgids:
            self.cluster.acting[pgid] = self.cluster.up[pgid]
            self.cluster.up[pgid] = [2]
        self.pending += pgids
        return self

    def arrive(self, grows: Dict[int, int]) -> Story:
        """Everything that was sent is there; OSDs have grown by so many bytes."""
        self.cluster.acting.clear()
        self.pending = []
        return self.grow(grows)

    def grow(self, grows: Dict[int, int]) -> Story:
        for osd, more in grows.items():
            self.cluster.osd(osd, used=self.cluster.used[osd] + more)
        return self

    def confirm(self) -> Findings:
        """Looks until what was found is confirmed; the first look alone tells nothing."""
        assert self.look() == Findings()
        return self.look(100.0)

    def look(self, seconds: float = 60.0) -> Findings:
        self.now += seconds
        snapshot = self.cluster.snapshot()._replace(taken_at=self.now)
        return self.check.observe(snapshot, frozenset(self.pending))

    def stays_silent(self) -> bool:
        """Is nothing found now, nor suspected for the next look?"""
        return self.look() == Findings() and not self.check.has_unconfirmed_excess


def test_growth_as_predicted_is_no_finding() -> None:
    story = Story().send("1.0", "1.1")
    assert story.arrive({2: 2 * GIB}).stays_silent()


def test_osd_that_takes_clearly_more_stops_the_pool_and_tells_the_size() -> None:
    story = Story().send("1.0", "1.1")
    found = story.arrive({2: 4 * GIB}).confirm()
    assert [(m.pool, m.osd) for m in found.mispredictions] == [(1, 2)]
    misprediction = found.mispredictions[0]
    assert misprediction.predicted_bytes == 2 * GIB
    assert misprediction.measured_bytes == 4 * GIB
    assert found.bytes_per_object[1] == pytest.approx(GIB / 1000)


def test_noise_of_an_osd_is_no_finding() -> None:
    story = Story().send("1.0")
    assert story.arrive({2: GIB + 60 * MIB}).stays_silent()


def test_noise_of_a_small_osd_is_no_finding() -> None:
    story = Story()
    story.cluster.osd(2, size=8 * GIB, used=4 * GIB)   # .5 % of it is 41 MiB
    story.cluster.osd(5, used=60 * GIB)
    story.cluster.pg("1.0", [0], num_bytes=100 * MIB, objects=1000)
    story.send("1.0")
    assert story.arrive({2: 160 * MIB}).stays_silent()


def test_share_of_a_large_arrival_is_no_finding() -> None:
    """Ten shards that take a tenth more each are no alarm, though 1 GiB is 1 % of the OSD."""
    story = Story()
    story.cluster.osd(5, used=60 * GIB)
    story.send(*(f"1.{ps:x}" for ps in range(10)))
    assert story.arrive({2: 11 * GIB}).stays_silent()


def test_what_has_left_need_not_be_free_yet() -> None:
    """osd.2 gives shards and takes others; deleting takes hours."""
    story = Story()
    story.cluster.pg("1.c", [2], num_bytes=3 * GIB, objects=10)
    story.send("1.0")
    story.cluster.up["1.c"] = [3]   # has left, and its bytes are still there
    assert story.arrive({2: GIB, 3: 3 * GIB}).stays_silent()


def test_what_is_on_its_way_may_be_there_already() -> None:
    story = Story().send("1.0", "1.1")
    del story.cluster.acting["1.0"]
    story.pending = ["1.1"]
    assert story.grow({2: 2 * GIB}).stays_silent()


def test_what_clients_write_everywhere_is_no_finding() -> None:
    """All OSDs grow by what the statistics of PGs do not tell."""
    story = Story().send("1.0")
    assert story.arrive({osd: 5 * GIB for osd in range(OSDS)}).grow({2: GIB}).stays_silent()


def test_pgs_that_grow_where_they_are_explain_growth() -> None:
    story = Story()
    story.cluster.pg("1.c", [2], num_bytes=3 * GIB, objects=10)
    story.send("1.0")
    story.cluster.pg("1.c", [2], num_bytes=9 * GIB, objects=30)
    assert story.arrive({2: 7 * GIB}).stays_silent()


def test_foreign_shards_that_come_as_well_are_expected() -> None:
    story = Story().send("1.0")
    story.cluster.pg("1.d", [2], num_bytes=8 * GIB, objects=10)
    assert story.arrive({2: 9 * GIB}).stays_silent()


def test_foreign_shards_that_have_come_and_left_may_still_be_there() -> None:
    """As while an OSD is out for a while: it takes its shards back, and osd.2 deletes slowly."""
    story = Story().send("1.0")
    story.cluster.pg("1.d", [2], num_bytes=8 * GIB, objects=10)
    assert story.grow({2: 8 * GIB}).stays_silent()
    story.cluster.up["1.d"] = [3]
    assert story.arrive({2: GIB}).stays_silent()


def test_only_the_pool_that_explains_it_is_concerned() -> None:
    """osd.2 takes of both pools, osd.3 of the first alone, as predicted."""
    story = Story(cluster(pools=2))
    before = story.cluster.snapshot()._replace(taken_at=story.now)
    story.check.expect({"1.0": (2,), "2.0": (2,), "1.1": (3,)}, before)
    for pgid, osd in (("1.0", 2), ("2.0", 2), ("1.1", 3)):
        story.cluster.up[pgid] = [osd]
    found = story.arrive({2: 6 * GIB, 3: GIB}).confirm()
    assert {m.pool for m in found.mispredictions} == {2}
    assert set(found.bytes_per_object) == {2}
    assert found.bytes_per_object[2] == pytest.approx(4 * GIB / 1000, rel=0.01)


def test_what_is_still_to_come_elsewhere_tells_nothing_of_sizes() -> None:
    story = Story().send("1.0", "1.1")
    before = story.cluster.snapshot()._replace(taken_at=story.now)
    for pgid, osd in (("1.2", 3), ("1.3", 3), ("1.4", 4)):
        story.check.expect({pgid: (osd,)}, before)
        story.cluster.acting[pgid], story.cluster.up[pgid] = story.cluster.up[pgid], [osd]
    story.pending = ["1.3"]   # of osd.3 nobody can tell: it may have grown by both, or by one alone
    for pgid in ("1.0", "1.1", "1.2", "1.4"):
        story.cluster.acting.pop(pgid)
    story.grow({2: 4 * GIB, 3: 2 * GIB, 4: 2 * GIB})
    found = story.confirm()
    assert found.bytes_per_object[1] == pytest.approx(GIB / 1000, rel=0.01)


def test_an_osd_that_has_given_shards_away_tells_nothing_of_sizes() -> None:
    story = Story().send("1.0", "1.1")
    before = story.cluster.snapshot()._replace(taken_at=story.now)
    story.check.expect({"1.2": (1,)}, before)
    story.cluster.up["1.2"] = [1]
    story.cluster.up["1.5"] = [5]   # and what it had is free already
    story.arrive({2: 4 * GIB, 1: GIB})
    found = story.confirm()
    assert found.bytes_per_object[1] == pytest.approx(GIB / 1000, rel=0.01)


def test_a_small_pool_is_not_blamed_for_what_a_large_one_brought() -> None:
    """One OSD took a PG of each: the excess is that of a thousand objects, not of ten."""
    made = cluster(pools=2)
    for pgid in [pgid for pgid in made.records if pgid.startswith("1.")]:
        made.records[pgid] = made.records[pgid]._replace(num_objects=10)
    found = Story(made).send("1.0", "2.0").arrive({2: 10 * GIB}).confirm()
    assert {m.pool for m in found.mispredictions} == {2}
    assert found.bytes_per_object[2] == pytest.approx(8 * GIB / 1000, rel=0.05)


def test_ordinary_growth_elsewhere_tells_nothing_of_a_small_pool() -> None:
    """Two OSDs that took of the small pool alone grew by less than would alarm."""
    made = cluster(pools=2)
    for pgid in [pgid for pgid in made.records if pgid.startswith("1.")]:
        made.records[pgid] = made.records[pgid]._replace(num_objects=10, num_bytes=MIB)
    story = Story(made)
    before = made.snapshot()._replace(taken_at=story.now)
    sent = {"1.0": (2,), "2.0": (2,), "1.1": (3,), "1.2": (4,)}
    story.check.expect(sent, before)
    for pgid, targets in sent.items():
        made.up[pgid] = list(targets)
    found = story.arrive({2: 9 * GIB, 3: 200 * MIB, 4: 200 * MIB}).confirm()
    assert {m.pool for m in found.mispredictions} == {2}


def test_rise_of_the_highest_utilization_alarms_sooner() -> None:
    """An excess that would pass elsewhere does not where the OSD becomes the fullest by it."""
    small = 400 * MIB   # below .5 % of 100 GiB, above half of that
    story = Story().send("1.0")
    assert story.arrive({2: GIB + small}).confirm().mispredictions
    elsewhere = Story()
    elsewhere.cluster.osd(5, used=60 * GIB)
    elsewhere.send("1.0")
    assert elsewhere.arrive({2: GIB + small}).stays_silent()


def test_pgs_without_objects_are_not_blamed_for_what_clients_write() -> None:
    story = Story(cluster(pools=2))
    for ps in range(12):
        story.cluster.pg(f"2.{ps:x}", [ps % 2], num_bytes=0)
    story.send("2.0", "2.1")
    assert story.arrive({2: 4 * GIB}).stays_silent()


def test_growth_that_nothing_of_ours_explains_is_not_ours() -> None:
    """Nothing has arrived yet: the OSD grows by others' doing."""
    story = Story().send("1.0")
    assert story.grow({2: 30 * GIB}).stays_silent()


@pytest.mark.parametrize("seconds, is_late", [(30.0, True), (90.0, False)])
def test_what_has_come_a_moment_before_may_be_reported_later(seconds: float,
                                                            is_late: bool) -> None:
    """A foreign shard of 10 GiB has arrived; its OSD tells so after our batch was sent, or never
    before: then the growth is not the foreign shard's."""
    story = Story(cluster().pg("1.5", [2], num_bytes=10 * GIB, objects=1000, acting=[1]))
    story.look()
    story.cluster.acting.clear()
    story.look()
    if seconds > 60.0:
        story.look(seconds)
    story.send("1.0").arrive({2: 11 * GIB})
    assert story.stays_silent() is is_late


def taken_over(seconds: float = 0.0, moved: Sequence[str] = ("1.5",)) -> Story:
    """Another mgr, so long after its first look: the last one has moved PGs, 1.5 of 10 GiB to
    osd.2, where it has arrived."""
    story = Story(cluster().pg("1.5", [2], num_bytes=10 * GIB, objects=1000))
    story.check = PredictionCheck()
    story.check.restore(moved)
    story.look(0.0)
    if seconds:
        story.look(seconds)
    return story


@pytest.mark.parametrize("story, is_late", [
    (taken_over(), True), (taken_over(90.0), False), (taken_over(moved=["1.0", "9.9"]), False)])
def test_what_the_last_mgr_moved_may_be_reported_later(story: Story, is_late: bool) -> None:
    story.send("1.0").arrive({2: 11 * GIB})
    assert story.stays_silent() is is_late


def test_no_more_than_the_last_mgr_moved_is_late() -> None:
    story = taken_over().send("1.0").arrive({2: 16 * GIB})
    assert story.confirm().mispredictions


def test_what_comes_after_the_first_minute_of_a_mgr_is_judged() -> None:
    story = taken_over().send("1.0").grow({2: 10 * GIB})
    story.look()
    assert story.arrive({2: 5 * GIB}).confirm().mispredictions


def test_windows_end_when_settled() -> None:
    story = Story().send("1.0").arrive({2: GIB})
    story.look(60)
    assert not story.check.is_idle
    story.look(700)
    assert story.check.is_idle


def test_what_grows_hours_after_the_moves_is_not_ours() -> None:
    """At rest nobody looks; the next look comes with the drift that made it."""
    story = Story().send("1.0").arrive({2: GIB})
    story.look(60)
    assert story.grow({2: 30 * GIB}).look(3 * 3600) == Findings()


def test_settled_windows_see_nothing_any_more() -> None:
    story = Story().send("1.0").arrive({2: GIB})
    story.look(60)
    story.look(700)
    assert story.grow({2: 30 * GIB}).stays_silent()


def test_omap_that_nobody_knew_of() -> None:
    """PGs of objects without bytes: the prediction is nothing, the OSD takes 200 MiB each."""
    story = Story(Cluster(hosts(1, OSDS), {0: OSD_RULE}).pool(1, size=1))
    for ps in range(8):
        story.cluster.pg(f"1.{ps:x}", [0], num_bytes=0, objects=500)
    for osd in range(OSDS):
        story.cluster.osd(osd, size=2 * GIB, used=300 * MIB)
    found = story.send("1.0").arrive({2: 200 * MIB}).confirm()
    assert [m.pool for m in found.mispredictions] == [1]
    assert found.bytes_per_object[1] == pytest.approx(200 * MIB / 500)


def test_osd_that_is_gone_or_silent_is_left_out() -> None:
    story = Story().send("1.0").arrive({2: 9 * GIB})
    story.cluster.without_statistics = [2]
    assert story.stays_silent()


def test_targets_of_a_change() -> None:
    assert targets_of([change_of("1.0", (0, 1), (2, 1))]) == {"1.0": (2,)}


def test_what_others_grew_by_is_found_once_a_batch_not_once_an_osd(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 OSDs with 1,000 windows each look took 6 s, without a pause for others."""
    searched: List[int] = []
    median = prediction._median_growth

    def counted(osds: Sequence[Osd], used: Mapping[int, int]) -> float:
        searched.append(len(osds))
        return median(osds, used)
    monkeypatch.setattr(prediction, "_median_growth", counted)
    made, check = single_copies(*[[1]] * 40), PredictionCheck()
    before = made.snapshot()
    check.expect({"1.0": tuple(range(10))}, before)
    later = before._replace(taken_at=before.taken_at + 1200.0)   # with a reading of its own
    check.expect({"1.1": tuple(range(10, 20))}, later)
    check.observe(later._replace(taken_at=later.taken_at + 60.0), {"1.0", "1.1"})
    assert searched == [20, 20]


def test_windows_of_one_while_share_what_all_osds_used() -> None:
    """The used bytes of 10,000 OSDs are not kept anew for each batch."""
    check, made = PredictionCheck(), cluster()
    for number, pgid in enumerate(made.up):
        snapshot = made.snapshot()._replace(taken_at=1000.0 + 60 * number)
        check.expect({pgid: (2 + number % 4,)}, snapshot)
    windows = check._windows.values()
    assert len(windows) == 4 and len({id(window.all_used) for window in windows}) == 1


def test_a_single_report_stops_nothing() -> None:
    """What an OSD reports may come out of turn; the next report takes it back."""
    story = Story().send("1.0").arrive({2: 5 * GIB})
    assert story.look() == Findings() and story.check.has_unconfirmed_excess
    assert story.grow({2: -4 * GIB}).look(100.0) == Findings()
    assert not story.check.has_unconfirmed_excess


@pytest.mark.parametrize("left_behind", [0, 1000])
def test_a_little_omap_that_has_yet_to_be_compacted_makes_no_osd_a_bad_witness(
        left_behind: int) -> None:
    """All OSDs grow alike by what no PG tells; in a long rebalance each keeps a few bytes."""
    story = Story().send("1.0").arrive({2: GIB})
    for _ in range(12):
        story.grow({osd: GIB // 8 for osd in range(OSDS)})
        story.now += 50.0
        snapshot = story.cluster.snapshot()._replace(taken_at=story.now)
        snapshot = snapshot._replace(osds={
            number: osd._replace(uncompacted_bytes=left_behind)
            for number, osd in snapshot.osds.items()})
        assert story.check.observe(snapshot, story.pending) == Findings()
