"""Drives a Desk's rounds as the serve loop does: when they are due, and when somebody wakes it."""
from __future__ import annotations

from typing import Callable, List, Optional

from fakes import Desk


class Loop:
    """Rounds in virtual time; `rounds` has the moment and the delay of each."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.delays: List[float] = []
        self.batches_at: List[float] = []
        self._next = desk.now

    def run(self, seconds: float, each_minute: Optional[Callable[[int], None]] = None,
            wake_every: Optional[float] = None) -> "Loop":
        """So many seconds; whatever wakes the loop, a round follows at once, as in the mgr."""
        desk, end, began = self.desk, self.desk.now + seconds, self.desk.now
        minute, wake_at = 0, began + (wake_every or seconds + 1.0)
        self._rounds_due()
        while desk.now < end:
            desk.now = min(self._next, end, began + 60.0 * (minute + 1), wake_at)
            if desk.now >= began + 60.0 * (minute + 1):
                minute += 1
                if each_minute is not None:
                    each_minute(minute)
            if desk.now >= wake_at:
                wake_at += wake_every or seconds
                desk.wakes += 1
            self._rounds_due()
        return self

    def _rounds_due(self) -> None:
        while self.desk.now >= self._next or self.desk.wakes:
            self.desk.wakes = 0
            self._round()

    def _round(self) -> None:
        batches = len(self.desk.gateway.batches)
        delay = self.desk.balancer.round()
        self.delays.append(delay)
        self.batches_at += [self.desk.now] * (len(self.desk.gateway.batches) - batches)
        self._next = self.desk.now + delay
        assert len(self.delays) < 100_000, "the loop spins"
