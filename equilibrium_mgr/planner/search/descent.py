"""Single moves off the fullest OSDs, at falling prices per byte.

The annealed price is what makes plans cheap: first only moves across a wide gap are worth their
bytes, and what they leave is evened out by ever smaller ones.
"""
from __future__ import annotations

import heapq
from typing import List, Sequence

from ...runtime.checkpoints import Checkpoint
from ..state.cost_model import CostModel
from .joint_moves import JointMoves
from .single_moves import SingleMoves


class Descent:
    """Takes single moves while they lower the objective.

    `budget_of` names for every OSD the purse in `budgets` that pays for moves which bring nothing
    but better counts; where it is empty such moves are left alone.
    """

    def __init__(self, costs: CostModel, moves: SingleMoves, joint_moves: JointMoves,
                 budgets: List[float], budget_of: Sequence[int]) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._moves = moves
        self._joint_moves = joint_moves
        self._budgets = budgets
        self._budget_of = budget_of

    def run(self, price: float, checkpoint: Checkpoint) -> bool:
        """Moves at this price until no OSD gives one; False where it was told to end."""
        placement, level = self._placement, self._costs.target_utilization
        heap = [(level[i] - placement.used_bytes[i] / placement.size_bytes[i], i) for i in range(len(placement.used_bytes))
                if placement.shards[i] and placement.is_source[i]]
        heapq.heapify(heap)
        waiting = [False] * len(placement.used_bytes)
        for _, i in heap:
            waiting[i] = True
        while heap:
            if not checkpoint():
                return False
            key, source = heapq.heappop(heap)
            now = level[source] - placement.used_bytes[source] / placement.size_bytes[source]
            if now > key + 1e-12:  # it became emptier since: others come first
                heapq.heappush(heap, (now, source))
                continue
            touched = self._take_best(source, price)
            if not touched:
                waiting[source] = False
            for osd in touched:
                if osd == source or (not waiting[osd] and placement.is_source[osd]):
                    waiting[osd] = True
                    heapq.heappush(heap, (level[osd] - placement.used_bytes[osd] / placement.size_bytes[osd], osd))
        return True

    def _take_best(self, source: int, price: float) -> List[int]:
        """Makes the move that gains most per shard; returns the OSDs it touched, none if none."""
        budget = self._budget_of[source]
        single = self._moves.best(source, price, self._budgets[budget] <= 0.0)
        joint = self._joint_moves.best(source, price)
        if joint is not None and (single is None
                                  or joint.gain > len(joint.steps) * single.gain):
            for step in joint.steps:
                self._placement.move(*step)
            return [osd for _, a, b in joint.steps for osd in (a, b)]
        if single is None:
            return []
        if single.evens <= 0.0 and source in self._placement.initial_up[single.pg]:
            self._budgets[budget] -= self._placement.pg_bytes[single.pg]
        self._placement.move(single.pg, source, single.target)
        return [source, single.target]
