"""Where a module's serve thread waits between its rounds, in virtual time."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional

from ..clock import VirtualClock
from ..mgr.mgr_process import MgrDied

#: Rounds at one virtual moment that are not taken for an endless loop; after one more the thread
#: is held.
MAX_AT_ONCE = 20

#: Virtual seconds for which it is held at the most.
_HELD_SECONDS = 3600.0

#: Real seconds after which the threads of a module count as stuck.
_IDLE_TIMEOUT_SECONDS = 30.0


class ServeWait:
    """Replaces `wait` of the event on which the serve thread sleeps.

    The thread sleeps until the event is set, by the module or by `release`: the host decides when
    virtual time passes. A thread that makes round after round without any time passing is held
    until some does; `max_at_once` counts those rounds.
    """

    def __init__(self, wakeup: threading.Event, clock: VirtualClock,
                 condition: threading.Condition, tracer: Callable[[], Any]) -> None:
        self._wakeup = wakeup
        self._clock = clock
        self._condition = condition
        self._tracer = tracer
        self._moment = -1.0
        self._at_once = 0
        self._waits = False
        self._held = False
        self._dead = False
        self.ended = False
        self.rounds = 0
        self.max_at_once = 0
        #: Moment of the virtual clock at which the next round is due.
        self.due = clock.now

    def __call__(self, timeout: Optional[float] = None) -> bool:
        """Called by the serve thread. Raises MgrDied if its mgr is dead."""
        sys.settrace(None)
        with self._condition:
            self._count()
            self.due = float("inf") if timeout is None else self._clock.now + timeout
            if self._at_once > MAX_AT_ONCE:
                self._hold()
                self.due = self._clock.now
            self._waits = self.due > self._clock.now
            self._condition.notify_all()
            waits = self._waits
        if waits and not self._dead:
            threading.Event.wait(self._wakeup)
        with self._condition:
            self._waits = False
            if self._dead:
                raise MgrDied("serve")
        sys.settrace(self._tracer())
        return self._wakeup.is_set()

    def _count(self) -> None:
        self.rounds += 1
        if self._clock.now != self._moment:
            self._moment, self._at_once = self._clock.now, 0
        self._at_once += 1
        self.max_at_once = max(self.max_at_once, self._at_once)

    def _hold(self) -> None:
        self._held = True
        self.due = self._clock.now + _HELD_SECONDS
        self._condition.notify_all()
        while self._held and not self._dead and self._clock.now == self._moment:
            self._condition.wait()
        self._held = False

    # -- for the host ---------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """True if the thread does nothing until time passes; to be read with the condition held."""
        return self.ended or self._held or (self._waits and not self._wakeup.is_set())

    def release(self) -> None:
        """Starts the next round."""
        self.allow_end()
        self._wakeup.set()

    def allow_end(self) -> None:
        """The module shuts down: a thread that is held continues."""
        with self._condition:
            self._held = False
            self._condition.notify_all()

    def kill(self) -> None:
        """The mgr is dead: the thread ends where it waits."""
        self._dead = True
        self.release()

    def thread_ended(self) -> None:
        """Called by the serve thread at its end."""
        with self._condition:
            self.ended = True
            self._condition.notify_all()


def await_idle(condition: threading.Condition, is_idle: Callable[[], bool]) -> None:
    """Waits until all threads wait; RuntimeError if that takes too long."""
    with condition:
        if not condition.wait_for(is_idle, _IDLE_TIMEOUT_SECONDS):
            raise RuntimeError("the module's threads do not become idle within "
                               f"{_IDLE_TIMEOUT_SECONDS:.0f} s")
