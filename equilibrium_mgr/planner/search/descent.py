"""Single and joint moves off the fullest OSDs, at falling prices per byte.

The falling price is what makes plans cheap: at first only moves between very unequal OSDs pay for
their bytes, and smaller differences are evened out later.
"""
from __future__ import annotations

import heapq
from typing import List, Sequence

from ...runtime.time_slice import give_way, piecewise
from ..state.cost_model import CostModel
from .joint_moves import JointMoves
from .single_moves import SingleMoves

_OSDS_A_PIECE = 2000   # looked at before it gives way again: a few milliseconds


class Descent:
    """Makes moves while they lower the objective.

    `budget_of` is, per OSD, the index in `budgets` (bytes) of what moves may cost that improve
    nothing but pools' counts; where it is used up no such moves are made.
    """

    def __init__(self, costs: CostModel, moves: SingleMoves, joint_moves: JointMoves,
                 budgets: List[float], budget_of: Sequence[int]) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._moves = moves
        self._joint_moves = joint_moves
        self._budgets = budgets
        self._budget_of = budget_of

    def run(self, price: float) -> bool:
        """Moves at this price until no OSD has a move that gains; False if asked to end before."""
        placement, target = self._placement, self._costs.bound_utilization
        used, size = placement.used_bytes, placement.size_bytes
        heap = [(target[i] - used[i] / size[i], i)
                for i in piecewise(range(len(used)), _OSDS_A_PIECE)
                if placement.shards[i] and placement.is_source[i]]
        heapq.heapify(heap)
        give_way()
        queued = [bool(placement.shards[i]) and placement.is_source[i]
                  for i in piecewise(range(len(used)), _OSDS_A_PIECE)]
        while heap:
            if not give_way(placement.moves_made):
                return False
            key, source = heapq.heappop(heap)
            now = target[source] - used[source] / size[source]
            if now > key + 1e-12:  # it has given bytes since: others come first
                heapq.heappush(heap, (now, source))
                continue
            touched = self._make_best_move(source, price)
            if not touched:
                queued[source] = False
            for osd in touched:
                if osd == source or (not queued[osd] and placement.is_source[osd]):
                    queued[osd] = True
                    heapq.heappush(heap, (target[osd] - used[osd] / size[osd], osd))
        return True

    def _make_best_move(self, source: int, price: float) -> List[int]:
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
        if single.utilization_gain <= 0.0 and source in self._placement.initial_up[single.pg]:
            if self._costs.is_far(self._placement.group_of(single.pg, source), source):
                self._costs.far_bytes_left -= self._placement.size_on(single.pg, source)
            else:
                self._budgets[budget] -= self._placement.size_on(single.pg, source)
        self._placement.move(single.pg, source, single.target)
        return [source, single.target]
