"""Plans that mend PGs whose up set breaks their CRUSH rule, as upmaps of others can make it.

Of each such PG as few shards are moved as make it legal, back to where CRUSH or its data has them
or to the emptiest OSDs that may take them. Nothing else is moved.
"""
from __future__ import annotations

from itertools import combinations, islice, product
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import REPAIR, Plan
from ..plan.options import PlanOptions, effective_fill_limit
from ..runtime.time_slice import give_way, told_to_end
from ..snapshot.immovable_reasons import OF_RULE
from ..snapshot.model import Osd, Pg, Pool, Snapshot, pg_number, shard_changes
from ..snapshot.upmap_items import items_for, keep_raw_positions
from .bound.lower_bound import utilization_bounds
from .planner import CONVERGED, INTERRUPTED, PlannedChanges

#: Shards of one PG that are moved to other OSDs at most; more go back to where CRUSH has them.
_MOST_SHARDS = 3
#: Targets of a position where several shards move at once: with all there would be too many ways.
_TARGETS = 24
#: Ways that are tried for one PG with so many shards moved: some tenths of a second.
_MOST_WAYS = 4000

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
    mending = _Mending(snapshot, options)
    changes = mending.changes
    stop_reason, unmended = CONVERGED, 0
    shards = moved_bytes = 0
    for pg in broken_pgs(snapshot):
        if not give_way(len(changes.moves)):
            break
        if options.pool_ids is not None and pg.pool not in options.pool_ids:
            continue
        wanted = mending.wanted(pg)
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


class _Way(NamedTuple):
    """One way to mend a PG; sorts by what it costs."""

    shards: int           # that are copied
    utilization: float    # of the fullest target, once it has its shard
    pairs: int            # of upmap items
    up: Tuple[int, ...]


class _Mending:
    """Finds the cheapest way to mend each PG, on top of the changes so far."""

    def __init__(self, snapshot: Snapshot, options: PlanOptions) -> None:
        self._snapshot, self._options = snapshot, options
        self._fill = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
        self.changes = PlannedChanges(snapshot)

    def wanted(self, pg: Pg) -> Optional[Tuple[int, ...]]:
        """The cheapest legal up set that is found; None where there is none."""
        pool = self._snapshot.pools[pg.pool]
        ways = [self._way(pg, pool, up) for up in (pg.holders, pg.raw)
                if NO_OSD not in up and len(up) == pool.size]
        found = [way for way in ways if way is not None]
        if any(way.shards == 0 for way in found):
            return min(found).up
        for count in range(1, _MOST_SHARDS + 1):
            found += self._ways(pg, pool, count)
            if told_to_end() or any(way.shards <= count for way in found):
                break
        return min(found).up if found else None

    def _ways(self, pg: Pg, pool: Pool, count: int) -> Iterator[_Way]:
        """Ways with so many positions changed, those first that upmap items have changed; ends
        where it is told to."""
        positions = sorted(range(pool.size), key=lambda i: pg.up[i] == pg.raw[i])
        targets = [self._targets(pg, pool, i, count == 1) for i in range(pool.size)]
        ups = (tuple([dict(zip(some, osds)).get(i, osd) for i, osd in enumerate(pg.up)])
               for some in combinations(positions, count)
               for osds in product(*[targets[i] for i in some])
               if len(set(osds) - set(pg.up)) == count)
        for up in islice(ups, _MOST_WAYS):
            if not give_way():
                return
            way = self._way(pg, pool, up)
            if way is not None:
                yield way

    def _targets(self, pg: Pg, pool: Pool, position: int, is_all: bool) -> List[int]:
        """OSDs for a position: where CRUSH and the data have the shard, then the emptiest ones, all
        or _TARGETS of them."""
        assert pool.rule is not None
        block = pool.rule.block_at(position)
        own = [pg.raw[position], *(pg.holders[position:position + 1])]
        others = sorted((self._utilization(self._snapshot.osds[osd], pg.shard_bytes), osd)
                        for osd in block.weights
                        if osd not in own and self._may_take(osd, pg, pool))
        emptiest = [osd for _, osd in others]
        if not is_all:   # of each bucket of the innermost domain the first alone
            first: Dict[int, int] = {}
            for osd in emptiest:
                first.setdefault(block.domains[-1].bucket_of[osd] if block.domains else osd, osd)
            emptiest = list(first.values())[:_TARGETS]
        return list(dict.fromkeys(own + emptiest))

    def _may_take(self, osd: int, pg: Pg, pool: Pool) -> bool:
        target, options = self._snapshot.osds.get(osd), self._options
        if target is None or target.unusable_reason() is not None:
            return False
        if options.targets is not None and osd not in options.targets:
            return False
        size = pool.bytes_on(pg.shard_bytes, osd, pg.up)
        return self.changes.used[osd] + size <= self._fill * target.size_bytes

    def _utilization(self, osd: Osd, more: int) -> float:
        return (self.changes.used[osd.id] + more) / max(1, osd.size_bytes)

    def _way(self, pg: Pg, pool: Pool, up: Tuple[int, ...]) -> Optional[_Way]:
        """The way to an up set, or None where it is not legal or cannot be."""
        rule, options = pool.rule, self._options
        assert rule is not None
        if rule.violation(up) is not None or rule.upmap_rejection(up) is not None:
            return None
        if not pool.erasure:
            up = keep_raw_positions(pg.raw, up, rule)
        try:
            items = items_for(pg.raw, up)
        except ValueError:
            return None   # upmap items cannot say it
        gains, losses = shard_changes(pg.holders, up, pool.erasure)
        if not all(self._may_take(osd, pg, pool) for osd in gains):
            return None
        for osd in losses:
            source = self._snapshot.osds.get(osd)
            if options.sources is not None and osd not in options.sources or (
                    options.device_classes is not None and source is not None
                    and source.device_class not in options.device_classes):
                return None
        fullest = max([self._utilization(self._snapshot.osds[osd], pg.shard_bytes)
                       for osd in gains], default=0.0)
        return _Way(len(gains), fullest, len(items), up)
