"""Plans that mend PGs whose up set breaks their CRUSH rule, as upmaps of others can make it; or
that prepare pools for another rule, so that nothing has to move when they get it.

Of each such PG the fewest shards are moved, to the emptiest OSDs with which the PG is legal, by the
rule in force and by the one that is to be. Where one shard does not mend a PG, shards that upmap
items have moved go back to where CRUSH has them, as few as make it legal. Nothing else is moved.
"""
from __future__ import annotations

from collections import Counter
from itertools import chain, combinations
from math import inf
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD, PlacementRule
from ..plan.model import REPAIR, Plan
from ..plan.options import PlanOptions, effective_fill_limit
from ..runtime.time_slice import give_way, piecewise, told_to_end
from ..snapshot.immovable_reasons import OF_RULE
from ..snapshot.model import Pg, Pool, Snapshot, pg_number, shard_changes
from ..snapshot.upmap_items import apply_items, items_for, keep_raw_positions
from .bound.lower_bound import utilization_bounds
from .planner import CONVERGED, INTERRUPTED, PlannedChanges

#: Upmap items of a PG that are dropped at most, before all are.
_MOST_DROPPED = 3
#: Sets of OSDs that are looked at for each number of a PG's shards that move: about 50 ms.
_MOST_TRIED = 3000
_PGS_A_PIECE = 50   # whose placement is looked at before it gives way again

NOT_MENDED = "PG: its present placement breaks its CRUSH rule, and no legal one has room"
NOT_PREPARED = "PG: no placement that the present CRUSH rule and the new one allow has room"

Osds = Tuple[int, ...]


class _Legal(NamedTuple):
    """What the PGs of a pool are to be."""

    rules: List[PlacementRule]         # legal by all of them
    places: Dict[int, Tuple[Any, ...]]   # OSD that all rules take → its buckets, by their domains
    most: int                          # shards of a PG in one place

    def breaks(self, up: Osds) -> bool:
        """True where a rule cannot produce the up set, or a monitor would not keep it."""
        return any(rule.refusal(up) for rule in self.rules)


def _legal(snapshot: Snapshot, options: PlanOptions, pool: Pool) -> Optional[_Legal]:
    """None of a pool whose rule is not understood."""
    if pool.rule is None:
        return None
    rules = [pool.rule]
    if options.rule_id is not None:
        rules.append(PlacementRule(snapshot.crush, snapshot.crush.rules[options.rule_id],
                                   pool.size, pool.positional))
    domains = [block.domains for rule in rules for block in rule.blocks]
    taken = [rule.osds() for rule in rules]
    return _Legal(rules, {osd: tuple([domain.bucket_of.get(osd) for domain in chain(*domains)])
                          for osd in taken[0] if all(osd in osds for osds in taken)},
                  min([inner[-1].shards_per_bucket if inner else pool.size for inner in domains]))


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
    legal = {pool.id: found for pool in piecewise(snapshot.pools.values(), 1)
             if options.pool_ids is None or pool.id in options.pool_ids
             for found in (_legal(snapshot, options, pool),) if found is not None}
    for pg in (broken_pgs(snapshot) if options.rule_id is None else _breaking(snapshot, legal)):
        if not give_way(len(changes.moves)):
            break
        if pg.pool not in legal:
            continue
        wanted = _mended(snapshot, options, changes.used, pg, legal[pg.pool])
        if wanted is None:
            unmended += 1
            continue
        erasure = snapshot.is_positional(pg)
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
        **plan.skipped, **({NOT_MENDED if options.rule_id is None else NOT_PREPARED: unmended}
                           if unmended else {})})


def _breaking(snapshot: Snapshot, legal: Dict[int, _Legal]) -> List[Pg]:
    """The PGs of these pools that may move and are not as they are to be, the largest first: what
    is left then evens out."""
    found = [pg for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE) if pg.pool in legal
             and (pg.immovable is None or pg.immovable in OF_RULE) and legal[pg.pool].breaks(pg.up)]
    return sorted(found, key=lambda pg: (-pg.shard_bytes, pg.pool, pg_number(pg.pgid)))


def _mended(snapshot: Snapshot, options: PlanOptions, used: Dict[int, int], pg: Pg,
            legal: _Legal) -> Optional[Osds]:
    """The first legal up set with room: where the data is, with the fewest shards on other OSDs,
    with fewer upmap items; None where there is none, or it is told to end. `used`: OSD id →
    bytes."""
    pool, osds = snapshot.pools[pg.pool], snapshot.osds
    items = snapshot.items_of(pg.pgid)
    fill = min(effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio),
               # nothing is broken yet: not worth a rack that is nearfull
               inf if options.rule_id is None else snapshot.nearfull_ratio)
    room: Dict[int, float] = {}   # OSD that may take a shard → its utilization then
    for osd in legal.places:
        if osd in osds and osds[osd].unusable_reason() is None and (
                options.targets is None or osd in options.targets):
            reached = used[osd] + pool.bytes_on(pg.shard_bytes, osd, pg.up)
            if reached <= fill * osds[osd].size_bytes:
                room[osd] = (reached - osds[osd].spared_bytes) / osds[osd].capacity_bytes
    in_place: Counter[Any] = Counter()
    targets: List[int] = []   # the emptiest of each place
    for osd in sorted(room, key=lambda osd: (room[osd], osd)):
        if osd not in pg.up and in_place[legal.places[osd]] < legal.most:
            in_place[legal.places[osd]] += 1
            targets.append(osd)
    # the fullest leave where there is a choice
    by_use = sorted(range(len(pg.up)), key=lambda i: used.get(pg.up[i], 0) / (
        osds[pg.up[i]].capacity_bytes or 1 if pg.up[i] in osds else 1))
    elsewhere = [_elsewhere(legal.rules, pg.up, by_use, targets, shards)
                 for shards in range(1, len(pg.up) + 1)]
    kept = (some for dropped in range(1, min(_MOST_DROPPED, len(items)) + 1)
            for some in combinations(items, len(items) - dropped))
    returning = chain((apply_items(pg.raw, some, lambda _osd: False) for some in kept), (pg.raw,))
    for up in chain((pg.holders,), elsewhere[0], returning if options.rule_id is None else (),
                    *elsewhere[1:]):
        if not give_way():
            return None
        if NO_OSD in up or len(up) != pool.size or legal.breaks(up):
            continue
        if not pool.erasure:
            up = keep_raw_positions(pg.raw, up, legal.rules[0])
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


def _elsewhere(rules: Sequence[PlacementRule], up: Osds, order: Sequence[int],
               targets: Sequence[int], shards: int) -> Iterator[Osds]:
    """Yields up sets that differ in so many shards: those of the first positions in `order` stay
    where they can, the others go to the first targets that fit."""
    tries = iter(range(_MOST_TRIED))

    def fits(wanted: Osds) -> bool:
        return give_way() and next(tries, None) is not None and not any(
            rule.conflict(wanted) for rule in rules)

    def stay(wanted: Osds, left: Sequence[int], leaving: int) -> Iterator[Osds]:
        if not left:
            yield from go(wanted)
        if len(left) > leaving:
            one = _with(wanted, left[0], up[left[0]])
            if fits(one):
                yield from stay(one, left[1:], leaving)
        if leaving:
            yield from stay(wanted, left[1:], leaving - 1)

    def go(wanted: Osds) -> Iterator[Osds]:
        if NO_OSD not in wanted:
            yield wanted
            return
        position = wanted.index(NO_OSD)
        for osd in targets:
            one = _with(wanted, position, osd)
            if fits(one):
                yield from go(one)
    return stay((NO_OSD,) * len(up), order, shards)


def _with(up: Osds, position: int, osd: int) -> Osds:
    return (*up[:position], osd, *up[position + 1:])
