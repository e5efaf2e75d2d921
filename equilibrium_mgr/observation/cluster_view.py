"""The view that commands read, computed once a look: figures of the OSDs, counts of shards by pool
and OSD, PGs that Ceph holds up because an OSD is too full for them; and the names of the loop's
states.
"""
from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache, partial
from typing import (
    Any, Callable, Container, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional,
    Sequence, Tuple)

from ..execution.pending_moves import PendingMoves
from ..execution.throttle import unseen
from ..gateway.cluster_summary import ClusterSummary, OsdSummary, PoolSummary
from ..plan.model import ClassUsage, PgChange, Usage
from ..plan.placement import Placement
from ..plan.usage import (
    ShardCounts, class_usage, counted_usage, growth_bytes, recount, shard_counts)
from ..planner.bound.lower_bound import UtilizationBounds
from ..runtime.formatting import named, plural
from ..runtime.time_slice import give_way, piecewise
from ..snapshot.immovable_reasons import DEGRADED_STRETCH, NO_OSD_FOR_SHARD
from ..snapshot.model import Osd, Pg, PgStateCounts, Snapshot, pg_number
from ..snapshot.pg_states import BACKFILL_TOOFULL, RECOVERY_TOOFULL, TOOFULL
from ..snapshot.pools import count_states
from .client_latency import ClientLatency
from .movements import Movement, MovingTotals, TransferRates, movements, moving_totals


#: Counted, and asked for their states, before it gives way again: about a millisecond.
_PGS_A_PIECE, _STATES_A_PIECE, _OSDS_A_PIECE = 200, 2000, 1000


class PlacementCounts(NamedTuple):
    """Immutable. Shards are counted by their weight (plan/usage.py) where they are ShardCounts."""

    soon: ShardCounts                  # by the up sets
    #: by the OSDs that hold them; of pools at rest the very ones of `soon`
    now: ShardCounts
    acting: Mapping[int, int]          # OSD id → PGs, by acting sets


def count_placement(snapshot: Snapshot) -> PlacementCounts:
    """The counts of a snapshot."""
    soon = shard_counts(snapshot)
    acting: Counter[int] = Counter()
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        acting.update(pg.acting)
    now: Dict[int, Dict[int, float]] = {}
    for pg in snapshot.in_flight().values():
        if pg.pool not in now:
            now[pg.pool] = dict(soon[pg.pool])
        recount(now[pg.pool], snapshot.pools[pg.pool], pg.pgid, pg.up, pg.holders)
    return PlacementCounts(soon, {**soon, **now}, acting)


OFF, WAITING, BLOCKED, THROTTLED = "off", "waiting", "blocked", "throttled"
PLANNING, MOVING, BALANCED, STUCK = "planning", "moving", "balanced", "stuck"
STATES = (OFF, WAITING, BLOCKED, THROTTLED, PLANNING, MOVING, BALANCED, STUCK)


_PGS_NAMED = 3
#: States in which something waits, or might.
HELD_UP = (BLOCKED, THROTTLED, MOVING, WAITING, STUCK, BALANCED)
#: No command is named that would let an OSD fill further than this.
HIGHEST_RATIO = 0.98
#: Nor one that would let backfill fill an OSD so near to full_ratio.
_MARGIN = 0.02


class TooFull(NamedTuple):
    """PGs in one state for one OSD; ratios are of the OSD's size."""

    state: str
    osd: int
    utilization: float   # now
    ratio: float         # the cluster's limit that it is above
    needed: float        # a limit that would let all PGs in that state go on
    pgids: Tuple[str, ...]

    @property
    def ratio_name(self) -> str:
        """The ratio of the osdmap that holds the PGs up."""
        return "backfillfull_ratio" if self.state == BACKFILL_TOOFULL else "full_ratio"

    def command(self, full_ratio: float) -> Optional[str]:
        """The command that lets the PGs go on; None where no ratio below the next one is enough."""
        highest = HIGHEST_RATIO if self.state == RECOVERY_TOOFULL else full_ratio - _MARGIN
        return None if self.needed > highest else (
            f"ceph osd set-{self.ratio_name.replace('_', '-')} {self.needed:.2f}")

    def sentence(self) -> str:
        """For people: the PGs and the OSD."""
        verb = "is" if self.utilization >= self.ratio else "with what comes would be"
        return (f"pg {named(self.pgids, _PGS_NAMED)} in {self.state}: osd.{self.osd} {verb} too"
                f" full, at {self.utilization:.2%} with {self.ratio_name} {self.ratio:.2%}")

    def to_json(self, full_ratio: float) -> Dict[str, Any]:
        """The same, JSON-ready."""
        return {"state": self.state, "osd": self.osd, "utilization": self.utilization,
                self.ratio_name: self.ratio, "pgs": len(self.pgids),
                "pgids": list(self.pgids[:_PGS_NAMED]), "command": self.command(full_ratio)}


def find_too_full(snapshot: Snapshot) -> Tuple[TooFull, ...]:
    """Finds them by the states of the PGs; those that hold up most PGs first.

    Ceph refuses backfill to a target that would pass backfillfull_ratio, and recovery, which is
    how PGs with short histories move, while any OSD of the PG is above full_ratio
    (PeeringState::WaitLocalRecoveryReserved), be it the one that the shard is to leave.
    """
    found: Dict[Tuple[str, int], List[str]] = {}
    needed: Dict[Tuple[str, int], float] = {}
    waiting = [pg for pg in piecewise(snapshot.pgs.values(), _STATES_A_PIECE)
               if TOOFULL in pg.state]
    for pg in sorted(waiting, key=lambda pg: (pg.pool, pg_number(pg.pgid))):
        state = BACKFILL_TOOFULL if BACKFILL_TOOFULL in pg.state else RECOVERY_TOOFULL
        for osd, utilization in _too_full_osds(snapshot, pg, state):
            found.setdefault((state, osd), []).append(pg.pgid)
            one = snapshot.osds[osd]
            needed[state, osd] = max(
                needed.get((state, osd), 0.0), utilization,
                (one.used_bytes + one.inbound_bytes) / one.size_bytes if state == BACKFILL_TOOFULL else 0.0)
    entries = []
    for (state, osd), held in found.items():
        # one ratio is for all OSDs
        most = max(ratio for (other, _), ratio in needed.items() if other == state)
        entries.append(TooFull(
            state, osd, snapshot.osds[osd].utilization or 0.0,
            snapshot.backfillfull_ratio if state == BACKFILL_TOOFULL else snapshot.full_ratio,
            math.floor(100.0 * most) / 100.0 + 0.01, tuple(held)))
    return tuple(sorted(entries, key=lambda e: (-len(e.pgids), e.state, e.osd)))


def with_too_full(state: str, reason: str, entries: Sequence[TooFull]) -> str:
    """The reason of a state in which something waits, behind the first entry."""
    if not entries or state not in HELD_UP:
        return reason
    more = len(entries) - 1
    others = f"; {plural(more, 'more OSD is', 'more OSDs are')} too full" if more else ""
    # what ends that is not what is to be done first
    return re.sub(r"; run '[^']*'", "", f"{entries[0].sentence()}{others}; {reason}")


def _too_full_osds(snapshot: Snapshot, pg: Pg, state: str) -> List[Tuple[int, float]]:
    """OSDs that are too full for the PG, with the utilization that its movement takes them to;
    where their statistics show none, the fullest."""
    ratio = snapshot.backfillfull_ratio if state == BACKFILL_TOOFULL else snapshot.full_ratio
    osds = [osd for osd in sorted(set(pg.up + pg.acting))
            if osd in snapshot.osds and snapshot.osds[osd].has_statistics]
    if state == BACKFILL_TOOFULL:
        osds = [osd for osd in osds if osd not in pg.acting] or [
            osd for osd in osds if osd in pg.up]
    after = {osd: (snapshot.osds[osd].used_bytes + (
        snapshot.shard_bytes(pg, osd, pg.up) if state == BACKFILL_TOOFULL else 0))
        / snapshot.osds[osd].size_bytes for osd in osds}
    fullest = max(after, key=lambda osd: after[osd], default=-1)
    return [(osd, used) for osd, used in after.items() if used >= ratio] or (
        [(fullest, max(after[fullest], ratio))] if after else [])


class WillNotFit(NamedTuple):
    """An OSD that passes a full ratio with what comes to it; ratios are of its size."""

    osd: int
    device_class: str
    utilization: float        # now
    soon_utilization: float   # once everything in flight has arrived
    ratio_name: str           # the highest ratio of the osdmap that it passes
    ratio: float
    bytes: int                # above that ratio


#: Used bytes that differ by more than this ratio of an OSD are other ones.
_DRIFT = 0.01
#: Seconds after a look by which PGs that were sent a moment before it have peered and reported.
_COUNTED_SECONDS = 20.0
#: What `troubles` holds: OSDs that are down or above full_ratio, pools with inactive PGs, or with
#: PGs that nobody has reported to this mgr, and (under 0) PGs that have no OSD for a shard.
DOWN, FULL, INACTIVE, UNREPORTED, STRANDED = "down", "full", "inactive", "unreported", "stranded"
#: PGs of a cluster that has lost a site lack shards, too, where their pools do not want more.
_SHORT = (NO_OSD_FOR_SHARD, DEGRADED_STRETCH)


class ClusterView(NamedTuple):
    """Figures of one observation; misplaced ratios are of object copies, as Ceph counts them."""

    snapshot: Snapshot
    classes_soon: Mapping[str, ClassUsage]   # once all has arrived; without drained OSDs
    soon: Callable[[], Usage]                # all figures of then, computed once
    counts: PlacementCounts
    utilization_bounds: Optional[UtilizationBounds]   # None where it could not be computed
    max_misplaced_ratio: float
    builtin_active: bool
    classes_now: Mapping[str, ClassUsage]    # as OSDs that are in report them, drained ones too
    too_full: Tuple[TooFull, ...]            # PGs that stand still for an OSD
    misplaced_copies: int   # by Ceph's count, which may be newer than the snapshot
    uncounted_copies: int   # object copies that we misplaced and the snapshot does not count
    used_now: Mapping[int, int]   # OSD id → used bytes as it reports them
    movements: Tuple[Movement, ...]   # every shard in flight, whoever moves it
    moving: MovingTotals   # their sums
    #: OSD id → used bytes once everything in flight has arrived, ours that statistics do not show
    #: yet included
    used_soon: Mapping[int, int]
    growth_now: Callable[[], Optional[Mapping[int, float]]]   # of `counts.now`
    #: OSD id → used bytes as its device has them, where its size_factor is not 1
    device_used_now: Mapping[int, int]
    #: DOWN … → id → when it was seen first, seconds since the epoch
    troubles: Mapping[str, Mapping[int, float]]
    rates: TransferRates = TransferRates()   # at which shards have arrived so far
    #: seconds since the epoch: first sight of the oldest report among OSDs that are up and in
    statistics_at: Optional[float] = None
    stale_osds: FrozenSet[int] = frozenset()   # up and in, but silent for too long
    #: OSD on a rotating disk → its osd_max_backfills, where that is above 1, of a few of our moves
    stacked_backfills: Mapping[int, int] = {}
    copying_options: Mapping[str, Any] = {}   # of Ceph: how much an OSD copies at a time
    client_latency: Optional[ClientLatency] = None   # None: nothing of ours moves

    @property
    def usage(self) -> Usage:
        """The figures once everything in flight has arrived. Computed when they are first asked
        for: that is a pass over all pools and OSDs."""
        return self.soon()

    def usage_now(self) -> Usage:
        """Figures of now: what OSDs report, and where data is before it has arrived elsewhere.
        Computed when it is asked for: that is a pass over all pools and OSDs."""
        return counted_usage(self.snapshot, self.used_now, self.counts.now,
                             self.growth_now(), self.classes_now or None)

    def planned(self, changes: Iterable[PgChange]) -> Placement:
        """When everything in flight has arrived and the changes have been made."""
        return Placement(self.snapshot, {}, self.used_soon, self.counts.soon).after(changes)

    @property
    def misplaced_ratio(self) -> float:
        """Misplaced object copies, Ceph's count and ours that were unseen in its snapshot, as a
        ratio of all. What that count has grown by since is what it could not show then; once all
        OSDs have reported for a while it shows everything."""
        grown = max(0, self.misplaced_copies - self.snapshot.misplaced_copies)
        is_counted = (self.statistics_at or 0.0) > self.snapshot.taken_at + _COUNTED_SECONDS
        copies = self.misplaced_copies + (
            0 if is_counted else max(0, self.uncounted_copies - grown))
        return copies / self.snapshot.object_copies if self.snapshot.object_copies else 0.0

    def utilization_now(self, osd: int) -> float:
        """Returns what the OSD reports, as a ratio of its size; 0 where that is not known."""
        found = self.snapshot.osds[osd]
        return self.used_now.get(osd, found.used_bytes) / max(1, found.size_bytes)

    @property
    def has_drifted(self) -> bool:
        """True where OSDs report clearly other figures now than at the look, and where all that was
        on its way then has arrived, which some OSD may have reported before its PG did."""
        was_moving = self.movements or self.snapshot.misplaced_copies
        return bool(was_moving and not self.misplaced_ratio) or any(
            abs(self.used_now.get(osd.id, osd.used_bytes) - osd.used_bytes)
            > _DRIFT * osd.size_bytes for osd in self.snapshot.osds.values())

    def will_not_fit(self) -> List[WillNotFit]:
        """Returns the OSDs that pass a full ratio with what comes, the fullest first."""
        snapshot, found = self.snapshot, []
        ratios = (("full_ratio", snapshot.full_ratio),
                  ("backfillfull_ratio", snapshot.backfillfull_ratio),
                  ("nearfull_ratio", snapshot.nearfull_ratio))
        for osd in piecewise(snapshot.osds.values(), _OSDS_A_PIECE):
            if not osd.inbound_bytes or not osd.has_statistics:
                continue
            now, soon = self.utilization_now(osd.id), self.used_soon[osd.id] / osd.size_bytes
            for name, ratio in ratios:
                if now <= ratio < soon:
                    more = osd.device_bytes(int((soon - ratio) * osd.size_bytes))
                    found.append(WillNotFit(
                        osd.id, osd.device_class, now, soon, name, ratio, more))
                    break
        return sorted(found, key=lambda one: -one.soon_utilization)

    @property
    def bounds(self) -> Dict[str, float]:
        """OSD set → the lowest highest utilization that the rules allow, a ratio."""
        return (self.utilization_bounds.highest if self.utilization_bounds is not None
                else {})


def make_view(snapshot: Snapshot, bounds: Optional[UtilizationBounds], pending: PendingMoves,
              max_misplaced_ratio: float, builtin_active: bool, sent: Container[str] = (),
              before: Optional[ClusterView] = None) -> ClusterView:
    """`pending`: what we have sent, some of which Ceph's own counts may not show yet. `sent`: PGs
    that were sent a while ago, by the last mgr too. `before`: the view that this one replaces."""
    counts = count_placement(snapshot)
    give_way()
    used = {osd.id: osd.used_bytes for osd in snapshot.osds.values()}
    give_way()
    target = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    used_soon = dict(target)
    for entry in unseen(snapshot, pending.entries):
        for shards, sign in ((entry.gains, 1), (entry.losses, -1)):
            for osd, size in shards:
                if osd in used_soon:
                    used_soon[osd] = max(0, used_soon[osd] + sign * size)
    flying = movements(snapshot, snapshot.in_flight().values(), pending.entries, sent,
                       before.movements if before is not None else (),
                       before.snapshot if before is not None else None)
    give_way()
    classes_now = class_usage(snapshot, used, with_drained=True)
    classes_soon = class_usage(snapshot, target)
    give_way()
    return ClusterView(
        snapshot=snapshot, classes_soon=classes_soon, soon=lru_cache(1)(
            lambda: counted_usage(snapshot, target, counts.soon, classes=classes_soon)),
        utilization_bounds=bounds, counts=counts,
        builtin_active=builtin_active, misplaced_copies=snapshot.misplaced_copies,
        uncounted_copies=pending.uncounted_copies(snapshot, as_degraded=False),
        max_misplaced_ratio=max_misplaced_ratio, classes_now=classes_now,
        too_full=find_too_full(snapshot),
        used_now=used, movements=flying, moving=moving_totals(flying),
        used_soon=used_soon, growth_now=lru_cache(1)(partial(growth_bytes, snapshot, counts.now)),
        device_used_now={osd.id: osd.device[1] for osd in snapshot.osds.values()
                         if osd.size_factor != 1.0},
        troubles=_troubles(snapshot, before.troubles if before is not None else {}))


def _troubles(snapshot: Snapshot, before: Mapping[str, Mapping[int, float]]
              ) -> Dict[str, Dict[int, float]]:
    osds = snapshot.osds.values()
    found = {DOWN: [osd.id for osd in osds if not osd.up and not osd.destroyed],
             FULL: [osd.id for osd in osds if osd.up and osd.is_in and osd.exceeds(
                 snapshot.full_ratio)],
             INACTIVE: [pool for pool, states in snapshot.pool_states.items()
                        if states.inactive > states.unreported],
             UNREPORTED: [pool for pool, states in snapshot.pool_states.items()
                          if states.unreported],
             STRANDED: [0] * any(reason in snapshot.skipped for reason in _SHORT)}
    return {what: {one: before.get(what, {}).get(one, snapshot.taken_at) for one in ones}
            for what, ones in found.items()}


def with_figures_of_now(view: ClusterView, summary: ClusterSummary,
                        map_fields: Mapping[str, Any] = {}) -> ClusterView:
    """Returns the view with utilizations, misplaced copies, flags, full ratios and troubles of now.
    What is in flight stays as observed, and so does the usage that it leads to of OSDs that it
    concerns: there nobody knows how much of what has come since is of clients. `map_fields`: of
    the newest osdmap, as `map_fields` of snapshot/osds.py returns them."""
    snapshot = view.snapshot
    observed = snapshot._replace(**{**map_fields, "epoch": snapshot.epoch}, pool_states={
        number: _states_now(states, summary.pools.get(number))
        for number, states in snapshot.pool_states.items()})
    now = observed._replace(taken_at=summary.taken_at, osds={
        number: _osd_now(osd, summary.osds.get(number)) for number, osd in snapshot.osds.items()})
    used = {osd.id: osd.used_bytes for osd in now.osds.values()}
    device_used = dict(view.device_used_now)
    for osd in view.device_used_now:
        reported = summary.osds.get(osd)
        if reported is not None and reported.used_bytes is not None:
            device_used[osd] = reported.used_bytes
    moving = {osd for move in view.movements for osd in (move.source, move.target)}
    grown = {osd.id: used[osd.id] - osd.used_bytes
             for osd in snapshot.osds.values() if osd.id not in moving}
    used_soon = {osd: count + grown.get(osd, 0) for osd, count in view.used_soon.items()}
    target = {osd.id: osd.target_bytes + grown.get(osd.id, 0) for osd in snapshot.osds.values()}
    return view._replace(
        snapshot=observed, misplaced_copies=summary.misplaced_copies,
        classes_now=class_usage(now, used, with_drained=True),   # the fullest is up now
        used_now=used, device_used_now=device_used,
        used_soon=used_soon, utilization_bounds=_bounds_now(
            view.utilization_bounds, now, used_soon),
        soon=lru_cache(1)(lambda: counted_usage(snapshot, target, view.counts.soon)),
        builtin_active=summary.builtin_active, statistics_at=summary.statistics_at,
        stale_osds=summary.stale_osds, troubles=_troubles(now, view.troubles))


def _bounds_now(bounds: Optional[UtilizationBounds], now: Snapshot,
                used_soon: Mapping[int, int]) -> Optional[UtilizationBounds]:
    """Returns the bounds of OSD sets, none of them below the mean of what its OSDs will hold: they
    lack PGs that cannot peer, and what clients have written since the look."""
    if bounds is None:
        return None
    sets = []
    for osd_set in bounds.sets:
        osds = [now.osds[osd] for osd in osd_set.osds if now.osds[osd].up]
        least = sum(used_soon[osd.id] for osd in osds)
        if not any(osd.inbound_bytes for osd in osds):   # what seems to leave has left
            least += sum(osd.outbound_bytes for osd in osds)
        size = sum(osd.size_bytes for osd in osds)
        sets.append(osd_set._replace(bound=max(osd_set.bound, least / max(1, size))))
    highest = {**bounds.highest, **{one.name: one.bound for one in sets}}
    return bounds._replace(sets=tuple(sets), highest=highest)


def _osd_now(osd: Osd, reported: Optional[OsdSummary]) -> Osd:
    """Returns the OSD as it is reported now; sizes and what is in flight stay as observed."""
    if reported is None:
        return osd
    used = osd.used_bytes
    if reported.used_bytes is not None:
        used = int(reported.used_bytes / osd.size_factor)
    return osd._replace(up=reported.up, is_in=reported.is_in, used_bytes=used)


def _states_now(observed: PgStateCounts, pool: Optional[PoolSummary]) -> PgStateCounts:
    """Returns the counts with the inactive PGs of now. Which PGs only look degraded because they
    move, a look alone tells."""
    if pool is None:
        return observed
    return count_states(pool.states)._replace(degraded=observed.degraded)
