"""OSDs with enough free bytes to receive a shard, the best first, without a pass over all OSDs.

Near the end of a search nearly every OSD is at its limit, and a pass over all of them would find
none: on a large cluster such passes took half of a plan's time, as measured.
"""
from __future__ import annotations

import heapq
from bisect import bisect_left
from itertools import islice
from typing import Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from ...runtime.time_slice import give_way
from ..state.constraints import SearchConstraints
from ..state.placement_state import PlacementState
from ..state.target_index import SortedOsds, TargetEntry, TargetIndex

#: OSDs whose sizes have the same number of bits, and the same bits after the first, share a list:
#: so many bits after the first.
_SIZE_BITS = 2

#: A list by cost is filtered, in its own order, unless at most this part of it has bytes free.
_FEW = 1 / 8

#: Far above the rounding errors of utilizations, far below any difference that matters.
_ROUNDING = 1e-9


class _OfOneSize(NamedTuple):
    """OSDs of about one size, by utilization."""

    osds: SortedOsds
    size_bytes: int              # the largest; 0 for OSDs whose capacity is less than their size


class Receivers:
    """Finds the receiving OSDs in sorted lists. Every OSD that has the bytes free is given; the
    caller asks each one again, since a few have not."""

    def __init__(self, placement: PlacementState, targets: TargetIndex,
                 limits: SearchConstraints) -> None:
        self._placement = placement
        self._targets = targets
        self._limits = limits
        #: id of some OSDs → these, and their lists. By id: hashing 10,000 numbers takes long
        self._by_size: Dict[int, Tuple[Sequence[int], List[_OfOneSize]]] = {}
        #: id of a list → (version of the limits, the highest utilization that they allow)
        self._highest: Dict[int, Tuple[int, float]] = {}

    def among(self, osds: Sequence[int], least: float) -> Iterable[int]:
        """Those of the OSDs that have `least` bytes free, the emptiest first."""
        lists = [islice(same.osds.entries(), self._count(same, least))
                 for same in self._lists(osds)]
        return _numbers(lists[0] if len(lists) == 1 else heapq.merge(*lists))

    def for_group(self, group: int, source: int, least: float) -> Iterable[int]:
        """OSDs with `least` bytes free that a shard of the group on `source` may be able to go to,
        in the order of the group's list."""
        own = self._targets.list_of(group, source)
        if own is None:
            return ()
        if not self._targets.has_own_lists:
            return self.among(own.osds, least)
        entries = own.entries()
        counts = [(same, self._count(same, least)) for same in self._lists(own.osds)]
        if sum(count for _, count in counts) <= _FEW * len(entries):
            return _numbers(sorted((own.key_of(osd), osd) for same, count in counts
                                   for _, osd in islice(same.osds.entries(), count)))
        return _numbers(iter(entries))

    def _lists(self, osds: Sequence[int]) -> List[_OfOneSize]:
        known = self._by_size.get(id(osds))
        if known is None:
            known = self._by_size[id(osds)] = osds, self._by_size_of(osds)
        return known[1]

    def _by_size_of(self, osds: Sequence[int]) -> List[_OfOneSize]:
        placement = self._placement
        members: Dict[int, List[int]] = {}
        for i in osds:
            if not placement.is_target[i]:
                continue
            size = placement.size_bytes[i]
            plain = size == placement.capacity_bytes[i] and not placement.spared_bytes[i]
            shift = max(0, size.bit_length() - _SIZE_BITS - 1)
            members.setdefault((size >> shift) << shift if plain else 0, []).append(i)
        give_way()
        return [_OfOneSize(SortedOsds(placement, same, placement.capacity_utilization),
                           max(placement.size_bytes[i] for i in same) if key else 0)
                for key, same in sorted(members.items())]

    def _count(self, same: _OfOneSize, least: float) -> int:
        """How many OSDs of a list can have `least` bytes free: the first ones.

        With U the highest utilization allowed, an OSD of utilization u has at most (U - u) times
        its size free. That says nothing about OSDs whose capacity is less than their size.
        """
        entries = same.osds.entries()
        if not same.size_bytes:
            return len(entries)
        version = self._limits.utilization_version
        known = self._highest.get(id(same.osds))
        if known is None or known[0] != version:
            most, size = self._limits.max_used_bytes, self._placement.size_bytes
            known = self._highest[id(same.osds)] = version, max(
                (most[i] / size[i] for i in same.osds.osds), default=0.0)
        return bisect_left(entries, (known[1] - least / same.size_bytes + _ROUNDING, -1))


def _numbers(entries: Iterable[TargetEntry]) -> Iterator[int]:
    return (osd for _, osd in entries)
