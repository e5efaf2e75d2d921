"""Follows what an ended episode has left in flight while nothing else is to be done."""
from __future__ import annotations

import math
from typing import Callable

from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import NotReady
from ..observation.observer import ClusterObserver
from ..settings import Settings
from .journal import Journal

#: Seconds between observations: while anything is misplaced, and while nothing is.
_MOVING_SECONDS, _SETTLED_SECONDS = 600.0, 60.0


class ResultWatch:
    """Used by the serve thread."""

    def __init__(self, journal: Journal, observer: ClusterObserver) -> None:
        self._journal = journal
        self._observer = observer

    def at_rest(self, settings: Settings,
                observe: Callable[[ClusterSummary, Settings], None]) -> None:
        """Measures the result where it is awaited, at the cost of a summary a round and of few
        observations, which `observe` makes."""
        if not self._journal.awaits_measurement:
            return
        try:
            summary = self._observer.summary(settings)
        except NotReady:
            return
        view = self._observer.view
        age = summary.taken_at - view.snapshot.taken_at if view is not None else math.inf
        if self._journal.awaits_arrivals and age >= (
                _MOVING_SECONDS if summary.misplaced_copies else _SETTLED_SECONDS):
            observe(summary, settings)
        self._journal.measure(summary)
