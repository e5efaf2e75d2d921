"""The search for a better placement: a recipe of three steps over one board.

1. Single moves off the fullest OSDs, at falling prices per byte (descent).
2. OSDs that an operator's weights hold to a share give what they have beyond it; then what limits
   the pools is tightened as far as it pays (squeeze): the highest utilisation of each
   OSD set, and each pool's room on the OSD that limits it most.
3. What was moved and turned out not to be needed is taken back (thrift), and what went through an
   OSD goes straight (detours).

A search that is told to end leaves a board that is better than it was, whenever that is.
"""
from __future__ import annotations

from typing import Callable, List

from .board import Board
from .bound import Reachable
from .descent import Descent
from .detours import Detours
from .joint_moves import JointMoves
from .limits import Limits
from .objective import Weights, holds_data
from .osd_sets import IndexedSet
from .relief import Relief
from .shares import limits_by_levels
from .shelves import Shelves
from .single_moves import SingleMoves
from .squeeze import Squeeze
from .targets import Targets
from .terms import Terms
from .thrift import take_back

#: How near the bound is near enough is a part of a shard, but no finer or coarser than these, and
#: no step is smaller than that; all ratios of an OSD.
_LEAST_GOAL = 0.0005
_MOST_GOAL = 0.0018
_LEAST_STEP = 0.001

#: One that is shortened may lay open another; later passes find little, as measured.
_DETOUR_PASSES = 3

#: So many of the last prices are for what coarser ones have left.
_FINE = 2


class Search:
    """One run over a board; `moves` is how many it has made so far."""

    def __init__(self, board: Board, reachable: Reachable, weights: Weights,
                 checkpoint: Callable[[int], bool]) -> None:
        self._board = board
        self._weights = weights
        self._checkpoint = checkpoint
        self._stopped = False
        self.sets = [IndexedSet(board, osd_set, reachable) for osd_set in reachable.sets]
        board.hold(limits_by_levels(board.snapshot, reachable.levels))
        levels = [reachable.levels[osd] for osd in board.osd_ids]
        tops, typical = list(levels), [0.0] * len(levels)
        for members in self.sets:
            for i in members.osds:
                tops[i], typical[i] = members.bound, members.typical
        full = board.snapshot.full_ratio
        free = [max(0.0, (full - level) * size) for level, size in zip(levels, board.size)]
        for i, most in board.held.items():
            tops[i] = most / board.size[i]
            free[i] = max(0.0, full * board.capacity[i] + board.spared[i] - most)
        self._terms = Terms(board, weights, tops, free, typical, self._go_on)
        self.targets = Targets(self._terms)
        self.shelves = Shelves(board)
        self._joint_moves = JointMoves(self._terms, self.targets, self.shelves)
        self.data_groups = [group.index for group in board.groups
                            if group.shards and holds_data(self._terms.worth[group.index])]

    @property
    def moves(self) -> int:
        """Shard moves made so far, those that were taken back or passed on included."""
        return len(self._board.changed) // 2

    def run(self) -> bool:
        """Searches to the end; False where the checkpoint ended it before."""
        if self._go_on():
            self._descend()
        if not self._stopped:
            limits = self._squeeze()
            if self._weights.thrift:
                self._spare(limits)
        return not self._stopped

    def relief(self, limits: Limits) -> Relief:
        """What finds operations within the limits."""
        return Relief(self._terms, self.targets, self.shelves, self._joint_moves, limits,
                      self._weights.squeeze_price)

    def _spare(self, limits: Limits) -> None:
        """Does with fewer moves what has been reached."""
        take_back(self._terms, self.shelves, self._joint_moves, limits, self._weights.thrift,
                  self._go_on)
        detours = Detours(self._terms, self.shelves, limits, self._weights.thrift)
        for _ in range(_DETOUR_PASSES):
            if not detours.shorten(self._go_on):
                break

    def _go_on(self) -> bool:
        if not self._stopped and not self._checkpoint(self.moves):
            self._stopped = True
        return not self._stopped

    def _descend(self) -> None:
        purses = [members.excess * self._weights.even_counts for members in self.sets] + [0.0]
        purse_of = [len(self.sets)] * len(self._board.size)
        for number, members in enumerate(self.sets):
            for i in members.osds:
                purse_of[i] = number
        moves = SingleMoves(self._terms, self.targets, self.shelves)
        descent = Descent(self._terms, moves, self._joint_moves, purses, purse_of)
        prices = self._weights.prices
        for number, price in enumerate(prices):
            # fine prices follow coarse ones: where those find nothing near the bound, it is at rest
            if (number >= len(prices) - _FINE and not self._board.changed
                    and all(members.near(self._board) for members in self.sets)):
                break
            if not descent.run(price, self._go_on):
                return
        for members in self.sets:
            members.look_again(self._board)

    def _squeeze(self) -> Limits:
        """Tightens the limits in turn; returns them as they stand in the end."""
        limits = Limits(self._board, self.data_groups, self._go_on)
        for members in self.sets:
            limits.set_water(members.osds, members.top(self._board))
        price = self._weights.squeeze_price
        squeeze = Squeeze(self._board, self.relief(limits), limits, price, self._go_on)
        self._lower_to_shares(squeeze, limits)
        purses = [members.excess * self._weights.room for members in self.sets]
        for what in self._weights.rounds.split():
            if self._stopped:
                break
            if what == "room":
                self._make_room(squeeze, limits, purses)
            else:
                limits.settle(self._weights.loosen)
                self._lower_maxima(squeeze)
        limits.settle(0.0)
        return limits

    def _lower_to_shares(self, squeeze: Squeeze, limits: Limits) -> None:
        """What is still beyond an OSD's share leaves it, whatever it costs: an operator wants it.
        Others may become as full for it as the bound demands."""
        for members in self.sets:
            held = [i for i in members.osds if i in self._board.held]
            if not held:
                continue
            top = members.top(self._board)
            limits.set_water(members.osds, max(top, members.bound + members.shard))
            for i in held:
                squeeze.lower_to(i, self._board.held[i], members.osds)
            limits.set_water(members.osds, max(top, members.top(self._board)))

    def _make_room(self, squeeze: Squeeze, limits: Limits, purses: List[float]) -> None:
        """Every pool of an OSD set gets its part of the purse; what one leaves the next may use."""
        for number, members in enumerate(self.sets):
            if not members.restless:
                continue
            limits.set_water(members.osds, max(members.top(self._board), members.bound + min(
                self._weights.lift, members.shard / 2.0)))
            groups = [group for group in self.data_groups
                      if self._board.groups[group].members & members.known]
            for left, group in zip(range(len(groups), 0, -1), groups):
                if not self._go_on():
                    return
                share = purses[number] / left
                unspent = squeeze.make_room(group, self._terms.least_pressure[group],
                                            self._weights.room_worth * self._terms.worth[group],
                                            share)
                purses[number] -= share - unspent

    def _lower_maxima(self, squeeze: Squeeze) -> None:
        weights = self._weights
        for members in self.sets:
            if not self._go_on():
                return
            if not members.restless:
                continue
            goal = min(_MOST_GOAL, max(_LEAST_GOAL, weights.goal * members.shard))
            step = max(_LEAST_STEP, weights.step * members.shard)
            squeeze.lower_maximum(
                members.osds, members.bound + goal,
                members.worth(weights), step,
                weights.trouble * weights.squeeze_price * step)
