"""Reads the up sets of all PGs; those that have not changed are kept as they were."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

from ..runtime.time_slice import give_way, piecewise
from .mgr_api import OsdMapApi

Osds = Tuple[int, ...]
UpSets = Mapping[str, Osds]   # pgid → up set

#: Pools with more PGs than this are mapped PG by PG, so that the interpreter's lock is given up in
#: between: 512 PGs at once take 4 ms, and a command of another module needs the lock several times.
MAP_WHOLE_POOL_PGS = 64
_MAPPED_A_PIECE = 50   # before it gives way again: about a millisecond


def read_up_sets(osdmap: OsdMapApi, pools: Sequence[Mapping[str, Any]], before: UpSets) -> UpSets:
    """The up sets of the PGs of all pools of a dump; the very ones of `before` where they are
    equal. Raises SystemError for a pool that is gone, as Ceph does."""
    up: Dict[str, Osds] = {}
    for pool in pools:
        give_way()
        for pgid, osds in _mapped(osdmap, pool["pool"], pool["pg_num"]):
            new, old = tuple(osds), before.get(pgid)
            up[pgid] = new if old is None or old != new else old
    return up


def _mapped(osdmap: OsdMapApi, pool: int, pg_num: int) -> Iterator[Tuple[str, Sequence[int]]]:
    if pg_num <= MAP_WHOLE_POOL_PGS:
        yield from osdmap.map_pool_pgs_up(pool).items()
        return
    for ps in piecewise(range(pg_num), _MAPPED_A_PIECE):
        yield f"{pool}.{ps:x}", osdmap.pg_to_up_acting_osds(pool, ps)["up"]
