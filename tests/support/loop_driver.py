"""Drives a Desk's rounds as the serve loop does: when they are due, and when somebody wakes it."""
from __future__ import annotations

from typing import Callable, List, Optional

from tests.support.fakes import Harness


class Loop:
    """Rounds in virtual time; `rounds` has the moment and the delay of each."""

    def __init__(self, harness: Harness) -> None:
        self.plan_service = harness
        self.delays: List[float] = []
        self.batches_at: List[float] = []
        self._next = harness.now

    def run(self, seconds: float, each_minute: Optional[Callable[[int], None]] = None,
            wake_every: Optional[float] = None) -> Loop:
        """So many seconds; whatever wakes the loop, a round follows at once, as in the mgr."""
        harness, end, began = self.plan_service, self.plan_service.now + seconds, self.plan_service.now
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
        while self.plan_service.now >= self._next or self.plan_service.wakes:
            self.plan_service.wakes = 0
            self._round()

    def _round(self) -> None:
        batches = len(self.plan_service.gateway.batches)
        delay = self.plan_service.balancer.round()
        self.delays.append(delay)
        self.batches_at += [self.plan_service.now] * (len(self.plan_service.gateway.batches) - batches)
        self._next = self.plan_service.now + delay
        assert len(self.delays) < 100_000, "the loop spins"
