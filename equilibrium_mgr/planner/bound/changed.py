"""The bounds of a cluster with changes that somebody thinks about (what_if/change.py), of which a
balanced placement ends at most about half a shard short."""
from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

from ...runtime.time_slice import give_way
from ...snapshot.model import Snapshot
from ...what_if.change import (
    AddedOsds, Changes, other_places, placed_anew_bytes, with_changes, without)
from ...what_if.failure import HOST_TYPE, failure_domains
from .demand import MovableBytes, least_moved_bytes, movable_bytes
from .lower_bound import UtilizationBounds, utilization_bounds
from .pool_space import alike_growth, pool_space_bounds

#: A ratio of what is added; less is no waste.
WASTE = 0.02
_HALVINGS = 40


class BoundFigures(NamedTuple):
    """What any placement is held to; bytes are of clients where nothing else is said."""

    highest: Dict[str, float]     # OSD set → lowest possible highest utilization, a ratio
    whole: Dict[str, float]       # the same with whole shards of the pools' mean sizes
    room_bytes: Optional[int]     # all pools grow alike; None where none has data
    free_bytes: Dict[int, int]    # pool id → of it alone
    raw_room: Dict[FrozenSet[int], float]   # OSDs of a set → raw bytes that come when it is full
    moved_bytes: int              # raw bytes that leave OSDs at least, to get there
    missing_shards: Dict[int, int]   # pool id → shards of each PG that have no place


class ChangeFigures(NamedTuple):
    """What changes lead to. Raw bytes are device bytes."""

    now: BoundFigures
    then: BoundFigures
    unreached: Tuple[int, ...]      # OSDs that are added where no rule of a pool places anything
    usable_ratio: Optional[float]   # of the raw bytes that are added; None where none are
    better: Optional[Tuple[str, float]]     # where to add instead: words, the usable ratio there
    failed_host: str                # the worst one, once all is done; empty where there is one
    failed: Optional[BoundFigures]
    computed_hosts: int             # of hosts, those with the most data
    hosts: int


def bound_figures(snapshot: Snapshot, pg_nums: Mapping[int, int] = {}) -> BoundFigures:
    """The bounds of a cluster; `pg_nums`: pool id → its pg_num, where that is to be another."""
    movable = movable_bytes(snapshot, frozenset())
    bounds = utilization_bounds(snapshot, movable=movable)
    growth = alike_growth(snapshot, movable)
    stored = sum([pool.stored_bytes for pool in snapshot.pools.values()])
    least = min([one.ratio for one in growth], default=None)
    return BoundFigures(
        bounds.highest, _whole(snapshot, movable, bounds, pg_nums),
        None if least is None else int(max(0.0, least) * stored),
        {pool: bound.free_bytes for pool, bound in pool_space_bounds(snapshot, movable).items()},
        {one.osds: one.ratio * one.raw_bytes for one in growth},
        _moved_bytes(snapshot, movable, bounds),
        _missing_shards(movable))


def _moved_bytes(snapshot: Snapshot, movable: MovableBytes, bounds: UtilizationBounds) -> int:
    """What has to leave OSDs above their set's bound, and those that are to be emptied."""
    osds, left = snapshot.osds, sum([
        part.all_bytes for parts in movable.pools.values() for part in parts
        if part.reach.set_name is not None]) - sum(movable.on_osd.values())
    return left + sum([least_moved_bytes(
        {osd: osds[osd].target_bytes for osd in found.osds},
        {osd: osds[osd].size_bytes for osd in found.osds}, found.bound) for found in bounds.sets])


def _missing_shards(movable: MovableBytes) -> Dict[int, int]:
    missing = {pool: sum([max(0, part.reach.block.positions - part.reach.most) for part in parts])
               for pool, parts in movable.pools.items()}
    return {pool: count for pool, count in missing.items() if count}


def _whole(snapshot: Snapshot, movable: MovableBytes, bounds: UtilizationBounds,
           pg_nums: Mapping[int, int]) -> Dict[str, float]:
    """OSD set → the lowest utilization at which, of each pool by itself, so many shards of its
    mean size fit as it has."""
    found = dict(bounds.highest)
    for part in [part for parts in movable.pools.values() for part in parts
                 if part.all_bytes and part.reach.set_name in found]:
        sizes, name = [snapshot.osds[osd].size_bytes for osd in part.reach.osds], str(
            part.reach.set_name)
        pg_num = snapshot.pools[part.pool].pg_num
        shards = part.all_shards * pg_nums.get(part.pool, pg_num) // pg_num
        shard = part.all_bytes / shards
        low, high = found[name], bounds.highest[name] + shard / min(sizes)
        if sum([low * size // shard for size in sizes]) >= shards:
            continue
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            fits = sum([middle * size // shard for size in sizes]) >= shards
            low, high = (low, middle) if fits else (middle, high)
        found[name] = high
        give_way()
    return found


def change_figures(snapshot: Snapshot, changes: Changes) -> ChangeFigures:
    """What the changes lead to. Of the hosts that could fail after them, that with the most data
    is computed first, until `give_way` tells to end, which hears how many there are."""
    now, after = bound_figures(snapshot), with_changes(snapshot, changes)
    then = bound_figures(after, dict(changes.pg_nums))
    if changes.pg_nums:
        then = then._replace(moved_bytes=max(
            then.moved_bytes, placed_anew_bytes(snapshot, changes)))
    reached = frozenset().union(*[
        pool.rule.osds() for pool in after.pools.values() if pool.rule is not None])
    others = changes._replace(added=())
    before = now if others == Changes() or not changes.added else bound_figures(
        with_changes(snapshot, others))
    usable = _usable_ratio(snapshot, changes, before, then)
    name, failed, computed, hosts = _worst_host(after)
    return ChangeFigures(
        now, then, tuple(sorted(after.osds.keys() - snapshot.osds.keys() - reached)), usable,
        None if usable is None or usable > 1.0 - WASTE else _better(snapshot, changes, before, usable),
        name, failed, computed, hosts)


def _usable_ratio(snapshot: Snapshot, changes: Changes, before: BoundFigures,
                  then: BoundFigures) -> Optional[float]:
    """What more can be placed of all that is added, as all pools there grow alike. `before`: with
    the other changes alone."""
    if not changes.added or not before.raw_room:
        return None
    return (sum(then.raw_room.values()) - sum(before.raw_room.values())) / (
        snapshot.full_ratio * changes.added_bytes)


def _better(snapshot: Snapshot, changes: Changes, before: BoundFigures,
            usable: float) -> Optional[Tuple[str, float]]:
    """The first other place that wastes nothing; else the best, where it wastes clearly less."""
    found: List[Tuple[float, str]] = []
    for index, one in enumerate(changes.added):
        for words, others in other_places(snapshot, one, usable):
            if not give_way():
                break
            other = changes._replace(added=changes.added[:index] + others + changes.added[
                index + 1:])
            ratio = _usable_ratio(snapshot, other, before, bound_figures(
                with_changes(snapshot, other))) or 0.0
            found.append((ratio, words))
            if ratio > 1.0 - WASTE:
                return words, ratio
    best = max(found, default=None)
    return (best[1], best[0]) if best is not None and best[0] > usable + 5 * WASTE else None


def _worst_host(snapshot: Snapshot) -> Tuple[str, Optional[BoundFigures], int, int]:
    """(name, figures, hosts computed, hosts): the one whose loss leaves the highest bound, or most
    shards without a place."""
    hosts = failure_domains(snapshot).get(HOST_TYPE, [])
    hosts = [host for host in hosts if any(snapshot.osds[osd].is_for_data for osd in host.osds)]
    worst: Optional[Tuple[Tuple[int, float], str, FrozenSet[int]]] = None
    computed = 0
    for host in sorted(hosts, key=lambda host: -sum(
            snapshot.osds[osd].size_bytes for osd in host.osds)):
        if len(hosts) < 2 or worst is not None and not give_way(computed):
            break
        left = without(snapshot, host.osds)
        movable = movable_bytes(left, frozenset())
        severity = sum(_missing_shards(movable).values()), max(
            utilization_bounds(left, movable=movable).highest.values(), default=0.0)
        computed += 1
        if worst is None or severity > worst[0]:
            worst = severity, host.name, host.osds
    if worst is None:
        return "", None, computed, len(hosts)
    return worst[1], bound_figures(without(snapshot, worst[2])), computed, len(hosts)
