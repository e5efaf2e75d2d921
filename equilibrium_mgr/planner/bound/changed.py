"""The bounds of a cluster with changes that somebody thinks about (what_if/change.py), of which a
balanced placement ends at most about half a shard short."""
from __future__ import annotations

from collections import Counter
from functools import lru_cache
from heapq import merge
from itertools import count, islice, repeat
from operator import truediv
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Snapshot
from ...what_if.change import (
    AddedOsds, Changes, other_places, placed_anew_bytes, with_changes, without)
from ...what_if.failure import HOST_TYPE, failure_domains
from .demand import least_moved_bytes, movable_bytes
from .lower_bound import utilization_bounds
from .pool_space import alike_growth, pool_space_bounds

#: A ratio of what is added; less is no waste.
WASTE = 0.02
_SHARDS_A_PIECE = 500   # before it gives way again: about a millisecond


class BoundFigures(NamedTuple):
    """What any placement is held to; bytes are of clients where nothing else is said."""

    highest: Dict[str, float]     # OSD set → lowest possible highest utilization, a ratio
    whole: Dict[str, float]       # the same with whole shards of the pools' mean sizes
    room_bytes: Optional[int]     # all pools grow alike; None where none has data
    free_bytes: Dict[int, int]    # pool id → of it alone
    raw_room: float               # raw bytes that come until each set is full of its pools
    moved_bytes: int              # raw bytes that leave OSDs at least, to get there
    missing_shards: Mapping[str, int]   # pool → shards of each PG that have no place


class ChangeFigures(NamedTuple):
    """What changes lead to. Raw bytes are device bytes."""

    now: BoundFigures
    then: BoundFigures
    unreached: int                  # OSDs that are added where no rule of a pool places anything
    passing_pools: List[str]        # whose rule takes their place, and passes some of them by
    usable_ratio: Optional[float]   # of the raw bytes that are added; None where none are
    better: Optional[Tuple[str, float]]     # where to add instead: words, the usable ratio there
    failed: Optional[Tuple[str, BoundFigures]]   # the worst host, of several, once all is done
    computed_hosts: int             # of hosts, those with the most space
    hosts: int


def bound_figures(snapshot: Snapshot, pg_nums: Mapping[int, int] = {},
                  with_whole: bool = True) -> BoundFigures:
    """The bounds of a cluster; `pg_nums`: pool id → its pg_num, where that is to be another;
    `with_whole`: False leaves `whole` as `highest` is, which takes half the time."""
    movable, osds = movable_bytes(snapshot, frozenset()), snapshot.osds
    parts = [part for _, found in sorted(movable.pools.items()) for part in found]
    bounds, growth = utilization_bounds(snapshot, movable=movable), alike_growth(snapshot, movable)
    whole = dict(bounds.highest)
    for part in [part for part in parts
                 if with_whole and part.all_bytes and part.reach.set_name in whole]:
        give_way()
        name, pg_num = str(part.reach.set_name), snapshot.pools[part.pool].pg_num
        shards = max(1, part.all_shards * pg_nums.get(part.pool, pg_num) // pg_num)
        sizes = [osds[osd].size_bytes * shards / part.all_bytes for osd in part.reach.osds]
        counts = [int(whole[name] * size) for size in sizes]   # whole shards below the bound
        # the next one on each OSD, the emptiest first, until all have a place
        whole[name] = max([whole[name], *piecewise(islice(merge(*[
            map(truediv, count(number + 1), repeat(size)) for number, size in zip(counts, sizes)]),
            max(0, shards - sum(counts))), _SHARDS_A_PIECE)])
    missing = Counter({snapshot.pools[pool].name: sum([
        max(0, part.reach.block.positions - part.reach.most) for part in found])
        for pool, found in movable.pools.items()})
    return BoundFigures(
        bounds.highest, whole,
        None if not growth else int(max(0.0, min([ratio for ratio, _ in growth])) * sum(
            [pool.stored_bytes for pool in snapshot.pools.values()])),
        {pool: bound.free_bytes for pool, bound in pool_space_bounds(snapshot, movable).items()},
        sum([ratio * raw for ratio, raw in growth]),
        # what is on OSDs that are emptied, and what others have above the bound
        sum([part.all_bytes for part in parts if part.reach.set_name is not None])
        - sum(movable.on_osd.values()) + sum([least_moved_bytes(
            {osd: osds[osd].target_bytes for osd in found.osds},
            {osd: osds[osd].size_bytes for osd in found.osds}, found.bound)
            for found in bounds.sets]), +missing)


def change_figures(snapshot: Snapshot, changes: Changes) -> ChangeFigures:
    """What the changes lead to. Of the hosts that could fail after them, that with the most space
    is computed first, until `give_way` tells to end."""
    @lru_cache(None)
    def figures(other: Changes) -> BoundFigures:
        return bound_figures(with_changes(snapshot, other), dict(other.pg_nums))

    def usable_ratio(added: Tuple[AddedOsds, ...]) -> float:
        """What more fits of all that is added, as the pools of each set grow alike."""
        other = changes._replace(added=added)
        return (figures(other).raw_room - before.raw_room) / (
            snapshot.full_ratio * sum([one.osds * one.size_bytes for one in added]))
    now, then, before = [figures(one) for one in (
        Changes(), changes, changes._replace(added=()))]
    then, after = then._replace(moved_bytes=max(
        then.moved_bytes, placed_anew_bytes(snapshot, changes))), with_changes(snapshot, changes)
    usable, tried = None, [(0.0, "")]
    if changes.added and before.room_bytes is not None:
        usable = usable_ratio(changes.added)
        for words, others in [
                (words, changes.added[:index] + others + changes.added[index + 1:])
                for index, one in enumerate(changes.added)
                for words, others in other_places(snapshot, one, usable)]:
            if max(usable, tried[-1][0]) < 1.0 - WASTE and give_way():
                tried.append((usable_ratio(others), words))
    best, words = max(tried)
    hosts = sorted([host for host in failure_domains(after).get(HOST_TYPE, [])
                    if any(after.osds[osd].is_for_data for osd in host.osds)],
                   key=lambda host: -sum([after.osds[osd].size_bytes for osd in host.osds]))
    failed: List[Tuple[int, float, str, BoundFigures]] = []
    for host in hosts if len(hosts) > 1 else ():
        if not failed or give_way():
            found = bound_figures(without(after, host.osds))
            failed.append((sum(found.missing_shards.values()),
                           max(found.highest.values(), default=0.0), host.name, found))
    new, placed = after.osds.keys() - snapshot.osds.keys(), [
        (pool.name, block) for pool in after.pools.values() for block in pool.blocks]
    return ChangeFigures(
        now, then, len(new - frozenset().union(*[block.osds for _, block in placed])),
        sorted({name for name, block in placed
                if (new - block.osds) & after.crush.subtree(block.take).weights.keys()}), usable,
        (words, best) if usable is not None and best > usable + 5.0 * WASTE else None,
        max(failed)[2:] if failed else None, len(failed), len(hosts))
