"""Who could take a shard: the best OSDs first, in lists that are repaired when they are used."""
from __future__ import annotations

from bisect import bisect_left, insort
from typing import Callable, Dict, List, Sequence, Set, Tuple

from .cost_model import CostModel
from .placement_state import PlacementState
from .shard_groups import ShardGroup

TargetEntry = Tuple[float, int]   # (key, OSD index), best first

#: Pools times OSDs up to which every pool has lists of its own. They find the best target sooner,
#: but each has to be repaired after each move: beyond this that costs more than the search.
_OWN_LISTS = 200_000

#: Targets that may be no better before the search among the rest ends: in a list of the pool's own,
#: and in one that knows nothing of its counts.
_PATIENCE_OWN = 2
_PATIENCE_SHARED = 12


class TargetIndex:
    """Lists per pool and take (or per take where there are too many), and per zone of the tree."""

    def __init__(self, costs: CostModel) -> None:
        placement = costs.placement
        self._placement = placement
        self._costs = costs
        self.has_own_lists = sum(len(group.osds) for group in placement.groups) <= _OWN_LISTS
        self.patience = _PATIENCE_OWN if self.has_own_lists else _PATIENCE_SHARED
        self._by_osds: Dict[Tuple[int, ...], _Sorted] = {}
        self._by_bucket: Dict[Tuple[int, int], _Sorted] = {}
        shared: Dict[Tuple[int, int], Dict[int, _Sorted]] = {}
        self._by_group: List[Dict[int, _Sorted]] = []
        for group in placement.groups:
            if self.has_own_lists:
                self._by_group.append(_by_zone(placement, group, _cost_of(costs, group)))
                continue
            key = (id(group.osds), id(group.zone))
            if key not in shared:
                shared[key] = _by_zone(placement, group, placement.capacity_utilization)
            self._by_group.append(shared[key])

    def candidates(self, group: int, source: int) -> List[TargetEntry]:
        """The OSDs that a shard of the group might go to from `source`."""
        zone = self._placement.groups[group].zone
        known = self._by_group[group].get(0 if zone is None else zone[source])
        return known.entries() if known is not None else []

    def list_id(self, group: int, source: int) -> int:
        """Which list that is: groups with the same number share it."""
        zone = self._placement.groups[group].zone
        return id(self._by_group[group].get(0 if zone is None else zone[source]))

    def in_bucket(self, group: int, bucket: int) -> List[TargetEntry]:
        """The OSDs of one of the buckets that the group's shards share."""
        if (group, bucket) not in self._by_bucket:
            members = self._placement.groups[group]
            assert members.joint is not None
            osds = [osd for osd in members.osds if members.joint.bucket_of[osd] == bucket]
            self._by_bucket[group, bucket] = _Sorted(
                self._placement, osds,
                _cost_of(self._costs, members) if self.has_own_lists else self._placement.capacity_utilization)
        return self._by_bucket[group, bucket].entries()

    def by_utilization(self, osds: Tuple[int, ...]) -> List[TargetEntry]:
        """(fullness, OSD) of these OSDs, the emptiest first."""
        if osds not in self._by_osds:
            self._by_osds[osds] = _Sorted(self._placement, osds, self._placement.capacity_utilization)
        return self._by_osds[osds].entries()


class _Sorted:
    """OSDs that may take shards, sorted by a key that depends on what they hold."""

    def __init__(self, placement: PlacementState, osds: Sequence[int], key: Callable[[int], float]) -> None:
        self._placement = placement
        self._osds = [osd for osd in osds if placement.is_target[osd]]
        self._key = key
        self._entries: List[TargetEntry] = []
        self._keys: Dict[int, float] = {}
        self._seen = -1

    def entries(self) -> List[TargetEntry]:
        changed = self._placement.change_log
        if self._seen < 0 or len(changed) - self._seen > len(self._osds) // 2 + 8:
            self._keys = {osd: self._key(osd) for osd in self._osds}
            self._entries = sorted((key, osd) for osd, key in self._keys.items())
        elif self._seen < len(changed):
            self._repair(set(changed[self._seen:]))
        self._seen = len(changed)
        return self._entries

    def _repair(self, changed: Set[int]) -> None:
        for osd in changed:
            old = self._keys.get(osd)
            if old is not None:
                self._keys[osd] = new = self._key(osd)
                if new != old:
                    del self._entries[bisect_left(self._entries, (old, osd))]
                    insort(self._entries, (new, osd))


def _by_zone(placement: PlacementState, group: ShardGroup, key: Callable[[int], float]) -> Dict[int, _Sorted]:
    members: Dict[int, List[int]] = {}
    for osd in group.osds:
        members.setdefault(0 if group.zone is None else group.zone[osd], []).append(osd)
    return {zone: _Sorted(placement, osds, key) for zone, osds in members.items()}


def _cost_of(costs: CostModel, group: ShardGroup) -> Callable[[int], float]:
    """What it costs an OSD to take a shard of mean size."""
    return lambda osd: costs.cost_on_enter(group.index, osd, group.mean_shard_bytes)
