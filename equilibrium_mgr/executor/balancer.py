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

from ..gateway import Gateway, NotReady
from ..planner.plan import Plan
from ..planning import PlanningDesk
from ..report.text import format_time
from ..scope import nothing_to_balance
from ..settings import Settings
from ..shelf import PlanShelf
from ..snapshot.model import Snapshot
from ..snapshot.summary import ClusterSummary
from .automatic import Automatic, Step
from .batch import Decision
from .course import Course
from .gatekeeper import Gatekeeper
from .glance import news
from .ledger import Ledger
from .logbook import Logbook
from .prediction import Misprediction
from .passing import LOOK_SECONDS
from .rejections import Items, recent
from .round_timer import RoundTimer
from .sending import Sender
from .sight import Sight
from .states import BALANCED, BLOCKED, MOVING, OFF, PLANNING, STUCK, THROTTLED, WAITING
from .stuck import at_rest
from .view import View
from .walk import Walk, WalkProgress

#: How soon the mgr is asked again that does not know enough yet.
_NOT_READY_SECONDS = 5.0
SWITCHED_OFF, STOPPED = "switched off", "stopped by 'ceph equilibrium off'"


class Balancer:
    """The state of balancing. Fields that commands read are replaced whole, never edited."""

    def __init__(self, gateway: Gateway, shelf: PlanShelf, desk: PlanningDesk, kv: Any,
                 settings: Callable[[], Settings], clock: Callable[[], float],
                 wake: Callable[[], None], log: logging.Logger) -> None:
        self._gateway = gateway
        self._shelf = shelf
        self._desk = desk
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._log = log
        self._sender = Sender(gateway, clock, log)
        self._sight = Sight(gateway, self._sender.ledger, clock, log)
        self._course = Course(clock, log)
        self._timer = RoundTimer(clock)
        self._automatic = Automatic(desk, clock, self._plan_is_ready)
        self._gatekeeper = Gatekeeper(gateway, clock)
        self._logbook = Logbook(kv, log)
        self._resuming = threading.Lock()
        self._resumed = False
        self._stops = 0                         # of the course, when the round began
        self._was_stopped = False               # by a guard, the last time
        self._seconds: Optional[float] = None   # after which a wait is over
        self._said = (OFF, "no round has run yet")
        self._decided_on: Optional[ClusterSummary] = None   # what `_said` was decided on
        self.progress: Optional[WalkProgress] = None

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
    def walk(self) -> Optional[Walk]:
        return self._course.walk

    @property
    def last_walk(self) -> Optional[Dict[str, Any]]:
        return self._course.last

    @property
    def view(self) -> Optional[View]:
        return self._sight.view

    @view.setter
    def view(self, view: Optional[View]) -> None:
        self._sight.view = view

    @property
    def builtin_active(self) -> Optional[bool]:
        """Was the built-in balancer on when that was last seen? None before the first time."""
        return self._sight.builtin_active

    @property
    def ledger(self) -> Ledger:
        """What we have sent and not seen arrive."""
        return self._sender.ledger

    @property
    def rejected(self) -> Items:
        """pgid → (reason, mark of the map), of what the monitor did not keep."""
        return self._sender.rejected

    @rejected.setter
    def rejected(self, items: Items) -> None:
        self._sender.rejected = items

    def recent_rejections(self) -> Items:
        """Those of the last hour, while something is to be moved at all."""
        wanted = self._settings().active or self.walk is not None
        return recent(self.rejected, self._clock()) if wanted else {}

    @property
    def mispredicted(self) -> Mapping[int, Misprediction]:
        """By pool id: pools that are stopped, as their shards took more than was predicted."""
        return self._sender.corrections.stopped

    @property
    def history(self) -> List[Dict[str, Any]]:
        """Finished episodes, the newest last; JSON-ready."""
        return self._logbook.history.entries

    @property
    def episode(self) -> Optional[Dict[str, Any]]:
        """The episode under way; JSON-ready."""
        episode = self._logbook.episode
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
        return self._desk.failure("")

    # -- wishes of commands --------------------------------------------------------------------

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop; False while another named plan is being executed.

        Waits for the store, as `off` does: a successor goes on with what has been answered to.
        """
        self._resume()
        walk = self.walk
        if walk is not None and walk.name:
            return False
        # before a round can see the plan: it would drop what belongs to a stopped pool
        self._sender.corrections.allow(
            self._clock(), frozenset(int(change.pgid.split(".", 1)[0]) for change in plan.changes))
        self.rejected = {}
        if not self._course.begin_named(name, plan.changes):
            return False
        self._timer.allow_batch()
        self._logbook.execute(self._course.executing, self._clock())
        self._publish()
        self.look_again()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Automatic balancing begins, once a built-in balancer just switched off has noticed."""
        self._automatic.forget()
        self.rejected = {}
        self._sender.corrections.allow(self._clock())
        if builtin_was_active:
            self._gatekeeper.hold.begin(self._clock(), self._gateway.builtin_balancer_sleep())
            self._sight.ask()  # what it adds from now on shows in the look after the wait
        self.look_again()

    def switch_off(self) -> Optional[str]:
        """Nothing is sent any more once this has returned, and a successor finds nothing to go on
        with; returns the name of the plan whose execution this ended.

        Waits for the store, which is a commit of the monitors, and for nothing else: `off` that is
        not on disk could be undone by a failover.
        """
        self._resume()
        self._automatic.forget()
        self.rejected = {}
        walk = self._course.stop(STOPPED)
        self._enter(OFF, "automatic balancing is off", self._course.stops)
        self._logbook.stop(SWITCHED_OFF if walk is None else STOPPED, self._clock(),
                           self._sight.usage)
        self._publish()
        self._wake()
        return walk.name or None if walk is not None else None

    def look_again(self) -> None:
        """Makes the next round read the whole cluster, and asks for it at once."""
        self._sight.look_again()
        self._wake()

    def refresh_view(self) -> None:
        """A command has found the view too old: has the loop look once, whatever its state."""
        self._sight.ask()
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
        self._stops = self._course.stops
        self._logbook.executing(self._course.executing, self._clock())
        try:
            self._shelf.tidy()
            return self._decide(settings)
        finally:
            self._publish()
            self._logbook.executing(self._course.executing, self._clock())
            self._logbook.rejected(self.rejected)
            self._logbook.corrections(self._sender.corrections.to_dict())
            self._logbook.write()

    def _decide(self, settings: Settings) -> float:
        """Does no more than it has to: off costs nothing, and while a guard stands or nothing has
        changed a summary of the cluster is enough."""
        walk, is_asked = self._drop_if_switched_off(settings), self._sight.take_request()
        if walk is None and not settings.active:
            self._enter(OFF, "automatic balancing is off", self._stops)
            self._gatekeeper.watch_builtin()
            if is_asked:
                self._show_to_readers(None, settings)
            return self._timer.next_round(settings.sleep_interval)
        try:
            summary = self._sight.summary(settings)
        except NotReady as not_ready:
            self._enter(WAITING, str(not_ready), self._stops)
            return self._timer.next_round(settings.sleep_interval, _NOT_READY_SECONDS)
        stop = self._gatekeeper.stops(summary, settings, walk is None or not walk.name)
        if stop is not None:
            if walk is not None:
                walk.stall.end()
            self._was_stopped = True
            self._enter(stop.state, stop.reason, self._stops)
        elif self._is_due(summary, settings):
            return self._look_and_act(summary, settings)
        if is_asked:
            self._show_to_readers(summary, settings)
        if stop is None:
            return self._timer.rest_of_round(settings.sleep_interval)
        return self._timer.next_round(settings.sleep_interval, stop.seconds)

    def _drop_if_switched_off(self, settings: Settings) -> Optional[Walk]:
        """The walk; an automatic one ends here where `active` was switched off by its option."""
        walk = self.walk
        if walk is not None and not (walk.name or settings.active):
            self._course.finish(walk, SWITCHED_OFF)
            walk = self.walk
        if walk is None and not settings.active:
            self._logbook.end(SWITCHED_OFF, self._clock(), self._sight.usage)
        return walk

    def _is_due(self, summary: ClusterSummary, settings: Settings) -> bool:
        """Is a full look due? No command and no plan makes it early, but one that can be taken up."""
        if self._sight.view is None or self._sight.glance.look_wanted or self._was_stopped:
            return True
        if self.state == OFF:  # its option has just been set
            return True
        if self.walk is None and self._automatic.is_ready:
            return True
        if self.walk is None and self.state == PLANNING and self._automatic.is_planning:
            return False
        if self._timer.is_early():
            return False
        if self._sender.has_suspects:
            return True
        state = self.state
        if state == WAITING and self.walk is None and self._seconds is None:
            state = BLOCKED   # for what the cluster does: its pg_num changes, OSDs do not report
        return self._sight.glance.is_due(summary, settings, state, self._automatic.is_rest_over)

    def _look(self, summary: Optional[ClusterSummary], settings: Settings) -> Snapshot:
        snapshot = self._sight.look(summary, settings)
        self._sender.see(snapshot)
        self._gatekeeper.hold.see(snapshot.upmap_items, self._clock(),
                                  self._gateway.builtin_balancer_sleep())
        self._sight.show(snapshot, settings)
        return snapshot

    def _show_to_readers(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """A look that a command has asked for; nothing is decided."""
        wanted = self._sight.glance.look_wanted
        try:
            self._look(summary, settings)
        except NotReady as not_ready:
            self._log.info("no look at the cluster: %s", not_ready)
        self._sight.glance.look_wanted = wanted

    def _look_and_act(self, summary: ClusterSummary, settings: Settings) -> float:
        self._seconds, self._was_stopped = None, False
        try:
            said = self._act(self._look(summary, settings), settings)
        except NotReady as not_ready:
            self._sight.look_again()
            self._enter(WAITING, str(not_ready), self._stops)
            return self._timer.next_round(settings.sleep_interval, _NOT_READY_SECONDS)
        self._enter(*said, self._stops)
        self._decided_on = summary
        if self.state == PLANNING and self._automatic.is_ready:
            self._seconds = 1.0  # made while this round ended: it can be taken up now
        return self._timer.next_round(settings.sleep_interval, self._seconds)

    def _enter(self, state: str, reason: str, stops: int) -> None:
        """Shows a state, unless a command has stopped everything since the round began."""
        if stops != self._course.stops:
            return
        if state != self.state:
            self._log.info("%s: %s", state, reason)
        self._said = (state, reason)

    def _act(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        walk = self.walk
        if walk is None and not settings.active:
            return OFF, "automatic balancing is off"
        stop = self._gatekeeper.stops_in_full(snapshot, settings, walk is None or not walk.name)
        if stop is not None:
            if walk is not None:
                walk.stall.end()
            self._was_stopped, self._seconds = True, stop.seconds
            return stop.state, stop.reason
        if walk is not None and not walk.name:
            step = self._automatic.out_of_date(snapshot, settings, walk,
                                               self._sender.in_transit(snapshot))
            if step is not None and not step.replan:
                return self._tell(step)
            if step is not None:
                self._course.finish(walk, "given up: %s" % step.reason)
                walk = self.walk
        if walk is not None:
            return self._advance(walk, snapshot, settings)
        return self._plan_or_rest(snapshot, settings)

    def _plan_or_rest(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        nothing = nothing_to_balance(settings, snapshot)
        if nothing is not None:
            self._logbook.end(STUCK, self._clock(), self._sight.usage)
            return STUCK, nothing
        step = self._automatic.next(snapshot, settings, self._sender.excluded(snapshot, settings))
        if step.plan is None:
            return self._rest(step, snapshot, settings) if step.resting else self._tell(step)
        walk = Walk("", step.plan.changes, self._clock())
        if not self._course.begin(walk, self._stops):
            return PLANNING, "a plan to execute has come in between"
        self._take_up(walk, step.reason)
        return self._advance(walk, snapshot, settings)

    def _tell(self, step: Step) -> Tuple[str, str]:
        self._seconds = step.seconds
        return step.state, step.reason

    def _rest(self, step: Step, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if self._sender.ledger.entries:
            self._await_arrivals(snapshot, settings)
            return MOVING, "%d PGs are on their way" % len(self._sender.ledger.entries)
        assert self.view is not None
        # what must not be moved is in nobody's way
        bounds = self._sight.bounds(snapshot, settings.pool_ids)
        state, said = at_rest(self.view, bounds, settings.device_classes, step.reason,
                              settings.pool_ids is not None)
        if self.mispredicted:
            state = STUCK
        self._logbook.end(state, self._clock(), self._sight.usage)
        return state, said

    def _await_arrivals(self, snapshot: Snapshot, settings: Settings) -> None:
        self._sight.glance.await_arrivals(
            snapshot, self._sight.max_misplaced_ratio(snapshot, settings))

    # -- sending -------------------------------------------------------------------------------

    def _advance(self, walk: Walk, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if walk.name and not walk.is_noted:
            self._take_up(walk, "'ceph equilibrium execute'")
        self._logbook.executing(self._course.executing, self._clock())
        ratio = self._sight.max_misplaced_ratio(snapshot, settings)
        decision = self._sender.choose(walk, snapshot, settings, ratio)
        walk.note(decision)
        if decision.send:
            return self._send(walk, decision, snapshot, settings)
        if decision.throttled or not walk.wanted:
            self._await_arrivals(snapshot, settings)
        if walk.wanted:
            self._break_deadlock(walk, snapshot, decision)
            self._sender.give_up_stalled(walk, decision, snapshot, settings)
            if not walk.wanted:
                self._sight.look_again()
            if decision.passing:
                self._seconds = LOOK_SECONDS
            held = WAITING if decision.passing else BLOCKED
            return (THROTTLED if decision.throttled else held), str(decision.waiting_for)
        under_way = len(self._sender.ledger.entries)
        if under_way and not self._sender.has_stalled(walk, snapshot, settings):
            return MOVING, "%d PGs are on their way" % under_way
        return self._finish(walk, snapshot, settings, "through" if not under_way else
                            "given up: nothing of %d PGs on their way has arrived for max_wait (%d s)"
                            % (under_way, settings.max_wait))

    def _send(self, walk: Walk, decision: Decision, before: Snapshot,
              settings: Settings) -> Tuple[str, str]:
        """Sends a batch, unless one went a short while ago or everything has been stopped."""
        left = self._sender.backoff.seconds_left(self._clock())
        if left > 0.0:
            self._seconds = left
            return WAITING, "the monitor took nothing of the last batch; the next goes at %s" % (
                format_time(self._clock() + left))
        if self._sender.has_suspects:
            return THROTTLED, ("an OSD seems to have taken more than was predicted; it is looked at"
                               " once more first")
        left = self._timer.batch_seconds()
        if left > 0.0:
            self._seconds = left
            return MOVING, walk.progress(decision)
        self._logbook.sending(decision.send, self._sender.cooldown, self._clock())
        moves, moved = walk.sent_moves, walk.sent_bytes
        self._timer.batch_sent(settings.sleep_interval)   # whatever the answers
        snapshot = self._sender.send(walk, decision.send, before,
                                     lambda walk: self._permit(walk, settings))
        if snapshot is None:  # a successor must not take them for sent
            self._logbook.sending([], self._sender.cooldown, self._clock())
            return self._not_permitted()
        walk.stall.end()
        self._logbook.sent(walk.sent_moves - moves, walk.sent_bytes - moved)
        self._gatekeeper.hold.ours(snapshot.upmap_items)
        self._sight.show(snapshot, settings, same_bounds=True)
        return MOVING, walk.progress(decision)

    @contextmanager
    def _permit(self, walk: Walk, settings: Settings) -> Iterator[bool]:
        """`off`, or another option, may have come from another thread since the round began;
        while this is entered `off` has to wait."""
        with self._course.permit(walk) as is_under_way:
            now = self._settings()
            yield is_under_way and (bool(walk.name) or now.active) and (
                now._replace(active=settings.active) == settings)

    def _not_permitted(self) -> Tuple[str, str]:
        if not self._settings().active and self.walk is None:
            return OFF, "automatic balancing is off"
        self._timer.allow_batch()
        self.look_again()
        return PLANNING, "the options have changed, or a plan to execute has come in between"

    def _break_deadlock(self, walk: Walk, snapshot: Snapshot, decision: Decision) -> None:
        """With nothing under way what only full targets refuse is refused for ever."""
        if len(decision.full) == len(decision.later) and not self._sender.ledger.entries:
            if not snapshot.misplaced_copies and not snapshot.in_flight():
                walk.drop(decision.full)

    def _finish(self, walk: Walk, snapshot: Snapshot, settings: Settings,
                outcome: str) -> Tuple[str, str]:
        """All of a walk has arrived, or nothing more is to be waited for; what comes next needs no
        other look."""
        in_vain = walk.dropped[0][1] if walk.dropped and not (
            walk.sent_moves or walk.done_moves) else None
        if in_vain is not None:
            outcome = "given up: %s" % in_vain
        if not self._course.finish(walk, outcome):
            return PLANNING, "a plan to execute has come in between"
        if walk.name:
            self._logbook.end(outcome, self._clock(), self._sight.usage)
        elif in_vain is not None:
            self._automatic.fruitless(snapshot, settings,
                                      self._sender.excluded(snapshot, settings), in_vain)
        if not settings.active:
            return OFF, "plan '%s' is %s" % (walk.name, outcome)
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
        recalled = self._logbook.recall(self._sender.cooldown, self._clock(),
                                        self._settings().sleep_interval)
        self._sender.take_over(recalled.rejected, recalled.sending, recalled.corrections)
        if recalled.plan is None:
            return
        try:
            plan = self._shelf.get(recalled.plan)
        except (ValueError, KeyError) as error:  # BadPlan is a ValueError
            self._log.warning("cannot go on with the execution of a plan: %s", error)
            self._logbook.end("given up: its plan is lost", self._clock(), None)
            return
        walk = Walk(recalled.plan, plan.changes, self._clock())
        walk.is_noted = self._logbook.episode is not None
        if self._course.begin(walk, self._course.stops):
            self._log.info("going on with the execution of plan %s", recalled.plan)

    def _take_up(self, walk: Walk, why: str) -> None:
        self._logbook.take_up(walk.name, why, self._clock(), self._sight.usage,
                              lambda: self.walk is walk)
        walk.is_noted = True

    def _publish(self) -> None:
        """Replaces the figures of the walk that commands read."""
        walk, view = self.walk, self.view
        if walk is None:
            self.progress = None
            return
        eta = None if view is None else walk.eta_seconds(
            self._sender.ledger.bytes_to_come(view.snapshot), self._clock())
        self.progress = WalkProgress(walk.name, walk.summary(), eta)
