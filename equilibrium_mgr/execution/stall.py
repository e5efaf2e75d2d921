"""Measures for how long nothing of a plan could be sent."""
from __future__ import annotations

from typing import Optional

#: Two observations are no further apart during an execution, unless rounds are; where they seem
#: to be, the clock has jumped.
_LONGEST_SECONDS = 600.0


class Stall:
    """A stopwatch over observations; times are seconds since the epoch."""

    def __init__(self) -> None:
        self._last: Optional[float] = None   # when the last observation was
        self._waited = 0.0    # seconds
        self._to_come = 0     # at the last observation

    def end(self) -> None:
        """Ends the stall: something was sent, or nothing at all was allowed to be sent."""
        self._last = None

    def seconds(self, now: float, to_come: int, throttled: bool, sleep_interval: float) -> float:
        """Records an observation at which nothing could be sent; returns the seconds for which that
        has been so.

        Where arrivals free what the plan waits for (`throttled`), the stall begins anew as
        `to_come` falls, which is object copies or bytes. Rounds are `sleep_interval` seconds apart.
        """
        if self._last is None or (throttled and to_come < self._to_come):
            self._waited = 0.0
        else:
            longest = max(_LONGEST_SECONDS, 2.0 * sleep_interval)
            self._waited += min(max(0.0, now - self._last), longest)
        self._last, self._to_come = now, to_come
        return self._waited
