"""What is seen of the cluster: full looks, the view made of them, and summaries between."""
from __future__ import annotations

import logging
from typing import Callable, FrozenSet, Optional

from ..execution.guards import pg_num_changes
from ..execution.pending_moves import PendingMoves
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway
from ..plan.model import Usage
from ..planner.bound.lower_bound import UtilizationBounds
from ..settings import Settings
from ..snapshot.model import Snapshot
from .change_detection import ChangeDetector
from .cluster_view import ClusterView, bounds_of, make_view, misplaced_ratio


class ClusterObserver:
    """`view` is replaced whole: commands read it."""

    def __init__(self, gateway: Gateway, pending: PendingMoves, clock: Callable[[], float],
                 log: logging.Logger) -> None:
        self._gateway = gateway
        self._pending = pending
        self._log = log
        self.change_detector = ChangeDetector(clock)
        self.view: Optional[ClusterView] = None
        self.builtin_active: Optional[bool] = None   # when last seen; None before
        self._is_looking = False
        self._is_asked = False

    def request(self) -> None:
        """A command has found the view too old: one look, unless one is under way already."""
        if not self._is_looking:
            self._is_asked = True

    def consume_request(self) -> bool:
        """Has a command asked for a look since this was last asked?"""
        asked, self._is_asked = self._is_asked, False
        return asked

    def summary(self, settings: Settings) -> ClusterSummary:
        """The cluster in brief, with what can forbid all movement; keeps the view's misplaced
        ratio and its limit up to date. Raises NotReady."""
        summary = self._gateway.summary(with_map_settings=True)
        self.builtin_active = summary.builtin_active
        if self.view is not None:
            snapshot = self.view.snapshot
            self.view = self.view._replace(
                misplaced_ratio=misplaced_ratio(snapshot, summary.misplaced_copies, self._pending),
                max_misplaced_ratio=self.max_misplaced_ratio(snapshot, settings))
        return summary

    def observe(self, summary: Optional[ClusterSummary], settings: Settings) -> Snapshot:
        """Reads the whole cluster. Raises NotReady; then, as after any failure, a look is owed."""
        self.change_detector.begin_observation(summary, settings)
        self._is_looking = True
        try:
            return self._gateway.snapshot()
        except Exception:
            self.require_observation()
            raise
        finally:
            self._is_looking = False

    def require_observation(self) -> None:
        self.change_detector.observation_required = True

    def update_view(self, snapshot: Snapshot, settings: Settings, same_bounds: bool = False) -> None:
        """Makes the view. Our own moves leave the bounds as they are."""
        bounds = self.view.utilization_bounds if same_bounds and self.view is not None else (
            bounds_of(snapshot, self._log))
        self.builtin_active = self._gateway.builtin_balancer_active()
        self.view = make_view(snapshot, bounds, self._pending,
                              self.max_misplaced_ratio(snapshot, settings), self.builtin_active)

    def max_misplaced_ratio(self, snapshot: Snapshot, settings: Settings) -> float:
        """While the mgr changes a pg_num it needs misplaced objects itself, below its own target:
        half of that is left to it."""
        target = self._gateway.target_max_misplaced_ratio()
        limit = settings.max_misplaced_ratio or target
        return min(limit, target / 2.0) if pg_num_changes(snapshot) else limit

    def bounds(self, snapshot: Snapshot,
               movable_pools: Optional[FrozenSet[int]]) -> Optional[UtilizationBounds]:
        """As the view has them, or with all but some pools where they are."""
        if movable_pools is None:
            return self.view.utilization_bounds if self.view is not None else None
        return bounds_of(snapshot, self._log, frozenset(snapshot.pools) - movable_pools)

    @property
    def usage(self) -> Optional[Usage]:
        return self.view.usage if self.view is not None else None
