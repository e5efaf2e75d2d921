"""The placement while it is being planned, in flat lists: OSDs, PGs and pools have small indices.

Attribute lookups and dictionaries of names cost most of a plan's time, as measured; so this room
and those that work on it (targets, descent, squeeze) use lists indexed by integers.
"""
from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...plan.options import HARD_SHARE, PlanOptions, effective_fill_limit, upmap_pairs_left
from ...runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ...runtime.row_store import RowList
from ...snapshot.model import Pg, Snapshot, pg_number
from .shard_groups import ShardGroup, build_groups


_PGS_A_PIECE = 500   # placed between two checkpoints: a few milliseconds

ShardMove = Tuple[int, int, int]   # one shard's move: (PG, source, target)


class PlacementState:
    """Used bytes, shard counts and up sets, with the legality of single moves.

    `start` is what the plan starts from: a shard that is not where it started is displaced, and
    costs its bytes once, wherever it goes.
    """

    def __init__(self, snapshot: Snapshot, options: PlanOptions,
                 checkpoint: Checkpoint = no_checkpoint) -> None:
        self.snapshot = snapshot
        self.osd_ids: List[int] = sorted(o.id for o in snapshot.osds.values() if o.has_statistics)
        self.index_of: Dict[int, int] = {osd: i for i, osd in enumerate(self.osd_ids)}
        osds = [snapshot.osds[osd] for osd in self.osd_ids]
        self.used_bytes: List[int] = [o.target_bytes for o in osds]
        self.size_bytes: List[int] = [o.size_bytes for o in osds]
        #: less than the size where the operator's weights hold an OSD to a share of it, and what of
        #: its used bytes that does not count
        self.capacity_bytes: List[int] = [o.capacity_bytes for o in osds]
        self.spared_bytes: List[int] = [o.spared_bytes if o.share < 1.0 else 0 for o in osds]
        self.share_limit_bytes: Dict[int, int] = {}             # OSD index → bytes that are its share
        limit = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
        self.fill_limit_bytes: List[int] = [int(limit * o.size_bytes) if o.unusable_reason() is None else 0
                                for o in osds]
        self.is_target: List[bool] = [o.unusable_reason() is None for o in osds]
        self.is_source: List[bool] = [options.device_classes is None
                                  or o.device_class in options.device_classes for o in osds]
        #: `group_at`: pool id → group index per position
        self.groups, self.groups_of_pool = build_groups(snapshot, self.osd_ids)
        self.pgs: RowList[Pg] = RowList(Pg)
        self.pool_of_pg: List[int] = []               # PG index → pool id
        self.pg_bytes: List[int] = []
        self.up: List[Tuple[int, ...]] = []        # PG index → OSD indices
        self.initial_up: List[Tuple[int, ...]] = []
        self.raw_up: List[Tuple[int, ...]] = []
        self.shards: List[List[int]] = [[] for _ in osds]  # OSD index → movable PGs on it
        self.change_log: List[int] = []               # OSD indices, in the order of the changes
        self.candidates_examined = 0                          # candidates looked at, by whoever looks
        self.change_counts: List[int] = [0] * len(osds)  # changes per OSD
        self.moved_pgs: Set[int] = set()               # PGs whose up set was touched
        #: told of every move after it is made: PG, source, target, group
        self.observers: List[Callable[[int, int, int, int], None]] = []
        #: PG shards per OSD index, those that cannot be moved included, and the most of a target
        self.shard_counts: List[int] = [0] * len(osds)
        self.max_shards: Optional[List[int]] = None
        self._pairs_left = upmap_pairs_left(
            options.max_upmap_items, len(snapshot.pgs),
            sum(len(items) for items in snapshot.upmap_items.values()))
        self._add_pgs(options, checkpoint)
        self.max_shards = self._shard_limits(options)

    def set_share_limits(self, most: Mapping[int, int]) -> None:
        """OSDs (by id) that no shard may go to beyond so many used bytes, and that are to give
        what they hold beyond them."""
        for osd, limit in most.items():
            i = self.index_of.get(osd)
            if i is not None:
                self.share_limit_bytes[i] = limit
                self.fill_limit_bytes[i] = min(self.fill_limit_bytes[i], limit)

    # -- reading -------------------------------------------------------------------------------

    def capacity_utilization(self, osd: int) -> float:
        """Used bytes for the OSD's capacity: what OSDs are filled by."""
        return (self.used_bytes[osd] - self.spared_bytes[osd]) / self.capacity_bytes[osd]

    def group_of(self, pg: int, osd: int) -> int:
        """The group of the shard that a PG has on an OSD."""
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        return groups[0] if len(groups) == 1 else groups[self.up[pg].index(osd)]

    def block_spans(self, pg: int) -> List[slice]:
        """The spans of a PG's up set that are placed under one take each."""
        rule = self.groups[self.groups_of_pool[self.pool_of_pg[pg]][0]].pool.rule
        assert rule is not None
        return [slice(b.start, b.start + b.positions) for b in rule.blocks]

    def initial_osds(self, pg: int, osd: int, group: int) -> Tuple[int, ...]:
        """Where a displaced shard on an OSD could return to: what its PG left behind."""
        start, up = self.initial_up[pg], self.up[pg]
        if self.groups[group].pool.erasure:
            return (start[up.index(osd)],)
        block = self.groups[group].block
        return tuple(o for o in start[block.start:block.start + block.positions] if o not in up)

    def is_legal(self, pg: int, source: int, target: int) -> bool:
        """May the shard of a PG on `source` go to `target`, and can upmap items express it?"""
        up = self.up[pg]
        if target in up or not self.is_target[target] or not self._keeps_count_limits(((pg, source, target),)):
            return False
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        position = up.index(source)
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        if target not in group.members:
            return False
        if not self._expressible(pg, position, target, group):
            return False
        bucket = group.domain_of
        if bucket is not None:
            wanted = bucket[target]
            for other in up:
                if bucket[other] == wanted and other != source:
                    return False
            return True
        rule = group.pool.rule
        assert rule is not None
        ids = self.osd_ids
        return rule.allows([ids[o] for o in up], position, ids[target])

    def is_legal_joint(self, steps: Sequence[ShardMove]) -> bool:
        """May several shards of one PG move at once, and can upmap items express it?"""
        pg = steps[0][0]
        up = list(self.up[pg])
        if not self._keeps_count_limits(steps):
            return False
        for _, source, target in steps:
            if target in up or not self.is_target[target]:
                return False
            position = up.index(source)
            group = self.groups[self.group_of(pg, source)]
            if not self._expressible(pg, position, target, group):
                return False
            up[position] = target
        rule = group.pool.rule
        assert rule is not None
        wanted = [self.osd_ids[osd] for osd in up]
        return rule.violation(wanted) is None and rule.upmap_rejection(wanted) is None

    def _keeps_count_limits(self, steps: Sequence[ShardMove]) -> bool:
        """Do the targets and the osdmap keep their limits of PG shards and upmap items?"""
        if self.max_shards is not None and any(
                self.shard_counts[target] >= self.max_shards[target] for _, _, target in steps):
            return False
        if self._pairs_left is None:
            return True
        more = sum(self._added_upmap_pairs(*step) for step in steps)
        return more <= 0 or more < self._pairs_left   # of a swap each half is asked for alone

    def _added_upmap_pairs(self, pg: int, source: int, target: int) -> int:
        """Pairs of upmap items that a shard's move adds; -1 where it goes back to CRUSH's OSD."""
        raw = self.raw_up[pg]
        return (source in raw) - (target in raw)

    def _expressible(self, pg: int, position: int, target: int, group: ShardGroup) -> bool:
        """Shards of one PG never follow each other, and items never exchange OSDs of a PG."""
        for known in (self.initial_up[pg], self.raw_up[pg]):
            if target in known:
                home = known.index(target)
                if group.pool.erasure:
                    if home != position:
                        return False
                elif not group.block.start <= home < group.block.start + group.block.positions:
                    return False
        return True

    # -- changing ------------------------------------------------------------------------------

    def move(self, pg: int, source: int, target: int) -> None:
        """Moves one shard; the caller has checked that it may."""
        up = self.up[pg]
        position = up.index(source)
        groups = self.groups_of_pool[self.pool_of_pg[pg]]
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        size = self.pg_bytes[pg]
        up = self.up[pg] = up[:position] + (target,) + up[position + 1:]
        if self._pairs_left is not None:
            self._pairs_left -= self._added_upmap_pairs(pg, source, target)
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
        self.change_counts[source] += 1
        self.change_counts[target] += 1
        self.change_log.append(source)
        self.change_log.append(target)
        self.moved_pgs.add(pg)
        for follow in self.observers:
            follow(pg, source, target, group.index)

    # -- building ------------------------------------------------------------------------------

    def _shard_limits(self, options: PlanOptions) -> Optional[List[int]]:
        """Per OSD; those that are above the limit by others' doing have a higher one."""
        most, hard = options.max_pg_shards_per_osd, options.max_pg_shards_hard
        if not most:
            return None
        return [int(HARD_SHARE * hard) if hard and count > most else most
                for count in self.shard_counts]

    def _add_pgs(self, options: PlanOptions, checkpoint: Checkpoint) -> None:
        """One pass over the PGs, in an order that no dictionary decides."""
        index_of = self.index_of
        for pg in with_checkpoints(_in_order(self.snapshot, checkpoint), _PGS_A_PIECE, checkpoint):
            groups = self.groups_of_pool.get(pg.pool)
            for osd in pg.up:
                if osd in index_of:
                    self.shard_counts[index_of[osd]] += 1
            if groups is None or len(pg.up) != self.snapshot.pools[pg.pool].size:
                continue
            movable = (pg.immovable is None and pg.pgid not in options.rejected_pgs
                       and (options.pool_ids is None or pg.pool in options.pool_ids))
            for position, osd in enumerate(pg.up):
                i = index_of.get(osd)
                group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
                group.shard_count += 1
                group.total_bytes += pg.shard_bytes
                if i is not None:
                    group.counts[i] += 1
                else:
                    movable = False
            if movable:
                self._add_movable(pg)

    def _add_movable(self, pg: Pg) -> None:
        number = len(self.pgs)
        up = tuple([self.index_of[osd] for osd in pg.up])
        self.pgs.append(pg)
        self.pool_of_pg.append(pg.pool)
        self.pg_bytes.append(pg.shard_bytes)
        self.up.append(up)
        self.initial_up.append(up)
        self.raw_up.append(tuple([self.index_of.get(osd, -1) for osd in pg.raw]))
        for i in up:
            self.shards[i].append(number)
        for index in sorted(set(self.groups_of_pool[pg.pool])):
            if self.groups[index].domain_bits:
                self.groups[index].add_reachable_domains(up)


def _in_order(snapshot: Snapshot, checkpoint: Checkpoint) -> Iterator[Pg]:
    """The PGs by pool and number, sorted pool by pool: one long sort would hold the GIL."""
    by_pool: Dict[int, List[str]] = {}
    for pg in with_checkpoints(snapshot.pgs.values(), 10 * _PGS_A_PIECE, checkpoint):
        by_pool.setdefault(pg.pool, []).append(pg.pgid)
    for pool in sorted(by_pool):
        checkpoint()
        for pgid in sorted(by_pool[pool], key=pg_number):
            yield snapshot.pgs[pgid]
