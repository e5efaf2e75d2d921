"""A span of time to wait, on a clock that may be set back.

The wall clock jumps at the end of summer time and when it is corrected. Whoever waits for a moment
that has moved an hour away waits an hour too long; here the wait begins anew at most.
"""
from __future__ import annotations

from typing import Optional


class WaitTimer:
    """A wait that was begun, or none."""

    def __init__(self) -> None:
        self._began: Optional[float] = None
        self._seconds = 0.0

    def begin(self, now: float, seconds: float) -> None:
        """Starts the wait, in place of an earlier one; times in seconds since the epoch."""
        self._began, self._seconds = now, seconds

    @property
    def begun(self) -> bool:
        """Has nobody been told yet that the wait is over?"""
        return self._began is not None

    def end(self) -> None:
        self._began = None

    def seconds_left(self, now: float) -> float:
        """How long to wait still; 0 when it is over. Never more than the whole interval."""
        left = self.peek_seconds_left(now)
        if left <= 0.0:
            self._began = None
        return left

    def peek_seconds_left(self, now: float) -> float:
        """As `seconds_left`, for one who may yet begin the wait anew when it is over."""
        if self._began is None:
            return 0.0
        self._began = min(self._began, now)
        return max(0.0, self._seconds - (now - self._began))
