"""The ledger of operations: what real counters do (falls, splits, a new mgr) moves no rate."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict

import pytest
from tests.support.tables import rows

from equilibrium_mgr.observation.load_ledger import LoadLedger
from equilibrium_mgr.snapshot.loads import PoolCounters
from equilibrium_mgr.snapshot.model import PoolRates

Habit = Callable[[int], float]   # the hour since the epoch → operations a second
_NONE = PoolRates(0.0, 0.0, 0.0, 0.0)   # not known
#: Each PG of a split has the log version of the old one, so the sum of writes doubles. Reads are
#: lost with a primary. Pools are not seen until all PGs have reported to a mgr.
_CASES = rows("""
known after three whole days      72                        100
not before                        71                        0
reads are lost                    30 fall 200               100
a split                           30 split 200              100
split all the time                80 {1}                    0
not seen in between               30 unseen jump 200        100
known to the next mgr             204 failover              100
which does not compare            204 jump failover 48      100
nobody looked for days            96 gap 1                  100
nobody looked for too long        96 gap gap gap 1          0
the clock is set back             120 back 48               100
deleted                           120 {0}                   0
reads come back with a primary    120 fall 24 rise 48       100
one reading a day is enough       daily                     100
other habits count after days     240 hot 72                100
and in full after five            240 hot 122               800
""")


class Pool:
    """A pool whose counters go on by the hour."""

    def __init__(self, habit: Habit = lambda hour: 100.0) -> None:
        self.habit, self.ledger, self.hour = habit, LoadLedger(), 0
        self.pgs, self.counts = 32, [0, 0, 0, 0]

    def play(self, script: str) -> float:
        for word in script.split():
            if word.isdigit():
                self.run(int(word))
            else:
                getattr(self, word)()
        return max(self.ledger.rates().get(1, _NONE)[:2])

    def run(self, hours: int) -> None:
        for _ in range(hours):
            gained = int(3600.0 * self.habit(self.hour))
            self.counts = [count + gained for count in self.counts]
            self.observe({1: PoolCounters(self.pgs, *self.counts)})

    def observe(self, counters: Dict[int, PoolCounters]) -> None:
        self.hour += 1
        self.ledger.observe(3600.0 * self.hour, counters)

    def fall(self) -> None:
        self.counts[0] -= 10_000_000

    def rise(self) -> None:
        self.counts[0] += 500_000_000

    def daily(self) -> None:
        for _ in range(9):
            self.hour += 23
            self.counts = [count + 23 * 360_000 for count in self.counts]
            self.run(1)

    def jump(self) -> None:
        self.counts[1] *= 2

    def split(self) -> None:
        self.pgs += 1
        self.jump()

    def unseen(self) -> None:
        self.observe({})

    def hot(self) -> None:
        self.habit = lambda hour: 800.0

    def gap(self) -> None:
        self.hour += 70

    def back(self) -> None:
        self.hour -= 2

    def failover(self) -> None:
        stored = json.loads(json.dumps(self.ledger.to_dict()))
        self.ledger = LoadLedger()
        self.ledger.restore(stored)


@pytest.mark.parametrize("_name, script, rate", _CASES)
def test_a_rate(_name: str, script: str, rate: str) -> None:
    found = Pool().play(script.format("unseen " * 200, "split 1 " * 216))
    assert found == pytest.approx(float(rate), rel=0.02)


@pytest.mark.parametrize("habit, usual", [
    (lambda hour: 2020.0 if hour % 24 == 3 else 100.0, 180.0),
    (lambda hour: 20.0 if hour // 24 % 7 < 2 else 100.0, 100.0)], ids=["backup", "weekend"])
def test_rhythms_of_days_and_weeks_move_nothing(habit: Habit, usual: float) -> None:
    pool = Pool(habit)
    pool.run(8 * 24)
    assert [pool.play("1") for _ in range(240)] == pytest.approx([usual] * 240, rel=0.01)


def test_idle_pools_take_no_space_and_busy_ones_little() -> None:
    ledger = LoadLedger()
    for hour in range(8 * 24):
        counters = {pool: PoolCounters(8, *[123_457 * pool * hour] * 4) for pool in range(3000)}
        ledger.observe(3600.0 * hour, counters)
    assert 0 not in ledger.rates()
    assert len(json.dumps(ledger.to_dict())) < 50_000


@pytest.mark.parametrize("dump", [
    {}, {"day": 1, "today": {"a": []}, "days": {}},
    {"day": 1, "today": {}, "days": {"1": {"0": [1, 2]}}}])
def test_a_garbled_ledger_is_as_none(dump: Dict[str, Any]) -> None:
    pool = Pool()
    pool.ledger.restore(dump)
    assert pool.play("96") == 100.0
