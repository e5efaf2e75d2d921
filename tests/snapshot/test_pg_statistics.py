"""PG statistics between the rare full readings."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

import pytest
from tests.support.placed import osds

from equilibrium_mgr.snapshot.pg_statistics import PgStatistics
from equilibrium_mgr.snapshot.model import PgRecord


def pg_stat(pgid: str, objects: int = 10, omap: int = 0, up: Sequence[int] = (0, 1),
            acting: Sequence[int] = (0, 1), **stat_sum: int) -> Dict[str, Any]:
    return {"pgid": pgid, "state": "active+clean", "up": list(up), "acting": list(acting),
            "stat_sum": dict({"num_objects": objects, "num_omap_bytes": omap, "num_bytes": 1},
                             **stat_sum)}


def pool_stat(objects: int, omap: int = 0) -> Dict[str, Any]:
    return {"poolid": 1, "stat_sum": {"num_objects": objects, "num_omap_bytes": omap}}


def progress(num_bytes: int = 1000, recovered: int = 0, **fields: Any) -> Dict[str, Any]:
    return {"num_bytes": num_bytes, "num_bytes_recovered": recovered, "reported_epoch": 5,
            "state": "active+clean", **fields}


class Reader:
    """A PgStatistics with the arguments that a test does not care about filled in; without any,
    PG 1.0 has ten objects and 1000 bytes."""

    def __init__(self, *pgs: Dict[str, Any], pool: Optional[Dict[str, Any]] = None) -> None:
        self.statistics = PgStatistics()
        self.pools = [pool or pool_stat(10)]
        self.statistics.read_full(pgs or [pg_stat("1.0")], self.pools)

    def read(self, *pgs: Dict[str, Any], pool: Any = None, acting: Any = None,
             up: Sequence[int] = ()) -> List[PgRecord]:
        """Of PGs 1.0, 1.1 and so on; those with an acting set move."""
        named = {f"1.{number}": pg for number, pg in enumerate(pgs)}
        moving = {} if acting is None else dict.fromkeys(named, acting)
        pools = [pool] if pool else self.pools
        found = self.statistics.records(named, pools, moving, dict.fromkeys(named, up))
        return list(found.values())

    def one(self, recovered: int = 0, up: Sequence[int] = (2, 1), acting: Any = (),
            num_bytes: int = 1000, **fields: Any) -> PgRecord:
        """PG 1.0 on its way."""
        (record,) = self.read(progress(num_bytes, recovered, **fields), acting=acting, up=up)
        return record

    def moving(self, *recovered: int) -> List[float]:
        """What is to come at each of these counts."""
        return [self.one(count).uncopied_ratio for count in recovered]


def test_omap_that_a_deep_scrub_shows_measures_no_other_pg() -> None:
    """Of PGs with equally much one had shown it at the full reading, and another has since; what a
    PG without a figure has is estimated."""
    reader = Reader(pg_stat("1.0", omap=900), pg_stat("1.1"), pg_stat("1.2"),
                    pool=pool_stat(30, 900))
    now = reader.read(*[progress()] * 3, pool=pool_stat(30, 1800))
    assert [record.omap_bytes for record in now] == [900, 0, 0]


def test_objects_without_bytes_do_not_follow_bytes_of_few_others() -> None:
    """Directories come to all PGs of a metadata pool, and segments of the journal to one."""
    held = 10 ** 7
    reader = Reader(*[pg_stat(f"1.{ps}", 5000, num_bytes=held) for ps in range(4)],
                    pool=pool_stat(20_000))
    now = reader.read(progress(5 * held), *[progress(held)] * 3, pool=pool_stat(24_000))
    assert [record.num_objects for record in now] == [6000] * 4


def test_pgs_that_were_split_since_the_full_reading_have_their_part_by_bytes() -> None:
    reader = Reader(pg_stat("1.0", 20, 8), pg_stat("1.1", 20, 8), pool=pool_stat(40, 16))
    now = reader.read(progress(500), progress(1000), progress(500))
    assert [(r.num_objects, r.omap_bytes) for r in now] == [(10, 4), (20, 8), (10, 4)]


def test_pool_of_few_objects_that_is_filled_is_shared_out_anew() -> None:
    """Three objects in one PG do not put all that has come since into it."""
    reader = Reader(pg_stat("1.0", 3), pg_stat("1.1", 0), pool=pool_stat(3))
    now = reader.read(progress(), progress(), pool=pool_stat(1000))
    assert [record.num_objects for record in now] == [502, 498]


def test_log_recovery_without_a_pg_temp_lowers_what_is_to_come() -> None:
    reader, found = Reader(), []
    for recovered in (5000, 5250, 6000):
        record = reader.one(recovered, (0, 1), None, state="active+recovering+degraded")
        found.append(record.uncopied_ratio)
    assert found == [1.0, 0.75, 0.0]


def test_counter_that_went_back_does_not_add_to_what_is_to_come() -> None:
    assert Reader().moving(500, 100) == [1.0, 1.0]


def test_transfer_that_ended_is_forgotten() -> None:
    reader = Reader()
    assert reader.moving(0, 1000) == [1.0, 0.0]
    assert reader.one(1000, (), None).uncopied_ratio == 1.0
    assert reader.moving(1000) == [1.0]      # the next transfer starts from there


def test_a_moment_of_peering_does_not_begin_a_transfer_anew() -> None:
    reader = Reader()
    assert reader.moving(5000, 5750) == [1.0, 0.25]
    for pg in (progress(1000, 5750, state="peering"),
               # its new primary counts from elsewhere, or has said nothing at all
               progress(1000, 20, state="peering"),
               progress(0, 0, state="unknown", reported_epoch=0)):
        assert reader.read(pg, up=(2, 1))[0].uncopied_ratio == 0.25


_BEGINS = "0 2 5 / 0 1 5"
_MOVES = "active+remapped+backfilling"


def flapping(steps: str) -> Mapping[int, float]:
    """Of PG 1.0, OSD → what is to come at the last of these steps after _BEGINS: osd.2 has had 700
    of its 1000 bytes before them, and nothing since. A step is the up and the acting set."""
    reader = Reader()
    reader.one(0, (0, 1, 5), None)
    recovered = 0
    for step in f"{_BEGINS}; {_BEGINS}; {steps}".split("; "):
        up, _, acting = step.partition(" /")
        found = reader.one(recovered, osds(up), osds(acting), state=_MOVES)
        recovered = 700
    assert found.uncopied_ratio == pytest.approx(sum(found.uncopied.values()) / len(found.uncopied))
    return found.uncopied


@pytest.mark.parametrize("steps", [
    "0 2 / 0 1",
    "0 2 /",
    f"0 2 / 0 1; {_BEGINS}",
    f"0 2 /; 0 2 / 0 1; 0 2 5 /; {_BEGINS}"])
def test_a_holder_that_goes_and_comes_back_does_not_begin_the_movement_anew(steps: str) -> None:
    """Ceph goes on where the target's backfill was (pg_info_t::last_backfill)."""
    assert flapping(steps) == {2: pytest.approx(0.3)}


@pytest.mark.parametrize("steps", [
    f"0 5 / 0 1 5; {_BEGINS}",       # the target itself was away
    f"0 5 /; 0 2 5 /; {_BEGINS}"])
def test_a_target_that_was_away_begins_anew(steps: str) -> None:
    assert flapping(steps) == {2: 1.0}


@pytest.mark.parametrize("steps, other", [
    ("0 2 7 / 0 1", 7),              # another OSD has come in
    ("0 2 / 0 1; 0 2 7 / 0 1 5", 7),
    ("0 2 / 0 1; 0 2 5 / 0 1", 5)])  # the OSD that is back has lost its copy
def test_another_target_takes_nothing_from_one_that_stays(steps: str, other: int) -> None:
    assert flapping(steps) == {2: pytest.approx(0.3), other: 1.0}
    assert flapping(f"{steps}; {_BEGINS}") == {2: pytest.approx(0.3)}   # and goes again


@pytest.mark.parametrize("state, expected", [
    ("active+backfilling", [{2: 0.3, 7: 1.0}, {2: 0.3, 7: 0.5}, {2: 0.1, 7: 0.1}]),
    ("active+recovering", [{2: 0.3, 7: 1.0}, {2: 0.0, 7: 0.5}, {2: 0.0, 7: 0.1}])])
def test_which_of_two_targets_gets_an_object(state: str, expected: Sequence[Any]) -> None:
    """Backfill: the one that is behind (PrimaryLogPG::recover_backfill); recovery: both."""
    reader = one_and_then_two(state)
    found = [reader.one(count, (0, 2, 7), (0, 1), state=state) for count in (700, 1200, 1600)]
    assert [one.uncopied for one in found] == [pytest.approx(one) for one in expected]


def one_and_then_two(state: str) -> Reader:
    """osd.2 has had 700 of its bytes; osd.7 is to come."""
    reader = Reader()
    for recovered in (0, 700):
        reader.one(recovered, (0, 2), (0, 1), state=state)
    return reader


def test_full_reading_does_not_take_targets_for_alike() -> None:
    """It tells how much all of them lack together."""
    reader, up = one_and_then_two(_MOVES), (0, 2, 7)
    reader.one(700, up, (0, 1), state=_MOVES)
    for missing, expected in ((13, {2: 0.3, 7: 1.0}), (11, {2: 0.2, 7: 0.9})):
        stat = pg_stat("1.0", up=up, num_bytes_recovered=700, num_objects_misplaced=missing)
        reader.statistics.read_full([stat], reader.pools)
        found = reader.one(700, up, (0, 1), state=_MOVES)
        assert found.uncopied == pytest.approx(expected)


def test_a_pg_that_is_down_as_all_is_read_has_all_to_come() -> None:
    """It counts nothing as missing."""
    state = "down+remapped"
    reader = Reader(dict(pg_stat("1.0", up=(2, 1), acting=(1,)), state=state))
    assert reader.one(0, (2, 1), (1,), state=state).uncopied == {2: 1.0}


def test_a_movement_that_nobody_saw_is_not_part_of_the_next() -> None:
    """As the PG went away and back while there was no monitor, hence no reading."""
    reader = Reader()
    reader.one(5000, (), None)
    assert reader.moving(6000, 6400) == [1.0, 0.6]


def omap_alone(*steps: Any, size: int = 0) -> List[Dict[str, float]]:
    """PG → what is to come at each step (copies that the pool lacks, PG → state); PGs have 100
    objects each, and get one shard, but 1.2 two. `size`: bytes of the pool."""
    ups = dict.fromkeys(("1.0", "1.1", "1.2", "1.3"), (0, 1, 2))
    ups["1.2"] = (0, 2, 7)
    reader, found = Reader(*[pg_stat(pgid, 100) for pgid in ups], pool=pool_stat(400)), []
    for missing, states in steps:
        pool = pool_stat(400)
        pool["stat_sum"] = {"num_objects": 400, "num_objects_misplaced": missing,
                            "num_objects_degraded": 0, "num_bytes": size}
        progresses = dict.fromkeys(ups, progress(0))
        for pgid, state in states.items():
            progresses[pgid] = progress(0, state=f"active+remapped+{state}")
        moving = dict.fromkeys(states, (0, 1, 3))
        now = reader.statistics.records(progresses, [pool], moving, ups)
        found.append({pgid: now[pgid].uncopied_ratio for pgid in states})
    return found


def test_pgs_of_omap_alone_are_told_by_the_objects_of_their_pool() -> None:
    """They have no bytes that could be recovered."""
    waits, runs = "backfill_wait", "backfilling"
    running = {"1.0": runs}
    one = [(100, running), (60, running), (60, {"1.0": waits}), (25, running)]
    assert omap_alone(*one) == [{"1.0": ratio} for ratio in (1.0, 0.6, 0.6, 0.25)]
    # of other pools it is not known whose objects have come
    assert omap_alone(*one, size=1000) == [{"1.0": 1.0}] * 4
    # one waits, one gets two shards
    several = {"1.0": waits, "1.2": runs}
    assert omap_alone((300, several), (200, several), (150, several))[1:] == [
        {"1.0": 1.0, "1.2": 0.5}, {"1.0": 1.0, "1.2": 0.25}]
    # copies that nobody can bring count as well: then it is not known, and all may be left
    assert omap_alone((100, running), (150, running))[1] == {"1.0": 1.0}
    # one that has not peered has reported nothing
    silent = {"1.0": runs, "1.3": "clean"}
    found = omap_alone((200, {"1.0": runs, "1.3": waits}), (80, silent))
    assert found[1] == {"1.0": 0.8, "1.3": 1.0}


@pytest.mark.parametrize("misplaced, degraded, uncopied_ratio", [
    (0, 10, 1.0), (0, 4, .4), (3, 4, .7)])
def test_copies_that_no_osd_has_are_still_to_come(misplaced: int, degraded: int,
                                                  uncopied_ratio: float) -> None:
    """As after an OSD was lost: a full reading in the middle must not take them for arrived."""
    stat = pg_stat("1.0", up=(2, 1), acting=(1,), num_objects_misplaced=misplaced,
                   num_objects_degraded=degraded)
    assert Reader(stat).moving(0) == [pytest.approx(uncopied_ratio)]


def test_a_pg_that_is_unknown_as_it_begins_to_move() -> None:
    """Seen on 20.2.4: its new primary has not reported; then its counter reads 0."""
    reader = Reader()
    reader.one(9000, (), None)
    reader.one(0, (), None, 0, state="unknown", reported_epoch=0)
    assert reader.moving(9000, 9500) == [1.0, 0.5]


def test_a_pg_below_min_size_is_copied() -> None:
    """Of a pool of size 3 two OSDs were lost: no client reads or writes it, and Ceph copies it."""
    reader = Reader()
    state = "undersized+degraded+remapped+backfilling+peered"
    lost = [reader.one(count, (5, 2, 22), (2,), state=state) for count in (6000, 6400)]
    assert lost[-1].uncopied_ratio == 0.6
