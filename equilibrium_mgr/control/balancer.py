"""The controller of the serve loop: observe, decide, send, verify, wait.

Commands only leave requests here; observing and sending happen in `round`, by the serve thread.
Whatever wakes it, a round does no more than a summary shows to be needed; batches keep apart.
"""
from __future__ import annotations

import logging
from typing import Callable, Optional

from ..execution.dispatcher import UpmapDispatcher
from ..execution.execution import Execution
from ..execution.execution_slot import ExecutionSlot
from ..execution.verdict import Verdict
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..observation.observer import ClusterObserver
from ..observation.states import BALANCED, BLOCKED, OFF, PLANNING, STUCK, WAITING
from ..plan.kinds import DRAIN
from ..plan.model import Plan
from ..plan.store import PlanStore
from ..plan_service.plan_service import PlanService
from ..runtime.kv_store import KeyValueStore
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot, pool_of
from ..undo.change_log import ChangeLog
from .auto_planner import AutoPlanner
from .automatic.drain_control import DrainControl
from .automatic.rest import Rest
from .balancing_scope import nothing_to_balance
from .cluster_guards import ClusterGuards
from .episodes.history import Totals
from .episodes.outcomes import (
    DRAIN_CHANGED, STOPPED_BY_OFF, STOPPED_BY_RM, SUPERSEDED, SWITCHED_OFF, because)
from .journal import Journal
from .plan_executor import PlanExecutor
from .recovery import Recovery
from .result_watch import ResultWatch
from .round_timer import RoundTimer
from .status import AWAITS_REPORTS, IS_OFF, BalancerStatus, StatusPublisher

_NOT_READY_SECONDS = 5.0   # until a mgr that lacks maps or statistics is read again
_COME_IN_BETWEEN = Verdict(codes.PLANNING, "a plan to execute has come in between", state=PLANNING)
_PLAN_STOPPED = Verdict(codes.PLANNING, "the execution of a plan was stopped", state=PLANNING)


class Balancer:
    """Decides what each round does. Other threads read `status`, which is replaced whole."""

    def __init__(self, gateway: Gateway, plan_store: PlanStore, plan_service: PlanService,
                 kv: KeyValueStore, settings: Callable[[], Settings], clock: Callable[[], float],
                 wake: Callable[[], None], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._log = log
        self.dispatcher = UpmapDispatcher(gateway, clock, log)
        self.observer = ClusterObserver(gateway, self.dispatcher.pending,
                                        self.dispatcher.cooldown, clock, log)
        self._slot = ExecutionSlot(clock, log)
        self._timer = RoundTimer(clock)
        self._automatic = AutoPlanner(plan_service, clock, self._plan_is_ready)
        self._guards = ClusterGuards(gateway, clock)
        self._journal = Journal(kv, log, gateway.write_to_cluster_log)
        self._results = ResultWatch(self._journal, self.observer, clock)
        self._executor = PlanExecutor(self._slot, self.dispatcher, self.observer, self._guards,
                                      self._journal, self._timer, settings, clock, wake,
                                      self.publish, lambda: self.drains.status.drains)
        self.drains = DrainControl(gateway, self._journal, clock,
                                   lambda: self._recover(settings()), self._drains_changed)
        self._rest = Rest(self._executor, self.observer, self.dispatcher, gateway, self._journal,
                          self.drains, clock)
        self._publisher = StatusPublisher(self._slot, self.observer, self.dispatcher,
                                          self._journal, lambda: self.drains.status, clock, log)
        self._recovery = Recovery(self._journal, self.dispatcher, plan_store, self._slot,
                                  self.drains, clock, log)
        self._stop_count = 0   # ExecutionSlot.stop_count when the round began
        #: whether a guard stopped the last round; whether the last decision said how long to wait
        self._was_guarded = self._waits_for_time = False

    @property
    def status(self) -> BalancerStatus:
        """The status of the loop as of its last step."""
        return self._publisher.status

    @property
    def state(self) -> str:
        """One of observation/states.py, as published."""
        return self.status.state

    @property
    def reason(self) -> str:
        """The reason of that state, one sentence."""
        return self.status.reason

    @property
    def totals(self) -> Optional[Totals]:
        """Counters since the module first ran, as stored; None before a new mgr has read them."""
        return self._journal.totals

    @property
    def execution(self) -> Optional[Execution]:
        """The execution under way, which the loop changes."""
        return self._slot.execution

    @property
    def plan_name(self) -> Optional[str]:
        """Name of the kept plan that is being executed at this moment, or None."""
        return self._slot.plan_name()

    def publish(self) -> None:
        """Publishes the status as of now."""
        self._publisher.publish()

    def changes(self) -> ChangeLog:
        """The log of changed upmap items, once a new mgr has read it."""
        self._recover(self._settings())
        return self._journal.changes

    # -- requests of commands ------------------------------------------------------------------

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop; False while another named plan is being executed.

        Waits for the key-value store, as `off` does: a successor goes on with what was answered to.
        """
        self._recover(self._settings())
        if self._slot.plan_name() is not None:
            return False
        # before a round can see the plan: it would drop what belongs to a stopped pool
        self.dispatcher.corrections.resume(self._clock(), frozenset(
            pool_of(change.pgid) for change in plan.changes if change.shards))
        self.dispatcher.rejected = {}
        if not self._slot.start_named(name, plan):
            return False
        self._timer.allow_batch()
        self._journal.store_execution(self._slot.plan_name, self._clock(), self._slot.counts())
        self._publisher.publish()
        self.require_observation()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Begins automatic balancing, once a built-in balancer just switched off has noticed."""
        self.drains.resume()
        self._automatic.reset()
        self.dispatcher.rejected = {}
        self.dispatcher.corrections.resume(self._clock())
        if builtin_was_active:
            self._guards.begin_builtin_grace()
            self.observer.request()  # what it adds from now on shows after the wait
        self._publisher.publish()
        self.require_observation()

    def switch_off(self) -> Optional[str]:
        """Stops all sending, by this mgr and by a successor, before it returns; returns the name of
        the plan whose execution this ended, or None.

        Waits for the key-value store, which is a commit of the monitors, and for nothing else: an
        `off` that is not on disk could be undone by a failover.
        """
        self._recover(self._settings())
        self._automatic.reset()
        self.dispatcher.rejected = {}
        self.drains.pause()   # first: no round that begins from here on takes a drain up
        execution = self._slot.stop(STOPPED_BY_OFF)
        self._publisher.enter(IS_OFF, self._slot.stop_count)
        self._publisher.publish()   # the store may take its time
        self._journal.stop(SWITCHED_OFF if execution is None else STOPPED_BY_OFF, self._clock(),
                           self.observer.view)
        self._publisher.publish()
        self._wake()
        return execution.name or None if execution is not None else None

    def stop_plan(self, name: str, outcome: str = STOPPED_BY_RM) -> Optional[Execution]:
        """As `switch_off`, for one kept plan alone. None where it is not being executed."""
        self._recover(self._settings())
        execution = self._slot.stop_named(name, outcome)
        if execution is None:
            return None
        self._publisher.enter(
            _PLAN_STOPPED if self._settings().active else IS_OFF, self._slot.stop_count)
        self._publisher.publish()   # the store may take its time
        self._journal.stop(outcome, self._clock(), self.observer.view)
        self._publisher.publish()
        self.require_observation()
        return execution

    def _drains_changed(self) -> None:
        """A command has changed the list: what is sent from now on is planned by the new one."""
        self._automatic.reset()
        self._slot.stop_automatic(DRAIN_CHANGED)
        self._publisher.publish()
        self.require_observation()

    def require_observation(self) -> None:
        """Makes the next round read the whole cluster, and starts it at once."""
        self.observer.require_observation()
        self._wake()

    def request_observation(self, at_rest: bool = False) -> None:
        """Makes the loop observe once, in any state, for a command whose view is too old."""
        if self.observer.request(at_rest):
            self._wake()

    def _plan_is_ready(self) -> None:   # called by the job thread
        if self._publisher.current.state == PLANNING:
            self._wake()

    def round(self) -> float:
        """One round; returns the seconds until the next is due."""
        settings = self._settings()
        self._recover(settings)
        self._stop_count = self._slot.stop_count
        self._journal.record_execution(self._slot.plan_name, self._clock(), self._slot.counts())
        try:
            self._plan_store.tidy()
            return self._decide(settings)
        finally:
            current = self._publisher.current
            self._journal.observe_state(current.state, current.code, current.reason, self._clock())
            self._publisher.publish()
            self._journal.observe_progress(self.status.progress_ratio())
            self._journal.record_execution(self._slot.plan_name, self._clock(), self._slot.counts())
            self._journal.record_rejected(self.dispatcher.rejected)
            self._journal.record_corrections(self.dispatcher.corrections.to_dict())
            self._journal.write()

    def _recover(self, settings: Settings) -> None:
        """Takes over from the last mgr, once, and publishes that: commands come meanwhile."""
        if self._recovery.recover_once(settings.sleep_interval):
            self._publisher.publish()

    def _decide(self, settings: Settings) -> float:
        """One round's work: while a guard holds or nothing has changed a summary is enough."""
        execution, is_asked = self._end_if_switched_off(settings), self.observer.begin_round(settings)
        if execution is None and not (settings.active or self.drains.is_running):
            self._publisher.enter(IS_OFF, self._stop_count)
            self._guards.observe_builtin()
            self._results.at_rest(settings, self._update_view)
            if is_asked or not self._timer.is_early() and self.observer.is_behind(None):
                self._update_view(None, settings)
            return self._timer.next_round(settings.sleep_interval)
        try:
            summary = self.observer.summary()
        except NotReady as not_ready:
            return self._not_ready(not_ready, settings)
        self._journal.measure(summary)
        guard = self._guards.check(summary, settings, execution,
                                   self.drains.drains_only(settings))
        if guard is not None:
            self._stop_for(guard, execution)
            self._publisher.enter(guard, self._stop_count)
        elif self._is_due(summary, settings):
            return self._observe_and_act(summary, settings)
        if is_asked or guard is not None and self.observer.is_behind(summary):
            self._update_view(summary, settings)
        return (self._timer.rest_of_round(settings.sleep_interval) if guard is None
                else self._timer.next_round(settings.sleep_interval, guard.seconds))

    def _end_if_switched_off(self, settings: Settings) -> Optional[Execution]:
        """Returns the execution under way; ends an automatic one that is no longer wanted."""
        execution = self.execution
        if execution is not None and not (execution.name or settings.active or (
                execution.kind == DRAIN and self.drains.is_running)):
            self._slot.end(execution, SWITCHED_OFF)
            execution = self.execution
        if execution is None and not (settings.active or self.drains.is_running):
            self._journal.end(self.drains.pop_ending(), self._clock(), self.observer.view)
        return execution

    def _stop_for(self, guard: Verdict, execution: Optional[Execution]) -> None:
        """Records that a guard holds and ends the stall: such time does not count for max_wait."""
        if execution is not None:
            execution.stall.end()
        self._was_guarded, self._waits_for_time = True, guard.seconds is not None

    def _is_due(self, summary: ClusterSummary, settings: Settings) -> bool:
        """True where this round has to observe the whole cluster. One that was woken early does so
        only where that was required, or where a finished plan can be taken up."""
        changes, state = self.observer.change_detector, self._publisher.current.state
        if self.observer.view is None or changes.observation_required or self._was_guarded:
            return True
        is_new = state == OFF and settings.active   # its option has just been set
        if is_new or self.execution is None and self._automatic.is_ready:
            return True
        if self.execution is None and state == PLANNING and self._automatic.is_planning:
            return False
        if self._timer.is_early():
            return False
        if self.dispatcher.has_unconfirmed_excess:
            return True
        if state == WAITING and self.execution is None and not self._waits_for_time:
            state = BLOCKED   # for what the cluster does: its pg_num changes, OSDs do not report
        return changes.is_due(summary, settings, BALANCED if state == OFF else state,
                              self._automatic.is_retry_due)

    def _observe(self, summary: Optional[ClusterSummary], settings: Settings) -> Snapshot:
        snapshot = self.observer.observe(summary)
        self.dispatcher.observe(snapshot)
        self._guards.observe_items(snapshot.upmap_items)
        self.drains.observe(snapshot, self.dispatcher.pending.entries)
        self.observer.update_view(snapshot, settings)
        self._journal.observe_arrivals(self.observer.view)
        self._publisher.publish()
        return snapshot

    def _update_view(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """Observes because a command has asked: nothing is decided, and what the loop compares the
        cluster with stays."""
        try:
            self._observe(summary, settings)
        except NotReady as not_ready:
            self._log.info("the cluster cannot be observed: %s", not_ready)

    def _observe_and_act(self, summary: ClusterSummary, settings: Settings) -> float:
        self._waits_for_time, self._was_guarded = False, False
        self.observer.change_detector.begin_observation(summary, settings)
        try:
            outcome = self._act(self._observe(summary, settings), settings)
        except NotReady as not_ready:
            self.observer.require_observation()
            return self._not_ready(not_ready, settings)
        self._publisher.enter(outcome, self._stop_count, decided_on=summary)
        seconds = outcome.seconds
        if self._publisher.current.state == PLANNING and self._automatic.is_ready:
            seconds = 1.0  # made while this round ended: it can be taken up now
        self._waits_for_time = seconds is not None
        return self._timer.next_round(settings.sleep_interval, seconds)

    def _not_ready(self, not_ready: NotReady, settings: Settings) -> float:
        self._publisher.enter(Verdict(codes.NOT_READY, str(not_ready), state=WAITING),
                              self._stop_count)
        return self._timer.next_round(settings.sleep_interval, _NOT_READY_SECONDS)

    def _act(self, snapshot: Snapshot, settings: Settings) -> Verdict:
        execution, drains_only = self.execution, self.drains.drains_only(settings)
        if execution is None and not (settings.active or self.drains.is_running):
            return IS_OFF
        guard = self._guards.check_snapshot(snapshot, settings, execution, drains_only)
        if guard is not None:
            self._stop_for(guard, execution)
            return guard
        if execution is not None and not execution.name:
            step = self._automatic.replan_step(snapshot, settings, execution,
                                               self.dispatcher.osd_traffic(snapshot), drains_only)
            if step is not None and not step.replan:
                return step.why
            if step is not None:
                if self._slot.end(execution, because(SUPERSEDED, step.why.reason)):
                    self._automatic.keep_wanted(execution)
                execution = self.execution
        if execution is not None:
            return self._advance(execution, snapshot, settings)
        return self._plan_or_rest(snapshot, settings)

    def _plan_or_rest(self, snapshot: Snapshot, settings: Settings) -> Verdict:
        drains_only = self.drains.drains_only(settings)
        limit = nothing_to_balance(settings, snapshot)
        if limit is not None and not drains_only:
            self._journal.end(STUCK, self._clock(), self.observer.view)
            return limit
        if self.dispatcher.pending.awaits_reports:   # no plan from figures that are not settled
            return AWAITS_REPORTS
        excluded = self.dispatcher.excluded(snapshot, settings)
        step = self._automatic.next_step(snapshot, settings, excluded, self.observer.resting(),
                                         drains_only, self.drains.has_work)
        self.drains.observe_plan(self._automatic.stuck, snapshot, excluded)
        if step.plan is None:
            return (self._rest.outcome(step, snapshot, settings, excluded) if step.is_idle
                    else step.why)
        execution = Execution("", step.plan.changes, self._clock(), step.plan.kind)
        if not self._slot.start(execution, self._stop_count):
            return _COME_IN_BETWEEN
        self._executor.record(execution, step.why.reason)
        return self._advance(execution, snapshot, settings)

    def _advance(self, execution: Execution, snapshot: Snapshot,
                 settings: Settings) -> Verdict:
        outcome = self._executor.advance(execution, snapshot, settings)
        return outcome or self._finish(execution, snapshot, settings)

    def _finish(self, execution: Execution, snapshot: Snapshot,
                settings: Settings) -> Verdict:
        """Ends an execution of which nothing is left; the next step needs no new observation."""
        ending = self._executor.ending(execution, settings)
        if not self._slot.end(execution, ending.outcome):
            return _COME_IN_BETWEEN
        if execution.name:
            self._journal.end(ending.outcome, self._clock(), self.observer.view)
        elif ending.nothing_sent is not None:
            self._automatic.idle_after_refusal(
                snapshot, settings, self.dispatcher.excluded(snapshot, settings),
                ending.nothing_sent, self.drains.drains_only(settings))
        if not (settings.active or self.drains.is_running):
            return Verdict(codes.SWITCHED_OFF, f"plan '{execution.name}' is {ending.outcome}",
                           state=OFF)
        return self._act(snapshot, settings)
