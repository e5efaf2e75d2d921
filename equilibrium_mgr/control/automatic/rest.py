"""The state of automatic balancing where no plan is worth making."""
from __future__ import annotations

from typing import Callable

from ...execution.cooldown import ExcludedPgs
from ...execution.dispatcher import UpmapDispatcher
from ...gateway.gateway import Gateway
from ...observation.observer import ClusterObserver
from ...observation.states import STUCK, WAITING
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot
from ..auto_planner import NextStep, rest_outcome
from ..journal import Journal
from ..plan_executor import PlanExecutor
from ..status import RoundOutcome
from .drain_control import DrainControl
from .reads import AutomaticReads


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
        self._reads = AutomaticReads(gateway, clock)

    def next_step(self, step: NextStep, snapshot: Snapshot, settings: Settings) -> NextStep:
        """The step of automatic balancing, or what is done instead of resting."""
        if self._dispatcher.pending.entries:
            return step
        return self._reads.next_step(step, snapshot, settings)

    def outcome(self, step: NextStep, snapshot: Snapshot, settings: Settings,
                excluded: ExcludedPgs) -> RoundOutcome:
        """The state, which ends the episode unless something of ours is still in flight."""
        moving = self._executor.in_flight(snapshot, settings)
        if moving is not None:
            return moving
        view = self._observer.view
        assert view is not None   # `snapshot` has been shown in it
        found = rest_outcome(
            step, view, self._observer.bounds(snapshot, settings.pool_ids), settings, excluded,
            self._gateway.max_pg_shards())
        if self._dispatcher.corrections.stopped:
            found = found._replace(state=STUCK, code=codes.MISPREDICTED, refusals=None)
        found = self._drains.at_rest(found, settings)
        if found.state != WAITING:   # what waits for pg_cooldown goes on by itself
            self._journal.end(self._drains.ending_of(found), self._clock(), view)
        return found
