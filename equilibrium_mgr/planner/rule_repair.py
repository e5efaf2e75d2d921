"""Plans that repair PGs whose up set breaks their CRUSH rule, which other tools' upmaps can cause;
or that prepare pools for another rule, so that nothing moves when they get it.

A plan moves few shards of each such PG, to the emptiest OSDs with which the PG is legal: by its
present rule and by the new one. If one shard is not enough for a repair, shards that upmap items
have moved return to their CRUSH mapping, as few as make the PG legal. At last more shards go to
other OSDs. Other PGs stay.
"""
from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD, PlacementRule, replaced
from ..plan.model import REPAIR, Plan
from ..plan.options import PlanOptions, effective_fill_limit
from ..runtime.time_slice import give_way, piecewise, told_to_end
from ..snapshot.immovable_reasons import OF_RULE
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems, pg_number, shard_changes
from ..snapshot.upmap_items import apply_items, items_for, keep_raw_positions
from .bound.lower_bound import utilization_bounds
from .planner import CONVERGED, INTERRUPTED, PlannedChanges

#: At most so many upmap items of a PG are dropped, then all of them.
_MOST_DROPPED = 3
#: Sets of OSDs that are tried for each number of shards that move: about 50 ms.
_MOST_TRIED = 3000
_PGS_A_PIECE = 50   # checked between two yields

NOT_MENDED = "PG: its present placement breaks its CRUSH rule, and no legal one has room"
NOT_PREPARED = "PG: no placement that the present CRUSH rule and the new one allow has room"

Osds = Tuple[int, ...]


class _Legal(NamedTuple):
    """The rules that the PGs of a pool have to keep."""

    rules: List[PlacementRule]           # all of them
    places: Dict[int, Tuple[Any, ...]]   # OSD that all rules take → its buckets, by their domains
    most: int                            # shards of a PG in one place

    def breaks(self, up: Osds) -> bool:
        """Returns True if a rule cannot produce the up set, or a monitor would not keep it."""
        return any(rule.refusal(up) for rule in self.rules)


def _legal(snapshot: Snapshot, options: PlanOptions, pool: Pool) -> Optional[_Legal]:
    """Returns the rules that a pool's PGs have to keep; None if its own is not understood."""
    if pool.rule is None:
        return None
    rules = [pool.rule]
    if options.rule_id is not None:
        rules.append(PlacementRule(snapshot.crush, snapshot.crush.rules[options.rule_id],
                                   pool.size, pool.is_grouped))
    most = pool.size
    buckets_of: List[Mapping[int, int]] = []   # of each domain: OSD → bucket
    for rule in rules:
        for block in rule.blocks:
            for domain in block.domains:
                buckets_of.append(domain.bucket_of)
                most = min(most, domain.shards_per_bucket)
    last = rules[-1].osds()
    taken = [osd for osd in rules[0].osds() if osd in last]
    places: Dict[int, Tuple[Any, ...]] = {}
    for osd in taken:
        places[osd] = tuple([bucket_of.get(osd) for bucket_of in buckets_of])
    return _Legal(rules, places, most)


def broken_pgs(snapshot: Snapshot) -> List[Pg]:
    """Returns the PGs with upmap items, in order, whose OSDs their rule does not allow or a monitor
    would reject."""
    if OF_RULE.isdisjoint(snapshot.skipped):
        return []
    pgs = snapshot.pgs
    pinned = [pgs[pgid] for pgid in snapshot.upmap_items if pgid in pgs]
    return sorted([pg for pg in pinned if pg.immovable in OF_RULE],
                  key=lambda pg: (pg.pool, pg_number(pg.pgid)))


def repair_plan(snapshot: Snapshot, options: PlanOptions = PlanOptions()) -> Plan:
    """Returns a plan that repairs all PGs that it can, within the options; if told to end, with the
    moves found so far."""
    changes = PlannedChanges(snapshot)
    stop_reason = CONVERGED
    unmended = 0
    shards = moved_bytes = 0
    legal = _legal_pools(snapshot, options)
    is_repair = options.rule_id is None
    for pg in broken_pgs(snapshot) if is_repair else _breaking(snapshot, legal):
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
        shards += copied
        moved_bytes += copied * pg.shard_bytes
        stop_reason = options.limit_passed(shards, moved_bytes) or CONVERGED
        if stop_reason != CONVERGED:
            break
        gains, losses = shard_changes(pg.up, wanted, erasure)
        changes.add(pg, wanted, list(zip(losses, gains)))
    if told_to_end():
        stop_reason = INTERRUPTED
    plan = changes.plan(stop_reason, options, utilization_bounds(snapshot))
    left_out = dict(plan.skipped)
    if unmended:
        left_out[NOT_MENDED if is_repair else NOT_PREPARED] = unmended
    return plan._replace(kind=REPAIR, skipped=left_out)


def _legal_pools(snapshot: Snapshot, options: PlanOptions) -> Dict[int, _Legal]:
    """Returns pool id → the rules that its PGs have to keep, of the pools of the options."""
    found: Dict[int, _Legal] = {}
    for pool in piecewise(snapshot.pools.values(), 1):
        if options.pool_ids is None or pool.id in options.pool_ids:
            legal = _legal(snapshot, options, pool)
            if legal is not None:
                found[pool.id] = legal
    return found


def _breaking(snapshot: Snapshot, legal: Dict[int, _Legal]) -> List[Pg]:
    """Returns the PGs of these pools that break a rule, except PGs that another reason keeps in
    place. The largest come first: then the others even out."""
    found: List[Pg] = []
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        if pg.immovable is not None and pg.immovable not in OF_RULE:
            continue
        if pg.pool in legal and legal[pg.pool].breaks(pg.up):
            found.append(pg)
    return sorted(found, key=lambda pg: (-pg.shard_bytes, pg.pool, pg_number(pg.pgid)))


def _mended(snapshot: Snapshot, options: PlanOptions, used: Dict[int, int], pg: Pg,
            legal: _Legal) -> Optional[Osds]:
    """Returns the first legal up set with enough free space. None if there is none, or `give_way`
    has asked the work to end. `used`: OSD id → bytes."""
    pool = snapshot.pools[pg.pool]
    room = _room(snapshot, options, used, pg, legal)
    for up in _possible(snapshot, options, used, pg, legal, room):
        if not give_way():
            return None
        if NO_OSD in up or len(up) != pool.size or legal.breaks(up):
            continue
        if not pool.erasure:
            up = keep_raw_positions(pg.raw, up, legal.rules[0])
        try:
            items_for(pg.raw, up)
        except ValueError:
            continue   # upmap items cannot express it
        gains, losses = shard_changes(pg.holders, up, pool.erasure)
        if room.keys() >= set(gains) and _may_all_give(snapshot, options, losses):
            return up
    return None


def _may_all_give(snapshot: Snapshot, options: PlanOptions, osds: Sequence[int]) -> bool:
    """Returns True if shards may leave all of these OSDs."""
    known = snapshot.osds
    return all([options.may_give(osd, known[osd].device_class) for osd in osds if osd in known])


def _room(snapshot: Snapshot, options: PlanOptions, used: Dict[int, int], pg: Pg,
          legal: _Legal) -> Dict[int, float]:
    """Returns OSD that may take a shard of the PG → its utilization then, a ratio of its
    capacity."""
    pool = snapshot.pools[pg.pool]
    osds = snapshot.osds
    fill = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
    if options.rule_id is not None:   # nothing is broken yet: not worth a nearfull rack
        fill = min(fill, snapshot.nearfull_ratio)
    room: Dict[int, float] = {}
    for number in legal.places:
        osd = osds.get(number)
        if osd is None or osd.unusable_reason() is not None:
            continue
        if not options.may_get(number):
            continue
        reached = used[number] + pool.bytes_on(pg.shard_bytes, number, pg.up)
        if reached <= fill * osd.size_bytes:
            room[number] = (reached - osd.spared_bytes) / osd.capacity_bytes
    return room


def _possible(snapshot: Snapshot, options: PlanOptions, used: Dict[int, int], pg: Pg,
              legal: _Legal, room: Dict[int, float]) -> Iterator[Osds]:
    """Yields up sets to try: the present holders, then with one shard on another OSD, then (only
    for a repair) with fewer upmap items, then with more shards on other OSDs."""
    yield pg.holders
    up = pg.up
    rules = legal.rules
    in_place: Counter[Any] = Counter()
    targets: List[int] = []   # the emptiest of each place
    for osd in sorted(room, key=lambda osd: (room[osd], osd)):
        place = legal.places[osd]
        if osd not in up and in_place[place] < legal.most:
            in_place[place] += 1
            targets.append(osd)

    def utilization(position: int) -> float:
        number = up[position]
        osd = snapshot.osds.get(number)
        capacity = osd.capacity_bytes if osd is not None else 0
        return used.get(number, 0) / (capacity or 1)
    # the fullest leave if there is a choice
    by_use = sorted(range(len(up)), key=utilization)
    yield from _elsewhere(rules, up, by_use, targets, 1)
    if options.rule_id is None:
        yield from _with_fewer_items(pg.raw, snapshot.items_of(pg.pgid))
    for shards in range(2, len(up) + 1):
        yield from _elsewhere(rules, up, by_use, targets, shards)


def _with_fewer_items(raw: Osds, items: UpmapItems) -> Iterator[Osds]:
    """Yields the up sets of a PG with fewer of its upmap items, last with none."""
    for dropped in range(1, min(_MOST_DROPPED, len(items)) + 1):
        for some in combinations(items, len(items) - dropped):
            yield apply_items(raw, some, lambda _osd: False)
    yield raw


def _elsewhere(rules: Sequence[PlacementRule], up: Osds, order: Sequence[int],
               targets: Sequence[int], shards: int) -> Iterator[Osds]:
    """Yields up sets that differ in so many shards. The shards of the first positions in `order`
    stay if they can; the others go to the first targets that fit."""
    tries = iter(range(_MOST_TRIED))

    def fits(wanted: Osds) -> bool:
        if not give_way() or next(tries, None) is None:
            return False
        return not any(rule.conflict(wanted) for rule in rules)

    def stay(wanted: Osds, left: Sequence[int], leaving: int) -> Iterator[Osds]:
        if not left:
            yield from go(wanted)
        if len(left) > leaving:
            position = left[0]
            one = replaced(wanted, position, up[position])
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
            one = replaced(wanted, position, osd)
            if fits(one):
                yield from go(one)
    return stay((NO_OSD,) * len(up), order, shards)
