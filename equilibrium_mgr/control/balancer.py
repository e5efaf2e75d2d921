"""The loop of the serve thread: guard, observe, guard, plan, send, verify, rest.

Commands only leave requests here; observing and sending happen in `round`, by the serve thread.
Whatever wakes it, a round does no more than a summary shows to be needed; batches keep apart.
"""
from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import contextmanager
from typing import (
    Callable, ContextManager, FrozenSet, Iterator, Mapping, Optional, Sequence, Tuple)

from ..drain.drain_list import DrainList, drain_list_from_dict
from ..drain.status import DrainStatus
from ..execution.throttle import Decision, in_the_way
from ..execution.outcomes import DroppedChange, ExcludedPgs, Refusals, Verdict
from ..execution.dispatcher import SentBatch, UpmapDispatcher
from ..execution.execution import (
    Execution, ExecutionProgress, ExecutionSlot, ExecutionUpdate, Stall)
from ..execution.guards import TRANSIENT_RECHECK_SECONDS
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..observation.refusals import COUNTED, count_refusals, idle_state
from ..observation.observer import ClusterObserver
from ..observation.cluster_view import (
    BALANCED, BLOCKED, MOVING, OFF, PLANNING, STUCK, THROTTLED, WAITING)
from ..plan.model import CANCEL, DRAIN, UNDO, PgChange, Plan, command_of
from ..plan.store import PlanStore
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import format_deadline, named_osds, plural
from ..runtime.kv_store import KeyValueStore
from ..runtime.waiting import WaitTimer
from ..settings import Settings
from ..snapshot import pg_states, reason_codes as codes
from ..snapshot.model import Snapshot, pool_of
from ..undo.change_log import ChangeLog
from ..undo.undo_plan import cancel_plan, with_holders_of_log
from .auto_planner import AutoPlanner, NextStep
from .drain_control import DrainControl
from .balancing_scope import automatic_options, nothing_to_balance
from .cluster_guards import ClusterGuards, wait_until
from .journal import (
    COMPLETED, DRAIN_CHANGED, DROPPED, STOPPED_BY_DRAIN_RM, STOPPED_BY_OFF, STOPPED_BY_RM,
    SUPERSEDED, SWITCHED_OFF, Journal, Totals)
from .status import AWAITS_REPORTS, IS_OFF, BalancerStatus, execution_progress, groups_of

_NOT_READY_SECONDS = 5.0   # until a mgr that lacks maps or statistics is read again
#: The shortest round, and by how much one that the timer has woken may be early on another clock.
_SHORTEST_SECONDS, _TOLERANCE_SECONDS = 1.0, 1.0
#: Changes that are sent at a time where most of them move nothing, which no limit of movement
#: binds: the monitors put them into one map.
_MOST_CHANGES = 1000
#: Seconds between two batches of a plan that moves nothing.
_NEXT_SECONDS = 2.0
#: The longest round while PGs are not seen to be active that were sent.
_WATCHED_SECONDS = 60.0
_COME_IN_BETWEEN = Verdict(codes.PLANNING, "a plan to execute has come in between", state=PLANNING)
_OUT_OF_DATE = Verdict(
    codes.PLANNING, "the options or the drains have changed, or a plan to execute has come in"
    " between", state=PLANNING)
_PLAN_STOPPED = Verdict(codes.PLANNING, "the execution of a plan was stopped", state=PLANNING)


class Balancer:
    """Decides what each round does. Other threads read `status`, which is replaced whole.

    Commands and the loop publish it from different threads: each reads everything anew under a
    lock, so that the newest wins.
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
                                        self.dispatcher.cooldown, clock, log)
        self._slot = ExecutionSlot(clock, log)
        self._automatic = AutoPlanner(plan_service, gateway.max_pg_shards, clock,
                                      self._plan_is_ready)
        self._guards = ClusterGuards(gateway, clock)
        self._journal = Journal(kv, log, gateway.write_to_cluster_log)
        self.drains = DrainControl(gateway, self._journal, clock)
        #: how an episode ends once nothing is balanced or drained any more
        self._drain_ending = SWITCHED_OFF
        self._recovery_lock = threading.Lock()
        self._is_recovered = False
        #: the next round; until there is something new to say, which may be several rounds away;
        #: and the next batch
        self._round, self._wait, self._batch = WaitTimer(), WaitTimer(), WaitTimer()
        self._options: Optional[Settings] = None   # of the last round
        self._stop_count = 0   # ExecutionSlot.stop_count when the round began
        #: whether a guard stopped the last round; whether the last decision said how long to wait
        self._was_guarded = self._waits_for_time = False
        self._status_lock = threading.Lock()
        self.status = BalancerStatus()
        self._current = Verdict(self.status.reason_code, self.status.reason, state=OFF)
        self._withheld: Mapping[str, Tuple[str, str]] = {}   # as in the status
        self._since_at: Optional[float] = None   # seconds since the epoch, as `until_at`
        self._until_at: Optional[float] = None
        self._decided_on: Optional[ClusterSummary] = None

    @property
    def totals(self) -> Totals:
        """Counters since the mgr became active."""
        return self._journal.totals

    @property
    def execution(self) -> Optional[Execution]:
        """The execution under way, which the loop changes."""
        return self._slot.execution

    @property
    def plan_name(self) -> Optional[str]:
        """Name of the kept plan that is being executed at this moment, or None."""
        return self._slot.plan_name()

    def changes(self) -> ChangeLog:
        """The log of changed upmap items, once a new mgr has read it."""
        self._recover(self._settings())
        return self._journal.changes

    # -- the status ----------------------------------------------------------------------------

    def _enter(self, outcome: Verdict, stop_count: int,
               decided_on: Optional[ClusterSummary] = None) -> None:
        """Enters a state, which the next status shows, unless a command has stopped everything
        since `stop_count` was read."""
        with self._status_lock:
            if stop_count != self._slot.stop_count:
                return
            if outcome.state != self._current.state or self._since_at is None:
                self._since_at = self._clock()
                self._log.info("%s: %s", outcome.state, outcome.reason)
            self._current = outcome
            self._until_at = (None if outcome.seconds is None or outcome.state != WAITING
                              else self._clock() + outcome.seconds)
            self._decided_on = decided_on or self._decided_on

    def publish(self) -> None:
        """Replaces the status by one of now."""
        with self._status_lock:
            current, execution, episode = self._current, self._slot.execution, self._journal.episode
            progress = None
            if execution is not None:
                try:   # it is only shown: neither a round nor `off` may fail for it
                    progress = execution_progress(
                        execution, episode, self.observer.view, current.code, self._clock())
                except Exception:
                    self._log.exception("how far the execution has come cannot be computed")
                    progress = ExecutionProgress(execution.name, execution.summary())
            self.status = BalancerStatus(
                state=current.state, reason=current.reason, reason_code=current.code,
                reason_numbers=current.numbers, refusals=current.refusals,
                since_at=self._since_at, until_at=self._until_at,
                wanted=execution.wanted if execution is not None else (),
                deferred=current.waiting, waiting=groups_of(execution, current),
                sent=dict(self.dispatcher.pending.entries), view=self.observer.view,
                builtin_active=self.observer.builtin_active,
                progress=progress, last_execution=self._slot.last,
                episode=episode._asdict() if episode is not None else None,
                history=self._journal.history, rejected=self.dispatcher.rejected,
                withheld=self._withheld,
                mispredicted=self.dispatcher.corrections.stopped, decided_on=self._decided_on,
                drains=self.drains.status)

    # -- requests of commands ------------------------------------------------------------------

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop; False while another named plan is being executed.

        Waits for the key-value store, as `off` does: a successor goes on with what was answered to.
        """
        self._recover(self._settings())
        if self._slot.plan_name() is not None:
            return False
        # before a round can see the plan: it would drop what belongs to a stopped pool
        self.dispatcher.corrections.resume(frozenset(
            pool_of(change.pgid) for change in plan.changes if change.shards))
        self.dispatcher.lift_rejections()
        execution = Execution(name, plan.changes, self._clock(), plan.kind)
        if not self._journal.begin_execution(
                name, execution.started_at, lambda: self._slot.start(execution)):
            return False
        self._batch.end()   # its first one waits for none
        self.publish()
        self.require_observation()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Begins automatic balancing, once a built-in balancer just switched off has noticed."""
        if self.drains.status.drains.is_paused:
            self.change_drains(lambda drains: drains.paused(False))
        self._automatic.reset()
        self.dispatcher.lift_rejections()
        self.dispatcher.corrections.resume()
        if builtin_was_active:
            self._guards.begin_builtin_grace()
            self.observer.request()  # what it adds from now on shows after the wait
        self.publish()
        self.require_observation()

    def switch_off(self) -> Optional[str]:
        """Stops all sending, by this mgr and by a successor, before it returns; returns the name of
        the plan whose execution this ended, or None.

        Waits for the key-value store, which is a commit of the monitors, and for nothing else: an
        `off` that is not on disk could be undone by a failover.
        """
        self._recover(self._settings())
        self._automatic.reset()
        self.dispatcher.lift_rejections()
        # first: no round that begins from here on takes a drain up
        self.drains.replace(lambda drains: drains.paused(True))
        execution = self._slot.stop(STOPPED_BY_OFF)
        self._stopped(IS_OFF, SWITCHED_OFF if execution is None else STOPPED_BY_OFF)
        self._wake()
        return execution.name or None if execution is not None else None

    def stop_plan(self, name: str, outcome: str = STOPPED_BY_RM) -> Optional[Execution]:
        """As `switch_off`, for one kept plan alone. None where it is not being executed."""
        self._recover(self._settings())
        execution = self._slot.stop(outcome, name)
        if execution is not None:
            self._stopped(_PLAN_STOPPED if self._settings().active else IS_OFF, outcome)
            self.require_observation()
        return execution

    def _stopped(self, state: Verdict, outcome: str) -> None:
        """Enters the state after a command has stopped an execution, and stores that."""
        self._enter(state, self._slot.stop_count)
        self.publish()   # the store may take its time
        self._journal.stop(outcome, self._clock(), self.observer.view)
        self.publish()

    def drain_status(self) -> DrainStatus:
        """How far drains are, once a new mgr has read the list of the last one."""
        self._recover(self._settings())
        return self.drains.status

    def change_drains(self, change: Callable[[DrainList], DrainList]) -> None:
        """Changes the list for a command; on return it is stored."""
        self._recover(self._settings())
        self.drains.replace(change, at_once=True)
        is_over = not (self.drains.status.drains.names or self._settings().active)
        self._drain_ending = STOPPED_BY_DRAIN_RM if is_over else SWITCHED_OFF
        self._drains_changed()

    def _drains_changed(self) -> None:
        """What is sent from now on is planned by the new list."""
        self._automatic.reset()
        self._slot.stop(DRAIN_CHANGED, "")
        self.publish()
        self.require_observation()

    def require_observation(self) -> None:
        """Makes the next round read the whole cluster, and starts it at once."""
        self.observer.is_required = True
        self._wake()

    def request_observation(self, at_rest: bool = False) -> None:
        """Makes the loop observe once, in any state, for a command whose view is too old."""
        if self.observer.request(at_rest):
            self._wake()

    def _plan_is_ready(self) -> None:   # called by the job thread
        if self._current.state == PLANNING:
            self._wake()

    # -- the loop ------------------------------------------------------------------------------

    def round(self) -> float:
        """One round; returns the seconds until the next is due."""
        settings = self._settings()
        self._recover(settings)
        self._stop_count = self._slot.stop_count
        self._record_name()
        try:
            self._plan_store.tidy()
            return self._decide(settings)
        finally:
            self.publish()
            self._journal.observe_progress(self.status.progress_ratio())
            self._record_name()
            self._journal.record_learnt(self.dispatcher.to_dict())
            self._journal.write()

    def _record_name(self) -> None:
        """Has a successor go on with the named plan that is executed, or with none."""
        self._journal.record_execution(self._slot.plan_name, self._clock())

    def _recover(self, settings: Settings) -> None:
        """Takes over from the last mgr, the first time that it is called, and goes on with the
        named plan that it was executing; other threads wait for that."""
        with self._recovery_lock:
            if self._is_recovered:
                return
            now = self._clock()
            name, sent, corrections, drains = self._journal.recover(
                now, settings.sleep_interval, settings.pg_cooldown)
            self.dispatcher.restore(
                {row.pgid: row.at for row in sent if row.shards},
                {row.pgid: (row.at, row.epoch)
                 for row in {row.pgid: row for row in sent}.values() if row.shards}, corrections,
                {row.pgid: (row.at, {osd for _, osd in set(row.before) - set(row.after)})
                 for row in sent if row.takes_back})
            self.dispatcher.made_way.restore(
                {row.pgid: row.at for row in sent if row.kind == UNDO and not row.shards})
            # what OSDs withhold they may withhold since long ago
            self.dispatcher.is_watched |= not self._journal.changes.is_empty
            self.drains.replace(lambda _: drain_list_from_dict(drains), store=False)
            try:
                plan = None if name is None else self._plan_store.get(name)
            except (ValueError, KeyError) as error:  # BadPlan is a ValueError
                self._log.warning("cannot go on with the execution of a plan: %s", error)
                self._journal.end(f"{DROPPED}: its plan is lost", now, None)
                plan = None
            if plan is not None and name is not None:
                execution = Execution(name, plan.changes, now, plan.kind)
                # the last mgr has recorded it where it has left an episode
                execution.is_recorded = self._journal.episode is not None
                if self._slot.start(execution):
                    self._log.info("going on with the execution of plan %s", name)
            self._is_recovered = True   # last: a read that raises is tried again
        self.publish()

    def _decide(self, settings: Settings) -> float:
        """One round's work: while a guard holds or nothing has changed a summary is enough."""
        if settings != self._options:   # they are effective at once
            self._options = settings
            self._round.end()
            self._wait.end()
        execution = self.execution
        if execution is not None and not (execution.name or settings.active or (
                execution.kind == DRAIN and self.drains.is_running)):
            self._slot.end(execution, SWITCHED_OFF)
            execution = self.execution
        is_off, is_watched = self._is_off(settings), self.dispatcher.is_watched
        if is_off:
            self._journal.end(self._drain_ending, self._clock(), self.observer.view)
            self._drain_ending = SWITCHED_OFF
        is_asked = self.observer.begin_round(settings)
        if is_off:
            self._enter(IS_OFF, self._stop_count)
            self._guards.observe_builtin(self._gateway.builtin_balancer_active())
            if is_asked or not self._is_early() and (
                    is_watched or self.observer.is_behind(None)):
                self._update_view(None, settings)
            return self._next_round(settings)
        try:
            summary = self.observer.summary()
        except NotReady as not_ready:
            return self._not_ready(not_ready, settings)
        guard = self._guards.check(summary, summary.mon_connected, summary.builtin_active, settings,
                                   execution, self.drains.drains_only(settings))
        if guard is not None:
            self._stop_for(guard, execution)
            self._enter(guard, self._stop_count)
            if is_asked or is_watched or self.observer.is_behind(summary):
                self._update_view(summary, settings)
            return self._next_round(settings, guard.seconds)
        if not self._is_due(summary, settings):
            if is_asked or execution is not None and self.observer.is_behind(summary) or (
                    is_watched and not self._is_early()):
                self._update_view(summary, settings)
            left = self._round.seconds_left(self._clock())   # it came early or had no work
            if left > _TOLERANCE_SECONDS:
                return left
            self._round.begin(self._clock(), settings.sleep_interval)
            return max(_SHORTEST_SECONDS, settings.sleep_interval)
        self._waits_for_time, self._was_guarded = False, False
        self.observer.begin_look(summary, settings)
        try:
            snapshot = self._make_way(self._observe(summary, settings), settings)
            outcome = self._act(snapshot, settings)
        except NotReady as not_ready:
            self.observer.is_required = True
            return self._not_ready(not_ready, settings)
        self._enter(outcome, self._stop_count, decided_on=summary)
        seconds = outcome.seconds
        if self._current.state == PLANNING and self._automatic.is_ready:
            seconds = 1.0  # made while this round ended: it can be taken up now
        self._waits_for_time = seconds is not None
        return self._next_round(settings, seconds)

    def _next_round(self, settings: Settings, seconds: Optional[float] = None) -> float:
        """Begins the wait for the next round and returns its seconds; `seconds`: until there will
        be something new to say."""
        now, delay = self._clock(), settings.sleep_interval
        self._wait.begin(now, seconds or 0.0)
        delay = max(_SHORTEST_SECONDS, min(
            delay, delay if seconds is None else seconds,
            _WATCHED_SECONDS if self.dispatcher.is_watched else delay))
        self._round.begin(now, delay)
        return delay

    def _is_off(self, settings: Settings) -> bool:
        """True where nothing is to be sent, as nothing is balanced, drained or executed."""
        return not (settings.active or self.drains.is_running or self._slot.plan_name())

    def _is_early(self) -> bool:
        """True where something has woken the loop before there is anything to do."""
        now = self._clock()
        return max(self._round.seconds_left(now),
                   self._wait.seconds_left(now)) > _TOLERANCE_SECONDS

    def _stop_for(self, guard: Verdict, execution: Optional[Execution]) -> None:
        """Records that a guard holds and ends the stall: such time does not count for max_wait."""
        if execution is not None:
            execution.stall = Stall()
        self._was_guarded, self._waits_for_time = True, guard.seconds is not None

    def _not_ready(self, not_ready: NotReady, settings: Settings) -> float:
        self._enter(Verdict(codes.NOT_READY, str(not_ready), state=WAITING), self._stop_count)
        return self._next_round(settings, _NOT_READY_SECONDS)

    def _is_due(self, summary: ClusterSummary, settings: Settings) -> bool:
        """True where this round has to observe the whole cluster. One that was woken early does so
        only where that was required, or where a finished plan can be taken up."""
        state = self._current.state
        if self.observer.view is None or self.observer.is_required or self._was_guarded:
            return True
        is_new = state == OFF and settings.active   # its option has just been set
        if is_new or self.execution is None and self._automatic.is_ready:
            return True
        if self.execution is None and state == PLANNING and self._automatic.is_planning:
            return False
        if self._is_early():
            return False
        if self.dispatcher.corrections.has_unconfirmed_excess or self.dispatcher.is_watched:
            return True
        if state == WAITING and self.execution is None and not self._waits_for_time:
            state = BLOCKED   # for what the cluster does: its pg_num changes, OSDs do not report
        return self.observer.is_due(summary, settings, BALANCED if state == OFF else state,
                                    self._automatic.is_retry_due)

    # -- observe -------------------------------------------------------------------------------

    def _observe(self, summary: Optional[ClusterSummary], settings: Settings) -> Snapshot:
        snapshot = self.observer.observe(summary)
        if self.observer.view is None:   # nobody knows what was remapped a moment ago
            self._batch.begin(self._clock(), snapshot.unsettled_seconds)
        self.dispatcher.observe(snapshot)
        if self.drains.observe(snapshot, self.dispatcher.pending.entries):
            self._drains_changed()   # this round still has the snapshot in which they are drained
        self.observer.update_view(snapshot, settings)
        snapshot = self._take_back(snapshot, settings)
        self.publish()
        return snapshot

    def _make_way(self, snapshot: Snapshot, settings: Settings) -> Snapshot:
        """Takes back what of the execution waits where steps of pg_num do; it stays wanted. Returns
        the newest snapshot."""
        execution, now = self.execution, self._clock()
        if execution is None or self._is_off(settings):
            return snapshot
        self._count_back(execution, snapshot)   # what no answer came to in time
        pending = self.dispatcher.pending.entries
        # what counts as sent: not what is still wanted, as no answer came or another mgr sent it
        pgids = in_the_way(snapshot, pending).difference(
            execution.unanswered, self.dispatcher.rejected)
        if not pgids or self.dispatcher.backoff.seconds_left(now):
            return snapshot
        changes = cancel_plan(
            _undrained(snapshot), self._journal.changes.newest_first, lambda row: (
                row.pgid in pgids and row.plan == execution.name
                and row.at >= execution.started_at)).plan.changes
        # in the log it is the plan's own
        back = Execution(execution.name, changes, now, UNDO)
        batch = self.dispatcher.choose(back, snapshot, settings, 0.0).send
        execution.going_back.update({change.pgid: (change._replace(
            up_before=change.up_after, up_after=change.up_before,
            items=snapshot.items_of(change.pgid), shards=pending[change.pgid].shards),
            change.items) for change in batch})
        sent = self._hand_over(back, batch, snapshot, self._permit_back()) if batch else None
        if sent is None:
            return snapshot
        self._count_back(execution, sent.snapshot)
        self.observer.update_view(sent.snapshot, settings, same_bounds=True)
        return sent.snapshot

    def _count_back(self, execution: Execution, snapshot: Snapshot) -> None:
        """Has be wanted again what this map has taken back, unless it has arrived before."""
        going, dispatcher = execution.going_back, self.dispatcher
        if not going:
            return
        back = ExecutionUpdate([change for change, items in going.values()
                                if snapshot.items_of(change.pgid) == items])
        gone = dict.fromkeys([change.pgid for change in back.sent])
        execution.going_back = {
            pgid: one for pgid, one in going.items() if pgid in dispatcher.pending.entries
            and pgid not in gone and pgid not in dispatcher.rejected}
        execution.apply(ExecutionUpdate(taken_back=back.sent))
        dispatcher.made_way.start(gone, self._clock())
        self._journal.record_sent(-back.sent_moves, -back.sent_bytes)

    def _take_back(self, snapshot: Snapshot, settings: Settings) -> Snapshot:
        """Takes back what was sent and an OSD withholds, unless it is off: each PG stays where its
        data is, for which nothing has to be waited, and which no limit binds. Returns the newest
        snapshot."""
        pgids, now = self.dispatcher.withheld(snapshot), self._clock()
        self._withheld = {}
        if not pgids:
            return snapshot
        rows = self._journal.changes.newest_first
        seen = with_holders_of_log(snapshot, rows, pgids)
        plan = cancel_plan(_undrained(seen), rows,
                           lambda row: row.pgid in pgids and not row.takes_back).plan
        execution = Execution("", [   # where an OSD is to lose it that does not hold it
            change for change in plan.changes for pg in (seen.pgs[change.pgid],)
            if not change.lost_by <= {
                *pg.holders, *(pg.acting if pg_states.REMAPPED in pg.state else ())}], now, CANCEL)
        back = self.dispatcher.choose(execution, seen, settings, 0.0).send
        if back and not self._is_off(settings) and not self.dispatcher.backoff.seconds_left(now):
            sent = self._hand_over(execution, back, seen, self._permit_back())
            if sent is not None:
                self.observer.is_required, snapshot = True, sent.snapshot
                self.observer.update_view(snapshot, settings, same_bounds=True)
        self._withheld = {   # not what has just gone, nor what CRUSH sends there
            pg.pgid: (
                f"pg {pg.pgid} is inactive: {'one of ' if len(new) > 1 else ''}"
                f"{named_osds(new, len(new))} has too many PGs, by its own"
                " options, to take it",
                next((change for change in back if change.pgid == pg.pgid), PgChange(
                    pg.pgid, pg.raw, pg.up, pg.up, left, 0, 0, 0)).command())
            for pg in [seen.pgs[pgid] for pgid in sorted(pgids)]
            for new in (sorted(set(pg.up) & set(snapshot.osds) - set(pg.holders)),)
            for items in (snapshot.items_of(pg.pgid),)
            for left in (tuple([pair for pair in items if pair[1] not in new]),) if left != items}
        return snapshot

    @contextmanager
    def _permit_back(self) -> Iterator[bool]:
        """As `_permit`, for what is sent beside the execution: True unless `off` has come."""
        with self._slot.permit_sending(self._slot.execution):
            yield self._stop_count == self._slot.stop_count and not self._is_off(self._settings())

    def _update_view(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """Observes for the view alone, as a command has asked or data has moved: nothing is
        planned, and what the loop compares the cluster with stays. What OSDs withhold is taken back
        all the same."""
        try:
            self._observe(summary, settings)
        except NotReady as not_ready:
            self._log.info("the cluster cannot be observed: %s", not_ready)

    # -- plan ----------------------------------------------------------------------------------

    def _act(self, snapshot: Snapshot, settings: Settings) -> Verdict:
        """What follows from a look: guards, the plan under way, a new plan, or rest. Where an
        execution ends, the next step needs no new observation."""
        while True:
            execution, drains_only = self.execution, self.drains.drains_only(settings)
            if self._is_off(settings):
                return IS_OFF
            guard = self._guards.check(
                snapshot, self._gateway.have_mon_connection(),
                self._gateway.builtin_balancer_active(), settings, execution, drains_only)
            if guard is not None:
                self._stop_for(guard, execution)
                return guard
            if execution is not None and not execution.name:
                why = self._automatic.why_not_on(snapshot, settings, execution,
                                                 self.dispatcher.osd_traffic(snapshot),
                                                 drains_only)
                if why is not None and why.state == WAITING:
                    return why
                if why is not None:
                    self._slot.end(execution, f"{SUPERSEDED}: {why.reason}")
                    execution = self.execution
            if execution is None:
                limit = nothing_to_balance(settings, snapshot)
                if limit is not None and not drains_only:
                    self._journal.end(STUCK, self._clock(), self.observer.view)
                    return limit
                if self.dispatcher.pending.awaits_reports:   # no plan from figures in motion
                    return AWAITS_REPORTS
                excluded = self.dispatcher.excluded(snapshot, settings)
                step = self._automatic.next_step(snapshot, settings, excluded,
                                                 self.observer.noise, drains_only,
                                                 self.drains.has_work)
                self.drains.observe_plan(self._automatic.stuck)
                if step.plan is None:
                    return (self._rest(step, snapshot, settings, excluded) if step.is_idle
                            else step.why)
                execution = Execution("", step.plan.changes, self._clock(), step.plan.kind)
                if not self._slot.start(execution, self._stop_count):
                    return _COME_IN_BETWEEN
                self._record(execution, step.why.reason)
            outcome = self._advance(execution, snapshot, settings) or (
                self._finish(execution, snapshot, settings))
            if outcome is not None:
                return outcome

    def _record(self, execution: Execution, why: str) -> None:
        """Counts the execution in an episode, once, unless a command has ended it meanwhile."""
        if not execution.is_recorded:
            self._journal.begin_plan(execution.name, why, self._clock(), self.observer.view,
                                     lambda: self._slot.execution is execution)
            execution.is_recorded = True

    def _finish(self, execution: Execution, snapshot: Snapshot,
                settings: Settings) -> Optional[Verdict]:
        """Ends an execution of which nothing is left to be waited for. None: the loop goes on."""
        kept = execution.changed_pgs if execution.is_motionless else execution.done_moves
        stalled = 0 if execution.is_motionless else len(self.dispatcher.pending.entries)
        nothing_sent = execution.dropped and not (execution.sent_moves or kept)
        ending = COMPLETED
        if nothing_sent:
            ending = f"{DROPPED}: {execution.dropped[0][1]}"
        elif stalled:
            ending = (f"{DROPPED}: nothing of {stalled} PGs on their way has arrived for max_wait"
                      f" ({int(settings.max_wait)} s)")
        elif execution.dropped and execution.name:
            reasons = Counter(reason for _, reason in execution.dropped).most_common(2)
            left = plural(execution.planned_pgs - execution.changed_pgs, "PG")
            ending = (f"{COMPLETED}: all but {left}"
                      f" ({'; '.join(reason for reason, _ in reasons)})")
        if not self._slot.end(execution, ending):
            return _COME_IN_BETWEEN
        if execution.name:
            self._journal.end(ending, self._clock(), self.observer.view)
        elif nothing_sent:
            self._automatic.idle_after_refusal(
                snapshot, settings, self.dispatcher.excluded(snapshot, settings),
                execution.dropped[0][1], self.drains.drains_only(settings))
        if settings.active or self.drains.is_running:
            return None
        return Verdict(codes.SWITCHED_OFF, f"plan '{execution.name}' is {ending}", state=OFF)

    # -- send ----------------------------------------------------------------------------------

    def _advance(self, execution: Execution, snapshot: Snapshot,
                 settings: Settings) -> Optional[Verdict]:
        """Sends the next batch where one may go. None where nothing is left to be waited for."""
        if execution.name:
            self._record(execution, command_of(execution.kind))
        self._record_name()
        self.dispatcher.drop_stopped_pools(execution, snapshot)
        decision = self.dispatcher.choose(execution, snapshot, settings,
                                          self.observer.max_misplaced_ratio(snapshot, settings))
        self.dispatcher.accept(execution, decision)
        if decision.send:
            return self._send(execution, decision, snapshot, settings)
        if decision.holds_up or not execution.wanted:
            self.observer.is_awaiting = snapshot.misplaced_copies > 0
        if not execution.wanted:
            # of what moves nothing, nothing is on its way
            if not execution.is_motionless and self.dispatcher.pending.entries and not (
                    self.dispatcher.has_stalled(execution, snapshot, settings)):
                return self._in_flight(snapshot)
            return None
        if len(decision.full) == len(decision.waiting) and not self.dispatcher.pending.entries:
            if not snapshot.misplaced_copies and not snapshot.in_flight():   # else a deadlock
                execution.apply(ExecutionUpdate(dropped=[
                    DroppedChange(change, deferral.reason)
                    for change, deferral in decision.full]))
        self.dispatcher.drop_stalled(execution, decision, snapshot, settings)
        if not execution.wanted:
            self.observer.is_required = True
        transient = any(why.seconds is not None for _, why in decision.waiting)   # they soon end
        leading = decision.leading
        assert leading is not None   # what is wanted and was not sent waits
        state = (self._throttled(snapshot) if leading.is_throttle
                 else WAITING if transient else BLOCKED)
        return leading._replace(state=state, waiting=decision.waiting,
                                seconds=TRANSIENT_RECHECK_SECONDS if transient else None)

    def _send(self, execution: Execution, decision: Decision, before: Snapshot,
              settings: Settings) -> Verdict:
        """Sends a batch, unless it has to wait or everything has been stopped."""
        sending = Verdict(codes.MOVING, execution.progress(),
                          {"what_moves": "no data"} if execution.is_motionless else {}, MOVING,
                          waiting=decision.waiting)
        now = self._clock()
        wait = wait_until(
            codes.MONITOR_BACKOFF, "the monitor took nothing of the last batch; the next goes at",
            now, self.dispatcher.backoff.seconds_left(now))
        if wait is not None:
            return wait
        if self.dispatcher.corrections.has_unconfirmed_excess and not execution.is_motionless:
            return Verdict(codes.MISPREDICTED, "an OSD seems to have taken more than was predicted;"
                           " it is looked at once more first", state=self._throttled(before))
        left = self._batch.seconds_left(now, settings.sleep_interval)
        if self._automatic.is_restless:   # where PGs have to move shows some seconds later
            left = max(left, before.unsettled_seconds)
        if left > _TOLERANCE_SECONDS:
            return sending._replace(seconds=left)
        batch = self.dispatcher.still_allowed(
            decision.send[:max(_MOST_CHANGES, settings.max_moves_per_round)], before,
            execution.is_motionless)
        if not batch:
            return self._look_again(sending, TRANSIENT_RECHECK_SECONDS)
        self._batch.begin(self._clock(), settings.sleep_interval)   # whatever the answers
        sent = self._hand_over(execution, batch, before,
                               self._permit(execution, settings, before))
        if sent is None:
            if not self._settings().active and self._slot.execution is None:
                return IS_OFF
            outcome = self._look_again(_OUT_OF_DATE)
            self._wake()
            return outcome
        if not sent.handed_over:
            return self._look_again(sending, TRANSIENT_RECHECK_SECONDS)
        execution.stall = Stall()
        self._journal.record_sent(sent.moves, sent.bytes)
        self.observer.update_view(sent.snapshot, settings, same_bounds=True)
        sending = sending._replace(text=execution.progress())
        # no arrival is to be waited for where nothing moves, only the monitors' next map
        return self._look_again(sending, _NEXT_SECONDS) if execution.is_motionless else sending

    def _hand_over(self, execution: Execution, batch: Sequence[PgChange], before: Snapshot,
                   permit: ContextManager[bool]) -> Optional[SentBatch]:
        """Sends a batch that is stored in the log of changes before."""
        self._journal.log_changes(execution.name, execution.kind, batch, before, self._clock())

        def is_submitted() -> None:   # it counts as misplaced for commands from here on
            self.observer.count_submitted()
            self.publish()
        sent = self.dispatcher.send(execution, batch, before, permit, is_submitted)
        self._journal.settle_changes(sent)
        return sent

    @contextmanager
    def _permit(self, execution: Execution, settings: Settings,
                before: Snapshot) -> Iterator[bool]:
        """Context that yields True where neither `off` nor another option or list of drains has
        come since the round began; `off` waits until the context is left."""
        drained = before.drained_osds
        with self._slot.permit_sending(execution) as is_current:
            now, drains = self._settings(), self.drains.status.drains
            yield is_current and (
                bool(execution.name) or now.active
                or execution.kind == DRAIN and drains.is_running) and (
                now._replace(active=settings.active) == settings) and (
                drained == drains.osds.intersection(before.osds))

    def _look_again(self, outcome: Verdict, seconds: Optional[float] = None) -> Verdict:
        """The state while the next batch waits for nothing but a look at a newer map."""
        self._batch.end()
        self.observer.is_required = True
        return outcome._replace(seconds=seconds)

    def _throttled(self, snapshot: Snapshot) -> str:
        """The state where what is left of a plan waits for a limit: arrivals end that."""
        return MOVING if any(_may_arrive(snapshot, pgid, pg_states.STUCK)
                             for pgid in self.observer.own_pgids) else THROTTLED

    def _in_flight(self, snapshot: Snapshot) -> Optional[Verdict]:
        """The state while moves of our own are in flight and nothing else is to be done; None where
        none are. What the last mgr sent is not pending with this one: the view knows of it."""
        count = sum(_may_arrive(snapshot, pgid) for pgid in self.observer.own_pgids)
        if not count:
            return None
        self.observer.is_awaiting = snapshot.misplaced_copies > 0
        return Verdict(
            codes.MOVING, f"{plural(count, 'PG')} {'is on its' if count == 1 else 'are on their'}"
            " way", state=MOVING)

    # -- rest ----------------------------------------------------------------------------------

    def _rest(self, step: NextStep, snapshot: Snapshot, settings: Settings,
              excluded: ExcludedPgs) -> Verdict:
        """The state where no plan is worth making, which ends the episode unless something of ours
        is still in flight."""
        moving_ours = self._in_flight(snapshot)
        if moving_ours is not None:
            return moving_ours
        view = self.observer.view
        assert view is not None   # `snapshot` has been shown in it

        def counted(code: str) -> Optional[Refusals]:
            options = automatic_options(settings, snapshot, excluded.rejected,
                                        self._gateway.max_pg_shards())
            return None if code not in COUNTED else count_refusals(
                view, options, excluded, step.why.code)
        # by the bounds of what may be moved: pools that are left out stand where they are
        outcome = idle_state(view, self.observer.bounds(snapshot, settings.pool_ids),
                             settings.device_classes, step.why, step.searched_at, counted,
                             settings.pool_ids is not None)
        left = excluded.seconds_of(codes.MISPREDICTED)
        if left > 0.0:
            outcome = outcome._replace(
                state=STUCK, code=codes.MISPREDICTED, text=self.dispatcher.stopped_sentence(snapshot),
                numbers={"until": format_deadline(self._clock() + left)}, refusals=None)
        outcome = self.drains.at_rest(outcome, settings)
        if outcome.state != WAITING:   # what waits for reports goes on by itself
            self._journal.end(self.drains.ending_of(outcome), self._clock(), view)
        return outcome


def _undrained(snapshot: Snapshot) -> Snapshot:
    """The snapshot for taking back what was sent, to OSDs that are drained, too."""
    return snapshot._replace(osds={
        osd.id: osd._replace(drained=False) for osd in snapshot.osds.values()})


def _may_arrive(snapshot: Snapshot, pgid: str, never: FrozenSet[str] = pg_states.LOST) -> bool:
    """False for a PG of which nothing can be copied: one in any of the states `never`."""
    pg = snapshot.pgs.get(pgid)
    return pg is None or not pg_states.has_any(pg.state, never)
