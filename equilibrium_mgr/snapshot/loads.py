"""What clients ask of pools: counters in the statistics of PGs, and the load of devices by rates.

Real OSDs of Ceph 16 and 20 have shown which counters tell it. Each operation that changes an object
raises the version of its PG's log by one, while `num_write` counts each step of a compound
operation. Recovery, scrubs and snap trims raise no counter of reads.

An operation costs a device what Ceph's mClock scheduler takes it for (mclock-config-ref in Ceph's
doc/rados/configuration): its bytes, but at least `bandwidth ÷ iops`. An erasure-coded write takes
about two transactions of each shard (measured).
"""
from __future__ import annotations

import json
from operator import add
from statistics import median
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Set

from ..runtime.time_slice import give_way, grouped, piecewise
from .model import Osd, Pool, PoolLoad, PoolRates, pool_of
from .pg_statistics import is_unreported

_PGS_A_PIECE = 500


class PoolCounters(NamedTuple):
    """The number of a pool's PGs, and what clients have asked of them since the pool began."""

    pgs: int
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int


def count_operations(pg_stats: Iterable[Mapping[str, Any]]) -> Dict[int, PoolCounters]:
    """Returns pool id → its counters, by get('pg_stats')['pg_stats'].

    Leaves out a pool if a PG of it shows none: no OSD has reported it to this mgr, or its row is
    garbled.
    """
    sums: Dict[int, Iterable[int]] = {}
    unknown: Set[int] = set()
    for pg in piecewise(pg_stats, _PGS_A_PIECE):
        pool = pool_of(pg["pgid"])
        found = _counters_of(pg)
        if found is None:
            unknown.add(pool)
        else:
            sums[pool] = tuple(map(add, sums.get(pool, _NOTHING), found))
    return {pool: PoolCounters(*found) for pool, found in sums.items() if pool not in unknown}


_NOTHING = PoolCounters(0, 0, 0, 0, 0)


def _counters_of(pg: Mapping[str, Any]) -> Optional[PoolCounters]:
    """Returns the counters of one PG; None if they are not known."""
    try:
        if is_unreported(pg):
            return None
        sums = pg["stat_sum"]
        _, _, version = pg["version"].partition("'")   # as in 12'345: osdmap epoch, version
        return PoolCounters(
            1, int(sums["num_read"]), int(version),
            int(sums["num_read_kb"]) << 10, int(sums["num_write_kb"]) << 10)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


class _Device(NamedTuple):
    """What mClock takes a device to be able to do."""

    iops: float
    bandwidth: float   # bytes a second

    def load(self, operations: float, count: float) -> float:
        """Returns the part of its time for operations and bytes a second, a ratio."""
        return max(operations / self.iops, count / self.bandwidth)


#: Ceph's defaults of osd_mclock_max_capacity_iops_hdd, osd_mclock_max_sequential_bandwidth_hdd, and
#: of the same for ssd.
_HDD = _Device(315.0, 150.0 * (1 << 20))
_SSD = _Device(21500.0, 1200.0 * (1 << 20))
_WRITES_OF_A_CHUNK = 2.0


def pool_loads(rates: Mapping[int, PoolRates], pools: Mapping[int, Pool],
               osds: Mapping[int, Osd]) -> Dict[int, PoolLoad]:
    """Returns pool id → its load, for pools of known rates."""
    found: Dict[int, PoolLoad] = {}
    for pool_id, rate in rates.items():
        pool = pools.get(pool_id)
        if pool is None or not pool.pg_num:   # deleted since
            continue
        give_way()
        device = _HDD if _is_on_disks(pool, osds) else _SSD
        pgs = pool.pg_num
        writes = rate.writes / pgs
        if pool.erasure:
            writes *= _WRITES_OF_A_CHUNK
        found[pool_id] = PoolLoad(
            reading=device.load(rate.reads / pgs, rate.read_bytes / pool.chunks),
            writing=device.load(writes, rate.written_bytes / pool.chunks),
            reads=rate.reads,
            writes=rate.writes)
    return found


def _is_on_disks(pool: Pool, osds: Mapping[int, Osd]) -> bool:
    """Returns True if a PG of the pool may be on a class of rotating disks, by its name."""
    for block in pool.blocks:
        for number in block.osds:
            if number in osds and "hdd" in osds[number].device_class:
                return True
    return not pool.blocks   # nobody knows where


#: An OSD measures its capacity at its first start, sometimes while others use the device.
_SLOWEST, _FASTEST = 0.5, 2.0


def relative_speeds(capacities: Mapping[int, float], osds: Mapping[int, Osd]) -> Dict[int, float]:
    """Returns OSD id → its capacity as a ratio of the median of its class; an OSD of unknown
    capacity is left out. `capacities`: OSD id → operations a second."""
    known = [(osds[number].device_class, number) for number in capacities if number in osds]
    speeds: Dict[int, float] = {}
    for numbers in grouped(known).values():
        middle = median([capacities[number] for number in numbers])
        for number in numbers:
            speeds[number] = min(_FASTEST, max(_SLOWEST, capacities[number] / middle))
    return speeds


_CAPACITIES = ("osd_mclock_max_capacity_iops_hdd", "osd_mclock_max_capacity_iops_ssd")


def capacities_of(config: str) -> Dict[int, float]:
    """Returns OSD id → operations a second that its device can do, by the output of `config dump`;
    empty if that is garbled."""
    found: Dict[int, float] = {}
    try:
        for entry in json.loads(config):
            who, _, number = entry["section"].partition(".")
            if who == "osd" and number.isdigit() and entry["name"] in _CAPACITIES:
                found[int(number)] = float(entry["value"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return {osd: iops for osd, iops in found.items() if 0.0 < iops < float("inf")}
