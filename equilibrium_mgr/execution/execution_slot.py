"""The execution under way, which the loop and the commands replace under one lock."""
from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional

from .execution import CarriedCounts, Execution


class ExecutionSlot:
    """Holds at most one execution; a named one takes the place of an automatic one.

    A batch is handed to the mgr under the same lock that `stop` takes, so that nothing is sent
    once `stop` has returned. Nobody waits for a monitor with the lock held.
    """

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._stop_count = 0
        self.execution: Optional[Execution] = None
        self.last: Optional[Dict[str, Any]] = None   # the last one's figures, JSON-ready

    @property
    def stop_count(self) -> int:
        """Number of times that a command has stopped everything, or all that is automatic; a round
        that began before one is void."""
        return self._stop_count

    def start(self, execution: Execution, stop_count: Optional[int] = None) -> bool:
        """Starts an execution. False where there is one, unless a named one takes the place of an
        automatic one; for the loop also where a command has stopped everything since `stop_count`
        was read."""
        with self._lock:
            present = self.execution
            if present is not None and (present.name or not execution.name):
                return False
            if stop_count is not None and stop_count != self._stop_count:
                return False
            self.execution = execution
            return True

    def end(self, execution: Execution, outcome: str) -> bool:
        """Ends the execution for the loop; False where a command has ended or replaced it."""
        with self._lock:
            if self.execution is not execution:
                return False
            self.execution = None
        self._remember(execution, outcome)
        return True

    def stop(self, outcome: str, name: Optional[str] = None) -> Optional[Execution]:
        """Ends the execution for a command and returns it, or None. `name`: only that plan's; ''
        only automatic ones. Waits while a batch is being handed over, which takes milliseconds."""
        with self._lock:
            execution = self.execution
            if execution is not None and name not in (None, execution.name):
                execution = None
            if execution is not None or not name:
                self._stop_count += 1
            if execution is None:
                return None
            self.execution = None
        self._remember(execution, outcome)
        return execution

    @contextmanager
    def permit_sending(self, execution: Execution) -> Iterator[bool]:
        """Context in which no command can end the execution, for handing a batch over. Yields False
        where it has been ended or replaced already."""
        with self._lock:
            yield self.execution is execution

    def plan_name(self) -> Optional[str]:
        """The name of the plan that is being executed, or None."""
        execution = self.execution
        return execution.name if execution is not None and execution.name else None

    def counts(self) -> Optional[CarriedCounts]:
        """The counts of the execution, which a successor goes on with; None without one."""
        execution = self.execution
        return execution.counts() if execution is not None else None

    def _remember(self, execution: Execution, outcome: str) -> None:
        self._log.info("plan %s %s: %d of %d shards sent, %d dropped",
                       execution.name or "(automatic)", outcome, execution.sent_moves,
                       execution.planned_moves, execution.dropped_moves)
        self.last = dict(execution.summary(), outcome=outcome, ended_at=self._clock())
