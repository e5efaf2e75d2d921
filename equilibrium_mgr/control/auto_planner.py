"""Automatic balancing: when to plan, when to rest, and when a plan under way is out of date."""
from __future__ import annotations

import threading
from typing import Any, Callable, FrozenSet, NamedTuple, Optional

from ..execution.cooldown import ExcludedPgs
from ..execution.execution import Execution
from ..execution.guards import full_osds
from ..execution.osd_traffic import OsdTraffic
from ..observation.bound_gap import NOTHING_LEFT
from ..observation.states import PLANNING, WAITING
from ..plan.model import Plan
from ..plan.options import PlanOptions
from ..plan_service.plan_service import PlanService
from ..runtime.backoff import Backoff
from ..runtime.wait_timer import WaitTimer
from ..settings import Settings
from ..snapshot.model import Snapshot
from .plan_validity import (
    ClusterFingerprint, data_change, utilization_drift, newly_nearfull, unplanned_change, topology_change, fingerprint)
from .plan_gain import gain_reason

#: A topology must have stood for so long before it is planned for: OSDs go out and in again.
SETTLE_SECONDS = 60.0
#: Data that grows and shrinks ends a plan or a rest no more often than this. A plan that nobody
#: could take up for so long is void.
PACE_SECONDS = 600.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 60.0, 3600.0


class NextStep(NamedTuple):
    """What to do next: take up a plan, rest, or be in a state."""

    state: str = ""
    reason: str = ""
    plan: Optional[Plan] = None
    resting: bool = False      # then the reason tells why
    replan: bool = False       # the plan under way is out of date
    seconds: Optional[float] = None  # after which there will be more to say


class _Made(NamedTuple):
    """A plan, what it was asked for, and the cluster as it was then."""

    plan: Plan
    options: PlanOptions
    matters: ClusterFingerprint
    cooling_seconds: float     # after which it could be a better one
    made_at: float             # seconds since the epoch


class _Question(NamedTuple):
    """What a plan is asked for."""

    options: PlanOptions
    matters: ClusterFingerprint
    excluded: ExcludedPgs
    era: int


class _Rest(NamedTuple):
    """Nothing is to be done while the cluster and what is asked stay as they are."""

    options: PlanOptions
    min_gain: float
    matters: ClusterFingerprint
    note: str
    for_good: bool   # or only until the retry is due


class AutoPlanner:
    """Decides; the balancer carries out. Used by the serve thread, but for `forget`, which commands
    call, and a plan that is ready, which the job thread brings.

    What was found out or asked for before the last `forget` is void: `_era` tells.
    """

    def __init__(self, plan_service: PlanService, clock: Callable[[], float],
                 wake: Callable[[], None]) -> None:
        self._plan_service = plan_service
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._era = 0
        self._ready: Optional[_Made] = None
        self._under_way: Optional[_Made] = None
        self._rest: Optional[_Rest] = None
        self._topology: Any = None
        self._settling = WaitTimer()
        self._pace = WaitTimer()
        self._retry = WaitTimer()
        self._backoff = Backoff(_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
        self._failing = False
        self._submitted = False

    @property
    def is_ready(self) -> bool:
        """Is there a plan that has not been looked at?"""
        return self._ready is not None

    @property
    def is_planning(self) -> bool:
        """Is a plan in the making, or one before it that is void?"""
        return "" in self._plan_service.plans_in_progress()

    @property
    def is_rest_over(self) -> bool:
        """Has a rest that was not for good lasted long enough to plan again?"""
        rest = self._rest
        return (rest is not None and not rest.for_good
                and self._retry.seconds_left(self._clock()) <= 0.0)

    def reset(self) -> None:
        """Drops a plan that waits or is being made, and ends a rest."""
        with self._lock:
            self._era += 1
            self._ready = None
            self._rest = None

    def next_step(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs) -> NextStep:
        """With no plan under way: a plan to take up, a rest, or a plan in the making."""
        matters = self._see(snapshot, frozenset(excluded.pools))
        options = _options(settings, excluded.rejected)
        with self._lock:
            made, self._ready = self._ready, None
            rest, era = self._rest, self._era
        if made is not None:
            self._backoff.succeeded()
            self._failing = False
            if self._is_valid(made, matters, options, settings.sleep_interval):
                why = gain_reason(made.plan, snapshot, settings.min_gain)
                if why is not None:
                    self._under_way = made
                    self._rest_on(None, era)
                    return NextStep(plan=made.plan, reason=why)
                note = NOTHING_LEFT if not made.plan.changes else (
                    f"the moves that are left gain less than min_gain ({settings.min_gain:g})")
                rest = _Rest(made.options, settings.min_gain, matters, note,
                             made.cooling_seconds <= 0.0)
                self._rest_on(rest, era)
                self._retry.begin(self._clock(), made.cooling_seconds)
        if rest is not None and self._rests_on(rest, matters, options, settings.min_gain,
                                               snapshot.nearfull_ratio):
            return _unsettled(excluded) or NextStep(resting=True, reason=rest.note)
        if excluded.pools and frozenset(snapshot.pools) <= frozenset(excluded.pools):
            if not full_osds(snapshot):
                return _unsettled(excluded) or NextStep()
        return self._plan(snapshot, _Question(options, matters, excluded, era), settings)

    def _is_valid(self, made: _Made, matters: ClusterFingerprint, options: PlanOptions,
                  sleep_interval: float) -> bool:
        """Is a plan an answer still, or has it waited for too long?"""
        longest = max(PACE_SECONDS, 2.0 * sleep_interval)
        return (0.0 <= self._clock() - made.made_at <= longest
                and _same_question(made.options, options)
                and not topology_change(made.matters, matters)
                and made.matters.excluded_pools == matters.excluded_pools)

    def _rest_on(self, rest: Optional[_Rest], era: Optional[int] = None) -> None:
        """Replaces the rest, unless a command has ended the era that it was found in."""
        with self._lock:
            if era is None or era == self._era:
                self._rest = rest

    def replan_step(self, snapshot: Snapshot, settings: Settings, execution: Execution,
                    osd_traffic: OsdTraffic) -> Optional[NextStep]:
        """What keeps the plan under way from going on, or None."""
        made, matters = self._under_way, self._see(snapshot)
        if made is None:
            return None
        change = topology_change(made.matters, matters)
        if change is not None:
            return self._settle(change) or NextStep(PLANNING, change, replan=True)
        if not _same_question(made.options, _options(settings, frozenset())):
            return NextStep(PLANNING, "the options have changed", replan=True)
        grown = data_change(made.matters, matters, settings.min_gain)
        grown = grown or unplanned_change(made.matters, snapshot, osd_traffic, execution.wanted, execution.moved)
        if grown is not None and self._pace.seconds_left(self._clock()) <= 0.0:
            return NextStep(PLANNING, grown, replan=True)
        return None

    def rest_after_refusal(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                  reason: str) -> None:
        """Nothing of a plan could be sent: the same would be planned again at once."""
        matters = fingerprint(snapshot, frozenset(excluded.pools))
        self._rest_on(_Rest(_options(settings, excluded.rejected), settings.min_gain, matters,
                            f"no move can be made ({reason})", False))
        self._retry.begin(self._clock(), PACE_SECONDS)

    def _see(self, snapshot: Snapshot, left: FrozenSet[int] = frozenset()) -> ClusterFingerprint:
        matters = fingerprint(snapshot, left)
        if matters.topology != self._topology:
            if self._topology is not None:
                self._settling.begin(self._clock(), SETTLE_SECONDS)
            self._topology = matters.topology
        return matters

    def _settle(self, change: str) -> Optional[NextStep]:
        left = self._settling.seconds_left(self._clock())
        if left <= 0.0:
            return None
        return NextStep(WAITING, f"{change}; there is a new plan in {int(left + 1)} s if that lasts",
                    seconds=left)

    def _rests_on(self, rest: _Rest, matters: ClusterFingerprint, options: PlanOptions,
                  min_gain: float, nearfull_ratio: float) -> bool:
        if (rest.options, rest.min_gain) != (options, min_gain):
            return False  # with others there may be something to do
        now = self._clock()
        if not rest.for_good and self._retry.seconds_left(now) <= 0.0:
            return False
        if topology_change(rest.matters, matters) or utilization_drift(rest.matters, matters):
            return False
        if rest.matters.excluded_pools != matters.excluded_pools or newly_nearfull(
                rest.matters, matters.utilization, nearfull_ratio):
            return False
        grown = data_change(rest.matters, matters, min_gain)
        return grown is None or self._pace.seconds_left(now) > 0.0

    def _plan(self, snapshot: Snapshot, question: _Question, settings: Settings) -> NextStep:
        settling = self._settle("the cluster has just changed")
        if settling is not None:
            return settling
        now, failure = self._clock(), self._plan_service.last_failure("")
        if failure is not None and self._submitted:
            if self._failing:  # the first time it may have been a moment's trouble
                self._backoff.failed(now)
            self._failing, self._submitted = True, False
        left = self._backoff.seconds_left(now)
        if left > 0.0:
            return NextStep(PLANNING, "the last plan could not be made (%s); trying again in %d s"
                        % (failure, left + 1), seconds=left)

        if question.era == self._era and self._submit(snapshot, question, settings):
            self._submitted = True
            self._rest_on(None, question.era)
            self._pace.begin(now, PACE_SECONDS)
        return NextStep(PLANNING, f"the last plan could not be made ({failure}); trying again"
                    if failure else "a plan is being made")

    def _submit(self, snapshot: Snapshot, question: _Question, settings: Settings) -> bool:
        """Has a plan made in the background; False while one is being made."""
        options, excluded = question.options, question.excluded

        def made(plan: Plan) -> None:
            with self._lock:
                if question.era != self._era:
                    return  # asked for before `off` or `on`
                self._ready = _Made(plan, options, question.matters, excluded.seconds,
                                    self._clock())
            self._wake()
        free = options._replace(rejected_pgs=options.rejected_pgs | excluded.cooling)
        return self._plan_service.submit_automatic(snapshot, free, settings.max_plan_seconds, made)


def _unsettled(excluded: ExcludedPgs) -> Optional[NextStep]:
    """Nothing is to be done but for pools that are left alone until they have settled."""
    for _, reason in sorted(excluded.pools.items()):
        return NextStep(WAITING, "%s; it and the pools on its OSDs are planned for when that is through"
                    % reason)
    return None


def _options(settings: Settings, rejected: FrozenSet[str]) -> PlanOptions:
    return PlanOptions(pool_ids=settings.pool_ids, device_classes=settings.device_classes,
                       fill_limit=settings.fill_limit, aim=settings.aim, rejected_pgs=rejected,
                       respect_weights=settings.respect_weights,
                       max_upmap_items=settings.max_upmap_items)


def _same_question(one: PlanOptions, other: PlanOptions) -> bool:
    """Apart from the PGs that the monitor does not want moved."""
    return one._replace(rejected_pgs=frozenset()) == other._replace(rejected_pgs=frozenset())
