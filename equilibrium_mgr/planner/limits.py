"""What no OSD may pass while limits are tightened: utilisation, and shards per free byte."""
from __future__ import annotations

from typing import Callable, Dict, List, Sequence

from .board import Board


class Limits:
    """Used bytes per OSD, and per pool that holds data the shards on an OSD per free byte."""

    def __init__(self, board: Board, data_groups: Sequence[int],
                 pause: Callable[[], object]) -> None:
        self._board = board
        self._pause = pause
        full = board.snapshot.full_ratio
        self.usable: List[float] = [full * size for size in board.size]
        self.most_used: List[float] = [float(most) for most in board.most]
        self.most_per_byte: Dict[int, float] = {}
        self._data: List[List[int]] = [[] for _ in board.size]
        for group in data_groups:
            pause()
            osds = board.groups[group].osds
            for i in osds:
                self._data[i].append(group)
            self.most_per_byte[group] = max(
                (self.pressure(group, i) for i in osds), default=0.0) * (1 + 1e-9)

    def pressure(self, group: int, osd: int) -> float:
        """Shards of a group per byte that is still free on the OSD."""
        count = self._board.groups[group].counts[osd]
        if not count:
            return 0.0
        free = self.usable[osd] - self._board.used[osd]
        return count / free if free > 0 else float("inf")

    def settle(self, slack: float) -> None:
        """Pools may have what they have now, and `slack` (a ratio) more."""
        for group in self.most_per_byte:
            self._pause()
            self.most_per_byte[group] = (1 + 1e-9 + slack) * max(
                self.pressure(group, i) for i in self._board.groups[group].osds)

    def set_water(self, osds: Sequence[int], water: float) -> None:
        """No OSD of these may pass the utilisation `water` (nor its fill limit)."""
        for i in osds:
            self.most_used[i] = min(float(self._board.most[i]), water * self._board.size[i])

    def fits(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """Does the OSD keep all limits with `more` bytes, one shard of `plus`, one less of
        `minus` (-1: none)?"""
        return (self._board.used[osd] + more <= self.most_used[osd]
                and self.fits_counts(osd, more, plus, minus))

    def fits_counts(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """The same for shards per free byte alone; a group that only loses always fits."""
        free = self.usable[osd] - self._board.used[osd] - more
        groups = self._board.groups
        for group in self._data[osd]:
            count = groups[group].counts[osd]
            if group == plus:
                count += 1
            if group == minus:
                count -= 1
            if count and group != minus and count > self.most_per_byte[group] * free:
                return False
        return True
