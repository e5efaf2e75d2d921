"""In which order the wanted changes are made, so that a plan is useful wherever it is cut.

Always the fullest OSD of a device class gives first, to where it is lowest afterwards, and no
target ever passes the highest utilization of its class at that moment; where changes wait for each
other and cannot all keep to that, none passes the highest at the start, and what would is left out.
Where an OSD gives what it holds beyond its share, targets may rise to the highest in the end, and
in circles by a shard more.
Classes take turns by the share of their bytes that is through. All moves of one PG go together:
they are one upmap entry.
"""
from __future__ import annotations

import heapq
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..runtime.checkpoints import Checkpoint
from .state.placement_state import PlacementState

#: Passes over the whole order: each one moves the circles that the last one met forward.
_PASSES = 4

#: A circle goes where the highest utilization is still so much above what it needs, in its shards.
_AHEAD = 3.0

#: A change that also takes from OSDs so much emptier (a ratio) waits for those that do not.
_ASIDE = 0.1

SourceTarget = Tuple[int, int]      # (source, target), OSD indices


class Change(NamedTuple):
    """What the plan does to one PG."""

    pg: int
    moves: Tuple[SourceTarget, ...]
    bytes: int                   # of one shard


class ChangeGroup(NamedTuple):
    """Changes that must not be torn apart; nearly always a single one."""

    changes: Tuple[Change, ...]


def wanted_changes(placement: PlacementState) -> List[Change]:
    """Every PG whose up set differs from where the plan started."""
    changes: List[Change] = []
    for pg in sorted(placement.moved_pgs):
        start, up = placement.initial_up[pg], placement.up[pg]
        groups = placement.groups_of_pool[placement.pool_of_pg[pg]]
        if placement.groups[groups[0]].pool.erasure:
            moves = tuple((a, b) for a, b in zip(start, up) if a != b)
        else:
            moves = tuple(pair for block in placement.block_spans(pg) for pair in zip(
                [a for a in start[block] if a not in up[block]],
                [b for b in up[block] if b not in start[block]]))
        if moves:
            changes.append(Change(pg, moves, placement.pg_bytes[pg]))
    return changes


def order_changes(placement: PlacementState, changes: Sequence[Change],
             checkpoint: Checkpoint) -> List[ChangeGroup]:
    """Sorts the changes into steps. What the checkpoint says is not heeded: it only yields."""
    circles: List[Tuple[int, ...]] = []
    best: Optional[Tuple[int, List[ChangeGroup]]] = None
    for _ in range(_PASSES):
        sorter = _Sorter(placement, changes, circles)
        steps = sorter.run(checkpoint)
        if best is None or len(sorter.lifted) < best[0]:
            best = len(sorter.lifted), steps
        if not sorter.lifted:
            break
        circles = circles + sorter.lifted
    assert best is not None
    return best[1]


class _Sorter:
    """Replays the changes from the start, one class at a time.

    `circles` are changes that wait for each other, as found before: they go while the highest
    utilization is still above what they need. `lifted` are those that came too late for that.
    """

    def __init__(self, placement: PlacementState, changes: Sequence[Change],
                 circles: Sequence[Tuple[int, ...]]) -> None:
        self._circles = list(circles)
        self.lifted: List[Tuple[int, ...]] = []
        self._size = placement.size_bytes
        self._most = placement.fill_limit_bytes
        self._used = _used_at_start(placement, changes)
        self._most_shards = placement.max_shards
        self._counts = _counts_at_start(placement, changes)
        self._class_of = [placement.snapshot.osds[osd].device_class for osd in placement.osd_ids]
        self._changes = changes
        self._pending: Set[int] = set(range(len(changes)))
        self._off: Dict[int, List[int]] = {}       # OSD → pending changes that relieve it
        for number, change in enumerate(changes):
            for source, _ in change.moves:
                self._off.setdefault(source, []).append(number)
        self._heaps: Dict[str, List[Tuple[float, int]]] = {}
        self._tops: Dict[str, List[Tuple[float, int]]] = {}
        self._waiting: Dict[int, Set[int]] = {}    # full target → sources that wait for it
        for osd in range(len(self._size)):
            self._tops.setdefault(self._class_of[osd], []).append((-self._level(osd), osd))
            if osd in self._off:
                self._heaps.setdefault(self._class_of[osd], []).append((-self._level(osd), osd))
        for heap in list(self._heaps.values()) + list(self._tops.values()):
            heapq.heapify(heap)
        #: where an OSD gives what it has beyond its share, others may have to rise for it
        self._granted = self._needed_levels(placement)
        self._first_tops = {name: max(-heap[0][0], self._granted.get(name, 0.0) + self._slack(name))
                            for name, heap in self._tops.items()}
        self._total = {name: 0 for name in self._heaps}
        self._through = {name: 0 for name in self._heaps}
        for change in changes:
            self._total[self._owner(change)] += change.bytes * len(change.moves)

    def run(self, checkpoint: Checkpoint) -> List[ChangeGroup]:
        steps: List[ChangeGroup] = []
        classes = sorted(self._heaps)
        while self._pending:
            checkpoint()
            steps += self._early()
            active = [name for name in classes if self._heaps[name]]
            if not active:
                step = self._untie()
                if step.changes:
                    steps.append(step)
                continue
            name = min(active, key=lambda c: (self._through[c] / max(1, self._total[c]), c))
            number = self._next(name)
            if number is not None:
                steps.append(self._take((number,)))
        return steps

    def _early(self) -> List[ChangeGroup]:
        """Circles whose time has come: a little later they would lift a target too high."""
        steps: List[ChangeGroup] = []
        for circle in list(self._circles):
            left = [number for number in circle if number in self._pending]
            above = self._above(left, self._top)
            if not left:
                self._circles.remove(circle)
            elif 0.0 <= above <= _AHEAD * max(self._shard(number) for number in left) and (
                    not self._overfills(left)):
                self._circles.remove(circle)
                steps.append(self._take(left))
        return steps

    def _above(self, numbers: Sequence[int], top: Callable[[str], float]) -> float:
        """How far the highest utilization is above all targets, if the changes go in turn."""
        used: Dict[int, int] = {}
        least = 1.0
        for number in numbers:
            change = self._changes[number]
            for source, target in change.moves:
                used[source] = used.get(source, self._used[source]) - change.bytes
                used[target] = used.get(target, self._used[target]) + change.bytes
            for _, target in change.moves:
                least = min(least, top(self._class_of[target])
                            - used[target] / self._size[target])
        return least

    def _shard(self, number: int) -> float:
        """What a change adds to the utilization of its targets."""
        change = self._changes[number]
        return max(change.bytes / self._size[target] for _, target in change.moves)

    def _owner(self, change: Change) -> str:
        return self._class_of[change.moves[0][0]]

    def _level(self, osd: int) -> float:
        return self._used[osd] / self._size[osd]

    def _top(self, name: str) -> float:
        """The highest utilization of a class at this moment."""
        heap = self._tops[name]
        while -heap[0][0] != self._level(heap[0][1]):
            heapq.heapreplace(heap, (-self._level(heap[0][1]), heap[0][1]))
        return max(-heap[0][0], self._granted.get(name, 0.0))

    def _needed_levels(self, placement: PlacementState) -> Dict[str, float]:
        """Device class → the highest utilization in the end, where an OSD is beyond its share."""
        beyond = {self._class_of[i] for i, most in placement.share_limit_bytes.items() if self._used[i] > most}
        needed: Dict[str, float] = {}
        for osd, name in enumerate(self._class_of):
            if name in beyond:
                needed[name] = max(needed.get(name, 0.0), placement.used_bytes[osd] / self._size[osd])
        return needed

    def _slack(self, name: str) -> float:
        """What a shard on its way through may lift an OSD by where all are as full as can be."""
        return max((self._shard(number) for number, change in enumerate(self._changes)
                    if name in self._granted and self._owner(change) == name), default=0.0)

    def _next(self, name: str) -> Optional[int]:
        """The next change of a class, or None where its fullest OSD has to wait."""
        heap = self._heaps[name]
        level, osd = heapq.heappop(heap)
        mine = [n for n in self._off.get(osd, ()) if n in self._pending]
        self._off[osd] = mine
        if not mine:
            return None
        if -level != self._level(osd):
            heapq.heappush(heap, (-self._level(osd), osd))
            return None
        best: Optional[Tuple[int, float, int, int]] = None
        for number in mine:
            lowest = self._lands(number)
            if lowest is not None:
                key = (int(self._aside(number, osd) / _ASIDE), lowest,
                       -self._changes[number].bytes, number)
                best = key if best is None or key < best else best
        if best is None:
            for number in mine:
                for _, target in self._changes[number].moves:
                    self._waiting.setdefault(target, set()).add(osd)
            return None
        return best[3]

    def _lands(self, number: int) -> Optional[float]:
        """The highest utilization of the change's targets after it; None where one may not."""
        change = self._changes[number]
        highest = 0.0
        for _, target in change.moves:
            used = self._used[target] + change.bytes
            level = used / self._size[target]
            if self._crowds(target, 1):
                return None
            if used > self._most[target] or level > self._top(self._class_of[target]) + 1e-12:
                return None
            highest = max(highest, level)
        return highest

    def _aside(self, number: int, osd: int) -> float:
        """How far below the OSD the change's other sources stand, summed up: bytes that relieve
        nothing full yet."""
        level = self._level(osd)
        return sum(max(0.0, level - self._level(source))
                   for source, _ in self._changes[number].moves)

    def _take(self, numbers: Iterable[int]) -> ChangeGroup:
        taken: List[Change] = []
        for number in numbers:
            change = self._changes[number]
            self._pending.discard(number)
            taken.append(change)
            self._through[self._owner(change)] += change.bytes * len(change.moves)
            for source, target in change.moves:
                self._used[source] -= change.bytes
                self._used[target] += change.bytes
                self._counts[source] -= 1
                self._counts[target] += 1
                for osd in (source, target):
                    heapq.heappush(self._tops[self._class_of[osd]], (-self._level(osd), osd))
                    if self._off.get(osd):
                        heapq.heappush(self._heaps[self._class_of[osd]],
                                       (-self._level(osd), osd))
                for waiting in self._waiting.pop(source, ()):
                    heapq.heappush(self._heaps[self._class_of[waiting]],
                                   (-self._level(waiting), waiting))
        return ChangeGroup(tuple(taken))

    def _untie(self) -> ChangeGroup:
        """Changes that wait for each other in a circle go together: first what makes room."""
        first = min(self._pending, key=lambda n: (
            max((self._used[t] + self._changes[n].bytes) / self._size[t]
                for _, t in self._changes[n].moves), n))
        together = [first]
        queue = [first]
        while queue:
            change = self._changes[queue.pop()]
            for _, target in change.moves:
                coming = sum(self._changes[n].bytes for n in together
                             for _, t in self._changes[n].moves if t == target)
                going = sum(self._changes[n].bytes for n in together
                            for s, _ in self._changes[n].moves if s == target)
                for number in self._off.get(target, ()):
                    if (self._used[target] + coming - going) / self._size[target] <= self._top(
                            self._class_of[target]) + 1e-12:
                        break
                    if number in self._pending and number not in together:
                        together.append(number)
                        queue.append(number)
                        going += self._changes[number].bytes
        together.reverse()
        overfills = self._overfills(together)
        if not overfills and self._above(together, self._top) < -1e-12:
            self.lifted.append(tuple(together))
        if overfills or self._above(together, self._first_tops.__getitem__) < -1e-12:
            self._pending.difference_update(together)  # rather not at all
            return ChangeGroup(())
        return self._take(together)

    def _overfills(self, numbers: Sequence[int]) -> bool:
        """Whether a target would pass its fill limit on the way, whatever goes first."""
        coming: Dict[int, int] = {}
        shards: Dict[int, int] = {}
        for number in numbers:
            for _, target in self._changes[number].moves:
                coming[target] = coming.get(target, 0) + self._changes[number].bytes
                shards[target] = shards.get(target, 0) + 1
        return any(self._used[osd] + more > self._most[osd] or self._crowds(osd, shards[osd])
                   for osd, more in coming.items())

    def _crowds(self, osd: int, more: int) -> bool:
        """Would so many PG shards more be more than an OSD may have?"""
        return self._most_shards is not None and self._counts[osd] + more > self._most_shards[osd]


def _used_at_start(placement: PlacementState, changes: Sequence[Change]) -> List[int]:
    used = list(placement.used_bytes)
    for change in changes:
        for source, target in change.moves:
            used[source] += change.bytes
            used[target] -= change.bytes
    return used


def _counts_at_start(placement: PlacementState, changes: Sequence[Change]) -> List[int]:
    counts = list(placement.shard_counts)
    for change in changes:
        for source, target in change.moves:
            counts[source] += 1
            counts[target] -= 1
    return counts
