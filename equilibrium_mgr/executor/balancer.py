"""The controller of the serve loop: look, decide, send, verify, rest.

Commands only leave wishes here (`execute`, `switch_on`, `switch_off`); all looking and sending
happens in `round`, which the serve thread calls.
"""
from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

from ..gateway import Gateway, NotReady
from ..jobs import Turns
from ..planner.bound import Reachable, reachable
from ..planner.options import PlanOptions
from ..planner.plan import PgChange, Plan
from ..planning import PlanningDesk
from ..settings import Settings
from ..shelf import PlanShelf
from ..snapshot.model import Snapshot
from .batch import Limits, next_batch
from .guards import cluster_guard, troubled_pools
from .hold import BuiltinHold
from .ledger import Ledger
from .memory import ExecutionMemory
from .rest import Resting, resting
from .stuck import distances
from .view import View, make_view, misplaced_ratio
from .walk import Walk, verify

OFF, WAITING, BLOCKED, THROTTLED = "off", "waiting", "blocked", "throttled"
PLANNING, MOVING, BALANCED, STUCK = "planning", "moving", "balanced", "stuck"

_SEND_TIMEOUT_SECONDS = 30.0
#: While moves are under way, the cluster is read in full again when this share of the misplaced
#: limit has become free, and at the latest after so many seconds.
_GLANCE_STEP = 0.1
_LONGEST_GLANCE_SECONDS = 600.0


class Balancer:
    """The state of balancing. Fields that commands read are replaced whole, never edited."""

    def __init__(self, gateway: Gateway, shelf: PlanShelf, desk: PlanningDesk, kv: Any,
                 settings: Callable[[], Settings], clock: Callable[[], float],
                 wake: Callable[[], None], log: logging.Logger) -> None:
        self._gateway = gateway
        self._shelf = shelf
        self._desk = desk
        self._memory = ExecutionMemory(kv)
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._log = log
        self._lock = threading.Lock()
        self._ledger = Ledger()
        self._walk: Optional[Walk] = None
        self._ready: Optional[Plan] = None
        self._resting: Optional[Resting] = None
        self._planned_for: Optional[PlanOptions] = None
        self._hold = BuiltinHold()
        self._resumed = False
        self._look_wanted = False
        self._awaited_misplaced: Optional[int] = None
        self.state = OFF
        self.reason = "no round has run yet"
        self.view: Optional[View] = None
        self.rejected: Dict[str, Tuple[str, int]] = {}   # pgid → (reason, CRUSH version)
        self.last_walk: Optional[Dict[str, Any]] = None

    # -- wishes of commands --------------------------------------------------------------------

    @property
    def walk(self) -> Optional[Walk]:
        return self._walk

    def execute(self, name: str, plan: Plan) -> bool:
        """Hands a plan to the loop; False while another named plan is being executed."""
        with self._lock:
            if self._walk is not None and self._walk.name:
                return False
            self._walk = Walk(name, plan.changes, self._clock())
            self.rejected = {}
        self.look_again()
        return True

    def switch_on(self, builtin_was_active: bool) -> None:
        """Automatic balancing begins, once a built-in balancer just switched off has noticed."""
        with self._lock:
            self.rejected = {}
            self._resting = None
            if builtin_was_active:
                self._hold.begin(self._clock(), self._gateway.builtin_balancer_sleep())
        self.look_again()

    def planning_failure(self) -> Optional[str]:
        """Why the last automatic plan could not be made, or None."""
        return self._desk.failure("")

    def switch_off(self) -> Optional[str]:
        """Nothing more is sent; returns the name of the plan whose execution this ended."""
        with self._lock:
            walk, self._walk, self._ready = self._walk, None, None
            self.state, self.reason = OFF, "automatic balancing is off"
        if walk is None:
            return None
        self._remember_end(walk, "stopped by 'ceph equilibrium off'")
        self.look_again()
        return walk.name or None

    # -- the loop ------------------------------------------------------------------------------

    def round(self) -> float:
        """One round; returns the seconds until the next is due."""
        settings = self._settings()
        self._resume()
        self._note_execution()
        self._shelf.tidy()
        if self._nothing_new():
            return settings.sleep_interval
        try:
            snapshot = self._look()
        except NotReady as not_ready:
            self._look_wanted = True
            self._enter(WAITING, str(not_ready))
            return min(5.0, settings.sleep_interval)
        except Exception:
            self._look_wanted = True  # a glance must not pass for the look that is still owed
            raise
        self._enter(*self._act(snapshot, settings))
        self._note_execution()
        return 0.0 if self._ready is not None else settings.sleep_interval

    def _enter(self, state: str, reason: str) -> None:
        if state != self.state:
            self._log.info("%s: %s", state, reason)
        self.state, self.reason = state, reason

    def look_again(self) -> None:
        """Makes the next round read the whole cluster, and asks for it at once."""
        self._look_wanted = True
        self._wake()

    def _nothing_new(self) -> bool:
        """A glance that spares a full look while moves are under way or nothing is to be done."""
        view = self.view
        if view is None or self._look_wanted or self._ready is not None:
            return False
        if not 0.0 <= self._clock() - view.snapshot.taken_at < _LONGEST_GLANCE_SECONDS:
            return False
        if self._gateway.builtin_balancer_active() != view.builtin_active:
            return False  # switching it moves no epoch
        if self.state in (OFF, BALANCED, STUCK):
            return self._gateway.epoch() == view.snapshot.epoch
        if self._awaited_misplaced is None:
            return False
        misplaced = self._gateway.misplaced_copies()
        self.view = view._replace(
            misplaced_ratio=misplaced_ratio(view.snapshot, misplaced, self._ledger))
        return misplaced > self._awaited_misplaced

    def _look(self) -> Snapshot:
        self._look_wanted = False
        self._awaited_misplaced = None
        snapshot = self._gateway.snapshot()
        self._ledger.settle(snapshot)
        self.rejected = {pgid: (reason, version) for pgid, (reason, version)
                         in self.rejected.items() if version == snapshot.crush_version}
        self._hold.see(snapshot.upmap_items, self._clock(), self._gateway.builtin_balancer_sleep())
        self._see(snapshot, self._reachable(snapshot))
        return snapshot

    def _see(self, snapshot: Snapshot, bounds: Optional[Reachable]) -> None:
        self.view = make_view(snapshot, bounds, self._ledger,
                              self._max_misplaced_ratio(self._settings()),
                              self._gateway.builtin_balancer_active())

    def _reachable(self, snapshot: Snapshot,
                   fixed_pools: FrozenSet[int] = frozenset()) -> Optional[Reachable]:
        """A figure for people: that it cannot be had must not keep moves from being made."""
        turns = Turns()

        def checkpoint() -> None:
            turns()
        try:
            return reachable(snapshot, fixed_pools, checkpoint=checkpoint)
        except Exception:
            self._log.exception("how even the cluster could be cannot be computed")
            return None

    def _act(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        walk = self._walk
        if walk is not None and not (walk.name or settings.active):
            self._swap_walk(walk, None)  # switched off by its option
            walk = self._walk
        if walk is None and not settings.active:
            return OFF, "automatic balancing is off"
        guard = cluster_guard(snapshot, self._gateway.have_mon_connection(),
                              self._gateway.builtin_balancer_active())
        if guard:
            return BLOCKED, guard
        left = self._hold.seconds_left(self._clock())
        if left > 0:
            return WAITING, "the built-in balancer may be finishing; %d s to go" % (left + 1)
        if walk is None:
            return self._plan_or_rest(snapshot, settings)
        return self._advance(walk, snapshot, settings)

    # -- planning ------------------------------------------------------------------------------

    def _plan_or_rest(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        with self._lock:
            plan, self._ready = self._ready, None
        if plan is not None:
            if plan.changes:
                walk = Walk("", plan.changes, self._clock())
                if not self._swap_walk(None, walk):
                    return PLANNING, "a plan to execute has come in between"
                return self._advance(walk, snapshot, settings)
            self._resting = resting(snapshot)
        options = PlanOptions(pool_ids=settings.pool_ids, device_classes=settings.device_classes,
                              fill_limit=settings.fill_limit, aim=settings.aim,
                              rejected_pgs=frozenset(self.rejected))
        if self._resting is not None and not self._resting.is_over(snapshot):
            if self._planned_for == options:  # with others there may be something to do
                return self._rest(snapshot, settings)
        self._resting = None
        failure = self.planning_failure()
        if self._desk.submit_automatic(snapshot, options, settings.max_plan_seconds,
                                       self._planned):
            self._planned_for = options
        return PLANNING, ("the last plan could not be made (%s); trying again" % failure
                          if failure else "a plan is being made")

    def _planned(self, plan: Plan) -> None:
        with self._lock:
            self._ready = plan
        self._wake()

    def _rest(self, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        if self._ledger.entries:
            return MOVING, "%d PGs are on their way" % len(self._ledger.entries)
        assert self.view is not None
        bounds = self.view.reachable
        if settings.pool_ids is not None:  # what must not be moved is in nobody's way
            bounds = self._reachable(snapshot, frozenset(snapshot.pools) - settings.pool_ids)
        far = max(distances(self.view, bounds, settings.device_classes), default=None)
        if far is None:
            return BALANCED, "no move improves the placement"
        if far.excess > 0.0:
            return STUCK, "%s, and no legal move helps it; 'ceph equilibrium explain' tells why" % (
                far.sentence())
        return BALANCED, "no move improves the placement; %s" % far.sentence()

    # -- sending -------------------------------------------------------------------------------

    def _advance(self, walk: Walk, snapshot: Snapshot, settings: Settings) -> Tuple[str, str]:
        limits = Limits(
            max_misplaced_ratio=self._max_misplaced_ratio(settings),
            max_moves=settings.max_moves_per_round, fill_limit=settings.fill_limit,
            misplaced_copies=max(snapshot.misplaced_copies,
                                 self._ledger.misplaced_copies(snapshot)),
            in_flight=tuple(p for p in self._ledger.entries if p not in walk.unanswered))
        self._note_execution()
        decision = next_batch(snapshot, walk.wanted, limits, troubled_pools(snapshot))
        walk.note(decision)
        if decision.send and self._still_wanted(walk):
            self._send(walk, decision.send, snapshot)
            said = "%d of %d moves sent" % (walk.sent_moves, walk.planned_moves)
            if decision.above_limit:
                said += "; pg %s alone is above the misplaced limit" % decision.above_limit
            return MOVING, said
        if decision.throttled or not walk.wanted:
            self._await(snapshot, settings)
        if walk.wanted:
            self._break_deadlock(walk, snapshot, decision.throttled)
            return (THROTTLED if decision.throttled else BLOCKED), str(decision.waiting_for)
        if self._ledger.entries:
            return MOVING, "%d PGs are on their way" % len(self._ledger.entries)
        self._finish(walk)
        return (PLANNING, "the last plan is through") if settings.active else (
            OFF, "plan '%s' is through" % walk.name)

    def _still_wanted(self, walk: Walk) -> bool:
        """`off` may have come from the commands' thread since the round began."""
        return self._walk is walk and (bool(walk.name) or self._settings().active)

    def _send(self, walk: Walk, batch: List[PgChange], before: Snapshot) -> None:
        for change in batch:  # whatever happens from here on, the budget knows of it
            self._ledger.add(change, before, self._clock())
        answers = self._gateway.send(batch, _SEND_TIMEOUT_SECONDS)
        snapshot = self._gateway.snapshot()
        verdict = verify(answers, snapshot)
        self._log.info("sent upmaps of %d PGs at epoch %d: %d kept, %d rejected, %d unanswered",
                       len(batch), snapshot.epoch, len(verdict.kept), len(verdict.rejected),
                       len(verdict.unanswered))
        walk.settle(verdict)
        self._ledger.landed(batch, snapshot.epoch)
        for change in verdict.unanswered:
            if change not in walk.wanted:  # given up
                self._ledger.remove(change)
        for change, reason in verdict.rejected:
            self._ledger.reduce(change, verdict.moving_shards.get(change.pgid, 0))
            self.rejected[change.pgid] = (reason, snapshot.crush_version)
            self._log.warning("pg %s stays where it is: %s", change.pgid, reason)
        self._hold.ours(snapshot.upmap_items)
        bounds = self.view.reachable if self.view is not None else None  # moves leave them as is
        self._see(snapshot, bounds)

    def _await(self, snapshot: Snapshot, settings: Settings) -> None:
        """Until so many copies have arrived that it matters, a glance a round is enough."""
        step = _GLANCE_STEP * self._max_misplaced_ratio(settings) * snapshot.object_copies
        if snapshot.misplaced_copies > 0:
            self._awaited_misplaced = max(0, int(snapshot.misplaced_copies - step))

    def _break_deadlock(self, walk: Walk, snapshot: Snapshot, throttled: bool) -> None:
        """With nothing under way only a full target can refuse a move, and will for ever."""
        if throttled and not self._ledger.entries and not snapshot.misplaced_copies:
            if not snapshot.in_flight():
                walk.drop(walk.wanted[0], "its target would pass its fill limit")

    def _finish(self, walk: Walk) -> None:
        if self._swap_walk(walk, None):
            self._remember_end(walk, "through")
            self.look_again()

    def _swap_walk(self, old: Optional[Walk], new: Optional[Walk]) -> bool:
        """Replaces the walk unless a command has done so meanwhile."""
        with self._lock:
            if self._walk is not old:
                return False
            self._walk = new
            return True

    # -- memory --------------------------------------------------------------------------------

    def _note_execution(self) -> None:
        walk = self._walk
        self._memory.note(walk.name if walk is not None and walk.name else None)

    def _remember_end(self, walk: Walk, outcome: str) -> None:
        self._log.info("plan %s %s: %d of %d moves sent, %d dropped", walk.name or "(automatic)",
                       outcome, walk.sent_moves, walk.planned_moves, walk.dropped_moves)
        self.last_walk = dict(walk.summary(), outcome=outcome, ended_at=self._clock())

    def _resume(self) -> None:
        """After a failover, goes on with the plan that was being executed."""
        if self._resumed:
            return
        self._resumed = True
        try:
            name = self._memory.recall()
            if name is None:
                return
            plan = self._shelf.get(name)
        except (ValueError, KeyError) as error:  # BadPlan is a ValueError
            self._log.warning("cannot go on with the execution of a plan: %s", error)
            return
        if self._swap_walk(None, Walk(name, plan.changes, self._clock())):
            self._log.info("going on with the execution of plan %s", name)

    # -- figures -------------------------------------------------------------------------------

    def eta_seconds(self) -> Optional[float]:
        """Seconds until the plan is through, at the rate seen so far; None where unknown."""
        walk, view = self._walk, self.view
        if walk is None or view is None:
            return None
        to_come = self._ledger.bytes_to_come(view.snapshot)
        arrived = walk.sent_bytes - to_come
        if arrived <= 0:
            return None
        elapsed = max(1.0, self._clock() - walk.started_at)
        return (walk.remaining_bytes + to_come) * elapsed / arrived

    def _max_misplaced_ratio(self, settings: Settings) -> float:
        return settings.max_misplaced_ratio or self._gateway.target_max_misplaced_ratio()
