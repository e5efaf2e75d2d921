"""Automatic balancing: when to plan, when to rest, when to give an execution up; what has changed
since a plan was made (`ClusterMark`), and the gain for which one is carried out.

Noise of a percent is no change, nor is an OSD that is down but still in: its data is where it
was, and guards keep moves away from it.
"""
from __future__ import annotations

import math
import threading
from statistics import median
from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set,
    Tuple)

from ..drain.status import StuckDrains
from ..execution.outcomes import DroppedChange, ExcludedPgs, Verdict
from ..execution.execution import Execution, ExecutionUpdate
from ..execution.guards import blocked_pools, full_osds
from ..execution.throttle import OsdTraffic, predicted_utilization
from ..gateway.cluster_summary import Fullness
from ..observation.refusals import NOTHING_LEFT
from ..observation.observer import FULL_PACE_SECONDS, pace_seconds
from ..observation.cluster_view import PLANNING
from ..plan.model import PgChange, Plan
from ..plan.options import PgShardLimits, PlanOptions
from ..plan.placement import placement
from ..plan.usage import bytes_beyond_share
from ..plan_service.plan_service import PlanService
from ..runtime.waiting import Backoff, WaitTimer, doubled
from ..runtime.formatting import format_bytes, format_deadline, format_percent
from ..settings import Settings
from ..snapshot import immovable_reasons as reasons, reason_codes as codes
from ..snapshot.model import Pool, Snapshot, UpmapItems, pool_of
from ..snapshot.operator_weights import held_sentence
from ..snapshot.pg_states import SHORT, has_any
from .balancing_scope import automatic_options
from .cluster_guards import wait_until

#: Seconds for which a topology has to stay the same before it is planned for, as OSDs flap; and at
#: most, of changes that are no further apart.
SETTLE_SECONDS, _LONGEST_SETTLE_SECONDS = 60.0, 300.0
#: At most, while an OSD needs space.
_URGENT_SECONDS = 45.0
#: Seconds after which a plan that was not taken up, or of which nothing was sent, is made again.
PACE_SECONDS = 600.0
#: An OSD's utilization must differ by this much: more than twice the measurement noise of a full
#: OSD.
_UTILIZATION = 0.03
#: Where nothing is left to gain, an OSD has to differ from the others by this ratio of min_gain,
#: and by this multiple of the mean difference between two reports: that is noise.
_GAIN_RATIO, _LEAST_GAIN = 0.25, 0.001
_NOISE_RATIO = 6.0
#: Once a plan has had nothing to gain, drift alone is followed where a plan gains this ratio, with
#: few bytes: plans for less, or as far as they go, have to be made anew in hours. No OSD set is
#: left to be a point fuller than it could be.
_DRIFT_GAIN = 0.008
#: An OSD counts as newly above nearfull by this much: more than measurement noise.
_NEARFULL_MARGIN = 0.01


class ClusterMark(NamedTuple):
    """What a plan rests on, as plain values."""

    options: PlanOptions                     # that it is asked for with
    min_gain: float                          # a ratio, as the option
    full_ratios: Tuple[float, float, float]  # full, backfillfull, nearfull
    osds: Mapping[int, Tuple[Any, ...]]      # in, reweight, destroyed, class, place in the tree
    pools: Mapping[int, Tuple[Any, ...]]     # Pool.shape, and the rule itself
    drained_osds: FrozenSet[int]             # nothing may go to these
    items: Mapping[str, UpmapItems]          # pgid → its upmap items
    down_osds: FrozenSet[int]
    utilization: Mapping[int, float]         # of OSDs that are up, once everything has arrived
    unknown_pgs: int                         # PGs of which nobody knows how much they hold
    held_pgs: int                            # PGs that stay until somebody lets them go
    fullness: Fullness
    noise: float                             # mean difference of utilizations between two reports

    @property
    def unsettled(self) -> Tuple[Any, ...]:
        """The part of the topology that may flap; what a command has said need not settle."""
        return self.osds, self.pools

    def is_same_request(self, options: PlanOptions) -> bool:
        """True where the options differ at most in the PGs that the monitor did not keep."""
        return self.options._replace(rejected_pgs=options.rejected_pgs) == options

    def touched(self, later: ClusterMark, changes: Sequence[PgChange]) -> List[PgChange]:
        """The changes whose own OSDs or pool are others later, by what may flap."""
        osds = _differing(self.osds, later.osds)
        pools = _differing(self.pools, later.pools)
        return [change for change in changes if pool_of(change.pgid) in pools
                or not osds.isdisjoint(change.up_before + change.up_after)]


def _differing(then: Mapping[Any, Any], now: Mapping[Any, Any]) -> Set[Any]:
    """Returns the keys whose values are not the same, or that only one of both has."""
    return {key for key in then.keys() | now.keys() if then.get(key) != now.get(key)}


def mark_of(snapshot: Snapshot, options: PlanOptions, min_gain: float,
            noise: float = 0.0) -> ClusterMark:
    """The mark of a snapshot for a plan with these options."""
    places = snapshot.crush.places()
    return ClusterMark(
        options, min_gain,
        full_ratios=(snapshot.full_ratio, snapshot.backfillfull_ratio, snapshot.nearfull_ratio),
        osds={o.id: (o.is_in, o.reweight, o.destroyed, o.device_class, places.get(o.id))
              for o in snapshot.osds.values()},
        pools={pool.id: (*pool.shape, snapshot.crush.rules.get(pool.rule_id))
               for pool in snapshot.pools.values()},
        drained_osds=snapshot.drained_osds, items=snapshot.upmap_items,
        down_osds=frozenset(o.id for o in snapshot.osds.values() if o.is_in and not o.up),
        utilization={o.id: o.target_utilization or 0.0 for o in snapshot.osds.values()
                     if o.up and o.has_statistics and o.size_bytes > 0},
        unknown_pgs=sum(snapshot.skipped.get(why, 0) for why in reasons.UNKNOWN),
        held_pgs=sum(snapshot.skipped.get(why, 0) for why in reasons.LIFTED),
        fullness=Fullness(*(sum(o.is_in and o.exceeds(ratio) for o in snapshot.osds.values())
                            for ratio in (snapshot.nearfull_ratio, snapshot.backfillfull_ratio))),
        noise=noise)


def _with_changes(plan: Plan, changes: Tuple[PgChange, ...], snapshot: Snapshot) -> Plan:
    """Returns the plan with these of its changes alone, and with what they gain."""
    pgids = {change.pgid for change in changes}
    moves = tuple([move for move in plan.moves if move.pgid in pgids])
    placed = placement(snapshot)
    return plan._replace(moves=moves, changes=changes, before=placed.usage(),
                         after=placed.after(changes).usage())


def topology_change(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """The change that makes other placements legal than before, as a clause, or None."""
    if then.full_ratios != now.full_ratios:
        return "a full ratio has changed"
    for osd in sorted(_differing(then.osds, now.osds)):
        old, new = then.osds.get(osd), now.osds.get(osd)
        if old is None or new is None:
            return f"osd.{osd} is {'new' if old is None else 'gone'}"
        if old[0] != new[0]:
            return f"osd.{osd} is {'in again' if new[0] else 'out'}"
        what = "weight" if old[1] != new[1] else "place in the CRUSH map"
        return f"osd.{osd} has another {what}"
    for osd in sorted(then.drained_osds ^ now.drained_osds):
        return f"osd.{osd} is {'' if osd in now.drained_osds else 'no longer '}being drained"
    return "the pools have changed" if then.pools != now.pools else None


def change_of(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """What has changed so that a plan which had nothing to gain could gain something at once, as a
    clause, or None."""
    if (then.options, then.min_gain) != (now.options, now.min_gain):
        return "the options have changed"
    if any(new > old for new, old in zip(now.fullness, then.fullness)) or _newly_nearfull(
            then, now.utilization, now.full_ratios[2]):
        return "another OSD is too full"   # no plan has tried to help it
    return topology_change(then, now)


def data_change(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """What has become known of the data since, as a clause, or None."""
    back = sorted(then.down_osds & frozenset(now.osds) - now.down_osds)
    if back:
        return f"osd.{back[0]} is up again"
    # by half at least: deep scrubs tell it PG by PG, for weeks
    if now.unknown_pgs * 2 <= then.unknown_pgs and then.unknown_pgs:
        return f"{then.unknown_pgs - now.unknown_pgs} PGs have told how much they hold"
    if now.held_pgs * 2 <= then.held_pgs and then.held_pgs:
        return f"{then.held_pgs - now.held_pgs} PGs may be moved again"
    told = sorted(osd for osd in now.utilization if osd not in then.utilization
                  and osd in then.osds and then.osds[osd][0])
    return f"osd.{told[0]} has reported its statistics" if told else None


def drift(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """A change of what OSDs hold, at rest, by which a plan could gain min_gain that gained less
    before, as a clause, or None: by a part of min_gain otherwise than most of the class, or by all
    of it alike, as growth makes other moves worth their bytes."""
    if _is_displaced(then, now):
        return "shards are placed otherwise"
    by_class: Dict[str, Dict[int, float]] = {}
    for osd in now.utilization.keys() & then.utilization.keys():
        by_class.setdefault(now.osds[osd][3], {})[osd] = (
            now.utilization[osd] - then.utilization[osd])
    apart = [(abs(change - middle), -osd) for changes in by_class.values()
             for middle in [median(changes.values())] for osd, change in changes.items()]
    worst, osd = max(apart, default=(0.0, 0))
    # what differs by more than noise of a full OSD counts, however much the others swing
    least = max(_GAIN_RATIO * max(then.min_gain, _LEAST_GAIN),
                min(_UTILIZATION, _NOISE_RATIO * now.noise))
    if worst > least:
        return _drift_clause(-osd, now.utilization, then)
    least = max(then.min_gain, _LEAST_GAIN, min(_UTILIZATION, _NOISE_RATIO * now.noise))
    for changes in by_class.values():
        middle = median(changes.values())
        if abs(middle) > least:
            return f"most OSDs are {'fuller' if middle > 0 else 'emptier'}"
    return None


def _is_displaced(then: ClusterMark, now: ClusterMark, sent: Sequence[PgChange] = ()) -> bool:
    """True where others have changed upmap items; `sent`: what may have been sent since."""
    items = {change.pgid: change.items for change in sent}
    return any(now.items.get(pgid, ()) != items.get(pgid)
               for pgid in _differing(then.items, now.items))


def unplanned_change(then: ClusterMark, snapshot: Snapshot, traffic: OsdTraffic,
                     wanted: Sequence[PgChange], moved: Mapping[int, int]) -> Optional[str]:
    """A change of OSDs since the plan under way was made that it does not expect, as a clause, or
    None.

    `wanted`: what of the plan is still to go. `moved`: OSD → bytes that it has moved so far; what
    has left an OSD is deleted some time later, so that drift is measured on top of these.
    """
    predicted = {osd.id: predicted_utilization(snapshot, traffic.of(osd.id), osd.id)
                 - osd.leftover_bytes / max(1, osd.size_bytes)
                 for osd in snapshot.osds.values() if osd.up and osd.id in then.utilization}
    overfull = _newly_nearfull(then, predicted, snapshot.nearfull_ratio).union(
        osd for osd in full_osds(snapshot)
        if predicted.get(osd, 0.0) > snapshot.backfillfull_ratio)
    for change in wanted if overfull else ():
        overfull -= change.lost_by
    if overfull:
        return f"osd.{min(overfull)} is above nearfull now, and the plan does not help it"
    for osd, utilization in sorted(predicted.items()):
        own = moved.get(osd, 0) / max(1, snapshot.osds[osd].size_bytes)
        if snapshot.osds[osd].has_statistics and abs(
                utilization - then.utilization[osd]) > _UTILIZATION + own:
            return _drift_clause(osd, predicted, then)
    return None


def _newly_nearfull(then: ClusterMark, utilization: Mapping[int, float],
                    nearfull_ratio: float) -> FrozenSet[int]:
    """OSDs that were not above nearfull and are now, by more than noise, once everything in flight
    has arrived."""
    return frozenset(osd for osd, ratio in utilization.items()
                     if ratio > nearfull_ratio + _NEARFULL_MARGIN
                     and then.utilization.get(osd, ratio) <= nearfull_ratio)


def _drift_clause(osd: int, utilization: Mapping[int, float], then: ClusterMark) -> str:
    return (f"osd.{osd} is at {100.0 * utilization[osd]:.1f} % instead of"
            f" {100.0 * then.utilization[osd]:.1f} %")


#: A pool is small that holds less than this ratio of what the OSDs of its rule use.
_SMALL_RATIO = 0.01


def gain_reason(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """The gain for which a plan is carried out, as a clause for the history; None where it is too
    small. `min_gain` is a ratio (the option of that name)."""
    if not plan.changes:
        return None
    osds = snapshot.osds
    leaving: Dict[int, int] = {}   # OSD → bytes that leave it less those that come
    for move in plan.moves:
        leaving[move.source] = leaving.get(move.source, 0) + move.bytes
        leaving[move.target] = leaving.get(move.target, 0) - move.bytes
    drained = sorted({move.source for move in plan.moves
                      if move.source in osds and osds[move.source].drained})
    if drained:
        others = f" (and {len(drained) - 1} more)" if len(drained) > 1 else ""
        return f"osd.{drained[0]}{others} is being drained"
    for osd, relieved in sorted(leaving.items()):
        if relieved > 0 and osd in osds and (
                osds[osd].target_utilization or 0.0) > snapshot.nearfull_ratio:
            return f"osd.{osd} is above nearfull"
    for osd, excess in bytes_beyond_share(snapshot).items():
        if min(excess, leaving.get(osd, 0)) >= max(1.0, min_gain * osds[osd].capacity_bytes):
            return f"{held_sentence(osds[osd])} and has more"   # than operators' weights leave it
    for name, before in sorted(plan.before.classes.items()):
        after = plan.after.classes.get(name)
        if after is not None and before.max - after.max >= max(min_gain, 1e-9):
            return (f"the fullest OSD of class {name} can be brought from"
                    f" {format_percent(before.max)}% to {format_percent(after.max)}%")
    small = {pool.name for pool in snapshot.pools.values() if _is_small(pool, snapshot)}
    for name, was in sorted(plan.before.pools.items()):
        becomes = plan.after.pools.get(name)
        if becomes is not None and was.stored_bytes > 0 and name not in small:
            gained = becomes.free_bytes - was.free_bytes
            # of what the pool holds and could hold
            if gained >= max(min_gain * (was.stored_bytes + was.free_bytes), 1.0):
                return f"pool {name} can have {format_bytes(gained)} more"
    return None if min_gain > 0.0 else "there are moves that improve the placement"


def _is_small(pool: Pool, snapshot: Snapshot) -> bool:
    """True for a pool that holds too little to be worth a move, as `.mgr` does."""
    used = sum(snapshot.osds[osd].used_bytes for osd in (pool.rule.osds() if pool.rule else ())
               if osd in snapshot.osds)
    return pool.stored_bytes * pool.size / pool.data_shards < _SMALL_RATIO * used


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
    least_gain: float          # as PlanOptions: above 0 it follows drift


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
        #: of the last whole plan that had nothing to gain; None once others have moved shards
        self._balanced: Optional[ClusterMark] = None
        self._retry = WaitTimer()   # of the idle state; inf: it is for good
        self._topology: Any = None
        #: since the topology has changed last; and since it did so first, of changes that are no
        #: further apart than _LONGEST_SETTLE_SECONDS
        self._changing, self._settling = WaitTimer(), WaitTimer()
        self._planned_at: Optional[float] = None
        self._needs_space = False   # whether an OSD of the last snapshot does (full_osds)
        self._fruitless = 0         # plans since the last one of which something went
        self._is_doubtful = False   # whether the idle state's cluster has changed
        self._backoff = Backoff()
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
            self._is_doubtful or self._retry.seconds_left(self._clock()) <= 0.0)

    def reset(self) -> None:
        """Drops a plan that waits or is being made, and ends an idle state."""
        with self._lock:
            self._generation += 1
            self._ready = self._idle = self._balanced = None
            self.stuck = StuckDrains()

    def next_step(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                  noise: float, drain_only: bool, drain_has_work: bool) -> NextStep:
        """Decides, while no execution is under way: take up a plan, be idle, or make a plan.
        `noise`: as ClusterMark. `drain_has_work`: shards have come to an OSD that is being
        drained."""
        mark = self._observe(snapshot, settings, drain_only, excluded, noise)
        with self._lock:
            ready, self._ready = self._ready, None
            idle, generation = self._idle, self._generation
        if ready is not None:
            self._backoff.succeeded()
            ready = self._valid(ready, mark, snapshot, settings.sleep_interval)
        if ready is not None:
            asked = ready.mark.options
            if asked.drain_only or (asked.pool_ids, asked.device_classes, asked.sources) == (
                    None, None, None):   # it was free to take shards of any pool off any OSD
                self.stuck = StuckDrains(ready.plan.stuck, ready.made_at)
            gain = gain_reason(ready.plan, snapshot, settings.min_gain)
            if gain is not None:
                self._executed = ready
                self._fruitless += 1
                self._set_idle(None, generation)
                return NextStep(_planning(gain), plan=ready.plan)
            idle = self._idle_after(ready, generation)
        if drain_has_work and ready is None and not self._is_paced(FULL_PACE_SECONDS):
            idle = None
        if idle is not None and self._stays_idle(idle, mark):
            return NextStep(idle.why, is_idle=True, searched_at=idle.searched_at)
        return self._plan(snapshot, mark, excluded, generation, settings.max_plan_seconds)

    def _valid(self, ready: _MadePlan, now: ClusterMark, snapshot: Snapshot,
               sleep_interval: float) -> Optional[_MadePlan]:
        """What of a plan may still be made: nothing where something else would be asked for now,
        and not what a change of the topology touches."""
        age = self._clock() - ready.made_at
        if not (0.0 <= age <= max(PACE_SECONDS, 2.0 * sleep_interval)
                and ready.mark.is_same_request(now.options)):
            return None
        if not topology_change(ready.mark, now):
            return ready
        touched = {change.pgid for change in ready.mark.touched(now, ready.plan.changes)}
        changes = tuple(change for change in ready.plan.changes if change.pgid not in touched)
        if not (changes and self.is_restless):
            self._end_pace()
            return None
        return ready._replace(plan=_with_changes(ready.plan, changes, snapshot))

    @property
    def is_restless(self) -> bool:
        """True where the topology keeps changing, for longer than is waited for."""
        is_changing = self._changing.seconds_left(self._clock()) > 0.0
        return is_changing and self._settle_seconds_left() <= 0.0

    def _settle_seconds_left(self) -> float:
        """Seconds for which a series of changes may hold plans from now on."""
        left = self._settling.seconds_left(self._clock())
        if not self._needs_space:
            return left
        return left - (_LONGEST_SETTLE_SECONDS - _URGENT_SECONDS)

    def _end_pace(self) -> None:
        """Lets a plan follow at once that has become void, where an OSD needs space."""
        if self._needs_space:
            self._planned_at = None

    @property
    def _pace_seconds(self) -> float:
        """Seconds between two plans for the same reason; fewer while an OSD needs space."""
        if not self._needs_space:
            return PACE_SECONDS
        return doubled(SETTLE_SECONDS, FULL_PACE_SECONDS, self._fruitless)

    def _is_paced(self, seconds: Optional[float] = None) -> bool:
        """True while it is too early for another plan on account of data alone."""
        return self._planned_at is not None and (
            0.0 <= self._clock() - self._planned_at < (seconds or self._pace_seconds))

    def _set_idle(self, idle: Optional[_IdleState], generation: int) -> None:
        """Replaces the idle state, unless a command has ended the generation that found it."""
        with self._lock:
            if generation == self._generation:
                self._idle = idle

    def _idle_after(self, plan: _MadePlan, generation: int) -> _IdleState:
        """Begins an idle state after a plan that has nothing to gain."""
        min_gain, self._executed = plan.mark.min_gain, None
        self._fruitless += 1
        is_for_good = plan.cooling_seconds <= 0.0 and not plan.plan.stuck
        if plan.least_gain:
            why = Verdict(codes.DRIFT, "what OSDs hold has changed since, and all that may move"
                          " gains less than a point")
        else:
            with self._lock:
                is_balanced = is_for_good and generation == self._generation
                self._balanced = plan.mark if is_balanced else None
            why = Verdict(codes.BALANCED, NOTHING_LEFT) if not plan.plan.changes else Verdict(
                codes.MIN_GAIN, f"the moves that are left gain less than min_gain ({min_gain:g})")
        idle = _IdleState(plan.mark, why, plan.made_at)
        self._set_idle(idle, generation)
        self._retry.begin(self._clock(), math.inf if is_for_good
                          else max(plan.cooling_seconds, self._pace_seconds))
        return idle

    def idle_after_refusal(self, snapshot: Snapshot, settings: Settings, excluded: ExcludedPgs,
                           reason: str, drain_only: bool) -> None:
        """Begins an idle state after a plan of which nothing could be sent: the next plan would be
        the same."""
        mark = self._observe(snapshot, settings, drain_only, excluded)
        self._set_idle(_IdleState(mark, Verdict(
            codes.IMMOVABLE, f"no move can be made ({reason})")), self._generation)
        self._fruitless += 1
        self._retry.begin(self._clock(), self._pace_seconds)

    def why_not_on(self, snapshot: Snapshot, settings: Settings, execution: Execution,
                   traffic: OsdTraffic, drain_only: bool) -> Optional[Verdict]:
        """Why the execution of an automatic plan must not go on, or None: it has to wait, or is out
        of date where the state is PLANNING. What a change of the topology touches is dropped; the
        rest goes on until there may be another plan."""
        now, executed = self._observe(snapshot, settings, drain_only), self._executed
        if execution.sent_moves:
            self._fruitless = 0
        if executed is None:
            return None
        # first: while the topology does not come to rest, what they forbid would still be sent
        if not executed.mark.is_same_request(now.options):
            return _planning("the options have changed")
        change = topology_change(executed.mark, now)
        if change is not None:
            touched = executed.mark.touched(now, execution.wanted)
            is_void = len(touched) == len(execution.wanted)
            if is_void:
                self._end_pace()
            settling = self._wait_to_settle(change)
            if settling is not None and not is_void:
                execution.apply(ExecutionUpdate(
                    dropped=[DroppedChange(one, change) for one in touched]))
                return None
            return settling or _planning(change)
        change = data_change(executed.mark, now) or unplanned_change(
            executed.mark, snapshot, traffic, execution.wanted, execution.moved)
        return None if change is None or self._is_paced() else _planning(change)

    def _observe(self, snapshot: Snapshot, settings: Settings, drain_only: bool,
                 excluded: Optional[ExcludedPgs] = None,
                 noise: float = 0.0) -> ClusterMark:
        """Returns the mark of a newer snapshot; begins the settling time where its topology is
        another one, and notes whether an OSD needs space."""
        rejected = excluded.rejected if excluded is not None else frozenset()
        mark, now = mark_of(
            snapshot, automatic_options(
                settings, snapshot, rejected, self._max_pg_shards(), drain_only),
            settings.min_gain, noise), self._clock()
        self._needs_space = bool(full_osds(snapshot))
        if not self._needs_space:
            self._fruitless = 0   # it counts plans that were to make space
        if mark.unsettled != self._topology:
            if self._topology is not None:
                if self._changing.seconds_left(now) <= 0.0:   # the first in a while
                    self._settling.begin(now, _LONGEST_SETTLE_SECONDS)
                self._changing.begin(now, _LONGEST_SETTLE_SECONDS)
                self.stuck = StuckDrains()   # there may be a place now
            self._topology = mark.unsettled
        return mark

    def _wait_to_settle(self, change: str) -> Optional[Verdict]:
        now = self._clock()
        since_last = _LONGEST_SETTLE_SECONDS - self._changing.seconds_left(now)
        left = min(self._settle_seconds_left(), SETTLE_SECONDS - since_last)
        if self.is_restless and self._planned_at is not None:
            left = self._pace_seconds - max(0.0, now - self._planned_at)
        return wait_until(codes.SETTLING, f"{change}; if that lasts there is a new plan at", now,
                          left)

    def _stays_idle(self, idle: _IdleState, now: ClusterMark) -> bool:
        if _is_displaced(idle.mark, now):
            self._balanced = None
        if self._retry.seconds_left(self._clock()) <= 0.0 or change_of(idle.mark, now):
            return False
        change = data_change(idle.mark, now)
        # what may be noise is looked at again, when that has been forgotten
        self._is_doubtful = bool(change or drift(idle.mark, now._replace(noise=0.0)))
        return not (change or drift(idle.mark, now)) or self._is_paced(
            max(pace_seconds(now.fullness), FULL_PACE_SECONDS))

    def _is_drift(self, now: ClusterMark) -> bool:
        """True where nothing but what OSDs hold, and our own moves, has changed since it was
        balanced, and no OSD is too full; never for an operator's own idea of what is worth it."""
        balanced, executed = self._balanced, self._executed   # commands reset them
        if balanced is not None and executed is not None and _is_displaced(
                executed.mark, now, executed.plan.changes):
            balanced = self._balanced = None
        return balanced is not None and 0.0 < now.min_gain < _DRIFT_GAIN and not (
            any(now.fullness) or change_of(balanced, now) or data_change(balanced, now))

    def _plan(self, snapshot: Snapshot, mark: ClusterMark, excluded: ExcludedPgs, generation: int,
              max_seconds: float) -> NextStep:
        """Starts a plan in the job thread, where none is being made and none has to be waited
        for."""
        settling = self._wait_to_settle("the cluster has just changed")
        if settling is not None:
            return NextStep(settling)
        now, failure = self._clock(), self._plan_service.last_failure("")
        if failure is not None and self._submitted:
            self._backoff.failed(now)
            self._submitted = False
        failed = f"the last plan could not be made ({failure}); trying again"
        left = self._backoff.seconds_left(now)
        if left > 0.0:
            return NextStep(_planning(f"{failed} at {format_deadline(now + left)}", left))

        least_gain = _DRIFT_GAIN if self._is_drift(mark) else 0.0

        def done(plan: Plan) -> None:
            with self._lock:
                if generation != self._generation:
                    return  # asked for before `off` or `on`
                self._ready = _MadePlan(plan, mark, min(
                    excluded.seconds_left.values(), default=0.0), self._clock(), least_gain)
            self._wake()
        options = _for_relief(snapshot, mark.options._replace(
            least_gain=least_gain,
            rejected_pgs=mark.options.rejected_pgs | excluded.cooling))
        if generation == self._generation and self._plan_service.submit_automatic(
                snapshot, options, max_seconds, done):
            self._submitted, self._planned_at = True, now
            self._set_idle(None, generation)
        return NextStep(_planning(failed if failure else "a plan is being made"))


def _for_relief(snapshot: Snapshot, options: PlanOptions) -> PlanOptions:
    """Returns the options of a plan that only relieves the OSDs that need space, if there are any
    and PGs are degraded or inactive: the throttle lets nothing else through then."""
    full = full_osds(snapshot)
    if not full or not blocked_pools(snapshot):
        return options
    lacking = frozenset(pg.pgid for pg in snapshot.in_flight().values()
                        if has_any(pg.state, SHORT))
    return options._replace(sources=full if options.sources is None else full & options.sources,
                            rejected_pgs=options.rejected_pgs | lacking)


def _planning(reason: str, seconds: Optional[float] = None) -> Verdict:
    return Verdict(codes.PLANNING, reason, state=PLANNING, seconds=seconds)
