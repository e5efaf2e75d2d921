"""What proves a bound: a set of OSDs, what is on them, and how much of that can be elsewhere.

Each PG of a pool can have only so many shards outside the set; the others are inside, wherever they
are put. So the set holds at least what it holds now less what can leave it:

    highest utilization of the set  ≥  (used − can leave) ÷ size
    growth of a position of a pool  ≤  (full − used + can leave) ÷ shards of a PG that are kept

With a reading of the cluster both can be checked without this module, by arithmetic.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Tuple

from ...crush.placement import PlacementBlock
from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Snapshot
from .demand import OSDS_AT_ONCE, MovableBytes, PoolDemand, binding_domains, most_shards


class KeptBytes(NamedTuple):
    """Why bytes of a pool, of the shards under one take, cannot leave a cut."""

    pool: int
    take: str
    shards: int                            # of each PG under the take
    limits: Tuple[Tuple[str, int], ...]    # (CRUSH type, most shards of a PG in one such bucket)
    most_elsewhere: int                    # shards of a PG that OSDs outside the cut can have
    kept_bytes: int                        # of all shards, less most_elsewhere of each PG


class Cut(NamedTuple):
    """Sums over the OSDs of a set."""

    osds: Tuple[int, ...]
    size_bytes: int
    used_bytes: int         # when everything in flight has arrived
    full_bytes: int         # at full_ratio, or used where that is more
    can_leave_bytes: int    # shards on them that have a legal place elsewhere, all at once or not
    kept: Tuple[KeptBytes, ...]

    @property
    def least_utilization(self) -> float:
        """No placement has a lower maximum on these OSDs, a ratio."""
        return (self.used_bytes - self.can_leave_bytes) / self.size_bytes


def full_bytes(snapshot: Snapshot, osd: int) -> int:
    """Bytes that an OSD holds at most: up to full_ratio, or what is on it now."""
    entry = snapshot.osds[osd]
    return max(int(entry.size_bytes * snapshot.full_ratio) + 1, entry.target_bytes)


def cuts_of(snapshot: Snapshot, movable: MovableBytes,
            sets: Iterable[FrozenSet[int]]) -> Dict[FrozenSet[int], Cut]:
    """The sums of each set of OSDs."""
    cuts: Dict[FrozenSet[int], Cut] = {}
    for osds in piecewise(sets, 1):
        if osds not in cuts:
            cuts[osds] = _cut(snapshot, movable, osds)
    return cuts


def _cut(snapshot: Snapshot, movable: MovableBytes, osds: FrozenSet[int]) -> Cut:
    elsewhere: Dict[PlacementBlock, int] = {}   # block → most_elsewhere
    kept: List[KeptBytes] = []
    for _, parts in piecewise(sorted(movable.pools.items()), 10):
        for part in parts:
            if part.block not in elsewhere:
                give_way()
                domains = binding_domains(part.block)
                elsewhere[part.block] = most_shards(domains, [
                    tuple([domain.bucket_of[osd] for domain in domains])
                    for osd in part.osds if osd not in osds])
            entry = _kept(snapshot, part, elsewhere[part.block])
            if entry.kept_bytes > 0:
                kept.append(entry)
    size = used = full = there = 0
    for osd in piecewise(osds, OSDS_AT_ONCE):
        size += snapshot.osds[osd].size_bytes
        used += snapshot.osds[osd].target_bytes
        full += full_bytes(snapshot, osd)
        there += movable.on_osd.get(osd, 0) + movable.outside.get(osd, 0)
    return Cut(tuple(sorted(osds)), size, used, full,
               there - sum([entry.kept_bytes for entry in kept]), tuple(kept))


def _kept(snapshot: Snapshot, part: PoolDemand, elsewhere: int) -> KeptBytes:
    take = part.block.take
    return KeptBytes(
        part.pool, f"osd.{take}" if take >= 0 else snapshot.crush.buckets[take].name,
        part.block.positions,
        tuple([(d.type_name, d.shards_per_bucket) for d in binding_domains(part.block)]), elsewhere,
        part.all_bytes - elsewhere * part.single_bytes)


def least_moved_bytes(used: Mapping[int, int], sizes: Mapping[int, int], highest: float) -> int:
    """Bytes that have to leave OSDs so that none is above the utilization `highest`.

    No larger set of OSDs proves more: what one of them is below it cannot count for another.
    """
    return sum([max(0, int(used[osd] - highest * size)) for osd, size in sizes.items()])
