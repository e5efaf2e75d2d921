"""The plan that evens out primaries, pool by pool. Every PG stays on its OSDs.

The PG's first OSD serves all reads of a replicated pool. `pg-upmap-primary` makes another of its
OSDs the first one: the PG peers again, which takes about a second, and no data moves.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..crush.placement import NO_OSD
from ..plan.kinds import READ_BALANCE
from ..plan.model import PgChange, Plan, PoolReads, Usage, change_of_primary
from ..plan.options import PlanOptions
from ..runtime.time_slice import piecewise
from ..snapshot import immovable_reasons as reasons
from ..snapshot.model import Osd, Pg, Pool, Snapshot
from ..snapshot.pg_checks import has_free_primaries
from .primaries import Choice, choose_primaries

NOT_REPLICATED = "erasure-coded pools have no other primaries"
NO_CHOICE_OF_RULE = "the pool's CRUSH rule says where its primaries are"
NOT_CLEAN = "it is not active+clean"
NO_OTHER = "no other of its OSDs may be its primary"
#: Before it gives way again: about a millisecond.
_PGS_A_PIECE = 200
#: Reasons that keep a PG from being moved, and not from having another primary.
_NO_OBSTACLES = frozenset((
    None, reasons.UPMAP_PRIMARY, reasons.OSD_NOT_REPORTED, reasons.OMAP_UNMEASURED,
    reasons.OMAP_ON_SMALL_OSD))


class _Found(NamedTuple):
    """One pool as it is, and its changes."""

    reads: PoolReads
    changes: List[PgChange]
    skipped: Mapping[str, int]   # reason → PGs whose primary cannot be changed for it


def read_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """The plan; it has no usage yet. `skipped` counts PGs. Of the options, pools, device classes
    and OSDs count: those that no shard may leave, or come to, give no primaries, or get none."""
    by_pool: Dict[int, List[Pg]] = {}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        if options.pool_ids is None or pg.pool in options.pool_ids:
            by_pool.setdefault(pg.pool, []).append(pg)
    found: List[_Found] = []
    skipped: Counter[str] = Counter()
    leaders = _Leaders(snapshot, options)
    for pool_id, pgs in sorted(by_pool.items()):
        pool = snapshot.pools[pool_id]
        obstacle = _obstacle_of_pool(pool)
        if obstacle is not None:
            skipped[obstacle] += len(pgs)
            continue
        found.append(_even_out(leaders, pool, pgs))
        skipped.update(found[-1].skipped)
    return Plan(
        epoch=snapshot.epoch, stop_reason="converged", moves=(),
        changes=tuple(change for pool in found for change in pool.changes),
        before=Usage({}, {}), after=Usage({}, {}), skipped=dict(sorted(skipped.items())),
        min_compat_client=snapshot.min_compat_client, aim=options.aim, bounds={}, kind=READ_BALANCE,
        reads=tuple(pool.reads for pool in found))


class _Leaders:
    """Which OSDs may give primaries, and which may get some."""

    def __init__(self, snapshot: Snapshot, options: PlanOptions) -> None:
        self.snapshot = snapshot
        osds = snapshot.osds.values()
        self.sources = frozenset(osd.id for osd in osds if _is_chosen(
            osd, options, options.sources))
        self._targets = frozenset(osd.id for osd in osds if _is_chosen(
            osd, options, options.targets) and _may_lead(snapshot, osd))

    def instead(self, pg: Pg) -> Tuple[int, ...]:
        """The OSDs of a PG that may be its primary instead of the present one."""
        return tuple([osd for osd in pg.up[1:] if osd in self._targets
                      and _is_kept(self.snapshot, pg, osd)])


def _is_chosen(osd: Osd, options: PlanOptions, chosen: Optional[FrozenSet[int]]) -> bool:
    return (options.device_classes is None or osd.device_class in options.device_classes) and (
        chosen is None or osd.id in chosen)


def _may_lead(snapshot: Snapshot, osd: Osd) -> bool:
    """True where an OSD may get primaries. One with a lowered primary affinity is to have fewer,
    and which ones is Ceph's choice."""
    return (osd.up and osd.is_in and osd.reweight > 0.0 and not osd.drained
            and osd.primary_affinity >= 1.0 and osd.id not in snapshot.stale_osds)


def _obstacle_of_pool(pool: Pool) -> Optional[str]:
    if pool.erasure:
        return NOT_REPLICATED
    if pool.rule is None or pool.immovable is not None:
        return pool.immovable or reasons.NO_RULE
    return None if has_free_primaries(pool) else NO_CHOICE_OF_RULE


def _even_out(leaders: _Leaders, pool: Pool, pgs: List[Pg]) -> _Found:
    skipped: Counter[str] = Counter()
    choices: Dict[str, Choice] = {}
    counts: Counter[int] = Counter()   # OSD → primaries
    shards: Counter[int] = Counter()
    for pg in piecewise(pgs, _PGS_A_PIECE):
        counts.update(pg.up[:1])
        shards.update(pg.up)
        obstacle = _obstacle(pool, pg)
        others = leaders.instead(pg) if obstacle is None else ()
        if others and pg.up[0] in leaders.sources:
            choices[pg.pgid] = Choice(pg.pgid, pg.up[0], others)
        elif obstacle is not None or len(pg.up) > 1:
            skipped[obstacle or NO_OTHER] += 1
    del counts[NO_OSD], shards[NO_OSD]
    osds = leaders.snapshot.osds
    primaries = choose_primaries(list(choices.values()), counts, _shares(osds, shards, len(pgs)))
    after = counts.copy()
    for pgid, osd in primaries.items():
        after[choices[pgid].primary] -= 1
        after[osd] += 1
    most, later = max(counts.values(), default=0), max(after.values(), default=0)
    if later > most:   # where large OSDs have few: their share would cost the pool its score
        primaries, later = {}, most
    mean = _mean(osds, shards, len(pgs))
    return _Found(
        PoolReads(pool.id, pool.name, len(primaries), round(most / mean, 4),
                  round(later / mean, 4), most, later),
        [change_of_primary(leaders.snapshot.pgs[pgid], osd) for pgid, osd in primaries.items()],
        skipped)


def _mean(osds: Mapping[int, Osd], shards: Iterable[int], pgs: int) -> float:
    """Primaries of an OSD on average, as Ceph's score has it: OSDs with a primary affinity of 0
    are to have none (OSDMap::calc_read_balance_score)."""
    return pgs / max(1, sum(osd not in osds or osds[osd].primary_affinity > 0.0
                            for osd in shards))


def _obstacle(pool: Pool, pg: Pg) -> Optional[str]:
    if pg.immovable not in _NO_OBSTACLES:
        return pg.immovable
    if pg.state != "active+clean" or pg.is_moving or pg.acting != pg.up or (
            len(pg.up) != pool.size or NO_OSD in pg.up):
        return NOT_CLEAN
    return None


def _is_kept(snapshot: Snapshot, pg: Pg, osd: int) -> bool:
    """False for an OSD that monitors of Ceph 20 do not keep as the PG's primary: one that CRUSH
    alone does not choose, as the target of a pair (seen with osdmaptool 20.2.4)."""
    return pg.pgid not in snapshot.upmap_items or osd in pg.raw


def _shares(osds: Mapping[int, Osd], shards: Mapping[int, int], pgs: int) -> Dict[int, float]:
    """OSD id → the primaries that it ought to have: in proportion to its shards of the pool and its
    primary affinity; none on OSDs that are drained, down or out."""
    weights = {osd: count * _affinity(osds.get(osd)) for osd, count in shards.items()}
    total = sum(weights.values())
    return {osd: pgs * weight / total for osd, weight in weights.items()} if total else {}


def _affinity(osd: Optional[Osd]) -> float:
    if osd is None or not osd.up or not osd.is_in or osd.drained:
        return 0.0
    return osd.primary_affinity
