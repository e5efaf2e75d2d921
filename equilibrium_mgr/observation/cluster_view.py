"""The view that commands read, made once for each snapshot: figures of the OSDs, counts of shards
by pool and OSD, OSDs that are too full for PGs; and the names of the loop's states.
"""
from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from functools import lru_cache, partial
from typing import (
    Any, Callable, Container, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional,
    Sequence, Set, Tuple)

from ..execution.pending_moves import PendingMoves
from ..execution.traffic import unseen
from ..gateway.cluster_summary import ClusterSummary, OsdSummary, PoolSummary
from ..plan.load import osd_loads
from ..plan.model import ClassUsage, PgChange, Usage
from ..plan.placement import Placement
from ..plan.usage import (
    ShardCounts, class_usage, counted_usage, growth_bytes, recount, shard_counts)
from ..planner.bound.lower_bound import OsdSet, UtilizationBounds
from ..runtime.formatting import named, plural
from ..runtime.time_slice import give_way, piecewise
from ..snapshot.immovable_reasons import DEGRADED_STRETCH, NO_OSD_FOR_SHARD
from ..snapshot.model import Osd, Pg, PgStateCounts, Snapshot, pg_number
from ..snapshot.pg_states import BACKFILL_TOOFULL, RECOVERY_TOOFULL, TOOFULL
from ..snapshot.pools import count_states
from .client_latency import ClientLatency
from .movements import Movement, MovingTotals, TransferRates, movements, moving_totals


#: Items between two calls of `give_way`: about a millisecond.
_PGS_A_PIECE = 200
_STATES_A_PIECE = 2000
_OSDS_A_PIECE = 1000


class PlacementCounts(NamedTuple):
    """Counts of shards by pool and OSD. Immutable. ShardCounts count each shard by its weight
    (plan/usage.py)."""

    soon: ShardCounts                  # by the up sets
    #: by the OSDs that hold them; a pool without a moving PG has the same object as in `soon`
    now: ShardCounts
    acting: Mapping[int, int]          # OSD id → number of PGs, by acting sets


def count_placement(snapshot: Snapshot) -> PlacementCounts:
    """Counts the shards of a snapshot."""
    soon = shard_counts(snapshot)
    acting: Counter[int] = Counter()
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        acting.update(pg.acting)
    now: Dict[int, Dict[int, float]] = {}
    for pg in snapshot.in_flight().values():
        pool = pg.pool
        if pool not in now:
            now[pool] = dict(soon[pool])
        recount(now[pool], snapshot.pools[pool], pg.pgid, pg.up, pg.holders)
    return PlacementCounts(soon, {**soon, **now}, acting)


OFF = "off"
WAITING = "waiting"
BLOCKED = "blocked"
THROTTLED = "throttled"
PLANNING = "planning"
MOVING = "moving"
BALANCED = "balanced"
STUCK = "stuck"
STATES = (OFF, WAITING, BLOCKED, THROTTLED, PLANNING, MOVING, BALANCED, STUCK)


_PGS_NAMED = 3
#: States of the loop in which moves may wait for an OSD that is too full.
HELD_UP = (BLOCKED, THROTTLED, MOVING, WAITING, STUCK, BALANCED)
#: No command is named that lets an OSD fill further than this.
HIGHEST_RATIO = 0.98
#: No command is named that lets backfill fill an OSD nearer to full_ratio than this.
_MARGIN = 0.02


class TooFull(NamedTuple):
    """PGs in one state for one OSD; ratios are of the OSD's size."""

    state: str
    osd: int
    utilization: float   # now
    ratio: float         # the ratio of the osdmap that it passes, now or with the shards
    needed: float        # a limit that lets all PGs in that state go on
    pgids: Tuple[str, ...]

    @property
    def ratio_name(self) -> str:
        """Returns the name of the ratio of the osdmap that makes the PGs wait."""
        if self.state == BACKFILL_TOOFULL:
            return "backfillfull_ratio"
        return "full_ratio"

    def command(self, full_ratio: float) -> Optional[str]:
        """Returns the command that lets the PGs go on; None if no ratio below the next one is
        enough."""
        highest = HIGHEST_RATIO if self.state == RECOVERY_TOOFULL else full_ratio - _MARGIN
        if self.needed > highest:
            return None
        return f"ceph osd set-{self.ratio_name.replace('_', '-')} {self.needed:.2f}"

    def sentence(self) -> str:
        """Returns the PGs and the OSD, for people."""
        verb = "is" if self.utilization >= self.ratio else "with what comes would be"
        pgids = named(self.pgids, _PGS_NAMED)
        figures = f"{self.utilization:.2%} with {self.ratio_name} {self.ratio:.2%}"
        return f"pg {pgids} in {self.state}: osd.{self.osd} {verb} too full, at {figures}"

    def to_json(self, full_ratio: float) -> Dict[str, Any]:
        """Returns the same, JSON-ready."""
        return {
            "state": self.state,
            "osd": self.osd,
            "utilization": self.utilization,
            self.ratio_name: self.ratio,
            "pgs": len(self.pgids),
            "pgids": list(self.pgids[:_PGS_NAMED]),
            "command": self.command(full_ratio)}


def find_too_full(snapshot: Snapshot) -> Tuple[TooFull, ...]:
    """Returns the OSDs that are too full for PGs, by the states of the PGs; those with most waiting
    PGs first.

    Ceph refuses backfill to a target that would pass backfillfull_ratio. PGs with short histories
    move by recovery. Ceph refuses that while any OSD of the PG is above full_ratio
    (PeeringState::WaitLocalRecoveryReserved), even the OSD that the shard leaves.
    """
    found: Dict[Tuple[str, int], List[str]] = {}   # (state, OSD) → PGs
    most: Dict[str, float] = defaultdict(float)   # state → utilization; one ratio is for all OSDs
    waiting = [pg for pg in piecewise(snapshot.pgs.values(), _STATES_A_PIECE)
               if TOOFULL in pg.state]
    for pg in sorted(waiting, key=lambda pg: (pg.pool, pg_number(pg.pgid))):
        state = BACKFILL_TOOFULL if BACKFILL_TOOFULL in pg.state else RECOVERY_TOOFULL
        for osd, utilization in _too_full_osds(snapshot, pg, state):
            found.setdefault((state, osd), []).append(pg.pgid)
            with_all = 0.0
            if state == BACKFILL_TOOFULL:
                one = snapshot.osds[osd]
                with_all = (one.used_bytes + one.inbound_bytes) / one.size_bytes
            most[state] = max(most[state], utilization, with_all)
    entries: List[TooFull] = []
    for (state, osd), pgids in found.items():
        utilization = snapshot.osds[osd].utilization or 0.0
        enough = math.floor(100.0 * most[state]) / 100.0 + 0.01
        ratio = _full_ratio_of(snapshot, state)
        entries.append(TooFull(state, osd, utilization, ratio, enough, tuple(pgids)))
    return tuple(sorted(entries, key=lambda e: (-len(e.pgids), e.state, e.osd)))


def _full_ratio_of(snapshot: Snapshot, state: str) -> float:
    """Returns the ratio above which an OSD is too full for PGs in the state."""
    if state == BACKFILL_TOOFULL:
        return snapshot.backfillfull_ratio
    return snapshot.full_ratio


def with_too_full(state: str, reason: str, entries: Sequence[TooFull]) -> str:
    """Returns the reason of a state. The first entry comes before it if moves may wait for that in
    this state."""
    if not entries or state not in HELD_UP:
        return reason
    more = len(entries) - 1
    others = ""
    if more:
        others = f"; {plural(more, 'more OSD is', 'more OSDs are')} too full"
    # the command of the reason is not the first thing to do
    return re.sub(r"; run '[^']*'", "", f"{entries[0].sentence()}{others}; {reason}")


def _too_full_osds(snapshot: Snapshot, pg: Pg, state: str) -> List[Tuple[int, float]]:
    """Returns (OSD that is too full for the PG, its utilization, with the shard if that is to be
    backfilled). If statistics show no such OSD, returns the fullest."""
    ratio = _full_ratio_of(snapshot, state)
    osds = [osd for osd in sorted(set(pg.up + pg.acting))
            if osd in snapshot.osds and snapshot.osds[osd].has_statistics]
    if state == BACKFILL_TOOFULL:
        targets = [osd for osd in osds if osd not in pg.acting]
        osds = targets or [osd for osd in osds if osd in pg.up]
    after: Dict[int, float] = {}
    for number in osds:
        osd = snapshot.osds[number]
        used = osd.used_bytes
        if state == BACKFILL_TOOFULL:
            used += snapshot.shard_bytes(pg, number, pg.up)
        after[number] = used / osd.size_bytes
    too_full = [(number, used) for number, used in after.items() if used >= ratio]
    if too_full or not after:
        return too_full
    fullest = max(after, key=lambda number: after[number])
    return [(fullest, max(after[fullest], ratio))]


class WillNotFit(NamedTuple):
    """An OSD that passes a full ratio with its incoming shards; ratios are of its size."""

    osd: int
    device_class: str
    utilization: float        # now
    soon_utilization: float   # once everything in flight has arrived
    ratio_name: str           # the highest ratio of the osdmap that it passes
    ratio: float
    bytes: int                # above that ratio


#: The data of an OSD has changed if its used bytes differ by more than this ratio of its size.
_DRIFT = 0.01
#: Seconds after a snapshot until PGs that were sent just before it have peered and reported.
_COUNTED_SECONDS = 20.0
#: The keys of `troubles`: OSDs that are down or above full_ratio, pools with inactive PGs, or with
#: PGs that nobody has reported to this mgr, and (under 0) PGs that have no OSD for a shard.
DOWN, FULL, INACTIVE, UNREPORTED, STRANDED = "down", "full", "inactive", "unreported", "stranded"
#: Reasons of PGs that lack an OSD for a shard: also while a stretched cluster has lost a site.
_SHORT = (NO_OSD_FOR_SHARD, DEGRADED_STRETCH)


class ClusterView(NamedTuple):
    """Figures of one snapshot; misplaced ratios are of object copies, as Ceph counts them."""

    snapshot: Snapshot
    classes_soon: Mapping[str, ClassUsage]   # once all has arrived; without drained OSDs
    soon: Callable[[], Usage]                # all figures once all has arrived, computed once
    counts: PlacementCounts
    utilization_bounds: Optional[UtilizationBounds]   # None if it could not be computed
    max_misplaced_ratio: float
    builtin_active: bool
    classes_now: Mapping[str, ClassUsage]    # as OSDs that are in report them, drained ones too
    too_full: Tuple[TooFull, ...]            # PGs that wait for an OSD
    misplaced_copies: int   # by Ceph's count, which may be newer than the snapshot
    uncounted_copies: int   # object copies that we misplace and the snapshot does not count
    used_now: Mapping[int, int]   # OSD id → used bytes as it reports them
    movements: Tuple[Movement, ...]   # every shard in flight, whoever moves it
    moving: MovingTotals   # their sums
    #: OSD id → used bytes once everything in flight has arrived, including our moves that
    #: statistics do not show yet
    used_soon: Mapping[int, int]
    growth_now: Callable[[], Optional[Mapping[int, float]]]   # growth_bytes of `counts.now`
    #: OSD id → used bytes of its device, if its size_factor is not 1
    device_used_now: Mapping[int, int]
    #: DOWN … → id → when it was first seen, seconds since the epoch
    troubles: Mapping[str, Mapping[int, float]]
    rates: TransferRates = TransferRates()   # at which shards have arrived so far
    #: when the oldest report among OSDs that are up and in was first seen, seconds since the epoch
    statistics_at: Optional[float] = None
    stale_osds: FrozenSet[int] = frozenset()   # up and in, with stale statistics
    #: OSD of our moves on a rotating disk → its osd_max_backfills, if above 1; a sample
    stacked_backfills: Mapping[int, int] = {}
    copying_options: Mapping[str, Any] = {}   # of Ceph: how much an OSD copies at a time
    client_latency: Optional[ClientLatency] = None   # None: nothing of ours moves
    loads: Mapping[int, float] = {}   # OSD id → its load; empty while none is known (plan/load.py)

    @property
    def usage(self) -> Usage:
        """Returns the figures once everything in flight has arrived. Computed at the first use,
        because that is a pass over all pools and OSDs."""
        return self.soon()

    def usage_now(self) -> Usage:
        """Returns the figures of now: the OSDs' reports, and data that moves where it still is.
        Computed at each call, which is a pass over all pools and OSDs."""
        return counted_usage(self.snapshot, self.used_now, self.counts.now,
                             self.growth_now(), self.classes_now or None)

    def planned(self, changes: Iterable[PgChange]) -> Placement:
        """Returns the placement once everything in flight has arrived and the changes are made."""
        return Placement(self.snapshot, {}, self.used_soon, self.counts.soon).after(changes)

    @property
    def misplaced_ratio(self) -> float:
        """Returns the misplaced object copies as a ratio of all: Ceph's count, and ours that its
        snapshot could not show.

        If Ceph's count has grown since the snapshot, it now shows as many of ours. Once all OSDs
        have reported for a while it shows all.
        """
        snapshot = self.snapshot
        if not snapshot.object_copies:
            return 0.0
        copies = self.misplaced_copies
        is_counted = (self.statistics_at or 0.0) > snapshot.taken_at + _COUNTED_SECONDS
        if not is_counted:
            grown = max(0, copies - snapshot.misplaced_copies)
            copies += max(0, self.uncounted_copies - grown)
        return copies / snapshot.object_copies

    def utilization_now(self, osd: int) -> float:
        """Returns the utilization that the OSD reports; 0 if its size is unknown."""
        found = self.snapshot.osds[osd]
        return self.used_now.get(osd, found.used_bytes) / max(1, found.size_bytes)

    @property
    def has_drifted(self) -> bool:
        """Returns True if OSDs report clearly different figures than in the snapshot.

        Also if PGs were misplaced then and none is now: OSDs report an arrival before its PG does.
        """
        was_moving = self.movements or self.snapshot.misplaced_copies
        if was_moving and not self.misplaced_ratio:
            return True
        for osd in self.snapshot.osds.values():
            difference = self.used_now.get(osd.id, osd.used_bytes) - osd.used_bytes
            if abs(difference) > _DRIFT * osd.size_bytes:
                return True
        return False

    def will_not_fit(self) -> List[WillNotFit]:
        """Returns the OSDs that pass a full ratio with their incoming shards, the fullest first."""
        snapshot = self.snapshot
        found: List[WillNotFit] = []
        ratios = (("full_ratio", snapshot.full_ratio),
                  ("backfillfull_ratio", snapshot.backfillfull_ratio),
                  ("nearfull_ratio", snapshot.nearfull_ratio))
        for osd in piecewise(snapshot.osds.values(), _OSDS_A_PIECE):
            if not osd.inbound_bytes or not osd.has_statistics:
                continue
            now = self.utilization_now(osd.id)
            soon = self.used_soon[osd.id] / osd.size_bytes
            for name, ratio in ratios:
                if now <= ratio < soon:
                    more = osd.device_bytes(int((soon - ratio) * osd.size_bytes))
                    found.append(WillNotFit(
                        osd.id, osd.device_class, now, soon, name, ratio, more))
                    break
        return sorted(found, key=lambda one: -one.soon_utilization)

    @property
    def bounds(self) -> Dict[str, float]:
        """Returns OSD set → the lowest utilization of its fullest OSD that the rules allow."""
        if self.utilization_bounds is None:
            return {}
        return self.utilization_bounds.highest


def make_view(snapshot: Snapshot, bounds: Optional[UtilizationBounds], pending: PendingMoves,
              max_misplaced_ratio: float, builtin_active: bool, sent: Container[str] = (),
              before: Optional[ClusterView] = None,
              steered: Container[str] = (),
              logged: Mapping[str, Any] = {}) -> ClusterView:
    """Makes the view of a snapshot.

    `pending`: our moves. Ceph's own counts may not show all of them yet. `sent`: PGs that this
    mgr or the last one has moved at some time. `before`: the view that this one replaces.
    `steered`, `logged`: as in `movements`.
    """
    moved_before: Sequence[Movement] = ()
    earlier: Optional[Snapshot] = None
    troubles: Mapping[str, Mapping[int, float]] = {}
    if before is not None:
        moved_before = before.movements
        earlier = before.snapshot
        troubles = before.troubles
    counts = count_placement(snapshot)
    give_way()
    used = {osd.id: osd.used_bytes for osd in snapshot.osds.values()}
    give_way()
    target = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    flying = movements(snapshot, snapshot.in_flight().values(), pending.entries, sent,
                       moved_before, earlier, steered, logged)
    give_way()
    classes_now = class_usage(snapshot, used, with_drained=True)
    classes_soon = class_usage(snapshot, target)
    give_way()
    return ClusterView(
        snapshot=snapshot,
        classes_soon=classes_soon,
        soon=lru_cache(1)(
            lambda: counted_usage(snapshot, target, counts.soon, classes=classes_soon)),
        utilization_bounds=bounds,
        counts=counts,
        builtin_active=builtin_active,
        misplaced_copies=snapshot.misplaced_copies,
        uncounted_copies=pending.uncounted_copies(snapshot, as_degraded=False),
        max_misplaced_ratio=max_misplaced_ratio,
        classes_now=classes_now,
        too_full=find_too_full(snapshot),
        used_now=used,
        movements=flying,
        moving=moving_totals(flying),
        used_soon=_with_unseen(snapshot, target, pending),
        growth_now=lru_cache(1)(partial(growth_bytes, snapshot, counts.now)),
        device_used_now={osd.id: osd.device[1] for osd in snapshot.osds.values()
                         if osd.size_factor != 1.0},
        loads=osd_loads(snapshot),
        troubles=_troubles(snapshot, troubles))


def _with_unseen(snapshot: Snapshot, target: Mapping[int, int],
                 pending: PendingMoves) -> Dict[int, int]:
    """Returns OSD → used bytes of `target`, with our pending moves that the snapshot does not
    show."""
    used = dict(target)
    for entry in unseen(snapshot, pending.entries):
        for osd, size in entry.gains:
            if osd in used:
                used[osd] += size
        for osd, size in entry.losses:
            if osd in used:
                used[osd] = max(0, used[osd] - size)
    return used


def _troubles(snapshot: Snapshot, before: Mapping[str, Mapping[int, float]]
              ) -> Dict[str, Dict[int, float]]:
    """Returns the troubles of a snapshot. `before`: those of the last view."""
    found: Dict[str, Dict[int, float]] = {
        DOWN: {}, FULL: {}, INACTIVE: {}, UNREPORTED: {}, STRANDED: {}}

    def note(what: str, one: int) -> None:
        found[what][one] = before.get(what, {}).get(one, snapshot.taken_at)

    for osd in snapshot.osds.values():
        if not osd.up and not osd.destroyed:
            note(DOWN, osd.id)
        if osd.up and osd.is_in and osd.exceeds(snapshot.full_ratio):
            note(FULL, osd.id)
    for pool, states in snapshot.pool_states.items():
        if states.inactive > states.unreported:
            note(INACTIVE, pool)
        if states.unreported:
            note(UNREPORTED, pool)
    if not snapshot.skipped.keys().isdisjoint(_SHORT):
        note(STRANDED, 0)
    return found


def with_figures_of_now(view: ClusterView, summary: ClusterSummary,
                        map_fields: Mapping[str, Any] = {}) -> ClusterView:
    """Returns the view with utilizations, misplaced copies, flags, full ratios and troubles of now.

    Shards in flight stay as in the snapshot, and so does the predicted usage of their OSDs: nobody
    knows how many of the new bytes there are of clients. `map_fields`: of the newest osdmap, as
    `map_fields` of snapshot/osds.py returns them; without them flags and full ratios stay.
    """
    snapshot = view.snapshot
    pool_states = {number: _states_now(states, summary.pools.get(number))
                   for number, states in snapshot.pool_states.items()}
    fields = {**map_fields, "epoch": snapshot.epoch, "pool_states": pool_states}
    observed = snapshot._replace(**fields)
    device_used = dict(view.device_used_now)
    for number in view.device_used_now:
        reported = summary.osds.get(number)
        if reported is not None and reported.used_bytes is not None:
            device_used[number] = reported.used_bytes
    moving: Set[Optional[int]] = set()
    for move in view.movements:
        moving.update((move.source, move.target))
    osds: Dict[int, Osd] = {}
    used: Dict[int, int] = {}
    target: Dict[int, int] = {}
    used_soon = dict(view.used_soon)
    for number, osd in snapshot.osds.items():
        one = _osd_now(osd, summary.osds.get(number))
        grown = 0 if number in moving else one.used_bytes - osd.used_bytes
        osds[number], used[number] = one, one.used_bytes
        target[number] = osd.target_bytes + grown
        used_soon[number] += grown
    # with it, the fullest OSD of a class is one that is up now
    now = observed._replace(taken_at=summary.taken_at, osds=osds)
    return view._replace(
        snapshot=observed,
        misplaced_copies=summary.misplaced_copies,
        classes_now=class_usage(now, used, with_drained=True),
        used_now=used,
        device_used_now=device_used,
        used_soon=used_soon,
        utilization_bounds=_bounds_now(view.utilization_bounds, now, used_soon),
        soon=lru_cache(1)(lambda: counted_usage(snapshot, target, view.counts.soon)),
        builtin_active=summary.builtin_active,
        statistics_at=summary.statistics_at,
        stale_osds=summary.stale_osds,
        troubles=_troubles(now, view.troubles))


def _bounds_now(bounds: Optional[UtilizationBounds], now: Snapshot,
                used_soon: Mapping[int, int]) -> Optional[UtilizationBounds]:
    """Returns the bounds of OSD sets, each at least the mean predicted utilization of its OSDs that
    are up. The bounds of the snapshot lack PGs that cannot peer, and what clients have written
    since."""
    if bounds is None:
        return None
    sets: List[OsdSet] = []
    for osd_set in bounds.sets:
        least = size = inbound = outbound = 0
        for number in osd_set.osds:
            osd = now.osds[number]
            if osd.up:
                least += used_soon[number]
                size += osd.size_bytes
                inbound += osd.inbound_bytes
                outbound += osd.outbound_bytes
        if not inbound:   # shards that seem to leave have left
            least += outbound
        sets.append(osd_set._replace(bound=max(osd_set.bound, least / max(1, size))))
    highest = {**bounds.highest, **{one.name: one.bound for one in sets}}
    return bounds._replace(sets=tuple(sets), highest=highest)


def _osd_now(osd: Osd, reported: Optional[OsdSummary]) -> Osd:
    """Returns the OSD as it is reported now. Sizes and shards in flight stay as in the snapshot."""
    if reported is None:
        return osd
    used = osd.used_bytes
    if reported.used_bytes is not None:
        used = int(reported.used_bytes / osd.size_factor)
    return osd._replace(up=reported.up, is_in=reported.is_in, used_bytes=used)


def _states_now(observed: PgStateCounts, pool: Optional[PoolSummary]) -> PgStateCounts:
    """Returns the counts with the inactive PGs of now. Only a snapshot shows which PGs look
    degraded just because they move."""
    if pool is None:
        return observed
    return count_states(pool.states)._replace(degraded=observed.degraded)
