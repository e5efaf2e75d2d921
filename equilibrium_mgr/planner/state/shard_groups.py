"""Groups of shards: what one pool places under one take, and where single shards of it may go."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...crush.placement import PlacementBlock, FailureDomain, PlacementRule
from ...snapshot.model import Pool, Snapshot

#: Failure domains per shard of a PG up to which it pays to know which ones are open to whom.
_FEW_DOMAINS = 4


class JointDomain(NamedTuple):
    """Buckets that take several shards of a PG each, with buckets beside them that are not in
    use: there shards move together (planner/search/joint_moves.py). Lists are by OSD index."""

    bucket_of: List[int]                       # -1: in none
    siblings: Dict[int, Tuple[int, ...]]      # bucket → others under the same bucket above
    subdomain_of: List[int]                        # failure domain within the bucket
    max_shards: int                             # as many at most


class ShardGroup:
    """The shards that one pool places under one take: where they are and where they may go."""

    def __init__(self, index: int, pool: Pool, shape: BlockLayout, osd_count: int) -> None:
        self.index = index
        self.pool = pool
        self.block = shape.block
        self.osds = shape.osds                # OSD indices that may hold its shards, sorted
        self.members = shape.members
        self.counts: List[int] = [0] * osd_count  # shards per OSD index
        self.shard_count = 0
        self.total_bytes = 0                        # of all its shards
        #: OSD index → failure domain, where keeping shards in different ones is all there is to
        #: check; None where the rule asks for more
        self.domain_of = shape.domain_of
        #: OSD index → the part of the tree that no single shard can leave; None: there is none
        self.zone = shape.zone
        self.joint = shape.joint
        #: bit of each failure domain, and per domain those that some shard in it can go to
        self.domain_bits = shape.domain_bits
        self.reachable_domains: Dict[int, int] = {}

    @property
    def mean_shard_bytes(self) -> float:
        return self.total_bytes / self.shard_count if self.shard_count else 0.0

    def add_reachable_domains(self, up: Sequence[int]) -> None:
        """Notes which failure domains a PG does not use: its shards may go there."""
        bucket = self.domain_of
        assert bucket is not None
        block = self.block
        mine = [bucket[i] for i in up[block.start:block.start + block.positions]]
        unused = -1
        for b in mine:
            unused &= ~self.domain_bits[b]
        for b in mine:
            self.reachable_domains[b] = self.reachable_domains.get(b, 0) | unused | self.domain_bits[b]

    def may_reach(self, source: int, target: int) -> bool:
        """Whether some shard of the group could go from one OSD to the other; cheap to ask."""
        if self.zone is not None and self.zone[source] != self.zone[target]:
            return False
        if self.domain_of is None or not self.domain_bits:
            return True
        return bool(self.reachable_domains.get(self.domain_of[source], 0) & self.domain_bits[self.domain_of[target]])


class BlockLayout:
    """What all groups of one take block of a rule have in common."""

    def __init__(self, rule: PlacementRule, block: PlacementBlock, osd_ids: Sequence[int],
                 positional: bool) -> None:
        index_of = {osd: i for i, osd in enumerate(osd_ids)}
        self.block = block
        self.osds = sorted(index_of[osd] for osd in block.weights if osd in index_of)
        self.members = frozenset(self.osds)
        self._osd_ids = osd_ids
        self.domain_of = self._simple_domain(rule)
        self.zone = self._zone(positional)
        self.joint = self._joint_domain()
        self.domain_bits: Dict[int, int] = {}
        if self.domain_of is not None:
            names = sorted({self.domain_of[i] for i in self.osds})
            # with many domains to choose from, nearly every one is open to some shard
            if len(names) <= _FEW_DOMAINS * block.positions:
                self.domain_bits = {name: 1 << bit for bit, name in enumerate(names)}

    def _simple_domain(self, rule: PlacementRule) -> Optional[List[int]]:
        if rule.needs_full_check:
            return None
        if not self.block.domains:  # distinct OSDs are all the rule asks for
            return list(range(len(self._osd_ids)))
        bucket_of = self.block.domains[0].bucket_of
        # an OSD outside every bucket is its own: none of its shards is in anyone's way
        return [bucket_of.get(osd, i + 1) for i, osd in enumerate(self._osd_ids)]

    def _used(self, domain: FailureDomain) -> Dict[int, int]:
        """OSD index → bucket, of the OSDs that the block may use."""
        return {i: domain.bucket_of[self._osd_ids[i]] for i in self.osds
                if self._osd_ids[i] in domain.bucket_of}

    def _zone(self, positional: bool) -> Optional[List[int]]:
        """The innermost bucket that a single shard cannot leave, per OSD.

        Where every bucket of a level is in use, or its shards come in fixed groups, one shard
        alone has nowhere to go outside its bucket.
        """
        zone: Optional[List[int]] = None
        above: Dict[int, int] = {}
        for domain in self.block.domains:
            used = self._used(domain)
            full = all(len(family) <= domain.buckets_per_parent
                       for family in _families(used, above).values())
            if not (full or (positional and domain.shards_per_bucket > 1)):
                break
            if not full and self.block.positions % domain.shards_per_bucket == 1:
                break  # the last group is a single shard, which may go
            zone = [used.get(i, 0) for i in range(len(self._osd_ids))]
            above = used
        return zone

    def _joint_domain(self) -> Optional[JointDomain]:
        above: Dict[int, int] = {}
        for level, domain in enumerate(self.block.domains):
            used = self._used(domain)
            families = _families(used, above)
            if domain.shards_per_bucket > 1 and any(
                    len(family) > domain.buckets_per_parent for family in families.values()):
                within = (self._used(self.block.domains[level + 1])
                          if level + 1 < len(self.block.domains) else {})
                count = len(self._osd_ids)
                return JointDomain(
                    bucket_of=[used.get(i, -1) for i in range(count)],
                    siblings={bucket: tuple(sorted(family - {bucket}))
                            for family in families.values() for bucket in family},
                    subdomain_of=[within.get(i, i + 1) for i in range(count)],
                    max_shards=domain.shards_per_bucket)
            above = used
        return None


def _families(used: Dict[int, int], above: Dict[int, int]) -> Dict[int, Set[int]]:
    """The buckets in use, by the bucket above them."""
    families: Dict[int, Set[int]] = {}
    for i, bucket in used.items():
        families.setdefault(above.get(i, 0), set()).add(bucket)
    return families


def build_groups(snapshot: Snapshot, osd_ids: Sequence[int]) -> Tuple[List[ShardGroup],
                                                                   Dict[int, List[int]]]:
    """All groups, and per pool id the group of each position (one for all where there is one)."""
    shapes: Dict[int, BlockLayout] = {}
    groups: List[ShardGroup] = []
    group_at: Dict[int, List[int]] = {}
    for pool in sorted(snapshot.pools.values(), key=lambda p: p.id):
        if pool.rule is None:
            continue
        at: List[int] = []
        for block in pool.rule.blocks:
            if id(block) not in shapes:
                shapes[id(block)] = BlockLayout(pool.rule, block, osd_ids, pool.erasure)
            groups.append(ShardGroup(len(groups), pool, shapes[id(block)], len(osd_ids)))
            at += [len(groups) - 1] * block.positions
        group_at[pool.id] = at if len(pool.rule.blocks) > 1 else at[:1]
    return groups, group_at
