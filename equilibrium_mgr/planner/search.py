"""The Equilibrium paper's search (arXiv 2310.15805): fullest OSD, largest shard, emptiest target.

A move is taken when it is legal, brings the pool's shard counts no further from their ideal on
either OSD, and lowers the variance of utilisation. Device classes take turns, so that a stuck one
does not hold up the others.
"""
from __future__ import annotations

from typing import Callable, Dict, List, Optional, Set, Tuple

from ..snapshot.model import Pg
from .options import PlanOptions
from .plan import Move
from .state import Group, PlacementState

#: Asked between small pieces of work; False ends the search with what it has.
Checkpoint = Callable[[int], bool]

CONVERGED = "converged"
MOVE_LIMIT = "the limit of moves is reached"
BYTE_LIMIT = "the limit of bytes is reached"
INTERRUPTED = "the time limit is reached"


class Search:
    """One run over a placement state; `moves` grows, in the order in which they were found."""

    def __init__(self, state: PlacementState, options: PlanOptions,
                 checkpoint: Checkpoint) -> None:
        self.moves: List[Move] = []
        self._state = state
        self._options = options
        self._checkpoint = checkpoint
        self._bytes_left = options.max_bytes
        self._short_of_bytes = False
        self._interrupted = False
        # OSDs that gave nothing → the OSDs that became emptier since and are worth another look
        self._stuck: Dict[int, Set[int]] = {}

    def run(self, device_classes: List[str]) -> str:
        """Searches until no class gives a move, or a limit is reached; returns why it stopped."""
        active = list(device_classes)
        while active:
            for device_class in list(active):
                if self._out_of_moves():
                    return MOVE_LIMIT
                if not self._move_one(device_class):
                    active.remove(device_class)
                if self._interrupted:
                    return INTERRUPTED
        return BYTE_LIMIT if self._short_of_bytes else CONVERGED

    def _move_one(self, device_class: str) -> bool:
        """One move off one of the fullest OSDs of the class; False where none gives any."""
        sources = self._state.fullest(device_class)[:self._options.max_source_osds]
        if self._move_off_any(sources):
            return True
        if self._interrupted or not any(osd in self._stuck for osd in sources):
            return False
        # what made an OSD stuck may have changed in ways not tracked: look again before giving up
        for osd in sources:
            self._stuck.pop(osd, None)
        return self._move_off_any(sources)

    def _move_off_any(self, sources: List[int]) -> bool:
        for source in sources:
            if not self._checkpoint(len(self.moves)):
                self._interrupted = True
                return False
            found = self._find(source, self._stuck.get(source))
            if found is not None:
                self._take(source, *found)
                return True
            self._stuck[source] = set()
        return False

    def _find(self, source: int, only: Optional[Set[int]]) -> Optional[Tuple[Pg, int, int]]:
        """The first acceptable move off an OSD: (PG, position, target)."""
        if only is not None and not only:
            return None
        state = self._state
        limit = state.utilization(source)
        targets: Dict[int, List[int]] = {}
        for pg, position in state.shards_on(source):
            group = state.group_of(pg, position)
            if id(group) not in targets:
                targets[id(group)] = self._targets(group, source, limit, only)
            for target in targets[id(group)]:
                if self._accepts(pg, position, source, target):
                    return pg, position, target
        return None

    def _targets(self, group: Group, source: int, limit: float,
                 only: Optional[Set[int]]) -> List[int]:
        if not self._state.may_lose(group, source):
            return []
        targets = self._state.emptier_targets(group, limit)
        return targets if only is None else [osd for osd in targets if osd in only]

    def _accepts(self, pg: Pg, position: int, source: int, target: int) -> bool:
        state = self._state
        if not state.fits(target, pg.shard_bytes):
            return False
        if not state.lowers_variance(source, target, pg.shard_bytes):
            return False
        if not state.legal(pg, position, target):
            return False
        if self._bytes_left is not None and pg.shard_bytes > self._bytes_left:
            self._short_of_bytes = True
            return False
        return True

    def _take(self, source: int, pg: Pg, position: int, target: int) -> None:
        state = self._state
        before = state.utilization(source), state.utilization(target)
        state.move(pg, position, target)
        self.moves.append(Move(
            pgid=pg.pgid, source=source, target=target, bytes=pg.shard_bytes, objects=pg.objects,
            source_before=before[0], source_after=state.utilization(source),
            target_before=before[1], target_after=state.utilization(target)))
        if self._bytes_left is not None:
            self._bytes_left -= pg.shard_bytes
        self._stuck.pop(source, None)
        self._stuck.pop(target, None)
        for waiting in self._stuck.values():
            waiting.add(source)

    def _out_of_moves(self) -> bool:
        limit = self._options.max_moves
        return limit is not None and len(self.moves) >= limit
