"""Chooses primaries so that each OSD has its fair share of them, for few changes.

Each PG is an edge from its primary to the other OSDs that may be. Where an OSD has too many
primaries, the shortest path to one that has too few is turned round: each PG on it gets the next
OSD as its primary. Where no path is left no other choice has less above the shares.
"""
from __future__ import annotations

import math
from collections import deque
from typing import Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..runtime.time_slice import piecewise

#: Paths searched, and PGs read, before it gives way again: about a millisecond.
_PATHS_A_PIECE, _CHOICES_A_PIECE = 20, 500
#: Shares are sums of ratios: so near to a whole number they are that.
_ROUNDING = 1e-9


class Choice(NamedTuple):
    """A PG whose primary may be another one."""

    pgid: str
    primary: int                # now
    others: Tuple[int, ...]     # OSDs that may be instead


def choose_primaries(choices: List[Choice], counts: Mapping[int, int],
                     shares: Mapping[int, float]) -> Dict[str, int]:
    """pgid → its new primary, of the PGs that get another one.

    `counts`: OSD id → primaries now, those of PGs that have no choice included. `shares`: OSD id →
    its fair share, in primaries.
    """
    graph = _Graph(choices, counts)
    least = {osd: math.floor(share + _ROUNDING) for osd, share in shares.items()}
    most = {osd: math.ceil(share - _ROUNDING) for osd, share in shares.items()}
    steps: Tuple[Tuple[Mapping[int, int], Mapping[int, int]], ...] = (
        (most, least),    # from those above their share to those below it
        (most, most),     # to those that may have one more
        (least, least))   # from those that may have one less
    for above, below in steps:
        graph.even_out(above, below)
    return graph.changes()


class _Graph:
    """The PGs by their primaries."""

    def __init__(self, choices: List[Choice], counts: Mapping[int, int]) -> None:
        self.counts = dict(counts)
        self._allowed: Dict[str, Tuple[int, ...]] = {}   # the primary at first comes first
        self._now: Dict[str, int] = {}
        self._led: Dict[int, Dict[str, None]] = {}   # OSD → PGs that it is primary of, in order
        for choice in piecewise(choices, _CHOICES_A_PIECE):
            self._allowed[choice.pgid] = (choice.primary, *choice.others)
            self._now[choice.pgid] = choice.primary
            self._led.setdefault(choice.primary, {})[choice.pgid] = None

    def changes(self) -> Dict[str, int]:
        """pgid → primary, of the PGs that have another one than at first."""
        return {pgid: osd for pgid, osd in piecewise(
            self._now.items(), _CHOICES_A_PIECE) if osd != self._allowed[pgid][0]}

    def even_out(self, above: Mapping[int, int], below: Mapping[int, int]) -> None:
        """Takes primaries from OSDs that have more than `above` says to OSDs that have fewer than
        `below`, as long as there is a path."""
        sources = sorted((osd for osd in self._led if self.counts[osd] > above.get(osd, 0)),
                         key=lambda osd: (above.get(osd, 0) - self.counts[osd], osd))
        dead: Set[int] = set()   # from which no OSD below its share can be reached
        pieces = (osd for osd in sources
                  for _ in range(self.counts[osd] - above.get(osd, 0)))
        for osd in piecewise(pieces, _PATHS_A_PIECE):
            if osd in dead or self.counts[osd] <= above.get(osd, 0):
                continue
            path = self._path(osd, lambda to: self.counts.get(to, 0) < below.get(to, 0), dead)
            if path is not None:
                self._turn(path)

    def _path(self, source: int, is_goal: Callable[[int], bool],
              dead: Set[int]) -> Optional[List[Tuple[str, int]]]:
        """The shortest path to a goal as (PG, its next primary); what was seen is dead where there
        is none."""
        came: Dict[int, Optional[Tuple[int, str]]] = {source: None}
        queue: Deque[int] = deque([source])
        while queue:
            osd = queue.popleft()
            for pgid in self._led.get(osd, ()):
                for other in self._allowed[pgid]:
                    if other in came or other in dead:
                        continue
                    came[other] = (osd, pgid)
                    if is_goal(other):
                        return _walked(came, other)
                    queue.append(other)
        dead.update(came)
        return None

    def _turn(self, path: List[Tuple[str, int]]) -> None:
        for pgid, osd in path:
            before = self._now[pgid]
            del self._led[before][pgid]
            self._led.setdefault(osd, {})[pgid] = None
            self._now[pgid] = osd
            self.counts[before] -= 1
            self.counts[osd] = self.counts.get(osd, 0) + 1


def _walked(came: Mapping[int, Optional[Tuple[int, str]]], goal: int) -> List[Tuple[str, int]]:
    path: List[Tuple[str, int]] = []
    step = came[goal]
    while step is not None:
        path.append((step[1], goal))
        goal = step[0]
        step = came[goal]
    return path
