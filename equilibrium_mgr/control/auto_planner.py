"""Automatic balancing: when to plan, when to be idle, and when to give an execution up."""
from __future__ import annotations

import math
import threading
from typing import Callable, List, NamedTuple, Optional, Tuple

from ..drain.status import StuckDrains
from ..execution.outcomes import DroppedChange, ExcludedPgs, Verdict
from ..execution.execution import Execution, ExecutionUpdate
from ..execution.guards import blocked_pools, full_osds
from ..execution.traffic import OsdTraffic
from ..observation.refusals import NOTHING_LEFT
from ..observation.observer import FULL_PACE_SECONDS, pace_seconds
from ..observation.cluster_view import PLANNING
from ..plan.load import loads_of_sets, osd_loads
from ..plan.model import STEER, PgChange, Plan
from ..plan.options import PgShardLimits, PlanOptions
from ..plan.placement import placement
from ..plan_service.plan_service import PlanService
from ..runtime.waiting import Backoff, WaitTimer, doubled
from ..runtime.formatting import format_deadline
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from ..snapshot.pg_states import SHORT, has_any
from .balancing_scope import automatic_options
from .cluster_guards import wait_until
from .plan_basis import (
    AT_ONCE, IDLE_CHECKS, LARGE_CHECKS, PACED, PLAN_CHECKS, SETTLED, PlanBasis, Progress, basis_of,
    have_others_moved, why_new)
from .plan_gain import gain_reason, load_gain
from .settling import SETTLE_SECONDS, Settling
from .steering import LONGEST_SECONDS, SteeringTrigger, reason_of

#: Seconds between two plans for the same reason while no OSD needs space. A plan that was not taken
#: up for so long, and for two rounds, is void.
PACE_SECONDS = 600.0
#: Plans that level the load of OSDs: seconds between two of them, also after a failover.
_LOAD_SECONDS = 86_400.0
#: A plan that steers shards takes no longer: shards begin to arrive meanwhile.
_STEERING_PLAN_SECONDS = 60.0
#: After a plan that had nothing to gain, a plan for drift alone must gain this ratio, with few
#: bytes: a plan that gains less, or as much as possible, is outdated within hours. It leaves no OSD
#: set a point fuller than it could be.
_DRIFT_GAIN = 0.008


class NextStep(NamedTuple):
    """The next step of the loop: take up a plan, be idle, or be in a state."""

    why: Verdict               # the state to be in, or the reason for the plan or the idle state
    plan: Optional[Plan] = None
    is_idle: bool = False      # there is nothing to do
    searched_at: Optional[float] = None   # of the plan that has shown it, seconds since the epoch


class _MadePlan(NamedTuple):
    """A plan, and the cluster that it was asked for."""

    plan: Plan
    basis: PlanBasis
    cooling_seconds: float     # until the first PG that it had to leave alone may move; 0: none
    made_at: float             # seconds since the epoch
    least_gain: float          # as PlanOptions: above 0 it follows drift


class _IdleState(NamedTuple):
    """Nothing needs to be done while the cluster and the options stay as they are."""

    basis: PlanBasis
    why: Verdict
    searched_at: Optional[float] = None   # seconds since the epoch


class AutoPlanner:
    """Decides when to plan, to be idle, or to give up an execution. The balancer carries that out.

    The serve thread uses it. Commands call `reset`, and the job thread hands over the finished
    plan. `reset` begins a new generation: requests and results of an older one are void.
    """

    def __init__(self, plan_service: PlanService, max_pg_shards: Callable[[], PgShardLimits],
                 clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self._plan_service = plan_service
        self._max_pg_shards = max_pg_shards   # as Gateway.max_pg_shards
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._generation = 0
        self._ready: Optional[_MadePlan] = None
        self._executed: Optional[_MadePlan] = None
        self._idle: Optional[_IdleState] = None
        #: of the last full plan that had nothing to gain; None once others have moved shards
        self._balanced: Optional[PlanBasis] = None
        self._retry = WaitTimer()   # of the idle state; infinite if only a change ends it
        self._settling = Settling()
        self.steering = SteeringTrigger()   # replaced while no option asks for it
        self._planned_at: Optional[float] = None
        self._fruitless = 0         # grows with plans that send nothing while an OSD needs space
        self._is_doubtful = False   # whether the cluster has perhaps changed since it became idle
        self._backoff = Backoff()
        self._load_rest = WaitTimer()
        self._load_rest.begin(clock(), _LOAD_SECONDS)
        self._submitted = False
        #: shards without another place, by the last plan that was free to drain
        self.stuck = StuckDrains()

    @property
    def is_ready(self) -> bool:
        """Returns True if a plan has been made that `next_step` has not seen yet."""
        return self._ready is not None

    @property
    def is_planning(self) -> bool:
        """Returns True while an automatic plan is being made, even a void one."""
        return "" in self._plan_service.plans_in_progress()

    @property
    def is_retry_due(self) -> bool:
        """Returns True if an idle state needs another refresh although nothing changes. Its time is
        over, or the cluster changed too soon after the last plan for another one."""
        if self._idle is None:
            return False
        return self._is_doubtful or self._retry.seconds_left(self._clock()) <= 0.0

    def steering_at(self, settings: Settings, execution: Optional[Execution]) -> Optional[float]:
        """Returns when shards are steered, seconds since the epoch; None if nothing waits for
        that."""
        is_sending = execution is not None and execution.kind == STEER and bool(execution.wanted)
        return self.steering.due_at(settings, self._clock(), is_sending)

    @property
    def is_restless(self) -> bool:
        """Returns True if the topology keeps changing for longer than plans wait."""
        return self._settling.is_restless(self._clock())

    def reset(self) -> None:
        """Drops a plan that waits or is being made, and ends an idle state."""
        with self._lock:
            self._generation += 1
            self._ready = self._idle = self._balanced = None
            self.stuck = StuckDrains()

    # -- without an execution ------------------------------------------------------------------

    def next_step(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                  noise: float, drain_only: bool, drain_has_work: bool) -> NextStep:
        """Decides, while nothing is executed: take up a plan, be idle, or make a plan.

        `noise`: as in PlanBasis. `drain_has_work`: a plan may find shards to move off drained OSDs.
        """
        basis = self._observe(snapshot, settings, drain_only, excluded, noise)
        with self._lock:
            ready = self._ready
            self._ready = None
            idle = self._idle
            generation = self._generation
        if ready is not None:
            self._backoff.succeeded()
            ready = self._valid(ready, basis, snapshot, settings.sleep_interval)
        if ready is not None and ready.plan.kind == STEER:
            if self._take_up_steering(ready, snapshot, settings):
                self._set_idle(None, generation)
                return NextStep(_planning(reason_of(ready.plan, snapshot)), plan=ready.plan)
            ready = None
        if ready is not None:
            self._note_stuck(ready)
            gain = gain_reason(ready.plan, snapshot, settings.min_gain)
            if gain is None and settings.balance_load:
                gain = load_gain(ready.plan, snapshot, settings.min_load_gain)
            if gain is not None:
                self._executed = ready
                self._fruitless += 1
                self._set_idle(None, generation)
                return NextStep(_planning(gain), plan=ready.plan)
            idle = self._idle_after(ready, generation)
        elif drain_has_work and not self._is_paced(FULL_PACE_SECONDS):
            idle = None
        is_steering = self.is_steering_due(settings)
        if idle is not None and not is_steering and self._stays_idle(idle, basis):
            return NextStep(idle.why, is_idle=True, searched_at=idle.searched_at)
        return self._plan(snapshot, basis, excluded, generation, settings)

    def _take_up_steering(self, ready: _MadePlan, snapshot: Snapshot,
                          settings: Settings) -> bool:
        """Takes up a plan of kind STEER. Returns False if it is not wanted any more, or empty."""
        now = self._clock()
        if not self.steering.is_wanted(settings, now):
            return False
        self.steering.take_up(ready.plan, snapshot, now)
        if not ready.plan.changes:
            return False
        self._executed = ready
        return True

    def _valid(self, ready: _MadePlan, now: PlanBasis, snapshot: Snapshot,
               sleep_interval: float) -> Optional[_MadePlan]:
        """Returns the part of a plan that may still be carried out, or None.

        Nothing of it may be carried out if it is too old, or if the request or the topology has
        changed. While the topology keeps changing, changes whose OSDs and pools are the same may.
        """
        age = self._clock() - ready.made_at
        if not 0.0 <= age <= max(PACE_SECONDS, 2.0 * sleep_interval):
            return None
        reason = why_new(ready.basis, now, PLAN_CHECKS)
        if reason is None:
            return ready
        if reason.urgency == AT_ONCE:
            return None
        touched = {change.pgid for change in ready.basis.touched(now, ready.plan.changes)}
        left = tuple([one for one in ready.plan.changes if one.pgid not in touched])
        if left and self.is_restless:
            return ready._replace(plan=_with_changes(ready.plan, left, snapshot))
        self._end_pace()
        return None

    def _note_stuck(self, ready: _MadePlan) -> None:
        """Keeps the shards that a plan could not drain, if it was free to move shards of any pool
        off any drained OSD."""
        asked = ready.basis.options
        limits = (asked.pool_ids, asked.device_classes, asked.sources)
        if asked.drain_only or limits == (None, None, None):
            self.stuck = StuckDrains(ready.plan.stuck, ready.made_at)

    def _end_pace(self) -> None:
        """Allows the next plan at once after one became void, if an OSD needs space."""
        if self._settling.is_urgent:
            self._planned_at = None

    @property
    def _pace_seconds(self) -> float:
        """Returns the seconds between two plans for the same reason; fewer while an OSD needs
        space."""
        if not self._settling.is_urgent:
            return PACE_SECONDS
        return doubled(SETTLE_SECONDS, FULL_PACE_SECONDS, self._fruitless)

    def _is_paced(self, seconds: float) -> bool:
        """Returns True if the last plan began less than so many seconds ago."""
        if self._planned_at is None:
            return False
        return 0.0 <= self._clock() - self._planned_at < seconds

    def _set_idle(self, idle: Optional[_IdleState], generation: int) -> None:
        """Replaces the idle state, unless a command has ended the generation that found it."""
        with self._lock:
            if generation == self._generation:
                self._idle = idle

    def _idle_after(self, made: _MadePlan, generation: int) -> _IdleState:
        """Begins an idle state after a plan that has nothing to gain."""
        self._executed = None
        is_for_good = made.cooling_seconds <= 0.0 and not made.plan.stuck
        if not made.least_gain:
            with self._lock:
                is_balanced = is_for_good and generation == self._generation
                self._balanced = made.basis if is_balanced else None
        self._fruitless += 1
        seconds = math.inf
        if not is_for_good:
            seconds = max(made.cooling_seconds, self._pace_seconds)
        idle = _IdleState(made.basis, _no_gain(made), made.made_at)
        self._begin_idle(idle, generation, seconds)
        return idle

    def _begin_idle(self, idle: _IdleState, generation: int, seconds: float) -> None:
        """Begins an idle state that ends after so many seconds, if nothing ends it before."""
        self._set_idle(idle, generation)
        self._retry.begin(self._clock(), seconds)

    def idle_after_refusal(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                           reason: str, drain_only: bool) -> None:
        """Begins an idle state after a plan without a change that could be sent: the next plan
        would be the same."""
        basis = self._observe(snapshot, settings, drain_only, excluded)
        why = Verdict(codes.IMMOVABLE, f"no move can be made ({reason})")
        self._fruitless += 1
        self._begin_idle(_IdleState(basis, why), self._generation, self._pace_seconds)

    def _stays_idle(self, idle: _IdleState, now: PlanBasis) -> bool:
        if have_others_moved(idle.basis, now):
            self._balanced = None
        if self._retry.seconds_left(self._clock()) <= 0.0:
            return False
        reason = why_new(idle.basis, now, IDLE_CHECKS)
        if reason is not None and reason.urgency != PACED:
            return False
        # a difference that may be noise needs another refresh once the noise is forgotten
        doubt = reason or why_new(idle.basis, now._replace(noise=0.0), IDLE_CHECKS)
        self._is_doubtful = doubt is not None
        return reason is None or self._is_paced(max(pace_seconds(now.fullness), FULL_PACE_SECONDS))

    # -- during an execution -------------------------------------------------------------------

    def why_not_on(self, snapshot: Snapshot, settings: Settings, execution: Execution,
                   traffic: OsdTraffic, drain_only: bool) -> Optional[Verdict]:
        """Returns why the execution of an automatic plan must not go on, or None.

        If the state is PLANNING the execution is out of date, otherwise it has to wait. Drops the
        changes that a new topology touches. The others go on until there may be another plan.
        """
        now = self._observe(snapshot, settings, drain_only)
        if execution.kind == STEER and not self.steering.is_wanted(settings, self._clock()):
            return _planning("the options have changed, or the window has closed")
        if execution.kind != STEER and self.is_steering_due(settings):
            return _planning("shards that Ceph copies anyway come first")
        executed = self._executed
        if execution.sent_moves:
            self._fruitless = 0
        if executed is None:
            return None
        checks = PLAN_CHECKS
        if execution.kind != STEER:   # what it moves is not predicted
            progress = Progress(snapshot, traffic, execution.wanted, execution.moved)
            checks = progress.checks
        reason = why_new(executed.basis, now, checks)
        if reason is None:
            return None
        if reason.urgency == SETTLED:
            touched = executed.basis.touched(now, execution.wanted)
            return self._settle(execution, touched, reason.text)
        if reason.urgency == PACED and self._is_paced(self._pace_seconds):
            return None
        return _planning(reason.text)

    def _settle(self, execution: Execution, touched: List[PgChange],
                change: str) -> Optional[Verdict]:
        """Drops the touched changes while the topology settles. Returns the state, None if others
        are left."""
        is_void = len(touched) == len(execution.wanted)
        if is_void:
            self._end_pace()
        settling = self._wait_to_settle(change)
        if settling is None:
            return _planning(change)
        is_urgent = self._settling.is_urgent or self.is_restless
        if is_void or not is_urgent:   # with another OSD, other moves are right
            return settling
        execution.apply(ExecutionUpdate(dropped=[DroppedChange(one, change) for one in touched]))
        return None

    def _observe(self, snapshot: Snapshot, settings: Settings, drain_only: bool,
                 excluded: ExcludedPgs = ExcludedPgs(), noise: float = 0.0) -> PlanBasis:
        """Returns the basis of a newer snapshot. Begins the settling time if its topology differs,
        and notes whether an OSD needs space."""
        options = automatic_options(
            settings, snapshot, excluded.rejected, self._max_pg_shards(), drain_only)
        basis = basis_of(snapshot, options, settings.min_gain, noise)
        basis = basis._replace(load_gap=self._load_gap(snapshot, settings, basis))
        needs_space = bool(full_osds(snapshot))
        if not needs_space:
            self._fruitless = 0   # it counts plans that were to make space
        topology = basis.unsettled, snapshot.crush_version
        if settings.steers:
            self.steering.observe(snapshot, topology, self._clock())
        else:
            self.steering = SteeringTrigger()   # as a new mgr, once an option is switched on
        if self._settling.observe(basis.unsettled, needs_space, self._clock()):
            self.stuck = StuckDrains()   # there may be a place now
        return basis

    def _load_gap(self, snapshot: Snapshot, settings: Settings, basis: PlanBasis) -> float:
        """Returns by how much the busiest OSD of a set is above the mean, a ratio of it; 0 if that
        is too little, or if this is no time to do something about it."""
        if not settings.balance_load or self._load_rest.seconds_left(self._clock()) > 0.0:
            return 0.0
        if any(basis.fullness) or blocked_pools(snapshot):
            return 0.0
        sets = loads_of_sets(snapshot, osd_loads(snapshot))
        gap = max([one.max_load - 1.0 for one in sets.values()], default=0.0)
        return gap if gap >= settings.min_load_gain else 0.0

    def is_steering_due(self, settings: Settings) -> bool:
        """Returns True if a plan is to be made that steers shards."""
        return self.steering.is_due(settings, self._clock())

    def _wait_to_settle(self, change: str, least: float = 0.0) -> Optional[Verdict]:
        """Returns the state while the next plan has to wait; None if it has not. `least`: seconds
        to wait at least, if the topology is not restless."""
        now = self._clock()
        left = max(least, self._settling.seconds_left(now))
        if self.is_restless and self._planned_at is not None:
            left = self._pace_seconds - max(0.0, now - self._planned_at)
            left = min(left, self._settling.restless_seconds(now))
        why = f"{change}; unless it changes again there is a new plan at"
        return wait_until(codes.SETTLING, why, now, left)

    # -- making a plan -------------------------------------------------------------------------

    def _follows_drift(self, now: PlanBasis) -> bool:
        """Returns True if only data on OSDs and our own moves have changed since the cluster was
        balanced, and no OSD is nearfull. A min_gain of 0, or of _DRIFT_GAIN on, rules it out."""
        balanced, executed = self._balanced, self._executed   # commands reset them
        if balanced is None:
            return False
        if executed is not None and have_others_moved(executed.basis, now, executed.plan.changes):
            self._balanced = None
            return False
        if any(now.fullness) or not 0.0 < now.min_gain < _DRIFT_GAIN:
            return False
        return why_new(balanced, now, LARGE_CHECKS) is None

    def _plan(self, snapshot: Snapshot, basis: PlanBasis, excluded: ExcludedPgs, generation: int,
              settings: Settings) -> NextStep:
        """Starts a plan in the job thread, unless one is being made or has to wait."""
        now = self._clock()
        steering_left = self.steering.seconds_left(settings, now)
        is_steering = self.is_steering_due(settings) and not self.is_planning
        settling = None
        if not is_steering:   # a new mgr that finds shards to steer waits for that, too
            least = min(steering_left or 0.0, LONGEST_SECONDS)
            settling = self._wait_to_settle("the cluster has just changed", least)
        if settling is not None:
            if steering_left and settling.seconds:
                settling = settling._replace(seconds=min(settling.seconds, steering_left))
            return NextStep(settling)
        failure = self._plan_service.last_failure("")
        if failure is not None and self._submitted:
            self._backoff.failed(now)
            self._submitted = False
            if is_steering:   # it must not keep relief from being planned
                self.steering.give_up()
        failed = f"the last plan could not be made ({failure}); trying again"
        left = self._backoff.seconds_left(now)
        if left > 0.0:
            return NextStep(_planning(f"{failed} at {format_deadline(now + left)}", left))
        least_gain = _DRIFT_GAIN if self._follows_drift(basis) else 0.0
        cooling_seconds = min(excluded.seconds_left.values(), default=0.0)

        def done(plan: Plan) -> None:
            with self._lock:
                if generation != self._generation:
                    return  # asked for before a `reset`
                self._ready = _MadePlan(plan, basis, cooling_seconds, self._clock(), least_gain)
            self._wake()
        asked = basis.options
        options = _for_relief(snapshot, asked._replace(
            least_gain=least_gain, rejected_pgs=frozenset(excluded.codes),
            levels_load=basis.load_gap > 0.0))
        most_seconds = settings.max_plan_seconds
        if is_steering:
            most_seconds = min(most_seconds, _STEERING_PLAN_SECONDS)
            # of balancing, even if only drains are planned otherwise: it has its own scope
            options = automatic_options(
                settings, snapshot, asked.rejected_pgs, self._max_pg_shards())._replace(
                    steering=self.steering.begin_plan(settings, snapshot, now))
        if generation == self._generation and self._plan_service.submit_automatic(
                snapshot, options, most_seconds, done):
            self._submitted = True
            if not is_steering:
                self._planned_at = now
            if options.levels_load:
                self._load_rest.begin(now, _LOAD_SECONDS)
            self._set_idle(None, generation)
        return NextStep(_planning(failed if failure else "a plan is being made"))


def _no_gain(made: _MadePlan) -> Verdict:
    """Returns why nothing of a plan is carried out."""
    if made.least_gain:
        return Verdict(codes.DRIFT, "what OSDs hold has changed since, and all that may move gains"
                       " less than a point")
    if not made.plan.changes:
        return Verdict(codes.BALANCED, NOTHING_LEFT)
    return Verdict(codes.MIN_GAIN, "the moves that are left gain less than min_gain"
                   f" ({made.basis.min_gain:g})")


def _with_changes(plan: Plan, changes: Tuple[PgChange, ...], snapshot: Snapshot) -> Plan:
    """Returns the plan with only these of its changes, and with their gain."""
    pgids = {change.pgid for change in changes}
    placed = placement(snapshot)
    return plan._replace(
        moves=tuple([move for move in plan.moves if move.pgid in pgids]),
        changes=changes,
        before=placed.usage(),
        after=placed.after(changes).usage())


def _for_relief(snapshot: Snapshot, options: PlanOptions) -> PlanOptions:
    """Returns the options, for relief alone if OSDs need space and pools are blocked by degraded or
    inactive PGs: the throttle lets little else through then."""
    full = full_osds(snapshot)
    if not full or not blocked_pools(snapshot):
        return options
    lacking = frozenset(pg.pgid for pg in snapshot.in_flight().values()
                        if has_any(pg.state, SHORT))
    sources = full if options.sources is None else full & options.sources
    return options._replace(sources=sources, rejected_pgs=options.rejected_pgs | lacking)


def _planning(reason: str, seconds: Optional[float] = None) -> Verdict:
    return Verdict(codes.PLANNING, reason, state=PLANNING, seconds=seconds)
