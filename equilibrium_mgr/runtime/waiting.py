"""Waits of some seconds on a clock that can be set back.

The wall clock jumps when it is corrected. If it is set back by an hour, a wait until a point in
time takes an hour too long. A WaitTimer only begins its wait again.

Also waits between attempts that fail: twice as long each time, up to a limit.
"""
from __future__ import annotations

from math import inf
from typing import Optional


class WaitTimer:
    """Has one wait, or none. Times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._began: Optional[float] = None
        self._seconds = 0.0

    def begin(self, now: float, seconds: float) -> None:
        """Begins a wait, in place of an earlier one."""
        self._began = now
        self._seconds = seconds

    def end(self) -> None:
        """Ends the wait."""
        self._began = None

    def seconds_left(self, now: float, most: float = inf) -> float:
        """Returns the seconds that are left; ends the wait if it is over. `most`: the present limit
        of the whole wait, in seconds."""
        began = self._began
        if began is None:
            return 0.0
        left = max(0.0, min(self._seconds, most) - max(0.0, now - began))
        if self._began is began:   # else another thread has just begun or ended a wait
            self._began = min(began, now) if left > 0.0 else None
        return left


_MOST_DOUBLINGS = 30


def doubled(first: float, longest: float, failures: int) -> float:
    """Returns `first` seconds, twice as many for each of the earlier `failures`, at most
    `longest`."""
    return min(longest, first * 2.0 ** min(failures, _MOST_DOUBLINGS))


class Backoff(WaitTimer):
    """Waits after failures. `first` and `longest`: the first wait and the limit, in seconds."""

    def __init__(self, first: float = 60.0, longest: float = 3600.0) -> None:
        super().__init__()
        self._first = first
        self._longest = longest
        self._failures = 0

    def failed(self, now: float) -> float:
        """Records a failure; returns the seconds until the next attempt."""
        seconds = doubled(self._first, self._longest, self._failures)
        self._failures += 1
        self.begin(now, seconds)
        return seconds

    def succeeded(self) -> None:
        """Ends the wait; the next failure starts with the first one again."""
        self._failures = 0
        self.end()
