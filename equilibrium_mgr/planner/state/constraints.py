"""The limits of OSDs while the search tightens them: a utilization, and a pressure per data pool.

The pressure of a group on an OSD is its count of shards there per free byte. The OSD with the
highest pressure limits the pool's free space.

Also the sets of OSDs that share pools, with the sizes that steer the search.
"""
from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from math import inf
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

from ...runtime.time_slice import give_way, grouped
from ..bound.lower_bound import OsdSet, UtilizationBounds
from ..objective import FAR_SHARDS, Weights
from .placement_state import PlacementState
from .target_index import SortedOsds, TargetEntry


#: Shards per free byte of a group without any. It is above zero because it is a divisor.
_NEXT_TO_NONE = 1e-300
_NO_BYTES = 5e-324   # as a divisor of a count: the pressure is infinite

_ABOVE = 1 + 1e-9   # factor of a pressure that is allowed

_UNKNOWN = -1, -inf, -1, -inf   # the needs of an OSD's groups

#: If more than one in so many OSDs has room, the search goes over all OSDs in their order.
_MANY = 16

#: The ratio of its free space that a pool may lose in a plan, unless it keeps PLENTY times its
#: proportional share of the free space.
MOST_LOST = 0.0005
PLENTY = 3.0


class SearchConstraints:
    """Maximum used bytes per OSD, and maximum pressure per group of a pool that holds data.

    Make it before the first move: the limits keep each device class at its present maximum or at
    `levels` (utilization by OSD), if that is higher, and keep each pool's free space. `room` is the
    ratio by which all pools can grow; 0 lifts both limits.
    """

    def __init__(self, placement: PlacementState, data_groups: Sequence[int],
                 room: float = inf, levels: Sequence[float] = ()) -> None:
        self._placement = placement
        full = placement.snapshot.full_ratio
        self.usable_bytes: List[float] = [full * size for size in placement.size_bytes]
        self.class_of = [placement.snapshot.osds[osd].device_class for osd in placement.osd_ids]
        least = 0.0 if room else inf
        self._most_bytes = self._first_limits(least, levels)
        self.max_used_bytes: List[float] = list(self._most_bytes)
        used = placement.used_bytes
        most = self.max_used_bytes
        self._by_room = SortedOsds(
            placement, range(len(most)), lambda osd: used[osd] - most[osd])
        self._counts = [group.counts for group in placement.groups]
        #: the group whose limit was set last
        self._limited = -1
        #: OSD that was asked about since → (the number of its changes, the free bytes that its most
        #: demanding other group needs, this group, the free bytes that the next group needs)
        self._needs: Dict[int, Tuple[int, float, int, float]] = {}
        #: per OSD
        self._data_groups: List[List[int]] = [[] for _ in placement.size_bytes]
        self._groups = [placement.groups[group] for group in data_groups]
        for data_group in self._groups:
            give_way()
            for i in data_group.osds:
                self._data_groups[i].append(data_group.index)
        self.tightened = frozenset(data_groups)
        #: group → the pressure at which its pool has lost as much free space as it may
        self._pressure_limits = self._first_pressures(room)
        #: group → shards per free byte
        self.max_pressure: Dict[int, float] = dict(self._pressure_limits)

    def _first_limits(self, least: float, levels: Sequence[float]) -> List[float]:
        """Returns the most used bytes of each OSD. `least`: a maximum for every class."""
        placement = self._placement
        class_of = self.class_of
        highest = dict.fromkeys(class_of, least)
        for i, name in enumerate(class_of):
            highest[name] = max(highest[name], placement.utilization(i))
        limits: List[float] = []
        for i, name in enumerate(class_of):
            most = highest[name]
            if levels:
                most = max(most, levels[i])
            limits.append(min(float(placement.fill_limit_bytes[i]), most * placement.size_bytes[i]))
        return limits

    def _first_pressures(self, room: float) -> Dict[int, float]:
        """Returns data group → the pressure at which its pool has lost the most that it may."""
        total = self._placement.bytes_by_pool()
        limits: Dict[int, float] = {}
        for number, pressure in self._highest_pressures(True).items():
            group = self._placement.groups[number]
            pool = group.pool
            plenty = max(1e-9, PLENTY * room * total[pool.id])   # free bytes
            limits[number] = max(pressure / (1.0 - MOST_LOST),
                                 pool.pg_num * pool.size / (group.size_ratio * plenty))
        return limits

    def shards_per_free_byte(self, group: int, osd: int) -> float:
        """Returns the pressure of a group on an OSD; infinite for shards on a full OSD."""
        count = self._placement.groups[group].counts[osd]
        if not count:
            return 0.0
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd]
        return count / free if free > 0 else inf

    def by_pressure(self, group: int) -> SortedOsds:
        """Returns the OSDs that a group's shards may leave, those with the highest pressure first.

        The key is the negative pressure.
        """
        placement = self._placement
        osds = [i for i in placement.groups[group].osds if placement.is_source[i]]
        return SortedOsds(placement, osds, lambda osd: -self.shards_per_free_byte(group, osd))

    def _highest_pressures(self, of_pools: bool) -> Dict[int, float]:
        """Returns data group → its highest pressure on an OSD of the group.

        `of_pools`: returns the pressure of the OSD that limits the pool instead. Any group of the
        pool may be there, and its shards may be unable to leave.
        """
        free = [max(_NO_BYTES, usable - used) for usable, used in zip(
            self.usable_bytes, self._placement.used_bytes)]
        found: Dict[int, float] = {}
        #: pool → as of shards of the mean size
        highest: Dict[int, float] = defaultdict(float)
        for group in self._groups:
            give_way()
            counts = group.counts
            osds: Sequence[int] = range(len(free)) if of_pools else group.osds
            most = max([counts[i] / free[i] for i in osds if counts[i]], default=0.0)
            found[group.index] = most
            pool = group.pool.id
            highest[pool] = max(highest[pool], group.size_ratio * most)
        if of_pools:
            for group in self._groups:
                found[group.index] = highest[group.pool.id] / group.size_ratio
        return found

    def set_max_pressure(self, group: int, pressure: float, slack: float = 0.0) -> None:
        """Allows the group this many shards per free byte, and `slack` (a ratio) more.

        The slack ends where the pool would lose more free space than it may. The pressure itself is
        allowed in any case.
        """
        least = max(_NEXT_TO_NONE, pressure * _ABOVE)
        most = min(pressure * (_ABOVE + slack), self._pressure_limits[group])
        self.max_pressure[group] = max(least, most)
        if group != self._limited:
            self._limited = group
            self._needs = {}

    def set_least_free(self, group: int, free_bytes: float) -> None:
        """Allows the group any pressure that leaves its pool this many client bytes, but not more
        than at first."""
        of_group = self._placement.groups[group]
        free_per_shard = (of_group.size_ratio or 1.0) * max(1.0, free_bytes)
        pressure = of_group.pool.chunks / free_per_shard
        self.set_max_pressure(group, min(self._pressure_limits[group], pressure))

    def tighten_to_current(self, slack: float, of_pools: bool = False) -> None:
        """Allows each group in `tightened` its present highest pressure, and `slack` (a ratio)
        more.

        Other groups may have any pressure that takes no more free space from their pool than it may
        lose.
        """
        for group, pressure in self._highest_pressures(of_pools).items():
            more = slack if group in self.tightened else inf
            self.set_max_pressure(group, pressure, more)

    def set_max_utilization(self, osds: Sequence[int], utilization: float) -> None:
        """Allows these OSDs this utilization (a ratio of size), but never more than they were
        allowed at first."""
        give_way()
        for i in osds:
            wanted = utilization * self._placement.size_bytes[i]
            self.max_used_bytes[i] = min(self._most_bytes[i], wanted)
        self._by_room.limits_changed()

    def keep_highest(self, osds: Sequence[int]) -> None:
        """Allows these OSDs of one class their present highest utilization.

        They keep it also if no shard can leave that OSD: nothing is gained below. OSDs that may
        give have a maximum of their own, because an operator chose them.
        """
        placement = self._placement
        for may_give in (False, True):
            some = [i for i in osds if placement.is_source[i] is may_give]
            highest = max(map(placement.utilization, some), default=0.0)
            self.set_max_utilization(some, highest)

    def with_room(self, receiving: SortedOsds, least: int) -> Iterable[TargetEntry]:
        """Returns the entries of `receiving` for OSDs that may take `least` more bytes.

        Finds them in a list sorted by free bytes, because few of thousands of OSDs have room once
        utilizations are nearly equal.
        """
        entries = self._by_room.entries()
        used = self._placement.used_bytes
        count = bisect_left(entries, (-least, len(entries)))
        if count * _MANY < len(entries):
            return receiving.sorted([osd for _, osd in entries[:count]])
        return (entry for entry in receiving.entries()
                if used[entry[1]] - self.max_used_bytes[entry[1]] <= -least)

    def fits(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """Returns True if the OSD keeps all limits after a change.

        The change is `more` bytes, one more shard of the group `plus`, and one less of `minus`
        (-1: none).
        """
        if self._placement.used_bytes[osd] + more > self.max_used_bytes[osd]:
            return False
        return self.fits_pressure(osd, more, plus, minus)

    def fits_pressure(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """Returns True if the OSD keeps the pressures after such a change; `fits` checks its bytes
        as well. The group that loses a shard is checked only if bytes come."""
        counts = self._counts
        limits = self.max_pressure
        last = self._limited
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd] - more
        seen, most, needing, next_most = self._needs.get(osd, _UNKNOWN)
        changes = len(self._placement.changes[osd])
        groups = self._data_groups[osd]
        if seen != changes and groups:   # kept, because it is slow with a hundred pools
            needs = [counts[group][osd] / limits[group] for group in groups]
            if last in groups:
                needs[groups.index(last)] = -inf
            most = max(needs)
            at = needs.index(most)
            needing, needs[at] = groups[at], -inf
            next_most = max(needs)
            self._needs[osd] = changes, most, needing, next_most
        if (next_most if needing == minus else most) > free:
            return False
        if last not in (-1, minus) and counts[last][osd] > max(0.0, free) * limits[last]:
            return False
        if more > 0 and minus in limits:
            left = counts[minus][osd] - (plus != minus)
            if left > limits[minus] * max(0.0, free):
                return False
        if plus == minus or plus not in limits:
            return True
        return counts[plus][osd] + 1 <= limits[plus] * free


#: The search leaves a set as it is if single moves move less than this (a ratio of its bytes) and
#: its fullest OSD is this near to the bound (in typical shards, and at most as a ratio of an OSD).
_FEW_MOVED = 0.002
_NEAR_SHARDS = 0.6
_NEAR_MOST = 0.015

#: Tightening ends at least and at most this far from the bound (ratios of an OSD).
_LEAST_GOAL = 0.0005
_MOST_GOAL = 0.0018

#: Lowest possible utilizations that differ by less are equal (a ratio of an OSD).
_LEVEL = 1e-6

#: A fullest OSD is never far from the bound if it is within this distance (a ratio of an OSD).
_FAR_LEAST = 0.004


class OsdSetState:
    """The OSDs of one device class of a set in a placement, with their bound and initial bytes."""

    def __init__(self, placement: PlacementState, osds: Sequence[int], osd_set: OsdSet,
                 bounds: UtilizationBounds, weights: Weights) -> None:
        index_of = placement.index_of
        own = self.osds = tuple([index_of[osd] for osd in osds])
        #: all OSDs of the set: data that leaves `osds` can end there
        self.helpers = tuple([index_of[osd] for osd in osd_set.osds])
        self.members = frozenset(own)
        self._initial_used_bytes = [placement.used_bytes[i] for i in own]
        self.needs_tightening = True
        self.may_reach = 0.0   # utilization to which data of other classes may fill the OSDs
        lowest = [bounds.utilizations[osd] for osd in osds]
        self.bound = max(lowest)
        #: its OSDs are equally full for clients, not by their sizes (plan/fixed_bytes.py)
        self._is_leveled = any(
            placement.snapshot.osds[osd].fixed_bytes for osd in osd_set.osds)
        sizes = [placement.size_bytes[i] for i in own]
        self.size_bytes = sum(sizes)
        wanted = [part * size for part, size in zip(lowest, sizes)]
        #: bytes that pools can use per 1.0 that the highest utilization is lowered
        self.usable_bytes = sum(wanted) / max(1e-9, self.bound)
        # bytes above the lowest possible utilizations: an even placement needs no fewer moved
        excess = sum([
            max(0.0, used - least) for used, least in zip(self._initial_used_bytes, wanted)])
        #: bytes that may still be moved for counts alone, and for pressure
        self.count_budget = excess * weights.count_move_budget
        self.space_budget = excess * weights.pool_space_budget
        #: the mean shard size up to which pools hold half of the bytes on these OSDs
        self.typical_shard_bytes = self._median_shard_bytes(placement)
        #: as a ratio of an OSD of median size
        self.typical_shard = self.typical_shard_bytes / sorted(sizes)[len(sizes) // 2]

    def _median_shard_bytes(self, placement: PlacementState) -> float:
        """Returns the mean shard size of the group with the median byte; 0 without shards."""
        groups: List[Tuple[float, int]] = []
        for group in placement.groups:
            if group.shard_count and not group.members.isdisjoint(self.members):
                groups.append((group.mean_shard_bytes, group.total_bytes))
        half = sum([total for _, total in groups]) / 2.0
        passed = 0
        for mean, total in sorted(groups):
            passed += total
            if passed >= half:
                return mean
        return 0.0

    def update_needs_tightening(self, placement: PlacementState) -> None:
        """Decides after the descent whether to tighten the limits of the set.

        A set near its bound that has hardly changed stays as it is: a plan made after a finished
        one then finds nothing to do.
        """
        moved = sum([max(0, placement.used_bytes[i] - used)
                     for i, used in zip(self.osds, self._initial_used_bytes)])
        is_changed = moved > _FEW_MOVED * sum(self._initial_used_bytes)
        self.needs_tightening = is_changed or not self.is_near_bound(placement)

    def is_near_bound(self, placement: PlacementState) -> bool:
        """Returns True if only the size of shards may keep the fullest OSD above the bound."""
        near = min(_NEAR_SHARDS * self.typical_shard, _NEAR_MOST)
        return self.max_utilization(placement) <= self.bound + near

    def max_utilization(self, placement: PlacementState) -> float:
        """Returns the utilization of the fullest OSD, a ratio of its size."""
        return max(placement.used_bytes[i] / placement.size_bytes[i] for i in self.osds)

    @property
    def far_threshold(self) -> float:
        """Returns F of the objective: above this utilization an OSD is far from the bound."""
        if self._is_leveled:
            return inf
        return self.bound + max(_FAR_LEAST, FAR_SHARDS * self.typical_shard)

    def mean(self, placement: PlacementState) -> float:
        """Returns used bytes ÷ size, a ratio."""
        return sum([placement.used_bytes[i] for i in self.osds]) / self.size_bytes

    def goal_above_bound(self, weights: Weights) -> float:
        """Returns the distance from the bound at which tightening ends (a ratio of an OSD)."""
        return min(_MOST_GOAL, max(_LEAST_GOAL, weights.goal_shards * self.typical_shard))

    def value_of_lowering(self, weights: Weights) -> Callable[[float, float], float]:
        """Returns a function of two utilizations, V(high) - V(low) of the objective.

        This is the value, in bytes moved, of lowering the fullest OSD from `high` to `low`.
        """
        far = self.far_threshold

        def value(high: float, low: float) -> float:
            near = min(high, far) - min(low, far)
            return self.usable_bytes * (
                weights.usable_value * near + weights.far_usable_value * (high - low - near))
        return value


def states_of(placement: PlacementState, osd_set: OsdSet, bounds: UtilizationBounds,
              weights: Weights) -> List[OsdSetState]:
    """Returns the states of a set's device classes, the one with the highest bound first.

    The search lowers each class as far as possible while the classes before it are at their bounds.
    It fills a class above its maximum only if the classes before it need that.
    """
    known = placement.snapshot.osds
    classes = grouped((known[osd].device_class, osd) for osd in osd_set.osds)
    states = [OsdSetState(placement, osds, osd_set, bounds, weights)
              for osds in classes.values()]
    states.sort(key=lambda state: (-state.bound, -state.size_bytes))
    for number, state in enumerate(states):
        if number:
            _lower_bound_of(state, states[:number], placement, bounds, weights)
    # the fullest class limits pools that may use several
    states[0].usable_bytes = sum([state.usable_bytes for state in states])
    return states


def _lower_bound_of(state: OsdSetState, fuller: Sequence[OsdSetState], placement: PlacementState,
                    bounds: UtilizationBounds, weights: Weights) -> None:
    """Lowers the bound of a class by the bytes that fuller classes can take instead."""
    spare = 0.0   # bytes up to the goals of OSDs whose lowest utilization is that of this class
    bound = state.bound
    for before in fuller:
        more = before.bound + before.goal_above_bound(weights) - bound
        for i in before.osds:
            if abs(bounds.utilizations[placement.osd_ids[i]] - bound) < _LEVEL:
                spare += more * placement.size_bytes[i]
    level = min(bound, max(bound - spare / state.size_bytes, state.mean(placement)))
    state.may_reach = max(level, min(fuller[0].bound, state.max_utilization(placement)))
    # they take data of fuller classes at first, and give it back if their utilizations are level
    state.bound = min(state.may_reach, level) if spare else state.may_reach
