"""From a snapshot to a plan."""
from __future__ import annotations

from collections import Counter
from typing import Dict, List, Tuple

from ..snapshot.model import Snapshot
from ..snapshot.upmap import items_for, settle_replicated
from .options import PlanOptions
from .plan import Move, PgChange, Plan
from .search import Checkpoint, Search
from .state import PlacementState
from .usage import placement_usage, snapshot_usage


def _never_stop(_moves: int) -> bool:
    return True


def make_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions(),
              checkpoint: Checkpoint = _never_stop) -> Plan:
    """Plans the walk from the snapshot's target state to a more even placement.

    The same snapshot and options give the same plan. `checkpoint` is called with the number of
    moves found so far between pieces of work of a few milliseconds; when it returns False the plan
    ends there, with what it has.
    """
    state = PlacementState(snapshot, options)
    search = Search(state, options, checkpoint)
    stop_reason = search.run(_device_classes(snapshot, options))
    changes = _changes(snapshot, state, search.moves)
    after = placement_usage(snapshot, state.used,
                            ((pg.pool, state.up(pg)) for pg in snapshot.pgs.values()))
    return Plan(epoch=snapshot.epoch, stop_reason=stop_reason, moves=tuple(search.moves),
                changes=tuple(changes), before=snapshot_usage(snapshot), after=after,
                skipped=_skipped(snapshot), min_compat_client=snapshot.min_compat_client)


def _device_classes(snapshot: Snapshot, options: PlanOptions) -> List[str]:
    return sorted({osd.device_class for osd in snapshot.osds.values() if osd.has_statistics
                   and (options.device_classes is None
                        or osd.device_class in options.device_classes)})


def _changes(snapshot: Snapshot, state: PlacementState, moves: List[Move]) -> List[PgChange]:
    """One change per moved PG, in the order of its first move."""
    shards: Dict[str, int] = Counter(move.pgid for move in moves)
    return [_change(snapshot, pgid, state.changed_up[pgid], count)
            for pgid, count in shards.items()]


def _change(snapshot: Snapshot, pgid: str, wanted: Tuple[int, ...], shards: int) -> PgChange:
    pg = snapshot.pgs[pgid]
    pool = snapshot.pools[pg.pool]
    assert pool.rule is not None
    if not pool.erasure:
        wanted = settle_replicated(pg.raw, wanted, pool.rule)
    return PgChange(pgid=pgid, raw=pg.raw, up_before=pg.up, up_after=wanted,
                    items=items_for(pg.raw, wanted), shards=shards,
                    shard_bytes=pg.shard_bytes, objects=pg.objects)


def _skipped(snapshot: Snapshot) -> Dict[str, int]:
    """Reasons why PGs and OSDs stay out of the plan, counted."""
    skipped = Counter({"PG: %s" % reason: n for reason, n in snapshot.skipped.items()})
    for osd in snapshot.osds.values():
        reason = osd.cannot_take()
        if reason:
            skipped["OSD: %s" % reason] += 1
    return dict(sorted(skipped.items()))
