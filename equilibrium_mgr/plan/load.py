"""How busy OSDs are: the load of each OSD by the pools' loads and where their PGs are.

The load of an OSD is the part of its time that its device spends on clients (a ratio). Each shard
is written to. Reads are served by the first OSD of a replicated PG, and by the first k of an
erasure-coded one.
"""
from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Dict, Iterable, Mapping, NamedTuple, Optional, Sequence

from ..runtime.time_slice import grouped, piecewise
from ..snapshot.model import Pool, Snapshot
from .model import PgChange

_PGS_A_PIECE = 500


def position_loads(snapshot: Snapshot, pool: Pool) -> Sequence[float]:
    """Returns the load of a PG's shard at each position; empty if the pool has no known load."""
    load = snapshot.loads.get(pool.id)
    if load is None:
        return ()
    served = [load.reading] * pool.data_shards + [0.0] * (pool.size - pool.data_shards)
    return [load.writing + reading for reading in served]


def osd_loads(snapshot: Snapshot, ups: Mapping[str, Sequence[int]] = {}) -> Dict[int, float]:
    """Returns OSD id → its load, with the PGs at their up sets; empty while no load is known.
    `ups`: pgid → another up set."""
    if not snapshot.loads:
        return {}
    loads: Dict[int, float] = defaultdict(float)
    by_pool = {pool.id: position_loads(snapshot, pool) for pool in snapshot.pools.values()}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        up = ups.get(pg.pgid, pg.up)
        for osd, load in zip(up, by_pool[pg.pool]):
            loads[osd] += load / snapshot.speeds.get(osd, 1.0)
    return loads


def loads_after(snapshot: Snapshot, loads: Mapping[int, float],
                changes: Iterable[PgChange]) -> Dict[int, float]:
    """Returns the loads of OSDs after changes. `loads`: those before, as of `osd_loads`."""
    after: DefaultDict[int, float] = defaultdict(float, loads)
    for change in piecewise(changes, _PGS_A_PIECE):
        pg = snapshot.pgs[change.pgid]
        by_position = position_loads(snapshot, snapshot.pools[pg.pool])
        for old, new, load in zip(pg.up, change.up_after, by_position):
            after[old] -= load / snapshot.speeds.get(old, 1.0)
            after[new] += load / snapshot.speeds.get(new, 1.0)
    return after


def pools_on(snapshot: Snapshot, osd: int) -> Dict[int, float]:
    """Returns pool id → its part of the load of an OSD, a ratio, the largest first."""
    found: DefaultDict[int, float] = defaultdict(float)
    by_pool = {pool.id: position_loads(snapshot, pool) for pool in snapshot.pools.values()}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        if osd in pg.up and by_pool[pg.pool]:
            found[pg.pool] += by_pool[pg.pool][pg.up.index(osd)]
    whole = sum(found.values()) or 1.0
    return {pool: found[pool] / whole for pool in sorted(found, key=lambda pool: -found[pool])}


class SetLoad(NamedTuple):
    """The load of the OSDs of a set that take data."""

    mean: float
    max_load: float   # of the busiest OSD ÷ mean
    busiest_osd: int


def load_ratio(snapshot: Snapshot, loads: Mapping[int, float], sets: Mapping[str, SetLoad],
               osd: int) -> Optional[float]:
    """Returns the load of an OSD as a ratio of the mean of its set; None if it is not known, or if
    the OSD is out. `sets`: as of `loads_of_sets`."""
    of_set = sets.get(snapshot.set_of(osd))
    if of_set is None or not snapshot.osds[osd].is_in:
        return None
    return loads.get(osd, 0.0) / of_set.mean


def loads_of_sets(snapshot: Snapshot, loads: Mapping[int, float]) -> Dict[str, SetLoad]:
    """Returns OSD set → its load; none while no load is known. `loads`: as of `osd_loads`."""
    osds = snapshot.osds.values()
    members = grouped((snapshot.set_of(osd.id), osd.id) for osd in osds
                      if osd.is_for_data and osd.has_statistics)
    found: Dict[str, SetLoad] = {}
    for name, numbers in members.items():
        mean = sum([loads.get(osd, 0.0) for osd in numbers]) / len(numbers)
        if mean > 0.0:
            most, first = max([(loads.get(osd, 0.0), -osd) for osd in numbers])
            found[name] = SetLoad(mean, most / mean, -first)
    return found
