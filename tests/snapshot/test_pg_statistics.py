"""PG statistics between the rare full readings."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

import pytest

from equilibrium_mgr.snapshot.pg_statistics import PgStatistics
from equilibrium_mgr.snapshot.model import PgRecord


def pg_stat(pgid: str, objects: int = 10, omap: int = 0, up: Sequence[int] = (0, 1),
            acting: Sequence[int] = (0, 1), **stat_sum: int) -> Dict[str, Any]:
    return {"pgid": pgid, "state": "active+clean", "up": list(up), "acting": list(acting),
            "stat_sum": dict({"num_objects": objects, "num_omap_bytes": omap, "num_bytes": 1},
                             **stat_sum)}


def pool_stat(pool: int, objects: int, omap: int = 0) -> Dict[str, Any]:
    return {"poolid": pool, "stat_sum": {"num_objects": objects, "num_omap_bytes": omap}}


def progress(num_bytes: int = 1000, recovered: int = 0, **fields: Any) -> Dict[str, Any]:
    return dict({"num_bytes": num_bytes, "num_bytes_recovered": recovered,
                 "reported_epoch": 5, "state": "active+clean"}, **fields)


class Reader:
    """A PgStatistics with the arguments that a test does not care about filled in."""

    def __init__(self, pgs: List[Dict[str, Any]], pools: List[Dict[str, Any]]) -> None:
        self.statistics = PgStatistics()
        self.statistics.read_full(pgs, pools)
        self.pools = pools

    def read(self, pgs: Dict[str, Dict[str, Any]], pools: Any = None,
             moving: Any = (), up: Any = (), acting: Any = ()) -> Mapping[str, PgRecord]:
        return self.statistics.records(pgs, pools or self.pools, dict.fromkeys(moving, acting),
                                       {pgid: up for pgid in pgs})


def test_growth_of_the_pool_goes_where_bytes_have_come() -> None:
    reader = Reader([pg_stat("1.0", 6, 50), pg_stat("1.1", 4, 50)], [pool_stat(1, 10, 100)])
    now = reader.read({"1.0": progress(3001), "1.1": progress(1001)}, [pool_stat(1, 50, 500)])
    assert [(r.num_objects, r.omap_bytes) for r in now.values()] == [(36, 350), (14, 150)]


def test_omap_that_a_deep_scrub_shows_measures_no_other_pg() -> None:
    """Of PGs with equally much one had shown it at the full reading, and another has since; what a
    PG without a figure has is estimated."""
    reader = Reader([pg_stat("1.0", omap=900), pg_stat("1.1"), pg_stat("1.2")],
                    [pool_stat(1, 30, 900)])
    now = reader.read({f"1.{ps}": progress() for ps in range(3)}, [pool_stat(1, 30, 1800)])
    assert [record.omap_bytes for record in now.values()] == [900, 0, 0]


def test_bytes_below_zero_are_none_that_have_gone() -> None:
    """Statistics of a PG may be wrong until its scrub."""
    reader = Reader([pg_stat("1.0", num_bytes=-10 ** 9), pg_stat("1.1", num_bytes=1000)],
                    [pool_stat(1, 20)])
    now = reader.read({"1.0": progress(-10 ** 9), "1.1": progress(1500)}, [pool_stat(1, 30)])
    assert [record.num_objects for record in now.values()] == [10, 20]


def test_objects_without_bytes_do_not_follow_bytes_of_few_others() -> None:
    """Directories come to all PGs of a metadata pool, and segments of the journal to one."""
    reader = Reader([pg_stat(f"1.{ps}", 5000, num_bytes=10 ** 7) for ps in range(4)],
                    [pool_stat(1, 20_000)])
    now = reader.read({f"1.{ps}": progress(10 ** 7 + (4 * 10 ** 7 if ps == 0 else 0))
                       for ps in range(4)}, [pool_stat(1, 24_000)])
    assert [record.num_objects for record in now.values()] == [6000] * 4


def test_pgs_that_were_split_since_the_full_reading_have_their_part_by_bytes() -> None:
    reader = Reader([pg_stat(f"1.{n:x}", 20, 8) for n in range(2)], [pool_stat(1, 40, 16)])
    now = reader.read({"1.0": progress(500), "1.1": progress(1000), "1.2": progress(500)},
                      [pool_stat(1, 40, 16)])
    assert [(r.num_objects, r.omap_bytes) for r in now.values()] == [(10, 4), (20, 8), (10, 4)]


def test_pool_of_few_objects_that_is_filled_is_shared_out_anew() -> None:
    """Three objects in one PG do not put all that has come since into it."""
    reader = Reader([pg_stat("1.0", 3), pg_stat("1.1", 0)], [pool_stat(1, 3)])
    now = reader.read({"1.0": progress(), "1.1": progress()}, [pool_stat(1, 1000)])
    assert [record.num_objects for record in now.values()] == [502, 498]


def test_log_recovery_without_a_pg_temp_lowers_what_is_to_come() -> None:
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    found = [reader.read({"1.0": progress(1000, recovered, state="active+recovering+degraded")},
                         up=(0, 1))["1.0"].uncopied_ratio for recovered in (5000, 5250, 6000)]
    assert found == [1.0, 0.75, 0.0]


def moving(reader: Reader, recovered: int) -> float:
    return reader.read({"1.0": progress(1000, recovered)}, moving={"1.0"},
                       up=(2, 1))["1.0"].uncopied_ratio


def test_recovered_bytes_lower_what_is_to_come() -> None:
    """num_bytes_recovered is cumulative: only what came since the transfer was seen counts."""
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    assert moving(reader, 5000) == 1.0
    assert moving(reader, 5250) == 0.75
    assert moving(reader, 6000) == 0.0
    assert moving(reader, 9000) == 0.0


def test_counter_that_went_back_does_not_add_to_what_is_to_come() -> None:
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    moving(reader, 500)
    assert moving(reader, 100) == 1.0


def test_full_reading_tells_how_far_a_transfer_is() -> None:
    stat = pg_stat("1.0", 10, up=(2, 1), acting=(0, 1), num_objects_misplaced=4,
                   num_bytes_recovered=700)
    reader = Reader([stat], [pool_stat(1, 10)])
    assert moving(reader, 700) == 0.4
    assert abs(moving(reader, 900) - 0.2) < 1e-9


def test_transfer_that_ended_is_forgotten() -> None:
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    moving(reader, 0)
    assert moving(reader, 1000) == 0.0
    assert reader.read({"1.0": progress(1000, 1000)})["1.0"].uncopied_ratio == 1.0
    assert moving(reader, 1000) == 1.0      # the next transfer starts from there


def test_a_moment_of_peering_does_not_begin_a_transfer_anew() -> None:
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    moving(reader, 5000)
    assert moving(reader, 5750) == 0.25
    for pg in (progress(1000, 5750, state="peering"),
               # its new primary counts from elsewhere, or has said nothing at all
               progress(1000, 20, state="peering"),
               progress(0, 0, state="unknown", reported_epoch=0)):
        assert reader.read({"1.0": pg}, up=(2, 1))["1.0"].uncopied_ratio == 0.25


_MOVES: Dict[str, Any] = {"state": "active+remapped+backfilling"}


def flapping(steps: Sequence[Any], recovered: int) -> Mapping[int, float]:
    """Of PG 1.0, OSD → what is to come at the last of these steps (up set, acting set): osd.2 has
    had `recovered` of its 1000 bytes before the second one, and nothing since."""
    reader = Reader([pg_stat("1.0", 10)], [pool_stat(1, 10)])
    reader.read({"1.0": progress()}, up=(0, 1, 5))
    for count, (up, acting) in enumerate(steps):
        for came in (0, recovered) if not count else (recovered,):
            found = reader.read({"1.0": progress(recovered=came, **_MOVES)}, moving={"1.0"}, up=up,
                                acting=acting)["1.0"]
    assert found.uncopied_ratio == pytest.approx(sum(found.uncopied.values()) / len(found.uncopied))
    return found.uncopied


_BEGINS = (0, 2, 5), (0, 1, 5)


@pytest.mark.parametrize("steps", [
    [((0, 2), (0, 1))], [((0, 2), ())], [((0, 2), (0, 1)), _BEGINS],
    [((0, 2), ()), ((0, 2), (0, 1)), ((0, 2, 5), ()), _BEGINS]])
def test_a_holder_that_goes_and_comes_back_does_not_begin_the_movement_anew(
        steps: Sequence[Any]) -> None:
    """Ceph goes on where the target's backfill was (pg_info_t::last_backfill)."""
    assert flapping([_BEGINS, *steps], 700) == {2: pytest.approx(0.3)}


@pytest.mark.parametrize("steps", [
    [((0, 5), (0, 1, 5)), _BEGINS],                     # the target itself was away
    [((0, 5), ()), ((0, 2, 5), ()), _BEGINS]])
def test_a_target_that_was_away_begins_anew(steps: Sequence[Any]) -> None:
    assert flapping([_BEGINS, *steps], 700) == {2: 1.0}


@pytest.mark.parametrize("steps, other", [
    ([((0, 2, 7), (0, 1))], 7),                         # another OSD has come in
    ([((0, 2), (0, 1)), ((0, 2, 7), (0, 1, 5))], 7),
    ([((0, 2), (0, 1)), ((0, 2, 5), (0, 1))], 5)])      # the OSD that is back has lost its copy
def test_another_target_takes_nothing_from_one_that_stays(steps: Sequence[Any], other: int) -> None:
    assert flapping([_BEGINS, *steps], 700) == {2: pytest.approx(0.3), other: 1.0}
    # and goes again
    assert flapping([_BEGINS, *steps, ((0, 2, 5), (0, 1, 5))], 700) == {2: pytest.approx(0.3)}


@pytest.mark.parametrize("state, expected", [
    ("backfilling", [{2: 0.3, 7: 1.0}, {2: 0.3, 7: 0.5}, {2: 0.1, 7: 0.1}]),
    ("recovering", [{2: 0.3, 7: 1.0}, {2: 0.0, 7: 0.5}, {2: 0.0, 7: 0.1}])])
def test_which_of_two_targets_gets_an_object(state: str, expected: Sequence[Any]) -> None:
    """Backfill: the one that is behind (PrimaryLogPG::recover_backfill); recovery: both."""
    reader, found = Reader([pg_stat("1.0", 10)], [pool_stat(1, 10)]), []
    for recovered, up in ((0, (0, 2)), (700, (0, 2)), (700, (0, 2, 7)), (1200, (0, 2, 7)),
                          (1600, (0, 2, 7))):
        found.append(reader.read({"1.0": progress(1000, recovered, state=f"active+{state}")},
                                 moving={"1.0"}, up=up, acting=(0, 1))["1.0"].uncopied)
    assert found[2:] == [pytest.approx(one) for one in expected]


def test_full_reading_does_not_take_targets_for_alike() -> None:
    """It tells how much all of them lack together."""
    reader = Reader([pg_stat("1.0", 10)], [pool_stat(1, 10)])
    for recovered, up in ((0, (0, 2)), (700, (0, 2)), (700, (0, 2, 7))):
        reader.read({"1.0": progress(1000, recovered, **_MOVES)}, moving={"1.0"}, up=up,
                    acting=(0, 1))
    for missing, expected in ((13, {2: 0.3, 7: 1.0}), (11, {2: 0.2, 7: 0.9})):
        reader.statistics.read_full([pg_stat("1.0", 10, up=(0, 2, 7), num_bytes_recovered=700,
                                             num_objects_misplaced=missing)], [pool_stat(1, 10)])
        assert reader.read({"1.0": progress(1000, 700, **_MOVES)}, moving={"1.0"}, up=(0, 2, 7),
                           acting=(0, 1))["1.0"].uncopied == pytest.approx(expected)


def test_a_pg_that_is_down_as_all_is_read_has_all_to_come() -> None:
    """It counts nothing as missing."""
    stat = dict(pg_stat("1.0", 10, up=(2, 1), acting=(1,)), state="down+remapped")
    found = Reader([stat], [pool_stat(1, 10)]).read(
        {"1.0": progress(state="down+remapped")}, moving={"1.0"}, up=(2, 1), acting=(1,))["1.0"]
    assert found.uncopied == {2: 1.0}


def test_a_movement_that_nobody_saw_is_not_part_of_the_next() -> None:
    """As the PG went away and back while there was no monitor, hence no reading."""
    reader = Reader([pg_stat("1.0", 10)], [pool_stat(1, 10)])
    reader.read({"1.0": progress(1000, 5000)})
    assert [moving(reader, recovered) for recovered in (6000, 6400)] == [1.0, 0.6]


def test_a_degraded_pg_that_gets_a_target_counts_from_its_last_reading() -> None:
    reader = Reader([pg_stat("1.0", 10)], [pool_stat(1, 10)])
    reader.read({"1.0": progress(1000, 0, state="active+undersized+degraded")}, up=(0,))
    assert reader.read({"1.0": progress(1000, 400, state="active+degraded+backfilling")},
                       moving={"1.0"}, up=(0, 2), acting=(0,))["1.0"].uncopied == {2: 0.6}


def omap_alone(steps: Sequence[Any], size: int = 0) -> List[Dict[str, float]]:
    """PG → what is to come at each step (copies that the pool lacks, PG → state); PGs have 100
    objects each, and get one shard, but 1.2 two. `size`: bytes of the pool."""
    pgs = [pg_stat(f"1.{number}", 100) for number in range(4)]
    reader, found = Reader(pgs, [pool_stat(1, 400)]), []
    for missing, states in steps:
        pool = {"poolid": 1, "stat_sum": {"num_objects": 400, "num_objects_misplaced": missing,
                                          "num_objects_degraded": 0, "num_bytes": size}}
        progresses = {pg["pgid"]: progress(0) for pg in pgs}
        progresses.update({pgid: progress(0, state=f"active+remapped+{state}")
                           for pgid, state in states.items()})
        now = reader.statistics.records(
            progresses, [pool], dict.fromkeys(states, (0, 1, 3)),
            {pgid: (0, 2, 7) if pgid == "1.2" else (0, 1, 2) for pgid in progresses})
        found.append({pgid: now[pgid].uncopied_ratio for pgid in states})
    return found


def test_pgs_of_omap_alone_are_told_by_the_objects_of_their_pool() -> None:
    """They have no bytes that could be recovered."""
    waits, runs = "backfill_wait", "backfilling"
    one = [(100, {"1.0": runs}), (60, {"1.0": runs}), (60, {"1.0": waits}), (25, {"1.0": runs})]
    assert omap_alone(one) == [{"1.0": ratio} for ratio in (1.0, 0.6, 0.6, 0.25)]
    # of other pools it is not known whose objects have come
    assert omap_alone(one, 1000) == [{"1.0": 1.0}] * 4
    # one waits, one gets two shards
    several = {"1.0": waits, "1.2": runs}
    assert omap_alone([(300, several), (200, several), (150, several)])[1:] == [
        {"1.0": 1.0, "1.2": 0.5}, {"1.0": 1.0, "1.2": 0.25}]
    # copies that nobody can bring count as well: then it is not known, and all may be left
    assert omap_alone([(100, {"1.0": runs}), (150, {"1.0": runs})])[1] == {"1.0": 1.0}
    # one that has not peered has reported nothing
    assert omap_alone([(200, {"1.0": runs, "1.3": waits}), (80, {
        "1.0": runs, "1.3": "clean"})])[1] == {"1.0": 0.8, "1.3": 1.0}


@pytest.mark.parametrize("misplaced, degraded, uncopied_ratio", [
    (0, 10, 1.0), (0, 4, .4), (3, 4, .7)])
def test_copies_that_no_osd_has_are_still_to_come(misplaced: int, degraded: int,
                                                  uncopied_ratio: float) -> None:
    """As after an OSD was lost: a full reading in the middle must not take them for arrived."""
    stat = pg_stat("1.0", 10, up=(2, 1), acting=(1,), num_objects_misplaced=misplaced,
                   num_objects_degraded=degraded)
    assert moving(Reader([stat], [pool_stat(1, 10)]), 0) == pytest.approx(uncopied_ratio)


def test_a_pg_that_is_unknown_as_it_begins_to_move() -> None:
    """Seen on 20.2.4: its new primary has not reported; then its counter reads 0."""
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    reader.read({"1.0": progress(1000, 9000)})
    reader.read({"1.0": progress(0, 0, state="unknown", reported_epoch=0)})
    assert moving(reader, 9000) == 1.0
    assert moving(reader, 9500) == 0.5


def test_what_came_before_the_transfer_was_seen_counts() -> None:
    """The counter as of the reading before the PG had a pg_temp is where it began."""
    reader = Reader([pg_stat("1.0")], [pool_stat(1, 10)])
    reader.read({"1.0": progress(1000, 5000)})
    assert moving(reader, 5400) == 0.6
