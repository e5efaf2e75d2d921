"""Reads the up sets of all PGs; those that have not changed are kept as they were."""
from __future__ import annotations

from itertools import islice
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..runtime.amended_map import AmendedMap
from ..runtime.time_slice import give_way, piecewise
from .mgr_api import OsdMapApi

Osds = Tuple[int, ...]
UpSets = AmendedMap[Osds]   # pgid → up set

#: Pools with more PGs than this are mapped PG by PG, so that the interpreter's lock is given up in
#: between: 512 PGs at once take 4 ms, and a command of another module needs the lock several times.
MAP_WHOLE_POOL_PGS = 64
_MAPPED_A_PIECE = 50   # before it gives way again: about a millisecond


class UpSetReader:
    """Remembers the up sets that it has read last."""

    def __init__(self) -> None:
        self._pools: List[Tuple[int, int]] = []   # (id, pg_num) at the last reading
        self._last: UpSets = AmendedMap({})

    def read(self, osdmap: OsdMapApi, pools: Sequence[Mapping[str, Any]]) -> UpSets:
        """The up sets of the PGs of all pools of a dump; the very ones of the last reading where
        they are equal. Raises SystemError for a pool that is gone, as Ceph does."""
        shapes = [(pool["pool"], pool["pg_num"]) for pool in pools]
        found = self._amended(osdmap, shapes) if shapes == self._pools else None
        if found is None:
            found = self._all(osdmap, shapes)
        self._pools, self._last = shapes, found
        return found

    def _all(self, osdmap: OsdMapApi, shapes: Sequence[Tuple[int, int]]) -> UpSets:
        up: Dict[str, Osds] = {}
        for pool, pg_num in shapes:
            give_way()
            for pgid, osds in self._mapped(osdmap, pool, pg_num):
                new, old = tuple(osds), self._last.get(pgid)
                up[pgid] = new if old is None or old != new else old
        return AmendedMap(up)

    def _mapped(self, osdmap: OsdMapApi, pool: int,
                pg_num: int) -> Iterator[Tuple[str, Sequence[int]]]:
        if pg_num <= MAP_WHOLE_POOL_PGS:
            yield from osdmap.map_pool_pgs_up(pool).items()
            return
        for ps in piecewise(range(pg_num), _MAPPED_A_PIECE):
            yield f"{pool}.{ps:x}", osdmap.pg_to_up_acting_osds(pool, ps)["up"]

    def _amended(self, osdmap: OsdMapApi,
                 shapes: Sequence[Tuple[int, int]]) -> Optional[UpSets]:
        """As `_all` where the pools are the same: compared in the order of the last reading. None
        where Ceph names PGs in another one."""
        changes: Dict[str, Osds] = {}
        names, before = iter(self._last), self._last.stored()
        for pool, pg_num in shapes:
            for start in range(0, pg_num, _length(pg_num)):
                give_way()
                end = min(pg_num, start + _length(pg_num))
                pgids, old = list(islice(names, end - start)), list(islice(before, end - start))
                if pg_num <= MAP_WHOLE_POOL_PGS:
                    mapped = osdmap.map_pool_pgs_up(pool)
                    if list(mapped) != pgids:
                        return None
                    new = [tuple(osds) for osds in mapped.values()]
                else:
                    new = [tuple(osdmap.pg_to_up_acting_osds(pool, ps)["up"])
                           for ps in range(start, end)]
                if new != old:
                    changes.update((pgid, osds) for pgid, osds, was in zip(pgids, new, old)
                                   if osds != was)
        return self._last.amended(changes)


def _length(pg_num: int) -> int:
    """How many PGs of a pool are mapped before it gives way again."""
    return pg_num if pg_num <= MAP_WHOLE_POOL_PGS else _MAPPED_A_PIECE
