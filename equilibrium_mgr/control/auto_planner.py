"""Automatic balancing: when to plan, when to stay idle, and when an execution is out of date."""
from __future__ import annotations

import threading
from typing import Any, Callable, FrozenSet, Mapping, NamedTuple, Optional, Tuple

from ..drain.status import StuckDrains
from ..execution.cooldown import ExcludedPgs
from ..execution.execution import Execution
from ..execution.guards import full_osds
from ..execution.osd_traffic import OsdTraffic
from ..observation.bound_gap import NOTHING_LEFT, IdleReason, idle_state
from ..observation.cluster_view import ClusterView
from ..observation.refusals import COUNTED, count_refusals
from ..observation.states import PLANNING, STUCK, WAITING
from ..plan.model import Plan
from ..plan.options import PlanOptions
from ..plan_service.plan_service import PlanService
from ..planner.bound.lower_bound import UtilizationBounds
from ..planner.replanning import FormerPlan
from ..runtime.backoff import Backoff
from ..runtime.formatting import format_deadline
from ..runtime.time_slice import TimeSlice
from ..runtime.wait_timer import WaitTimer
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .balancing_scope import osd_filter
from .plan_gain import gain_reason
from .plan_validity import (
    ClusterFingerprint, data_change, fingerprint_of, newly_nearfull, topology_change,
    unplanned_change, utilization_drift)
from .status import RoundOutcome

#: Seconds for which a topology has to stay the same before it is planned for: OSDs flap.
SETTLE_SECONDS = 60.0
#: Least seconds between two plans or idle states that end because data has grown or shrunk; a
#: finished plan that could not be taken up for this long is void.
PACE_SECONDS = 600.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 60.0, 3600.0


class NextStep(NamedTuple):
    """The next step of the loop: take up a plan, be idle, or be in a state."""

    state: str = ""
    reason: str = ""
    code: str = ""             # of snapshot/reason_codes.py
    plan: Optional[Plan] = None
    is_idle: bool = False      # nothing is to be done; the reason tells why
    replan: bool = False       # the execution under way is out of date
    seconds: Optional[float] = None  # after which there will be more to say
    numbers: Mapping[str, Any] = {}  # as RoundOutcome.numbers

    @property
    def outcome(self) -> RoundOutcome:
        """The state to be in."""
        return RoundOutcome(self.state, self.reason, self.code, self.seconds,
                            numbers=self.numbers)


class _PlanRequest(NamedTuple):
    """The options and the cluster that a plan is requested for."""

    options: PlanOptions
    fingerprint: ClusterFingerprint
    excluded: ExcludedPgs
    generation: int


class _PlanContext(NamedTuple):
    """A plan, what it was asked for, and the cluster as it was then."""

    plan: Plan
    options: PlanOptions
    fingerprint: ClusterFingerprint
    cooling_seconds: float     # after which a better one could be made
    made_at: float             # seconds since the epoch
    basis: Optional[FormerPlan] = None   # what the next plan can start from


class _IdleState(NamedTuple):
    """The finding that nothing is to be done while the cluster and the options stay as they are."""

    options: PlanOptions
    min_gain: float
    fingerprint: ClusterFingerprint
    reason: str
    code: str
    for_good: bool   # or only until the retry is due


class AutoPlanner:
    """Decides when to plan, to be idle, or to give up an execution; the balancer carries that out.

    The serve thread uses it. Commands call `reset`, and the job thread hands over the finished
    plan. `reset` begins a new generation: requests and results of an older one are void.
    """

    def __init__(self, plan_service: PlanService, clock: Callable[[], float],
                 wake: Callable[[], None]) -> None:
        self._plan_service = plan_service
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._generation = 0
        self._ready: Optional[_PlanContext] = None
        self._executed: Optional[_PlanContext] = None
        #: what was wanted when an execution was given up, until another plan is taken up
        self._wanted: Optional[FormerPlan] = None
        self._idle: Optional[_IdleState] = None
        self._topology: Any = None
        self._settling = WaitTimer()
        self._pace = WaitTimer()
        self._retry = WaitTimer()
        self._backoff = Backoff(_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
        self._failing = False
        self._submitted = False
        #: what the last plan that was free to drain has found no other place for
        self.stuck = StuckDrains()

    @property
    def is_ready(self) -> bool:
        """True where a plan has been made that `next_step` has not returned yet."""
        return self._ready is not None

    @property
    def is_planning(self) -> bool:
        """True while an automatic plan is being made, be it one that is void."""
        return "" in self._plan_service.plans_in_progress()

    @property
    def is_retry_due(self) -> bool:
        """True where an idle state that is not for good has lasted long enough to plan again."""
        idle = self._idle
        return (idle is not None and not idle.for_good
                and self._retry.seconds_left(self._clock()) <= 0.0)

    def reset(self) -> None:
        """Drops a plan that waits or is being made, and ends an idle state."""
        with self._lock:
            self._generation += 1
            self._ready = None
            self._idle = None
            self._wanted = None
            self.stuck = StuckDrains()

    def next_step(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                  drain_only: bool = False, drain_has_work: bool = False) -> NextStep:
        """Decides, while no execution is under way: take up a plan, be idle, or make a plan.
        `drain_has_work`: shards have come to an OSD that is being drained."""
        fingerprint = self._observe(snapshot, frozenset(excluded.pools))
        options = automatic_options(settings, snapshot, excluded.rejected, drain_only=drain_only)
        with self._lock:
            ready, self._ready = self._ready, None
            idle, generation = self._idle, self._generation
        if ready is not None:
            self._backoff.succeeded()
            self._failing = False
            if self._is_valid(ready, fingerprint, options, settings.sleep_interval):
                self._wanted = None
                if _drains_all(ready.options):
                    self.stuck = StuckDrains(ready.plan.stuck, ready.made_at)
                gain = gain_reason(ready.plan, snapshot, settings.min_gain)
                if gain is not None:
                    self._executed = ready
                    self._set_idle(None, generation)
                    return NextStep(plan=ready.plan, reason=gain)
                idle = _idle_after(ready, settings.min_gain, fingerprint)
                self._set_idle(idle, generation)
                self._retry.begin(self._clock(), ready.cooling_seconds or PACE_SECONDS)
        if drain_has_work and ready is None and self._pace.seconds_left(self._clock()) <= 0.0:
            idle = None
        if idle is not None and self._stays_idle(idle, fingerprint, options, settings.min_gain,
                                                 snapshot.nearfull_ratio):
            return _settling_step(excluded) or NextStep(
                is_idle=True, reason=idle.reason, code=idle.code)
        if excluded.pools and frozenset(snapshot.pools) <= frozenset(excluded.pools):
            if not full_osds(snapshot):
                return _settling_step(excluded) or NextStep()
        return self._plan(snapshot, _PlanRequest(options, fingerprint, excluded, generation),
                          settings)

    def _is_valid(self, ready: _PlanContext, fingerprint: ClusterFingerprint, options: PlanOptions,
                  sleep_interval: float) -> bool:
        """True where a plan still answers what would be asked now, and has not waited too long."""
        longest = max(PACE_SECONDS, 2.0 * sleep_interval)
        return (0.0 <= self._clock() - ready.made_at <= longest
                and _is_same_request(ready.options, options)
                and not topology_change(ready.fingerprint, fingerprint)
                and ready.fingerprint.excluded_pools == fingerprint.excluded_pools)

    def _set_idle(self, idle: Optional[_IdleState], generation: Optional[int] = None) -> None:
        """Replaces the idle state, unless a command has ended the generation that found it."""
        with self._lock:
            if generation is None or generation == self._generation:
                self._idle = idle

    def keep_wanted(self, execution: Execution) -> None:
        """Keeps what an execution that was given up still wanted: the next plan starts from it."""
        basis = self._executed.basis if self._executed is not None else None
        wanted = None if basis is None else basis._replace(changes=tuple(execution.wanted))
        with self._lock:   # a command may reset it meanwhile
            self._wanted = wanted

    def replan_step(self, snapshot: Snapshot, settings: Settings, execution: Execution,
                    traffic: OsdTraffic, drain_only: bool = False) -> Optional[NextStep]:
        """The step where the execution of an automatic plan must not go on, or None."""
        plan, fingerprint = self._executed, self._observe(snapshot)
        if plan is None:
            return None
        change = topology_change(plan.fingerprint, fingerprint)
        if change is not None:
            return self._wait_to_settle(change) or NextStep(
                PLANNING, change, codes.PLANNING, replan=True)
        if not _is_same_request(plan.options, automatic_options(
                settings, snapshot, frozenset(), drain_only=drain_only)):
            return NextStep(PLANNING, "the options have changed", codes.PLANNING, replan=True)
        change = data_change(plan.fingerprint, fingerprint, settings.min_gain)
        change = change or unplanned_change(plan.fingerprint, snapshot, traffic, execution.wanted,
                                            execution.moved)
        if change is not None and self._pace.seconds_left(self._clock()) <= 0.0:
            return NextStep(
                PLANNING, change, codes.PLANNING, replan=True)
        return None

    def idle_after_refusal(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                           reason: str, drain_only: bool = False) -> None:
        """Begins an idle state of PACE_SECONDS after a plan of which nothing could be sent: the
        next plan would be the same."""
        self._set_idle(_IdleState(
            automatic_options(settings, snapshot, excluded.rejected, drain_only=drain_only),
            settings.min_gain,
            fingerprint_of(snapshot, frozenset(excluded.pools)),
            f"no move can be made ({reason})", codes.IMMOVABLE, False))
        self._retry.begin(self._clock(), PACE_SECONDS)

    def _observe(self, snapshot: Snapshot,
                 excluded_pools: FrozenSet[int] = frozenset()) -> ClusterFingerprint:
        """Returns the fingerprint of a newer snapshot; begins the settling time where its topology
        is another one."""
        fingerprint = fingerprint_of(snapshot, excluded_pools)
        if fingerprint.unsettled != self._topology:
            if self._topology is not None:
                self._settling.begin(self._clock(), SETTLE_SECONDS)
                self.stuck = StuckDrains()   # there may be a place now
            self._topology = fingerprint.unsettled
        return fingerprint

    def _wait_to_settle(self, change: str) -> Optional[NextStep]:
        left = self._settling.seconds_left(self._clock())
        if left <= 0.0:
            return None
        at = format_deadline(self._clock() + left)
        return NextStep(WAITING, f"{change}; if that lasts there is a new plan at {at}",
                        codes.SETTLING, seconds=left, numbers={"until": at})

    def _stays_idle(self, idle: _IdleState, fingerprint: ClusterFingerprint, options: PlanOptions,
                    min_gain: float, nearfull_ratio: float) -> bool:
        if (idle.options, idle.min_gain) != (options, min_gain):
            return False  # with others there may be something to do
        now = self._clock()
        if not idle.for_good and self._retry.seconds_left(now) <= 0.0:
            return False
        if (topology_change(idle.fingerprint, fingerprint)
                or utilization_drift(idle.fingerprint, fingerprint)):
            return False
        if idle.fingerprint.excluded_pools != fingerprint.excluded_pools or newly_nearfull(
                idle.fingerprint, fingerprint.utilization, nearfull_ratio):
            return False
        change = data_change(idle.fingerprint, fingerprint, min_gain)
        return change is None or self._pace.seconds_left(now) > 0.0

    def _plan(self, snapshot: Snapshot, request: _PlanRequest, settings: Settings) -> NextStep:
        settling = self._wait_to_settle("the cluster has just changed")
        if settling is not None:
            return settling
        now, failure = self._clock(), self._plan_service.last_failure("")
        if failure is not None and self._submitted:
            if self._failing:  # a first failure may be a passing one
                self._backoff.failed(now)
            self._failing, self._submitted = True, False
        failed = f"the last plan could not be made ({failure}); trying again"
        left = self._backoff.seconds_left(now)
        if left > 0.0:
            return NextStep(PLANNING, f"{failed} at {format_deadline(now + left)}", codes.PLANNING,
                            seconds=left)
        if request.generation == self._generation and self._submit(snapshot, request, settings):
            self._submitted = True
            self._set_idle(None, request.generation)
            self._pace.begin(now, PACE_SECONDS)
        return NextStep(PLANNING, failed if failure else "a plan is being made", codes.PLANNING)

    def _submit(self, snapshot: Snapshot, request: _PlanRequest, settings: Settings) -> bool:
        """Starts a plan in the job thread; False while one is being made."""
        options, excluded = request.options, request.excluded

        def done(plan: Plan, basis: Optional[FormerPlan]) -> None:
            with self._lock:
                if request.generation != self._generation:
                    return  # asked for before `off` or `on`
                self._ready = _PlanContext(plan, options, request.fingerprint, excluded.seconds,
                                           self._clock(), basis)
            self._wake()
        same = self._executed is not None and _is_same_request(self._executed.options, options)
        free = options._replace(
            rejected_pgs=options.rejected_pgs | excluded.cooling, cooling_pgs=frozenset(
                pgid for pgid, code in excluded.codes.items() if code == codes.COOLDOWN))
        return self._plan_service.submit_automatic(snapshot, free, settings.max_plan_seconds, done,
                                                   self._wanted if same else None)


def _idle_after(plan: _PlanContext, min_gain: float,
                fingerprint: ClusterFingerprint) -> _IdleState:
    """The idle state after a plan that has nothing to gain."""
    reason, code = (NOTHING_LEFT, codes.BALANCED) if not plan.plan.changes else (
        f"the moves that are left gain less than min_gain ({min_gain:g})", codes.MIN_GAIN)
    return _IdleState(plan.options, min_gain, fingerprint, reason, code,
                      plan.cooling_seconds <= 0.0 and not plan.plan.stuck)


def _settling_step(excluded: ExcludedPgs) -> Optional[NextStep]:
    """The state while pools are left alone until they have settled, or None where there are none
    such."""
    for _, reason in sorted(excluded.pools.items()):
        return NextStep(WAITING, f"{reason}; it and the pools on its OSDs are planned for when that"
                        " is done", codes.PG_NUM_CHANGING)
    return None


def automatic_options(settings: Settings, snapshot: Snapshot, rejected: FrozenSet[str],
                      max_pg_shards: Tuple[int, int] = (0, 0),
                      drain_only: bool = False) -> PlanOptions:
    """The options of automatic plans. `max_pg_shards`: as Gateway.max_pg_shards returns them.
    `drain_only`: of a plan that only drains, which pool_ids and device_classes do not limit."""
    scope = osd_filter(settings).scope(snapshot.crush)
    options = PlanOptions(pool_ids=settings.pool_ids, device_classes=settings.device_classes,
                          fill_limit=settings.fill_limit, aim=settings.aim, rejected_pgs=rejected,
                          respect_weights=settings.respect_weights,
                          max_upmap_items=settings.max_upmap_items,
                          max_pg_shards_per_osd=max_pg_shards[0],
                          max_pg_shards_hard=max_pg_shards[1],
                          sources=scope.sources, targets=scope.targets)
    if not drain_only:
        return options
    return options._replace(
        drain_only=True, pool_ids=None, device_classes=None,
        sources=None if scope.sources is None else scope.sources | snapshot.drained_osds)


def _drains_all(options: PlanOptions) -> bool:
    """True where a plan may take shards of any pool off any OSD."""
    return options.drain_only or (
        options.pool_ids is None and options.device_classes is None and options.sources is None)


def rest_outcome(step: NextStep, view: ClusterView, bounds: Optional[UtilizationBounds],
                 settings: Settings, excluded: ExcludedPgs,
                 max_pg_shards: Tuple[int, int]) -> RoundOutcome:
    """The state where no plan is worth making. `bounds`: of what may be moved, as pools that are
    left out stand where they are. `max_pg_shards`: as Gateway.max_pg_shards returns them."""
    found = idle_state(view, bounds, settings.device_classes, IdleReason(step.code, step.reason),
                       settings.pool_ids is not None)
    if found.state == STUCK and found.code in COUNTED:
        options = automatic_options(settings, view.snapshot, excluded.rejected, max_pg_shards)
        found = found.with_refusals(count_refusals(view, options, excluded, step.code, TimeSlice()))
    return RoundOutcome(found.state, found.reason, found.code, refusals=found.refusals)


def _is_same_request(one: PlanOptions, other: PlanOptions) -> bool:
    """True where they differ at most in the PGs that the monitor did not keep."""
    return one._replace(rejected_pgs=frozenset()) == other._replace(rejected_pgs=frozenset())
