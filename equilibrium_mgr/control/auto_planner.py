"""Automatic balancing: when to plan, when to stay idle, and when an execution is out of date."""
from __future__ import annotations

import math
import threading
from typing import Any, Callable, NamedTuple, Optional, Tuple

from ..drain.status import StuckDrains
from ..execution.outcomes import DroppedChange, ExcludedPgs
from ..execution.execution import Execution, ExecutionUpdate
from ..execution.guards import full_osds
from ..execution.throttle_state import OsdTraffic
from ..execution.verdict import Verdict
from ..observation.refusals import NOTHING_LEFT
from ..observation.observer import FULL_PACE_SECONDS, pace_seconds
from ..observation.cluster_view import PLANNING, WAITING
from ..plan.model import Plan
from ..plan.usage import ShardCounts
from ..plan_service.plan_service import PlanService
from ..runtime.waiting import Backoff, WaitTimer
from ..runtime.formatting import format_deadline
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .balancing_scope import automatic_options
from .plan_validity import (
    ClusterMark, change_of, data_change, drift, gain_reason, mark_of, needed_part,
    topology_change, unplanned_change)

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


class _MadePlan(NamedTuple):
    """A plan, and the cluster that it was asked for."""

    plan: Plan
    mark: ClusterMark
    cooling_seconds: float     # after which the first PG that it had to leave alone may move
    made_at: float             # seconds since the epoch


class _IdleState(NamedTuple):
    """The finding that nothing is to be done while the cluster and the options stay as they are."""

    mark: ClusterMark
    why: Verdict
    searched_at: Optional[float] = None   # seconds since the epoch


class AutoPlanner:
    """Decides when to plan, to be idle, or to give up an execution; the balancer carries that out.
    The serve thread uses it. Commands call `reset`, and the job thread hands over the finished
    plan. `reset` begins a new generation: requests and results of an older one are void.
    """

    def __init__(self, plan_service: PlanService, max_pg_shards: Callable[[], Tuple[int, int]],
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
        self._retry = WaitTimer()   # of the idle state; inf: it is for good
        self._topology: Any = None
        #: since the topology has changed last; and since it did so first, of changes that are no
        #: further apart than _LONGEST_SETTLE_SECONDS
        self._changing, self._settling = WaitTimer(), WaitTimer()
        self._planned_at: Optional[float] = None
        self._is_doubtful = False   # whether the idle state's cluster has changed
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
        for good, or what has changed was too early."""
        return self._idle is not None and (
            self._is_doubtful or self._retry.peek_seconds_left(self._clock()) <= 0.0)

    def reset(self) -> None:
        """Drops a plan that waits or is being made, and ends an idle state."""
        with self._lock:
            self._generation += 1
            self._ready = None
            self._idle = None
            self.stuck = StuckDrains()

    def next_step(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                  placed: ShardCounts, noise: float, drain_only: bool = False,
                  drain_has_work: bool = False) -> NextStep:
        """Decides, while no execution is under way: take up a plan, be idle, or make a plan.
        `placed`: the snapshot's shards by the up sets. `noise`: as ClusterMark. `drain_has_work`:
        shards have come to an OSD that is being drained."""
        mark = self._observe(snapshot, settings, drain_only, excluded, placed, noise)
        with self._lock:
            ready, self._ready = self._ready, None
            idle, generation = self._idle, self._generation
        if ready is not None:
            self._backoff.succeeded()
            self._failing = False
            ready = self._valid(ready, mark, settings.sleep_interval)
        if ready is not None:
            asked = ready.mark.options
            if asked.drain_only or (asked.pool_ids, asked.device_classes, asked.sources) == (
                    None, None, None):   # it was free to take shards of any pool off any OSD
                self.stuck = StuckDrains(ready.plan.stuck, ready.made_at)
            gain = gain_reason(ready.plan, snapshot, settings.min_gain)
            if gain is not None:
                self._executed = ready
                self._set_idle(None, generation)
                return NextStep(_planning(gain), plan=ready.plan)
            idle = self._idle_after(ready, generation)
        if drain_has_work and ready is None and not self._is_paced(FULL_PACE_SECONDS):
            idle = None
        settling = _settling_step(excluded)
        if idle is not None and self._stays_idle(idle, mark):
            return settling or NextStep(idle.why, is_idle=True, searched_at=idle.searched_at)
        if settling is not None and frozenset(snapshot.pools) <= frozenset(excluded.pools):
            if not full_osds(snapshot):
                return settling
        is_for_drift = (idle is not None and idle.searched_at is not None
                        and not change_of(idle.mark, mark))
        return self._plan(snapshot, mark, excluded, generation, settings.max_plan_seconds,
                          is_for_drift)

    def _valid(self, ready: _MadePlan, now: ClusterMark,
               sleep_interval: float) -> Optional[_MadePlan]:
        """What of a plan may still be made: nothing where something else would be asked for now,
        and not what a change of the topology touches."""
        age = self._clock() - ready.made_at
        if not (0.0 <= age <= max(PACE_SECONDS, 2.0 * sleep_interval)
                and ready.mark.is_same_request(now.options)
                and ready.mark.excluded_pools == now.excluded_pools):
            return None
        if not topology_change(ready.mark, now):
            return ready
        touched = {change.pgid for change in ready.mark.touched(now, ready.plan.changes)}
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

    def _set_idle(self, idle: Optional[_IdleState], generation: int) -> None:
        """Replaces the idle state, unless a command has ended the generation that found it."""
        with self._lock:
            if generation == self._generation:
                self._idle = idle

    def _idle_after(self, plan: _MadePlan, generation: int) -> _IdleState:
        """Begins an idle state after a plan that has nothing to gain."""
        min_gain = plan.mark.min_gain
        idle = _IdleState(plan.mark, Verdict(codes.BALANCED, NOTHING_LEFT) if not plan.plan.changes
                          else Verdict(codes.MIN_GAIN, "the moves that are left gain less than"
                                       f" min_gain ({min_gain:g})"), plan.made_at)
        self._set_idle(idle, generation)
        is_for_good = plan.cooling_seconds <= 0.0 and not plan.plan.stuck
        self._retry.begin(self._clock(), math.inf if is_for_good
                          else max(plan.cooling_seconds, PACE_SECONDS))
        return idle

    def idle_after_refusal(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                           reason: str, drain_only: bool = False) -> None:
        """Begins an idle state of PACE_SECONDS after a plan of which nothing could be sent: the
        next plan would be the same."""
        mark = self._observe(snapshot, settings, drain_only, excluded)
        self._set_idle(_IdleState(mark, Verdict(
            codes.IMMOVABLE, f"no move can be made ({reason})")), self._generation)
        self._retry.begin(self._clock(), PACE_SECONDS)

    def why_not_on(self, snapshot: Snapshot, settings: Settings, execution: Execution,
                   traffic: OsdTraffic, drain_only: bool) -> Optional[Verdict]:
        """Why the execution of an automatic plan must not go on, or None: it has to wait, or is out
        of date where the state is PLANNING. What a change of the topology touches is dropped; the
        rest goes on until there may be another plan."""
        now, executed = self._observe(snapshot, settings, drain_only), self._executed
        if executed is None:
            return None
        # first: while the topology does not come to rest, what they forbid would still be sent
        if not executed.mark.is_same_request(now.options):
            return _planning("the options have changed")
        change = topology_change(executed.mark, now)
        if change is not None:
            settling = self._wait_to_settle(change)
            touched = executed.mark.touched(now, execution.wanted)
            if settling is not None and len(touched) < len(execution.wanted):
                execution.apply(ExecutionUpdate(
                    dropped=[DroppedChange(one, change) for one in touched]))
                return None
            return settling or _planning(change)
        change = data_change(executed.mark, now) or unplanned_change(
            executed.mark, snapshot, traffic, execution.wanted, execution.moved)
        return None if change is None or self._is_paced() else _planning(change)

    def _observe(self, snapshot: Snapshot, settings: Settings, drain_only: bool,
                 excluded: Optional[ExcludedPgs] = None,
                 placed: ShardCounts = {}, noise: float = 0.0) -> ClusterMark:
        """Returns the mark of a newer snapshot; begins the settling time where its topology is
        another one."""
        rejected, pools = (excluded.rejected, excluded.pools) if excluded is not None else (
            frozenset(), ())
        mark, now = mark_of(
            snapshot, automatic_options(
                settings, snapshot, rejected, self._max_pg_shards(), drain_only),
            settings.min_gain, frozenset(pools), placed, noise), self._clock()
        if mark.unsettled != self._topology:
            if self._topology is not None:
                if self._changing.peek_seconds_left(now) <= 0.0:   # the first in a while
                    self._settling.begin(now, _LONGEST_SETTLE_SECONDS)
                self._changing.begin(now, _LONGEST_SETTLE_SECONDS)
                self.stuck = StuckDrains()   # there may be a place now
            self._topology = mark.unsettled
        return mark

    def _wait_to_settle(self, change: str) -> Optional[Verdict]:
        now = self._clock()
        left = min(self._settling.peek_seconds_left(now), SETTLE_SECONDS - (
            _LONGEST_SETTLE_SECONDS - self._changing.peek_seconds_left(now)))
        if self._is_restless() and self._planned_at is not None:
            left = PACE_SECONDS - max(0.0, now - self._planned_at)
        at = format_deadline(now + left)
        return None if left <= 0.0 else Verdict(
            codes.SETTLING, f"{change}; if that lasts there is a new plan at {at}", {"until": at},
            WAITING, left)

    def _stays_idle(self, idle: _IdleState, now: ClusterMark) -> bool:
        if self._retry.seconds_left(self._clock()) <= 0.0 or change_of(idle.mark, now):
            return False
        change = data_change(idle.mark, now)
        # what may be noise is looked at again, when that has been forgotten
        self._is_doubtful = bool(change or drift(idle.mark, now._replace(noise=0.0)))
        return not (change or drift(idle.mark, now)) or self._is_paced(
            max(pace_seconds(now.fullness), FULL_PACE_SECONDS))

    def _plan(self, snapshot: Snapshot, mark: ClusterMark, excluded: ExcludedPgs, generation: int,
              max_seconds: float, is_for_drift: bool) -> NextStep:
        """Starts a plan in the job thread, where none is being made and none has to be waited
        for. `is_for_drift`: what has drifted since the last plan moves, and no more."""
        settling = self._wait_to_settle("the cluster has just changed")
        if settling is not None:
            return NextStep(settling)
        now, failure = self._clock(), self._plan_service.last_failure("")
        if failure is not None and self._submitted:
            if self._failing:  # a first failure may be a passing one
                self._backoff.failed(now)
            self._failing, self._submitted = True, False
        failed = f"the last plan could not be made ({failure}); trying again"
        left = self._backoff.seconds_left(now)
        if left > 0.0:
            return NextStep(_planning(f"{failed} at {format_deadline(now + left)}", left))

        def done(plan: Plan) -> None:
            if is_for_drift and plan.epoch == snapshot.epoch:   # else made from a newer one
                plan = needed_part(plan, snapshot, mark.min_gain)
            with self._lock:
                if generation != self._generation:
                    return  # asked for before `off` or `on`
                self._ready = _MadePlan(plan, mark, min(
                    excluded.seconds_left.values(), default=excluded.seconds), self._clock())
            self._wake()
        options = mark.options._replace(
            rejected_pgs=mark.options.rejected_pgs | excluded.cooling, cooling_pgs=frozenset(
                pgid for pgid, code in excluded.codes.items() if code == codes.COOLDOWN))
        if generation == self._generation and self._plan_service.submit_automatic(
                snapshot, options, max_seconds, done):
            self._submitted, self._planned_at = True, now
            self._set_idle(None, generation)
        return NextStep(_planning(failed if failure else "a plan is being made"))


def _settling_step(excluded: ExcludedPgs) -> Optional[NextStep]:
    """The state while pools are left alone until they have settled; None where there are none."""
    for _, reason in sorted(excluded.pools.items()):
        return NextStep(Verdict(
            codes.PG_NUM_CHANGING, f"{reason}; it and the pools on its OSDs are planned for when"
            " that is done", state=WAITING))
    return None


def _planning(reason: str, seconds: Optional[float] = None) -> Verdict:
    return Verdict(codes.PLANNING, reason, state=PLANNING, seconds=seconds)
