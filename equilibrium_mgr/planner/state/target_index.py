"""OSDs that may take a shard, the best first, in sorted lists that are updated when read.

Also the movable shards of each OSD, by group and by size. Both follow the moves of the placement.
"""
from __future__ import annotations

from bisect import bisect_left, insort
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, grouped, piecewise, sorted_piecewise
from .cost_model import CostModel
from .placement_state import PlacementState
from .shard_groups import ShardGroup


TargetEntry = Tuple[float, int]   # (key, OSD index), best first

#: Pools times OSDs up to which every pool has separate lists. They find the best target sooner, but
#: each move updates all of them: above this number the updates cost more than the search.
_OWN_LISTS = 200_000

#: The search ends after so many targets in a row that are no better: in a group's own list, and in
#: a shared list, which is sorted without the group's counts.
_PATIENCE_OWN = 2
_PATIENCE_SHARED = 12

_KEYS_A_PIECE = 1000   # computed before it gives way again: a few milliseconds


class TargetIndex:
    """Lists of targets: one for each zone of each group, or of each take if there are too many
    groups.

    The key of a group's own list is the cost of a shard of mean size; the key of a shared list is
    the OSD's utilization.
    """

    def __init__(self, costs: CostModel) -> None:
        placement = costs.placement
        self._placement = placement
        self._costs = costs
        self.has_own_lists = sum([len(group.osds) for group in placement.groups]) <= _OWN_LISTS
        self.patience = _PATIENCE_OWN if self.has_own_lists else _PATIENCE_SHARED
        self._by_bucket: Dict[Tuple[int, int], SortedOsds] = {}
        known: Dict[Tuple[int, int], Dict[int, SortedOsds]] = {}
        #: group → its lists by zone
        self.lists_of: List[Dict[int, SortedOsds]] = []
        for group in placement.groups:
            shape = id(group.osds), id(group.zone)
            if self.has_own_lists:
                shape = group.index, 0
            if shape not in known:
                known[shape] = _by_zone(placement, group, self._key_of(group))
            self.lists_of.append(known[shape])

    def _key_of(self, group: ShardGroup) -> Callable[[int], float]:
        """Returns a function of an OSD: its key in lists of the group."""
        if self.has_own_lists:
            return self._costs.entry_cost(group.index, group.mean_shard_bytes)
        return self._placement.capacity_utilization

    def candidates(self, group: int, source: int) -> List[TargetEntry]:
        """Returns the OSDs that a shard of the group on `source` may be able to go to."""
        known = self.list_of(group, source)
        return known.entries() if known is not None else []

    def in_bucket(self, group: int, bucket: int, bucket_of: Sequence[int]) -> List[TargetEntry]:
        """Returns the OSDs of one bucket that may take a shard of the group. `bucket_of`: OSD
        index → its bucket."""
        known = self._by_bucket.get((group, bucket))
        if known is None:
            members = self._placement.groups[group]
            osds = [osd for osd in members.osds if bucket_of[osd] == bucket]
            known = _targets(self._placement, osds, self._key_of(members))
            self._by_bucket[group, bucket] = known
        return known.entries()

    def list_of(self, group: int, source: int) -> Optional[SortedOsds]:
        """Returns the list of `candidates`; None if no OSD may be able to take a shard."""
        zone = self._placement.groups[group].zone
        number = 0 if zone is None else zone[source]
        return self.lists_of[group].get(number)


class SortedOsds:
    """OSDs sorted by a key that depends on their shards."""

    def __init__(self, placement: PlacementState, osds: Sequence[int],
                 key: Callable[[int], float]) -> None:
        self._placement = placement
        self._key = key
        self._entries: List[TargetEntry] = []
        self._keys = dict.fromkeys(osds, 0.0)
        self._changes_seen = -1

    def entries(self) -> List[TargetEntry]:
        """Returns (key, OSD), the best first."""
        changed = self._placement.change_log
        seen = self._changes_seen
        length = self._changes_seen = len(changed)
        keys = self._keys
        entries = self._entries
        if seen < 0 or length - seen > len(keys) // 2 + 8:
            for osd in piecewise(keys, _KEYS_A_PIECE):
                keys[osd] = self._key(osd)
            entries = self._entries = sorted([(key, osd) for osd, key in keys.items()])
            give_way()
        elif seen < length:
            for osd in set(changed[seen:]):
                old = keys.get(osd)
                if old is not None:
                    keys[osd] = new = self._key(osd)
                    if new != old:
                        del entries[bisect_left(entries, (old, osd))]
                        insort(entries, (new, osd))
        return entries

    def sorted(self, osds: Iterable[int]) -> List[TargetEntry]:
        """Returns the entries of some OSDs; ignores OSDs that are not in the list."""
        self.entries()
        return sorted([(self._keys[osd], osd) for osd in osds if osd in self._keys])

    def limits_changed(self) -> None:
        """Has all keys computed again. Call it if something else that keys depend on changes."""
        self._changes_seen = -1


def _by_zone(placement: PlacementState, group: ShardGroup,
             key: Callable[[int], float]) -> Dict[int, SortedOsds]:
    """Returns zone → its targets of the group; zone 0 if the group has none."""
    zone = group.zone
    if zone is None:
        return {0: _targets(placement, group.osds, key)}
    members = grouped((zone[osd], osd) for osd in group.osds)
    return {number: _targets(placement, osds, key) for number, osds in members.items()}


def _targets(placement: PlacementState, osds: Sequence[int],
             key: Callable[[int], float]) -> SortedOsds:
    return SortedOsds(placement, [osd for osd in osds if placement.is_target[osd]], key)


Shards = Tuple[Tuple[int, int], ...]        # (bytes, PG), sorted
SizedShards = List[Tuple[int, int, int]]    # (bytes, PG, group), sorted
#: group → (shards on their initial OSD, displaced shards). An OSD has one entry for each of its
#: pools; they are tuples because the garbage collector does not search these.
ShardsByGroup = Dict[int, Tuple[Shards, Shards]]

#: Before it gives way again, a few milliseconds: PGs, shards sorted.
_PGS_A_PIECE = 1000
_SORTED_AT_ONCE = 2000


class ShardIndex:
    """Sorted views of the movable shards of each OSD, made on first use."""

    def __init__(self, placement: PlacementState) -> None:
        self._placement = placement
        count = len(placement.used_bytes)
        self._grouped: List[Optional[ShardsByGroup]] = [None] * count
        #: all shards by OSD, and displaced shards by OSD: few searches need both of an OSD
        self._sorted: Tuple[List[Optional[SizedShards]], ...] = ([None] * count, [None] * count)
        placement.observers.append(self._on_move)

    def by_group(self, osd: int) -> ShardsByGroup:
        """Returns group → its shards on the OSD: (those not displaced, displaced shards)."""
        known = self._grouped[osd]
        if known is not None:
            return known
        placement = self._placement
        found: Dict[int, Tuple[List[Tuple[int, int]], List[Tuple[int, int]]]] = {}
        bytes_of = placement.bytes_of
        initial_up = placement.initial_up
        groups_of_pool = placement.groups_of_pool
        for pg in placement.shards[osd]:
            groups = groups_of_pool[placement.pool_of_pg[pg]]
            group = groups[0] if len(groups) == 1 else groups[placement.up[pg].index(osd)]
            pair = found.get(group)
            if pair is None:
                pair = found[group] = ([], [])
            # A shard on an initial OSD of its PG counts as not moved. An erasure-coded shard never
            # takes an OSD that another shard of its PG left; copies are all alike.
            is_displaced = osd not in initial_up[pg]
            pair[is_displaced].append((bytes_of[group][pg], pg))
        known = {group: (tuple(sorted(pair[0])), tuple(sorted(pair[1])))
                 for group, pair in found.items()}
        self._grouped[osd] = known
        return known

    def by_size(self, osd: int, displaced: bool = False) -> SizedShards:
        """Returns every movable shard on an OSD as (bytes, PG, group), sorted.

        `displaced`: only the displaced shards. The list follows the moves.
        """
        by_osd = self._sorted[displaced]
        known = by_osd[osd]
        if known is None:
            known = by_osd[osd] = []
            for group, pair in self.by_group(osd).items():
                for shards in pair[displaced:]:
                    known += [(size, pg, group) for size, pg in shards]
            known.sort()
        return known

    def all_displaced(self) -> Iterator[Tuple[int, int, int, int]]:
        """Returns the present displaced shards as (-bytes, PG, OSD, group), the largest first.

        Moves during the iteration change nothing in it.
        """
        return sorted_piecewise(self._displaced(), _SORTED_AT_ONCE)

    def _displaced(self) -> Iterator[Tuple[int, int, int, int]]:
        placement = self._placement
        for pg in piecewise(placement.moved_pgs, _PGS_A_PIECE):
            for osd in placement.up[pg]:
                if osd not in placement.initial_up[pg]:
                    yield -placement.size_on(pg, osd), pg, osd, placement.group_of(pg, osd)

    def _on_move(self, pg: int, source: int, target: int, group: int) -> None:
        size = self._placement.bytes_of[group][pg]
        initial = self._placement.initial_up[pg]
        entry = size, pg, group
        for osd, comes in ((source, False), (target, True)):
            displaced = osd not in initial
            there = self._grouped[osd]
            if there is not None:
                pair = _updated(there.get(group, ((), ())), displaced, (size, pg), comes)
                there[group] = pair
                if not any(pair):
                    del there[group]
            for by_osd in self._sorted[:1 + displaced]:
                shards = by_osd[osd]
                if shards is None:
                    continue
                if comes:
                    insort(shards, entry)
                else:
                    del shards[bisect_left(shards, entry)]


def _updated(pair: Tuple[Shards, Shards], displaced: bool, entry: Tuple[int, int],
             present: bool) -> Tuple[Shards, Shards]:
    """Returns the pair with the entry added, or removed if it is not to be present."""
    shards = pair[displaced]
    at = bisect_left(shards, entry)
    if present:
        shards = shards[:at] + (entry,) + shards[at:]
    else:
        shards = shards[:at] + shards[at + 1:]
    return (pair[0], shards) if displaced else (shards, pair[1])
