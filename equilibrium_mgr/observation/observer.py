"""Observes the cluster: snapshots, the view made of them, summaries in between, and what these show
to be new."""
from __future__ import annotations

import logging
from collections import deque
from statistics import median
from typing import Any, Callable, Dict, FrozenSet, Optional, Tuple

from ..execution.outcomes import Cooldown
from ..execution.guards import changing_pg_nums
from ..execution.pending_moves import PendingMoves
from ..gateway.cluster_summary import ClusterSummary, Fullness
from ..gateway.gateway import Gateway
from ..planner.bound.lower_bound import UtilizationBounds, cluster_bounds
from ..settings import Settings
from ..snapshot import pg_states
from ..snapshot.model import Snapshot
from .client_latency import LatencyWatch
from .cluster_view import BALANCED, BLOCKED, STUCK, ClusterView, make_view
from .movements import PLAN, measured_rates

#: The longest time between two observations while moves are in flight that stand still, and the
#: shortest at rest; and where an OSD is above nearfull.
LONGEST_SECONDS, FULL_PACE_SECONDS = 600.0, 240.0
#: The same while an OSD is above backfillfull, or PGs wait for space.
_SPACE_SECONDS = 60.0

#: Seconds between two observations that commands request.
_REQUESTED_SECONDS = 20.0
#: Seconds between two questions to OSDs how many backfills they run at a time.
_BACKFILLS_SECONDS = 600.0
#: What is left of measured noise after a round without.
_FORGOTTEN = 0.6

BoundsFunction = Callable[..., UtilizationBounds]   # lower_bound.cluster_bounds


class ClusterObserver:
    """Used by the serve thread; commands call `request` and set `is_required`. `view` is
    replaced whole."""

    def __init__(self, gateway: Gateway, pending: PendingMoves, cooldown: Cooldown,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._pending = pending
        self._cooldown = cooldown   # knows what the last mgr sent
        self._clock = clock
        self._log = log
        self.compute_bounds: BoundsFunction = cluster_bounds
        #: what the last look that something was decided on began with; what a command has asked
        #: for is not what the loop compares the cluster with
        self._decided_on: Optional[Tuple[ClusterSummary, Settings]] = None
        #: whether only arrivals are waited for since: while what is misplaced stands still, a
        #: summary a round suffices
        self.is_awaiting = False
        self.is_required = False    # whether the next round looks, whatever has changed
        self.view: Optional[ClusterView] = None
        self.builtin_active: Optional[bool] = None   # when last seen; None before
        self._began_at = -_REQUESTED_SECONDS   # the last observation
        self._is_requested = False
        self._asked_at = deque([-3600.0] * 3, maxlen=3)   # the last requests at rest
        self._looked_at: Optional[ClusterSummary] = None   # of the last look; None: none was read
        self._last_summary: Optional[ClusterSummary] = None
        self._latency = LatencyWatch()
        self._backfills_at = -_BACKFILLS_SECONDS   # the last question how many OSDs run
        #: the mean by which utilizations of OSDs differ from one summary to the next
        self.noise = 0.0

    def request(self, at_rest: bool = False) -> bool:
        """Requests one observation for a command whose view is too old; False where one is running
        or has begun a moment ago, or three were made within the hour for a cluster at rest."""
        now = self._clock()
        if not self._is_requested and not 0.0 <= now - self._began_at < _REQUESTED_SECONDS and not (
                at_rest and 0.0 <= now - self._asked_at[0] < 3600.0):
            self._is_requested = True
            if at_rest:
                self._asked_at.append(now)
        return self._is_requested

    def begin_round(self, settings: Settings) -> bool:
        """Has the view show the limit in force; returns whether a command has requested an
        observation since the last round."""
        if self.view is not None:
            self.view = self.view._replace(
                max_misplaced_ratio=self.max_misplaced_ratio(self.view.snapshot, settings))
        requested, self._is_requested = self._is_requested, False
        return requested

    def begin_look(self, summary: ClusterSummary, settings: Settings) -> None:
        """Records what a look begins with that something is decided on, and ends all waiting."""
        self.is_required = self.is_awaiting = False
        self._decided_on = summary, settings

    def is_due(self, summary: ClusterSummary, settings: Settings, state: str,
               retry_due: bool) -> bool:
        """True where a look would show something that matters. `retry_due`: a plan may be made
        again although nothing has changed."""
        if self.is_required or self._decided_on is None or settings != self._decided_on[1]:
            return True
        then = self._decided_on[0]
        elapsed = self._clock() - then.taken_at
        if elapsed < 0.0 or then.fullness != summary.fullness:   # the clock was set back
            return True
        if state in (BALANCED, STUCK):   # whatever differs but the time counts
            return elapsed >= pace_seconds(summary.fullness) and (
                retry_due or then != summary._replace(taken_at=then.taken_at,
                                                      statistics_at=then.statistics_at))
        longest, fullness = LONGEST_SECONDS, summary.fullness
        if fullness.backfillfull or fullness.full or _are_toofull(summary):
            longest = _SPACE_SECONDS   # each OSD that deletes a shard lets another move go
        return (elapsed >= longest or limits(then) != limits(summary)
                or has_moved(then, summary) or copying_pgs(summary) > 0
                or not (state == BLOCKED or self.is_awaiting))

    def summary(self) -> ClusterSummary:
        """The cluster in brief, with what can forbid all movement; keeps the view's misplaced
        ratio up to date. Raises NotReady."""
        summary = self._gateway.summary(with_map_settings=True)
        self._measure_noise(summary)
        self.builtin_active = summary.builtin_active
        if self.view is not None:
            self.view = self.view._replace(
                misplaced_copies=summary.misplaced_copies,
                uncounted_copies=self._pending.uncounted_copies(self.view.snapshot, False),
                statistics_at=summary.statistics_at, stale_osds=summary.stale_osds)
        return summary

    def _measure_noise(self, summary: ClusterSummary) -> None:
        before, self._last_summary = self._last_summary or summary, summary
        steps = [new.utilization - old.utilization
                 for new, old in ((new, before.osds.get(osd)) for osd, new in summary.osds.items())
                 if old is not None and new.utilization is not None and old.utilization is not None]
        middle = median(steps) if steps else 0.0   # what comes to all alike is growth
        self.noise = max(_FORGOTTEN * self.noise,   # that has ended is forgotten within some rounds
                         sum(abs(step - middle) for step in steps) / max(1, len(steps) - 2))

    def observe(self, summary: Optional[ClusterSummary]) -> Snapshot:
        """Reads the whole cluster. Raises NotReady; after any failure it is tried again."""
        self._looked_at, self._began_at = summary, self._clock()
        try:
            return self._gateway.snapshot()
        except Exception:
            self.is_required = True
            raise

    def update_view(self, snapshot: Snapshot, settings: Settings,
                    same_bounds: bool = False) -> None:
        """Replaces the view. Our own moves leave the bounds as they are (`same_bounds`)."""
        before = self.view
        bounds = before.utilization_bounds if same_bounds and before is not None else (
            self._bounds(snapshot))
        self.builtin_active = self._gateway.builtin_balancer_active()
        self.view = make_view(snapshot, bounds, self._pending,
                              self.max_misplaced_ratio(snapshot, settings), self.builtin_active,
                              self._cooldown.moved.keys() | self._pending.sent_before, before)
        try:   # these are only shown: neither a round nor `off` may fail for them
            if before is not None:
                self.view = self.view._replace(rates=measured_rates(
                    before.rates, before.movements, snapshot.taken_at - before.snapshot.taken_at,
                    snapshot, self.view.movements))
            self._observe_osds_of_moves(self.view, before)
        except Exception:
            self._log.exception("rates, latency and backfills cannot be measured")
        if self._last_summary is not None:
            self.view = self.view._replace(statistics_at=self._last_summary.statistics_at,
                                           stale_osds=self._last_summary.stale_osds)

    def _observe_osds_of_moves(self, view: ClusterView, before: Optional[ClusterView]) -> None:
        """Has the view tell how long clients wait at the OSDs of our moves, and which of them run
        several backfills at a time."""
        pgs = view.snapshot.pgs
        osds = sorted({osd for one in view.movements if one.origin == PLAN
                       for osd in (one.source, one.target, *pgs[one.pgid].acting[:1])
                       if osd is not None and osd in view.snapshot.osds})
        found = before.stacked_backfills if before is not None and osds else {}
        if osds and not 0.0 <= self._clock() - self._backfills_at < _BACKFILLS_SECONDS:
            self._backfills_at = self._clock()
            found = self._gateway.stacked_backfills(osds)
        self.view = view._replace(
            stacked_backfills=found,
            copying_options=self._gateway.copying_options(min(view.snapshot.osds)),
            client_latency=self._latency.observe(self._clock(), osds, self._gateway.op_latency))

    def is_behind(self, summary: Optional[ClusterSummary]) -> bool:
        """True where data moves, so that the view is older than what it shows. Without a summary:
        where something had arrived at the last look."""
        if summary is not None and self._looked_at is not None:
            return has_moved(self._looked_at, summary)
        return self.view is not None and self.view.rates.moved_at == self.view.snapshot.taken_at

    def count_submitted(self) -> None:
        """Adds to the view's misplaced copies what has been submitted since it was made."""
        if self.view is not None:
            self.view = self.view._replace(
                misplaced_copies=self.view.snapshot.misplaced_copies,
                uncounted_copies=self._pending.uncounted_copies(self.view.snapshot, False))

    def max_misplaced_ratio(self, snapshot: Snapshot, settings: Settings) -> float:
        """The misplaced limit, a ratio of object copies: the option, or Ceph's
        target_max_misplaced_ratio where it is 0.

        While the mgr changes a pg_num it needs misplaced objects itself, below its own target:
        half of that is left to it.
        """
        target = self._gateway.target_max_misplaced_ratio()
        limit = settings.max_misplaced_ratio or target
        return min(limit, target / 2.0) if changing_pg_nums(snapshot) else limit

    def bounds(self, snapshot: Snapshot,
               movable_pools: Optional[FrozenSet[int]]) -> Optional[UtilizationBounds]:
        """The view's bounds; with `movable_pools`, those of moves of these pools alone."""
        if movable_pools is None:
            return self.view.utilization_bounds if self.view is not None else None
        return self._bounds(snapshot, frozenset(snapshot.pools) - movable_pools)

    def _bounds(self, snapshot: Snapshot,
                fixed_pools: FrozenSet[int] = frozenset()) -> Optional[UtilizationBounds]:
        """Computes the bounds; None where that fails, which stops no moves: they are only shown."""
        try:
            return self.compute_bounds(snapshot, fixed_pools)
        except Exception:
            self._log.exception("how even the cluster could be cannot be computed")
            return None

    @property
    def own_pgids(self) -> FrozenSet[str]:
        """PGs of our own moves that have not arrived: by the last look, and as sent."""
        return frozenset(one.pgid for one in (self.view.movements if self.view is not None else ())
                         if one.origin == PLAN).union(self._pending.entries)


def pace_seconds(fullness: Fullness) -> float:
    """Least seconds between two looks at a cluster at rest, and between two plans for data that has
    grown or shrunk."""
    if fullness.backfillfull or fullness.full:
        return 0.0   # as often as there are rounds
    return FULL_PACE_SECONDS if fullness.nearfull else LONGEST_SECONDS


def has_moved(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where data has moved since `then`."""
    return (then.misplaced_copies, then.degraded_copies, copying_pgs(then)) != (
        now.misplaced_copies, now.degraded_copies, copying_pgs(now))


def limits(summary: ClusterSummary) -> Tuple[Any, ...]:
    """What may be sent depends on these: OSDs, pools, PGs in trouble."""
    return (summary.crush_version, {pool: one.pg_num for pool, one in summary.pools.items()},
            {osd: (o.up, o.is_in, o.reweight, o.crush_weight, o.device_class,
                   o.utilization is None and o.up and o.is_in) for osd, o in summary.osds.items()},
            _troubles(summary))


def copying_pgs(summary: ClusterSummary) -> int:
    """PGs that say that they copy data, which they also do while something stops them."""
    return sum(count for pool in summary.pools.values() for state, count in pool.states.items()
               if pg_states.has_any(state, pg_states.COPIED))


def _are_toofull(summary: ClusterSummary) -> bool:
    """Returns True if PGs wait because an OSD is too full for them."""
    return any(count and pg_states.TOOFULL in state
               for pool in summary.pools.values() for state, count in pool.states.items())


def _troubles(summary: ClusterSummary) -> Dict[int, FrozenSet[str]]:
    """Pool id → states of its PGs that block movement, however many PGs; other pools are left
    out."""
    found: Dict[int, FrozenSet[str]] = {}
    for pool_id, pool in summary.pools.items():
        troubles = set()
        for state, count in pool.states.items():
            parts = state.split("+")
            if count and pg_states.is_inactive(state):
                troubles.add("inactive")
            troubles.update(part for part in parts if count and part in pg_states.TROUBLES)
        if troubles:
            found[pool_id] = frozenset(troubles)
    return found
