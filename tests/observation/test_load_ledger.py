"""The ledger of operations: what real counters do (falls, splits, a new mgr) moves no rate."""
from __future__ import annotations

import json
from typing import Callable, Dict, List

import pytest

from equilibrium_mgr.observation.load_ledger import LoadLedger
from equilibrium_mgr.snapshot.loads import PoolCounters
from equilibrium_mgr.snapshot.model import PoolRates

HOUR = 3600.0
DAY_HOURS = 24
VMS, INDEX = 1, 2
Habit = Callable[[int], float]   # the hour since the epoch → writes a second


def steady(hour: int) -> float:
    return 100.0


def with_backup(hour: int) -> float:
    return 2020.0 if hour % 24 == 3 else 100.0   # 180 on average


def less_on_weekends(hour: int) -> float:
    return 20.0 if hour // 24 % 7 < 2 else 100.0


class Cluster:
    """Pools whose counters go on hour by hour."""

    def __init__(self, **habits: Habit) -> None:
        self.habits: Dict[int, Habit] = {VMS: habits.get("vms", steady)}
        if "index" in habits:
            self.habits[INDEX] = habits["index"]
        self.ledger = LoadLedger()
        self.hour = 0
        self.pgs = 32
        self.counts = {VMS: [0, 0, 0, 0], INDEX: [0, 0, 0, 0]}

    def counters(self) -> Dict[int, PoolCounters]:
        return {pool: PoolCounters(self.pgs, *self.counts[pool]) for pool in self.habits}

    def run(self, hours: int) -> Cluster:
        for _ in range(hours):
            for pool, habit in self.habits.items():
                gained = int(HOUR * habit(self.hour))
                self.counts[pool] = [count + gained for count in self.counts[pool]]
            self.hour += 1
            self.observe()
        return self

    def observe(self) -> None:
        self.ledger.observe(HOUR * self.hour, self.counters())

    def fail_over(self) -> None:
        stored = json.loads(json.dumps(self.ledger.to_dict()))
        self.ledger = LoadLedger()
        self.ledger.restore(stored)

    @property
    def writes(self) -> Dict[int, float]:
        return {pool: rates.writes for pool, rates in self.ledger.rates().items()}


def test_known_after_three_whole_days() -> None:
    cluster = Cluster().run(3 * DAY_HOURS - 1)
    assert cluster.ledger.rates() == {}
    assert cluster.run(1).ledger.rates() == {VMS: PoolRates(100.0, 100.0, 100.0, 100.0)}


@pytest.mark.parametrize("habit, mean", [
    (with_backup, 180.0), (less_on_weekends, (2 * 20 + 5 * 100) / 7)])
def test_rhythms_of_days_and_weeks_move_nothing(habit: Habit, mean: float) -> None:
    cluster = Cluster(vms=habit).run(8 * DAY_HOURS)
    for _ in range(14 * DAY_HOURS):
        assert cluster.run(1).writes[VMS] == pytest.approx(mean, rel=0.01)


def test_other_habits_count_day_by_day() -> None:
    cluster = Cluster(vms=lambda hour: 100.0 if hour < 240 else 800.0).run(240)
    found: List[float] = []
    for _ in range(8):
        found.append(cluster.run(DAY_HOURS).writes[VMS])
    assert found == pytest.approx([*range(200, 801, 100), 800], rel=0.03)


@pytest.mark.parametrize("figure", range(4))
def test_a_figure_that_falls_counts_as_nothing(figure: int) -> None:
    """Reads are lost with a primary, and all figures read 0 for seconds."""
    cluster = Cluster().run(30)
    cluster.counts[VMS][figure] -= 10_000_000
    cluster.run(8 * DAY_HOURS)
    assert cluster.ledger.rates()[VMS] == PoolRates(100.0, 100.0, 100.0, 100.0)


def test_a_split_counts_as_nothing() -> None:
    """Each new PG has the log version of the old one: the sum of writes doubles."""
    cluster = Cluster().run(30)
    cluster.pgs = 64
    cluster.counts[VMS][1] *= 2
    assert cluster.run(8 * DAY_HOURS).writes == {VMS: 100.0}


def test_a_pool_that_splits_all_day_has_no_rate() -> None:
    cluster = Cluster().run(80)
    for _ in range(9 * DAY_HOURS):
        cluster.pgs += 1
        cluster.run(1)
    assert cluster.writes == {}


def test_a_pool_that_is_not_seen_begins_again() -> None:
    """After a mgr's start a pool has no counters until all its PGs have reported."""
    cluster = Cluster(index=steady).run(30)
    habit = cluster.habits.pop(INDEX)
    cluster.run(2)
    cluster.habits[INDEX] = habit
    cluster.counts[INDEX] = [10 * count for count in cluster.counts[INDEX]]
    assert cluster.run(8 * DAY_HOURS).writes == {VMS: 100.0, INDEX: 100.0}


def test_a_deleted_pool_is_forgotten() -> None:
    cluster = Cluster(index=steady).run(5 * DAY_HOURS)
    del cluster.habits[INDEX]
    assert set(cluster.run(8 * DAY_HOURS).writes) == {VMS}


def test_the_next_mgr_goes_on() -> None:
    """It does not compare its first reading with the last one of the other."""
    cluster = Cluster().run(8 * DAY_HOURS + 12)
    cluster.fail_over()
    assert cluster.writes == {VMS: 100.0}
    cluster.counts[VMS] = [2 * count for count in cluster.counts[VMS]]
    cluster.run(2 * DAY_HOURS)
    assert cluster.writes == {VMS: 100.0}
    assert [len(days) for days in cluster.ledger.to_dict()["days"].values()] == [7]


def test_days_without_readings_do_not_count() -> None:
    cluster = Cluster().run(4 * DAY_HOURS)
    cluster.hour += 4 * DAY_HOURS   # the counters stood still, and nobody looked
    cluster.observe()
    assert cluster.run(1).writes == {VMS: 100.0}
    cluster.hour += 8 * DAY_HOURS
    assert cluster.run(1).writes == {}


def test_a_clock_that_is_set_back_counts_nothing() -> None:
    cluster = Cluster().run(5 * DAY_HOURS)
    cluster.hour -= 2
    assert cluster.run(2 * DAY_HOURS).writes == {VMS: 100.0}
    assert not cluster.ledger.observe(HOUR * cluster.hour, cluster.counters())


def test_idle_pools_take_no_space_and_many_busy_ones_little() -> None:
    cluster = Cluster(index=lambda hour: 0.05).run(5 * DAY_HOURS)
    assert set(cluster.writes) == {VMS}
    many = LoadLedger()
    for hour in range(8 * DAY_HOURS):
        counters = {pool: PoolCounters(8, *[123_457 * pool * hour] * 4) for pool in range(3000)}
        many.observe(HOUR * hour, counters)
    assert len(json.dumps(many.to_dict())) < 50_000


@pytest.mark.parametrize("dump", [
    {}, {"day": 1}, {"day": "x", "today": {}, "days": {}},
    {"day": 1, "today": {"a": [1, 1, 1, 1, 1]}, "days": {}},
    {"day": 1, "today": {}, "days": {"1": {"0": [1, 2]}}}])
def test_a_garbled_ledger_is_as_none(dump: Dict[str, object]) -> None:
    cluster = Cluster()
    cluster.ledger.restore(dump)
    assert cluster.run(4 * DAY_HOURS).writes == {VMS: 100.0}
