"""How heavy work leaves other modules room: in ceph-mgr all of them share one interpreter lock.

From Ceph 20 on they share its garbage collector, too, which is therefore left alone: what would
make its searches long is made small instead (flat tuples of numbers, see snapshot/).
"""
from __future__ import annotations

import time
from typing import Optional

#: The lock is given up this often. A thread that wants it would wait 5 ms for Python to hand it on,
#: each time anew: a command needs it several times.
_YIELD_EVERY_SECONDS = 0.001
_YIELD_SECONDS = 0.0001


class TimeSlice:
    """Lets other threads have their turn now and then; called between small pieces of work."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, _moves: Optional[int] = None) -> bool:
        """A checkpoint that never asks to end."""
        self.yield_if_due()
        return True

    def yield_if_due(self) -> bool:
        """Gives up the interpreter lock once a millisecond; True where it has just done so."""
        if time.monotonic() - self._last < _YIELD_EVERY_SECONDS:
            return False
        time.sleep(_YIELD_SECONDS)
        self._last = time.monotonic()
        return True
