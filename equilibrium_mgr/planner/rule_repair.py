"""Plans that mend PGs whose up set breaks their CRUSH rule, as upmaps of others can make it.

Of each such PG one shard is moved, to the emptiest OSD with which the PG is legal; where none is,
shards that upmap items have moved go back to where CRUSH has them, as few as make it legal. Nothing
else is moved.
"""
from __future__ import annotations

from itertools import chain, combinations
from typing import Dict, List, Optional, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import REPAIR, Plan
from ..plan.options import PlanOptions, effective_fill_limit
from ..runtime.time_slice import give_way, told_to_end
from ..snapshot.immovable_reasons import OF_RULE
from ..snapshot.model import Pg, Snapshot, pg_number, shard_changes
from ..snapshot.upmap_items import apply_items, items_for, keep_raw_positions
from .bound.lower_bound import utilization_bounds
from .planner import CONVERGED, INTERRUPTED, PlannedChanges

#: Upmap items of a PG that are dropped at most, before all are.
_MOST_DROPPED = 3

NOT_MENDED = "PG: its present placement breaks its CRUSH rule, and no legal one has room"


def broken_pgs(snapshot: Snapshot) -> List[Pg]:
    """The PGs that upmap items have put where their rule does not allow it, in order."""
    if OF_RULE.isdisjoint(snapshot.skipped):
        return []
    found = [pg for pgid, pg in ((pgid, snapshot.pgs[pgid]) for pgid in snapshot.upmap_items
                                 if pgid in snapshot.pgs) if pg.immovable in OF_RULE]
    return sorted(found, key=lambda pg: (pg.pool, pg_number(pg.pgid)))


def repair_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """A plan that mends what can be mended, within the options; ends as make_plan does."""
    changes = PlannedChanges(snapshot)
    stop_reason, unmended = CONVERGED, 0
    shards = moved_bytes = 0
    for pg in broken_pgs(snapshot):
        if not give_way(len(changes.moves)):
            break
        if options.pool_ids is not None and pg.pool not in options.pool_ids:
            continue
        wanted = _mended(snapshot, options, changes.used, pg)
        if wanted is None:
            unmended += 1
            continue
        erasure = snapshot.pools[pg.pool].erasure
        copied = len(shard_changes(pg.holders, wanted, erasure)[0])
        shards, moved_bytes = shards + copied, moved_bytes + copied * pg.shard_bytes
        stop_reason = options.limit_passed(shards, moved_bytes) or CONVERGED
        if stop_reason != CONVERGED:
            break
        gains, losses = shard_changes(pg.up, wanted, erasure)
        changes.add(pg, wanted, list(zip(losses, gains)))
    if told_to_end():
        stop_reason = INTERRUPTED
    plan = changes.plan(stop_reason, options, utilization_bounds(snapshot))
    return plan._replace(kind=REPAIR, skipped={
        **plan.skipped, **({NOT_MENDED: unmended} if unmended else {})})


def _mended(snapshot: Snapshot, options: PlanOptions, used: Dict[int, int],
            pg: Pg) -> Optional[Tuple[int, ...]]:
    """The first legal up set with room: where the data is, with one shard on another OSD, with
    fewer upmap items; None where there is none, or it is told to end. `used`: OSD id → bytes."""
    pool, osds = snapshot.pools[pg.pool], snapshot.osds
    rule, items = pool.rule, snapshot.upmap_items[pg.pgid]
    assert rule is not None
    fill = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
    room: Dict[int, float] = {}   # OSD that may take a shard → its utilization then
    for osd in rule.osds():
        if osd in osds and osds[osd].unusable_reason() is None and (
                options.targets is None or osd in options.targets):
            reached = used[osd] + pool.bytes_on(pg.shard_bytes, osd, pg.up)
            if reached <= fill * osds[osd].size_bytes:
                room[osd] = reached / osds[osd].size_bytes
    elsewhere = ((*pg.up[:i], osd, *pg.up[i + 1:])
                 for osd in sorted(room, key=lambda osd: (room[osd], osd)) if osd not in pg.up
                 for i in range(pool.size))
    kept = (some for dropped in range(1, min(_MOST_DROPPED, len(items)) + 1)
            for some in combinations(items, len(items) - dropped))
    returning = (apply_items(pg.raw, some, lambda _osd: False) for some in kept)
    for up in chain((pg.holders,), elsewhere, returning, (pg.raw,)):
        if not give_way():
            return None
        if NO_OSD in up or len(up) != pool.size or rule.violation(up) is not None or (
                rule.upmap_rejection(up) is not None):
            continue
        if not pool.erasure:
            up = keep_raw_positions(pg.raw, up, rule)
        try:
            items_for(pg.raw, up)
        except ValueError:
            continue   # upmap items cannot say it
        gains, losses = shard_changes(pg.holders, up, pool.erasure)
        if room.keys() >= set(gains) and not any(
                options.sources is not None and osd not in options.sources
                or options.device_classes is not None and osd in osds
                and osds[osd].device_class not in options.device_classes for osd in losses):
            return up
    return None
