"""Takes snapshots of the cluster and makes the view of each; decides when the next one is due.

Between two snapshots it reads summaries, which cost less.
"""
from __future__ import annotations

import logging
from collections import deque
from statistics import median
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Set, Tuple

from ..execution.outcomes import Cooldown
from ..execution.guards import changing_pg_nums
from ..execution.pending_moves import PendingMoves
from ..gateway.cluster_summary import ClusterSummary, Fullness, OsdSummary
from ..gateway.gateway import Gateway
from ..planner.bound.lower_bound import UtilizationBounds, cluster_bounds
from ..settings import Settings
from ..snapshot import pg_states
from ..snapshot.model import Snapshot
from .client_latency import LatencyWatch
from .cluster_view import (
    BALANCED, BLOCKED, STUCK, ClusterView, make_view, with_figures_of_now)
from .movements import PLAN, measured_rates

#: The longest time between two snapshots while moves in flight stand still, and the shortest while
#: the cluster is idle.
LONGEST_SECONDS = 600.0
_LONGEST_REST_SECONDS = 86_400.0   # between two snapshots of an idle cluster
#: The shortest while the cluster is idle and an OSD is above nearfull.
FULL_PACE_SECONDS = 240.0
#: The longest while an OSD is above backfillfull, or PGs wait for space.
_SPACE_SECONDS = 60.0

#: Seconds between two snapshots that commands request, and how many they may request in an hour of
#: an idle cluster.
_REQUESTED_SECONDS = 20.0
_MOST_REQUESTS = 3
#: Seconds between two questions to OSDs how many backfills they run at a time.
_BACKFILLS_SECONDS = 600.0
#: This ratio of the measured noise is left after a round without noise.
_NOISE_LEFT = 0.6

BoundsFunction = Callable[..., UtilizationBounds]   # lower_bound.cluster_bounds


class ClusterObserver:
    """Takes snapshots and keeps the newest view, which it replaces whole. The serve thread uses it;
    commands call `request` and set `is_required`."""

    def __init__(self, gateway: Gateway, pending: PendingMoves, cooldown: Cooldown,
                 steered: Cooldown, clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._pending = pending
        self._cooldown = cooldown   # knows the moves of the previous mgr
        self._steered = steered     # the same
        self._clock = clock
        self._log = log
        self.compute_bounds: BoundsFunction = cluster_bounds
        #: summary and options at the last snapshot that the loop has decided on; the loop does not
        #: compare the cluster with a snapshot that a command has requested
        self._decided_on: Optional[Tuple[ClusterSummary, Settings]] = None
        #: whether the loop only waits for arrivals since: then a summary a round is enough while
        #: the misplaced copies stay the same
        self.is_awaiting = False
        self.is_required = False    # whether the next round takes a snapshot in any case
        self.view: Optional[ClusterView] = None
        self.builtin_active: Optional[bool] = None   # by the last reading; None before
        self._began_at = -_REQUESTED_SECONDS   # when the last snapshot was begun
        self._is_requested = False
        #: the last requests for an idle cluster
        self._asked_at = deque([-3600.0] * _MOST_REQUESTS, maxlen=_MOST_REQUESTS)
        #: the summary before the last snapshot; None if none was read
        self._looked_at: Optional[ClusterSummary] = None
        self._last_summary: Optional[ClusterSummary] = None
        self._latency = LatencyWatch()
        self._backfills_at = -_BACKFILLS_SECONDS   # when OSDs were last asked for their backfills
        #: by how much, on average, the utilization of an OSD changes otherwise than that of most
        #: OSDs from one summary to the next, a ratio
        self.noise = 0.0
        #: pool id → the last summary that showed fewer missing copies while Ceph copied such PGs
        #: of the pool, seconds since the epoch
        self._rebuilt_at: Dict[int, float] = {}
        self.logged: Mapping[str, Any] = {}   # as in `movements`

    def request(self, at_rest: bool = False) -> bool:
        """Requests one snapshot for a command whose view is too old. `at_rest`: the cluster is
        idle.

        Returns False if a snapshot has begun a moment ago, or if an idle cluster has had three
        within the hour.
        """
        if self._is_requested:
            return True
        now = self._clock()
        if 0.0 <= now - self._began_at < _REQUESTED_SECONDS:
            return False
        if at_rest and 0.0 <= now - self._asked_at[0] < 3600.0:
            return False
        self._is_requested = True
        if at_rest:
            self._asked_at.append(now)
        return True

    def begin_round(self, settings: Settings) -> bool:
        """Puts the misplaced limit in force into the view. Returns True if a command has requested
        a snapshot since the last round."""
        view = self.view
        if view is not None:
            self.view = view._replace(
                max_misplaced_ratio=self.max_misplaced_ratio(view.snapshot, settings))
        requested = self._is_requested
        self._is_requested = False
        return requested

    def begin_look(self, summary: ClusterSummary, settings: Settings) -> None:
        """Notes the summary and options of a snapshot that the loop decides on, and clears
        `is_required` and `is_awaiting`."""
        self.is_required = self.is_awaiting = False
        self._decided_on = summary, settings

    def is_due(self, summary: ClusterSummary, settings: Settings, state: str,
               retry_due: bool) -> bool:
        """Returns True if a snapshot would show something that matters. `retry_due`: a plan may be
        made again although nothing has changed."""
        if self.is_required or self._decided_on is None or settings != self._decided_on[1]:
            return True
        then = self._decided_on[0]
        elapsed = self._clock() - then.taken_at
        if elapsed < 0.0 or then.fullness != summary.fullness:   # below 0: the clock was set back
            return True
        if state in (BALANCED, STUCK):
            return _is_due_at_rest(then, summary, elapsed, retry_due)
        if elapsed >= _longest_seconds(summary) or limits(then) != limits(summary):
            return True
        if has_moved(then, summary) or copying_pgs(summary) > 0:
            return True
        waits_for_change = state == BLOCKED or self.is_awaiting
        return not waits_for_change

    def has_placement_changed(self, summary: ClusterSummary) -> bool:
        """Returns True if the CRUSH map or a weight of an OSD differs from the snapshot that the
        loop has decided on."""
        if self._decided_on is None:
            return True
        return _placement(self._decided_on[0]) != _placement(summary)

    def summary(self) -> ClusterSummary:
        """Returns a summary of the cluster with all that can forbid movement, and puts its figures
        into the view. Raises NotReady."""
        summary = self._gateway.summary(with_map_settings=True)
        self._compare_with_last(summary)
        self.builtin_active = summary.builtin_active
        view = self.view
        if view is not None:
            self.view = view._replace(
                misplaced_copies=summary.misplaced_copies,
                uncounted_copies=self._pending.uncounted_copies(view.snapshot, False),
                statistics_at=summary.statistics_at,
                stale_osds=summary.stale_osds,
                # the next view keeps when a trouble was first seen
                troubles=with_figures_of_now(view, summary).troubles)
        return summary

    def rebuilt_pools(self, seconds: float) -> FrozenSet[int]:
        """Returns the pools of which Ceph has rebuilt copies within so many seconds."""
        oldest = self._clock() - seconds
        return frozenset([pool for pool, at in self._rebuilt_at.items() if at > oldest])

    def _compare_with_last(self, summary: ClusterSummary) -> None:
        """Measures the noise, and notes whether Ceph gets on with a rebuild."""
        before = self._last_summary or summary
        self._last_summary = summary
        # if Ceph rebuilds nothing, clients have deleted objects
        if summary.degraded_copies < before.degraded_copies:
            self._rebuilt_at.update(dict.fromkeys(_rebuilt_pools(summary), summary.taken_at))
        steps: List[float] = []
        for number, osd in summary.osds.items():
            old = before.osds.get(number)
            if old is None or osd.utilization is None or old.utilization is None:
                continue
            steps.append(osd.utilization - old.utilization)
        middle = median(steps) if steps else 0.0   # all OSDs alike: data grows or shrinks
        noise = sum(abs(step - middle) for step in steps) / max(1, len(steps) - 2)
        # noise that has ended is forgotten within some rounds
        self.noise = max(_NOISE_LEFT * self.noise, noise)

    def observe(self, summary: Optional[ClusterSummary]) -> Snapshot:
        """Takes a snapshot. Raises NotReady; after any failure the next round tries again."""
        self._looked_at, self._began_at = summary, self._clock()
        try:
            return self._gateway.snapshot()
        except Exception:
            self.is_required = True
            raise

    def update_view(self, snapshot: Snapshot, settings: Settings,
                    same_bounds: bool = False) -> None:
        """Replaces the view. `same_bounds`: only our own moves have changed, which leave the bounds
        as they are."""
        before = self.view
        bounds = (before.utilization_bounds if same_bounds and before is not None
                  else self._bounds(snapshot))
        self.builtin_active = self._gateway.builtin_balancer_active()
        view = make_view(snapshot, bounds, self._pending,
                         self.max_misplaced_ratio(snapshot, settings), self.builtin_active,
                         self._cooldown.moved, before, self._steered.moved, self.logged)
        summary = self._last_summary
        if summary is not None:
            view = view._replace(
                statistics_at=summary.statistics_at, stale_osds=summary.stale_osds)
        try:   # these are only shown: neither a round nor `off` may fail because of them
            if before is not None:
                elapsed = snapshot.taken_at - before.snapshot.taken_at
                view = view._replace(rates=measured_rates(
                    before.rates, before.movements, elapsed, snapshot, view.movements))
            view = self._with_osds_of_moves(view, before)
        except Exception:
            self._log.exception("rates, latency and backfills cannot be measured")
        self.view = view

    def _with_osds_of_moves(self, view: ClusterView,
                            before: Optional[ClusterView]) -> ClusterView:
        """Returns the view with figures of the OSDs of our moves: how long clients wait there, and
        which of them run several backfills at a time."""
        osds = _osds_of_own_moves(view)
        found: Mapping[int, int] = {}
        if osds and before is not None:
            found = before.stacked_backfills
        now = self._clock()
        if osds and not 0.0 <= now - self._backfills_at < _BACKFILLS_SECONDS:
            self._backfills_at = now
            found = self._gateway.stacked_backfills(osds)
        return view._replace(
            stacked_backfills=found,
            copying_options=self._gateway.copying_options(min(view.snapshot.osds)),
            client_latency=self._latency.observe(self._clock(), osds, self._gateway.op_latency))

    def is_behind(self, summary: Optional[ClusterSummary]) -> bool:
        """Returns True if data has moved, so that the view is stale. Without a summary: if shards
        of ours had arrived at the last snapshot."""
        if summary is not None and self._looked_at is not None:
            return has_moved(self._looked_at, summary)
        return self.view is not None and self.view.rates.moved_at == self.view.snapshot.taken_at

    def count_submitted(self) -> None:
        """Adds the moves that were sent since the view was made to its misplaced copies."""
        view = self.view
        if view is not None:
            snapshot = view.snapshot
            self.view = view._replace(
                misplaced_copies=snapshot.misplaced_copies,
                uncounted_copies=self._pending.uncounted_copies(snapshot, False))

    def max_misplaced_ratio(self, snapshot: Snapshot, settings: Settings) -> float:
        """Returns the misplaced limit, a ratio of object copies: the option, or Ceph's
        target_max_misplaced_ratio if the option is 0.

        While the mgr changes a pg_num it needs misplaced objects itself, below its own target. Half
        of that target is left to it.
        """
        target = self._gateway.target_max_misplaced_ratio()
        limit = settings.max_misplaced_ratio or target
        return min(limit, target / 2.0) if changing_pg_nums(snapshot) else limit

    def bounds(self, snapshot: Snapshot,
               movable_pools: Optional[FrozenSet[int]]) -> Optional[UtilizationBounds]:
        """Returns the view's bounds; with `movable_pools`, the bounds of moves of these pools
        alone."""
        if movable_pools is not None:
            return self._bounds(snapshot, frozenset(snapshot.pools) - movable_pools)
        return self.view.utilization_bounds if self.view is not None else None

    def _bounds(self, snapshot: Snapshot,
                fixed_pools: FrozenSet[int] = frozenset()) -> Optional[UtilizationBounds]:
        """Computes the bounds. Returns None if that fails: they are only shown, and no move has to
        wait for them."""
        try:
            return self.compute_bounds(snapshot, fixed_pools)
        except Exception:
            self._log.exception("how even the cluster could be cannot be computed")
            return None

    @property
    def own_pgids(self) -> FrozenSet[str]:
        """Returns the PGs of our own moves that have not arrived, pending or in the view."""
        found = set(self._pending.entries)
        if self.view is not None:
            for one in self.view.movements:
                if one.origin == PLAN:
                    found.add(one.pgid)
        return frozenset(found)


def _osds_of_own_moves(view: ClusterView) -> List[int]:
    """Returns the OSDs that our moves in flight read or write, sorted."""
    found: Set[Optional[int]] = set()
    for one in view.movements:
        if one.origin == PLAN:
            found.update((one.source, one.target, *view.snapshot.pgs[one.pgid].acting[:1]))
    return sorted(view.snapshot.osds.keys() & found)


def _is_due_at_rest(then: ClusterSummary, now: ClusterSummary, elapsed: float,
                    retry_due: bool) -> bool:
    """Returns True if an idle cluster needs a new snapshot: the last one is old enough, and
    anything except times has changed or a plan may be made again. Operations are counted once a day
    in any case."""
    if elapsed < pace_seconds(now.fullness):
        return False
    same_times = now._replace(taken_at=then.taken_at, statistics_at=then.statistics_at)
    return retry_due or then != same_times or elapsed >= _LONGEST_REST_SECONDS


def _longest_seconds(summary: ClusterSummary) -> float:
    """Returns the longest time between two snapshots of a cluster that is not idle."""
    fullness = summary.fullness
    # each OSD that deletes a shard lets another move go
    if fullness.backfillfull or fullness.full or _count_pgs(summary, pg_states.FULL):
        return _SPACE_SECONDS
    return LONGEST_SECONDS


def pace_seconds(fullness: Fullness) -> float:
    """Returns the shortest time between two snapshots of an idle cluster, and between two plans for
    data that has grown or shrunk."""
    if fullness.backfillfull or fullness.full:
        return 0.0   # every round
    return FULL_PACE_SECONDS if fullness.nearfull else LONGEST_SECONDS


def has_moved(then: ClusterSummary, now: ClusterSummary) -> bool:
    """Returns True if data has moved since `then`."""
    return (then.misplaced_copies, then.degraded_copies, copying_pgs(then)) != (
        now.misplaced_copies, now.degraded_copies, copying_pgs(now))


def limits(summary: ClusterSummary) -> Tuple[Any, ...]:
    """Returns a fingerprint of OSDs, pools and PGs in trouble, which decide what may be sent."""
    pg_nums = {pool: one.pg_num for pool, one in summary.pools.items()}
    osds = {number: _limits_of(osd) for number, osd in summary.osds.items()}
    return summary.crush_version, pg_nums, osds, _troubles(summary)


def _placement(summary: ClusterSummary) -> Tuple[Any, ...]:
    """Returns a fingerprint of the CRUSH map, and of the OSDs that are in with their weights."""
    weights = {number: (osd.is_in, osd.reweight) for number, osd in summary.osds.items()}
    return summary.crush_version, weights


def _limits_of(osd: OsdSummary) -> Tuple[Any, ...]:
    lacks_statistics = osd.utilization is None and osd.up and osd.is_in
    return (osd.up, osd.is_in, osd.reweight, osd.crush_weight, osd.device_class,
            lacks_statistics)


def copying_pgs(summary: ClusterSummary) -> int:
    """Returns the number of PGs in a state of copying. PGs stay in it while a flag stops that."""
    return _count_pgs(summary, pg_states.COPIED)


def _rebuilt_pools(summary: ClusterSummary) -> List[int]:
    """Returns the pools with PGs that lack copies and are being copied."""
    return [pool_id for pool_id, pool in summary.pools.items()
            if any(map(_is_rebuilt, pool.states))]


def _is_rebuilt(state: str) -> bool:
    return pg_states.DEGRADED in state and pg_states.has_any(state, pg_states.COPIED)


def _count_pgs(summary: ClusterSummary, states: FrozenSet[str]) -> int:
    """Returns the number of PGs in any of the states."""
    total = 0
    for pool in summary.pools.values():
        for pg_state, count in pool.states.items():
            if pg_states.has_any(pg_state, states):
                total += count
    return total


def _troubles(summary: ClusterSummary) -> Dict[int, FrozenSet[str]]:
    """Returns pool id → states of its PGs that block movement, however many PGs. Leaves out the
    other pools."""
    found: Dict[int, FrozenSet[str]] = {}
    for pool_id, pool in summary.pools.items():
        troubles: Set[str] = set()
        for state, count in pool.states.items():
            if not count:
                continue
            if pg_states.is_inactive(state):
                troubles.add("inactive")
            troubles.update(pg_states.TROUBLES.intersection(state.split("+")))
        if troubles:
            found[pool_id] = frozenset(troubles)
    return found
