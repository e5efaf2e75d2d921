"""Actions that are due at moments of virtual time."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple


class Timer:
    """Something that runs at its next moment; the base class never runs."""

    def next_moment(self) -> Optional[float]:
        """Moment of `clock.now` at which it is to run, None if it is not."""
        return None

    def run(self) -> None:
        """Called at that moment or later."""

    def idle(self) -> bool:
        """True if nothing in the cluster waits for it."""
        return True


class Schedule(Timer):
    """Single actions at given moments, in the order of the moments."""

    def __init__(self) -> None:
        self._waiting: List[Tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Schedules an action at a moment."""
        self._count += 1
        self._waiting.append((moment, self._count, action))
        self._waiting.sort(key=lambda entry: entry[:2])

    def next_moment(self) -> Optional[float]:
        return self._waiting[0][0] if self._waiting else None

    def run(self) -> None:
        self._waiting.pop(0)[2]()
