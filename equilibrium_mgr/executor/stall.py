"""How long nothing of a plan could go, and whether that can still be worth waiting for."""
from __future__ import annotations

from typing import Optional


class Stall:
    """Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._since: Optional[float] = None
        self._misplaced = 0   # object copies, at the last look

    def end(self) -> None:
        """Something has gone, or nothing was allowed to go at all."""
        self._since = None

    def seconds(self, now: float, misplaced: int, throttled: bool) -> float:
        """Takes in a look at which nothing could go; for how long that has been so.

        Where the throttle holds changes up (`throttled`), what arrives meanwhile makes room: the
        wait begins anew as `misplaced` falls.
        """
        if self._since is None or (throttled and misplaced < self._misplaced):
            self._since = now
        self._misplaced = misplaced
        self._since = min(self._since, now)   # the clock may have been set back
        return now - self._since
