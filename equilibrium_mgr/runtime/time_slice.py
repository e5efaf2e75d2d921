"""Yielding to other threads: in ceph-mgr all modules share one interpreter lock.

From Ceph 20 on they share its garbage collector as well. That one is left alone; what would make
its passes long is made small instead (row_store.py).
"""
from __future__ import annotations

import time
from typing import Callable, Optional

#: The lock is given up this often. Otherwise a thread that wants it waits 5 ms until Python hands
#: it on, and a command wants it several times.
_YIELD_EVERY_SECONDS = 0.001
_YIELD_SECONDS = 0.0001


class TimeSlice:
    """A checkpoint that gives up the interpreter lock once a millisecond.

    Called between pieces of work that take less than that.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], object] = time.sleep) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._last = monotonic()

    def __call__(self, _moves: Optional[int] = None) -> bool:
        """Yields where it is due; never asks the caller to end."""
        self.yield_if_due()
        return True

    def yield_if_due(self) -> bool:
        """Gives up the lock where the last time was a millisecond ago; returns whether it did."""
        if self._monotonic() - self._last < _YIELD_EVERY_SECONDS:
            return False
        self._sleep(_YIELD_SECONDS)
        self._last = self._monotonic()
        return True
