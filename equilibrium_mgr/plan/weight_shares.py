"""The bytes that an OSD may hold whose operator's weights hold it to a share of its size.

Its peers are the OSDs that the same takes of rules may use. With S the sum of their used bytes and
C that of their capacities (size × share), all would be at the utilization S ÷ C of their capacity
if they were equally full.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping

from ..snapshot.model import Snapshot


def share_utilizations(snapshot: Snapshot) -> Dict[int, float]:
    """Held OSD → the utilization of its peers, a ratio of capacity. Empty where no OSD is held."""
    held = [osd for osd in snapshot.osds.values() if osd.share < 1.0]
    if not held:
        return {}
    takes = _takes(snapshot)
    wanted = {takes[osd.id] for osd in held if osd.id in takes}
    used: Dict[FrozenSet[int], int] = dict.fromkeys(wanted, 0)
    capacity: Dict[FrozenSet[int], int] = dict.fromkeys(wanted, 0)
    for number, known in takes.items():
        osd = snapshot.osds.get(number)
        if known in wanted and osd is not None and osd.unusable_reason() is None:
            used[known] += max(0, osd.target_bytes - osd.spared_bytes)
            capacity[known] += osd.capacity_bytes
    return {osd.id: used[takes[osd.id]] / capacity[takes[osd.id]] for osd in held
            if osd.id in takes and capacity[takes[osd.id]]}


def share_limits(snapshot: Snapshot) -> Dict[int, int]:
    """Held OSD → used bytes that no move of ours may take it beyond."""
    limits: Dict[int, int] = {}
    for number, utilization in share_utilizations(snapshot).items():
        osd = snapshot.osds[number]
        limits[number] = int(utilization * osd.capacity_bytes) + osd.spared_bytes
    return limits


def share_limits_within(snapshot: Snapshot,
                        utilizations: Mapping[int, float]) -> Dict[int, int]:
    """Held OSD → the limit of `share_limits`, at most what the given utilizations (ratios of sizes)
    come to."""
    return {number: min(limit, int(utilizations[number] * snapshot.osds[number].size_bytes))
            for number, limit in share_limits(snapshot).items() if number in utilizations}


def bytes_beyond_share(snapshot: Snapshot) -> Dict[int, int]:
    """Held OSD → bytes beyond its limit once all in flight has arrived; only those with some."""
    return {number: snapshot.osds[number].target_bytes - limit
            for number, limit in sorted(share_limits(snapshot).items())
            if snapshot.osds[number].target_bytes > limit}


def _takes(snapshot: Snapshot) -> Dict[int, FrozenSet[int]]:
    """OSD → the buckets above it that pools' rules take."""
    under: Dict[int, List[int]] = {}
    seen = set()
    for pool in snapshot.pools.values():
        for block in pool.rule.blocks if pool.rule is not None else ():
            if block.take not in seen:
                seen.add(block.take)
                for osd in block.weights:
                    under.setdefault(osd, []).append(block.take)
    return {osd: frozenset(takes) for osd, takes in under.items()}
