"""The up sets that multi-step retry (MSR) rules can produce; Ceph has them since 19.

A block `take, choosemsr N1 T1, choosemsr N2 T2, …, choosemsr M osd, emit` cuts its positions into
N1 strides of equal length, each of these into N2, and so on; the last stride may be shorter. The
strides use disjoint buckets of type T1. Within one stride, its parts use disjoint buckets of type
T2. One stride may use several buckets, because CRUSH tries again from the top if an OSD is out. A
rule of type msr_firstn emits OSDs in the order of finding them, so CRUSH may have found them for
any positions.

The monitor checks none of this (crush/upmap_check.py). Only this file keeps the failure domains of
such a rule.
"""
from __future__ import annotations

from collections import defaultdict
from typing import Dict, List, Optional, Sequence, Tuple

from .rule import FailureDomain


def violation(levels: Sequence[FailureDomain], members: Sequence[int],
              in_order: bool) -> Optional[str]:
    """Returns why the block cannot produce these members, or None.

    `levels`: the failure domains, the outermost first; a stride has `shards_per_bucket` positions.
    The block can choose each of the members; others may be missing. `in_order`: the positions of
    the members matter.
    """
    if in_order:
        return _order_violation(levels, members)
    known = levels[0].bucket_of if levels else dict.fromkeys(members)
    found = tuple([osd for osd in members if osd in known])
    if _fits(levels, found, len(members)):
        return None
    return "its shards cannot be divided into groups as the rule does"


def _order_violation(levels: Sequence[FailureDomain], members: Sequence[int]) -> Optional[str]:
    """Returns why the members at their positions break the strides, or None."""
    for index, osd in enumerate(members):
        start, end = 0, len(members)   # of the stride that the level cuts
        for type_name, bucket_of, length, _ in levels:
            own = start + (index - start) // length * length
            after = min(own + length, end)
            bucket = bucket_of.get(osd)
            if bucket is not None:   # else the member is missing
                for other in (*range(start, own), *range(after, end)):
                    if bucket_of.get(members[other]) == bucket:
                        return f"two groups of shards share one {type_name}"
            start = own
            end = after
    return None


def _fits(levels: Sequence[FailureDomain], members: Tuple[int, ...], positions: int) -> bool:
    """Returns True if the members fit into so many positions without a bucket that strides share.

    One stride is shorter if the positions cannot be divided evenly. Nobody knows which one, so each
    has places for a whole stride.
    """
    if not levels:
        return len(members) <= positions
    length = levels[0].shards_per_bucket
    by_bucket: Dict[int, List[int]] = defaultdict(list)
    for osd in members:
        by_bucket[levels[0].bucket_of[osd]].append(osd)
    whole = sorted(map(tuple, by_bucket.values()), key=len, reverse=True)
    return _packed(levels[1:], length, whole, [()] * -(-positions // length))


def _packed(levels: Sequence[FailureDomain], length: int, buckets: List[Tuple[int, ...]],
            strides: List[Tuple[int, ...]]) -> bool:
    """Returns True if each bucket's members can go to one stride.

    No stride may have more than `length` members, and each must fit the levels below. `strides`:
    the members so far.
    """
    if not buckets:
        return all(_fits(levels, members, length) for members in strides)
    for number, members in enumerate(strides):
        if len(members) + len(buckets[0]) > length or members in strides[:number]:
            continue   # empty strides are all alike
        rest = list(strides)
        rest[number] = members + buckets[0]
        if _packed(levels, length, buckets[1:], rest):
            return True
    return False
