"""Groups of shards: the shards of one pool under one take, and where each of them may go."""
from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...crush.placement import PlacementBlock, PlacementRule
from ...crush.rule import FailureDomain
from ...snapshot.model import Pool, Snapshot

#: Failure domains per shard of a PG up to which a group records which of them it can reach.
_FEW_DOMAINS = 4

_INT_BYTES = array("i").itemsize


class JointDomain(NamedTuple):
    """A failure domain whose buckets hold several shards of a PG each and are not all in use.

    Shards move together there (planner/search/joint_moves.py). Lists are by OSD index.
    """

    bucket_of: List[int]                    # -1: in none
    siblings: Dict[int, Tuple[int, ...]]    # bucket → others under the same parent
    subdomain_of: List[int]                 # failure domain within the bucket
    max_shards: int                         # of one PG per bucket


class ShardGroup:
    """The shards that one pool places under one take: where they are and where they may go."""

    def __init__(self, index: int, pool: Pool, layout: BlockLayout, osd_count: int,
                 size_ratio: float) -> None:
        self.index = index
        self.pool = pool
        self.rule = layout.rule
        self.size_ratio = size_ratio          # bytes of its shards ÷ the mean of their PGs
        self.block = layout.block
        self.osds = layout.osds               # OSD indices that may hold its shards, sorted
        self.members = layout.members         # the same as a set
        #: shards per OSD index; an array, because there are as many as pools times OSDs
        self.counts = array("i", bytes(_INT_BYTES * osd_count))
        self.shard_count = 0
        self.total_bytes = 0                  # of all its shards
        #: OSD index → failure domain; None if the rule needs more than distinct failure domains
        self.domain_of = layout.domain_of
        #: OSD index → the bucket that a shard cannot leave alone; None: there is none
        self.zone = layout.zone
        self.joint = layout.joint
        #: failure domain → its bit; empty if `reachable_domains` is not recorded
        self.domain_bits = layout.domain_bits
        #: failure domain → bits of the domains that some shard in it can go to
        self.reachable_domains: Dict[int, int] = defaultdict(int)

    @property
    def mean_shard_bytes(self) -> float:
        """Returns the bytes per shard, 0 without shards."""
        return self.total_bytes / self.shard_count if self.shard_count else 0.0

    def add_reachable_domains(self, up: Sequence[int]) -> None:
        """Records that a PG's shards may go to the failure domains that the PG does not use."""
        domain_of = self.domain_of
        assert domain_of is not None
        bits = self.domain_bits
        own = [domain_of[i] for i in self.block.members(up)]
        unused = -1
        for domain in own:
            unused &= ~bits[domain]
        for domain in own:
            self.reachable_domains[domain] |= unused | bits[domain]

    def may_reach(self, source: int, target: int) -> bool:
        """Returns False if certainly no shard of the group can go from `source` to `target`. This
        is a fast check: True proves nothing."""
        members = self.members
        if source not in members or target not in members:
            return False
        zone = self.zone
        if zone is not None and zone[source] != zone[target]:
            return False
        domain_of = self.domain_of
        bits = self.domain_bits
        if domain_of is None or not bits:
            return True
        return bool(self.reachable_domains[domain_of[source]] & bits[domain_of[target]])


class BlockLayout:
    """The OSDs and failure domains of a rule's take block, by OSD index; groups share it."""

    def __init__(self, rule: PlacementRule, block: PlacementBlock,
                 osd_ids: Sequence[int]) -> None:
        index_of = {osd: i for i, osd in enumerate(osd_ids)}
        self.rule = rule
        self.block = block
        self.osds = sorted(index_of[osd] for osd in block.weights if osd in index_of)
        self.members = frozenset(self.osds)
        self._osd_ids = osd_ids
        self.domain_of = self._only_domain()
        self.zone = self._zone()
        self.joint = self._joint_domain()
        self.domain_bits: Dict[int, int] = {}
        if self.domain_of is not None:
            names = sorted({self.domain_of[i] for i in self.osds})
            # some shard can reach nearly every one of many domains, so these are not recorded
            if len(names) <= _FEW_DOMAINS * block.positions:
                self.domain_bits = {name: 1 << bit for bit, name in enumerate(names)}

    def _only_domain(self) -> Optional[List[int]]:
        """Returns OSD index → failure domain; None if the rule needs more than distinct domains."""
        if self.rule.needs_full_check:
            return None
        if not self.block.domains:  # the rule only needs distinct OSDs
            return list(range(len(self._osd_ids)))
        bucket_of = self.block.domains[0].bucket_of
        # an OSD outside every bucket is a separate domain that no shard conflicts with
        return [bucket_of.get(osd, i + 1) for i, osd in enumerate(self._osd_ids)]

    def _buckets(self, domain: FailureDomain) -> Dict[int, int]:
        """Returns OSD index → bucket, for the OSDs that the block may use."""
        found: Dict[int, int] = {}
        for i in self.osds:
            bucket = domain.bucket_of.get(self._osd_ids[i])
            if bucket is not None:
                found[i] = bucket
        return found

    def _zone(self) -> Optional[List[int]]:
        """Returns OSD index → the innermost bucket that a single shard cannot leave, or None.

        A shard cannot leave it if each bucket in use is full and none is free, or if its group of
        shards has to stay together.
        """
        zone: Optional[List[int]] = None
        for domain, buckets, siblings in self._levels():
            shards = domain.shards_per_bucket
            rest = self.block.positions % shards
            if rest and not self.rule.is_grouped:
                break   # a bucket in use is not full
            if siblings and (shards == 1 or rest == 1):
                break   # a shard that is alone in its bucket may go to a free one
            zone = [buckets.get(i, 0) for i in range(len(self._osd_ids))]
        return zone

    def _levels(self) -> Iterator[Tuple[FailureDomain, Dict[int, int], List[Set[int]]]]:
        """Yields each failure domain, the outermost first, with OSD index → its bucket, and the
        sets of buckets of one parent if PGs leave some of these free.

        Yields nothing for MSR rules: a stride may use several buckets, so each shard may go
        separately.
        """
        if self.block.is_msr:
            return
        parents: Dict[int, int] = {}
        for domain in self.block.domains:
            buckets = self._buckets(domain)
            children: Dict[int, Set[int]] = defaultdict(set)
            for i, bucket in buckets.items():
                children[parents.get(i, 0)].add(bucket)
            siblings = list(children.values())
            if max(map(len, siblings), default=0) <= domain.buckets_per_parent:
                siblings = []
            yield domain, buckets, siblings
            parents = buckets

    def _joint_domain(self) -> Optional[JointDomain]:
        """Returns the outermost domain in which shards move together (JointDomain), or None."""
        levels = self._levels()
        for domain, buckets, siblings in levels:
            if domain.shards_per_bucket > 1 and siblings:
                others: Dict[int, Tuple[int, ...]] = {}
                for alike in siblings:
                    for bucket in alike:
                        others[bucket] = tuple(sorted(alike - {bucket}))
                inner = next(levels, None)
                within = {} if inner is None else inner[1]
                osds = range(len(self._osd_ids))
                return JointDomain(
                    bucket_of=[buckets.get(i, -1) for i in osds],
                    siblings=others,
                    subdomain_of=[within.get(i, i + 1) for i in osds],
                    max_shards=domain.shards_per_bucket)
        return None


def build_groups(snapshot: Snapshot,
                 osd_ids: Sequence[int]) -> Tuple[List[ShardGroup], Dict[int, List[int]]]:
    """Returns all groups, and pool id → the group index of each position.

    If all positions of a pool have the same group, the pool has one index.
    """
    layouts: Dict[PlacementBlock, BlockLayout] = {}
    groups: List[ShardGroup] = []
    groups_of_pool: Dict[int, List[int]] = {}
    for pool in sorted(snapshot.pools.values(), key=lambda p: p.id):
        rule = pool.rule
        if rule is None:
            continue
        ratios = pool.position_ratios or [1.0] * rule.size
        indices: List[int] = []
        for block in rule.blocks:
            if block not in layouts:
                layouts[block] = BlockLayout(rule, block, osd_ids)
            known: Dict[float, int] = {}   # ratio of sizes → its group
            for ratio in block.members(ratios):
                if ratio not in known:
                    known[ratio] = len(groups)
                    groups.append(ShardGroup(
                        len(groups), pool, layouts[block], len(osd_ids), ratio))
                indices.append(known[ratio])
        groups_of_pool[pool.id] = indices if len(set(indices)) > 1 else indices[:1]
    return groups, groups_of_pool
