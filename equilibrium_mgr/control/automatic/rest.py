"""The state of automatic balancing where no plan is worth making."""
from __future__ import annotations

from typing import Callable, Optional, Tuple

from ...execution.cooldown import ExcludedPgs
from ...execution.dispatcher import UpmapDispatcher
from ...execution.verdict import Refusals, Verdict
from ...gateway.gateway import Gateway
from ...observation.bound_gap import idle_state
from ...observation.cluster_view import ClusterView
from ...observation.observer import ClusterObserver
from ...observation.refusals import COUNTED, count_refusals
from ...observation.states import STUCK, WAITING
from ...planner.bound.lower_bound import UtilizationBounds
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot
from ..auto_planner import NextStep
from ..balancing_scope import automatic_options
from ..journal import Journal
from ..plan_executor import PlanExecutor
from .drain_control import DrainControl


class Rest:
    """Used by the serve thread."""

    def __init__(self, executor: PlanExecutor, observer: ClusterObserver,
                 dispatcher: UpmapDispatcher, gateway: Gateway, journal: Journal,
                 drains: DrainControl, clock: Callable[[], float]) -> None:
        self._executor = executor
        self._observer = observer
        self._dispatcher = dispatcher
        self._gateway = gateway
        self._journal = journal
        self._drains = drains
        self._clock = clock

    def outcome(self, step: NextStep, snapshot: Snapshot, settings: Settings,
                excluded: ExcludedPgs) -> Verdict:
        """The state, which ends the episode unless something of ours is still in flight."""
        moving = self._executor.in_flight(snapshot, settings)
        if moving is not None:
            return moving
        view = self._observer.view
        assert view is not None   # `snapshot` has been shown in it
        found = _rest_outcome(
            step, view, self._observer.bounds(snapshot, settings.pool_ids), settings, excluded,
            self._gateway.max_pg_shards())
        if self._dispatcher.corrections.stopped:
            found = found._replace(state=STUCK, code=codes.MISPREDICTED, refusals=None)
        found = self._drains.at_rest(found, settings)
        if found.state != WAITING:   # what waits for pg_cooldown goes on by itself
            self._journal.end(self._drains.ending_of(found), self._clock(), view)
        return found


def _rest_outcome(step: NextStep, view: ClusterView, bounds: Optional[UtilizationBounds],
                 settings: Settings, excluded: ExcludedPgs,
                 max_pg_shards: Tuple[int, int]) -> Verdict:
    """The state where no plan is worth making. `bounds`: of what may be moved, as pools that are
    left out stand where they are. `max_pg_shards`: as Gateway.max_pg_shards returns them."""
    def counted(code: str) -> Optional[Refusals]:
        options = automatic_options(settings, view.snapshot, excluded.rejected, max_pg_shards)
        return None if code not in COUNTED else count_refusals(
            view, options, excluded, step.why.code)
    return idle_state(view, bounds, settings.device_classes, step.why, step.searched_at, counted,
                      settings.pool_ids is not None)
