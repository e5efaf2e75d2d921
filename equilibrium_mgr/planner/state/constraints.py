"""The limits of OSDs while these are tightened: a utilization, and a pressure per data pool.

Pressure is the count of a group's shards on an OSD per byte that is free there. The OSD with the
highest pressure limits the pool's free space.
"""
from __future__ import annotations

from math import inf
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ...runtime.time_slice import give_way
from .placement_state import PlacementState
from .target_index import SortedOsds


class _FreeNeed(NamedTuple):
    """Bytes that must stay free on an OSD for its groups to keep their maximum pressure."""

    versions: Tuple[int, int]   # (change count of the OSD, limits of pressure set until then)
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
        #: group → shards per free byte
        self.max_pressure: Dict[int, float] = {}
        self._limits_set = 0    # calls of `set_max_pressure`
        self._free_needs: List[_FreeNeed] = [_UNKNOWN] * len(placement.size_bytes)
        self._data_groups: List[List[int]] = [[] for _ in placement.size_bytes]   # per OSD
        for group in data_groups:
            give_way()
            for i in placement.groups[group].osds:
                self._data_groups[i].append(group)
            self.set_max_pressure(group, self._highest_pressure(group), 0.0)

    def shards_per_free_byte(self, group: int, osd: int) -> float:
        """The pressure of a group on an OSD; infinite where it has shards and nothing is free."""
        count = self._placement.groups[group].counts[osd]
        if not count:
            return 0.0
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd]
        return count / free if free > 0 else inf

    def by_pressure(self, group: int, osds: Sequence[int]) -> SortedOsds:
        """The OSDs by the negative pressure of a group: those first on which it is highest."""
        return SortedOsds(self._placement, osds,
                          lambda osd: -self.shards_per_free_byte(group, osd))

    def _highest_pressure(self, group: int) -> float:
        return max([self.shards_per_free_byte(group, osd)
                    for osd in self._placement.groups[group].osds], default=0.0)

    def set_max_pressure(self, group: int, pressure: float, slack: float = 0.0) -> None:
        """Allows the group this many shards per free byte, and `slack` (a ratio) more."""
        self._limits_set += 1
        self.max_pressure[group] = pressure * (1 + 1e-9 + slack)

    def tighten_to_current(self, slack: float) -> None:
        """Allows each data group its present highest pressure, and `slack` (a ratio) more."""
        for group in self.max_pressure:
            give_way()
            self.set_max_pressure(group, self._highest_pressure(group), slack)

    def set_max_utilization(self, osds: Sequence[int], utilization: float) -> None:
        """Allows these OSDs this utilization (a ratio of size), at most their fill limit."""
        give_way()
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
        if need.versions != (placement.change_counts[osd], self._limits_set):
            need = self._free_needs[osd] = self._free_need(osd)
        if (need.others if need.group == minus else need.most) > free:
            return False
        most = self.max_pressure.get(plus)
        if most is None or plus == minus:
            return True
        return placement.groups[plus].counts[osd] + 1 <= most * free

    def _free_need(self, osd: int) -> _FreeNeed:
        """A pass over all pools of the OSD, kept until it changes or a limit of pressure does."""
        groups = self._placement.groups
        most, name, others = 0.0, -1, 0.0
        for group in self._data_groups[osd]:
            count = groups[group].counts[osd]
            if count:
                free = count / self.max_pressure[group]
                if free > most:
                    most, others, name = free, most, group
                elif free > others:
                    others = free
        return _FreeNeed((self._placement.change_counts[osd], self._limits_set), most, name,
                         others)
