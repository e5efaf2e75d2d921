"""The controller of the serve loop: look, decide, send, verify, rest.

Commands only leave wishes here (`execute`, `switch_on`, `switch_off`); all looking and sending
happens in `round`, which the serve thread calls.
"""
from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..gateway import Gateway, NotReady
from ..planner.plan import PgChange, Plan
from ..planning import PlanningDesk
from ..scope import nothing_to_balance
from ..settings import Settings
from ..shelf import PlanShelf
from ..snapshot.model import Snapshot
from .automatic import Automatic, Step
from .batch import Decision
from .course import Course
from .gatekeeper import Gatekeeper
from .logbook import Logbook
from .passing import LOOK_SECONDS
from .rejections import Items, recent
from .sending import Sender
from .sight import Sight
from .states import BLOCKED, MOVING, OFF, PLANNING, STUCK, THROTTLED, WAITING
from .stuck import at_rest
from .view import View
from .walk import Walk


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
        self._automatic = Automatic(desk, clock, wake)
        self._gatekeeper = Gatekeeper(gateway, clock)
        self._logbook = Logbook(kv, log)
        self._resumed = False
        self._seconds: Optional[float] = None   # after which a wait is over
        self.state = OFF
        self.reason = "no round has run yet"

    # -- what commands read --------------------------------------------------------------------

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
    def history(self) -> List[Dict[str, Any]]:
        """Finished episodes, the newest last; JSON-ready."""
        return self._logbook.history.entries

    @property
    def episode(self) -> Optional[Dict[str, Any]]:
        """The episode under way; JSON-ready."""
        episode = self._logbook.episode
        return episode._asdict() if episode is not None else None

    def planning_failure(self) -> Optional[str]:
        """Why the last automatic plan could not be made, or None."""
        return self._desk.failure("")

    def eta_seconds(self) -> Optional[float]:
        """Seconds until the plan is through, at the rate seen so far; None where unknown."""
        walk, view = self.walk, self.view
        if walk is None or view is None:
            return None
        return walk.eta_seconds(self._sender.ledger.bytes_to_come(view.snapshot), self._clock())

    # -- wishes of commands --------------------------------------------------------------------

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop; False while another named plan is being executed."""
        if not self._course.begin_named(name, plan.changes):
            return False
        self.rejected = {}
        self.look_again()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Automatic balancing begins, once a built-in balancer just switched off has noticed."""
        self._automatic.forget()
        self.rejected = {}
        if builtin_was_active:
            self._gatekeeper.hold.begin(self._clock(), self._gateway.builtin_balancer_sleep())
        self.look_again()

    def switch_off(self) -> Optional[str]:
        """Nothing more is sent; returns the name of the plan whose execution this ended."""
        self._automatic.forget()
        self.rejected = {}
        walk = self._course.stop("stopped by 'ceph equilibrium off'")
        self.state, self.reason = OFF, "automatic balancing is off"
        if walk is None:
            return None
        self.look_again()
        return walk.name or None

    def look_again(self) -> None:
        """Makes the next round read the whole cluster, and asks for it at once."""
        self._sight.look_again()
        self._wake()

    # -- the loop ------------------------------------------------------------------------------

    def round(self) -> float:
        """One round; returns the seconds until the next is due."""
        settings = self._settings()
        self._resume()
        self._note_walks()
        try:
            self._shelf.tidy()
            if not self._automatic.is_ready and self._sight.nothing_new(self.state):
                return settings.sleep_interval
            return self._look_and_act(settings)
        finally:
            self._note_walks()
            self._logbook.rejected(self.rejected)
            self._logbook.write()

    def _look_and_act(self, settings: Settings) -> float:
        self._seconds = None
        try:
            snapshot = self._sight.look()
        except NotReady as not_ready:
            self._enter(WAITING, str(not_ready))
            return min(5.0, settings.sleep_interval)
        self._sender.see(snapshot)
        self._gatekeeper.hold.see(snapshot.upmap_items, self._clock(),
                                  self._gateway.builtin_balancer_sleep())
        self._sight.show(snapshot, settings)
        self._enter(*self._act(snapshot, settings))
        if self._automatic.is_ready:
            return 0.0
        seconds = self._seconds if self._seconds is not None else settings.sleep_interval
        return min(settings.sleep_interval, max(1.0, seconds))

    def _enter(self, state: str, reason: str) -> None:
        if state != self.state:
            self._log.info("%s: %s", state, reason)
        self.state, self.reason = state, reason

    def _act(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        walk = self.walk
        if walk is not None and not (walk.name or settings.active):
            self._course.finish(walk, "switched off")  # by its option
            walk = self.walk
        if walk is None and not settings.active:
            self._logbook.end("switched off", self._clock(), self._sight.usage)
            return OFF, "automatic balancing is off"
        stop = self._gatekeeper.stops(snapshot, settings, walk is None or not walk.name)
        if stop is not None:
            if walk is not None:
                walk.stall.end()
            self._sight.glance.closed, self._seconds = stop.window, stop.seconds
            return stop.state, stop.reason
        if walk is not None and not walk.name:
            step = self._automatic.out_of_date(snapshot, settings, walk,
                                               self._sender.in_transit(snapshot))
            if step is not None and not step.replan:
                return self._said(step)
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
            return self._rest(step, snapshot, settings) if step.resting else self._said(step)
        walk = Walk("", step.plan.changes, self._clock())
        if not self._course.swap(None, walk):
            return PLANNING, "a plan to execute has come in between"
        self._take_up(walk, step.reason)
        return self._advance(walk, snapshot, settings)

    def _said(self, step: Step) -> Tuple[str, str]:
        self._seconds = step.seconds
        return step.state, step.reason

    def _rest(self, step: Step, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if self._sender.ledger.entries:
            return MOVING, "%d PGs are on their way" % len(self._sender.ledger.entries)
        assert self.view is not None
        # what must not be moved is in nobody's way
        bounds = self._sight.bounds(snapshot, settings.pool_ids)
        state, said = at_rest(self.view, bounds, settings.device_classes, step.reason)
        self._logbook.end(state, self._clock(), self._sight.usage)
        return state, said

    # -- sending -------------------------------------------------------------------------------

    def _advance(self, walk: Walk, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if walk.name and not walk.is_noted:
            self._take_up(walk, "'ceph equilibrium execute'")
        self._note_walks()
        ratio = self._sight.max_misplaced_ratio(snapshot, settings)
        decision = self._sender.choose(walk, snapshot, settings, ratio)
        walk.note(decision)
        left = self._sender.backoff.seconds_left(self._clock())
        if decision.send and left > 0.0:
            self._seconds = left
            return WAITING, "the monitor took nothing of the last batch; %d s to go" % (left + 1)
        if decision.send and self._still_wanted(walk):
            walk.stall.end()
            self._send(walk, decision.send, snapshot, settings)
            return MOVING, walk.progress(decision)
        if decision.throttled or not walk.wanted:
            self._sight.glance.await_arrivals(snapshot, ratio)
        if walk.wanted:
            self._break_deadlock(walk, snapshot, decision)
            self._sender.give_up_stalled(walk, decision, snapshot, settings)
            if not walk.wanted:
                self._sight.look_again()
            if decision.passing:
                self._seconds = LOOK_SECONDS
            held = WAITING if decision.passing else BLOCKED
            return (THROTTLED if decision.throttled else held), str(decision.waiting_for)
        if self._sender.ledger.entries:
            return MOVING, "%d PGs are on their way" % len(self._sender.ledger.entries)
        self._finish(walk, snapshot, settings)
        return (PLANNING, "the last plan is through") if settings.active else (
            OFF, "plan '%s' is through" % walk.name)

    def _still_wanted(self, walk: Walk) -> bool:
        """`off` may have come from the commands' thread since the round began."""
        return self.walk is walk and (bool(walk.name) or self._settings().active)

    def _send(self, walk: Walk, batch: List[PgChange], before: Snapshot,
              settings: Settings) -> None:
        self._logbook.sending(batch, self._sender.cooldown, self._clock())
        moves, moved = walk.sent_moves, walk.sent_bytes
        snapshot = self._sender.send(walk, batch, before)
        self._logbook.sent(walk.sent_moves - moves, walk.sent_bytes - moved)
        self._gatekeeper.hold.ours(snapshot.upmap_items)
        self._sight.show(snapshot, settings, same_bounds=True)

    def _break_deadlock(self, walk: Walk, snapshot: Snapshot, decision: Decision) -> None:
        """With nothing under way what only full targets refuse is refused for ever."""
        if len(decision.full) == len(decision.later) and not self._sender.ledger.entries:
            if not snapshot.misplaced_copies and not snapshot.in_flight():
                walk.drop(decision.full)

    def _finish(self, walk: Walk, snapshot: Snapshot, settings: Settings) -> None:
        if not self._course.finish(walk, "through"):
            return
        if walk.name:
            self._logbook.end("through", self._clock(), self._sight.usage)
        elif not walk.sent_moves and not walk.done_moves and walk.dropped:
            self._automatic.fruitless(snapshot, settings,
                                      self._sender.excluded(snapshot, settings),
                                      walk.dropped[0][1])
        self.look_again()

    # -- memory --------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Once: takes over from the last mgr, and goes on with the plan that it was executing."""
        if self._resumed:
            return
        self._resumed = True
        recalled = self._logbook.recall(self._sender.cooldown, self._clock())
        self._sender.take_over(recalled.rejected, recalled.sending)
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
        if self._course.swap(None, walk):
            self._log.info("going on with the execution of plan %s", recalled.plan)

    def _take_up(self, walk: Walk, why: str) -> None:
        self._logbook.take_up(walk.name, why, self._clock(), self._sight.usage)
        walk.is_noted = True

    def _note_walks(self) -> None:
        """Takes down which plan is executed, and which walks a command has ended."""
        for walk, outcome in self._course.take_ended():
            if walk.is_noted:
                self._logbook.end_of(walk.name, outcome, self._clock(), self._sight.usage)
        self._logbook.executing(self._course.executing())
