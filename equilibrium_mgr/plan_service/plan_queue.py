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
        self._jobs: Dict[str, PlanJob] = {}   # by name, those that wait in their order
        self._last_was_automatic = False

    def add(self, job: PlanJob) -> bool:
        """False where one of that name is in the making already."""
        with self._lock:
            if job.progress.plan in self._jobs:
                return False
            self._jobs[job.progress.plan] = job
            return True

    def next_job(self) -> Optional[PlanJob]:
        """The next one to be made; None where nothing waits."""
        with self._lock:
            waiting = [m for m in self._jobs.values() if not m.progress.running]
            if not waiting:
                return None
            turn = [m for m in waiting if bool(m.progress.plan) == self._last_was_automatic]
            job = (turn or waiting)[0]
            self._last_was_automatic = not job.progress.plan
            job.progress = job.progress._replace(running=True)
            return job

    def advance(self, job: PlanJob, moves: int) -> bool:
        """Notes the moves so far; False where the plan has been cancelled."""
        with self._lock:
            job.progress = job.progress._replace(moves=moves)
            return not job.cancelled

    def finish(self, job: PlanJob) -> None:
        """It is made, or has failed."""
        with self._lock:
            if self._jobs.get(job.progress.plan) is job:
                del self._jobs[job.progress.plan]

    def cancel(self, name: str) -> bool:
        """Forgets a plan in the making, which then ends at its next checkpoint; False for none."""
        with self._lock:
            job = self._jobs.pop(name, None)
            if job is not None:
                job.cancelled = True
            return job is not None

    def progress(self) -> Dict[str, PlanProgress]:
        with self._lock:
            return {name: job.progress for name, job in self._jobs.items()}


class Failures:
    """Why plans could not be made, the last of them by name."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._sentences: Dict[str, str] = {}

    def record(self, name: str, error: BaseException) -> None:
        with self._lock:
            self._sentences.pop(name, None)
            self._sentences[name] = f"{type(error).__name__}: {error}"
            for oldest in self._names()[:-self._most]:
                del self._sentences[oldest]

    def forget(self, name: str) -> None:
        with self._lock:
            self._sentences.pop(name, None)

    def get(self, name: str) -> Optional[str]:
        with self._lock:
            return self._sentences.get(name)

    def _names(self) -> List[Any]:
        """All but automatic balancing's, whose failure shows until a plan succeeds."""
        return [name for name in self._sentences if name]
