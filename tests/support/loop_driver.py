"""Drives a harness's rounds as the serve loop does: when they are due, and when it is woken."""
from __future__ import annotations

from typing import Callable, List, Optional

from tests.support.fakes import Harness


class Loop:
    """Rounds in virtual time; `rounds` has the moment and the delay of each."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.delays: List[float] = []
        self.batches_at: List[float] = []
        self._next = harness.now

    def run(self, seconds: float, each_minute: Optional[Callable[[int], None]] = None,
            wake_every: Optional[float] = None) -> Loop:
        """So many seconds; whatever wakes the loop, a round follows at once, as in the mgr."""
        harness, began = self.harness, self.harness.now
        end = began + seconds
        minute, wake_at = 0, began + (wake_every or seconds + 1.0)
        self._rounds_due()
        while harness.now < end:
            harness.now = min(self._next, end, began + 60.0 * (minute + 1), wake_at)
            if harness.now >= began + 60.0 * (minute + 1):
                minute += 1
                if each_minute is not None:
                    each_minute(minute)
            if harness.now >= wake_at:
                wake_at += wake_every or seconds
                harness.wakes += 1
            self._rounds_due()
        return self

    def _rounds_due(self) -> None:
        while self.harness.now >= self._next or self.harness.wakes:
            self.harness.wakes = 0
            self._round()

    def _round(self) -> None:
        batches = len(self.harness.gateway.batches)
        delay = self.harness.balancer.round()
        self.delays.append(delay)
        sent = len(self.harness.gateway.batches) - batches
        self.batches_at += [self.harness.now] * sent
        self._next = self.harness.now + delay
        assert len(self.delays) < 100_000, "the loop spins"
