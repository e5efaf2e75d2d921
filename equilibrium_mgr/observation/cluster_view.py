"""What the last look at the cluster came to, ready for `status`, `eval` and `explain`."""
from __future__ import annotations

import logging
from typing import Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple

from ..execution.pending_moves import PendingMoves
from ..gateway.cluster_summary import ClusterSummary
from ..plan.model import ClassUsage, Usage
from ..plan.usage import class_usage, snapshot_usage
from ..planner.bound.lower_bound import UtilizationBounds, utilization_bounds
from ..runtime.time_slice import TimeSlice
from ..snapshot.model import Snapshot
from .too_full import TooFull, find_too_full


class ClusterView(NamedTuple):
    """Figures of one look; ratios are of object copies, as Ceph counts what is misplaced."""

    snapshot: Snapshot
    usage: Usage
    utilization_bounds: Optional[UtilizationBounds]   # None where it could not be computed
    in_flight_moves: int
    in_flight_bytes: int
    misplaced_ratio: float
    max_misplaced_ratio: float
    builtin_active: bool
    classes_now: Mapping[str, ClassUsage] = {}   # as OSDs report them, nothing taken as arrived
    too_full: Tuple[TooFull, ...] = ()           # PGs that stand still for an OSD

    @property
    def bounds(self) -> Dict[str, float]:
        """Device class → the lowest highest utilization that the rules allow, a ratio."""
        return (self.utilization_bounds.classes if self.utilization_bounds is not None
                else {})


def make_view(snapshot: Snapshot, bounds: Optional[UtilizationBounds], pending: PendingMoves,
              max_misplaced_ratio: float, builtin_active: bool) -> ClusterView:
    """What is in flight counts whoever moves it, and what we sent though Ceph shows it not yet."""
    moving = snapshot.in_flight()
    shards = sum(len(snapshot.transfers(pg)[0]) or 1 for pg in moving.values())
    coming = sum(osd.inbound_bytes for osd in snapshot.osds.values())
    hidden = [entry for pgid, entry in pending.entries.items() if pgid not in moving]
    return ClusterView(
        snapshot=snapshot, usage=snapshot_usage(snapshot, TimeSlice()), utilization_bounds=bounds,
        in_flight_moves=shards + sum(entry.shards for entry in hidden),
        in_flight_bytes=coming + sum(entry.bytes for entry in hidden),
        misplaced_ratio=misplaced_ratio(snapshot, snapshot.misplaced_copies, pending),
        max_misplaced_ratio=max_misplaced_ratio, builtin_active=builtin_active,
        classes_now=class_usage(snapshot, {
            osd.id: osd.used_bytes for osd in snapshot.osds.values()}),
        too_full=find_too_full(snapshot))


def with_figures_of_now(view: ClusterView, summary: ClusterSummary, pending: PendingMoves) -> ClusterView:
    """How full OSDs are now, by what they have reported since the look, and what is misplaced; what
    is in flight, and what that will come to, stays as the look has it."""
    used: Dict[int, int] = {}
    for osd in view.snapshot.osds.values():
        reported = summary.osds.get(osd.id)
        now = reported.used_bytes if reported is not None else None
        used[osd.id] = osd.used_bytes if now is None else now
    return view._replace(
        classes_now=class_usage(view.snapshot, used), builtin_active=summary.builtin_active,
        misplaced_ratio=misplaced_ratio(view.snapshot, summary.misplaced_copies, pending))


def misplaced_ratio(snapshot: Snapshot, misplaced_copies: int, pending: PendingMoves) -> float:
    """Ceph's count and what we sent that it cannot show yet, as a ratio of all object copies.

    `misplaced_copies` may be newer than the snapshot: what it has grown by since is what it could
    not show then.
    """
    if not snapshot.object_copies:
        return 0.0
    unseen = pending.unseen_copies(snapshot)
    grown = max(0, misplaced_copies - snapshot.misplaced_copies)
    return (misplaced_copies + max(0, unseen - grown)) / snapshot.object_copies


def bounds_of(snapshot: Snapshot, log: logging.Logger,
              fixed_pools: FrozenSet[int] = frozenset()) -> Optional[UtilizationBounds]:
    """A figure for people: that it cannot be had must not keep moves from being made."""
    try:
        return utilization_bounds(snapshot, fixed_pools, checkpoint=TimeSlice())
    except Exception:
        log.exception("how even the cluster could be cannot be computed")
        return None
