"""The controller of the serve loop: look, decide, send, verify, rest.

Commands only leave wishes here (`execute`, `switch_on`, `switch_off`); all looking and sending
happens in `round`, which the serve thread calls. Whatever wakes it, a round does no more than a
summary of the cluster shows to be worth it, and batches keep their distance.
"""
from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ..execution.batch_selection import Decision
from ..execution.change_outcomes import DeferralKind, DroppedChange
from ..execution.dispatcher import UpmapDispatcher
from ..execution.execution import Execution, ExecutionProgress, ExecutionUpdate
from ..execution.execution_slot import ExecutionSlot
from ..execution.inactive_pools import TRANSIENT_RECHECK_SECONDS
from ..execution.pending_moves import PendingMoves
from ..execution.size_check.prediction import Misprediction
from ..execution.rejections import Items, recent
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..observation.bound_gap import idle_state
from ..observation.change_detection import news
from ..observation.cluster_view import ClusterView
from ..observation.observer import ClusterObserver
from ..observation.states import BALANCED, BLOCKED, MOVING, OFF, PLANNING, STUCK, THROTTLED, WAITING
from ..plan.model import Plan
from ..plan.store import PlanStore
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import format_time
from ..runtime.kv_store import KeyValueStore
from ..settings import Settings
from ..snapshot.model import Snapshot, pool_of
from .auto_planner import AutoPlanner, NextStep
from .balancing_scope import nothing_to_balance
from .cluster_guards import ClusterGuards
from .journal import Journal
from .round_timer import RoundTimer

#: How soon the mgr is asked again that does not know enough yet.
_NOT_READY_SECONDS = 5.0
SWITCHED_OFF, STOPPED = "switched off", "stopped by 'ceph equilibrium off'"


class Balancer:
    """The state of balancing. Fields that commands read are replaced whole, never edited."""

    def __init__(self, gateway: Gateway, plan_store: PlanStore, plan_service: PlanService,
                 kv: KeyValueStore, settings: Callable[[], Settings], clock: Callable[[], float],
                 wake: Callable[[], None], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._plan_service = plan_service
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._log = log
        self._dispatcher = UpmapDispatcher(gateway, clock, log)
        self._observer = ClusterObserver(gateway, self._dispatcher.pending, clock, log)
        self._slot = ExecutionSlot(clock, log)
        self._timer = RoundTimer(clock)
        self._automatic = AutoPlanner(plan_service, clock, self._plan_is_ready)
        self._guards = ClusterGuards(gateway, clock)
        self._journal = Journal(kv, log)
        self._resuming = threading.Lock()
        self._resumed = False
        self._recorded: Optional[Execution] = None   # what the episode counts
        self._stops = 0                         # of the course, when the round began
        self._was_stopped = False               # by a guard, the last time
        self._seconds: Optional[float] = None   # after which a wait is over
        self._said = (OFF, "no round has run yet")
        self._decided_on: Optional[ClusterSummary] = None   # what `_said` was decided on
        self.progress: Optional[ExecutionProgress] = None

    # -- what commands read --------------------------------------------------------------------

    @property
    def state(self) -> str:
        """One of states.py."""
        return self._said[0]

    @property
    def reason(self) -> str:
        """Why it is in that state, one sentence."""
        return self._said[1]

    @property
    def execution(self) -> Optional[Execution]:
        return self._slot.execution

    @property
    def last_execution(self) -> Optional[Dict[str, Any]]:
        return self._slot.last

    @property
    def view(self) -> Optional[ClusterView]:
        return self._observer.view

    @view.setter
    def view(self, view: Optional[ClusterView]) -> None:
        self._observer.view = view

    @property
    def builtin_active(self) -> Optional[bool]:
        """Was the built-in balancer on when that was last seen? None before the first time."""
        return self._observer.builtin_active

    @property
    def pending(self) -> PendingMoves:
        """What we have sent and not seen arrive."""
        return self._dispatcher.pending

    @property
    def rejected(self) -> Items:
        """pgid → (reason, mark of the map), of what the monitor did not keep."""
        return self._dispatcher.rejected

    @rejected.setter
    def rejected(self, items: Items) -> None:
        self._dispatcher.rejected = items

    def recent_rejections(self) -> Items:
        """Those of the last hour, while something is to be moved at all."""
        wanted = self._settings().active or self.execution is not None
        return recent(self.rejected, self._clock()) if wanted else {}

    @property
    def mispredicted(self) -> Mapping[int, Misprediction]:
        """By pool id: pools that are stopped, as their shards took more than was predicted."""
        return self._dispatcher.corrections.stopped

    @property
    def history(self) -> List[Dict[str, Any]]:
        """Finished episodes, the newest last; JSON-ready."""
        return self._journal.history.entries

    @property
    def episode(self) -> Optional[Dict[str, Any]]:
        """The episode under way; JSON-ready."""
        episode = self._journal.episode
        return episode._asdict() if episode is not None else None

    def news(self, summary: ClusterSummary) -> Optional[str]:
        """What has come since the cluster was called balanced or stuck that speaks against that, or
        None: it is looked at again within ten minutes, and people are told at once."""
        decided_on = self._decided_on
        if decided_on is None or self.state not in (BALANCED, STUCK):
            return None
        return news(decided_on, summary)

    def planning_failure(self) -> Optional[str]:
        """Why the last automatic plan could not be made, or None."""
        return self._plan_service.last_failure("")

    # -- wishes of commands --------------------------------------------------------------------

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop; False while another named plan is being executed.

        Waits for the store, as `off` does: a successor goes on with what has been answered to.
        """
        self._resume()
        execution = self.execution
        if execution is not None and execution.name:
            return False
        # before a round can see the plan: it would drop what belongs to a stopped pool
        self._dispatcher.corrections.resume(
            self._clock(), frozenset(pool_of(change.pgid) for change in plan.changes))
        self.rejected = {}
        if not self._slot.start_named(name, plan.changes):
            return False
        self._timer.allow_batch()
        self._journal.store_execution(self._slot.plan_name, self._clock())
        self._publish()
        self.require_observation()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Automatic balancing begins, once a built-in balancer just switched off has noticed."""
        self._automatic.reset()
        self.rejected = {}
        self._dispatcher.corrections.resume(self._clock())
        if builtin_was_active:
            self._guards.builtin_grace.begin(self._clock(), self._gateway.builtin_balancer_sleep())
            self._observer.request()  # what it adds from now on shows in the look after the wait
        self.require_observation()

    def switch_off(self) -> Optional[str]:
        """Nothing is sent any more once this has returned, and a successor finds nothing to go on
        with; returns the name of the plan whose execution this ended.

        Waits for the store, which is a commit of the monitors, and for nothing else: `off` that is
        not on disk could be undone by a failover.
        """
        self._resume()
        self._automatic.reset()
        self.rejected = {}
        execution = self._slot.stop(STOPPED)
        self._enter(OFF, "automatic balancing is off", self._slot.stops)
        self._journal.stop(SWITCHED_OFF if execution is None else STOPPED, self._clock(),
                           self._observer.usage)
        self._publish()
        self._wake()
        return execution.name or None if execution is not None else None

    def require_observation(self) -> None:
        """Makes the next round read the whole cluster, and asks for it at once."""
        self._observer.require_observation()
        self._wake()

    def request_observation(self) -> None:
        """A command has found the view too old: has the loop look once, whatever its state."""
        self._observer.request()
        self._wake()

    def _plan_is_ready(self) -> None:
        """From the job thread: an early round only where the plan can be taken up at once."""
        if self.state == PLANNING:
            self._wake()

    # -- the loop ------------------------------------------------------------------------------

    def round(self) -> float:
        """One round; returns the seconds until the next is due."""
        settings = self._settings()
        self._resume()
        self._stops = self._slot.stops
        self._journal.record_execution(self._slot.plan_name, self._clock())
        try:
            self._plan_store.tidy()
            return self._decide(settings)
        finally:
            self._publish()
            self._journal.record_execution(self._slot.plan_name, self._clock())
            self._journal.record_rejected(self.rejected)
            self._journal.record_corrections(self._dispatcher.corrections.to_dict())
            self._journal.write()

    def _decide(self, settings: Settings) -> float:
        """Does no more than it has to: off costs nothing, and while a guard stands or nothing has
        changed a summary of the cluster is enough."""
        execution, is_asked = self._drop_if_switched_off(settings), self._observer.consume_request()
        if execution is None and not settings.active:
            self._enter(OFF, "automatic balancing is off", self._stops)
            self._guards.observe_builtin()
            if is_asked:
                self._show_to_readers(None, settings)
            return self._timer.next_round(settings.sleep_interval)
        try:
            summary = self._observer.summary(settings)
        except NotReady as not_ready:
            self._enter(WAITING, str(not_ready), self._stops)
            return self._timer.next_round(settings.sleep_interval, _NOT_READY_SECONDS)
        stop = self._guards.check(summary, settings, execution is None or not execution.name)
        if stop is not None:
            if execution is not None:
                execution.stall.end()
            self._was_stopped = True
            self._enter(stop.state, stop.reason, self._stops)
        elif self._is_due(summary, settings):
            return self._look_and_act(summary, settings)
        if is_asked:
            self._show_to_readers(summary, settings)
        if stop is None:
            return self._timer.rest_of_round(settings.sleep_interval)
        return self._timer.next_round(settings.sleep_interval, stop.seconds)

    def _drop_if_switched_off(self, settings: Settings) -> Optional[Execution]:
        """The walk; an automatic one ends here where `active` was switched off by its option."""
        execution = self.execution
        if execution is not None and not (execution.name or settings.active):
            self._slot.end(execution, SWITCHED_OFF)
            execution = self.execution
        if execution is None and not settings.active:
            self._journal.end(SWITCHED_OFF, self._clock(), self._observer.usage)
        return execution

    def _is_due(self, summary: ClusterSummary, settings: Settings) -> bool:
        """Is a full look due? No command and no plan makes it early, but one that can be taken up."""
        if self._observer.view is None or self._observer.change_detector.observation_required or self._was_stopped:
            return True
        if self.state == OFF:  # its option has just been set
            return True
        if self.execution is None and self._automatic.is_ready:
            return True
        if self.execution is None and self.state == PLANNING and self._automatic.is_planning:
            return False
        if self._timer.is_early():
            return False
        if self._dispatcher.has_suspects:
            return True
        state = self.state
        if state == WAITING and self.execution is None and self._seconds is None:
            state = BLOCKED   # for what the cluster does: its pg_num changes, OSDs do not report
        return self._observer.change_detector.is_due(summary, settings, state, self._automatic.is_rest_over)

    def _look(self, summary: Optional[ClusterSummary], settings: Settings) -> Snapshot:
        snapshot = self._observer.observe(summary, settings)
        self._dispatcher.observe(snapshot)
        self._guards.builtin_grace.observe(snapshot.upmap_items, self._clock(),
                                  self._gateway.builtin_balancer_sleep())
        self._observer.update_view(snapshot, settings)
        return snapshot

    def _show_to_readers(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """A look that a command has asked for; nothing is decided."""
        wanted = self._observer.change_detector.observation_required
        try:
            self._look(summary, settings)
        except NotReady as not_ready:
            self._log.info("no look at the cluster: %s", not_ready)
        self._observer.change_detector.observation_required = wanted

    def _look_and_act(self, summary: ClusterSummary, settings: Settings) -> float:
        self._seconds, self._was_stopped = None, False
        try:
            said = self._act(self._look(summary, settings), settings)
        except NotReady as not_ready:
            self._observer.require_observation()
            self._enter(WAITING, str(not_ready), self._stops)
            return self._timer.next_round(settings.sleep_interval, _NOT_READY_SECONDS)
        self._enter(*said, self._stops)
        self._decided_on = summary
        if self.state == PLANNING and self._automatic.is_ready:
            self._seconds = 1.0  # made while this round ended: it can be taken up now
        return self._timer.next_round(settings.sleep_interval, self._seconds)

    def _enter(self, state: str, reason: str, stops: int) -> None:
        """Shows a state, unless a command has stopped everything since the round began."""
        if stops != self._slot.stops:
            return
        if state != self.state:
            self._log.info("%s: %s", state, reason)
        self._said = (state, reason)

    def _act(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        execution = self.execution
        if execution is None and not settings.active:
            return OFF, "automatic balancing is off"
        stop = self._guards.check_snapshot(snapshot, settings, execution is None or not execution.name)
        if stop is not None:
            if execution is not None:
                execution.stall.end()
            self._was_stopped, self._seconds = True, stop.seconds
            return stop.state, stop.reason
        if execution is not None and not execution.name:
            step = self._automatic.replan_step(snapshot, settings, execution,
                                               self._dispatcher.osd_traffic(snapshot))
            if step is not None and not step.replan:
                return self._tell(step)
            if step is not None:
                self._slot.end(execution, f"given up: {step.reason}")
                execution = self.execution
        if execution is not None:
            return self._advance(execution, snapshot, settings)
        return self._plan_or_rest(snapshot, settings)

    def _plan_or_rest(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        nothing = nothing_to_balance(settings, snapshot)
        if nothing is not None:
            self._journal.end(STUCK, self._clock(), self._observer.usage)
            return STUCK, nothing
        step = self._automatic.next_step(snapshot, settings, self._dispatcher.excluded(snapshot, settings))
        if step.plan is None:
            return self._rest(step, snapshot, settings) if step.resting else self._tell(step)
        execution = Execution("", step.plan.changes, self._clock())
        if not self._slot.start(execution, self._stops):
            return PLANNING, "a plan to execute has come in between"
        self._take_up(execution, step.reason)
        return self._advance(execution, snapshot, settings)

    def _tell(self, step: NextStep) -> Tuple[str, str]:
        self._seconds = step.seconds
        return step.state, step.reason

    def _rest(self, step: NextStep, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if self._dispatcher.pending.entries:
            self._await_arrivals(snapshot, settings)
            return MOVING, f"{len(self._dispatcher.pending.entries)} PGs are on their way"
        assert self.view is not None
        # what must not be moved is in nobody's way
        bounds = self._observer.bounds(snapshot, settings.pool_ids)
        state, said = idle_state(self.view, bounds, settings.device_classes, step.reason,
                              settings.pool_ids is not None)
        if self.mispredicted:
            state = STUCK
        self._journal.end(state, self._clock(), self._observer.usage)
        return state, said

    def _await_arrivals(self, snapshot: Snapshot, settings: Settings) -> None:
        self._observer.change_detector.await_arrivals(
            snapshot, self._observer.max_misplaced_ratio(snapshot, settings))

    # -- sending -------------------------------------------------------------------------------

    def _advance(self, execution: Execution, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if execution.name and self._recorded is not execution:
            self._take_up(execution, "'ceph equilibrium execute'")
        self._journal.record_execution(self._slot.plan_name, self._clock())
        ratio = self._observer.max_misplaced_ratio(snapshot, settings)
        self._dispatcher.drop_stopped_pools(execution, snapshot)
        decision = self._dispatcher.choose(execution, snapshot, settings, ratio)
        self._dispatcher.accept(execution, decision)
        if decision.send:
            return self._send(execution, decision, snapshot, settings)
        if decision.throttled or not execution.wanted:
            self._await_arrivals(snapshot, settings)
        if execution.wanted:
            self._break_deadlock(execution, snapshot, decision)
            self._dispatcher.drop_stalled(execution, decision, snapshot, settings)
            if not execution.wanted:
                self._observer.require_observation()
            if decision.has(DeferralKind.TRANSIENT):
                self._seconds = TRANSIENT_RECHECK_SECONDS
            held = WAITING if decision.has(DeferralKind.TRANSIENT) else BLOCKED
            return (THROTTLED if decision.throttled else held), str(decision.waiting_for)
        under_way = len(self._dispatcher.pending.entries)
        if under_way and not self._dispatcher.has_stalled(execution, snapshot, settings):
            return MOVING, f"{under_way} PGs are on their way"
        return self._finish(execution, snapshot, settings, "through" if not under_way else
                            "given up: nothing of %d PGs on their way has arrived for max_wait (%d s)"
                            % (under_way, settings.max_wait))

    def _send(self, execution: Execution, decision: Decision, before: Snapshot,
              settings: Settings) -> Tuple[str, str]:
        """Sends a batch, unless one went a short while ago or everything has been stopped."""
        left = self._dispatcher.backoff.seconds_left(self._clock())
        if left > 0.0:
            self._seconds = left
            return WAITING, "the monitor took nothing of the last batch; the next goes at %s" % (
                format_time(self._clock() + left))
        if self._dispatcher.has_suspects:
            return THROTTLED, ("an OSD seems to have taken more than was predicted; it is looked at"
                               " once more first")
        left = self._timer.batch_seconds()
        if left > 0.0:
            self._seconds = left
            return MOVING, execution.progress(decision)
        self._journal.store_sending(decision.send, self._dispatcher.cooldown, self._clock())
        self._timer.batch_sent(settings.sleep_interval)   # whatever the answers
        sent = self._dispatcher.send(execution, decision.send, before,
                                     lambda execution: self._permit(execution, settings))
        if sent is None:  # a successor must not take them for sent
            self._journal.store_sending([], self._dispatcher.cooldown, self._clock())
            return self._not_permitted()
        execution.stall.end()
        self._journal.record_sent(sent.moves, sent.bytes)
        self._guards.builtin_grace.accept(sent.snapshot.upmap_items)
        self._observer.update_view(sent.snapshot, settings, same_bounds=True)
        return MOVING, execution.progress(decision)

    @contextmanager
    def _permit(self, execution: Execution, settings: Settings) -> Iterator[bool]:
        """`off`, or another option, may have come from another thread since the round began;
        while this is entered `off` has to wait."""
        with self._slot.permit_sending(execution) as is_under_way:
            now = self._settings()
            yield is_under_way and (bool(execution.name) or now.active) and (
                now._replace(active=settings.active) == settings)

    def _not_permitted(self) -> Tuple[str, str]:
        if not self._settings().active and self.execution is None:
            return OFF, "automatic balancing is off"
        self._timer.allow_batch()
        self.require_observation()
        return PLANNING, "the options have changed, or a plan to execute has come in between"

    def _break_deadlock(self, execution: Execution, snapshot: Snapshot, decision: Decision) -> None:
        """With nothing under way what only full targets refuse is refused for ever."""
        if len(decision.full) == len(decision.later) and not self._dispatcher.pending.entries:
            if not snapshot.misplaced_copies and not snapshot.in_flight():
                execution.apply(ExecutionUpdate(dropped=[
                    DroppedChange(change, deferral.reason) for change, deferral in decision.full]))

    def _finish(self, execution: Execution, snapshot: Snapshot, settings: Settings,
                outcome: str) -> Tuple[str, str]:
        """All of a walk has arrived, or nothing more is to be waited for; what comes next needs no
        other look."""
        in_vain = execution.dropped[0][1] if execution.dropped and not (
            execution.sent_moves or execution.done_moves) else None
        if in_vain is not None:
            outcome = f"given up: {in_vain}"
        if not self._slot.end(execution, outcome):
            return PLANNING, "a plan to execute has come in between"
        if execution.name:
            self._journal.end(outcome, self._clock(), self._observer.usage)
        elif in_vain is not None:
            self._automatic.rest_after_refusal(snapshot, settings,
                                      self._dispatcher.excluded(snapshot, settings), in_vain)
        if not settings.active:
            return OFF, f"plan '{execution.name}' is {outcome}"
        return self._act(snapshot, settings)

    # -- memory --------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Once: takes over from the last mgr, and goes on with the plan that it was executing."""
        with self._resuming:
            if self._resumed:
                return
            self._resumed = True
            self._recall()

    def _recall(self) -> None:
        recalled = self._journal.recover(self._dispatcher.cooldown, self._clock(),
                                        self._settings().sleep_interval)
        self._dispatcher.restore(recalled.rejected, recalled.sending, recalled.corrections)
        if recalled.plan is None:
            return
        try:
            plan = self._plan_store.get(recalled.plan)
        except (ValueError, KeyError) as error:  # BadPlan is a ValueError
            self._log.warning("cannot go on with the execution of a plan: %s", error)
            self._journal.end("given up: its plan is lost", self._clock(), None)
            return
        execution = Execution(recalled.plan, plan.changes, self._clock())
        self._recorded = execution if self._journal.episode is not None else None
        if self._slot.start(execution, self._slot.stops):
            self._log.info("going on with the execution of plan %s", recalled.plan)

    def _take_up(self, execution: Execution, why: str) -> None:
        self._journal.begin_plan(execution.name, why, self._clock(), self._observer.usage,
                              lambda: self.execution is execution)
        self._recorded = execution

    def _publish(self) -> None:
        """Replaces the figures of the walk that commands read."""
        execution, view = self.execution, self.view
        if execution is None:
            self.progress = None
            return
        eta = None if view is None else execution.eta_seconds(
            self._dispatcher.pending.bytes_to_come(view.snapshot), self._clock())
        self.progress = ExecutionProgress(execution.name, execution.summary(), eta)
