"""Background jobs of a module, run inline: virtual time does not pass while they run."""

from __future__ import annotations

from typing import Callable, List, Tuple


class InlineJobs:
    """Queues a module's jobs and runs them on demand, in the order of submission."""

    def __init__(self) -> None:
        self._queue: List[Tuple[str, Callable[[], None]]] = []

    def submit(self, name: str, job: Callable[[], None], first: bool = False) -> None:
        self._queue.insert(0 if first else len(self._queue), (name, job))

    def wait(self, seconds: float) -> bool:
        """False: no time passes while a job runs."""
        return False

    def stop(self) -> None:
        """Drops the pending jobs."""
        self._queue.clear()

    @property
    def pending(self) -> List[str]:
        """Names of the pending jobs."""
        return [name for name, _ in self._queue]

    def run_pending(self) -> int:
        """Runs all jobs, those that they submit among them; returns how many.

        No virtual time passes, so a handler may have them run at once.
        """
        count = 0
        while self._queue:
            _, job = self._queue.pop(0)
            job()
            count += 1
        return count
