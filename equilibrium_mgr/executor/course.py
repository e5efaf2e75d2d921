"""The walk under way, which the loop and the commands replace under one lock."""
from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ..planner.plan import PgChange
from .walk import Walk


class Ended(NamedTuple):
    """A walk that a command has ended; the loop takes it down."""

    walk: Walk
    outcome: str


class Course:
    """At most one walk at a time; a named one takes the place of an automatic one."""

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._ended: List[Ended] = []
        self.walk: Optional[Walk] = None
        self.last: Optional[Dict[str, Any]] = None   # the last one's figures, JSON-ready

    def begin_named(self, name: str, changes: Sequence[PgChange]) -> bool:
        """False while another named plan is on its way."""
        with self._lock:
            if self.walk is not None and self.walk.name:
                return False
            self.walk = Walk(name, changes, self._clock())
        return True

    def swap(self, old: Optional[Walk], new: Optional[Walk]) -> bool:
        """Replaces the walk unless a command has done so meanwhile."""
        with self._lock:
            if self.walk is not old:
                return False
            self.walk = new
            return True

    def finish(self, walk: Walk, outcome: str) -> bool:
        """The loop ends the walk; False where a command was faster."""
        if not self.swap(walk, None):
            return False
        self._remember(walk, outcome)
        return True

    def stop(self, outcome: str) -> Optional[Walk]:
        """A command ends whatever walk there is, and gets it."""
        with self._lock:
            walk, self.walk = self.walk, None
            if walk is not None:
                self._ended.append(Ended(walk, outcome))
        if walk is not None:
            self._remember(walk, outcome)
        return walk

    def take_ended(self) -> List[Ended]:
        """What commands have ended since this was last asked."""
        with self._lock:
            ended, self._ended = self._ended, []
        return ended

    def executing(self) -> Optional[str]:
        """The name of the plan that is being executed, or None."""
        walk = self.walk
        return walk.name if walk is not None and walk.name else None

    def _remember(self, walk: Walk, outcome: str) -> None:
        self._log.info("plan %s %s: %d of %d moves sent, %d dropped", walk.name or "(automatic)",
                       outcome, walk.sent_moves, walk.planned_moves, walk.dropped_moves)
        self.last = dict(walk.summary(), outcome=outcome, ended_at=self._clock())
