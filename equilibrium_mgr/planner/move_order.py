"""The order in which the wanted changes are made, so that a plan is useful even if it is cut short.

Of a device class in its OSD set, the fullest OSD that can give goes first, to the target with the
lowest utilization afterwards. No target passes the highest utilization of its class at that moment.
Changes that wait for each other in a cycle cannot all keep that: none of them passes the highest
utilization at the start, and changes that would are left out. If an OSD gives the bytes above its
share, or a class fills so that another one can empty, targets may rise to the highest utilization
in the end, and in cycles by one shard more.
Shards that leave an OSD that is being drained go before all this, up to the fill limits.

Classes take turns by the part of their bytes that has moved. All moves of one PG go together,
because they are one upmap entry.

The changes of a placement: for each PG the moves of its shards since planning began.
"""
from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import (
    Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple)

from ..runtime.time_slice import give_way, piecewise, sorted_piecewise
from ..snapshot.model import shard_changes
from .state.placement_state import PlacementState

#: Between two yields: a few milliseconds.
_CHANGES_A_PIECE = 500
_SORTED_AT_ONCE = 10_000


class Change(NamedTuple):
    """The moves of one PG's shards."""

    pg: int
    moves: Tuple[Tuple[int, int], ...]   # (source, target), OSD indices
    bytes: int                   # of the PG's mean shard


#: Changes that must go together; nearly always a single change.
ChangeGroup = Tuple[Change, ...]


def wanted_changes(placement: PlacementState) -> List[Change]:
    """Returns a change for every PG whose up set differs from the initial one."""
    changes: List[Change] = []
    moved = sorted_piecewise(placement.moved_pgs, _SORTED_AT_ONCE)
    for pg in piecewise(moved, _CHANGES_A_PIECE):
        initial = placement.initial_up[pg]
        up = placement.up[pg]
        pool = placement.snapshot.pools[placement.pool_of_pg[pg]]
        moves: List[Tuple[int, int]] = []
        for block in pool.blocks:
            gains, losses = shard_changes(
                block.members(initial), block.members(up), pool.erasure)
            moves += zip(losses, gains)
        if moves:
            changes.append(Change(pg, tuple(moves), placement.pg_bytes[pg]))
    return changes


def apply(placement: PlacementState, changes: Iterable[Change]) -> None:
    """Makes the moves of the changes."""
    for change in changes:
        for source, target in change.moves:
            placement.move(change.pg, source, target)


def take_back(placement: PlacementState, changes: Sequence[Change]) -> None:
    """Reverts the moves of the changes, the last ones first."""
    for change in reversed(changes):
        for source, target in reversed(change.moves):
            placement.move(change.pg, target, source)


def draining(placement: PlacementState, changes: Sequence[Change]) -> FrozenSet[int]:
    """Returns the numbers of the changes that take a shard off an OSD that is being drained."""
    drained = placement.snapshot.drained_osds
    osds = placement.osd_ids
    return frozenset([number for number, change in enumerate(changes)
                      if any(osds[source] in drained for source, _ in change.moves)])


#: Passes over the whole order. Each pass moves the cycles forward that came too late in the last.
_PASSES = 4

#: A cycle goes while the highest utilization is at most so many of its shards above its need.
_AHEAD_SHARDS = 3.0

#: A change that also takes from OSDs so much emptier (a ratio) waits for changes that do not.
_EMPTIER_STEP = 0.1

_ROUNDING = 1e-12


def order_changes(placement: PlacementState, changes: Sequence[Change]) -> List[ChangeGroup]:
    """Sorts the changes into groups, without those that no order allows. Does not end early."""
    cycles: List[Tuple[int, ...]] = []
    best: Optional[Tuple[int, List[ChangeGroup]]] = None
    for _ in range(_PASSES):
        sorter = _Sorter(placement, changes, cycles)
        groups = sorter.run()
        late = sorter.late_cycles
        if best is None or len(late) < best[0]:
            best = len(late), groups
        if not late:
            break
        cycles = cycles + late
    assert best is not None
    return best[1]


class _Sorter:
    """Replays the changes from the initial placement; the classes take turns.

    Changes go by their number. `cycles`: changes that wait for each other, found in earlier passes:
    they go while the highest utilization is still above their need. `late_cycles`: cycles that came
    when it was too low.
    """

    def __init__(self, placement: PlacementState, changes: Sequence[Change],
                 cycles: Sequence[Tuple[int, ...]]) -> None:
        self._cycles = list(cycles)
        self.late_cycles: List[Tuple[int, ...]] = []
        self._size = placement.size_bytes
        self._fill_limit = placement.fill_limit_bytes
        #: used bytes and PG shards per OSD, at first those before the changes
        self._used = list(placement.used_bytes)
        self._max_shards = placement.max_shards
        self._shard_counts = list(placement.shard_counts)
        self._class_of = [placement.class_of(i) for i in range(len(placement.osd_ids))]
        self._changes = changes
        #: changes that take a shard off an OSD that is being drained, and changes that help them
        self._draining = draining(placement, changes)
        self._waiting: Set[int] = set(range(len(changes)))
        #: OSD → changes that take a shard off it
        self._giving: Dict[int, List[int]] = defaultdict(list)
        for number, change in enumerate(piecewise(changes, _CHANGES_A_PIECE)):
            for source, target in change.moves:
                self._giving[source].append(number)
                self._used[source] += change.bytes
                self._used[target] -= change.bytes
                self._shard_counts[source] += 1
                self._shard_counts[target] -= 1
        #: class → heap of (-utilization, OSD): of sources that may give now, and of all OSDs
        self._sources: Dict[str, List[Tuple[float, int]]] = defaultdict(list)
        self._osds: Dict[str, List[Tuple[float, int]]] = defaultdict(list)
        #: full target → sources that wait for it
        self._blocked_by: Dict[int, Set[int]] = defaultdict(set)
        self._fill_heaps()
        self._groups_made = 0
        #: OSD → number of groups made when all changes of the OSD had to wait
        self._found_waiting: Dict[int, int] = {}
        self._initial_highest = {name: -heap[0][0] for name, heap in self._osds.items()}
        #: class that may end fuller → its highest utilization in the end
        self._final_highest = self._raised_classes(placement)
        steps = dict.fromkeys(self._final_highest, 0.0)
        self._total_bytes = dict.fromkeys(self._sources, 0)
        self._moved_bytes = dict(self._total_bytes)   # none
        for number, change in enumerate(piecewise(changes, _CHANGES_A_PIECE)):
            name = self._class_of_change(change)
            self._total_bytes[name] += change.bytes * len(change.moves)
            if name in steps:
                steps[name] = max(steps[name], self._utilization_step(number))
        for name, final in self._final_highest.items():
            self._initial_highest[name] = max(self._initial_highest[name], final + steps[name])

    def _fill_heaps(self) -> None:
        """Fills the heaps of OSDs."""
        for osd in piecewise(range(len(self._size)), _CHANGES_A_PIECE):
            entry = (-self._utilization(osd), osd)
            name = self._class_of[osd]
            self._osds[name].append(entry)
            if osd in self._giving:
                self._sources[name].append(entry)
        for heap in [*self._sources.values(), *self._osds.values()]:
            heapq.heapify(heap)
            give_way()

    def _raised_classes(self, placement: PlacementState) -> Dict[str, float]:
        """Returns class → its highest utilization in the end, of the classes that may end fuller:
        another class ends emptier for it, or an OSD gives the bytes above its share."""
        giving = {self._class_of[i] for i, limit in placement.share_limit_bytes.items()
                  if self._used[i] > limit}
        highest = dict.fromkeys(self._osds, 0.0)
        for osd, name in enumerate(self._class_of):
            highest[name] = max(highest[name], placement.utilization(osd))
        initial = self._initial_highest
        helps = any([final < initial[name] for name, final in highest.items()])
        raised: Dict[str, float] = {}
        for name, final in highest.items():
            if name in giving or helps and final > initial[name]:
                raised[name] = final
        return raised

    def run(self) -> List[ChangeGroup]:
        """Returns the groups in order."""
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
            number = self._next_change(min(active, key=self._turn))
            if number is not None:
                groups.append(self._make((number,)))
        return groups

    def _turn(self, name: str) -> Tuple[float, str]:
        """Returns the part of the class's bytes that has moved, and its name."""
        return self._moved_bytes[name] / max(1, self._total_bytes[name]), name

    # -- figures -------------------------------------------------------------------------------

    def _utilization(self, osd: int) -> float:
        return self._used[osd] / self._size[osd]

    def _highest(self, name: str) -> float:
        """Returns the highest utilization of a class at this moment."""
        heap = self._osds[name]
        highest, osd = heap[0]
        while -highest != self._utilization(osd):
            heapq.heappop(heap)   # the OSD has a later entry
            highest, osd = heap[0]
        return max(-highest, self._final_highest.get(name, 0.0))

    def _utilization_step(self, number: int) -> float:
        """Returns the most that a change adds to the utilization of a target."""
        change = self._changes[number]
        return max([change.bytes / self._size[target] for _, target in change.moves])

    def _class_of_change(self, change: Change) -> str:
        return self._class_of[change.moves[0][0]]

    # -- evacuation ----------------------------------------------------------------------------

    def _evacuation(self) -> List[ChangeGroup]:
        """Makes the changes that drain OSDs and fit now, first those whose targets end lowest.

        If some do not fit, also makes changes that take shards off their targets, and tries again.
        """
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
                if reached is None:
                    continue
                if reached > known:
                    heapq.heappush(heap, (reached, number))
                else:
                    groups.append(self._make((number,)))
            blocked = self._draining & self._waiting
            making_room = self._making_room(blocked)
            due = frozenset()
            if making_room - self._draining:
                due = blocked | making_room
                self._draining |= due
        return groups

    def _making_room(self, blocked: FrozenSet[int]) -> Set[int]:
        """Returns the waiting changes that take shards off the targets of the blocked ones."""
        found: Set[int] = set()
        for draining_change in piecewise(blocked, _CHANGES_A_PIECE):
            for _, target in self._changes[draining_change].moves:
                found.update(self._giving.get(target, ()))
        return found & self._waiting

    # -- single changes ------------------------------------------------------------------------

    def _next_change(self, name: str) -> Optional[int]:
        """Returns the next change of a class, or None if all of its OSDs have to wait."""
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
            utilization = self._utilization(osd)
            if -key != utilization:
                heapq.heappush(heap, (-utilization, osd))
                continue
            best = self._best_of(own, utilization)
            if best is not None:
                return best
            self._found_waiting[osd] = self._groups_made
            for number in own:
                for _, target in self._changes[number].moves:
                    self._blocked_by[target].add(osd)
        return None

    def _best_of(self, numbers: Sequence[int], utilization: float) -> Optional[int]:
        """Returns the best of an OSD's changes that may be made now, or None. `numbers`: its
        changes. `utilization`: of the OSD."""
        best: Optional[Tuple[int, float, int, int]] = None
        for number in numbers:
            reached = self._target_utilization(number)
            if reached is None:
                continue
            change = self._changes[number]
            # the change also takes from OSDs so much emptier: that relieves no full OSD
            below = 0.0
            if len(change.moves) > 1:
                below = sum([max(0.0, utilization - self._utilization(source))
                             for source, _ in change.moves])
            order = (int(below / _EMPTIER_STEP), reached, -change.bytes, number)
            if best is None or order < best:
                best = order
        return None if best is None else best[3]

    def _target_utilization(self, number: int) -> Optional[float]:
        """Returns the highest utilization of the change's targets after it; None if a target may
        not take it now."""
        change = self._changes[number]
        class_of = self._class_of
        highest = 0.0
        for _, target in change.moves:
            used = self._used[target] + change.bytes
            utilization = used / self._size[target]
            if used > self._fill_limit[target]:
                return None
            if self._shard_counts[target] + 1 > self._max_shards:
                return None
            if number not in self._draining:
                if utilization > self._highest(class_of[target]) + _ROUNDING:
                    return None
            if utilization > highest:
                highest = utilization
        return highest

    def _make(self, numbers: Iterable[int]) -> ChangeGroup:
        """Makes changes together. OSDs get another turn if their shards waited for space on a
        source of these changes."""
        made: List[Change] = []
        self._groups_made += 1
        for number in numbers:
            change = self._changes[number]
            size = change.bytes
            moves = change.moves
            self._waiting.discard(number)
            made.append(change)
            self._moved_bytes[self._class_of_change(change)] += size * len(moves)
            for source, target in moves:
                self._used[source] -= size
                self._used[target] += size
                self._shard_counts[source] -= 1
                self._shard_counts[target] += 1
                for osd in (source, target):
                    entry = (-self._utilization(osd), osd)
                    name = self._class_of[osd]
                    heapq.heappush(self._osds[name], entry)
                    if self._giving.get(osd):
                        heapq.heappush(self._sources[name], entry)
                for blocked in self._blocked_by.pop(source, ()):
                    heapq.heappush(self._sources[self._class_of[blocked]],
                                   (-self._utilization(blocked), blocked))
        return tuple(made)

    # -- cycles --------------------------------------------------------------------------------

    def _due_cycles(self) -> List[ChangeGroup]:
        """Makes the known cycles that fit now and would soon exceed the highest utilization."""
        groups: List[ChangeGroup] = []
        for cycle in list(self._cycles):
            left = [number for number in cycle if number in self._waiting]
            if left and not self._is_due(left):
                continue
            self._cycles.remove(cycle)
            if left:
                groups.append(self._make(left))
        return groups

    def _is_due(self, cycle: Sequence[int]) -> bool:
        """Returns True if a cycle fits now and would soon exceed the highest utilization."""
        headroom = self._headroom(cycle, self._highest)
        ahead = _AHEAD_SHARDS * max([self._utilization_step(number) for number in cycle])
        return 0.0 <= headroom <= ahead and not self._exceeds_limits(cycle)

    def _headroom(self, numbers: Sequence[int], limit: Callable[[str], float]) -> float:
        """Returns the least distance of a target below the `limit` of its class, a ratio, if the
        changes go in turn; negative if a target passes the limit."""
        more: Counter[int] = Counter()   # bytes
        least = 1.0
        for number in numbers:
            change = self._changes[number]
            for source, target in change.moves:
                more[source] -= change.bytes
                more[target] += change.bytes
            if number in self._draining:
                continue
            for _, target in change.moves:
                most = limit(self._class_of[target])
                used = self._used[target] + more[target]
                least = min(least, most - used / self._size[target])
        return least

    def _resolve_cycle(self) -> ChangeGroup:
        """Makes changes together that wait for each other, first those that free space for others.
        If they would pass a limit, leaves them out of the plan and returns an empty group."""
        together = self._cycle()
        exceeds = self._exceeds_limits(together)
        if not exceeds and self._headroom(together, self._highest) < -_ROUNDING:
            self.late_cycles.append(tuple(together))
        if exceeds or self._headroom(together, self._initial_highest.__getitem__) < -_ROUNDING:
            self._waiting.difference_update(together)
            return ()
        return self._make(together)

    def _cycle(self) -> List[int]:
        """Returns a cycle: changes that free space, then the change that needs it. That is the
        change whose targets end lowest."""
        first = min(piecewise(self._waiting, _CHANGES_A_PIECE),
                    key=lambda n: (self._highest_reached(n), n))
        together = [first]
        queue = [first]
        while queue:
            change = self._changes[queue.pop()]
            for _, target in change.moves:
                more = self._bytes_more(target, together)
                for number in self._giving.get(target, ()):
                    reached = (self._used[target] + more) / self._size[target]
                    if reached <= self._highest(self._class_of[target]) + _ROUNDING:
                        break
                    if number in self._waiting and number not in together:
                        together.append(number)
                        queue.append(number)
                        more -= self._changes[number].bytes
        together.reverse()
        return together

    def _highest_reached(self, number: int) -> float:
        """Returns the highest utilization of the targets of a change after it."""
        change = self._changes[number]
        return max([(self._used[target] + change.bytes) / self._size[target]
                    for _, target in change.moves])

    def _bytes_more(self, osd: int, numbers: Sequence[int]) -> int:
        """Returns the bytes that changes bring to an OSD less the bytes that they take off it."""
        more = 0
        for number in numbers:
            change = self._changes[number]
            for source, target in change.moves:
                if target == osd:
                    more += change.bytes
                if source == osd:
                    more -= change.bytes
        return more

    def _exceeds_limits(self, numbers: Sequence[int]) -> bool:
        """Returns True if a target could pass its fill limit, or its limit of PG shards, on the
        way: in the worst order all shards come before any leaves."""
        coming: Counter[int] = Counter()
        shards: Counter[int] = Counter()
        for number in numbers:
            change = self._changes[number]
            for _, target in change.moves:
                coming[target] += change.bytes
                shards[target] += 1
        for osd, more in coming.items():
            if self._used[osd] + more > self._fill_limit[osd]:
                return True
            if self._shard_counts[osd] + shards[osd] > self._max_shards:
                return True
        return False
