"""What no OSD may pass while limits are tightened: utilization, and shards per free byte."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Tuple

from ...runtime.checkpoints import Checkpoint
from .placement_state import PlacementState


class _Need(NamedTuple):
    """Bytes that must stay free on an OSD, by the group that needs most and without it."""

    version: Tuple[int, int]
    most: float
    group: int
    others: float


_UNKNOWN = _Need((-1, -1), 0.0, -1, 0.0)


class SearchConstraints:
    """Used bytes per OSD, and per pool that holds data the shards on an OSD per free byte."""

    def __init__(self, placement: PlacementState, data_groups: Sequence[int],
                 checkpoint: Checkpoint) -> None:
        self._placement = placement
        self._checkpoint = checkpoint
        full = placement.snapshot.full_ratio
        self.usable_bytes: List[float] = [full * size for size in placement.size_bytes]
        self.max_used_bytes: List[float] = [float(most) for most in placement.fill_limit_bytes]
        self.max_pressure: Dict[int, float] = {}  # changed by `allow` alone
        self._pressure_version = 0
        self._free_needs: List[_Need] = [_UNKNOWN] * len(placement.size_bytes)
        self._data_groups: List[List[int]] = [[] for _ in placement.size_bytes]
        for group in data_groups:
            checkpoint()
            osds = placement.groups[group].osds
            for i in osds:
                self._data_groups[i].append(group)
            self.set_max_pressure(group, max((self.shards_per_free_byte(group, i) for i in osds), default=0.0), 0.0)

    def shards_per_free_byte(self, group: int, osd: int) -> float:
        """Shards of a group per byte that is still free on the OSD."""
        count = self._placement.groups[group].counts[osd]
        if not count:
            return 0.0
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd]
        return count / free if free > 0 else float("inf")

    def set_max_pressure(self, group: int, per_byte: float, slack: float = 0.0) -> None:
        """The group may have so many shards per free byte, and `slack` (a ratio) more."""
        self.max_pressure[group] = per_byte * (1 + 1e-9 + slack)
        self._pressure_version += 1

    def tighten_to_current(self, slack: float) -> None:
        """Pools may have what they have now, and `slack` (a ratio) more."""
        for group in self.max_pressure:
            self._checkpoint()
            self.set_max_pressure(group, max((self.shards_per_free_byte(group, i)
                                   for i in self._placement.groups[group].osds), default=0.0), slack)

    def set_max_utilization(self, osds: Sequence[int], water: float) -> None:
        """No OSD of these may pass the utilization `water` (nor its fill limit)."""
        for i in osds:
            self.max_used_bytes[i] = min(float(self._placement.fill_limit_bytes[i]), water * self._placement.size_bytes[i])

    def fits(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """Does the OSD keep all limits with `more` bytes, one shard of `plus`, one less of
        `minus` (-1: none)?"""
        return (self._placement.used_bytes[osd] + more <= self.max_used_bytes[osd]
                and self.fits_pressure(osd, more, plus, minus))

    def fits_pressure(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """The same for shards per free byte alone; a group that only loses always fits."""
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd] - more
        need = self._free_needs[osd]
        if need.version != (self._placement.change_counts[osd], self._pressure_version):
            need = self._free_need(osd)
        if (need.others if need.group == minus else need.most) > free:
            return False
        most = self.max_pressure.get(plus)
        if most is None or plus == minus:
            return True
        return self._placement.groups[plus].counts[osd] + 1 <= most * free

    def _free_need(self, osd: int) -> _Need:
        """Asked for often between two changes, and a pass over all pools: so it is kept."""
        groups, allowed = self._placement.groups, self.max_pressure
        most = others = 0.0
        name = -1
        for group in self._data_groups[osd]:
            count = groups[group].counts[osd]
            if count:
                free = count / allowed[group]
                if free > most:
                    most, others, name = free, most, group
                elif free > others:
                    others = free
        need = _Need((self._placement.change_counts[osd], self._pressure_version), most, name, others)
        self._free_needs[osd] = need
        return need
