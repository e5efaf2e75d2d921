"""The up sets that a pool's rule can produce, and the single replacements that keep them legal.

The check is stricter than the monitor, which tolerates uneven distributions that CRUSH never
produces. It is never more lenient: it also rejects each upmap that the monitor would cancel.
"""
from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from . import msr
from .hierarchy import OSD_TYPE, CrushHierarchy
from .rule import MSR_INDEP, FailureDomain, TakeBlock, parse_rule
from .upmap_check import UpmapCheck

_T = TypeVar("_T")

#: Stands in an up set for a shard without an OSD (CRUSH_ITEM_NONE).
NO_OSD = 0x7FFFFFFF


def replaced(up: Sequence[int], position: int, osd: int) -> Tuple[int, ...]:
    """Returns the up set with the OSD at the position."""
    return (*up[:position], osd, *up[position + 1:])


class PlacementBlock:
    """A take block in a hierarchy: the OSDs it may use and the domains that it keeps apart."""

    def __init__(self, crush: CrushHierarchy, block: TakeBlock) -> None:
        self.take = block.take
        self.positions = block.positions
        #: its positions in an up set
        self.span = range(block.start, block.start + block.positions)
        self.is_msr = block.is_msr
        #: from the outermost to the innermost
        self.domains: List[FailureDomain] = []
        tree = crush.subtree(block.take)
        #: OSD → CRUSH weight, only OSDs that the block can choose
        self.weights: Dict[int, float] = {osd: w for osd, w in tree.weights.items() if w > 0.0}
        shards = block.positions     # below one bucket of the step before
        for index, step in enumerate(block.choose_steps):
            bucket_of = tree.bucket_of(step.type_name)
            self.weights = {osd: w for osd, w in self.weights.items() if osd in bucket_of}
            if step.type_name == OSD_TYPE:
                continue  # `conflict` checks over the whole up set that OSDs are distinct
            below = block.shards_below(index)
            # a step may choose more buckets than the positions of the up set fill
            buckets = shards if block.is_msr else min(step.num, -(-shards // below))
            self.domains.append(FailureDomain(step.type_name, bucket_of, below, buckets))
            shards = min(shards, below)
        self.osds = frozenset(self.weights)

    def members(self, up: Sequence[_T]) -> Sequence[_T]:
        """Returns the part of an up set that the block places."""
        return up[self.span.start:self.span.stop]


class PlacementRule:
    """The legality of up sets for pools of one rule and size.

    A rule gives places: so many buckets, and so many shards in each. Copies, and chunks of most
    codes, may be on any of them. `is_grouped`: the chunks may not, as those of a locally repairable
    code. Each group of neighboring positions has a bucket of its own.
    Raises UnsupportedRule if the rule is not understood.
    """

    def __init__(self, crush: CrushHierarchy, rule: Mapping[str, Any], pool_size: int,
                 is_grouped: bool) -> None:
        self.size = pool_size
        self.is_grouped = is_grouped
        self.blocks = [PlacementBlock(crush, block) for block in parse_rule(rule, pool_size)]
        #: MSR rules let the OSDs of a stride be in several buckets; only msr_indep fixes which OSD
        #: is at which position
        self._msr_in_order = is_grouped and rule.get("type") == MSR_INDEP
        self._upmap_check = UpmapCheck(crush, rule, pool_size)
        self._block_at: List[PlacementBlock] = []
        for block in self.blocks:
            self._block_at += [block] * block.positions
        #: True if two blocks may choose the same OSD
        self.blocks_overlap = sum([len(b.osds) for b in self.blocks]) > len(self.osds())
        domains = self.blocks[0].domains
        has_groups = any(domain.shards_per_bucket > 1 for domain in domains)
        #: False for one take that gives each bucket one shard: then CRUSH and the monitor only need
        #: distinct buckets
        self.needs_full_check = len(self.blocks) > 1 or len(domains) > 1 or has_groups

    def block_at(self, position: int) -> PlacementBlock:
        """Returns the block that places a position of the up set."""
        return self._block_at[position]

    def osds(self) -> Dict[int, float]:
        """Returns every OSD that some block can choose → its CRUSH weight."""
        merged: Dict[int, float] = {}
        for block in self.blocks:
            merged.update(block.weights)
        return merged

    def refusal(self, up: Sequence[int]) -> Optional[str]:
        """Returns why no upmap may produce this up set, or None.

        Either the rule cannot produce it, or a monitor would cancel the upmap.
        """
        return self.violation(up) or self.upmap_rejection(up)

    def upmap_rejection(self, up: Sequence[int]) -> Optional[str]:
        """Returns why a monitor would cancel any upmap that produces this up set, or None."""
        return self._upmap_check.rejection(up)

    def violation(self, up: Sequence[int]) -> Optional[str]:
        """Returns why the rule cannot produce this up set, or None."""
        if len(up) != self.size or NO_OSD in up:
            return "a shard has no OSD"
        return self.conflict(up)

    def conflict(self, up: Sequence[int]) -> Optional[str]:
        """Returns why the rule cannot produce the OSDs of an up set together, or None.

        NO_OSD stands for a shard whose OSD is still to be chosen. None does not promise that there
        is one to choose.
        """
        holes = up.count(NO_OSD)
        if len(set(up)) + max(0, holes - 1) != len(up):
            return "an OSD holds two shards"
        for block in self.blocks:
            members = block.members(up)
            for osd in members:
                if osd not in block.weights and osd != NO_OSD:
                    return f"osd.{osd} cannot be chosen by the rule at that position"
            reason = self._domain_violation(block, members)
            if reason:
                return reason
        return None

    def _domain_violation(self, block: PlacementBlock, members: Sequence[int]) -> Optional[str]:
        """Returns why members of a block break its failure domains, or None."""
        if block.is_msr:
            return msr.violation(block.domains, members, self._msr_in_order)
        parent: Optional[FailureDomain] = None
        for domain in block.domains:
            if self.is_grouped:
                reason = _group_violation(domain, members)
            else:
                reason = _place_violation(domain, parent, members)
            if reason:
                return reason
            parent = domain
        return None

    def allows(self, up: Sequence[int], position: int, osd: int) -> bool:
        """Returns True if `osd` may take over the shard at `position` of this (legal) up set."""
        block = self._block_at[position]
        if osd in up or osd not in block.weights:
            return False
        return self.refusal(replaced(up, position, osd)) is None


def _group_violation(domain: FailureDomain, members: Sequence[int]) -> Optional[str]:
    """Returns why members break a rule of indep steps, or None.

    Positions of one group share a bucket, positions of different groups do not.
    """
    size = domain.shards_per_bucket
    seen: Dict[int, int] = {}
    own: Dict[int, int] = {}   # group → its bucket
    for index, osd in enumerate(members):
        if osd == NO_OSD:
            continue
        group = index // size
        bucket = domain.bucket_of[osd]
        if seen.setdefault(bucket, group) != group:
            return f"two groups of shards share one {domain.type_name}"
        if own.setdefault(group, bucket) != bucket:
            return f"one group of shards spans two buckets of type {domain.type_name}"
    return None


def _place_violation(domain: FailureDomain, parent: Optional[FailureDomain],
                     members: Sequence[int]) -> Optional[str]:
    """Returns why the places of a choose step do not fit the members, or None.

    Under each bucket of the step before, no bucket may have too many members, and they may use no
    more buckets than CRUSH fills.
    """
    groups: Dict[int, Dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for osd in members:
        if osd == NO_OSD:
            continue
        above = parent.bucket_of[osd] if parent is not None else 0
        groups[above][domain.bucket_of[osd]] += 1
    most = domain.shards_per_bucket
    buckets = domain.buckets_per_parent
    for counts in groups.values():
        if max(counts.values()) > most or len(counts) > buckets:
            found = "+".join(map(str, sorted(counts.values(), reverse=True)))
            return (f"shards spread as {found} over buckets of type {domain.type_name},"
                    f" the rule gives {most} each to {buckets} at most")
    return None
