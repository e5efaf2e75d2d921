"""The loop of the serve thread: refresh, guards, plan, send, verify, idle.

Commands begin and stop executions here, and leave requests. Only `round`, in the serve thread,
reads the cluster and sends batches. A round that something wakes early reads a summary, and the
whole cluster only if it has to. Batches keep their distance.
"""
from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import contextmanager
from typing import (
    Callable, ContextManager, Dict, FrozenSet, Iterator, Mapping, Optional, Sequence, Tuple, Union)

from ..drain.drain_list import DrainList, drain_list_from_dict
from ..drain.status import DrainStatus
from ..execution.batch import Decision
from ..execution.pg_num_steps import in_the_way
from ..execution.outcomes import DroppedChange, ExcludedPgs, Refusals, Verdict
from ..execution.dispatcher import SentBatch, UpmapDispatcher
from ..execution.execution import (
    Execution, ExecutionProgress, ExecutionSlot, ExecutionUpdate, Stall)
from ..execution.guards import TRANSIENT_RECHECK_SECONDS, blocked_by
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..observation.refusals import COUNTED, count_refusals, idle_state
from ..observation.load_ledger import LoadLedger
from ..observation.observer import ClusterObserver
from ..observation.cluster_view import (
    BALANCED, BLOCKED, MOVING, OFF, PLANNING, STUCK, THROTTLED, WAITING)
from ..plan.model import CANCEL, DRAIN, MOTIONLESS, STEER, UNDO, PgChange, Plan, command_of
from ..plan.store import PlanStore
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import format_deadline, plural
from ..runtime.kv_store import KeyValueStore
from ..runtime.waiting import WaitTimer
from ..settings import Settings
from ..snapshot import pg_states, reason_codes as codes
from ..snapshot.model import Snapshot, pool_of
from ..undo.change_log import ChangeLog
from ..undo.undo_plan import with_holders_of_log
from .auto_planner import AutoPlanner, NextStep
from .cancelling import changes_in_the_way, withheld_changes, withheld_pgs
from .drain_control import DrainControl
from .balancing_scope import automatic_options, nothing_to_balance
from .cluster_guards import ClusterGuards, wait_until
from .journal import (
    COMPLETED, DRAIN_CHANGED, DRAINED_GONE, DROPPED, STOPPED_BY_DRAIN_RM, STOPPED_BY_OFF,
    STOPPED_BY_RM, SUPERSEDED, SWITCHED_OFF, Episode, Journal, Totals, sent_before)
from .status import AWAITS_REPORTS, IS_OFF, BalancerStatus, execution_progress, groups_of
from .steering import holds_placement, plan_before_steering

_NOT_READY_SECONDS = 5.0   # until a mgr that lacks maps or statistics is read again
#: Seconds: the shortest round, and how early a timer on another clock may begin a round.
_SHORTEST_SECONDS = 1.0
_TOLERANCE_SECONDS = 1.0
#: The longest round while an option asks for steering: shards get other targets only before they
#: begin to arrive.
_STEERING_SECONDS = 15.0
#: At most so many changes are sent at a time, or max_moves_per_round if that is more. No limit of
#: movement binds changes that copy no data, and the monitors put a batch into one map.
_MOST_CHANGES = 1000
#: Seconds between two batches of a plan that adds no copy (MOTIONLESS).
_NEXT_SECONDS = 2.0
#: The longest round while PGs that were sent are not seen to be active.
_WATCHED_SECONDS = 60.0
#: A state goes on if it is interrupted for fewer seconds.
_MOMENT_SECONDS = 60.0
_COME_IN_BETWEEN = Verdict(codes.PLANNING, "a plan to execute has come in between", state=PLANNING)
_OUT_OF_DATE = Verdict(
    codes.PLANNING, "the options or the drains have changed, or a plan to execute has come in"
    " between", state=PLANNING)
_PLAN_STOPPED = Verdict(codes.PLANNING, "the execution of a plan was stopped", state=PLANNING)


class Balancer:
    """Decides what each round does. Other threads read `status`, which is replaced whole.

    Commands and the loop publish it from different threads. Each reads everything under a lock, so
    that the newest wins.
    """

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
                                        self.dispatcher.cooldown, self.dispatcher.steered, clock,
                                        log)
        self._slot = ExecutionSlot(clock, log)
        self._automatic = AutoPlanner(plan_service, gateway.max_pg_shards, clock,
                                      wake)
        self._guards = ClusterGuards(gateway, clock)
        self._journal = Journal(kv, log, gateway.write_to_cluster_log)
        self._loads = LoadLedger()
        self.drains = DrainControl(gateway, self._journal, clock)
        #: how an episode ends when balancing and drains have ended
        self._drain_ending = SWITCHED_OFF
        self._recovery_lock = threading.Lock()
        self._is_recovered = False
        self._round = WaitTimer()   # until the next round
        self._wait = WaitTimer()    # until the state has more to say, perhaps several rounds later
        self._batch = WaitTimer()   # until the next batch
        self._options: Optional[Settings] = None   # of the last round
        self._stop_count = 0   # ExecutionSlot.stop_count when the round began
        self._waits_for_time = False   # whether the last state said how long to wait
        self._status_lock = threading.Lock()
        self.status = BalancerStatus()
        self._current = Verdict(self.status.reason_code, self.status.reason, state=OFF)
        self._withheld: Mapping[str, Tuple[str, str]] = {}   # as in the status
        self._since_at: Optional[float] = None   # seconds since the epoch, as `until_at`
        self._former: Dict[str, Tuple[float, float]] = {}   # state → its begin and end
        self._until_at: Optional[float] = None
        self._decided_on: Optional[ClusterSummary] = None

    @property
    def totals(self) -> Totals:
        """Returns the counters since the mgr became active."""
        return self._journal.totals

    @property
    def execution(self) -> Optional[Execution]:
        """Returns the execution under way, which the loop changes."""
        return self._slot.execution

    @property
    def plan_name(self) -> Optional[str]:
        """Returns the name of the kept plan that is being executed at this moment, or None."""
        return self._slot.plan_name()

    def changes(self) -> ChangeLog:
        """Returns the log of changed upmap items, once a new mgr has read it."""
        self._recover()
        return self._journal.changes

    # -- the status ----------------------------------------------------------------------------

    def _enter(self, outcome: Verdict, decided_on: Optional[ClusterSummary] = None) -> None:
        """Enters a state, unless a stop since the round began has made the round void."""
        with self._status_lock:
            if self._stop_count == self._slot.stop_count:
                self._change_state(outcome, decided_on)

    def _change_state(self, outcome: Verdict, decided_on: Optional[ClusterSummary] = None) -> None:
        """Changes the state that the next status shows."""
        now = self._clock()
        if outcome.state != self._current.state or self._since_at is None:
            self._since_at = self._begin_of(outcome.state, now)
            self._log.info("%s: %s", outcome.state, outcome.reason)
        self._current = outcome
        self._until_at = None
        if outcome.state == WAITING and outcome.seconds is not None:
            self._until_at = now + outcome.seconds
        self._decided_on = decided_on or self._decided_on

    def _begin_of(self, state: str, now: float) -> float:
        """Returns since when a state lasts that begins now. It goes on if it ended a moment ago,
        or if only a plan was made since."""
        away_at = now
        since = self._since_at or now
        if self._current.state == PLANNING:
            away_at = since
        else:
            self._former[self._current.state] = since, now
        begin, end = self._former.get(state, (now, now))
        if away_at - end >= _MOMENT_SECONDS:
            return now
        return begin

    def publish(self) -> None:
        """Replaces the status by the present one."""
        with self._status_lock:
            current = self._current
            slot = self._slot
            execution = slot.execution
            journal = self._journal
            episode = journal.episode
            observer = self.observer
            dispatcher = self.dispatcher
            settings = self._settings()
            steered = self._automatic.steering.choice
            is_steered = dispatcher.steered.moved and (
                steered.elsewhere_shards or steered.held_shards)
            self.status = BalancerStatus(
                state=current.state,
                reason=current.reason,
                reason_code=current.code,
                reason_numbers=current.numbers,
                refusals=current.refusals,
                since_at=self._since_at,
                until_at=self._until_at,
                wanted=execution.wanted if execution is not None else (),
                deferred=current.waiting,
                waiting=groups_of(execution, current),
                sent=dict(dispatcher.pending.entries),
                view=observer.view,
                builtin_active=observer.builtin_active,
                progress=self._progress(execution, episode, current.code),
                last_execution=slot.last,
                episode=episode._asdict() if episode is not None else None,
                history=journal.history,
                rejected=dispatcher.rejected,
                withheld=self._withheld,
                mispredicted=dispatcher.corrections.stopped,
                decided_on=self._decided_on,
                drains=self.drains.status,
                steered=steered if is_steered else None,
                steering_at=self._automatic.steering_at(settings, execution),
                steering_waits_for=plan_before_steering(
                    execution, observer.view, settings, self._clock()),
                holds_placement=holds_placement(settings),
                steered_at=steered.at)

    def _progress(self, execution: Optional[Execution], episode: Optional[Episode],
                  code: str) -> Optional[ExecutionProgress]:
        if execution is None:
            return None
        try:   # it is only shown: neither a round nor `off` may fail for it
            return execution_progress(
                execution, episode, self.observer.view, code, self._clock())
        except Exception:
            self._log.exception("how far the execution has come cannot be computed")
            return ExecutionProgress(execution.name, execution.summary())

    # -- requests of commands ------------------------------------------------------------------

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop. Returns False while a named plan is being executed.

        Waits for the key-value store, as `off` does: the next mgr goes on with the plan.
        """
        self._recover()
        if self.plan_name is not None:
            return False
        # before a round can see the plan: it would drop changes of a stopped pool
        self.dispatcher.corrections.resume(frozenset(
            [pool_of(change.pgid) for change in plan.changes if change.shards]))
        self.dispatcher.lift_rejections()
        execution = Execution(name, plan.changes, self._clock(), plan.kind)
        view = self.observer.view
        if view is not None:
            execution.moved_before = frozenset(view.snapshot.in_flight())
        if not self._journal.begin_execution(
                name, execution.started_at, lambda: self._slot.start(execution)):
            return False
        self._batch.end()   # its first batch waits for none
        self.publish()
        self.require_observation()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Begins automatic balancing, and continues drains that `off` has paused.

        A built-in balancer that was just switched off has time to notice that first.
        """
        if self.drains.status.drains.is_paused:
            self.change_drains(lambda drains: drains.paused(False))
        self._automatic.reset()
        self.dispatcher.lift_rejections()
        self.dispatcher.corrections.resume()
        if builtin_was_active:
            self._guards.begin_builtin_grace()
            self.observer.request()  # items that it adds later show as new after the wait
        self.publish()
        self.require_observation()

    def switch_off(self) -> Optional[str]:
        """Stops all sending, by this mgr and by the next one, before it returns. Returns the name
        of the plan whose execution this ended, or None.

        Waits until a batch is handed over, which takes milliseconds, and for the key-value store,
        which is a commit of the monitors: a failover could undo an `off` that is not on disk.
        """
        self._recover()
        self._automatic.reset()
        self.dispatcher.lift_rejections()
        # first: no round that begins from here on takes a drain up
        self.drains.replace(lambda drains: drains.paused(True))
        execution = self._slot.stop(STOPPED_BY_OFF)
        self._stopped(IS_OFF, SWITCHED_OFF if execution is None else STOPPED_BY_OFF)
        self._wake()
        if execution is None:
            return None
        return execution.name or None

    def stop_plan(self, name: str, outcome: str = STOPPED_BY_RM) -> Optional[Execution]:
        """Stops the execution of one kept plan and returns it; None if it is not executed. Nothing
        of it is sent after that, as with `switch_off`."""
        self._recover()
        execution = self._slot.stop(outcome, name)
        if execution is not None:
            self._stopped(_PLAN_STOPPED if self._settings().active else IS_OFF, outcome)
            self.require_observation()
        return execution

    def _stopped(self, state: Verdict, outcome: str) -> None:
        """Enters the state after a command has stopped sending, and stores that."""
        with self._status_lock:
            self._change_state(state)
        self.publish()   # the store may take its time
        self._journal.stop(outcome, self._clock(), self.observer.view)
        self.publish()

    def drain_status(self) -> DrainStatus:
        """Returns how far drains are, once a new mgr has read the list of the last one."""
        self._recover()
        return self.drains.status

    def change_drains(self, change: Callable[[DrainList], DrainList]) -> None:
        """Changes the list for a command. On return it is stored."""
        self._recover()
        self.drains.replace(change, at_once=True)
        self._drains_changed(STOPPED_BY_DRAIN_RM)

    def _drains_changed(self, ending: str) -> None:
        """Stops the automatic plan: the next one follows the new list. `ending`: how the episode
        ends if nothing is left on the list and balancing is off."""
        self._drain_ending = SWITCHED_OFF
        if not (self.drains.status.drains.names or self._settings().active):
            self._drain_ending = ending
        self._automatic.reset()
        self._slot.stop(DRAIN_CHANGED, "")
        self.publish()
        self.require_observation()

    def require_observation(self) -> None:
        """Makes the next round read the whole cluster, and starts it at once."""
        self.observer.is_required = True
        self._wake()

    def request_observation(self, at_rest: bool = False) -> None:
        """Requests one reading of the cluster, in any state, for a command whose view is too old:
        see `ClusterObserver.request`."""
        if self.observer.request(at_rest):
            self._wake()

    # -- the loop ------------------------------------------------------------------------------

    def round(self) -> float:
        """Runs one round. Returns the seconds until the next is due."""
        settings = self._settings()
        journal = self._journal
        self._recover()
        self._stop_count = self._slot.stop_count
        try:
            self._plan_store.tidy()
            self._count_operations()
            return self._decide(settings)
        finally:
            self.publish()
            journal.observe_progress(self.status.progress_ratio())
            self._record_name()
            journal.record_learnt(self.dispatcher.to_dict())
            journal.write()

    def _count_operations(self) -> None:
        """Counts what clients have asked of pools since the last full reading of statistics."""
        gateway = self._gateway
        found = gateway.operations
        try:   # neither a round nor `off` may fail for it
            if found is not None and self._loads.observe(*found):
                self._journal.record_loads(self._loads.to_dict())
                gateway.pool_rates = self._loads.rates()
                gateway.read_capacities()   # last: it may wait for a monitor in vain
        except Exception:
            self._log.exception("operations cannot be counted")

    def _record_name(self) -> None:
        """Records which named plan the next mgr goes on with, if any."""
        self._journal.record_execution(self._slot.plan_name, self._clock())

    def _recover(self) -> None:
        """Takes over from the last mgr at the first call, and goes on with the named plan that it
        was executing. Other threads wait for that."""
        with self._recovery_lock:
            if self._is_recovered:
                return
            now = self._clock()
            settings = self._settings()
            self._loads.restore(self._journal.stored_loads())
            self._gateway.pool_rates = self._loads.rates()
            name, sent, learnt, drains = self._journal.recover(
                now, settings.sleep_interval, settings.pg_cooldown)
            self.dispatcher.restore(sent_before(sent), learnt)
            self._automatic.steering.restore(sent)
            self.observer.logged = {row.pgid: (row.raw, row.after) for row in sent}
            # an OSD may have withheld a PG for long
            self.dispatcher.is_watched |= not self._journal.changes.is_empty
            self.drains.replace(lambda _: drain_list_from_dict(drains), store=False)
            if name is not None:
                self._resume(name, now)
            self._is_recovered = True   # last: a read that raises is tried again
        self.publish()

    def _resume(self, name: str, now: float) -> None:
        """Goes on with the named plan of the last mgr."""
        try:
            plan = self._plan_store.get(name)
        except (ValueError, KeyError) as error:  # BadPlan is a ValueError
            self._log.warning("cannot go on with the execution of a plan: %s", error)
            self._journal.end(f"{DROPPED}: its plan is lost", now, None)
            return
        execution = Execution(name, plan.changes, now, plan.kind)
        # the last mgr has recorded it if it has left an episode
        execution.is_recorded = self._journal.episode is not None
        if self._slot.start(execution):
            self._log.info("going on with the execution of plan %s", name)

    def _decide(self, settings: Settings) -> float:
        """Does the work of one round. Returns the seconds until the next one.

        While a guard holds or nothing has changed, a summary is enough to decide.
        """
        if settings != self._options:   # they are effective at once
            self._options = settings
            self._round.end()
            self._wait.end()
        execution = self.execution
        if execution is not None and not self._is_asked_for(execution, settings):
            self._slot.end(execution, SWITCHED_OFF)
            execution = self.execution
        if self._is_off(settings):
            return self._round_while_off(settings)
        is_asked = self.observer.begin_round(settings)
        try:
            summary = self.observer.summary()
        except NotReady as not_ready:
            return self._not_ready(not_ready, settings)
        guard = self._guards.check(summary, summary.mon_connected, summary.builtin_active, settings,
                                   execution, self.drains.drains_only(settings))
        if guard is not None:
            self._note_guard(guard, execution)
            self._enter(guard)
            left = self._round.seconds_left(self._clock())
            if settings.steers and left > _TOLERANCE_SECONDS and not is_asked:
                return min(left, _STEERING_SECONDS)   # OSDs have perhaps changed then
            if is_asked or self.dispatcher.is_watched or self.observer.is_behind(summary):
                self._update_view(summary, settings)
            return self._next_round(settings, guard.seconds)
        if not self._is_due(summary, settings):
            return self._round_for_view(summary, settings, is_asked)
        return self._whole_round(summary, settings)

    def _round_while_off(self, settings: Settings) -> float:
        """Refreshes the view if that is needed, and sends nothing."""
        is_watched = self.dispatcher.is_watched
        self._end_episode(self._drain_ending)
        self._drain_ending = SWITCHED_OFF
        is_needed = self.observer.begin_round(settings)
        self._enter(IS_OFF)
        self._guards.observe_builtin(self._gateway.builtin_balancer_active())
        if not is_needed and not self._is_early():
            is_needed = is_watched or self.observer.is_behind(None)
        if is_needed:
            self._update_view(None, settings)
        return self._next_round(settings)

    def _round_for_view(self, summary: ClusterSummary, settings: Settings,
                        is_needed: bool) -> float:
        """Refreshes the view if that is needed, and decides nothing. Returns the seconds until the
        next round."""
        is_for_steering = settings.steers and self._is_early()   # to see whether OSDs have changed
        if not is_needed and not is_for_steering and self.execution is not None:
            is_needed = self.observer.is_behind(summary)
        if not is_needed and self.dispatcher.is_watched:
            is_needed = not self._is_early()
        if is_needed:
            self._update_view(summary, settings)
        left = self._round.seconds_left(self._clock())   # it came early or had no work
        if left <= _TOLERANCE_SECONDS:
            self._round.begin(self._clock(), settings.sleep_interval)
            left = max(_SHORTEST_SECONDS, settings.sleep_interval)
        return min(left, _STEERING_SECONDS) if settings.steers else left

    def _whole_round(self, summary: ClusterSummary, settings: Settings) -> float:
        """Reads the whole cluster, and acts on it."""
        self._waits_for_time = False
        self.observer.begin_look(summary, settings)
        try:
            snapshot = self._make_way(self._observe(summary, settings), settings)
            outcome = None
            while outcome is None:   # when an execution ends, the next step needs no newer one
                outcome = self._step(snapshot, settings)
        except NotReady as not_ready:
            self.observer.is_required = True
            return self._not_ready(not_ready, settings)
        self._enter(outcome, summary)
        self._waits_for_time = outcome.seconds is not None
        return self._next_round(settings, outcome.seconds)

    def _next_round(self, settings: Settings, seconds: Optional[float] = None) -> float:
        """Begins the wait for the next round. Returns the seconds until the loop wakes up, which
        may be fewer if an option asks for steering. `seconds`: until the state has more to say."""
        now = self._clock()
        delay = settings.sleep_interval
        self._wait.begin(now, seconds or 0.0)
        if seconds is not None:
            delay = min(delay, seconds)
        if self.dispatcher.is_watched:
            delay = min(delay, _WATCHED_SECONDS)
        delay = max(_SHORTEST_SECONDS, delay)
        self._round.begin(now, delay)
        return min(delay, _STEERING_SECONDS) if settings.steers else delay

    def _is_off(self, settings: Settings) -> bool:
        """Returns True if nothing may be sent: no balancing, no drain and no named plan."""
        return not (settings.active or self.drains.is_running or self.plan_name)

    def _is_asked_for(self, execution: Execution, settings: Settings) -> bool:
        """Returns True if a command or the options still want the execution."""
        if execution.name or settings.active:
            return True
        return execution.kind == DRAIN and self.drains.is_running

    def _is_early(self) -> bool:
        """Returns True if something has woken the loop before its round or state was due."""
        now = self._clock()
        left = max(self._round.seconds_left(now), self._wait.seconds_left(now))
        return left > _TOLERANCE_SECONDS

    def _note_guard(self, guard: Verdict, execution: Optional[Execution]) -> None:
        """Records that a guard holds and ends the stall: such time does not count for max_wait."""
        if execution is not None:
            execution.stall = Stall()
        self.observer.is_required = True   # for the first round without a guard
        self._waits_for_time = guard.seconds is not None

    def _not_ready(self, not_ready: NotReady, settings: Settings) -> float:
        self._enter(Verdict(codes.NOT_READY, str(not_ready), state=WAITING))
        return self._next_round(settings, _NOT_READY_SECONDS)

    def _is_due(self, summary: ClusterSummary, settings: Settings) -> bool:
        """Returns True if this round must read the whole cluster.

        A round that was woken early must read it only if that is required, if a finished plan can
        be taken up, if `active` was just set, or if shards may have to be steered.
        """
        observer = self.observer
        state = self._current.state
        is_free = self.execution is None
        if observer.view is None or observer.is_required:
            return True
        if state == OFF and settings.active:   # its option has just been set
            return True
        if is_free and self._automatic.is_ready:
            return True
        if is_free and state == PLANNING and self._automatic.is_planning:
            return False
        if settings.steers and observer.has_placement_changed(summary):
            return True
        if self._is_to_give_way(settings):
            return True
        if self._is_early():
            return False
        if self.dispatcher.corrections.has_unconfirmed_excess or self.dispatcher.is_watched:
            return True
        if state == OFF:
            state = BALANCED
        elif is_free and state == WAITING and not self._waits_for_time:
            state = BLOCKED   # for what the cluster does: its pg_num changes, OSDs do not report
        return observer.is_due(summary, settings, state, self._automatic.is_retry_due)

    def _is_to_give_way(self, settings: Settings) -> bool:
        """Returns True if an automatic execution has to end because shards are to be steered."""
        execution = self.execution
        if execution is None or execution.name or execution.kind == STEER:
            return False
        return self._automatic.is_steering_due(settings)

    # -- refresh -------------------------------------------------------------------------------

    def _observe(self, summary: Optional[ClusterSummary], settings: Settings) -> Snapshot:
        snapshot = self.observer.observe(summary)
        if self.observer.view is None:   # nobody knows which PGs were remapped a moment ago
            self._batch.begin(self._clock(), snapshot.unsettled_seconds)
        self.dispatcher.observe(snapshot)
        if self.drains.observe(snapshot, self.dispatcher.pending.entries):
            # this round still has the snapshot in which they are drained
            self._drains_changed(DRAINED_GONE)
        self.observer.update_view(snapshot, settings)
        snapshot = self._cancel_withheld(snapshot, settings)
        self.publish()
        return snapshot

    def _update_view(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """Reads the cluster for the view alone: a command has asked, data has moved, or PGs are
        watched.

        Nothing is planned, and the loop goes on to compare the cluster with an older summary. Moves
        to an OSD that withholds the PG are cancelled all the same, unless the module is off.
        """
        try:
            self._observe(summary, settings)
        except NotReady as not_ready:
            self._log.info("the cluster cannot be observed: %s", not_ready)

    # -- cancel --------------------------------------------------------------------------------

    def _make_way(self, snapshot: Snapshot, settings: Settings) -> Snapshot:
        """Cancels moves of the execution that wait where steps of pg_num do. They stay wanted.
        Returns the newest snapshot."""
        execution = self.execution
        if execution is None or self._is_off(settings):
            return snapshot
        self._count_cancelled(execution, snapshot)   # those without an answer in time
        dispatcher = self.dispatcher
        # changes without an answer are wanted anyway; rejected ones must not be wanted again
        pgids = in_the_way(snapshot, dispatcher.pending.entries).difference(
            execution.unanswered, dispatcher.rejected)
        if not pgids or dispatcher.backoff.seconds_left(self._clock()):
            return snapshot
        rows = self._journal.changes.newest_first
        changes = changes_in_the_way(snapshot, rows, pgids, execution.name, execution.started_at)
        # in the log it is the plan's own
        back = Execution(execution.name, changes, self._clock(), UNDO)
        batch = dispatcher.choose(back, snapshot, settings, 0.0).send
        execution.note_cancelling(batch, snapshot, dispatcher.pending.entries)
        newest = self._send_back(back, batch, snapshot, settings)
        if newest is None:
            return snapshot
        self._count_cancelled(execution, newest)
        return newest

    def _count_cancelled(self, execution: Execution, snapshot: Snapshot) -> None:
        """Puts moves that this osdmap shows cancelled back into the plan, and takes them off the
        moves that were sent."""
        if not execution.cancelling:
            return
        dispatcher = self.dispatcher
        back = ExecutionUpdate(execution.take_cancelled(
            snapshot, dispatcher.pending.entries.keys() - dispatcher.rejected.keys()))
        if back.sent:
            dispatcher.made_way.start([change.pgid for change in back.sent], self._clock())
            self._journal.record_sent(-back.sent_moves, -back.sent_bytes)

    def _cancel_withheld(self, snapshot: Snapshot, settings: Settings) -> Snapshot:
        """Cancels moves to OSDs that withhold the PG, unless the module is off. Returns the newest
        snapshot.

        Each PG stays where its data is, so no limit of movement binds. Only the pause after a
        batch of which the monitor took nothing delays this.
        """
        pgids = self.dispatcher.withheld(snapshot)
        self._withheld = {}
        if not pgids:
            return snapshot
        rows = self._journal.changes.newest_first
        seen = with_holders_of_log(snapshot, rows, pgids)
        back = Execution("", withheld_changes(seen, rows, pgids), self._clock(), CANCEL)
        batch = self.dispatcher.choose(back, seen, settings, 0.0).send
        if not self._is_off(settings) and not self.dispatcher.backoff.seconds_left(self._clock()):
            newest = self._send_back(back, batch, seen, settings)
            if newest is not None:
                self.observer.is_required, snapshot = True, newest
        self._withheld = withheld_pgs(seen, pgids, snapshot, batch)   # replaced whole
        return snapshot

    def _send_back(self, back: Execution, batch: Sequence[PgChange], before: Snapshot,
                   settings: Settings) -> Optional[Snapshot]:
        """Sends a batch that cancels moves. Returns the newest snapshot, None if nothing was
        sent."""
        if not batch:
            return None
        sent = self._hand_over(back, batch, before, self._permit_back())
        if sent is None:
            return None
        self.observer.update_view(sent.snapshot, settings, same_bounds=True)
        return sent.snapshot

    @contextmanager
    def _permit_back(self) -> Iterator[bool]:
        """Context as `_permit` for a batch that cancels moves, beside the execution. Yields False
        if something was stopped since the round began, or if the module is off."""
        with self._slot.permit_sending(self._slot.execution):
            yield self._stop_count == self._slot.stop_count and not self._is_off(self._settings())

    # -- plan ----------------------------------------------------------------------------------

    def _step(self, snapshot: Snapshot, settings: Settings) -> Optional[Verdict]:
        """Checks the guards, then goes on with the execution, takes up a plan, asks for one, or is
        idle. Returns the state, None if an execution has ended."""
        if self._is_off(settings):
            return IS_OFF
        execution = self.execution
        drains_only = self.drains.drains_only(settings)
        guard = self._guards.check(
            snapshot, self._gateway.have_mon_connection(), self._gateway.builtin_balancer_active(),
            settings, execution, drains_only)
        if guard is not None:
            self._note_guard(guard, execution)
            return guard
        if execution is not None and not execution.name:
            why = self._automatic.why_not_on(
                snapshot, settings, execution, self.dispatcher.osd_traffic(snapshot), drains_only)
            if why is not None and why.state == WAITING:
                return why
            if why is not None:
                self._slot.end(execution, f"{SUPERSEDED}: {why.reason}")
                execution = self.execution
        if execution is None:
            found = self._next_plan(snapshot, settings, drains_only)
            if isinstance(found, Verdict):
                return found
            execution = found
        decision = self._choose(execution, snapshot, settings)
        if decision.send:
            return self._send(execution, decision, snapshot, settings)
        outcome = self._wait_for(execution, decision, snapshot, settings)
        if outcome is not None:
            return outcome
        return self._finish(execution, snapshot, settings)

    def _next_plan(self, snapshot: Snapshot, settings: Settings,
                   drains_only: bool) -> Union[Execution, Verdict]:
        """Returns the execution of an automatic plan that was made, else the state."""
        limit = nothing_to_balance(settings, snapshot)
        if limit is not None and not drains_only:
            self._end_episode(STUCK)
            return limit
        if self.dispatcher.pending.awaits_reports:   # no plan from figures in motion
            return AWAITS_REPORTS
        excluded = self.dispatcher.excluded(snapshot, settings)
        step = self._automatic.next_step(
            snapshot, settings, excluded, self.observer.noise, drains_only, self.drains.has_work)
        self.drains.observe_plan(self._automatic.stuck)
        if step.is_idle:
            return self._idle(step, snapshot, settings, excluded)
        if step.plan is None:
            return step.why
        execution = Execution("", step.plan.changes, self._clock(), step.plan.kind)
        if not self._slot.start(execution, self._stop_count):
            return _COME_IN_BETWEEN
        self._record(execution, step.why.reason)
        return execution

    def _record(self, execution: Execution, why: str) -> None:
        """Counts the execution in the episode, once, unless a command has ended the execution."""
        if not execution.is_recorded:
            self._journal.begin_plan(execution.name, why, self._clock(), self.observer.view,
                                     lambda: self._slot.execution is execution,
                                     adds=execution.kind == STEER)
            execution.is_recorded = True

    def _end_episode(self, outcome: str) -> None:
        self._journal.end(outcome, self._clock(), self.observer.view)

    def _finish(self, execution: Execution, snapshot: Snapshot,
                settings: Settings) -> Optional[Verdict]:
        """Ends an execution that waits for nothing more. None: the round takes its next step."""
        ending = self._ending(execution, settings)
        if not self._slot.end(execution, ending):
            return _COME_IN_BETWEEN
        if execution.name:
            self._end_episode(ending)
        elif execution.kind == STEER or execution.waits_for_rebuild:
            return None   # not idle: the next plan is another, or may be the same
        elif execution.has_sent_nothing:
            self._automatic.idle_after_refusal(
                snapshot, settings, self.dispatcher.excluded(snapshot, settings),
                execution.dropped[0][1], self.drains.drains_only(settings))
        return None

    def _ending(self, execution: Execution, settings: Settings) -> str:
        """Returns the outcome of an execution that waits for nothing more."""
        if execution.has_sent_nothing:
            return f"{DROPPED}: {execution.dropped[0][1]}"
        stalled = len(self.dispatcher.pending.entries)
        if stalled and not execution.is_motionless:
            return (f"{DROPPED}: nothing of the PGs on their way ({stalled}) has arrived for"
                    f" max_wait ({int(settings.max_wait)} s), or no whole copy of them is up")
        if not execution.dropped or not execution.name:
            return COMPLETED
        reasons = Counter([reason for _, reason in execution.dropped]).most_common(2)
        left = plural(execution.planned_pgs - execution.changed_pgs, "PG")
        return f"{COMPLETED}: all but {left} ({'; '.join([reason for reason, _ in reasons])})"

    # -- send ----------------------------------------------------------------------------------

    def _choose(self, execution: Execution, snapshot: Snapshot, settings: Settings) -> Decision:
        """Decides which changes go now, and drops those that are done or void."""
        if execution.name:
            self._record(execution, command_of(execution.kind))
        self._record_name()
        dispatcher = self.dispatcher
        dispatcher.drop_stopped_pools(execution, snapshot)
        ratio = self.observer.max_misplaced_ratio(snapshot, settings)
        decision = dispatcher.choose(execution, snapshot, settings, ratio)
        dispatcher.accept(execution, decision)
        return decision

    def _wait_for(self, execution: Execution, decision: Decision, snapshot: Snapshot,
                  settings: Settings) -> Optional[Verdict]:
        """Returns the state while nothing may go, None if the execution waits for nothing more.
        Drops changes that have waited too long. In a plan of kind STEER none waits."""
        dispatcher = self.dispatcher
        pending = dispatcher.pending.entries
        is_moving = pending or snapshot.misplaced_copies or snapshot.in_flight()
        # nothing that moves makes space on the targets of all changes
        is_deadlocked = not is_moving and len(decision.full) == len(decision.waiting)
        if is_deadlocked or execution.kind == STEER:   # other plans may relieve what is full
            execution.apply(ExecutionUpdate(
                dropped=[DroppedChange(change, why.reason) for change, why in decision.waiting]))
        if decision.holds_up or not execution.wanted:
            self.observer.is_awaiting = snapshot.misplaced_copies > 0
        if not execution.wanted:
            is_over = execution.is_motionless or not pending or (
                dispatcher.has_stalled(execution, snapshot, settings))
            return None if is_over else self._in_flight(snapshot)
        dispatcher.drop_stalled(execution, decision, snapshot, settings,
                                self._rebuilding(snapshot, settings))
        if not execution.wanted:
            self.observer.is_required = True
        return self._waiting(decision, snapshot)

    def _rebuilding(self, snapshot: Snapshot, settings: Settings) -> Mapping[int, str]:
        """Returns pool id → why it waits, of pools that wait for a rebuild with which Ceph gets
        on."""
        return blocked_by(snapshot, self.observer.rebuilt_pools(settings.max_wait))

    def _waiting(self, decision: Decision, snapshot: Snapshot) -> Verdict:
        """Returns the state while all that is left of a plan waits."""
        leading = decision.leading
        state = BLOCKED
        seconds = None
        assert leading is not None   # each change that is wanted and was not sent waits
        if any([why.seconds is not None for _, why in decision.waiting]):   # these waits end soon
            state = WAITING
            seconds = TRANSIENT_RECHECK_SECONDS
        if leading.is_throttle or leading.code == codes.IN_FLIGHT:
            state = self._throttled(snapshot)
        return leading._replace(state=state, waiting=decision.waiting, seconds=seconds)

    def _send(self, execution: Execution, decision: Decision, before: Snapshot,
              settings: Settings) -> Verdict:
        """Sends a batch, unless it has to wait or everything has been stopped."""
        dispatcher = self.dispatcher
        is_motionless = execution.is_motionless
        sending = Verdict(codes.MOVING, execution.progress(),
                          {"what_moves": MOTIONLESS.get(execution.kind)}, MOVING,
                          waiting=() if execution.kind == STEER else decision.waiting)
        now = self._clock()
        wait = wait_until(
            codes.MONITOR_BACKOFF, "the monitor took nothing of the last batch; the next goes at",
            now, dispatcher.backoff.seconds_left(now))
        if wait is not None:
            return wait
        if dispatcher.corrections.has_unconfirmed_excess and not is_motionless:
            return Verdict(codes.MISPREDICTED, "an OSD seems to have taken more than was predicted;"
                           " it is looked at once more first", state=self._throttled(before))
        left = self._batch.seconds_left(now, settings.sleep_interval)
        if self._automatic.is_restless:   # some seconds pass until it shows where PGs have to move
            left = max(left, before.unsettled_seconds)
        if left > _TOLERANCE_SECONDS:
            return sending._replace(seconds=left)
        most = max(_MOST_CHANGES, settings.max_moves_per_round)
        batch = dispatcher.still_allowed(execution, decision.send[:most], before)
        if not batch:
            return self._look_again(sending, TRANSIENT_RECHECK_SECONDS)
        self._batch.begin(self._clock(), settings.sleep_interval)   # even if nobody answers
        sent = self._hand_over(execution, batch, before, self._permit(execution, settings, before))
        if sent is None:
            self._wake()
            return self._look_again(_OUT_OF_DATE)
        if not sent.handed_over:
            return self._look_again(sending, TRANSIENT_RECHECK_SECONDS)
        execution.stall = Stall()
        self._journal.record_sent(sent.moves, sent.bytes)
        self.observer.update_view(sent.snapshot, settings, same_bounds=True)
        sending = sending._replace(text=execution.progress())
        if is_motionless:   # only the monitors' next map is waited for
            return self._look_again(sending, _NEXT_SECONDS)
        return sending

    def _hand_over(self, execution: Execution, batch: Sequence[PgChange], before: Snapshot,
                   permit: ContextManager[bool]) -> Optional[SentBatch]:
        """Stores a batch in the log of changes, and sends it. Returns None if that is not permitted
        any more."""
        rows = self._journal.log_changes(execution.name, execution.kind, batch, before,
                                         self._clock())

        def note_submitted() -> None:   # the batch counts as misplaced for commands from here on
            self.observer.count_submitted()
            self.publish()
        sent = self.dispatcher.send(execution, batch, before, permit, note_submitted)
        self._journal.end_batch(sent)
        if execution.kind == STEER and sent is not None:
            self._automatic.steering.note_sent(rows, sent.snapshot)
        return sent

    @contextmanager
    def _permit(self, execution: Execution, settings: Settings,
                before: Snapshot) -> Iterator[bool]:
        """Context that yields True if the batch may be sent; `off` waits until the context is
        left."""
        drained = before.drained_osds   # a pass over all OSDs: not while `off` waits
        with self._slot.permit_sending(execution) as is_current:
            yield is_current and self._may_send(execution, settings, before, drained)

    def _may_send(self, execution: Execution, settings: Settings, before: Snapshot,
                  drained: FrozenSet[int]) -> bool:
        """Returns True if the execution is still asked for, and no other option and no drained OSD
        of the snapshot has changed since the round began."""
        now = self._settings()
        if not self._is_asked_for(execution, now):
            return False
        if now._replace(active=settings.active) != settings:
            return False
        return self.drains.status.drains.osds.intersection(before.osds) == drained

    def _look_again(self, outcome: Verdict, seconds: Optional[float] = None) -> Verdict:
        """Returns the state while the next batch waits for nothing but a newer snapshot."""
        self._batch.end()
        self.observer.is_required = True
        return outcome._replace(seconds=seconds)

    def _throttled(self, snapshot: Snapshot) -> str:
        """Returns the state while the rest of a plan waits for a limit. It is MOVING if moves of
        our own will arrive, because arrivals end the wait."""
        return MOVING if self._count_arriving(snapshot, pg_states.STUCK) else THROTTLED

    def _in_flight(self, snapshot: Snapshot) -> Optional[Verdict]:
        """Returns the state while moves of our own are in flight and nothing else needs to be done,
        None if none can arrive. Counts moves that the last mgr sent, although most are not pending
        here."""
        count = self._count_arriving(snapshot, pg_states.LOST)
        if not count:
            return None
        self.observer.is_awaiting = snapshot.misplaced_copies > 0
        are = "is on its" if count == 1 else "are on their"
        return Verdict(codes.MOVING, f"{plural(count, 'PG')} {are} way", state=MOVING)

    def _count_arriving(self, snapshot: Snapshot, never: FrozenSet[str]) -> int:
        """Returns the number of our PGs in flight, except those in one of the states `never`, in
        which nothing is copied. Counts PGs that are gone."""
        count = 0
        for pgid in self.observer.own_pgids:
            pg = snapshot.pgs.get(pgid)
            count += pg is None or not pg_states.has_any(pg.state, never)
        return count

    # -- idle ----------------------------------------------------------------------------------

    def _idle(self, step: NextStep, snapshot: Snapshot, settings: Settings,
              excluded: ExcludedPgs) -> Verdict:
        """Returns the state while no plan is worth making. Ends the episode unless moves of our own
        are still in flight, or the state is WAITING or BLOCKED."""
        moving_ours = self._in_flight(snapshot)
        if moving_ours is not None:
            return moving_ours
        view = self.observer.view
        assert view is not None   # `snapshot` has been shown in it

        def counted(code: str) -> Optional[Refusals]:
            if code not in COUNTED:
                return None
            options = automatic_options(settings, snapshot, excluded.rejected,
                                        self._gateway.max_pg_shards())
            return count_refusals(view, options, excluded, step.why.code)
        rebuilding = self._rebuilding(snapshot, settings)
        # by the bounds of the pools that may be moved: others stay where they are
        outcome = idle_state(view, self.observer.bounds(snapshot, settings.pool_ids),
                             settings.device_classes, step.why, step.searched_at, counted,
                             settings.pool_ids is not None, rebuilding)
        left = excluded.seconds_of(codes.MISPREDICTED)
        if left > 0.0:
            outcome = outcome._replace(
                state=STUCK,
                code=codes.MISPREDICTED,
                text=self.dispatcher.stopped_sentence(snapshot),
                numbers={"until": format_deadline(self._clock() + left)},
                refusals=None)
        outcome = self.drains.at_rest(outcome, settings)
        if outcome.state == BALANCED and rebuilding:   # the end of that is the end of the episode
            why = next(iter(rebuilding.values()))
            outcome = Verdict(
                codes.DEGRADED, f"Ceph rebuilds missing shards first: {why}", state=BLOCKED)
        if outcome.state not in (WAITING, BLOCKED):   # they end by themselves
            self._end_episode(self.drains.ending_of(outcome))
        return outcome
