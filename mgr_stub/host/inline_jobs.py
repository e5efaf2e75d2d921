"""Background jobs of a module, run inline: virtual time stands still while they run."""

from __future__ import annotations

from typing import Callable, List, Tuple


class InlineJobs:
    """Takes a module's jobs and runs them when told to, in the order of submission."""

    def __init__(self) -> None:
        self._queue: List[Tuple[str, Callable[[], None]]] = []

    def submit(self, name: str, job: Callable[[], None]) -> None:
        self._queue.append((name, job))

    def wait(self, seconds: float) -> bool:
        """False: no time passes while a job runs."""
        return False

    def stop(self) -> None:
        """Forgets what has not run yet."""
        self._queue.clear()

    @property
    def pending(self) -> List[str]:
        """Names of the jobs that have not run yet."""
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
