"""Runs jobs, such as plans and comparisons, in a thread beside the serve loop and the commands."""
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
        """Queues a job. A `first` job runs before all queued jobs that are not. `name`: for the
        log."""

    def wait(self, seconds: float, /) -> bool:
        """Waits in the running job; returns False at once if the module shuts down."""

    def run_pending(self) -> object:
        """Runs the queued jobs, if no thread does so."""

    def stop(self) -> None:
        """Ends the waits of the running job, and drops the jobs that are queued."""


class JobThread:
    """Runs jobs one after the other in one thread, which starts with the first job.

    Jobs must end soon when the module shuts down, because `stop` waits only a few seconds.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        #: (rank, number, name, job): the lowest runs first; a row without a job ends the thread
        self._queue: queue.PriorityQueue[Tuple[int, int, str, Optional[Job]]] = (
            queue.PriorityQueue())
        self._numbers = count()
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()   # commands and the serve thread both submit
        self._is_over = threading.Event()

    def submit(self, name: str, job: Job, first: bool = False) -> None:
        """Queues a job as in JobRunner, and starts the thread with the first one."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="eq-jobs", daemon=True)
                self._thread.start()
        self._queue.put((0 if first else 1, next(self._numbers), name, job))

    def wait(self, seconds: float) -> bool:
        """Waits in the running job; returns False at once if the module shuts down."""
        return not self._is_over.wait(seconds)

    def run_pending(self) -> None:
        """Does nothing, because the thread runs the jobs."""

    def stop(self, timeout: float = 5.0) -> None:
        """Ends the thread after the running job. Waits for it at most `timeout` seconds."""
        self._is_over.set()
        if self._thread is not None:
            self._queue.put((-1, 0, "", None))   # in front of all queued jobs
            self._thread.join(timeout)
            self._thread = None

    def _run(self) -> None:
        """Runs the queued jobs until it meets the row without a job."""
        while True:
            _, _, name, job = self._queue.get()
            if job is None:
                return
            try:
                with giving_way():
                    job()
            except Exception:
                self._log.exception("job %s failed", name)
            del job   # it often holds a snapshot, and the next job can be hours away
