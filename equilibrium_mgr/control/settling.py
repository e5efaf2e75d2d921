"""How long plans wait until the topology has settled, because OSDs flap."""
from __future__ import annotations

from typing import Any

from ..runtime.waiting import WaitTimer

#: A topology must stay the same for so many seconds before it is planned for.
SETTLE_SECONDS = 60.0
#: The longest wait from the first change of a series on. Changes of one series are no further apart
#: than that.
_LONGEST_SETTLE_SECONDS = 300.0
#: The same while an OSD needs space.
_URGENT_SECONDS = 45.0


class Settling:
    """Compares the topology from snapshot to snapshot. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._topology: Any = None
        self._last_change = WaitTimer()
        self._series = WaitTimer()   # since its first change
        self.is_urgent = False   # whether an OSD of the last snapshot needs space

    def observe(self, topology: Any, is_urgent: bool, now: float) -> bool:
        """Returns True if the topology differs from the last one. `is_urgent`: an OSD needs
        space."""
        self.is_urgent = is_urgent
        if topology == self._topology:
            return False
        is_first = self._topology is None
        self._topology = topology
        if is_first:
            return False
        if self._last_change.seconds_left(now) <= 0.0:
            self._series.begin(now, _LONGEST_SETTLE_SECONDS)
        self._last_change.begin(now, _LONGEST_SETTLE_SECONDS)
        return True

    def is_restless(self, now: float) -> bool:
        """Returns True if the topology keeps changing for longer than plans wait."""
        return self._last_change.seconds_left(now) > 0.0 and self._series_left(now) <= 0.0

    def restless_seconds(self, now: float) -> float:
        """Returns the seconds until the topology is not restless any more if it stays the same."""
        return self._last_change.seconds_left(now)

    def seconds_left(self, now: float) -> float:
        """Returns the seconds until a plan may be made, 0 or less if it may be made now."""
        since_last = _LONGEST_SETTLE_SECONDS - self._last_change.seconds_left(now)
        return min(self._series_left(now), SETTLE_SECONDS - since_last)

    def _series_left(self, now: float) -> float:
        left = self._series.seconds_left(now)
        if self.is_urgent:
            left -= _LONGEST_SETTLE_SECONDS - _URGENT_SECONDS
        return left
