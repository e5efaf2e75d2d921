"""What tests bind in the place of a slice of time, and what stands in for the planner calls."""
from __future__ import annotations

import importlib
from typing import List


class Asked(List[int]):
    """The moves that it was told of, one entry for each time that the work gave way; says no after
    so many calls."""

    def __init__(self, calls: int = 1 << 60) -> None:
        super().__init__()
        self._calls = calls

    def __call__(self, moves: int) -> bool:
        self.append(moves)
        return len(self) <= self._calls


def give_way(moves: int = 0) -> bool:
    """Of the package as it is imported now: sessions of another release import it again."""
    going_on: bool = importlib.import_module(
        "equilibrium_mgr.runtime.time_slice").give_way(moves)
    return going_on
