"""Follows what an ended episode has left in flight while nothing else is to be done."""
from __future__ import annotations

import math
from typing import Callable, Optional

from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import NotReady
from ..observation.observer import ClusterObserver
from ..settings import Settings
from .journal import Journal

#: Seconds between observations: while anything is misplaced, and while nothing is.
_MOVING_SECONDS, _SETTLED_SECONDS = 600.0, 60.0
#: The longer nothing has arrived, the rarer is every reading: a part of the seconds waited so far,
#: up to an hour. A PG may stay in backfill_toofull for ever.
_WAITED_PART, _LONGEST_SECONDS = 1.0 / 6.0, 3600.0


class ResultWatch:
    """Used by the serve thread."""

    def __init__(self, journal: Journal, observer: ClusterObserver,
                 clock: Callable[[], float]) -> None:
        self._journal = journal
        self._observer = observer
        self._clock = clock
        self._since: Optional[float] = None   # begin of the wait, seconds since the epoch

    def at_rest(self, settings: Settings,
                observe: Callable[[ClusterSummary, Settings], None]) -> None:
        """Measures the result where it is awaited, at the cost of a summary a round and of few
        observations, which `observe` makes."""
        if not self._journal.awaits_measurement:
            self._since = None
            return
        patience, view = self._patience(), self._observer.view
        if self._journal.awaits_arrivals and view is not None and (
                0.0 <= self._clock() - view.snapshot.taken_at < patience):
            return
        try:
            summary = self._observer.summary()
        except NotReady:
            return
        age = summary.taken_at - view.snapshot.taken_at if view is not None else math.inf
        least = _MOVING_SECONDS if summary.misplaced_copies else _SETTLED_SECONDS
        if self._journal.awaits_arrivals and not 0.0 <= age < max(least, patience):
            observe(summary, settings)
        self._journal.measure(summary)

    def _patience(self) -> float:
        """Seconds between two readings by now."""
        now = self._clock()
        if self._since is None or now < self._since:
            self._since = now
        return min(_LONGEST_SECONDS, _WAITED_PART * (now - self._since))
