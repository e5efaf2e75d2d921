"""OSD sets in indices, with the sizes that steer the search."""
from __future__ import annotations

from typing import Callable, FrozenSet

from .board import Board
from .bound import OsdSet, Reachable
from .objective import Weights

#: Of an OSD set's bytes: if single moves move less, and the fullest OSD is this near to the bound
#: (in typical shards, and at most as a ratio), the set is at rest.
_AT_REST = 0.002
_NEAR = 0.6
_NEAR_MOST = 0.015

#: A fullest OSD that is nearer to the bound than this is near, however small the shards are.
_FAR_LEAST = 0.004


class IndexedSet:
    """One set on a board; what it was like at the start is kept."""

    def __init__(self, board: Board, osd_set: OsdSet, reachable: Reachable) -> None:
        self.osds = tuple(board.index_of[osd] for osd in osd_set.osds)
        self.known = frozenset(self.osds)
        self._used = [board.used[i] for i in self.osds]
        self.restless = True
        self.bound = osd_set.bound
        level = {i: reachable.levels[board.osd_ids[i]] for i in self.osds}
        self.size_bytes = sum(board.size[i] for i in self.osds)
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

    def far(self, weights: Weights) -> float:
        """The utilisation above which the fullest OSD is far from the bound."""
        return self.bound + max(_FAR_LEAST, weights.far * self.shard)

    def worth(self, weights: Weights) -> Callable[[float, float], float]:
        """Bytes moved that it is worth to bring the fullest OSD from one utilisation to another."""
        far = self.far(weights)

        def worth(high: float, low: float) -> float:
            near = min(high, far) - min(low, far)
            return self.usable_bytes * (
                weights.worth * near + weights.far_worth * (high - low - near))
        return worth


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
