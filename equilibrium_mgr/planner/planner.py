"""make_plan: from a snapshot and options to a plan."""
from __future__ import annotations

from collections import Counter
from typing import Dict, List, Sequence, Tuple

from ..plan.model import BALANCE, DRAIN, Move, PgChange, Plan
from ..plan.options import PlanOptions
from ..plan.usage import usage_before_and_after
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Snapshot, without_shares
from ..snapshot.upmap_items import items_for, keep_raw_positions
from .bound.lower_bound import UtilizationBounds, utilization_bounds
from .limited_search import limited_placement
from .move_order import ChangeGroup, draining, order_changes, wanted_changes
from .multi_start import multi_start_search
from .search.evacuation import stuck_shards

#: Before it gives way again, a few milliseconds: PGs counted, changes written down.
_CHANGES_A_PIECE = 100

# Values of Plan.stop_reason.
CONVERGED = "converged"
MOVE_LIMIT = "the limit of moves is reached"
BYTE_LIMIT = "the limit of bytes is reached"
INTERRUPTED = "the time limit is reached"


def make_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """Plans the moves from the snapshot's target state to a better placement.

    The same snapshot and options give the same plan. Where `give_way` tells the thread's work to
    end, the plan ends there, with what it has.
    """
    if not options.respect_weights:
        snapshot = without_shares(snapshot)
    fixed = (frozenset() if options.pool_ids is None
             else frozenset(snapshot.pools) - options.pool_ids)
    bounds = utilization_bounds(snapshot, fixed)
    placement, finished = multi_start_search(snapshot, options, bounds)
    groups = order_changes(placement, wanted_changes(placement))
    stop_reason, kept = _within_limits(groups, options)
    beginning = [change for group in kept for change in group]
    # what is to leave goes first, whatever else would gain more
    if len(kept) < len(groups) and not draining(placement, beginning):
        limited = limited_placement(snapshot, options, bounds, beginning)
        if limited is not None:
            placement = limited
            kept = _within_limits(order_changes(limited, wanted_changes(limited)), options)[1]
    changes, osds = PlannedChanges(snapshot), placement.osd_ids
    for group in piecewise(kept, _CHANGES_A_PIECE):
        for change in group:
            wanted = tuple([osds[i] for i in placement.up[change.pg]])
            changes.add(placement.pgs[change.pg], wanted,
                        [(osds[a], osds[b]) for a, b in change.moves])
    plan = changes.plan(stop_reason if finished else INTERRUPTED, options, bounds)._replace(
        stuck=stuck_shards(placement, options), kind=DRAIN if options.drain_only else BALANCE)
    placement.release()
    return plan


def _within_limits(groups: List[ChangeGroup],
                   options: PlanOptions) -> Tuple[str, List[ChangeGroup]]:
    """The stop reason, and the first groups that keep the limits; moves of no bytes are free."""
    moves = moved_bytes = 0
    for number, group in enumerate(piecewise(groups, 10 * _CHANGES_A_PIECE)):
        moves += sum(len(change.moves) for change in group if change.bytes)
        moved_bytes += sum(len(change.moves) * change.bytes for change in group)
        if options.max_moves is not None and moves > options.max_moves:
            return MOVE_LIMIT, groups[:number]
        if options.max_bytes is not None and moved_bytes > options.max_bytes:
            return BYTE_LIMIT, groups[:number]
    return CONVERGED, groups


class PlannedChanges:
    """The changes of a plan in their order, with the moves and the used bytes per OSD id that they
    come to."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.used: Dict[int, int] = {o.id: o.target_bytes for o in snapshot.osds.values()}
        self.moves: List[Move] = []
        self.changes: List[PgChange] = []

    def add(self, pg: Pg, wanted: Tuple[int, ...], pairs: Sequence[Tuple[int, int]]) -> None:
        """Adds the change of a PG to an up set; `pairs` has (source, target) of its moves."""
        snapshot, used = self._snapshot, self.used
        pool, osds = snapshot.pools[pg.pool], snapshot.osds
        assert pool.rule is not None
        for source, target in pairs:
            before = used.get(source, 0), used[target]
            there = pool.bytes_on(pg.shard_bytes, target, wanted)
            used[source] = before[0] - pool.bytes_on(pg.shard_bytes, source, pg.up)
            used[target] = before[1] + there
            sizes = [max(1, osds[osd].size_bytes) for osd in (source, target)]
            self.moves.append(Move(
                pgid=pg.pgid, source=source, target=target, objects=pg.objects,
                bytes=osds[target].device_bytes(there),
                source_before=before[0] / sizes[0], source_after=used[source] / sizes[0],
                target_before=before[1] / sizes[1], target_after=used[target] / sizes[1]))
        if not pool.erasure:
            wanted = keep_raw_positions(pg.raw, wanted, pool.rule)
        self.changes.append(PgChange(
            pgid=pg.pgid, raw=pg.raw, up_before=pg.up, up_after=wanted,
            items=items_for(pg.raw, wanted), shards=len(pairs), shard_bytes=pg.shard_bytes,
            objects=pg.objects, uneven=pool.uneven_bytes(pg.shard_bytes, pg.up, wanted)))

    def plan(self, stop_reason: str, options: PlanOptions, bounds: UtilizationBounds) -> Plan:
        """The plan of these changes, to balance."""
        snapshot = self._snapshot
        before, after = usage_before_and_after(snapshot, self.used, self.changes)
        return Plan(epoch=snapshot.epoch, stop_reason=stop_reason, moves=tuple(self.moves),
                    changes=tuple(self.changes), before=before, after=after,
                    skipped=skipped(snapshot), min_compat_client=snapshot.min_compat_client,
                    aim=options.aim, bounds=bounds.classes)


def skipped(snapshot: Snapshot) -> Dict[str, int]:
    """Reason → how many PGs or OSDs are left out of the plan for it."""
    found = Counter({f"PG: {reason}": n for reason, n in snapshot.skipped.items()})
    for osd in piecewise(snapshot.osds.values(), 10 * _CHANGES_A_PIECE):
        reason = osd.unusable_reason()
        if reason:
            found[f"OSD: {reason}"] += 1
    return dict(sorted(found.items()))
