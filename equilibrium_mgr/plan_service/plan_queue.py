"""The plans in the making: which is made next, how far each is, and which were cancelled."""
from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional


class PlanProgress(NamedTuple):
    """A plan in the making; an automatic one has no name."""

    plan: str
    started_at: float  # seconds since the epoch
    moves: int
    aim: str
    running: bool = False   # or it waits for another one to be made


class PlanJob:
    """One attempt to make a plan. `make` is called with it, in the job thread."""

    def __init__(self, progress: PlanProgress, make: Callable[[PlanJob], None]) -> None:
        self.progress = progress
        self.make = make
        self.cancelled = False


class PlanQueue:
    """Named and automatic plans take turns, so that neither waits for more than one of the other.

    Used by the commands, the serve loop and the job thread at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: Dict[str, PlanJob] = {}   # by name, those that wait in their order
        self._last_was_automatic = False

    def add(self, making: PlanJob) -> bool:
        """False where one of that name is in the making already."""
        with self._lock:
            if making.progress.plan in self._making:
                return False
            self._making[making.progress.plan] = making
            return True

    def take(self) -> Optional[PlanJob]:
        """The next one to be made; None where nothing waits."""
        with self._lock:
            waiting = [m for m in self._making.values() if not m.progress.running]
            if not waiting:
                return None
            turn = [m for m in waiting if bool(m.progress.plan) == self._last_was_automatic]
            making = (turn or waiting)[0]
            self._last_was_automatic = not making.progress.plan
            making.progress = making.progress._replace(running=True)
            return making

    def advance(self, making: PlanJob, moves: int) -> bool:
        """Notes the moves so far; False where the plan has been cancelled."""
        with self._lock:
            making.progress = making.progress._replace(moves=moves)
            return not making.cancelled

    def finish(self, making: PlanJob) -> None:
        """It is made, or has failed."""
        with self._lock:
            if self._making.get(making.progress.plan) is making:
                del self._making[making.progress.plan]

    def cancel(self, name: str) -> bool:
        """Forgets a plan in the making, which then ends at its next checkpoint; False for none."""
        with self._lock:
            making = self._making.pop(name, None)
            if making is not None:
                making.cancelled = True
            return making is not None

    def progress(self) -> Dict[str, PlanProgress]:
        with self._lock:
            return {name: making.progress for name, making in self._making.items()}


class Failures:
    """Why plans could not be made, the last of them by name."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._sentences: Dict[str, str] = {}

    def note(self, name: str, error: BaseException) -> None:
        with self._lock:
            self._sentences.pop(name, None)
            self._sentences[name] = f"{type(error).__name__}: {error}"
            for oldest in self._names()[:-self._most]:
                del self._sentences[oldest]

    def forget(self, name: str) -> None:
        with self._lock:
            self._sentences.pop(name, None)

    def of(self, name: str) -> Optional[str]:
        with self._lock:
            return self._sentences.get(name)

    def _names(self) -> List[Any]:
        """All but automatic balancing's, whose failure shows until a plan succeeds."""
        return [name for name in self._sentences if name]
