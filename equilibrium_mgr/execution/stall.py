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
        self._to_come = 0     # at the last look

    def end(self) -> None:
        """Something has gone, or nothing was allowed to go at all."""
        self._last = None

    def seconds(self, now: float, uncopied_ratio: int, throttled: bool, sleep_interval: float) -> float:
        """Takes in a look at which nothing could go; for how long that has been so.

        Where what arrives makes room (`throttled`) the wait begins anew as `uncopied_ratio` falls, which is
        object copies or bytes. Rounds are `sleep_interval` seconds apart.
        """
        if self._last is None or (throttled and uncopied_ratio < self._to_come):
            self._waited = 0.0
        else:
            longest = max(_LONGEST_SECONDS, 2.0 * sleep_interval)
            self._waited += min(max(0.0, now - self._last), longest)
        self._last, self._to_come = now, uncopied_ratio
        return self._waited
