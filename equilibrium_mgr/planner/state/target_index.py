"""OSDs that may take a shard, the best first, in sorted lists that are updated when read.

The movable shards of each OSD, by group and by size; follows the moves of the placement.
"""
from __future__ import annotations

from bisect import bisect_left, insort
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, grouped, piecewise, sorted_piecewise
from .cost_model import CostModel
from .placement_state import PlacementState
from .shard_groups import ShardGroup


TargetEntry = Tuple[float, int]   # (key, OSD index), best first

#: Pools times OSDs up to which every pool has lists of its own. They find the best target sooner,
#: but each has to be updated after each move: beyond this that costs more than the search.
_OWN_LISTS = 200_000

#: Targets in a row that may be no better before the search ends: in a group's own list, and in a
#: list sorted without the group's counts.
_PATIENCE_OWN = 2
_PATIENCE_SHARED = 12

_KEYS_A_PIECE = 1000   # computed before it gives way again: a few milliseconds


class TargetIndex:
    """Lists per group (or per take where there are too many groups) and zone of the hierarchy.

    The key of a group's own list is the cost of a shard of mean size, that of a shared list the
    OSD's utilization.
    """

    def __init__(self, costs: CostModel) -> None:
        placement = costs.placement
        self._placement = placement
        self._costs = costs
        self.has_own_lists = sum(len(group.osds) for group in placement.groups) <= _OWN_LISTS
        self.patience = _PATIENCE_OWN if self.has_own_lists else _PATIENCE_SHARED
        self._by_bucket: Dict[Tuple[int, int], SortedOsds] = {}
        shared: Dict[Tuple[int, int], Dict[int, SortedOsds]] = {}
        #: group → its lists by zone
        self.lists_of: List[Dict[int, SortedOsds]] = []
        for group in placement.groups:
            if self.has_own_lists:
                self.lists_of.append(_by_zone(placement, group, _cost_of(costs, group)))
                continue
            key = (id(group.osds), id(group.zone))
            if key not in shared:
                shared[key] = _by_zone(placement, group, placement.capacity_utilization)
            self.lists_of.append(shared[key])

    def candidates(self, group: int, source: int) -> List[TargetEntry]:
        """The OSDs that a shard of the group may be able to go to from `source`."""
        known = self.list_of(group, source)
        return known.entries() if known is not None else []

    def in_bucket(self, group: int, bucket: int) -> List[TargetEntry]:
        """The OSDs of one of the buckets that a PG's shards of the group share."""
        if (group, bucket) not in self._by_bucket:
            members = self._placement.groups[group]
            assert members.joint is not None
            osds = [osd for osd in members.osds if members.joint.bucket_of[osd] == bucket]
            self._by_bucket[group, bucket] = _targets(
                self._placement, osds, _cost_of(self._costs, members)
                if self.has_own_lists else self._placement.capacity_utilization)
        return self._by_bucket[group, bucket].entries()

    def list_of(self, group: int, source: int) -> Optional[SortedOsds]:
        """The list of `candidates`; None where no OSD may be able to take a shard."""
        zone = self._placement.groups[group].zone
        return self.lists_of[group].get(0 if zone is None else zone[source])


class SortedOsds:
    """OSDs sorted by a key that depends on what they hold."""

    def __init__(self, placement: PlacementState, osds: Sequence[int],
                 key: Callable[[int], float]) -> None:
        self._placement = placement
        self._key = key
        self._entries: List[TargetEntry] = []
        self._keys = dict.fromkeys(osds, 0.0)
        self._changes_seen = -1

    def entries(self) -> List[TargetEntry]:
        """(key, OSD), the best first."""
        changed = self._placement.change_log
        seen = self._changes_seen
        if seen < 0 or len(changed) - seen > len(self._keys) // 2 + 8:
            self._keys = {osd: self._key(osd) for osd in piecewise(self._keys, _KEYS_A_PIECE)}
            self._entries = sorted([(key, osd) for osd, key in self._keys.items()])
            give_way()
        elif seen < len(changed):
            for osd in set(changed[seen:]):
                old = self._keys.get(osd)
                if old is not None:
                    self._keys[osd] = new = self._key(osd)
                    if new != old:
                        del self._entries[bisect_left(self._entries, (old, osd))]
                        insort(self._entries, (new, osd))
        self._changes_seen = len(changed)
        return self._entries

    def sorted(self, osds: Iterable[int]) -> List[TargetEntry]:
        """The same of those of some OSDs that are in the list."""
        self.entries()
        return sorted([(self._keys[osd], osd) for osd in osds if osd in self._keys])

    def limits_changed(self) -> None:
        """To be called where a key depends on something else that has changed."""
        self._changes_seen = -1


def _by_zone(placement: PlacementState, group: ShardGroup,
             key: Callable[[int], float]) -> Dict[int, SortedOsds]:
    members = grouped((0 if group.zone is None else group.zone[osd], osd) for osd in group.osds)
    return {zone: _targets(placement, osds, key) for zone, osds in members.items()}


def _targets(placement: PlacementState, osds: Sequence[int],
             key: Callable[[int], float]) -> SortedOsds:
    return SortedOsds(placement, [osd for osd in osds if placement.is_target[osd]], key)


def _cost_of(costs: CostModel, group: ShardGroup) -> Callable[[int], float]:
    """OSD → the cost of a shard of mean size that comes to it."""
    return costs.entry_cost(group.index, group.mean_shard_bytes)


Shards = Tuple[Tuple[int, int], ...]        # (bytes, PG), sorted
SizedShards = List[Tuple[int, int, int]]    # (bytes, PG, group), sorted
#: group → (shards on their initial OSD, displaced shards). Tuples, which the garbage collector does
#: not search: an OSD has one entry for each of its pools.
ShardsByGroup = Dict[int, Tuple[Shards, Shards]]

#: Before it gives way again, a few milliseconds: PGs, shards sorted.
_PGS_A_PIECE = 1000
_SORTED_AT_ONCE = 2000


class ShardIndex:
    """Sorted views of the movable shards of each OSD, made when they are first asked for."""

    def __init__(self, placement: PlacementState) -> None:
        self._placement = placement
        count = len(placement.used_bytes)
        self._grouped: List[Optional[ShardsByGroup]] = [None] * count
        #: all shards by OSD, and the displaced ones: few searches ask for both of an OSD
        self._sorted: Tuple[List[Optional[SizedShards]], ...] = [None] * count, [None] * count
        placement.observers.append(self._on_move)

    def by_group(self, osd: int) -> ShardsByGroup:
        """Group → its shards on the OSD: those that are not displaced, and those that are."""
        known = self._grouped[osd]
        if known is not None:
            return known
        placement = self._placement
        found: Dict[int, Tuple[List[Tuple[int, int]], List[Tuple[int, int]]]] = {}
        bytes_of, initial_up = placement.bytes_of, placement.initial_up
        groups_of_pool = placement.groups_of_pool
        for pg in placement.shards[osd]:
            groups = groups_of_pool[placement.pool_of_pg[pg]]
            group = groups[0] if len(groups) == 1 else groups[placement.up[pg].index(osd)]
            pair = found.get(group)
            if pair is None:
                pair = found[group] = ([], [])
            # A shard never takes an OSD that another shard of its PG left, so a shard on an initial
            # OSD has not moved.
            pair[0 if osd in initial_up[pg] else 1].append((bytes_of[group][pg], pg))
        grouped = {group: (tuple(sorted(pair[0])), tuple(sorted(pair[1])))
                   for group, pair in found.items()}
        self._grouped[osd] = grouped
        return grouped

    def by_size(self, osd: int, displaced: bool = False) -> SizedShards:
        """Every movable shard on an OSD, or the displaced ones alone, as (bytes, PG, group),
        sorted; a list that follows the moves."""
        known = self._sorted[displaced][osd]
        if known is None:
            known = self._sorted[displaced][osd] = sorted(
                (s, pg, g) for g, pair in self.by_group(osd).items()
                for shards in pair[displaced:] for s, pg in shards)
        return known

    def all_displaced(self) -> Iterator[Tuple[int, int, int, int]]:
        """(-bytes, PG, OSD, group) of the displaced shards that there are now, the largest first,
        whatever moves while they are gone over."""
        placement = self._placement
        return sorted_piecewise((
            (-placement.size_on(pg, osd), pg, osd, placement.group_of(pg, osd))
            for pg in piecewise(placement.moved_pgs, _PGS_A_PIECE)
            for osd in placement.up[pg] if osd not in placement.initial_up[pg]),
            _SORTED_AT_ONCE)

    def _on_move(self, pg: int, source: int, target: int, group: int) -> None:
        size, initial = self._placement.bytes_of[group][pg], self._placement.initial_up[pg]
        for osd, comes in ((source, False), (target, True)):
            displaced = osd not in initial
            there = self._grouped[osd]
            if there is not None:
                there[group] = _updated(there.get(group, ((), ())), displaced, (size, pg), comes)
                if not any(there[group]):
                    del there[group]
            for by_osd in self._sorted[:1 + displaced]:
                shards = by_osd[osd]
                if shards is not None:
                    at = bisect_left(shards, (size, pg, group))
                    shards[at:at + (not comes)] = [(size, pg, group)] if comes else []


def _updated(pair: Tuple[Shards, Shards], displaced: bool, entry: Tuple[int, int],
             present: bool) -> Tuple[Shards, Shards]:
    """The pair with the entry added, or removed where it shall not be present."""
    shards = pair[displaced]
    at = bisect_left(shards, entry)
    shards = shards[:at] + (entry,) + shards[at:] if present else shards[:at] + shards[at + 1:]
    return (pair[0], shards) if displaced else (shards, pair[1])
