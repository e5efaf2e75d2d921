"""The ledger of what clients ask of pools: operations and bytes by day, of the last seven days.

A rate is the median of days, so that a backup at night and the rhythm of a week do not move it. Nor
does one day with reads of months: `num_read` falls when another OSD leads a PG that only serves
reads, and jumps back when the first OSD leads it again (seen on Ceph 16 and 20).

The ledger knows no clock, and the next mgr goes on with it.
"""
from __future__ import annotations

from math import inf
from operator import truediv
from statistics import median
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import typed
from ..snapshot.loads import PoolCounters
from ..snapshot.model import PoolRates

_DAY_SECONDS = 86_400.0
_DAYS = 7
_LEAST_DAYS = 3
#: A day counts for a pool if its operations were counted for so many seconds of it: after a
#: failover, and while pg_num changes, they are not.
_LEAST_SECONDS = 0.75 * _DAY_SECONDS
#: Readings that are farther apart are not compared. While no pool changes there is one a day.
_LONGEST_SECONDS = 1.1 * _DAY_SECONDS
#: Pools are left out if their ratio of everything that is counted is smaller.
_LEAST_SHARE = 0.001
#: The busiest pools are kept, as many as fit into one value of the key-value store.
_MOST_POOLS = 100

#: Seconds that were counted, and what was counted in them, as of PoolRates.
Sums = Tuple[float, ...]


class _Stored(NamedTuple):
    """The ledger as JSON has it: days are numbers of days since the epoch, keys are text."""

    day: int
    today: Dict[str, Tuple[float, float, float, float, float]]   # pool id → Sums
    days: Dict[str, Dict[str, PoolRates]]                        # pool id → day → rates


class LoadLedger:
    """Counts operations by pool and day of UTC. The serve thread uses it."""

    def __init__(self) -> None:
        self._day = 0
        self._today: Dict[int, Sums] = {}
        self._days: Dict[int, Dict[int, PoolRates]] = {}
        self._last_at = -inf
        self._last: Mapping[int, PoolCounters] = {}

    def observe(self, now: float, counters: Mapping[int, PoolCounters]) -> bool:
        """Counts what was done since the last reading. Returns False if this one is known.

        `now`: when the counters were read, seconds since the epoch. Two readings of the same mgr
        are needed: after its start, PGs that have not reported yet are missing in the sums.
        """
        elapsed = now - self._last_at
        if not elapsed:
            return False
        day = int(now // _DAY_SECONDS)
        if day != self._day:
            self._begin_day(day)
        if 0.0 < elapsed <= _LONGEST_SECONDS:
            for pool, count in counters.items():
                self._add(pool, elapsed, self._last.get(pool), count)
        self._last_at = now
        self._last = counters
        return True

    def _add(self, pool: int, elapsed: float, before: Optional[PoolCounters],
             count: PoolCounters) -> None:
        """Counts the operations of a pool, unless its counters cannot be compared.

        A split gives both PGs the version of the old one. Reads are lost with a primary if nothing
        was written since (−10,180 by one restart, on 16.2.15).
        """
        if before is None or before.pgs != count.pgs:
            return
        gained = [new - old for old, new in zip(before[1:], count[1:])]
        if min(gained) < 0:
            return
        sums = self._today.get(pool, (0.0,) * 5)
        self._today[pool] = tuple([a + b for a, b in zip(sums, (elapsed, *gained))])

    def _begin_day(self, day: int) -> None:
        """Ends the day so far, and forgets old days and idle pools."""
        for pool, (seconds, *counts) in self._today.items():
            if seconds >= _LEAST_SECONDS:
                rates = PoolRates(*[_rounded(count / seconds) for count in counts])
                self._days.setdefault(pool, {})[self._day] = rates
        self._today = {}
        self._day = day
        kept: Dict[int, Dict[int, PoolRates]] = {}
        for pool, days in self._days.items():
            kept[pool] = {one: rates for one, rates in days.items() if day - _DAYS <= one < day}
        usual = {pool: _usual(days.values()) for pool, days in kept.items() if days}
        self._days = {pool: kept[pool] for pool in _busiest(usual)}

    def rates(self) -> Dict[int, PoolRates]:
        """Returns pool id → its usual rates, of pools with at least three counted days."""
        return {pool: _usual(days.values()) for pool, days in self._days.items()
                if len(days) >= _LEAST_DAYS}

    def to_dict(self) -> Dict[str, Any]:
        """Returns what the next mgr needs, JSON-ready."""
        counts = {pool: sums[1:] for pool, sums in self._today.items()}
        today = {pool: list(map(round, self._today[pool])) for pool in _busiest(counts)}
        return {"day": self._day, "today": today, "days": self._days}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over from another mgr; a garbled dump is as none."""
        try:
            stored: _Stored = typed(dump, _Stored)
            today: Dict[int, Sums] = {int(pool): sums for pool, sums in stored.today.items()}
            days = {int(pool): {int(day): rates for day, rates in found.items()}
                    for pool, found in stored.days.items()}
        except (KeyError, TypeError, ValueError):
            return
        self._day, self._today, self._days = stored.day, today, days


def _usual(days: Collection[PoolRates]) -> PoolRates:
    return PoolRates(*map(median, zip(*days)))


def _busiest(figures: Mapping[int, Sequence[float]]) -> List[int]:
    """Returns the pools that matter, the busiest first. `figures`: pool id → what is counted."""
    wholes = [sum(column) or 1.0 for column in zip(*figures.values())]
    shares = {pool: max(map(truediv, counts, wholes)) for pool, counts in figures.items()}
    busiest = sorted(shares, key=lambda pool: -shares[pool])[:_MOST_POOLS]
    return [pool for pool in busiest if shares[pool] >= _LEAST_SHARE]


def _rounded(rate: float) -> float:
    """Returns a rate with three digits."""
    return float(f"{rate:.3g}")
