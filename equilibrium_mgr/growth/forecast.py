"""When OSDs become nearfull if pools go on growing as they do, on a placement of their shards."""
from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ..plan.usage import ShardCounts
from ..snapshot.model import Snapshot
from .recorder import Growth
from .trend import GROWING

#: The measured growth of a class may differ from that of its pools' shards by this factor: what it
#: takes beside shards, and what compresses.
_LEAST_FACTOR, _MOST_FACTOR = 0.5, 2.0
#: A shard above this ratio of an OSD keeps OSDs from being equally full.
_FINE_SHARD = 0.02


class Nearfull(NamedTuple):
    """The OSD that is nearfull first."""

    days: float   # 0 where it is already
    osd: int


class Placed(NamedTuple):
    """A placement: what OSDs use, and the shards of the pools on them."""

    used: Mapping[int, int]   # OSD id → bytes
    shards: ShardCounts       # pool id → OSD id → shards


class Forecast(NamedTuple):
    """When OSDs of a placement are nearfull."""

    rates: Mapping[int, float]              # OSD id → bytes a day
    #: OSD id → days until it is nearfull; those that grow. OSDs that are being drained are left out
    days: Mapping[int, float]
    utilization: Mapping[int, float] = {}   # OSD id → of the placement, a ratio
    age_days: float = 0.0                   # of the placement: `days` are from now on

    def first_of_pool(self, placed: Placed, pool: int) -> Optional[Nearfull]:
        """The first of the OSDs that hold shards of a pool."""
        return self.first_of(osd for osd, count in placed.shards.get(pool, {}).items()
                             if count > 0.0)

    def first_of(self, osds: Iterable[int]) -> Optional[Nearfull]:
        """The first of some OSDs, of equals the fullest; None where none of them grows."""
        known = [(self.days[osd], -self.utilization.get(osd, 0.0), osd)
                 for osd in osds if osd in self.days]
        if not known:
            return None
        days, _, osd = min(known)
        return Nearfull(days, osd)


def forecast(snapshot: Snapshot, growth: Growth, placed: Placed,
             age_days: float = 0.0) -> Forecast:
    """The forecast for a placement that was so many days ago, and has grown since. New data is
    spread as the shards of its pool are."""
    rates: Dict[int, float] = {}
    for pool in snapshot.pools.values():
        trend = growth.pool(pool.id)
        if not trend.rate or pool.pg_num <= 0:
            continue
        each = trend.rate / (pool.pg_num * pool.data_shards)
        for osd, count in placed.shards.get(pool.id, {}).items():
            rates[osd] = rates.get(osd, 0.0) + count * each
    factors = _factors(snapshot, growth, rates)
    days: Dict[int, float] = {}
    utilization: Dict[int, float] = {}
    for osd in _measured(snapshot):
        entry = snapshot.osds[osd]
        if osd in rates:
            rates[osd] *= factors.get(entry.device_class, 1.0)
        if entry.drained:
            continue   # what it has is to go elsewhere
        utilization[osd] = placed.used.get(osd, 0) / entry.size_bytes
        left = snapshot.nearfull_ratio * entry.size_bytes - placed.used.get(osd, 0)
        if left <= 0.0:
            days[osd] = 0.0
        elif rates.get(osd, 0.0) > 0.0:
            days[osd] = max(0.0, left / rates[osd] - age_days)
    return Forecast(rates, days, utilization, age_days)


def days_at_bound(snapshot: Snapshot, growth: Forecast, name: str, bound: Optional[float],
                  known: Sequence[Optional[Nearfull]] = ()) -> Optional[float]:
    """Days until the OSDs of a class that limit it are nearfull if it were as even as the rules
    allow: all of its data grows by one ratio, that of drained OSDs too, which the bound has on the
    others. None where it does not grow, or the bound is not known. Never less than the `known` days
    of placements: where a pool that grows lies on emptier OSDs, these are more."""
    osds = members(snapshot, name)
    rate = sum(growth.rates.get(osd, 0.0) for osd in osds)
    if bound is None or rate <= 0.0 or bound <= 0.0:
        return None
    used = sum(snapshot.osds[osd].target_bytes for osd in osds)
    days = max(0.0, snapshot.nearfull_ratio / bound - 1.0) * used / rate
    return max([days - growth.age_days, 0.0, *(one.days for one in known if one is not None)])


def members(snapshot: Snapshot, name: str) -> List[int]:
    """The OSDs of a device class that are in and report."""
    return [osd for osd in _measured(snapshot) if snapshot.osds[osd].device_class == name]


def _measured(snapshot: Snapshot) -> List[int]:
    return [osd.id for osd in snapshot.osds.values()
            if osd.has_statistics and osd.is_in and osd.size_bytes > 0]


def _factors(snapshot: Snapshot, growth: Growth, rates: Mapping[int, float]) -> Dict[str, float]:
    """Device class → measured growth ÷ that of the pools' shards, where both grow."""
    sums: Dict[str, float] = {}
    for osd, rate in rates.items():
        entry = snapshot.osds.get(osd)
        if entry is not None and entry.is_in:
            sums[entry.device_class] = sums.get(entry.device_class, 0.0) + rate
    return {name: min(_MOST_FACTOR, max(_LEAST_FACTOR, growth.device_class(name).rate / total))
            for name, total in sums.items()
            if total > 0.0 and growth.device_class(name).state == GROWING}


class PgNumAdvice(NamedTuple):
    """More PGs for a pool whose shards are large beside its OSDs, or will be."""

    pg_num: int
    shard_ratio: float           # a shard of now ÷ the mean size of the pool's OSDs
    ahead_shard_ratio: float     # the same in `days_ahead` days
    advised_shard_ratio: float   # of now, with that pg_num
    shards_per_osd: float        # PG shards of all pools on an OSD of it now, the mean
    advised_shards_per_osd: float


def pg_num_advice(snapshot: Snapshot, placed: Placed, pool_id: int, max_shards: int,
                  days_ahead: float, trend_rate: float) -> Optional[PgNumAdvice]:
    """The smallest power of two for pg_num with which a shard, in `days_ahead` days, is at most 2 %
    of an OSD; as far as `max_shards` PG shards per OSD allow it (0: no limit). None where
    that is no more than it has."""
    pool, shards = snapshot.pools[pool_id], placed.shards.get(pool_id, {})
    sizes = [snapshot.osds[osd].size_bytes for osd in shards
             if osd in snapshot.osds and snapshot.osds[osd].size_bytes > 0]
    if not sizes or not pool.stored_bytes:
        return None
    mean = sum(sizes) / len(sizes)
    on_each = sum(counts.get(osd, 0.0) for counts in placed.shards.values()
                  for osd in shards) / len(shards)
    own = sum(shards.values()) / len(shards)
    ahead = pool.stored_bytes + max(0.0, days_ahead * trend_rate)

    def shard_ratio(pg_num: int, stored: float) -> float:
        return stored / (pg_num * pool.data_shards) / mean

    wanted = pool.pg_num
    while shard_ratio(wanted, ahead) > _FINE_SHARD:
        wider = _next_power(wanted)
        if max_shards and on_each - own + own * wider / pool.pg_num > max_shards:
            break
        wanted = wider
    if wanted == pool.pg_num:
        return None
    return PgNumAdvice(wanted, shard_ratio(pool.pg_num, pool.stored_bytes),
                       shard_ratio(pool.pg_num, ahead),
                       shard_ratio(wanted, pool.stored_bytes), on_each,
                       on_each - own + own * wanted / pool.pg_num)


def _next_power(count: int) -> int:
    return 1 << count.bit_length()
