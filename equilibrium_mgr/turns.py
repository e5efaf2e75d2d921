"""How heavy work leaves other modules room: in ceph-mgr all of them share one interpreter lock."""
from __future__ import annotations

import gc
import threading
import time
from typing import Any

#: The lock is given up this often. A thread that wants it would wait 5 ms for Python to hand it on,
#: each time anew: a command needs it several times.
_YIELD_EVERY_SECONDS = 0.001
_YIELD_SECONDS = 0.0001
#: What exceptions may have left in circles is looked for this often.
_SWEEP_SECONDS = 86_400.0


class Turns:
    """Lets other threads have their turn now and then; called between small pieces of work."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self) -> bool:
        """True where it has just paused."""
        if time.monotonic() - self._last < _YIELD_EVERY_SECONDS:
            return False
        time.sleep(_YIELD_SECONDS)
        self._last = time.monotonic()
        return True


class Uncollected:
    """No search for circular garbage while it is entered, in whatever thread.

    Such a search holds the lock until it has seen every object: 180 ms while 100,000 shards are
    planned, 1,000 OSDs. What the work leaves is kept out of later searches as well; it goes when
    nobody refers to it any more, for neither snapshots nor plans have circles. Since Python 3.9
    each mgr module has a collector of its own, so that nobody else is concerned.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._was_on = False
        self._swept = time.monotonic()

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._was_on = gc.isenabled()
                gc.disable()
            self._entered += 1

    def __exit__(self, *_error: Any) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered or not self._was_on:
                return
            if time.monotonic() - self._swept >= _SWEEP_SECONDS:
                self._swept = time.monotonic()
                gc.unfreeze()
                gc.collect()
            gc.freeze()
            gc.enable()


#: The one of this interpreter, as its collector is one.
UNCOLLECTED = Uncollected()
