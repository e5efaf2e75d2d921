"""Which up sets a pool's rule can produce, and which single replacements keep them so.

Stricter than the monitor, which tolerates uneven distributions that CRUSH never produces, and never
more lenient: what the monitor would cancel is not allowed here either.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from . import msr
from .hierarchy import OSD_TYPE, CrushHierarchy
from .rule import MSR_INDEP, TakeBlock, parse_rule
from .upmap_check import UpmapCheck

#: Stands in an up set for a shard without an OSD (CRUSH_ITEM_NONE).
NO_OSD = 0x7FFFFFFF


class FailureDomain(NamedTuple):
    """One choose step above OSDs: its buckets, and how many shards and buckets it allows."""

    type_name: str
    bucket_of: Mapping[int, int]  # OSD → bucket of this type; an OSD outside any cannot be chosen
    shards_per_bucket: int
    buckets_per_parent: int       # most buckets that a PG uses under one bucket of the step before


class PlacementBlock:
    """A take block in a hierarchy: the OSDs it may use and the domains that it keeps apart."""

    def __init__(self, crush: CrushHierarchy, block: TakeBlock) -> None:
        self.take = block.take
        self.start = block.start
        self.positions = block.positions
        self.is_msr = block.is_msr
        #: from the outermost to the innermost
        self.domains: List[FailureDomain] = []
        tree = crush.subtree(block.take)
        weights = {osd: w for osd, w in tree.weights.items() if w > 0.0}
        shards = block.positions     # below one bucket of the step before
        for index, step in enumerate(block.choose_steps):
            bucket_of = tree.bucket_of(step.type_name)
            weights = {osd: w for osd, w in weights.items() if osd in bucket_of}
            if step.type_name == OSD_TYPE:
                continue  # that OSDs are distinct is checked over the whole up set
            below = block.shards_below(index)
            # a step may choose more buckets than the positions of the up set fill
            self.domains.append(FailureDomain(step.type_name, bucket_of, below,
                                              shards if block.is_msr
                                              else min(step.num, -(-shards // below))))
            shards = min(shards, below)
        #: what the domains are to crush/msr.py
        self.stride_levels: List[msr.StrideLevel] = [
            (d.type_name, d.bucket_of, d.shards_per_bucket) for d in self.domains]
        #: OSD → CRUSH weight, only OSDs that the block can choose
        self.weights: Dict[int, float] = weights
        self.osds = frozenset(weights)

    def members(self, up: Sequence[int]) -> Sequence[int]:
        """The part of an up set that the block places."""
        return up[self.start:self.start + self.positions]


class PlacementRule:
    """The legality of up sets for pools of one rule and size.

    A rule gives places: so many buckets, and so many shards in each. The shards may be on any of
    them, as copies and most codes' chunks are all alike to a rule. `positional`: those of a locally
    repairable code are not; each group of neighboring positions has a bucket of its own.
    Raises UnsupportedRule where the rule is not understood.
    """

    def __init__(self, crush: CrushHierarchy, rule: Mapping[str, Any], pool_size: int,
                 positional: bool) -> None:
        self.size = pool_size
        self.positional = positional
        self.blocks = [PlacementBlock(crush, block) for block in parse_rule(rule, pool_size)]
        #: in MSR rules the OSDs of a stride may be in several buckets, and what fills one position
        #: is known of msr_indep alone
        self._msr_in_order = positional and rule.get("type") == MSR_INDEP
        self._upmap_check = UpmapCheck(crush, rule, pool_size)
        self._block_at = [block for block in self.blocks for _ in range(block.positions)]
        #: True where two blocks may choose the same OSD
        self.blocks_overlap = sum(len(b.weights) for b in self.blocks) > len(self.osds())
        #: False for one take that gives each bucket one shard: distinct buckets are all there is to
        #: check then, for CRUSH and for the monitor
        self.needs_full_check = len(self.blocks) > 1 or len(self.blocks[0].domains) > 1 or any(
            domain.shards_per_bucket > 1 for domain in self.blocks[0].domains)

    def block_at(self, position: int) -> PlacementBlock:
        """The block that places a position of the up set."""
        return self._block_at[position]

    def osds(self) -> Dict[int, float]:
        """Every OSD that some block can choose, with its CRUSH weight."""
        merged: Dict[int, float] = {}
        for block in self.blocks:
            merged.update(block.weights)
        return merged

    def refusal(self, up: Sequence[int]) -> Optional[str]:
        """Returns why no upmap may lead to this up set, or None: by the rule, or as a monitor would
        cancel it."""
        return self.violation(up) or self.upmap_rejection(up)

    def upmap_rejection(self, up: Sequence[int]) -> Optional[str]:
        """Returns why a monitor would cancel any upmap that leads to this up set, or None."""
        return self._upmap_check.rejection(up)

    def violation(self, up: Sequence[int]) -> Optional[str]:
        """Returns why the rule cannot produce this up set, or None where it can."""
        return "a shard has no OSD" if len(up) != self.size or NO_OSD in up else self.conflict(up)

    def conflict(self, up: Sequence[int]) -> Optional[str]:
        """The same of an up set with NO_OSD where a shard's OSD is still to be chosen: why the rule
        cannot produce the others together. None does not promise that there is one to choose."""
        holes = up.count(NO_OSD)
        if len(set(up)) + max(0, holes - 1) != len(up):
            return "an OSD holds two shards"
        for block in self.blocks:
            members = block.members(up)
            for osd in members:
                if osd not in block.weights and osd != NO_OSD:
                    return f"osd.{osd} cannot be chosen by the rule at that position"
            if block.is_msr:
                reason = msr.violation(block.stride_levels, members, self._msr_in_order)
                if reason:
                    return reason
                continue
            parent: Optional[FailureDomain] = None
            for domain in block.domains:
                reason = (_group_violation(domain, members) if self.positional
                          else _place_violation(domain, parent, members))
                if reason:
                    return reason
                parent = domain
        return None

    def allows(self, up: Sequence[int], position: int, osd: int) -> bool:
        """True if `osd` may take over the shard at `position` of this (legal) up set."""
        block = self._block_at[position]
        if osd in up or osd not in block.weights:
            return False
        wanted = [*up[:position], osd, *up[position + 1:]]
        return self.refusal(wanted) is None


def _group_violation(domain: FailureDomain, members: Sequence[int]) -> Optional[str]:
    """Returns why members break the rule of indep, or None: positions of one group share a bucket,
    different groups do not."""
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
    """Returns why members are not on places of a choose step, or None: under each bucket of the
    step before, no bucket has too many of them, and they are in no more buckets than CRUSH fills."""
    groups: Dict[int, Dict[int, int]] = {}
    for osd in members:
        if osd == NO_OSD:
            continue
        above = parent.bucket_of[osd] if parent is not None else 0
        counts = groups.setdefault(above, {})
        counts[domain.bucket_of[osd]] = counts.get(domain.bucket_of[osd], 0) + 1
    most, buckets = domain.shards_per_bucket, domain.buckets_per_parent
    for counts in groups.values():
        if max(counts.values()) > most or len(counts) > buckets:
            found = "+".join(map(str, sorted(counts.values(), reverse=True)))
            return (f"shards spread as {found} over buckets of type {domain.type_name},"
                    f" the rule gives {most} each to {buckets} at most")
    return None
