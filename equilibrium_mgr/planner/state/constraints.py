"""What no OSD may pass while limits are tightened: utilization, and shards per free byte."""
from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

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
                 checkpoint: Callable[[], object]) -> None:
        self._placement = placement
        self._checkpoint = checkpoint
        full = placement.snapshot.full_ratio
        self.usable: List[float] = [full * size for size in placement.size]
        self.most_used: List[float] = [float(most) for most in placement.most]
        self.most_per_byte: Dict[int, float] = {}  # changed by `allow` alone
        self._version = 0
        self._needs: List[_Need] = [_UNKNOWN] * len(placement.size)
        self._data: List[List[int]] = [[] for _ in placement.size]
        for group in data_groups:
            checkpoint()
            osds = placement.groups[group].osds
            for i in osds:
                self._data[i].append(group)
            self.allow(group, max((self.pressure(group, i) for i in osds), default=0.0), 0.0)

    def pressure(self, group: int, osd: int) -> float:
        """Shards of a group per byte that is still free on the OSD."""
        count = self._placement.groups[group].counts[osd]
        if not count:
            return 0.0
        free = self.usable[osd] - self._placement.used[osd]
        return count / free if free > 0 else float("inf")

    def allow(self, group: int, per_byte: float, slack: float = 0.0) -> None:
        """The group may have so many shards per free byte, and `slack` (a ratio) more."""
        self.most_per_byte[group] = per_byte * (1 + 1e-9 + slack)
        self._version += 1

    def settle(self, slack: float) -> None:
        """Pools may have what they have now, and `slack` (a ratio) more."""
        for group in self.most_per_byte:
            self._checkpoint()
            self.allow(group, max((self.pressure(group, i)
                                   for i in self._placement.groups[group].osds), default=0.0), slack)

    def set_water(self, osds: Sequence[int], water: float) -> None:
        """No OSD of these may pass the utilization `water` (nor its fill limit)."""
        for i in osds:
            self.most_used[i] = min(float(self._placement.most[i]), water * self._placement.size[i])

    def fits(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """Does the OSD keep all limits with `more` bytes, one shard of `plus`, one less of
        `minus` (-1: none)?"""
        return (self._placement.used[osd] + more <= self.most_used[osd]
                and self.fits_counts(osd, more, plus, minus))

    def fits_counts(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """The same for shards per free byte alone; a group that only loses always fits."""
        free = self.usable[osd] - self._placement.used[osd] - more
        need = self._needs[osd]
        if need.version != (self._placement.version[osd], self._version):
            need = self._need(osd)
        if (need.others if need.group == minus else need.most) > free:
            return False
        most = self.most_per_byte.get(plus)
        if most is None or plus == minus:
            return True
        return self._placement.groups[plus].counts[osd] + 1 <= most * free

    def _need(self, osd: int) -> _Need:
        """Asked for often between two changes, and a pass over all pools: so it is kept."""
        groups, allowed = self._placement.groups, self.most_per_byte
        most = others = 0.0
        name = -1
        for group in self._data[osd]:
            count = groups[group].counts[osd]
            if count:
                free = count / allowed[group]
                if free > most:
                    most, others, name = free, most, group
                elif free > others:
                    others = free
        need = _Need((self._placement.version[osd], self._version), most, name, others)
        self._needs[osd] = need
        return need
