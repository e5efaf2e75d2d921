"""How long nothing of a plan could go, and whether that can still be worth waiting for."""
from __future__ import annotations

from typing import Optional

#: Two looks are no further apart while a plan is under way, unless rounds are. More than that the
#: clock has jumped.
_LONGEST_SECONDS = 600.0


class Stall:
    """Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._last: Optional[float] = None   # when the last look was
        self._waited = 0.0    # seconds
        self._misplaced = 0   # object copies, at the last look

    def end(self) -> None:
        """Something has gone, or nothing was allowed to go at all."""
        self._last = None

    def seconds(self, now: float, misplaced: int, throttled: bool, sleep_interval: float) -> float:
        """Takes in a look at which nothing could go; for how long that has been so.

        Where the throttle holds changes up (`throttled`), what arrives meanwhile makes room: the
        wait begins anew as `misplaced` falls. Rounds are `sleep_interval` seconds apart.
        """
        if self._last is None or (throttled and misplaced < self._misplaced):
            self._waited = 0.0
        else:
            longest = max(_LONGEST_SECONDS, 2.0 * sleep_interval)
            self._waited += min(max(0.0, now - self._last), longest)
        self._last, self._misplaced = now, misplaced
        return self._waited
