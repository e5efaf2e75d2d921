"""Waits between attempts of something that fails: twice as long each time, up to a limit."""
from __future__ import annotations

from .wait_timer import WaitTimer

_MOST_DOUBLINGS = 30


class Backoff(WaitTimer):
    """`first` and `longest` are the first wait and the limit, in seconds."""

    def __init__(self, first: float, longest: float) -> None:
        super().__init__()
        self._first = first
        self._longest = longest
        self._failures = 0

    def failed(self, now: float) -> float:
        """Records a failure; returns the seconds until the next attempt."""
        seconds = min(self._longest, self._first * 2.0 ** min(self._failures, _MOST_DOUBLINGS))
        self._failures += 1
        self.begin(now, seconds)
        return seconds

    def succeeded(self) -> None:
        """Ends the wait; the next failure starts with the first one again."""
        self._failures = 0
        self.end()
