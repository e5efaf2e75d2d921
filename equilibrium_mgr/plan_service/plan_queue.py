"""The plans in progress: which is made next, how far each is, and which were cancelled."""
from __future__ import annotations

import threading
from typing import Callable, Dict, List, NamedTuple, Optional


class PlanProgress(NamedTuple):
    """A plan that is made or waits to be."""

    plan: str          # its name; empty for an automatic plan
    started_at: float  # seconds since the epoch
    moves: int         # found so far
    aim: str
    running: bool = False   # False while it waits for another plan


class PlanJob:
    """One attempt to make a plan. `make` is called with the job, in the job thread."""

    def __init__(self, progress: PlanProgress, make: Callable[[PlanJob], None]) -> None:
        self.progress = progress
        self.make = make
        self.cancelled = False


class PlanQueue:
    """Takes named and automatic plans in turns: neither waits for more than one of the other.

    Used by the commands, the serve loop and the job thread at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: Dict[str, PlanJob] = {}   # by name, in the order of submission
        self._last_was_automatic = False

    def add(self, job: PlanJob) -> bool:
        """Queues a job; False where one of its name is in progress already."""
        with self._lock:
            if job.progress.plan in self._jobs:
                return False
            self._jobs[job.progress.plan] = job
            return True

    def next_job(self) -> Optional[PlanJob]:
        """Starts the next job and returns it; None where nothing waits."""
        with self._lock:
            waiting = [job for job in self._jobs.values() if not job.progress.running]
            if not waiting:
                return None
            turn = [job for job in waiting if bool(job.progress.plan) == self._last_was_automatic]
            job = (turn or waiting)[0]
            self._last_was_automatic = not job.progress.plan
            job.progress = job.progress._replace(running=True)
            return job

    def advance(self, job: PlanJob, moves: int) -> bool:
        """Records the moves found so far; False where the plan has been cancelled."""
        with self._lock:
            job.progress = job.progress._replace(moves=moves)
            return not job.cancelled

    def finish(self, job: PlanJob) -> None:
        """Takes a job out that has ended, with a plan or without."""
        with self._lock:
            if self._jobs.get(job.progress.plan) is job:
                del self._jobs[job.progress.plan]

    def cancel(self, name: str) -> bool:
        """Takes a job out, which ends where it next gives way; False where there is none."""
        with self._lock:
            job = self._jobs.pop(name, None)
            if job is not None:
                job.cancelled = True
            return job is not None

    def progress(self) -> Dict[str, PlanProgress]:
        """Name → progress of all jobs."""
        with self._lock:
            return {name: job.progress for name, job in self._jobs.items()}


class Failures:
    """Reasons for which plans could not be made: the newest by name, at most `max_names`."""

    def __init__(self, max_names: int) -> None:
        self._lock = threading.Lock()
        self._max_names = max_names
        self._sentences: Dict[str, str] = {}

    def record(self, name: str, error: BaseException) -> None:
        """Keeps why a plan could not be made, in place of an older failure of that name."""
        with self._lock:
            self._sentences.pop(name, None)
            self._sentences[name] = f"{type(error).__name__}: {error}"
            for oldest in self._names()[:-self._max_names]:
                del self._sentences[oldest]

    def forget(self, name: str) -> None:
        """Drops the failure of a plan, if there is one."""
        with self._lock:
            self._sentences.pop(name, None)

    def get(self, name: str) -> Optional[str]:
        """Why the last attempt to make a plan failed, or None."""
        with self._lock:
            return self._sentences.get(name)

    def _names(self) -> List[str]:
        """All but the automatic plan's, whose failure stays until an automatic plan is made."""
        return [name for name in self._sentences if name]
