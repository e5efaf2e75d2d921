"""Figures of the last observation, ready for `status`, `eval` and `explain`."""
from __future__ import annotations

from typing import Container, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..execution.osd_traffic import in_flight, unseen
from ..execution.pending_moves import PendingMove, PendingMoves
from ..gateway.cluster_summary import ClusterSummary
from ..plan.model import ClassUsage, Usage
from ..plan.usage import ShardCounts, class_usage, counted_usage, growth_bytes, shard_counts
from ..planner.bound.lower_bound import UtilizationBounds
from ..runtime.checkpoints import with_checkpoints
from ..runtime.time_slice import TimeSlice
from ..snapshot.model import Pg, Snapshot
from .movements import Movement, MovingTotals, movements, moving_totals
from .transfer_rates import TransferRates
from .too_full import TooFull, find_too_full

_PGS_A_PIECE = 1000   # counted between two checkpoints: a few milliseconds


class ClusterView(NamedTuple):
    """Figures of one observation; misplaced ratios are of object copies, as Ceph counts them."""

    snapshot: Snapshot
    usage: Usage         # once everything in flight has arrived
    utilization_bounds: Optional[UtilizationBounds]   # None where it could not be computed
    in_flight_moves: int
    in_flight_bytes: int
    misplaced_ratio: float
    max_misplaced_ratio: float
    builtin_active: bool
    classes_now: Mapping[str, ClassUsage] = {}   # as OSDs report them, nothing taken as arrived
    too_full: Tuple[TooFull, ...] = ()           # PGs that stand still for an OSD
    uncounted_copies: int = 0   # object copies that we misplaced and the snapshot does not count
    used_now: Mapping[int, int] = {}   # OSD id → used bytes as it reports them
    #: pool id → OSD id → shards, by the OSDs that hold them now
    shards_now: ShardCounts = {}
    movements: Tuple[Movement, ...] = ()   # every shard in flight, whoever moves it
    moving: MovingTotals = MovingTotals()  # their sums
    rates: TransferRates = TransferRates()   # at which shards have arrived so far
    #: OSD id → used bytes once everything in flight has arrived, ours that statistics do not show
    #: yet included
    used_soon: Mapping[int, int] = {}
    shards_soon: ShardCounts = {}   # as shards_now, by the up sets
    pgs_now: Mapping[int, int] = {}   # OSD id → PGs, by acting sets, as `ceph osd df` counts them
    growth_now: Optional[Mapping[int, float]] = None   # growth_bytes of `shards_now`
    #: seconds since the epoch: first sight of the oldest report among OSDs that are up and in
    statistics_at: Optional[float] = None
    stale_osds: FrozenSet[int] = frozenset()   # up and in, but silent for too long

    def usage_now(self) -> Usage:
        """Figures of now: what OSDs report, and where data is before it has arrived elsewhere.
        Computed when it is asked for: that is a pass over all pools and OSDs."""
        return counted_usage(self.snapshot, self.used_now, self.shards_now, self.growth_now,
                             self.classes_now or None)

    @property
    def bounds(self) -> Dict[str, float]:
        """Device class → the lowest highest utilization that the rules allow, a ratio."""
        return (self.utilization_bounds.classes if self.utilization_bounds is not None
                else {})


def make_view(snapshot: Snapshot, bounds: Optional[UtilizationBounds], pending: PendingMoves,
              max_misplaced_ratio: float, builtin_active: bool, sent: Container[str] = (),
              before: Optional[ClusterView] = None) -> ClusterView:
    """`pending`: what we have sent, some of which Ceph's own counts may not show yet. `sent`: PGs
    that were sent a while ago, by the last mgr too. `before`: the view that this one replaces."""
    moving = in_flight(snapshot, pending.entries)
    uncounted = pending.uncounted_copies(snapshot)
    used = {osd.id: osd.used_bytes for osd in snapshot.osds.values()}
    moving_pgs: List[Pg] = []
    acting: Dict[int, int] = {}
    held = shard_counts(snapshot, _holders(snapshot, moving_pgs, acting))
    flying = movements(snapshot, moving_pgs, pending.entries, sent,
                       before.movements if before is not None else (),
                       before.snapshot if before is not None else None)
    wanted = shard_counts(snapshot, ((pg, pg.up) for pg in with_checkpoints(
        snapshot.pgs.values(), _PGS_A_PIECE, TimeSlice())))
    usage = counted_usage(
        snapshot, {osd.id: osd.target_bytes for osd in snapshot.osds.values()}, wanted)
    return ClusterView(
        snapshot=snapshot, usage=usage, utilization_bounds=bounds,
        in_flight_moves=moving.moves, in_flight_bytes=moving.bytes,
        misplaced_ratio=misplaced_ratio(snapshot, snapshot.misplaced_copies, uncounted),
        max_misplaced_ratio=max_misplaced_ratio, builtin_active=builtin_active,
        classes_now=class_usage(snapshot, used), too_full=find_too_full(snapshot),
        uncounted_copies=uncounted, used_now=used, shards_now=held,
        used_soon=_used_soon(snapshot, pending.entries), shards_soon=wanted, pgs_now=acting,
        movements=flying, moving=moving_totals(flying), growth_now=growth_bytes(snapshot, held))


def _holders(snapshot: Snapshot, moving: List[Pg],
             acting: Dict[int, int]) -> Iterator[Tuple[Pg, Tuple[int, ...]]]:
    """Yields (PG, OSDs that hold it) of every PG; adds those that move to `moving`, and counts
    the PGs of each OSD in `acting`."""
    for pg in with_checkpoints(snapshot.pgs.values(), _PGS_A_PIECE, TimeSlice()):
        if pg.is_moving:
            moving.append(pg)
        for osd in pg.acting:
            acting[osd] = acting.get(osd, 0) + 1
        yield pg, pg.holders


def _used_soon(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> Dict[int, int]:
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    for entry in unseen(snapshot, pending):
        shard_bytes = entry.bytes // max(1, entry.shards)
        for osds, more in ((entry.targets, shard_bytes), (entry.sources, -shard_bytes)):
            for osd in osds:
                if osd in used:
                    used[osd] = max(0, used[osd] + more)
    return used


def with_figures_of_now(view: ClusterView, summary: ClusterSummary) -> ClusterView:
    """Returns the view with utilizations and misplaced copies of now; what is in flight, and the
    usage that it leads to, stay as observed."""
    used: Dict[int, int] = {}
    for osd in view.snapshot.osds.values():
        reported = summary.osds.get(osd.id)
        now = reported.used_bytes if reported is not None else None
        used[osd.id] = osd.used_bytes if now is None else now
    return with_misplaced(view, summary.misplaced_copies, view.uncounted_copies)._replace(
        classes_now=class_usage(view.snapshot, used), used_now=used,
        builtin_active=summary.builtin_active, statistics_at=summary.statistics_at,
        stale_osds=summary.stale_osds)


def with_misplaced(view: ClusterView, misplaced_copies: int, uncounted_copies: int) -> ClusterView:
    """The view with newer counts: Ceph's, and of our copies that were unseen in its snapshot."""
    ratio = misplaced_ratio(view.snapshot, misplaced_copies, uncounted_copies)
    return view._replace(misplaced_ratio=ratio, uncounted_copies=uncounted_copies)


def misplaced_ratio(snapshot: Snapshot, misplaced_copies: int, uncounted_copies: int) -> float:
    """Ceph's count and what we sent that it cannot show yet, as a ratio of all object copies.

    `misplaced_copies` may be newer than the snapshot: what it has grown by since is what it could
    not show then.
    """
    if not snapshot.object_copies:
        return 0.0
    grown = max(0, misplaced_copies - snapshot.misplaced_copies)
    return (misplaced_copies + max(0, uncounted_copies - grown)) / snapshot.object_copies

