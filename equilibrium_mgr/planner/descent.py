"""Single moves off the fullest OSDs, at falling prices per byte.

The annealed price is what makes plans cheap: first only moves across a wide gap are worth their
bytes, and what they leave is evened out by ever smaller ones.
"""
from __future__ import annotations

import heapq
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .shelves import Shards, Shelves
from .targets import Entry, Targets
from .terms import Terms

#: Gains are differences of terms of up to 1e12 bytes: below this they are rounding, and shards of
#: no bytes would follow it round and round.
_NOISE = 1.0

#: Targets at which a shard could go before the search for a still better one ends.
_ENOUGH = 6

#: Pools looked at closely before the rest of an OSD's pools is left for its next turn.
_POOLS = 8


class Candidate(NamedTuple):
    """A move that lowers the objective by `gain`; `evens` is its gain without the counts."""

    gain: float
    evens: float
    pg: int
    target: int


class _Ends(NamedTuple):
    """What the inner loop needs of a source and a target."""

    used_a: int
    size_a: int
    level_a: float
    used_b: int
    size_b: int
    level_b: float
    base: float          # the terms of both before the move, and the counts' gain


class Descent:
    """Takes single moves while they lower the objective.

    `purse_of` names for every OSD the purse in `purses` that pays for moves which bring nothing
    but better counts; where it is empty such moves are left alone.
    """

    def __init__(self, terms: Terms, targets: Targets, shelves: Shelves, purses: List[float],
                 purse_of: Sequence[int]) -> None:
        self._terms = terms
        self._board = terms.board
        self._targets = targets
        self._shelves = shelves
        self._purses = purses
        self._purse_of = purse_of

    def run(self, price: float, go_on: Callable[[], bool]) -> bool:
        """Moves at this price until no OSD gives one; False where it was told to end."""
        board, level = self._board, self._terms.level
        heap = [(level[i] - board.used[i] / board.size[i], i) for i in range(len(board.used))
                if board.shards[i] and board.gives[i]]
        heapq.heapify(heap)
        waiting = [False] * len(board.used)
        for _, i in heap:
            waiting[i] = True
        while heap:
            if not go_on():
                return False
            key, source = heapq.heappop(heap)
            now = level[source] - board.used[source] / board.size[source]
            if now > key + 1e-12:  # it became emptier since: others come first
                heapq.heappush(heap, (now, source))
                continue
            found = self.best(source, price)
            if found is None:
                waiting[source] = False
                continue
            self._take(source, found)
            for osd in (source, found.target):
                if osd == source or (not waiting[osd] and board.gives[osd]):
                    waiting[osd] = True
                    heapq.heappush(heap, (level[osd] - board.used[osd] / board.size[osd], osd))
        return True

    def _take(self, source: int, found: Candidate) -> None:
        board = self._board
        if found.evens <= 0.0 and source in board.start[found.pg]:
            self._purses[self._purse_of[source]] -= board.pg_bytes[found.pg]
        board.move(found.pg, source, found.target)

    def best(self, source: int, price: float) -> Optional[Candidate]:
        """The best single move off an OSD, or None where none lowers the objective."""
        best: Optional[Candidate] = None
        grouped = self._shelves.of(source)
        outs = {group: self._terms.leave_count(group, source) for group in grouped}
        tried = 0
        for group in sorted(grouped, key=lambda g: (-outs[g], g)):
            shelf, out = grouped[group], outs[group]
            best = self._home(source, group, shelf[1], price, out, best)
            entries = self._targets.of(group, source)
            if entries and not self._hopeless(source, group, shelf, price, out, entries):
                best = self._away(source, group, shelf, price, out, entries, best)
                tried += 1
                if tried >= _POOLS and best:
                    break
        return best

    def _home(self, source: int, group: int, displaced: Shards, price: float, out: float,
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Returns of displaced shards, which refund their bytes."""
        board, terms = self._board, self._terms
        for size, pg in displaced:
            for home in board.homes(pg, source, group):
                if board.used[home] + size > board.most[home]:
                    continue
                evens = terms.shift(source, home, size) + price * size + terms.per_move[source]
                gain = evens + out - terms.enter_count(group, home)
                if gain > (best.gain if best else _NOISE) and board.legal(pg, source, home):
                    best = Candidate(gain, 1.0, pg, home)
        return best

    def _away(self, source: int, group: int, shelf: Tuple[Shards, Shards], price: float,
              out: float, entries: List[Entry],
              best: Optional[Candidate]) -> Optional[Candidate]:
        """Moves to other OSDs, the best first, until some in a row are no better."""
        board, terms = self._board, self._terms
        strict = self._purses[self._purse_of[source]] <= 0.0
        bits, bucket = board.groups[group].bits, board.groups[group].bucket
        open_to = board.groups[group].open.get(bucket[source], 0) if bits and bucket else 0
        tried = 0
        for _, target in entries:
            if target == source or (
                    bits and bucket and not open_to & bits[bucket[target]]):
                continue
            counts = out - terms.enter_count(group, target)
            best, better = self._to(source, target, shelf, price, counts, strict, best)
            tried += 1
            if tried >= self._targets.patience and not better or tried >= _ENOUGH and best:
                break
        return best

    def _hopeless(self, source: int, group: int, shelf: Tuple[Shards, Shards], price: float,
                  out: float, entries: List[Entry]) -> bool:
        """Whether not even the best target's price per byte can be met: most often, at once."""
        board, terms = self._board, self._terms
        first = entries[0][1]
        if first == source and len(entries) > 1:
            first = entries[1][1]
        over = board.used[source] / board.size[source] - terms.level[source]
        rate = 2.0 * over * (1.0 if over > 0.0 else terms.weights.below)
        least = min(shards[0][0] for shards in shelf if shards)
        mean = max(1.0, board.groups[group].mean_bytes)
        # gains are concave in bytes: the first byte's gain bounds all others'
        return (rate + out / max(1.0, least) - (0.0 if shelf[1] else price) + mean
                / board.size[first]) * mean <= terms.enter(group, first, mean)

    def _to(self, source: int, target: int, shelf: Tuple[Shards, Shards], price: float,
            counts: float, strict: bool,
            best: Optional[Candidate]) -> Tuple[Optional[Candidate], bool]:
        """The best shard of the shelf for one target if it beats the best so far, and whether any
        shard, legal or not, would gain."""
        board, terms = self._board, self._terms
        used_b = board.used[target]
        ends = _Ends(board.used[source], board.size[source], terms.level[source], used_b,
                     board.size[target], terms.level[target],
                     terms.fill(source, board.used[source]) + terms.fill(target, used_b) + counts)
        better = False
        for shards, cost, fixed in ((shelf[0], price, terms.per_move[source]),
                                    (shelf[1], 0.0, 0.0)):
            for gain, size, pg in _by_gain(shards, ends, terms.weights.below, cost):
                gain -= fixed
                if gain <= _NOISE or (strict and gain <= counts):
                    break
                better = True
                if best and gain <= best.gain:
                    break
                if used_b + size <= board.most[target] and board.legal(pg, source, target):
                    best = Candidate(gain, gain - counts, pg, target)
                    break
        return best, better


def _by_gain(shards: Shards, ends: _Ends, below: float,
             price: float) -> Iterator[Tuple[float, int, int]]:
    """(gain, bytes, PG) of a sorted list of shards, the best first.

    The gain is concave in the bytes: the best is where the slope changes its sign, and the others
    follow to both sides. Written out, since it is most of what a plan costs, as measured.
    """
    used_a, size_a, level_a, used_b, size_b, level_b, base = ends
    low, high = 0, len(shards) if len(shards) > 1 else 0
    while low < high:
        middle = (low + high) // 2
        size = shards[middle][0]
        x = (used_a - size) / size_a - level_a
        y = (used_b + size) / size_b - level_b
        if 2.0 * (x if x > 0.0 else below * x) - 2.0 * (y if y > 0.0 else below * y) > price:
            low = middle + 1
        else:
            high = middle
    left, right, count = low - 1, low, len(shards)
    gains: List[Optional[float]] = [None, None]
    while left >= 0 or right < count:
        for side, index in ((0, left), (1, right)):
            if gains[side] is None and 0 <= index < count:
                size = shards[index][0]
                x = (used_a - size) / size_a - level_a
                y = (used_b + size) / size_b - level_b
                gains[side] = (base - size_a * x * x * (1.0 if x > 0.0 else below)
                               - size_b * y * y * (1.0 if y > 0.0 else below) - price * size)
        down, up = gains
        if up is not None and (down is None or up >= down):
            yield up, shards[right][0], shards[right][1]
            right, gains[1] = right + 1, None
        else:
            assert down is not None
            yield down, shards[left][0], shards[left][1]
            left, gains[0] = left - 1, None
