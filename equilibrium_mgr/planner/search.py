"""The search for a better placement: a recipe of three steps over one board.

1. Single moves off the fullest OSDs, at falling prices per byte (descent).
2. What limits the pools is tightened as far as it pays (squeeze): the highest utilisation of each
   OSD set, and each pool's room on the OSD that limits it most.
3. What was moved and turned out not to be needed is taken back (thrift).

A search that is told to end leaves a board that is better than it was, whenever that is.
"""
from __future__ import annotations

from typing import Callable, FrozenSet, List

from .board import Board
from .bound import OsdSet, Reachable
from .descent import Descent
from .limits import Limits
from .objective import Weights, holds_data
from .relief import Relief
from .shelves import Shelves
from .squeeze import Squeeze
from .targets import Targets
from .terms import Terms
from .thrift import take_back

#: Finer than these no highest utilisation is asked for, as ratios.
_LEAST_GOAL = 0.0005
_LEAST_STEP = 0.001

#: Of an OSD set's bytes: if single moves move less, and the fullest OSD is this near to the bound
#: (in typical shards, and at most as a ratio), the set is at rest.
_AT_REST = 0.002
_NEAR = 0.6
_NEAR_MOST = 0.015

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
        self._sets = [_Set(board, osd_set, reachable) for osd_set in reachable.sets]
        levels = [reachable.levels[osd] for osd in board.osd_ids]
        tops, typical = list(levels), [0.0] * len(levels)
        for members in self._sets:
            for i in members.osds:
                tops[i], typical[i] = members.bound, members.typical
        full = board.snapshot.full_ratio
        free = [max(0.0, (full - level) * size) for level, size in zip(levels, board.size)]
        self._terms = Terms(board, weights, tops, free, typical, self._go_on)
        self._targets = Targets(self._terms)
        self._shelves = Shelves(board)
        self._data = [group.index for group in board.groups
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
                take_back(self._terms, self._shelves, limits, self._weights.thrift, self._go_on)
        return not self._stopped

    def _go_on(self) -> bool:
        if not self._stopped and not self._checkpoint(self.moves):
            self._stopped = True
        return not self._stopped

    def _descend(self) -> None:
        purses = [members.excess * self._weights.even_counts for members in self._sets] + [0.0]
        purse_of = [len(self._sets)] * len(self._board.size)
        for number, members in enumerate(self._sets):
            for i in members.osds:
                purse_of[i] = number
        descent = Descent(self._terms, self._targets, self._shelves, purses, purse_of)
        prices = self._weights.prices
        for number, price in enumerate(prices):
            # fine prices follow coarse ones: where those find nothing near the bound, it is at rest
            if (number >= len(prices) - _FINE and not self._board.changed
                    and all(members.near(self._board) for members in self._sets)):
                break
            if not descent.run(price, self._go_on):
                return
        for members in self._sets:
            members.look_again(self._board)

    def _squeeze(self) -> Limits:
        """Tightens the limits in turn; returns them as they stand in the end."""
        limits = Limits(self._board, self._data, self._go_on)
        for members in self._sets:
            limits.set_water(members.osds, members.top(self._board))
        price = self._weights.squeeze_price
        relief = Relief(self._terms, self._targets, self._shelves, limits, price)
        squeeze = Squeeze(self._board, relief, limits, price, self._go_on)
        purses = [members.excess * self._weights.room for members in self._sets]
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

    def _make_room(self, squeeze: Squeeze, limits: Limits, purses: List[float]) -> None:
        """Every pool of an OSD set gets its part of the purse; what one leaves the next may use."""
        for number, members in enumerate(self._sets):
            if not members.restless:
                continue
            limits.set_water(members.osds, max(members.top(self._board), members.bound + min(
                self._weights.lift, members.shard / 2.0)))
            groups = [group for group in self._data
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
        for members in self._sets:
            if not self._go_on():
                return
            if not members.restless:
                continue
            step = max(_LEAST_STEP, weights.step * members.shard)
            squeeze.lower_maximum(
                members.osds, members.bound + max(_LEAST_GOAL, weights.goal * members.shard),
                weights.worth * members.usable_bytes, step,
                weights.trouble * weights.squeeze_price * step)


class _Set:
    """An OSD set in indices, with the sizes that steer the search."""

    def __init__(self, board: Board, osd_set: OsdSet, reachable: Reachable) -> None:
        self.osds = tuple(board.index_of[osd] for osd in osd_set.osds)
        self.known = frozenset(self.osds)
        self._used = [board.used[i] for i in self.osds]
        self.restless = True
        self.bound = osd_set.bound
        level = {i: reachable.levels[board.osd_ids[i]] for i in self.osds}
        #: bytes that grow where the fullest OSDs get room: pools that lean on them grow everywhere
        self.usable_bytes = sum(level[i] * board.size[i] for i in self.osds) / max(
            1e-9, osd_set.bound)
        #: bytes above the reachable levels: no plan that evens out moves less
        self.excess = sum(max(0.0, board.used[i] - level[i] * board.size[i]) for i in self.osds)
        self.typical = _typical_shard(board, self.known)
        sizes = sorted(board.size[i] for i in self.osds)
        self.shard = self.typical / sizes[len(sizes) // 2]  # of an OSD, a ratio

    def look_again(self, board: Board) -> None:
        """A set that is near its bound, and that single moves hardly change, is at rest: a plan
        made after a finished one finds nothing to do."""
        moved = sum(max(0, board.used[i] - used) for i, used in zip(self.osds, self._used))
        self.restless = not self.near(board) or moved > _AT_REST * sum(self._used)

    def near(self, board: Board) -> bool:
        """Whether whole shards may well be all that keeps the fullest OSD off the bound."""
        return self.top(board) <= self.bound + min(_NEAR * self.shard, _NEAR_MOST)

    def top(self, board: Board) -> float:
        return max(board.used[i] / board.size[i] for i in self.osds)


def _typical_shard(board: Board, known: FrozenSet[int]) -> float:
    """Half of the bytes on these OSDs are in pools whose mean shard is at most this large."""
    groups = sorted((group.mean_bytes, group.bytes) for group in board.groups
                    if group.shards and group.members & known)
    half, passed = sum(total for _, total in groups) / 2.0, 0
    for mean, total in groups:
        passed += total
        if passed >= half:
            return mean
    return 0.0
