"""The order in which the wanted changes are made, so that a plan is useful wherever it is cut.

The fullest OSD of a device class in its OSD set always gives first, to where the target's
utilization is lowest afterwards, and no target ever passes the highest utilization of its class
there at that moment. Changes that wait for each other in a cycle cannot all keep that: then none
passes the highest utilization at the start, and changes that would are left out. Where an OSD gives
what it holds beyond its share, targets may rise to the highest utilization in the end, and in
cycles by a shard more. What leaves an OSD that is being drained goes before all of this, up to the
fill limits.

Classes take turns by the part of their bytes that has been moved. All moves of one PG go together:
they are one upmap entry.

The changes of a placement: for each PG the moves of its shards since planning began.
"""
from __future__ import annotations

import heapq
from typing import (
    Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple)

from ..runtime.time_slice import give_way, piecewise, sorted_piecewise
from .state.placement_state import PlacementState

#: Before it gives way again, a few milliseconds.
_CHANGES_A_PIECE = 500
_SORTED_AT_ONCE = 10_000


class Change(NamedTuple):
    """The moves of one PG's shards."""

    pg: int
    moves: Tuple[Tuple[int, int], ...]   # (source, target), OSD indices
    bytes: int                   # of one shard


#: Changes that must go together; nearly always a single one.
ChangeGroup = Tuple[Change, ...]


def wanted_changes(placement: PlacementState) -> List[Change]:
    """Returns a change for every PG whose up set differs from the initial one."""
    changes: List[Change] = []
    moved = sorted_piecewise(placement.moved_pgs, _SORTED_AT_ONCE)
    for pg in piecewise(moved, _CHANGES_A_PIECE):
        initial, up = placement.initial_up[pg], placement.up[pg]
        pool = placement.snapshot.pools[placement.pool_of_pg[pg]]
        assert pool.rule is not None
        if pool.erasure:
            moves = tuple((a, b) for a, b in zip(initial, up) if a != b)
        else:
            moves = tuple(pair for block in pool.rule.blocks for pair in zip(
                [a for a in block.members(initial) if a not in block.members(up)],
                [b for b in block.members(up) if b not in block.members(initial)]))
        if moves:
            changes.append(Change(pg, moves, placement.pg_bytes[pg]))
    return changes


def apply(placement: PlacementState, changes: Iterable[Change]) -> None:
    """Makes the moves of changes."""
    for change in changes:
        for source, target in change.moves:
            placement.move(change.pg, source, target)


def take_back(placement: PlacementState, changes: Sequence[Change]) -> None:
    """Takes the moves of changes back, the last ones first."""
    for change in reversed(changes):
        for source, target in reversed(change.moves):
            placement.move(change.pg, target, source)


def draining(placement: PlacementState, changes: Sequence[Change]) -> FrozenSet[int]:
    """Numbers of the changes that take a shard off an OSD that is being drained."""
    drained = [placement.snapshot.osds[osd].drained for osd in placement.osd_ids]
    if not any(drained):
        return frozenset()
    return frozenset(number for number, change in enumerate(changes)
                     if any(drained[source] for source, _ in change.moves))


#: Passes over the whole order: each moves the cycles forward that the one before came to too late.
_PASSES = 4

#: A cycle goes while the highest utilization is at most so far above what it needs, in its shards.
_AHEAD_SHARDS = 3.0

#: A change that also takes from OSDs so much emptier (a ratio) waits for those that do not.
_EMPTIER_STEP = 0.1

_ROUNDING = 1e-12


def order_changes(placement: PlacementState, changes: Sequence[Change]) -> List[ChangeGroup]:
    """Sorts the changes into groups. Does not end early: the order is not cut."""
    cycles: List[Tuple[int, ...]] = []
    best: Optional[Tuple[int, List[ChangeGroup]]] = None
    for _ in range(_PASSES):
        sorter = _Sorter(placement, changes, cycles)
        groups = sorter.run()
        if best is None or len(sorter.late_cycles) < best[0]:
            best = len(sorter.late_cycles), groups
        if not sorter.late_cycles:
            break
        cycles = cycles + sorter.late_cycles
    assert best is not None
    return best[1]


class _Sorter:
    """Replays the changes from the initial placement, one class at a time.

    Changes are meant by their number. `cycles` are changes that wait for each other, as found in
    earlier passes: they go while the highest utilization is still above what they need.
    `late_cycles` are those for which it was not.
    """

    def __init__(self, placement: PlacementState, changes: Sequence[Change],
                 cycles: Sequence[Tuple[int, ...]]) -> None:
        self._cycles = list(cycles)
        self.late_cycles: List[Tuple[int, ...]] = []
        self._size = placement.size_bytes
        self._fill_limit = placement.fill_limit_bytes
        #: per OSD: used bytes and PG shards, at first those before the changes
        self._used = list(placement.used_bytes)
        self._max_shards = placement.max_shards
        self._shard_counts = list(placement.shard_counts)
        snapshot = placement.snapshot
        #: OSD → its set and device class: one class may be in several sets that limit nothing of
        #: each other, and one set have several
        self._class_of = [f"{snapshot.set_of(osd)} {snapshot.osds[osd].device_class}"
                          for osd in placement.osd_ids]
        self._changes = changes
        #: changes that take a shard off an OSD that is being drained, and those that help them
        self._draining = draining(placement, changes)
        self._waiting: Set[int] = set(range(len(changes)))
        self._giving: Dict[int, List[int]] = {}       # OSD → changes that take a shard off it
        for number, change in enumerate(piecewise(changes, _CHANGES_A_PIECE)):
            for source, target in change.moves:
                self._giving.setdefault(source, []).append(number)
                self._used[source] += change.bytes
                self._used[target] -= change.bytes
                self._shard_counts[source] += 1
                self._shard_counts[target] -= 1
        #: class → heap of (-utilization, OSD): of sources whose turn may have come, and of all
        self._sources: Dict[str, List[Tuple[float, int]]] = {}
        self._osds: Dict[str, List[Tuple[float, int]]] = {}
        self._blocked_by: Dict[int, Set[int]] = {}    # full target → sources that wait for it
        for osd in piecewise(range(len(self._size)), _CHANGES_A_PIECE):
            entry = (-self._utilization(osd), osd)
            self._osds.setdefault(self._class_of[osd], []).append(entry)
            if osd in self._giving:
                self._sources.setdefault(self._class_of[osd], []).append(entry)
        for heap in [*self._sources.values(), *self._osds.values()]:
            heapq.heapify(heap)
            give_way()
        self._groups_made = 0
        #: OSD → groups that had been made when all that it gives was found to have to wait
        self._found_waiting: Dict[int, int] = {}
        beyond = {self._class_of[i] for i, limit in placement.share_limit_bytes.items()
                  if self._used[i] > limit}
        self._initial_highest = {name: -heap[0][0] for name, heap in self._osds.items()}
        highest = dict.fromkeys(self._osds, 0.0)
        for osd, name in enumerate(self._class_of):
            highest[name] = max(highest[name], placement.utilization(osd))
        helps = any(final < self._initial_highest[name] for name, final in highest.items())
        #: class → utilization that targets may rise to: where it ends fuller for another class that
        #: ends emptier, or an OSD gives what is beyond its share
        self._final_highest = {name: final for name, final in highest.items() if name in beyond
                               or helps and final > self._initial_highest[name]}
        for name, final in self._final_highest.items():
            step = max((self._utilization_step(number) for number, change in enumerate(changes)
                        if self._class_of_change(change) == name), default=0.0)
            self._initial_highest[name] = max(self._initial_highest[name], final + step)
        self._total_bytes = dict.fromkeys(self._sources, 0)
        self._moved_bytes = dict.fromkeys(self._sources, 0)
        for change in piecewise(changes, _CHANGES_A_PIECE):
            self._total_bytes[self._class_of_change(change)] += change.bytes * len(change.moves)

    def run(self) -> List[ChangeGroup]:
        groups = self._evacuation()
        classes = sorted(self._sources)
        while self._waiting:
            give_way()
            groups += self._due_cycles()
            active = [name for name in classes if self._sources[name]]
            if not active:
                group = self._resolve_cycle()
                if group:
                    groups.append(group)
                continue
            name = min(active, key=lambda c: (
                self._moved_bytes[c] / max(1, self._total_bytes[c]), c))
            number = self._next_change(name)
            if number is not None:
                groups.append(self._make((number,)))
        return groups

    # -- figures -------------------------------------------------------------------------------

    def _utilization(self, osd: int) -> float:
        return self._used[osd] / self._size[osd]

    def _highest(self, name: str) -> float:
        """The highest utilization of a class at this moment."""
        heap = self._osds[name]
        highest, osd = heap[0]
        while -highest != self._used[osd] / self._size[osd]:
            heapq.heappop(heap)   # there is a later entry of it
            highest, osd = heap[0]
        return max(-highest, self._final_highest.get(name, 0.0))

    def _utilization_step(self, number: int) -> float:
        """The most that a change adds to the utilization of a target."""
        change = self._changes[number]
        return max(change.bytes / self._size[target] for _, target in change.moves)

    def _class_of_change(self, change: Change) -> str:
        return self._class_of[change.moves[0][0]]

    # -- evacuation ----------------------------------------------------------------------------

    def _evacuation(self) -> List[ChangeGroup]:
        """Makes what drains OSDs and fits now, that first whose targets end lowest; and what takes
        shards off OSDs which are too full for the rest of that."""
        groups: List[ChangeGroup] = []
        due = self._draining
        while due:
            heap: List[Tuple[float, int]] = []
            for number in piecewise(due & self._waiting, _CHANGES_A_PIECE):
                reached = self._target_utilization(number)
                if reached is not None:
                    heap.append((reached, number))
            heapq.heapify(heap)
            while heap:
                give_way()
                known, number = heapq.heappop(heap)
                reached = self._target_utilization(number)
                if reached is not None and reached > known:
                    heapq.heappush(heap, (reached, number))
                elif reached is not None:
                    groups.append(self._make((number,)))
            blocked = self._draining & self._waiting
            making_room = {number for draining in piecewise(blocked, _CHANGES_A_PIECE)
                           for _, target in self._changes[draining].moves
                           for number in self._giving.get(target, ()) if number in self._waiting}
            due = blocked | making_room if making_room - self._draining else frozenset()
            self._draining |= due
        return groups

    # -- single changes ------------------------------------------------------------------------

    def _next_change(self, name: str) -> Optional[int]:
        """The next change of a class, or None where all of its OSDs have to wait."""
        heap = self._sources[name]
        while heap:
            give_way()
            key, osd = heapq.heappop(heap)
            if self._found_waiting.get(osd) == self._groups_made:
                continue
            own = [n for n in self._giving.get(osd, ()) if n in self._waiting]
            self._giving[osd] = own
            if not own:
                continue
            if -key != self._utilization(osd):
                heapq.heappush(heap, (-self._utilization(osd), osd))
                continue
            utilization = self._utilization(osd)
            best: Optional[Tuple[int, float, int, int]] = None
            for number in own:
                reached = self._target_utilization(number)
                if reached is not None:
                    # bytes that relieve no full OSD: what the change takes off emptier ones
                    moves = self._changes[number].moves
                    below = sum(max(0.0, utilization - self._utilization(source))
                                for source, _ in moves) if len(moves) > 1 else 0.0
                    order = (int(below / _EMPTIER_STEP), reached, -self._changes[number].bytes,
                             number)
                    best = order if best is None or order < best else best
            if best is not None:
                return best[3]
            self._found_waiting[osd] = self._groups_made
            for number in own:
                for _, target in self._changes[number].moves:
                    self._blocked_by.setdefault(target, set()).add(osd)
        return None

    def _target_utilization(self, number: int) -> Optional[float]:
        """The highest utilization of the change's targets after it; None where one may not take it
        now."""
        change, class_of = self._changes[number], self._class_of
        highest = 0.0
        for _, target in change.moves:
            used = self._used[target] + change.bytes
            utilization = used / self._size[target]
            if used > self._fill_limit[target] or (
                    self._shard_counts[target] + 1 > self._max_shards):
                return None
            if number not in self._draining and (
                    utilization > self._highest(class_of[target]) + _ROUNDING):
                return None
            if utilization > highest:
                highest = utilization
        return highest

    def _make(self, numbers: Iterable[int]) -> ChangeGroup:
        """Makes changes together; OSDs that waited for their sources get another turn."""
        made: List[Change] = []
        self._groups_made += 1
        for number in numbers:
            change = self._changes[number]
            self._waiting.discard(number)
            made.append(change)
            self._moved_bytes[self._class_of_change(change)] += change.bytes * len(change.moves)
            for source, target in change.moves:
                self._used[source] -= change.bytes
                self._used[target] += change.bytes
                self._shard_counts[source] -= 1
                self._shard_counts[target] += 1
                for osd in (source, target):
                    entry = (-self._utilization(osd), osd)
                    heapq.heappush(self._osds[self._class_of[osd]], entry)
                    if self._giving.get(osd):
                        heapq.heappush(self._sources[self._class_of[osd]], entry)
                for blocked in self._blocked_by.pop(source, ()):
                    heapq.heappush(self._sources[self._class_of[blocked]],
                                   (-self._utilization(blocked), blocked))
        return tuple(made)

    # -- cycles --------------------------------------------------------------------------------

    def _due_cycles(self) -> List[ChangeGroup]:
        """Makes the known cycles that fit now and soon would exceed the highest utilization."""
        groups: List[ChangeGroup] = []
        for cycle in list(self._cycles):
            left = [number for number in cycle if number in self._waiting]
            headroom = self._headroom(left, self._highest)
            if not left:
                self._cycles.remove(cycle)
            elif 0.0 <= headroom <= _AHEAD_SHARDS * max(
                    self._utilization_step(number) for number in left) and (
                    not self._exceeds_limits(left)):
                self._cycles.remove(cycle)
                groups.append(self._make(left))
        return groups

    def _headroom(self, numbers: Sequence[int], limit: Callable[[str], float]) -> float:
        """The least distance of a target below its class's `limit` if the changes go in turn;
        negative where one passes it (a ratio)."""
        used: Dict[int, int] = {}
        least = 1.0
        for number in numbers:
            change = self._changes[number]
            for source, target in change.moves:
                used[source] = used.get(source, self._used[source]) - change.bytes
                used[target] = used.get(target, self._used[target]) + change.bytes
            for _, target in change.moves if number not in self._draining else ():
                least = min(least, limit(self._class_of[target])
                            - used[target] / self._size[target])
        return least

    def _resolve_cycle(self) -> ChangeGroup:
        """Makes changes together that wait for each other, those first that free space for others.
        Returns an empty group where they would pass a limit; they are left out of the plan then."""
        together = self._cycle()
        exceeds = self._exceeds_limits(together)
        if not exceeds and self._headroom(together, self._highest) < -_ROUNDING:
            self.late_cycles.append(tuple(together))
        if exceeds or self._headroom(together, self._initial_highest.__getitem__) < -_ROUNDING:
            self._waiting.difference_update(together)
            return ()
        return self._make(together)

    def _cycle(self) -> List[int]:
        """Numbers of a cycle: changes that free space, then the change that needs it, which is the
        one whose targets end lowest."""
        waiting = piecewise(self._waiting, _CHANGES_A_PIECE)
        first = min(waiting, key=lambda n: (
            max((self._used[t] + self._changes[n].bytes) / self._size[t]
                for _, t in self._changes[n].moves), n))
        together = [first]
        queue = [first]
        while queue:
            change = self._changes[queue.pop()]
            for _, target in change.moves:
                coming = sum(self._changes[n].bytes for n in together
                             for _, t in self._changes[n].moves if t == target)
                leaving = sum(self._changes[n].bytes for n in together
                              for s, _ in self._changes[n].moves if s == target)
                for number in self._giving.get(target, ()):
                    if (self._used[target] + coming - leaving) / self._size[target] <= (
                            self._highest(self._class_of[target]) + _ROUNDING):
                        break
                    if number in self._waiting and number not in together:
                        together.append(number)
                        queue.append(number)
                        leaving += self._changes[number].bytes
        together.reverse()
        return together

    def _exceeds_limits(self, numbers: Sequence[int]) -> bool:
        """True if a target would pass its fill limit or its PG shards on the way, in any order."""
        coming: Dict[int, int] = {}
        shards: Dict[int, int] = {}
        for number in numbers:
            for _, target in self._changes[number].moves:
                coming[target] = coming.get(target, 0) + self._changes[number].bytes
                shards[target] = shards.get(target, 0) + 1
        return any(self._used[osd] + more > self._fill_limit[osd]
                   or self._shard_counts[osd] + shards[osd] > self._max_shards
                   for osd, more in coming.items())
