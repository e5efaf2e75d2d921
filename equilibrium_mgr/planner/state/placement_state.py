"""The placement while it is being planned: used bytes, shard counts, up sets, legality of moves.

OSDs, PGs and groups are numbered from 0 and kept in lists by these indices. Attribute lookups and
dictionaries of names took most of a plan's time, as measured.
"""
from __future__ import annotations

from math import inf
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...plan.options import PlanOptions, effective_fill_limit, upmap_pairs_left
from ...runtime.time_slice import give_way, piecewise, sorted_piecewise
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd, Pg, Snapshot, pg_number
from ...snapshot.upmap_items import items_for
from .shard_groups import ShardGroup, build_groups


_PGS_A_PIECE = 500   # added before it gives way again: a few milliseconds

ShardMove = Tuple[int, int, int]   # one shard's move: (PG, source, target)


class PlacementState:
    """A placement that moves are made on.

    A shard that is not on its initial OSD is displaced: it costs its bytes once, wherever it is.
    """

    def __init__(self, snapshot: Snapshot, options: PlanOptions) -> None:
        self.snapshot = snapshot
        #: OSD index → OSD id, and the reverse; OSDs without statistics have no index
        self.osd_ids: List[int] = sorted(o.id for o in snapshot.osds.values() if o.has_statistics)
        self.index_of: Dict[int, int] = {osd: i for i, osd in enumerate(self.osd_ids)}
        self._load_osds([snapshot.osds[osd] for osd in self.osd_ids], options)
        #: all groups, and per pool id the group index of each position (or of all)
        self.groups, self.groups_of_pool = build_groups(snapshot, self.osd_ids)
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
        self.raw_up: List[Tuple[int, ...]] = []    # what CRUSH alone gives; -1: no OSD of ours
        self.moved_pgs: Set[int] = set()           # PGs whose up set was ever changed
        #: OSD index → (PG, OSD that CRUSH wants for it) of the shards that upmap items hold there
        self.pinned: Dict[int, List[Tuple[int, int]]] = {}
        self._exchanged: Set[int] = set()   # PGs with a shard where CRUSH wants another one
        #: per OSD index: movable PGs on it, PG shards (with those that cannot be moved), and the
        #: (group, bytes) of each shard that has come or left
        self.shards: List[List[int]] = [[] for _ in self.osd_ids]
        self.shard_counts: List[int] = [0] * len(self.osd_ids)
        self.changes: List[List[Tuple[int, int]]] = [[] for _ in self.osd_ids]
        self.change_log: List[int] = []            # source and target of each move, as OSD indices
        self.candidates_examined = 0               # counted by the searches
        #: called after every move: PG, source, target, group
        self.observers: List[Callable[[int, int, int, int], None]] = []
        #: the most PG shards of an OSD
        self.max_shards = options.max_pg_shards_per_osd or inf
        self._upmap_pairs_left = upmap_pairs_left(
            options.max_upmap_items, len(snapshot.pgs),
            sum(len(items) for items in snapshot.upmap_items.values()))
        self._add_pgs(options)
        #: OSD indices with more PG shards than that: they get nothing but what left them back
        self._crowded = frozenset(
            i for i, count in enumerate(self.shard_counts) if count > self.max_shards)

    def _load_osds(self, osds: List[Osd], options: PlanOptions) -> None:
        limit = effective_fill_limit(options.fill_limit, self.snapshot.backfillfull_ratio)
        self.used_bytes: List[int] = [o.target_bytes for o in osds]
        self.size_bytes: List[int] = [o.size_bytes for o in osds]
        #: below the size where the operator's weights hold an OSD to a share of it
        self.capacity_bytes: List[int] = [o.capacity_bytes for o in osds]
        #: used bytes that do not count for the capacity
        self.spared_bytes: List[int] = [o.spared_bytes if o.share < 1.0 else 0 for o in osds]
        #: OSD index → used bytes that its share comes to; only OSDs that are held to one
        self.share_limit_bytes: Dict[int, int] = {}
        #: the most used bytes that moves may fill an OSD to; 0 where nothing may go to
        full = self.snapshot.full_ratio
        sizes = [o.size_bytes + o.fixed_bytes / full for o in osds]
        highest: Dict[str, float] = {}   # by the sizes themselves
        for o, size in zip(osds, sizes):
            now = (o.target_bytes + o.fixed_bytes) / size
            highest[o.device_class] = max(highest.get(o.device_class, 0.0), now)
        self.fill_limit_bytes: List[int] = [0] * len(osds)
        for i, o in enumerate(osds):
            if o.unusable_reason() is None:
                most = min(limit, highest[o.device_class]) if o.fixed_bytes else limit
                self.fill_limit_bytes[i] = int(most * sizes[i]) - o.fixed_bytes
        #: True where shards could be, whatever the options leave out
        self.is_usable: List[bool] = [o.unusable_reason() is None for o in osds]
        self.is_target: List[bool] = [
            usable and (options.targets is None or o.id in options.targets)
            for usable, o in zip(self.is_usable, osds)]
        self.is_source: List[bool] = [
            (options.device_classes is None or o.device_class in options.device_classes)
            and (options.sources is None or o.id in options.sources) for o in osds]

    def set_share_limits(self, limits: Mapping[int, int]) -> None:
        """Sets limits: OSD id → used bytes beyond which no shard may go to it, and shards shall
        leave it."""
        for osd, limit in limits.items():
            i = self.index_of.get(osd)
            if i is not None:
                self.share_limit_bytes[i] = limit
                self.fill_limit_bytes[i] = min(self.fill_limit_bytes[i], limit)

    # -- reading -------------------------------------------------------------------------------

    def utilization(self, osd: int) -> float:
        """Used bytes as a ratio of the OSD's size."""
        return self.used_bytes[osd] / self.size_bytes[osd]

    def capacity_utilization(self, osd: int) -> float:
        """Used bytes that count, as a ratio of the OSD's capacity: what OSDs are filled by."""
        return (self.used_bytes[osd] - self.spared_bytes[osd]) / self.capacity_bytes[osd]

    def group_of(self, pg: int, osd: int) -> int:
        """The group of the shard that a PG has on an OSD."""
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        return groups[0] if len(groups) == 1 else groups[self.up[pg].index(osd)]

    def size_on(self, pg: int, osd: int) -> int:
        """Bytes of the shard that a PG has on an OSD."""
        return self.bytes_of[self.group_of(pg, osd)][pg] if self._uneven_groups else (
            self.pg_bytes[pg])

    def initial_osds(self, pg: int, osd: int, group: int) -> Tuple[int, ...]:
        """The initial OSDs that a displaced shard on an OSD can return to.

        In an erasure-coded pool that is its own; else all that shards of the PG have left.
        """
        initial, up = self.initial_up[pg], self.up[pg]
        if self.groups[group].pool.erasure:
            return (initial[up.index(osd)],)
        block = self.groups[group].block
        return tuple([o for o in initial[block.start:block.start + block.positions] if o not in up])

    # -- legality ------------------------------------------------------------------------------

    def is_legal(self, pg: int, source: int, target: int) -> bool:
        """True if the PG's shard on `source` may go to `target` and upmap items can express it."""
        up = self.up[pg]
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        domain_of = self.groups[groups[0]].domain_of if len(groups) == 1 else None
        if domain_of is not None:   # what refuses most moves first
            wanted = domain_of[target]
            if domain_of[source] != wanted:
                for other in up:
                    if domain_of[other] == wanted:
                        return False
        return self.refusal(pg, source, target) is None

    def refusal(self, pg: int, source: int, target: int) -> Optional[str]:
        """Why the PG's shard on `source` may not go to `target`, one of snapshot/reason_codes.py,
        what its rule forbids before what options and limits do; None where it may. Space on the
        target is for `room_refusal`."""
        return next(self.refusals(pg, source, target), None)

    def refusals(self, pg: int, source: int, target: int) -> Iterator[str]:
        """The codes of all checks that refuse it, in their order; of a target that holds a shard
        of the PG nothing else is asked."""
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
        else:
            rule = group.pool.rule
            assert rule is not None
            if not rule.allows([self.osd_ids[o] for o in up], position, self.osd_ids[target]):
                yield codes.FAILURE_DOMAIN
        outside = self._scope_refusal(pg, source, target)
        if outside is not None:
            yield outside
        yield from self._count_refusals(((pg, source, target),))
        if not self._is_expressible(pg, up, position, target, group):
            yield codes.EXCHANGE

    def _scope_refusal(self, pg: int, source: int, target: int) -> Optional[str]:
        """Code of the reason for which one of two OSDs must not take part, or None. A displaced
        shard may leave an OSD that must not give, and return to one that must not get."""
        if not self.is_target[target]:
            if not self.is_usable[target]:
                return codes.TARGET_UNAVAILABLE
            if target not in self.initial_up[pg]:
                return codes.OSD_EXCLUDED
        if not self.is_source[source] and source in self.initial_up[pg]:
            return codes.OSD_EXCLUDED
        return None

    def has_room(self, target: int, size: int) -> bool:
        """True if the target keeps its fill limit, and its share of weights, with `size` bytes."""
        return self.used_bytes[target] + size <= self.fill_limit_bytes[target]

    def room_refusal(self, target: int, size: int) -> Optional[str]:
        """Why `size` bytes more may not be on a target: the limit that is the lower; or None."""
        if self.has_room(target, size):
            return None
        share = self.share_limit_bytes.get(target)
        return (codes.FILL_LIMIT if share is None or share > self.fill_limit_bytes[target]
                else codes.REWEIGHT)

    def is_legal_joint(self, steps: Sequence[ShardMove]) -> bool:
        """True if several shards of one PG may move at once and upmap items can express it."""
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
        rule = group.pool.rule
        assert rule is not None
        wanted = [self.osd_ids[osd] for osd in up]
        return rule.refusal(wanted) is None

    def _count_refusals(self, steps: Sequence[ShardMove]) -> Iterator[str]:
        """Codes of the limits that moves would pass: PG shards of a target, and upmap pairs of the
        osdmap."""
        if any(target not in self.initial_up[pg] if target in self._crowded
               else self.shard_counts[target] >= self.max_shards for pg, _, target in steps):
            yield codes.PG_COUNT
        if not self.has_upmap_pairs(steps):
            yield codes.UPMAP_ITEMS

    def has_upmap_pairs(self, steps: Sequence[ShardMove]) -> bool:
        """True if the osdmap may have the pairs of upmap items that these moves add together."""
        left = self._upmap_pairs_left
        return left is None or sum(
            [self._added_upmap_pairs(*step) for step in steps]) <= max(0, left)

    def _added_upmap_pairs(self, pg: int, source: int, target: int) -> int:
        """Pairs of upmap items that a shard's move adds; -1 where it goes back to CRUSH's OSD."""
        raw = self.raw_up[pg]
        return (source in raw) - (target in raw)

    def _is_expressible(self, pg: int, up: Sequence[int], position: int, target: int,
                        group: ShardGroup) -> bool:
        """False where a shard would take an OSD that another shard of its PG left: upmap items
        cannot exchange OSDs of a PG. Where a freeze has had shards do so, they tell."""
        for known in (self.initial_up[pg], self.raw_up[pg]):
            if target in known:
                own = known.index(target)
                if group.pool.erasure:
                    if own != position:
                        return False
                elif not group.block.start <= own < group.block.start + group.block.positions:
                    return False
        if pg in self._exchanged:
            try:
                items_for(self.raw_up[pg], (*up[:position], target, *up[position + 1:]))
            except ValueError:
                return False
        return True

    # -- changing ------------------------------------------------------------------------------

    def move(self, pg: int, source: int, target: int) -> None:
        """Moves one shard. The caller has checked that it is legal."""
        up = self.up[pg]
        position = up.index(source)
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        size = self.bytes_of[group.index][pg]
        up = self.up[pg] = up[:position] + (target,) + up[position + 1:]
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
        self.changes[source].append((group.index, size))
        self.changes[target].append((group.index, size))
        self.change_log.append(source)
        self.change_log.append(target)
        self.moved_pgs.add(pg)
        for observe in self.observers:
            observe(pg, source, target, group.index)

    @property
    def moves_made(self) -> int:
        """Shard moves made so far, including those that were reverted or passed on."""
        return len(self.change_log) // 2

    # -- building ------------------------------------------------------------------------------

    def _add_pgs(self, options: PlanOptions) -> None:
        """One pass over the PGs, in an order that does not depend on a dictionary's."""
        get, shard_counts = self.index_of.get, self.shard_counts
        for pool_id, pgs in _in_order(self.snapshot):
            size = self.snapshot.pools[pool_id].size if pool_id in self.snapshot.pools else -1
            groups = self.groups_of_pool.get(pool_id)
            for pg in piecewise(pgs, _PGS_A_PIECE):
                up = tuple([get(osd, -1) for osd in pg.up])
                for i in up:
                    if i >= 0:
                        shard_counts[i] += 1
                if groups is not None and len(up) == size:
                    for index, i in zip(groups if len(groups) > 1 else groups * size, up):
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
        self.pgs.append(pg)
        self.pool_of_pg.append(pg.pool)
        self.pg_bytes.append(pg.shard_bytes)
        for group in self._uneven_groups:   # there are none in most clusters
            self.bytes_of[group.index].append(int(pg.shard_bytes * group.size_ratio))
        self.up.append(up)
        self.initial_up.append(up)
        # one tuple for all three where it can be: a third of what a PG takes of memory
        if pg.raw == pg.up:
            self.raw_up.append(up)
        else:
            raw = tuple([self.index_of.get(osd, -1) for osd in pg.raw])
            self.raw_up.append(raw)
            erasure = self.groups[groups[0]].pool.erasure
            wanted = [osd for osd in raw if osd >= 0 and osd not in up]
            for position, osd in enumerate(up):
                # where positions do not count, any of the OSDs that CRUSH wants will do
                for target in (wanted if not erasure and osd not in raw else
                               (raw[position],) if erasure and raw[position] in wanted else ()):
                    self.pinned.setdefault(osd, []).append((number, target))
            if erasure and any(osd in raw and osd != own for osd, own in zip(up, raw)):
                self._exchanged.add(number)
        shards = self.shards
        for i in up:
            shards[i].append(number)
        for index in groups if len(groups) == 1 else dict.fromkeys(groups):
            if self.groups[index].domain_bits:
                self.groups[index].add_reachable_domains(up)


def pg_refusal(pg: Pg, options: PlanOptions) -> Optional[str]:
    """Code of the reason for which a plan leaves a PG where it is; None where it may move it."""
    return next(pg_refusals(pg, options), None)


def pg_refusals(pg: Pg, options: PlanOptions) -> Iterator[str]:
    """The codes of all such reasons, in the order of the checks."""
    if options.pool_ids is not None and pg.pool not in options.pool_ids:
        yield codes.POOL_EXCLUDED
    if pg.immovable is not None:
        yield (codes.PG_NUM_CHANGING if pg.immovable.code == codes.PG_NUM_CHANGING
               else codes.IMMOVABLE)
    if pg.pgid in options.rejected_pgs:
        yield codes.REJECTED


def _in_order(snapshot: Snapshot) -> Iterator[Tuple[int, Iterator[Pg]]]:
    """Yields each pool's id and its PGs by number. Sorted pool by pool: one long sort would not
    yield."""
    by_pool: Dict[int, List[Tuple[int, Pg]]] = {}
    for pg in piecewise(snapshot.pgs.values(), 2 * _PGS_A_PIECE):
        by_pool.setdefault(pg.pool, []).append((pg_number(pg.pgid), pg))
    for pool in sorted(by_pool):
        give_way()
        yield pool, (pg for _, pg in sorted_piecewise(by_pool.pop(pool), 10 * _PGS_A_PIECE))
