"""Recovery: what a new mgr takes over from the last one, once, before it does anything else."""
from __future__ import annotations

import logging
import threading
from typing import Callable

from ..execution.dispatcher import UpmapDispatcher
from ..execution.execution import Execution
from ..execution.execution_slot import ExecutionSlot
from ..plan.store import PlanStore
from .automatic.drain_control import DrainControl
from .episodes.outcomes import DROPPED, because
from .journal import Journal


class Recovery:
    """Reads the journal, and goes on with the named plan that the last mgr was executing."""

    def __init__(self, journal: Journal, dispatcher: UpmapDispatcher, plan_store: PlanStore,
                 slot: ExecutionSlot, drains: DrainControl, clock: Callable[[], float],
                 log: logging.Logger) -> None:
        self._journal = journal
        self._dispatcher = dispatcher
        self._plan_store = plan_store
        self._slot = slot
        self._drains = drains
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._is_done = False

    def recover_once(self, sleep_interval: float) -> bool:
        """Recovers, the first time that it is called, and returns True then; other threads wait for
        that. Rounds of the last mgr were `sleep_interval` seconds apart."""
        with self._lock:
            is_first, self._is_done = not self._is_done, True
            if is_first:
                self._recover(sleep_interval)
            return is_first

    def _recover(self, sleep_interval: float) -> None:
        found = self._journal.recover(self._dispatcher.cooldown, self._clock(), sleep_interval)
        self._dispatcher.restore(found.rejected, found.sending, found.corrections,
                                 found.in_flight, found.sending_epoch)
        self._drains.restore(found.drains)
        if found.plan is None:
            return
        try:
            plan = self._plan_store.get(found.plan)
        except (ValueError, KeyError) as error:  # BadPlan is a ValueError
            self._log.warning("cannot go on with the execution of a plan: %s", error)
            self._journal.end(because(DROPPED, "its plan is lost"), self._clock(), None)
            return
        execution = Execution(found.plan, plan.changes, self._clock(), plan.kind)
        execution.carried = found.counts
        if self._journal.episode is not None:
            execution.is_recorded = True   # the last mgr has done that
        if self._slot.start(execution, self._slot.stop_count):
            self._log.info("going on with the execution of plan %s", found.plan)
