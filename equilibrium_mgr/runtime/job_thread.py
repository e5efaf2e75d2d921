"""The background thread for jobs, as plans and comparisons, apart from the serve loop and the
commands.
"""
from __future__ import annotations

import logging
import queue
import threading
from itertools import count
from typing import Callable, Optional, Protocol, Tuple

from .time_slice import giving_way


Job = Callable[[], None]


class JobRunner(Protocol):
    """Runs jobs in the background: in the mgr in a thread, in the simulated mgr inline."""

    def submit(self, name: str, job: Job, first: bool = False) -> None:
        """Queues a job, before those that wait where it is to be the `first`. `name` is for the
        log."""

    def wait(self, seconds: float, /) -> bool:
        """Called by a job that has to wait; False at once where the module shuts down."""

    def run_pending(self) -> object:
        """Runs the jobs that are queued, where no thread does it by itself."""

    def stop(self) -> None:
        """Ends the running job's waits and drops the others."""


class JobThread:
    """Runs jobs one after the other in one thread, which starts with the first job.

    Jobs must come to an end by themselves when the module shuts down; `stop` waits a moment only.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        #: (rank, number, name, job): the lowest goes first; that without a job is the end
        self._queue: queue.PriorityQueue[Tuple[int, int, str, Optional[Job]]] = (
            queue.PriorityQueue())
        self._numbers = count()
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()   # commands and the serve thread both submit
        self._is_over = threading.Event()

    def submit(self, name: str, job: Job, first: bool = False) -> None:
        """Queues a job as JobRunner says, and starts the thread with the first one."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="eq-jobs", daemon=True)
                self._thread.start()
        self._queue.put((0 if first else 1, next(self._numbers), name, job))

    def wait(self, seconds: float) -> bool:
        """Called by a job that has to wait; False at once where the module shuts down."""
        return not self._is_over.wait(seconds)

    def run_pending(self) -> None:
        """Does nothing: the thread runs the jobs, and who submits them does not wait."""

    def stop(self, timeout: float = 5.0) -> None:
        """Ends the thread after the running job, for which it waits at most `timeout` seconds."""
        self._is_over.set()
        if self._thread is not None:
            self._queue.put((-1, 0, "", None))   # before all that wait
            self._thread.join(timeout)
            self._thread = None

    def _run(self) -> None:
        while True:
            _, _, name, job = self._queue.get()
            if job is None:
                return
            try:
                with giving_way():
                    job()
            except Exception:
                self._log.exception("job %s failed", name)
            del job   # it may hold a snapshot, and the next may come hours later
