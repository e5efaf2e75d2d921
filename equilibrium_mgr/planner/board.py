"""The placement while it is being planned, in flat lists: OSDs, PGs and pools have small indices.

Attribute lookups and dictionaries of names cost most of a plan's time, as measured; so this room
and those that work on it (targets, descent, squeeze) use lists indexed by integers.
"""
from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..crush.placement import Block, PlacementRule
from ..snapshot.model import Pg, Pool, Snapshot
from .paced import paced
from .options import PlanOptions, effective_fill_limit


#: Failure domains per shard of a PG up to which it pays to know which ones are open to whom.
_FEW_DOMAINS = 4

_PGS_A_PIECE = 500   # placed between two checkpoints: a few milliseconds


def _no_pause() -> None:
    pass


class Group:
    """The shards that one pool places under one take: where they are and where they may go."""

    def __init__(self, index: int, pool: Pool, block: Block, osds: List[int], size: int) -> None:
        self.index = index
        self.pool = pool
        self.block = block
        self.osds = osds                      # OSD indices that may hold its shards, sorted
        self.members = frozenset(osds)
        self.counts: List[int] = [0] * size   # shards per OSD index
        self.shards = 0
        self.bytes = 0                        # of all its shards
        #: OSD index → failure domain, where keeping shards in different ones is all there is to
        #: check; None where the rule asks for more
        self.bucket: Optional[List[int]] = None
        #: OSD index → the part of the tree that no single shard can leave; None: there is none
        self.zone: Optional[List[int]] = None
        #: bit of each failure domain, and per domain those that some shard in it can go to
        self.bits: Dict[int, int] = {}
        self.open: Dict[int, int] = {}

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.shards if self.shards else 0.0


class Board:
    """Used bytes, shard counts and up sets, with the legality of single moves.

    `start` is what the plan starts from: a shard that is not where it started is displaced, and
    costs its bytes once, wherever it goes.
    """

    def __init__(self, snapshot: Snapshot, options: PlanOptions,
                 pause: Callable[[], object] = _no_pause) -> None:
        self.snapshot = snapshot
        self.osd_ids: List[int] = sorted(o.id for o in snapshot.osds.values() if o.has_statistics)
        self.index_of: Dict[int, int] = {osd: i for i, osd in enumerate(self.osd_ids)}
        osds = [snapshot.osds[osd] for osd in self.osd_ids]
        self.used: List[int] = [o.target_bytes for o in osds]
        self.size: List[int] = [o.size_bytes for o in osds]
        limit = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
        self.most: List[int] = [int(limit * o.size_bytes) if o.cannot_take() is None else 0
                                for o in osds]
        self.takes: List[bool] = [o.cannot_take() is None for o in osds]
        self.gives: List[bool] = [options.device_classes is None
                                  or o.device_class in options.device_classes for o in osds]
        self.groups: List[Group] = []
        self.group_at: Dict[int, List[int]] = {}   # pool id → group index per position
        self.groups_of: List[List[int]] = [[] for _ in osds]  # OSD index → groups that may use it
        self.pgs: List[Pg] = []
        self.pg_bytes: List[int] = []
        self.up: List[List[int]] = []              # PG index → OSD indices
        self.start: List[Tuple[int, ...]] = []
        self.raw: List[Tuple[int, ...]] = []
        self.shards: List[List[int]] = [[] for _ in osds]  # OSD index → movable PGs on it
        self.changed: List[int] = []               # OSD indices, in the order of the changes
        self.version: List[int] = [0] * len(osds)  # changes per OSD
        self.moved: Set[int] = set()               # PGs whose up set was touched
        self._make_groups()
        self._place(options, pause)

    # -- reading -------------------------------------------------------------------------------

    def group_of(self, pg: int, osd: int) -> int:
        """The group of the shard that a PG has on an OSD."""
        groups = self.group_at[self.pgs[pg].pool]
        return groups[0] if len(groups) == 1 else groups[self.up[pg].index(osd)]

    def blocks(self, pg: int) -> List[slice]:
        """The spans of a PG's up set that are placed under one take each."""
        rule = self.groups[self.group_at[self.pgs[pg].pool][0]].pool.rule
        assert rule is not None
        return [slice(b.start, b.start + b.positions) for b in rule.blocks]

    def homes(self, pg: int, osd: int, group: int) -> Tuple[int, ...]:
        """Where a displaced shard on an OSD could return to: what its PG left behind."""
        start, up = self.start[pg], self.up[pg]
        if self.groups[group].pool.erasure:
            return (start[up.index(osd)],)
        block = self.groups[group].block
        return tuple(o for o in start[block.start:block.start + block.positions] if o not in up)

    def legal(self, pg: int, source: int, target: int) -> bool:
        """May the shard of a PG on `source` go to `target`, and can upmap items express it?"""
        up = self.up[pg]
        if target in up or not self.takes[target]:
            return False
        groups = self.group_at[self.pgs[pg].pool]
        position = up.index(source)
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        if target not in group.members:
            return False
        if not self._expressible(pg, position, target, group):
            return False
        bucket = group.bucket
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

    def _expressible(self, pg: int, position: int, target: int, group: Group) -> bool:
        """Shards of one PG never follow each other, and items never exchange OSDs of a PG."""
        for known in (self.start[pg], self.raw[pg]):
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
        groups = self.group_at[self.pgs[pg].pool]
        counts = self.groups[groups[position] if len(groups) > 1 else groups[0]].counts
        size = self.pg_bytes[pg]
        up[position] = target
        counts[source] -= 1
        counts[target] += 1
        self.used[source] -= size
        self.used[target] += size
        self.shards[source].remove(pg)
        self.shards[target].append(pg)
        group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
        if group.bits:
            self._open(group, up)
        self.version[source] += 1
        self.version[target] += 1
        self.changed.append(source)
        self.changed.append(target)
        self.moved.add(pg)

    # -- building ------------------------------------------------------------------------------

    def _make_groups(self) -> None:
        buckets: Dict[int, Tuple[Optional[List[int]], Optional[List[int]], List[int]]] = {}
        for pool in sorted(self.snapshot.pools.values(), key=lambda p: p.id):
            if pool.rule is None:
                continue
            at: List[int] = []
            for block in pool.rule.blocks:
                if id(block) not in buckets:
                    usable = sorted(self.index_of[o] for o in block.weights if o in self.index_of)
                    buckets[id(block)] = (self._simple_domain(pool.rule, block),
                                          self._zones(block, usable, pool.erasure), usable)
                bucket, zone, osds = buckets[id(block)]
                group = Group(len(self.groups), pool, block, osds, len(self.osd_ids))
                group.bucket, group.zone = bucket, zone
                if bucket is not None:
                    names = sorted({bucket[i] for i in osds})
                    # with many domains to choose from, nearly every one is open to some shard
                    if len(names) <= _FEW_DOMAINS * block.positions:
                        group.bits = {name: 1 << bit for bit, name in enumerate(names)}
                at += [group.index] * block.positions
                self.groups.append(group)
                for i in osds:
                    self.groups_of[i].append(group.index)
            self.group_at[pool.id] = at if len(pool.rule.blocks) > 1 else at[:1]

    def _simple_domain(self, rule: PlacementRule, block: Block) -> Optional[List[int]]:
        if rule.needs_full_check:
            return None
        if not block.domains:  # distinct OSDs are all the rule asks for
            return list(range(len(self.osd_ids)))
        bucket_of = block.domains[0].bucket_of
        # an OSD outside every bucket is its own: none of its shards is in anyone's way
        return [bucket_of.get(osd, i + 1) for i, osd in enumerate(self.osd_ids)]

    def _zones(self, block: Block, usable: Sequence[int],
               positional: bool) -> Optional[List[int]]:
        """The innermost bucket that a single shard cannot leave, per OSD.

        Where every bucket of a level is in use, or its shards come in fixed groups, one shard
        alone has nowhere to go outside its bucket.
        """
        zone: Optional[List[int]] = None
        parent: Dict[int, int] = {}
        for domain in block.domains:
            used = {i: domain.bucket_of[self.osd_ids[i]] for i in usable
                    if self.osd_ids[i] in domain.bucket_of}
            families: Dict[int, Set[int]] = {}
            for i, bucket in used.items():
                families.setdefault(parent.get(i, 0), set()).add(bucket)
            full = all(len(family) <= domain.buckets_per_parent for family in families.values())
            if not (full or (positional and domain.shards_per_bucket > 1)):
                break
            if not full and block.positions % domain.shards_per_bucket == 1:
                break  # the last group is a single shard, which may go
            zone = [used.get(i, 0) for i in range(len(self.osd_ids))]
            parent = used
        return zone

    def _place(self, options: PlanOptions, pause: Callable[[], object]) -> None:
        """One pass over the PGs, in an order that no dictionary decides."""
        index_of = self.index_of
        for pg in paced(_in_order(self.snapshot, pause), _PGS_A_PIECE, pause):
            groups = self.group_at.get(pg.pool)
            if groups is None or len(pg.up) != self.snapshot.pools[pg.pool].size:
                continue
            movable = (pg.immovable is None and pg.pgid not in options.rejected_pgs
                       and (options.pool_ids is None or pg.pool in options.pool_ids))
            for position, osd in enumerate(pg.up):
                i = index_of.get(osd)
                group = self.groups[groups[position] if len(groups) > 1 else groups[0]]
                group.shards += 1
                group.bytes += pg.shard_bytes
                if i is not None:
                    group.counts[i] += 1
                else:
                    movable = False
            if movable:
                self._take_up(pg)

    def _take_up(self, pg: Pg) -> None:
        number = len(self.pgs)
        up = [self.index_of[osd] for osd in pg.up]
        self.pgs.append(pg)
        self.pg_bytes.append(pg.shard_bytes)
        self.up.append(up)
        self.start.append(tuple(up))
        self.raw.append(tuple(self.index_of.get(osd, -1) for osd in pg.raw))
        for i in up:
            self.shards[i].append(number)
        for index in sorted(set(self.group_at[pg.pool])):
            if self.groups[index].bits:
                self._open(self.groups[index], up)

    def _open(self, group: Group, up: Sequence[int]) -> None:
        """Notes which failure domains a PG does not use: its shards may go there."""
        bucket = group.bucket
        assert bucket is not None
        block = group.block
        mine = [bucket[i] for i in up[block.start:block.start + block.positions]]
        unused = -1
        for b in mine:
            unused &= ~group.bits[b]
        for b in mine:
            group.open[b] = group.open.get(b, 0) | unused | group.bits[b]

    def reaches(self, group: Group, source: int, target: int) -> bool:
        """Whether some shard of the group could go from one OSD to the other; cheap to ask."""
        zone, bucket = group.zone, group.bucket
        if zone is not None and zone[source] != zone[target]:
            return False
        if bucket is None or not group.bits:
            return True
        return bool(group.open.get(bucket[source], 0) & group.bits[bucket[target]])


def _in_order(snapshot: Snapshot, pause: Callable[[], object]) -> Iterator[Pg]:
    """The PGs by pool and number, sorted pool by pool: one long sort would hold the GIL."""
    by_pool: Dict[int, List[Pg]] = {}
    for pg in paced(snapshot.pgs.values(), 10 * _PGS_A_PIECE, pause):
        by_pool.setdefault(pg.pool, []).append(pg)
    for pool in sorted(by_pool):
        pause()
        yield from sorted(by_pool[pool], key=lambda pg: int(pg.pgid.split(".", 1)[1], 16))
