"""The lower bounds of a cluster with hypothetical changes (what_if/change.py).

A balanced placement ends at most about half a shard above them.
"""
from __future__ import annotations

from collections import Counter
from functools import lru_cache
from heapq import merge
from itertools import islice
from typing import (
    AbstractSet, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple)

from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Snapshot
from ...what_if.change import (
    AddedOsds, Changes, other_places, placed_anew_bytes, with_changes, without)
from ...what_if.failure import HOST_TYPE, Failure, failure_domains
from .demand import MovableBytes, PoolDemand, least_moved_bytes, movable_bytes
from .lower_bound import UtilizationBounds, utilization_bounds
from .pool_space import alike_growth, pool_space_bounds

#: An unusable part of the added bytes (a ratio) that is too small to mention.
WASTE = 0.02
_SHARDS_A_PIECE = 500   # before it gives way again: about a millisecond


class BoundFigures(NamedTuple):
    """The limits of any placement. Bytes are client bytes unless a comment says otherwise."""

    highest: Dict[str, float]     # OSD set → lowest possible highest utilization, a ratio
    whole: Dict[str, float]       # the same with whole shards of the pools' mean sizes
    room_bytes: Optional[int]     # all pools grow alike; None if no pool has data
    free_bytes: Dict[int, int]    # pool id → free space if only this pool grows
    raw_room: float               # raw bytes until the pools of each set have filled it
    moved_bytes: int              # raw bytes that have to leave OSDs
    missing_shards: Mapping[str, int]   # pool → shards of each PG that have no place


class ChangeFigures(NamedTuple):
    """The results of changes. Raw bytes are device bytes."""

    now: BoundFigures
    then: BoundFigures
    unreached: int                  # added OSDs that no pool's rule uses
    passing_pools: List[str]        # pools whose rule takes a root above added OSDs it cannot use
    usable_ratio: Optional[float]   # of the added raw bytes; None if nothing is added
    better: Optional[Tuple[str, float]]     # a better place: words, the usable ratio there
    failed: Optional[Tuple[str, BoundFigures]]   # the worst host of several, lost after the changes
    computed_hosts: int             # hosts whose loss was computed: those with the most space
    hosts: int                      # all hosts with OSDs for data


def bound_figures(snapshot: Snapshot, pg_nums: Mapping[int, int] = {},
                  with_whole: bool = True) -> BoundFigures:
    """Returns the bounds of a cluster.

    `pg_nums`: pool id → its new pg_num. `with_whole`: False copies `highest` to `whole`, which
    saves half the time.
    """
    movable = movable_bytes(snapshot, frozenset())
    bounds = utilization_bounds(snapshot, movable=movable)
    growth = alike_growth(snapshot, movable)
    whole = dict(bounds.highest)
    if with_whole:
        _raise_to_whole_shards(whole, snapshot, movable, pg_nums)
    room_bytes = None
    if growth:
        stored = sum([pool.stored_bytes for pool in snapshot.pools.values()])
        room_bytes = int(max(0.0, min([ratio for ratio, _ in growth])) * stored)
    pool_space = pool_space_bounds(snapshot, movable)
    return BoundFigures(
        highest=bounds.highest,
        whole=whole,
        room_bytes=room_bytes,
        free_bytes={pool: bound.free_bytes for pool, bound in pool_space.items()},
        raw_room=sum([ratio * raw for ratio, raw in growth]),
        moved_bytes=_moved_bytes(snapshot, movable, bounds),
        missing_shards=_missing_shards(snapshot, movable))


def _raise_to_whole_shards(bounds: Dict[str, float], snapshot: Snapshot, movable: MovableBytes,
                           pg_nums: Mapping[int, int]) -> None:
    """Raises each set's bound until whole shards of every pool have a place below it."""
    for part in movable.parts():
        name = part.reach.set_name
        if name in bounds and part.all_bytes:
            give_way()
            pg_num = snapshot.pools[part.pool].pg_num
            shards = part.all_shards * pg_nums.get(part.pool, pg_num) // pg_num
            bounds[name] = _whole_bound(bounds[name], snapshot, part, max(1, shards))


def _whole_bound(bound: float, snapshot: Snapshot, part: PoolDemand, shards: int) -> float:
    """Returns the utilization, at least `bound`, at which so many whole shards have a place."""
    # the shards of one pool that fill each OSD
    sizes = [snapshot.osds[osd].size_bytes * shards / part.all_bytes for osd in part.reach.osds]
    counts = [int(bound * size) for size in sizes]   # whole shards below the bound
    # the emptiest OSD gets the next shard, until all have a place
    levels = merge(*[_next_levels(count, size) for count, size in zip(counts, sizes)])
    missing = max(0, shards - sum(counts))
    return max([bound, *piecewise(islice(levels, missing), _SHARDS_A_PIECE)])


def _next_levels(shards: int, size: float) -> Iterator[float]:
    """Yields an OSD's utilization after each further shard, without end."""
    while True:
        shards += 1
        yield shards / size


def _moved_bytes(snapshot: Snapshot, movable: MovableBytes, bounds: UtilizationBounds) -> int:
    """Returns the data of drained OSDs plus the bytes of other OSDs above their bound."""
    to_place = sum([demand.all_bytes for demand in movable.demands])
    moved = to_place - sum(movable.on_osd.values())
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    for found in bounds.sets:
        sizes = {osd: snapshot.osds[osd].size_bytes for osd in found.osds}
        moved += least_moved_bytes(used, sizes, found.bound)
    return moved


def _missing_shards(snapshot: Snapshot, movable: MovableBytes) -> Dict[str, int]:
    """Returns pool name → shards of each of its PGs that have no place; only pools with such."""
    missing: Counter[str] = Counter()
    for part in movable.parts():
        lacking = part.reach.block.positions - part.reach.most
        if lacking > 0:
            missing[snapshot.pools[part.pool].name] += lacking
    return missing


def change_figures(snapshot: Snapshot, changes: Changes) -> ChangeFigures:
    """Returns the results of the changes."""
    @lru_cache(None)
    def figures(other: Changes) -> BoundFigures:
        return bound_figures(with_changes(snapshot, other), dict(other.pg_nums))

    now = figures(Changes())
    then = figures(changes)
    moved_bytes = max(then.moved_bytes, placed_anew_bytes(snapshot, changes))
    usable, better = _usable(snapshot, changes, figures)
    after = with_changes(snapshot, changes)
    hosts = _largest_hosts(after)
    failures = _failures_of(hosts, after) if len(hosts) > 1 else []
    unreached, passing = _unused_osds(after, after.osds.keys() - snapshot.osds.keys())
    return ChangeFigures(
        now=now,
        then=then._replace(moved_bytes=moved_bytes),
        unreached=unreached,
        passing_pools=passing,
        usable_ratio=usable,
        better=better,
        failed=max(failures)[2:] if failures else None,
        computed_hosts=len(failures),
        hosts=len(hosts))


def _usable(snapshot: Snapshot, changes: Changes, figures: Callable[[Changes], BoundFigures]
            ) -> Tuple[Optional[float], Optional[Tuple[str, float]]]:
    """Returns the usable ratio of the added bytes, and a clearly better place: (words, ratio)."""
    before = figures(changes._replace(added=()))
    if not changes.added or before.room_bytes is None:
        return None, None

    def usable_ratio(added: Tuple[AddedOsds, ...]) -> float:
        """Returns the ratio of the added bytes that data can use if the pools of a set grow alike.

        It is above 1 if the added OSDs make existing space usable.
        """
        room = figures(changes._replace(added=added)).raw_room - before.raw_room
        return room / (snapshot.full_ratio * sum([one.osds * one.size_bytes for one in added]))

    usable = usable_ratio(changes.added)
    best = 0.0, ""
    enough = 1.0 - WASTE
    if usable < enough:
        for words, added in _other_additions(snapshot, changes, usable):
            if not give_way():
                break
            ratio = usable_ratio(added)
            best = max(best, (ratio, words))
            if ratio >= enough:
                break
    ratio, words = best
    return usable, (words, ratio) if ratio > usable + 5.0 * WASTE else None


def _other_additions(snapshot: Snapshot, changes: Changes, usable: float
                     ) -> List[Tuple[str, Tuple[AddedOsds, ...]]]:
    """Returns (words, all added OSDs) with the OSDs of one host in another place each time."""
    found: List[Tuple[str, Tuple[AddedOsds, ...]]] = []
    for index, one in enumerate(changes.added):
        before = changes.added[:index]
        behind = changes.added[index + 1:]
        for words, others in other_places(snapshot, one, usable):
            found.append((words, before + others + behind))
    return found


def _largest_hosts(snapshot: Snapshot) -> List[Failure]:
    """Returns the hosts with OSDs for data, the one with the most space first."""
    hosts: List[Tuple[int, Failure]] = []
    for host in failure_domains(snapshot).get(HOST_TYPE, []):
        osds = [snapshot.osds[osd] for osd in host.osds]
        if any([osd.is_for_data for osd in osds]):
            hosts.append((sum([osd.size_bytes for osd in osds]), host))
    return [host for _, host in sorted(hosts, key=lambda found: -found[0])]


def _failures_of(hosts: List[Failure], snapshot: Snapshot
                 ) -> List[Tuple[int, float, str, BoundFigures]]:
    """Returns (missing shards, highest utilization, host, bounds without it); the worst is largest.

    Computes the first host, and others until `give_way` returns False.
    """
    failures: List[Tuple[int, float, str, BoundFigures]] = []
    for host in hosts:
        if failures and not give_way():
            break
        found = bound_figures(without(snapshot, host.osds))
        missing = sum(found.missing_shards.values())
        highest = max(found.highest.values(), default=0.0)
        failures.append((missing, highest, host.name, found))
    return failures


def _unused_osds(snapshot: Snapshot, added: AbstractSet[int]) -> Tuple[int, List[str]]:
    """Returns the number of added OSDs that no pool uses, and the pools that pass some by.

    Such a pool's rule takes a root above an added OSD, but cannot use the OSD.
    """
    unreached = set(added)
    passing: Set[str] = set()
    for pool in snapshot.pools.values():
        for block in pool.blocks:
            unreached -= block.osds
            below = snapshot.crush.subtree(block.take).weights
            if not (added - block.osds).isdisjoint(below):
                passing.add(pool.name)
    return len(unreached), sorted(passing)
