"""Things that happen by themselves as virtual time passes."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple


class Timer:
    """Something with a next moment; the base class never comes."""

    def next_moment(self) -> Optional[float]:
        """When it wants to run (by `clock.now`), None if it does not."""
        return None

    def run(self) -> None:
        """Called at that moment, or a little later."""

    def idle(self) -> bool:
        """Whether nothing in the cluster waits for it."""
        return True


class Schedule(Timer):
    """Single actions at single moments, in their order."""

    def __init__(self) -> None:
        self._waiting: List[Tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Has an action done at a moment."""
        self._count += 1
        self._waiting.append((moment, self._count, action))
        self._waiting.sort(key=lambda entry: entry[:2])

    def next_moment(self) -> Optional[float]:
        return self._waiting[0][0] if self._waiting else None

    def run(self) -> None:
        self._waiting.pop(0)[2]()
