"""From a snapshot to a plan."""
from __future__ import annotations

from collections import Counter
from typing import Dict, List, Optional, Tuple

from ..plan.model import Move, PgChange, Plan
from ..plan.options import PlanOptions
from ..plan.usage import placement_usage, snapshot_usage
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..snapshot.model import Snapshot, without_shares
from ..snapshot.upmap_items import items_for, keep_raw_positions
from .bound.lower_bound import utilization_bounds
from .limited_search import limited_placement
from .move_order import Change, ChangeGroup, order_changes, wanted_changes
from .multi_start import multi_start_search
from .state.placement_state import PlacementState

#: Looked at between two checkpoints: a few milliseconds.
_PGS_A_PIECE = 1000

CONVERGED = "converged"
MOVE_LIMIT = "the limit of moves is reached"
BYTE_LIMIT = "the limit of bytes is reached"
INTERRUPTED = "the time limit is reached"


def make_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions(),
              checkpoint: Checkpoint = no_checkpoint) -> Plan:
    """Plans the walk from the snapshot's target state to a better placement.

    The same snapshot and options give the same plan. `checkpoint` is called with the number of
    moves found so far between pieces of work of a few milliseconds; when it returns False the plan
    ends there, with what it has.
    """
    found = 0

    def counted(moves: Optional[int] = None) -> bool:
        nonlocal found
        found = found if moves is None else moves
        return checkpoint(found)
    if not options.respect_weights:
        snapshot = without_shares(snapshot)
    fixed = (frozenset() if options.pool_ids is None
             else frozenset(snapshot.pools) - options.pool_ids)
    bounds = utilization_bounds(snapshot, fixed, checkpoint=counted)
    placement, finished = multi_start_search(snapshot, options, bounds, counted)
    steps = order_changes(placement, wanted_changes(placement), counted)
    stop_reason, first = _within_limits(steps, options)
    if len(first) < len(steps):
        limited = limited_placement(snapshot, options, bounds,
                                [change for step in first for change in step.changes], counted)
        if limited is not None:
            placement = limited
            _, first = _within_limits(order_changes(placement, wanted_changes(placement), counted), options)
    steps = first
    if not finished:
        stop_reason = INTERRUPTED
    used, moves, changes = _carry_out(placement, steps)
    changed = {change.pgid: change.up_after for change in changes}
    before = snapshot_usage(snapshot, counted)
    after = placement_usage(snapshot, used, (
        (pg.pool, changed.get(pg.pgid, pg.up))
        for pg in with_checkpoints(snapshot.pgs.values(), _PGS_A_PIECE, counted)))
    return Plan(epoch=snapshot.epoch, stop_reason=stop_reason, moves=tuple(moves),
                changes=tuple(changes), before=before, after=after,
                skipped=_skipped(snapshot), min_compat_client=snapshot.min_compat_client,
                aim=options.aim, bounds=bounds.classes)


def _within_limits(steps: List[ChangeGroup], options: PlanOptions) -> Tuple[str, List[ChangeGroup]]:
    """The first steps of the whole plan that keep the limits; moves of no bytes are free."""
    moves = spent = 0
    for number, step in enumerate(steps):
        moves += sum(len(change.moves) for change in step.changes if change.bytes)
        spent += sum(len(change.moves) * change.bytes for change in step.changes)
        if options.max_moves is not None and moves > options.max_moves:
            return MOVE_LIMIT, steps[:number]
        if options.max_bytes is not None and spent > options.max_bytes:
            return BYTE_LIMIT, steps[:number]
    return CONVERGED, steps


def _carry_out(placement: PlacementState, steps: List[ChangeGroup]) -> Tuple[Dict[int, int], List[Move],
                                                         List[PgChange]]:
    """Used bytes per OSD id after the steps, and the moves and changes as others see them."""
    used = {osd.id: osd.target_bytes for osd in placement.snapshot.osds.values()}
    moves: List[Move] = []
    changes: List[PgChange] = []
    for step in steps:
        for change in step.changes:
            moves += _moves(placement, change, used)
            changes.append(_pg_change(placement, change))
    return used, moves, changes


def _moves(placement: PlacementState, change: Change, used: Dict[int, int]) -> List[Move]:
    pg = placement.pgs[change.pg]
    done: List[Move] = []
    for a, b in change.moves:
        source, target = placement.osd_ids[a], placement.osd_ids[b]
        before = used[source], used[target]
        used[source] -= change.bytes
        used[target] += change.bytes
        done.append(Move(
            pgid=pg.pgid, source=source, target=target, bytes=change.bytes, objects=pg.objects,
            source_before=before[0] / placement.size_bytes[a], source_after=used[source] / placement.size_bytes[a],
            target_before=before[1] / placement.size_bytes[b], target_after=used[target] / placement.size_bytes[b]))
    return done


def _pg_change(placement: PlacementState, change: Change) -> PgChange:
    pg = placement.pgs[change.pg]
    pool = placement.snapshot.pools[pg.pool]
    assert pool.rule is not None
    wanted = tuple(placement.osd_ids[i] for i in placement.up[change.pg])
    if not pool.erasure:
        wanted = keep_raw_positions(pg.raw, wanted, pool.rule)
    return PgChange(pgid=pg.pgid, raw=pg.raw, up_before=pg.up, up_after=wanted,
                    items=items_for(pg.raw, wanted), shards=len(change.moves),
                    shard_bytes=pg.shard_bytes, objects=pg.objects)


def _skipped(snapshot: Snapshot) -> Dict[str, int]:
    """Reasons why PGs and OSDs stay out of the plan, counted."""
    skipped = Counter({f"PG: {reason}": n for reason, n in snapshot.skipped.items()})
    for osd in snapshot.osds.values():
        reason = osd.unusable_reason()
        if reason:
            skipped[f"OSD: {reason}"] += 1
    return dict(sorted(skipped.items()))
