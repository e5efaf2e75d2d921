"""The placement during planning: used bytes, shard counts, up sets, legality of moves.

OSDs, PGs and groups have numbers from 0, which are indices of lists: attribute lookups and
dictionaries of names took most of a plan's time.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from math import inf
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...crush.placement import replaced
from ...plan.options import PlanOptions, effective_fill_limit, upmap_pairs_left
from ...runtime.time_slice import give_way, piecewise, sorted_piecewise
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd, Pg, Snapshot, pg_number
from ...snapshot.upmap_items import items_for
from .shard_groups import ShardGroup, build_groups


_PGS_A_PIECE = 500   # added before it gives way again: a few milliseconds
#: If fewer upmap pairs are left than this ratio of the PGs, a plan can hardly gain.
_FEW_PAIRS_RATIO = 0.01

ShardMove = Tuple[int, int, int]   # one shard's move: (PG, source, target)


class PlacementState:
    """A placement that a search changes by moves.

    A shard that is not on its initial OSD is displaced: it costs its bytes once, on any other OSD.
    """

    candidates_examined = 0   # counted by the searches

    def __init__(self, snapshot: Snapshot, options: PlanOptions) -> None:
        self.snapshot = snapshot
        self._only = options.only
        #: OSD index → OSD id, and the reverse; OSDs without statistics have no index
        osd_ids = sorted([o.id for o in snapshot.osds.values() if o.has_statistics])
        self.osd_ids: List[int] = osd_ids
        self.index_of: Dict[int, int] = {osd: i for i, osd in enumerate(osd_ids)}
        self._load_osds([snapshot.osds[osd] for osd in osd_ids], options)
        #: all groups; pool id → the group index of each position, or one index for all positions
        self.groups, self.groups_of_pool = build_groups(snapshot, osd_ids)
        #: movable PGs; the lists below are by PG index
        self.pgs: List[Pg] = []
        self.pool_of_pg: List[int] = []            # pool id
        self.pg_bytes: List[int] = []              # of the mean shard
        #: group index → bytes of one of its shards by PG; of most groups that is `pg_bytes` itself
        self.bytes_of: List[List[int]] = [
            self.pg_bytes if group.size_ratio == 1.0 else [] for group in self.groups]
        self._uneven_groups = [group for group in self.groups if group.size_ratio != 1.0]
        self.up: List[Tuple[int, ...]] = []        # OSD indices
        self.initial_up: List[Tuple[int, ...]] = []
        self.raw_up: List[Tuple[int, ...]] = []    # raw CRUSH mapping; -1: an OSD without index
        self.moved_pgs: Set[int] = set()           # PGs whose up set has ever changed
        #: OSD index → (PG, the OSD that CRUSH wants) of the shards that upmap items keep there
        self.pinned: Dict[int, List[Tuple[int, int]]] = defaultdict(list)
        self._exchanged: Set[int] = set()   # PGs with a shard where CRUSH wants another of theirs
        #: per OSD index: movable PGs, PG shards including immovable ones, and the (group, bytes) of
        #: each shard that has come or left
        self.shards: List[List[int]] = [[] for _ in osd_ids]
        self.shard_counts: List[int] = [0] * len(osd_ids)
        self.changes: List[List[Tuple[int, int]]] = [[] for _ in osd_ids]
        self.change_log: List[int] = []            # source and target of each move, as OSD indices
        #: called after every move: PG, source, target, group
        self.observers: List[Callable[[int, int, int, int], None]] = []
        #: the most PG shards that an OSD may have
        self.max_shards = options.max_pg_shards_per_osd or inf
        self._upmap_pairs_left = upmap_pairs_left(
            options.max_upmap_items, len(snapshot.pgs),
            sum(map(len, snapshot.upmap_items.values())))
        self._add_pgs(options)
        #: OSD indices with more than `max_shards` PG shards: only shards that left them may return
        self._crowded = frozenset([
            i for i, count in enumerate(self.shard_counts) if count > self.max_shards])

    def _load_osds(self, osds: List[Osd], options: PlanOptions) -> None:
        limit = effective_fill_limit(options.fill_limit, self.snapshot.backfillfull_ratio)
        self.used_bytes: List[int] = [o.target_bytes for o in osds]
        self.size_bytes: List[int] = [o.size_bytes for o in osds]
        #: smaller than the size if the OSD has a lowered weight
        self.capacity_bytes: List[int] = [o.capacity_bytes for o in osds]
        #: used bytes that do not count for the capacity
        self.spared_bytes: List[int] = [o.spared_bytes for o in osds]
        #: OSD index → the used bytes of its share; only OSDs with a lowered weight
        self.share_limit_bytes: Dict[int, int] = {}
        full = self.snapshot.full_ratio
        sizes = [o.size_bytes + o.fixed_bytes / full for o in osds]
        #: device class → highest utilization of its OSDs, fixed bytes included
        highest: Dict[str, float] = defaultdict(float)
        for o, size in zip(osds, sizes):
            now = (o.target_bytes + o.fixed_bytes) / size
            highest[o.device_class] = max(highest[o.device_class], now)
        #: True if the OSD may take shards, whatever the plan's options say
        self.is_usable: List[bool] = [o.unusable_reason() is None for o in osds]
        #: the most used bytes to which moves may fill an OSD; 0 for OSDs that are not usable
        self.fill_limit_bytes: List[int] = [0] * len(osds)
        for i, o in enumerate(osds):
            if self.is_usable[i]:
                fixed = o.fixed_bytes
                most = min(limit, highest[o.device_class]) if fixed else limit
                self.fill_limit_bytes[i] = int(most * sizes[i]) - fixed
        self.is_target: List[bool] = [
            usable and options.may_get(o.id) for usable, o in zip(self.is_usable, osds)]
        self.is_source: List[bool] = [options.may_give(o.id, o.device_class) for o in osds]

    def set_share_limits(self, limits: Mapping[int, int]) -> None:
        """Sets limits: OSD id → the used bytes above which shards leave it and none may come."""
        for osd, limit in limits.items():
            i = self.index_of.get(osd)
            if i is not None:
                self.share_limit_bytes[i] = limit
                self.fill_limit_bytes[i] = min(self.fill_limit_bytes[i], limit)

    # -- reading -------------------------------------------------------------------------------

    def utilization(self, osd: int) -> float:
        """Returns used bytes as a ratio of the OSD's size."""
        return self.used_bytes[osd] / self.size_bytes[osd]

    def class_of(self, osd: int) -> str:
        """Returns the set and the device class of an OSD. Both, because a class may be in several
        sets that limit nothing of each other, and a set may have several classes."""
        number = self.osd_ids[osd]
        return f"{self.snapshot.set_of(number)} {self.snapshot.osds[number].device_class}"

    def bytes_by_pool(self) -> Mapping[int, int]:
        """Returns pool id → bytes of all its shards."""
        totals: Counter[int] = Counter()
        for group in self.groups:
            totals[group.pool.id] += group.total_bytes
        return totals

    def capacity_utilization(self, osd: int) -> float:
        """Returns the used bytes that count as a ratio of the OSD's capacity."""
        return (self.used_bytes[osd] - self.spared_bytes[osd]) / self.capacity_bytes[osd]

    def group_of(self, pg: int, osd: int) -> int:
        """Returns the group of the shard that a PG has on an OSD."""
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        return groups[0] if len(groups) == 1 else groups[self.up[pg].index(osd)]

    def size_on(self, pg: int, osd: int) -> int:
        """Returns the bytes of the shard that a PG has on an OSD."""
        if not self._uneven_groups:
            return self.pg_bytes[pg]
        return self.bytes_of[self.group_of(pg, osd)][pg]

    def initial_osds(self, pg: int, osd: int, group: int) -> Tuple[int, ...]:
        """Returns the initial OSDs that a displaced shard on an OSD can return to.

        A shard of an erasure-coded pool can return to its own, others to any that shards of the PG
        have left.
        """
        initial = self.initial_up[pg]
        up = self.up[pg]
        of_group = self.groups[group]
        if of_group.pool.erasure:
            return (initial[up.index(osd)],)
        members = of_group.block.members(initial)
        return tuple([o for o in members if o not in up])

    # -- legality ------------------------------------------------------------------------------

    def is_legal(self, pg: int, source: int, target: int) -> bool:
        """Returns True if the PG's shard on `source` may go to `target` by upmap items."""
        up = self.up[pg]
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        domain_of = self.groups[groups[0]].domain_of if len(groups) == 1 else None
        if domain_of is not None:   # this check comes first because it rejects most moves
            wanted = domain_of[target]
            if domain_of[source] != wanted:
                for other in up:
                    if domain_of[other] == wanted:
                        return False
        return self.refusal(pg, source, target) is None

    def refusal(self, pg: int, source: int, target: int) -> Optional[str]:
        """Returns the first of `refusals`, or None. `room_refusal` checks the target's space."""
        return next(self.refusals(pg, source, target), None)

    def refusals(self, pg: int, source: int, target: int) -> Iterator[str]:
        """Yields why the PG's shard on `source` may not go to `target` (snapshot/reason_codes.py).

        Checks the rule before options and limits. If the target holds a shard of the PG, yields
        only that.
        """
        up = self.up[pg]
        if target in up:
            yield codes.HOLDS_SHARD
            return
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        position = up.index(source)
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        domain_of = group.domain_of
        if target not in group.members:
            yield codes.FAILURE_DOMAIN
        elif domain_of is not None:
            wanted = domain_of[target]
            for other in up:
                if domain_of[other] == wanted and other != source:
                    yield codes.FAILURE_DOMAIN
                    break
        elif not group.rule.allows(
                [self.osd_ids[o] for o in up], position, self.osd_ids[target]):
            yield codes.FAILURE_DOMAIN
        outside = self._scope_refusal(pg, source, target)
        if outside is not None:
            yield outside
        yield from self._count_refusals(((pg, source, target),))
        if not self._is_expressible(pg, up, position, target, group):
            yield codes.EXCHANGE

    def _scope_refusal(self, pg: int, source: int, target: int) -> Optional[str]:
        """Returns the code of the reason why one of the OSDs must not take part, or None.

        Exceptions: a displaced shard may leave an OSD that must not give, and a shard may return to
        an initial OSD of its PG that must not get.
        """
        if self._only is not None and not self._is_free(pg, source, target):
            return codes.OSD_EXCLUDED
        if not self.is_target[target]:
            if not self.is_usable[target]:
                return codes.TARGET_UNAVAILABLE
            if target not in self.initial_up[pg]:
                return codes.OSD_EXCLUDED
        if not self.is_source[source] and source in self.initial_up[pg]:
            return codes.OSD_EXCLUDED
        return None

    def _is_free(self, pg: int, source: int, target: int) -> bool:
        """Returns True if a shard has no data on its initial OSD, and the target none of the PG."""
        assert self._only is not None
        record = self.pgs[pg]
        if source in self.initial_up[pg] and self.osd_ids[source] not in self._only[record.pgid]:
            return False
        return self.osd_ids[target] not in record.holders

    def has_room(self, target: int, size: int) -> bool:
        """Returns True if `size` more bytes keep the target's fill limit and share limit."""
        return self.used_bytes[target] + size <= self.fill_limit_bytes[target]

    def room_refusal(self, target: int, size: int) -> Optional[str]:
        """Returns the code of the lower limit if a target has no room for `size` bytes, or None."""
        if self.has_room(target, size):
            return None
        limit = self.fill_limit_bytes[target]
        if self.share_limit_bytes.get(target, inf) > limit:
            return codes.FILL_LIMIT
        return codes.REWEIGHT

    def is_legal_joint(self, steps: Sequence[ShardMove]) -> bool:
        """Returns True if several shards of one PG may move together by upmap items."""
        pg = steps[0][0]
        up = list(self.up[pg])
        if next(self._count_refusals(steps), None) is not None:
            return False
        for _, source, target in steps:
            if target in up or self._scope_refusal(pg, source, target) is not None:
                return False
            position = up.index(source)
            group = self.groups[self.group_of(pg, source)]
            if not self._is_expressible(pg, up, position, target, group):
                return False
            up[position] = target
        return group.rule.refusal([self.osd_ids[osd] for osd in up]) is None

    def _count_refusals(self, steps: Sequence[ShardMove]) -> Iterator[str]:
        """Yields the codes of the limits that moves would exceed: PG shards and upmap pairs."""
        for pg, _, target in steps:
            if target in self._crowded:
                is_full = target not in self.initial_up[pg]
            else:
                is_full = self.shard_counts[target] >= self.max_shards
            if is_full:
                yield codes.PG_COUNT
                break
        if not self.has_upmap_pairs(steps):
            yield codes.UPMAP_ITEMS

    def has_upmap_pairs(self, steps: Sequence[ShardMove]) -> bool:
        """Returns True if the osdmap is allowed to have the upmap pairs that these moves add
        together."""
        left = self._upmap_pairs_left
        if left is None:
            return True
        return sum([self._added_upmap_pairs(*step) for step in steps]) <= max(0, left)

    def has_few_upmap_pairs(self) -> bool:
        """Returns True if a plan may add so few upmap pairs that it can hardly gain."""
        left = self._upmap_pairs_left
        return left is not None and left < _FEW_PAIRS_RATIO * len(self.snapshot.pgs)

    def _added_upmap_pairs(self, pg: int, source: int, target: int) -> int:
        """Returns the upmap pairs that a shard's move adds; -1 for a return to the CRUSH OSD."""
        raw = self.raw_up[pg]
        return (source in raw) - (target in raw)

    def _is_expressible(self, pg: int, up: Sequence[int], position: int, target: int,
                        group: ShardGroup) -> bool:
        """Returns False if a shard would take an OSD that another shard of its PG left.

        Upmap items cannot exchange OSDs of a PG directly. If a freeze has made shards do so by a
        detour, `items_for` decides.
        """
        raw = self.raw_up[pg]
        for known in (self.initial_up[pg], raw):
            if target in known:
                own = known.index(target)
                if group.pool.erasure:
                    if own != position:
                        return False
                elif own not in group.block.span:
                    return False
        if pg in self._exchanged:
            try:
                items_for(raw, replaced(up, position, target))
            except ValueError:
                return False
        return True

    # -- changing ------------------------------------------------------------------------------

    def move(self, pg: int, source: int, target: int) -> None:
        """Moves one shard. The caller has checked that the move is legal."""
        up = self.up[pg]
        position = up.index(source)
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        index = group.index
        size = self.bytes_of[index][pg]
        up = self.up[pg] = replaced(up, position, target)
        if self._upmap_pairs_left is not None:
            self._upmap_pairs_left -= self._added_upmap_pairs(pg, source, target)
        self.shard_counts[source] -= 1
        self.shard_counts[target] += 1
        group.counts[source] -= 1
        group.counts[target] += 1
        self.used_bytes[source] -= size
        self.used_bytes[target] += size
        self.shards[source].remove(pg)
        self.shards[target].append(pg)
        if group.domain_bits:
            group.add_reachable_domains(up)
        change = index, size
        self.changes[source].append(change)
        self.changes[target].append(change)
        self.change_log.append(source)
        self.change_log.append(target)
        self.moved_pgs.add(pg)
        for observe in self.observers:
            observe(pg, source, target, index)

    @property
    def moves_made(self) -> int:
        """Returns the shard moves made so far, including those that were reverted or passed on."""
        return len(self.change_log) // 2

    # -- building ------------------------------------------------------------------------------

    def _add_pgs(self, options: PlanOptions) -> None:
        """Adds all PGs in one pass, in an order that does not depend on a dictionary."""
        get = self.index_of.get
        shard_counts = self.shard_counts
        for pool_id, pgs in _in_order(self.snapshot):
            groups = self.groups_of_pool.get(pool_id)
            size = -1
            if groups is not None:
                size = self.snapshot.pools[pool_id].size
            for pg in piecewise(pgs, _PGS_A_PIECE):
                up = tuple([get(osd, -1) for osd in pg.up])
                for i in up:
                    if i >= 0:
                        shard_counts[i] += 1
                if groups is not None and len(up) == size:
                    by_position = groups if len(groups) > 1 else groups * size
                    for index, i in zip(by_position, up):
                        group = self.groups[index]
                        group.shard_count += 1
                        group.total_bytes += int(pg.shard_bytes * group.size_ratio)
                        if i >= 0:
                            group.counts[i] += 1
                    if -1 not in up and pg_refusal(pg, options) is None:
                        self._add_movable(pg, up, groups)

    def _add_movable(self, pg: Pg, up: Tuple[int, ...],
                     groups: Sequence[int]) -> None:
        number = len(self.up)
        size = pg.shard_bytes
        self.pgs.append(pg)
        self.pool_of_pg.append(pg.pool)
        self.pg_bytes.append(size)
        for uneven in self._uneven_groups:   # there are none in most clusters
            self.bytes_of[uneven.index].append(int(size * uneven.size_ratio))
        self.up.append(up)
        self.initial_up.append(up)
        # one tuple for all three if possible: that saves a third of a PG's memory
        raw = up
        of_groups = [self.groups[index] for index in set(groups)]
        if pg.raw != pg.up:
            raw = tuple([self.index_of.get(osd, -1) for osd in pg.raw])
            self._add_pinned(number, up, raw, of_groups[0].pool.erasure)
        self.raw_up.append(raw)
        shards = self.shards
        for i in up:
            shards[i].append(number)
        for group in of_groups:
            if group.domain_bits:
                group.add_reachable_domains(up)

    def _add_pinned(self, number: int, up: Sequence[int], raw: Sequence[int],
                    erasure: bool) -> None:
        """Adds the shards of a PG that upmap items keep on their OSDs."""
        wanted = [osd for osd in raw if osd >= 0 and osd not in up]
        for position, osd in enumerate(up):
            targets: Sequence[int] = ()
            if erasure:
                own = raw[position]
                if own in wanted:
                    targets = (own,)
                if osd in raw and osd != own:
                    self._exchanged.add(number)
            elif osd not in raw:
                targets = wanted   # any of them, because positions do not matter
            for target in targets:
                self.pinned[osd].append((number, target))


def pg_refusal(pg: Pg, options: PlanOptions) -> Optional[str]:
    """Returns the code of the reason why a plan must not move a PG, or None."""
    return next(pg_refusals(pg, options), None)


def pg_refusals(pg: Pg, options: PlanOptions) -> Iterator[str]:
    """Yields the codes of all reasons why a plan must not move a PG."""
    if options.pool_ids is not None and pg.pool not in options.pool_ids:
        yield codes.POOL_EXCLUDED
    if options.only is not None and pg.pgid not in options.only:
        yield codes.IN_FLIGHT
    if pg.immovable is not None:
        is_changing = pg.immovable.code == codes.PG_NUM_CHANGING
        yield codes.PG_NUM_CHANGING if is_changing else codes.IMMOVABLE
    if pg.pgid in options.rejected_pgs:
        yield codes.REJECTED


def _in_order(snapshot: Snapshot) -> Iterator[Tuple[int, Iterator[Pg]]]:
    """Yields each pool's id and its PGs by number.

    Sorts each pool separately, because one long sort would hold the interpreter lock.
    """
    by_pool: Dict[int, List[Tuple[int, Pg]]] = defaultdict(list)
    for pg in piecewise(snapshot.pgs.values(), 2 * _PGS_A_PIECE):
        by_pool[pg.pool].append((pg_number(pg.pgid), pg))
    for pool in sorted(by_pool):
        give_way()
        yield pool, (pg for _, pg in sorted_piecewise(by_pool.pop(pool), 10 * _PGS_A_PIECE))
