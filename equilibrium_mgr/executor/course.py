"""The walk under way, which the loop and the commands replace under one lock."""
from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

from ..planner.plan import PgChange
from .walk import Walk


class Course:
    """At most one walk at a time; a named one takes the place of an automatic one.

    A batch is handed to the mgr under the same lock that `stop` takes, so that nothing is sent
    once `stop` has returned. Nobody waits for a monitor with the lock held.
    """

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._stops = 0
        self.walk: Optional[Walk] = None
        self.last: Optional[Dict[str, Any]] = None   # the last one's figures, JSON-ready

    @property
    def stops(self) -> int:
        """How often a command has stopped everything; a round that began before one is void."""
        return self._stops

    def begin_named(self, name: str, changes: Sequence[PgChange]) -> bool:
        """False while another named plan is on its way."""
        with self._lock:
            if self.walk is not None and self.walk.name:
                return False
            self.walk = Walk(name, changes, self._clock())
        return True

    def begin(self, walk: Walk, stops: int) -> bool:
        """The loop takes up a walk; False where there is one, or a command has stopped everything
        since `stops` was read."""
        with self._lock:
            if self.walk is not None or self._stops != stops:
                return False
            self.walk = walk
            return True

    def finish(self, walk: Walk, outcome: str) -> bool:
        """The loop ends the walk; False where a command was faster."""
        with self._lock:
            if self.walk is not walk:
                return False
            self.walk = None
        self._remember(walk, outcome)
        return True

    def stop(self, outcome: str) -> Optional[Walk]:
        """A command ends whatever walk there is, and gets it. Waits while a batch is being handed
        over, which takes milliseconds."""
        with self._lock:
            self._stops += 1
            walk, self.walk = self.walk, None
        if walk is not None:
            self._remember(walk, outcome)
        return walk

    @contextmanager
    def permit(self, walk: Walk) -> Iterator[bool]:
        """To hand a batch of the walk over within; False where it has been ended. No command can
        end it meanwhile."""
        with self._lock:
            yield self.walk is walk

    def executing(self) -> Optional[str]:
        """The name of the plan that is being executed, or None."""
        walk = self.walk
        return walk.name if walk is not None and walk.name else None

    def _remember(self, walk: Walk, outcome: str) -> None:
        self._log.info("plan %s %s: %d of %d moves sent, %d dropped", walk.name or "(automatic)",
                       outcome, walk.sent_moves, walk.planned_moves, walk.dropped_moves)
        self.last = dict(walk.summary(), outcome=outcome, ended_at=self._clock())
