"""Automatic balancing: when to plan, when to stay idle, and when an execution is out of date."""
from __future__ import annotations

import threading
from typing import Any, Callable, FrozenSet, NamedTuple, Optional

from ..drain.status import StuckDrains
from ..execution.cooldown import ExcludedPgs
from ..execution.change_outcomes import DroppedChange
from ..execution.execution import Execution, ExecutionUpdate
from ..execution.guards import full_osds
from ..execution.osd_traffic import OsdTraffic
from ..execution.verdict import Verdict
from ..observation.bound_gap import NOTHING_LEFT
from ..observation.change_detection import FULL_PACE_SECONDS, pace_seconds
from ..observation.observer import RestingFigures
from ..observation.states import PLANNING, WAITING
from ..plan.model import Plan
from ..plan.options import PlanOptions
from ..plan.usage import ShardCounts
from ..plan_service.plan_service import PlanService
from ..planner.replanning import FormerPlan
from ..runtime.backoff import Backoff
from ..runtime.formatting import format_deadline
from ..runtime.wait_timer import WaitTimer
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .balancing_scope import automatic_options
from .plan_gain import gain_reason
from .plan_validity import (
    ClusterFingerprint, data_change, fingerprint_of, newly_nearfull, rest_change, topology_change,
    unplanned_change)

#: Seconds for which a topology has to stay the same before it is planned for, as OSDs flap; and at
#: most, of changes that are no further apart.
SETTLE_SECONDS, _LONGEST_SETTLE_SECONDS = 60.0, 300.0
#: Seconds after which a plan that was not taken up, or of which nothing was sent, is made again.
PACE_SECONDS = 600.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 60.0, 3600.0


class NextStep(NamedTuple):
    """The next step of the loop: take up a plan, be idle, or be in a state."""

    why: Verdict               # the state to be in, or the reason for the rest
    plan: Optional[Plan] = None
    is_idle: bool = False      # nothing is to be done
    searched_at: Optional[float] = None   # seconds since the epoch: the plan that has shown it
    replan: bool = False       # the execution under way is out of date


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
    cooling_seconds: float     # after which the first PG that it had to leave alone may move
    made_at: float             # seconds since the epoch
    basis: Optional[FormerPlan] = None   # what the next plan can start from


class _IdleState(NamedTuple):
    """The finding that nothing is to be done while the cluster and the options stay as they are."""

    options: PlanOptions
    min_gain: float
    fingerprint: ClusterFingerprint
    why: Verdict
    for_good: bool   # or only until the retry is due
    searched_at: Optional[float] = None   # seconds since the epoch


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
        self._quiet, self._settling, self._changing = WaitTimer(), WaitTimer(), WaitTimer()
        self._planned_at: Optional[float] = None
        self._is_doubtful = False   # whether the idle state's cluster has changed
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
        """True where an idle state has to be looked at again although nothing changes: it is not
        for good, or what has changed was too early or too little beside noise."""
        idle = self._idle
        return idle is not None and (self._is_doubtful or not idle.for_good and (
            self._retry.seconds_left(self._clock()) <= 0.0))

    def reset(self) -> None:
        """Drops a plan that waits or is being made, and ends an idle state."""
        with self._lock:
            self._generation += 1
            self._ready = None
            self._idle = None
            self._wanted = None
            self.stuck = StuckDrains()

    def next_step(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                  resting: RestingFigures, drain_only: bool = False,
                  drain_has_work: bool = False) -> NextStep:
        """Decides, while no execution is under way: take up a plan, be idle, or make a plan.
        `drain_has_work`: shards have come to an OSD that is being drained."""
        fingerprint = self._observe(snapshot, frozenset(excluded.pools), resting.placed)
        options = automatic_options(settings, snapshot, excluded.rejected, drain_only=drain_only)
        with self._lock:
            ready, self._ready = self._ready, None
            idle, generation = self._idle, self._generation
        if ready is not None:
            self._backoff.succeeded()
            self._failing = False
            ready = self._valid(ready, fingerprint, options, settings.sleep_interval)
            if ready is not None:
                self._wanted = None
                if _drains_all(ready.options):
                    self.stuck = StuckDrains(ready.plan.stuck, ready.made_at)
                gain = gain_reason(ready.plan, snapshot, settings.min_gain)
                if gain is not None:
                    self._executed = ready
                    self._set_idle(None, generation)
                    return NextStep(_planning(gain), plan=ready.plan)
                idle = _idle_after(ready, settings.min_gain)
                self._set_idle(idle, generation)
                self._retry.begin(self._clock(), max(ready.cooling_seconds, PACE_SECONDS))
        paced = self._is_paced(max(pace_seconds(fingerprint.fullness), FULL_PACE_SECONDS))
        if drain_has_work and ready is None and not paced:
            idle = None
        if idle is not None and self._stays_idle(idle, fingerprint, options, settings.min_gain,
                                                 snapshot, resting.noise, paced):
            return _settling_step(excluded) or NextStep(
                idle.why, is_idle=True, searched_at=idle.searched_at)
        settling = _settling_step(excluded)
        if settling is not None and frozenset(snapshot.pools) <= frozenset(excluded.pools):
            if not full_osds(snapshot):
                return settling
        return self._plan(snapshot, _PlanRequest(options, fingerprint, excluded, generation),
                          settings)

    def _valid(self, ready: _PlanContext, fingerprint: ClusterFingerprint, options: PlanOptions,
               sleep_interval: float) -> Optional[_PlanContext]:
        """The plan, where it is still what would be asked for; while the topology does not come to
        rest, what of it that does not touch."""
        age = self._clock() - ready.made_at
        if not (0.0 <= age <= max(PACE_SECONDS, 2.0 * sleep_interval)
                and _is_same_request(ready.options, options)
                and ready.fingerprint.excluded_pools == fingerprint.excluded_pools):
            return None
        if not topology_change(ready.fingerprint, fingerprint):
            return ready
        touched = {change.pgid for change in ready.fingerprint.touched(
            fingerprint, ready.plan.changes)}
        changes = tuple(change for change in ready.plan.changes if change.pgid not in touched)
        if not (changes and self._is_restless()):
            return None
        return ready._replace(plan=ready.plan._replace(changes=changes))

    def _is_restless(self) -> bool:
        """True where the topology keeps changing, for longer than is waited for."""
        now = self._clock()
        return (self._changing.peek_seconds_left(now) > 0.0
                >= self._settling.peek_seconds_left(now))

    def _is_paced(self, seconds: float = PACE_SECONDS) -> bool:
        """True while it is too early for another plan on account of data alone."""
        return self._planned_at is not None and (
            0.0 <= self._clock() - self._planned_at < seconds)

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
        # first: while the topology does not come to rest, what they forbid would still be sent
        if not _is_same_request(plan.options, automatic_options(
                settings, snapshot, frozenset(), drain_only=drain_only)):
            return NextStep(_planning("the options have changed"), replan=True)
        change = topology_change(plan.fingerprint, fingerprint)
        if change is not None:
            return self._go_on(change, fingerprint, execution)
        change = data_change(plan.fingerprint, fingerprint, settings.min_gain)
        change = change or unplanned_change(plan.fingerprint, snapshot, traffic, execution.wanted,
                                            execution.moved)
        if change is not None and not self._is_paced():
            return NextStep(_planning(change), replan=True)
        return None

    def _go_on(self, change: str, fingerprint: ClusterFingerprint,
               execution: Execution) -> Optional[NextStep]:
        """None where something goes on until there may be another plan; what the change of the
        topology touches is dropped."""
        settling, plan = self._wait_to_settle(change), self._executed
        if settling is None:
            return NextStep(_planning(change), replan=True)
        touched = [] if plan is None else plan.fingerprint.touched(fingerprint, execution.wanted)
        if len(touched) < len(execution.wanted):
            execution.apply(ExecutionUpdate(
                dropped=[DroppedChange(one, change) for one in touched]))
            return None
        return settling

    def idle_after_refusal(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                           reason: str, drain_only: bool = False) -> None:
        """Begins an idle state of PACE_SECONDS after a plan of which nothing could be sent: the
        next plan would be the same."""
        self._set_idle(_IdleState(
            automatic_options(settings, snapshot, excluded.rejected, drain_only=drain_only),
            settings.min_gain,
            fingerprint_of(snapshot, frozenset(excluded.pools)),
            Verdict(codes.IMMOVABLE, f"no move can be made ({reason})"), False))
        self._retry.begin(self._clock(), PACE_SECONDS)

    def _observe(self, snapshot: Snapshot, excluded_pools: FrozenSet[int] = frozenset(),
                 placed: Optional[ShardCounts] = None) -> ClusterFingerprint:
        """Returns the fingerprint of a newer snapshot; begins the settling time where its topology
        is another one."""
        fingerprint, now = fingerprint_of(snapshot, excluded_pools, placed), self._clock()
        if fingerprint.unsettled != self._topology:
            if self._topology is not None:
                self._quiet.begin(now, SETTLE_SECONDS)
                if self._changing.peek_seconds_left(now) <= 0.0:   # the first in a while
                    self._settling.begin(now, _LONGEST_SETTLE_SECONDS)
                self._changing.begin(now, _LONGEST_SETTLE_SECONDS)
                self.stuck = StuckDrains()   # there may be a place now
            self._topology = fingerprint.unsettled
        return fingerprint

    def _wait_to_settle(self, change: str) -> Optional[NextStep]:
        now = self._clock()
        left = min(self._quiet.peek_seconds_left(now), self._settling.peek_seconds_left(now))
        if self._is_restless() and self._planned_at is not None:
            left = PACE_SECONDS - max(0.0, now - self._planned_at)
        at = format_deadline(now + left)
        return None if left <= 0.0 else NextStep(Verdict(
            codes.SETTLING, f"{change}; if that lasts there is a new plan at {at}", {"until": at},
            WAITING, left))

    def _stays_idle(self, idle: _IdleState, fingerprint: ClusterFingerprint, options: PlanOptions,
                    min_gain: float, snapshot: Snapshot, noise: float, paced: bool) -> bool:
        if (idle.options, idle.min_gain) != (options, min_gain):
            return False  # with others there may be something to do
        if not idle.for_good and self._retry.seconds_left(self._clock()) <= 0.0:
            return False
        if any(now > then for now, then in zip(fingerprint.fullness, idle.fingerprint.fullness)):
            return False  # another OSD is too full: no plan has tried to help it
        if (idle.fingerprint.excluded_pools != fingerprint.excluded_pools
                or topology_change(idle.fingerprint, fingerprint)
                or newly_nearfull(idle.fingerprint, fingerprint.utilization,
                                  snapshot.nearfull_ratio)):
            return False
        change, little = data_change(idle.fingerprint, fingerprint, min_gain), rest_change(
            idle.fingerprint, fingerprint, min_gain, 0.0)
        self._is_doubtful = bool(change or little)
        return paced or not (change or rest_change(
            idle.fingerprint, fingerprint, min_gain, noise))

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
            return NextStep(_planning(f"{failed} at {format_deadline(now + left)}", left))
        if request.generation == self._generation and self._submit(snapshot, request, settings):
            self._submitted = True
            self._set_idle(None, request.generation)
            self._planned_at = now
        return NextStep(_planning(failed if failure else "a plan is being made"))

    def _submit(self, snapshot: Snapshot, request: _PlanRequest, settings: Settings) -> bool:
        """Starts a plan in the job thread; False while one is being made."""
        options, excluded = request.options, request.excluded

        def done(plan: Plan, basis: Optional[FormerPlan]) -> None:
            with self._lock:
                if request.generation != self._generation:
                    return  # asked for before `off` or `on`
                self._ready = _PlanContext(
                    plan, options, request.fingerprint,
                    min(excluded.seconds_left.values(), default=excluded.seconds), self._clock(),
                    basis)
            self._wake()
        same = self._executed is not None and _is_same_request(self._executed.options, options)
        free = options._replace(
            rejected_pgs=options.rejected_pgs | excluded.cooling, cooling_pgs=frozenset(
                pgid for pgid, code in excluded.codes.items() if code == codes.COOLDOWN))
        return self._plan_service.submit_automatic(snapshot, free, settings.max_plan_seconds, done,
                                                   self._wanted if same else None)


def _idle_after(plan: _PlanContext, min_gain: float) -> _IdleState:
    """The idle state after a plan that has nothing to gain."""
    why = Verdict(codes.BALANCED, NOTHING_LEFT) if not plan.plan.changes else Verdict(
        codes.MIN_GAIN, f"the moves that are left gain less than min_gain ({min_gain:g})")
    return _IdleState(plan.options, min_gain, plan.fingerprint, why,
                      plan.cooling_seconds <= 0.0 and not plan.plan.stuck, plan.made_at)


def _settling_step(excluded: ExcludedPgs) -> Optional[NextStep]:
    """The state while pools are left alone until they have settled; None where there are none."""
    for _, reason in sorted(excluded.pools.items()):
        return NextStep(Verdict(
            codes.PG_NUM_CHANGING, f"{reason}; it and the pools on its OSDs are planned for when"
            " that is done", state=WAITING))
    return None


def _planning(reason: str, seconds: Optional[float] = None) -> Verdict:
    return Verdict(codes.PLANNING, reason, state=PLANNING, seconds=seconds)


def _drains_all(options: PlanOptions) -> bool:
    """True where a plan may take shards of any pool off any OSD."""
    return options.drain_only or (
        options.pool_ids is None and options.device_classes is None and options.sources is None)


def _is_same_request(one: PlanOptions, other: PlanOptions) -> bool:
    """True where they differ at most in the PGs that the monitor did not keep."""
    return one._replace(rejected_pgs=frozenset()) == other._replace(rejected_pgs=frozenset())
