"""From a snapshot to a plan."""
from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, List, Tuple

from ..snapshot.model import Snapshot, without_shares
from ..snapshot.paced import paced
from ..snapshot.upmap import items_for, settle_replicated
from .attempts import best_attempt
from .board import Board
from .bound import reachable
from .limited import limited_board
from .options import PlanOptions
from .order import Change, Step, in_order, wanted_changes
from .plan import Move, PgChange, Plan
from .usage import placement_usage, snapshot_usage

#: Asked between small pieces of work; False ends the search with what it has.
Checkpoint = Callable[[int], bool]

#: Looked at between two checkpoints: a few milliseconds.
_PGS_A_PIECE = 1000

CONVERGED = "converged"
MOVE_LIMIT = "the limit of moves is reached"
BYTE_LIMIT = "the limit of bytes is reached"
INTERRUPTED = "the time limit is reached"


def _never_stop(_moves: int) -> bool:
    return True


def make_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions(),
              checkpoint: Checkpoint = _never_stop) -> Plan:
    """Plans the walk from the snapshot's target state to a better placement.

    The same snapshot and options give the same plan. `checkpoint` is called with the number of
    moves found so far between pieces of work of a few milliseconds; when it returns False the plan
    ends there, with what it has.
    """
    found = [0]

    def pause() -> bool:
        return checkpoint(found[0])
    if not options.respect_weights:
        snapshot = without_shares(snapshot)
    fixed = (frozenset() if options.pool_ids is None
             else frozenset(snapshot.pools) - options.pool_ids)
    bounds = reachable(snapshot, fixed, checkpoint=pause)

    def note(moves: int) -> bool:
        found[0] = moves
        return checkpoint(moves)
    board, finished = best_attempt(snapshot, options, bounds, note)
    steps = in_order(board, wanted_changes(board), pause)
    stop_reason, first = _within_limits(steps, options)
    if len(first) < len(steps):
        limited = limited_board(snapshot, options, bounds,
                                [change for step in first for change in step.changes], note)
        if limited is not None:
            board = limited
            _, first = _within_limits(in_order(board, wanted_changes(board), pause), options)
    steps = first
    if not finished:
        stop_reason = INTERRUPTED
    used, moves, changes = _carry_out(board, steps)
    changed = {change.pgid: change.up_after for change in changes}
    before = snapshot_usage(snapshot, pause)
    after = placement_usage(snapshot, used, (
        (pg.pool, changed.get(pg.pgid, pg.up))
        for pg in paced(snapshot.pgs.values(), _PGS_A_PIECE, pause)))
    return Plan(epoch=snapshot.epoch, stop_reason=stop_reason, moves=tuple(moves),
                changes=tuple(changes), before=before, after=after,
                skipped=_skipped(snapshot), min_compat_client=snapshot.min_compat_client,
                aim=options.aim, bounds=bounds.classes)


def _within_limits(steps: List[Step], options: PlanOptions) -> Tuple[str, List[Step]]:
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


def _carry_out(board: Board, steps: List[Step]) -> Tuple[Dict[int, int], List[Move],
                                                         List[PgChange]]:
    """Used bytes per OSD id after the steps, and the moves and changes as others see them."""
    used = {osd.id: osd.target_bytes for osd in board.snapshot.osds.values()}
    moves: List[Move] = []
    changes: List[PgChange] = []
    for step in steps:
        for change in step.changes:
            moves += _moves(board, change, used)
            changes.append(_pg_change(board, change))
    return used, moves, changes


def _moves(board: Board, change: Change, used: Dict[int, int]) -> List[Move]:
    pg = board.pgs[change.pg]
    done: List[Move] = []
    for a, b in change.moves:
        source, target = board.osd_ids[a], board.osd_ids[b]
        before = used[source], used[target]
        used[source] -= change.bytes
        used[target] += change.bytes
        done.append(Move(
            pgid=pg.pgid, source=source, target=target, bytes=change.bytes, objects=pg.objects,
            source_before=before[0] / board.size[a], source_after=used[source] / board.size[a],
            target_before=before[1] / board.size[b], target_after=used[target] / board.size[b]))
    return done


def _pg_change(board: Board, change: Change) -> PgChange:
    pg = board.pgs[change.pg]
    pool = board.snapshot.pools[pg.pool]
    assert pool.rule is not None
    wanted = tuple(board.osd_ids[i] for i in board.up[change.pg])
    if not pool.erasure:
        wanted = settle_replicated(pg.raw, wanted, pool.rule)
    return PgChange(pgid=pg.pgid, raw=pg.raw, up_before=pg.up, up_after=wanted,
                    items=items_for(pg.raw, wanted), shards=len(change.moves),
                    shard_bytes=pg.shard_bytes, objects=pg.objects)


def _skipped(snapshot: Snapshot) -> Dict[str, int]:
    """Reasons why PGs and OSDs stay out of the plan, counted."""
    skipped = Counter({"PG: %s" % reason: n for reason, n in snapshot.skipped.items()})
    for osd in snapshot.osds.values():
        reason = osd.cannot_take()
        if reason:
            skipped["OSD: %s" % reason] += 1
    return dict(sorted(skipped.items()))
