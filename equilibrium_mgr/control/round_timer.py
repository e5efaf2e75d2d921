"""Times of the next round and the next batch, whoever wakes the loop in between."""
from __future__ import annotations

from typing import Callable, Optional

from ..runtime.wait_timer import WaitTimer

#: Seconds by which a round that the loop's timer has woken may be early on another clock.
_TOLERANCE_SECONDS = 1.0
_SHORTEST_SECONDS = 1.0


class RoundTimer:
    """Rounds are `sleep_interval` apart, or less where something is known to be over sooner.

    Used by the serve thread, but for `allow_batch`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._round = WaitTimer()
        self._wait = WaitTimer()
        self._batch = WaitTimer()

    def next_round(self, sleep_interval: float, seconds: Optional[float] = None) -> float:
        """Begins the wait for the next round and returns its seconds; `seconds`: until there will
        be something new to say, which may be several rounds away."""
        now = self._clock()
        self._wait.begin(now, seconds or 0.0)
        delay = sleep_interval if seconds is None else min(sleep_interval, seconds)
        delay = max(_SHORTEST_SECONDS, delay)
        self._round.begin(now, delay)
        return delay

    def rest_of_round(self, sleep_interval: float) -> float:
        """Seconds until the round that was due anyway, for one that came early or had no work."""
        left = self._round.seconds_left(self._clock())
        if left <= _TOLERANCE_SECONDS:
            self._round.begin(self._clock(), sleep_interval)
            return max(_SHORTEST_SECONDS, sleep_interval)
        return left

    def is_early(self) -> bool:
        """True where something has woken the loop before there is anything to do."""
        now = self._clock()
        left = max(self._round.peek_seconds_left(now), self._wait.peek_seconds_left(now))
        return left > _TOLERANCE_SECONDS

    def batch_sent(self, sleep_interval: float) -> None:
        """Begins the wait until the next batch may be sent."""
        self._batch.begin(self._clock(), sleep_interval)

    def allow_batch(self) -> None:
        """Ends the wait for a batch, for the first one of a plan that a command starts."""
        self._batch.end()

    def batch_seconds(self) -> float:
        """Seconds until a batch may be sent; 0 where one may."""
        left = self._batch.peek_seconds_left(self._clock())
        return left if left > _TOLERANCE_SECONDS else 0.0
