"""The limits of OSDs while these are tightened: a utilization, and a pressure per data pool.

Pressure is the count of a group's shards on an OSD per byte that is free there. The OSD with the
highest pressure limits the pool's free space.

Sets of OSDs that share pools, by OSD index, with the sizes that steer the search.
"""
from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

from ...runtime.time_slice import give_way
from ..bound.lower_bound import OsdSet, UtilizationBounds
from ..objective import Weights
from .placement_state import PlacementState
from .target_index import SortedOsds, TargetEntry


#: Shards per free byte of a group that may have none: more than nothing, to divide by.
_NEXT_TO_NONE = 1e-300

_UNKNOWN = -1, -inf, -1, -inf   # what an OSD's groups need

#: Where one in so many OSDs has room, a list of all is gone over until targets are found.
_MANY = 16

#: What a pool may lose of the free space that it has before the first move (ratio), unless its free
#: space stays so many times as large, by its data, as what is free for all pools alike.
MOST_LOST = 0.0005
PLENTY = 3.0


class SearchConstraints:
    """Maximum used bytes per OSD, and maximum pressure per group of a pool that holds data.

    Made before the first move: no device class may become fuller than it is, but up to `levels`
    (utilization by OSD), and no pool lose what it has. `room` is what all pools can grow by
    (ratio); with 0 both may.
    """

    def __init__(self, placement: PlacementState, data_groups: Sequence[int],
                 room: float = inf, levels: Sequence[float] = ()) -> None:
        self._placement = placement
        full = placement.snapshot.full_ratio
        self.usable_bytes: List[float] = [full * size for size in placement.size_bytes]
        self.class_of = [placement.snapshot.osds[osd].device_class for osd in placement.osd_ids]
        highest = dict.fromkeys(self.class_of, 0.0 if room else inf)
        for i, name in enumerate(self.class_of):
            highest[name] = max(highest[name], placement.utilization(i))
        self._most_bytes = [
            min(float(limit), max(highest[name], level) * size) for limit, name, level, size in zip(
                placement.fill_limit_bytes, self.class_of, levels or [0.0] * len(self.class_of),
                placement.size_bytes)]
        self.max_used_bytes: List[float] = list(self._most_bytes)
        used, most = placement.used_bytes, self.max_used_bytes
        self._by_room = SortedOsds(
            placement, range(len(most)), lambda osd: used[osd] - most[osd])
        self._counts = [group.counts for group in placement.groups]
        #: the group whose limit was set last; for OSDs that were asked about since: (their changes,
        #: free bytes that the other group needs that needs most, which it is, what the next needs)
        self._limited = -1
        self._needs: Dict[int, Tuple[int, float, int, float]] = {}
        #: group → shards per free byte
        self.max_pressure: Dict[int, float] = {}
        self._data_groups: List[List[int]] = [[] for _ in placement.size_bytes]   # per OSD
        for group in data_groups:
            give_way()
            for i in placement.groups[group].osds:
                self._data_groups[i].append(group)
        self._groups = [placement.groups[group] for group in data_groups]
        self.tightened = frozenset(data_groups)
        total: Dict[int, int] = {}   # pool → bytes
        for of_pool in self._groups:
            total[of_pool.pool.id] = total.get(of_pool.pool.id, 0) + of_pool.total_bytes
        #: group → the pressure at which its pool has lost as much free space as it may
        self._pressure_limits = {group: max(
            pressure / (1.0 - MOST_LOST), pool.pg_num * pool.size / (
                placement.groups[group].size_ratio * max(1e-9, PLENTY * room * total[pool.id])))
            for group, pressure in self._highest_pressures(True).items()
            for pool in (placement.groups[group].pool,)}
        self.max_pressure.update(self._pressure_limits)

    def shards_per_free_byte(self, group: int, osd: int) -> float:
        """The pressure of a group on an OSD; infinite where it has shards and nothing is free."""
        count = self._placement.groups[group].counts[osd]
        if not count:
            return 0.0
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd]
        return count / free if free > 0 else inf

    def by_pressure(self, group: int) -> SortedOsds:
        """The OSDs that a group's shards may leave, by its negative pressure: those first on which
        it is highest."""
        placement = self._placement
        return SortedOsds(
            placement, [i for i in placement.groups[group].osds if placement.is_source[i]],
            lambda osd: -self.shards_per_free_byte(group, osd))

    def _highest_pressures(self, of_pools: bool) -> Dict[int, float]:
        """Data group → its highest pressure; `of_pools`: that of the OSD that limits its pool,
        whichever of the pool's groups that holds, and whether anything can leave it or not."""
        free = [usable - used for usable, used in zip(
            self.usable_bytes, self._placement.used_bytes)]
        found: Dict[int, float] = {}
        highest: Dict[int, float] = {}   # pool → as of shards of the mean size
        for group in self._groups:
            give_way()
            counts = group.counts
            found[group.index] = most = max([
                counts[i] / free[i] if free[i] > 0 else inf
                for i in (range(len(free)) if of_pools else group.osds) if counts[i]], default=0.0)
            highest[group.pool.id] = max(
                highest.get(group.pool.id, 0.0), group.size_ratio * most)
        return found if not of_pools else {
            group.index: highest[group.pool.id] / group.size_ratio for group in self._groups}

    def set_max_pressure(self, group: int, pressure: float, slack: float = 0.0) -> None:
        """Allows the group this many shards per free byte, and `slack` (a ratio) more, but not that
        its pool loses free space."""
        least = max(_NEXT_TO_NONE, pressure * (1 + 1e-9))
        self.max_pressure[group] = max(least, min(
            pressure * (1 + 1e-9 + slack), self._pressure_limits[group]))
        if group != self._limited:
            self._limited, self._needs = group, {}

    def set_least_free(self, group: int, free_bytes: float) -> None:
        """Allows the group what leaves its pool so many client bytes."""
        of_group = self._placement.groups[group]
        self.set_max_pressure(group, min(
            self._pressure_limits[group], of_group.pool.pg_num * of_group.pool.data_shards / (
                (of_group.size_ratio or 1.0) * max(1.0, free_bytes))))

    def tighten_to_current(self, slack: float, of_pools: bool = False) -> None:
        """Allows each data group its present highest pressure, and `slack` (a ratio) more; those of
        smaller pools all that they may have."""
        for group, pressure in self._highest_pressures(of_pools).items():
            self.set_max_pressure(group, pressure, slack if group in self.tightened else inf)

    def set_max_utilization(self, osds: Sequence[int], utilization: float) -> None:
        """Allows these OSDs this utilization (a ratio of size), at most what they ever may have."""
        give_way()
        for i in osds:
            self.max_used_bytes[i] = min(self._most_bytes[i],
                                         utilization * self._placement.size_bytes[i])
        self._by_room.limits_changed()

    def with_room(self, receiving: SortedOsds, least: int) -> Iterable[TargetEntry]:
        """The entries of OSDs that may take so many bytes more. Found in a sorted list: of
        thousands of OSDs few have room once utilizations are near each other."""
        entries, used = self._by_room.entries(), self._placement.used_bytes
        count = bisect_left(entries, (-least, len(entries)))
        if count * _MANY < len(entries):
            return receiving.sorted([osd for _, osd in entries[:count]])
        return (entry for entry in receiving.entries()
                if used[entry[1]] - self.max_used_bytes[entry[1]] <= -least)

    def fits(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """True if the OSD keeps all limits with `more` bytes, one shard more of the group `plus`
        and one less of `minus` (-1: none)."""
        if self._placement.used_bytes[osd] + more > self.max_used_bytes[osd]:
            return False
        return self.fits_pressure(osd, more, plus, minus)

    def fits_pressure(self, osd: int, more: float, plus: int, minus: int) -> bool:
        """The same for pressure alone; a group that only loses a shard always fits."""
        counts, limits, last = self._counts, self.max_pressure, self._limited
        free = self.usable_bytes[osd] - self._placement.used_bytes[osd] - more
        seen, most, needing, next_most = self._needs.get(osd, _UNKNOWN)
        changes = len(self._placement.changes[osd])
        if seen != changes and self._data_groups[osd]:
            # with a hundred pools it takes long
            needs = [counts[group][osd] / limits[group] if group != last else -inf
                     for group in self._data_groups[osd]]
            most = max(needs)
            at = needs.index(most)
            needing, needs[at] = self._data_groups[osd][at], -inf
            next_most = max(needs)
            self._needs[osd] = changes, most, needing, next_most
        if (next_most if needing == minus else most) > free:
            return False
        if last not in (-1, minus) and counts[last][osd] > max(0.0, free) * limits[last]:
            return False
        if more > 0 and minus in limits and (
                counts[minus][osd] - (plus != minus) > limits[minus] * max(0.0, free)):
            return False
        return plus == minus or plus not in limits or counts[plus][osd] + 1 <= limits[plus] * free


#: A set is left as it is if single moves move less than this (a ratio of its bytes) and its fullest
#: OSD is this near to the bound (in typical shards, and at most as a ratio of an OSD).
_FEW_MOVED = 0.002
_NEAR_SHARDS = 0.6
_NEAR_MOST = 0.015

#: Tightening ends this near the bound at the nearest and at the farthest: ratios of an OSD.
_LEAST_GOAL = 0.0005
_MOST_GOAL = 0.0018

#: Lowest utilizations that differ by less are equal (a ratio of an OSD).
_LEVEL = 1e-6

#: A fullest OSD this far above the bound is not far from it, however small shards are (a ratio).
_FAR_LEAST = 0.004


class OsdSetState:
    """The OSDs of one device class of a set in a placement, with their bound and initial bytes."""

    def __init__(self, placement: PlacementState, osds: Iterable[int], osd_set: OsdSet,
                 bounds: UtilizationBounds) -> None:
        self.osds = tuple(placement.index_of[osd] for osd in osds)
        #: all OSDs of the set: what leaves these can end there
        self.helpers = self.osds if len(self.osds) == len(osd_set.osds) else tuple(
            placement.index_of[osd] for osd in osd_set.osds)
        self.members = frozenset(self.osds)
        self._initial_used_bytes = [placement.used_bytes[i] for i in self.osds]
        self.needs_tightening = True
        self.may_reach = 0.0   # utilization that others may fill them to
        lowest = {i: bounds.utilizations[placement.osd_ids[i]] for i in self.osds}
        self.bound = max(lowest.values())
        #: its OSDs are equally full for clients, not by their sizes (plan/fixed_bytes.py)
        self._is_leveled = any(
            placement.snapshot.osds[osd].fixed_bytes for osd in osd_set.osds)
        self.size_bytes = sum(placement.size_bytes[i] for i in self.osds)
        #: bytes that pools can use per 1.0 that the highest utilization is lowered
        self.usable_bytes = sum(lowest[i] * placement.size_bytes[i] for i in self.osds) / max(
            1e-9, self.bound)
        #: bytes above the lowest possible utilizations: a plan that evens out moves no less
        self.excess_bytes = sum(
            max(0.0, placement.used_bytes[i] - lowest[i] * placement.size_bytes[i])
            for i in self.osds)
        #: the mean shard size up to which pools hold half of the bytes on these OSDs
        self.typical_shard_bytes = 0.0
        groups = sorted((group.mean_shard_bytes, group.total_bytes) for group in placement.groups
                        if group.shard_count and not group.members.isdisjoint(self.members))
        half, passed = sum(total for _, total in groups) / 2.0, 0
        for mean, total in groups:
            passed += total
            if passed >= half:
                self.typical_shard_bytes = mean
                break
        sizes = sorted(placement.size_bytes[i] for i in self.osds)
        #: as a ratio of an OSD of median size
        self.typical_shard = self.typical_shard_bytes / sizes[len(sizes) // 2]

    def update_needs_tightening(self, placement: PlacementState) -> None:
        """Called after the descent: a set that is near its bound and was hardly changed is left as
        it is, so that a plan made after a finished one finds nothing to do."""
        moved = sum(max(0, placement.used_bytes[i] - used)
                    for i, used in zip(self.osds, self._initial_used_bytes))
        self.needs_tightening = not self.is_near_bound(placement) or (
            moved > _FEW_MOVED * sum(self._initial_used_bytes))

    def is_near_bound(self, placement: PlacementState) -> bool:
        """True where the size of shards may be all that keeps the fullest OSD above the bound."""
        return self.max_utilization(placement) <= self.bound + min(
            _NEAR_SHARDS * self.typical_shard, _NEAR_MOST)

    def max_utilization(self, placement: PlacementState) -> float:
        """The utilization of the fullest OSD, a ratio of its size."""
        return max(placement.used_bytes[i] / placement.size_bytes[i] for i in self.osds)

    def far_threshold(self, weights: Weights) -> float:
        """F of the objective: the utilization above which the fullest OSD is far from the bound."""
        return inf if self._is_leveled else self.bound + max(
            _FAR_LEAST, weights.far_shards * self.typical_shard)

    def mean(self, placement: PlacementState) -> float:
        """Used bytes ÷ size, a ratio."""
        return sum([placement.used_bytes[i] for i in self.osds]) / self.size_bytes

    def goal_above_bound(self, weights: Weights) -> float:
        """How near to the bound the highest utilization is to come (a ratio of an OSD)."""
        return min(_MOST_GOAL, max(_LEAST_GOAL, weights.goal_shards * self.typical_shard))

    def value_of_lowering(self, weights: Weights) -> Callable[[float, float], float]:
        """A function of two utilizations: the value, in bytes moved, of lowering the fullest OSD
        from the first to the second; V(high) - V(low) of the objective."""
        far = self.far_threshold(weights)

        def value(high: float, low: float) -> float:
            near = min(high, far) - min(low, far)
            return self.usable_bytes * (
                weights.usable_value * near + weights.far_usable_value * (high - low - near))
        return value


def states_of(placement: PlacementState, osd_set: OsdSet, bounds: UtilizationBounds,
              weights: Weights) -> List[OsdSetState]:
    """The states of a set's classes, the fullest first: each is to be lowered as far as it goes
    while those before it are at their bounds, and is filled above its maximum only if these cannot
    be there otherwise."""
    classes: Dict[str, List[int]] = {}
    for osd in osd_set.osds:
        classes.setdefault(placement.snapshot.osds[osd].device_class, []).append(osd)
    states = sorted([OsdSetState(placement, osds, osd_set, bounds) for osds in classes.values()],
                    key=lambda state: (-state.bound, -state.size_bytes))
    for number, state in enumerate(states):
        # bytes that those before it, where they have it level with these, can take more than that
        spare = sum([(before.bound + before.goal_above_bound(weights) - state.bound)
                     * placement.size_bytes[i] for before in states[:number] for i in before.osds
                     if abs(bounds.utilizations[placement.osd_ids[i]] - state.bound) < _LEVEL])
        if number:
            level = min(state.bound, max(
                state.bound - spare / state.size_bytes, state.mean(placement)))
            state.may_reach = max(
                level, min(states[0].bound, state.max_utilization(placement)))
            # at first they take what comes from those before, and give it back if these are level
            state.bound = state.may_reach if not spare else min(state.may_reach, level)
    # pools that may use several are limited by the fullest
    states[0].usable_bytes = sum([state.usable_bytes for state in states])
    return states
