"""Which up sets multi-step retry (MSR) rules can produce; Ceph has them since 19.

A block `take, choosemsr N1 T1, choosemsr N2 T2, …, choosemsr M osd, emit` cuts its positions into
N1 strides of equal length, each of these into N2, and so on; the last one may be shorter. The
buckets of type T1 that different strides use are disjoint, and so are, within one stride, those of
type T2 of its parts. One stride may use several buckets: CRUSH tries again from the top where an
OSD is out. A rule of type msr_firstn emits what it finds in the order of finding, so that any
assignment of its OSDs to positions may have been that of CRUSH.

The monitor does not check any of this (crush/upmap_check.py): what is said here is all that keeps
the failure domains of such a rule.
"""
from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

#: (type of the buckets, OSD → bucket of that type, positions per stride), the outermost first.
StrideLevel = Tuple[str, Mapping[int, int], int]


def violation(levels: Sequence[StrideLevel], members: Sequence[int],
              in_order: bool) -> Optional[str]:
    """Why the block cannot produce these members, all of which it can choose; None where it can.
    Others may be missing. `in_order`: each one has its position."""
    if in_order:
        for index, osd in enumerate(members):
            start, end = 0, len(members)   # of the stride that the level cuts
            for type_name, bucket_of, length in levels:
                own = start + (index - start) // length * length
                after = min(own + length, end)
                bucket = bucket_of.get(osd)   # None of one that is missing
                for other in range(start, end) if bucket is not None else ():
                    if not own <= other < after and bucket_of.get(members[other]) == bucket:
                        return f"two groups of shards share one {type_name}"
                start, end = own, after
        return None
    known = levels[0][1] if levels else dict.fromkeys(members)
    found = tuple([osd for osd in members if osd in known])
    return None if _fits(levels, found, len(members)) else (
        "its shards cannot be divided into groups as the rule does")


def _fits(levels: Sequence[StrideLevel], members: Tuple[int, ...], positions: int) -> bool:
    """True if members can be given to as many positions so that strides share no bucket. Where the
    last stride is shorter, any of them may be: each has as many places."""
    if not levels:
        return len(members) <= positions
    _, bucket_of, length = levels[0]
    by_bucket: Dict[int, List[int]] = {}
    for osd in members:
        by_bucket.setdefault(bucket_of[osd], []).append(osd)
    whole = sorted((tuple(found) for found in by_bucket.values()), key=len, reverse=True)
    return _packed(levels[1:], length, whole, [()] * -(-positions // length))


def _packed(levels: Sequence[StrideLevel], length: int, buckets: List[Tuple[int, ...]],
            strides: List[Tuple[int, ...]]) -> bool:
    """True if each bucket's members can go to one stride so that none has more than `length` and
    each fits the levels below. `strides`: the members so far."""
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
