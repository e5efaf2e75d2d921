"""The limits of OSDs while these are tightened: a utilization, and a pressure per data pool.

Pressure is the count of a group's shards on an OSD per byte that is free there. The OSD with the
highest pressure limits the pool's free space.
"""
from __future__ import annotations

from math import inf
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way
from .placement_state import PlacementState
from .target_index import SortedOsds


class _FreeNeed(NamedTuple):
    """Bytes that must stay free on an OSD for its groups to keep their maximum pressure."""

    versions: Tuple[int, int]   # (change count of the OSD, limits of pressure set before)
    most: float                 # what the group needs that needs most
    group: int                  # which that is, -1: none
    others: float               # what the group needs that needs most of the others


_UNKNOWN = _FreeNeed((-1, -1), 0.0, -1, 0.0)


class SearchConstraints:
    """Maximum used bytes per OSD, and maximum pressure per group of a pool that holds data."""

    def __init__(self, placement: PlacementState, data_groups: Sequence[int]) -> None:
        self._placement = placement
        full = placement.snapshot.full_ratio
        self.usable_bytes: List[float] = [full * size for size in placement.size_bytes]
        self.max_used_bytes: List[float] = [float(most) for most in placement.fill_limit_bytes]
        #: counts the calls of `set_max_utilization`
        self.utilization_version = 0
        #: group → shards per free byte; changed by `set_max_pressure` alone
        self.max_pressure: Dict[int, float] = {}
        #: groups whose limit was lowered, in turn; begins anew when one is raised
        self._lowered: List[int] = []
        self._lowered_before = 0    # limits set before the first of `_lowered`
        self._free_needs: List[_FreeNeed] = [_UNKNOWN] * len(placement.size_bytes)
        self._by_pressure: Optional[Tuple[int, SortedOsds]] = None   # of the group last asked for
        self._data_groups: List[List[int]] = [[] for _ in placement.size_bytes]   # per OSD
        for group in data_groups:
            give_way()
            for i in placement.groups[group].osds:
                self._data_groups[i].append(group)
            self.set_max_pressure(group, self._highest_pressure(group), 0.0)

    def shards_per_free_byte(self, group: int, osd: int) -> float:
        """The pressure of a group on an OSD; infinite where it has shards and nothing is free."""
        return _pressure(self._placement, group, self.usable_bytes[osd], osd)

    def by_pressure(self, group: int, osds: Sequence[int]) -> SortedOsds:
        """The OSDs by the negative pressure of a group: those first on which it is highest."""
        if self._by_pressure is None or self._by_pressure[0] != group or (
                self._by_pressure[1].osds != osds):
            give_way()
            placement, usable = self._placement, self.usable_bytes   # not self: no circle
            self._by_pressure = group, SortedOsds(
                placement, osds, lambda osd: -_pressure(placement, group, usable[osd], osd))
        return self._by_pressure[1]

    def _highest_pressure(self, group: int) -> float:
        counts, usable = self._placement.groups[group].counts, self.usable_bytes
        used = self._placement.used_bytes
        return max([counts[i] / (usable[i] - used[i]) if usable[i] > used[i] else inf
                    for i in self._placement.groups[group].osds if counts[i]], default=0.0)

    def set_max_pressure(self, group: int, pressure: float, slack: float = 0.0) -> None:
        """Allows the group this many shards per free byte, and `slack` (a ratio) more."""
        allowed = pressure * (1 + 1e-9 + slack)
        if allowed > self.max_pressure.get(group, 0.0):
            self._lowered_before += len(self._lowered) + 1
            self._lowered.clear()
        else:
            self._lowered.append(group)
        self.max_pressure[group] = allowed

    def tighten_to_current(self, slack: float) -> None:
        """Allows each data group its present highest pressure, and `slack` (a ratio) more."""
        for group in self.max_pressure:
            give_way()
            self.set_max_pressure(group, self._highest_pressure(group), slack)

    def set_max_utilization(self, osds: Sequence[int], utilization: float) -> None:
        """Allows these OSDs this utilization (a ratio of size), at most their fill limit."""
        give_way()
        self.utilization_version += 1
        for i in osds:
            self.max_used_bytes[i] = min(float(self._placement.fill_limit_bytes[i]),
                                         utilization * self._placement.size_bytes[i])

    def fits(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """True if the OSD keeps all limits with `more` bytes, one shard more of the group `plus`
        and one less of `minus` (-1: none)."""
        if self._placement.used_bytes[osd] + more > self.max_used_bytes[osd]:
            return False
        return self.fits_pressure(osd, more, plus, minus)

    def fits_pressure(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """The same for pressure alone; a group that only loses a shard always fits."""
        placement = self._placement
        free = self.usable_bytes[osd] - placement.used_bytes[osd] - more
        need = self._free_needs[osd]
        changes, limits_set = need.versions
        if changes != placement.change_counts[osd] or (
                limits_set != self._lowered_before + len(self._lowered)):
            need = self._free_need(osd)
        if (need.others if need.group == minus else need.most) > free:
            return False
        most = self.max_pressure.get(plus)
        if most is None or plus == minus:
            return True
        return placement.groups[plus].counts[osd] + 1 <= most * free

    def _free_need(self, osd: int) -> _FreeNeed:
        """A pass over all pools of the OSD, cached until the OSD changes or a limit is raised; over
        those whose limits were lowered where that is all."""
        known = self._free_needs[osd]
        changes = self._placement.change_counts[osd]
        groups, max_pressure = self._placement.groups, self.max_pressure
        needing = self._data_groups[osd]
        most, name, others = 0.0, -1, 0.0
        seen = known.versions[1] - self._lowered_before
        if known.versions[0] == changes and 0 <= seen and (
                len(self._lowered) - seen < len(needing)):
            most, name, others = known.most, known.group, known.others
            needing = [group for group in self._lowered[seen:] if osd in groups[group].members]
        for group in needing:
            count = groups[group].counts[osd]
            if count:
                free = count / max_pressure[group]
                if group == name:
                    most = free
                elif free > most:
                    most, others, name = free, most, group
                elif free > others:
                    others = free
        need = _FreeNeed((changes, self._lowered_before + len(self._lowered)), most, name, others)
        self._free_needs[osd] = need
        return need


def _pressure(placement: PlacementState, group: int, usable: float, osd: int) -> float:
    count = placement.groups[group].counts[osd]
    if not count:
        return 0.0
    free = usable - placement.used_bytes[osd]
    return count / free if free > 0 else inf
