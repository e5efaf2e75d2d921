"""What PGs are built from at one look, and which of them may be others than at the look before."""
from __future__ import annotations

from typing import (Any, Callable, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set,
                    Tuple)

from ...crush.hierarchy import CrushHierarchy
from ...runtime.amended_map import AmendedMap
from ...runtime.checkpoints import Checkpoint
from ..acting_sets import acting_sets
from ..immovable_reasons import Immovable
from ..model import Osd, Pool, UpmapItems, pool_of
from ..osds import full_ratios, smaller_than
from ..pg_checks import has_free_primaries, placed_by_others
from ..reading import PgRecord, Reading
from ..sizes.omap import is_reported_late
from ..sizes.osd_factors import ShardRatios
from ..sizes.shard_inputs import NO_RECORD
from ..upmap_items import items_by_pg


class PlacementRules(NamedTuple):
    """What the check of a PG's placement depends on beside its up set and items."""

    crush: CrushHierarchy   # the very object: another version is another one
    pools: Tuple[Tuple[int, int, int, bool], ...]
    in_osds: FrozenSet[int]   # of which CRUSH may choose


class Surroundings(NamedTuple):
    """What any PG may depend on: where it differs all PGs are built anew. Such changes are few."""

    placement: PlacementRules
    data_shards: Tuple[int, ...]          # of the pools
    classes: Mapping[int, str]            # OSD id → device class
    with_statistics: FrozenSet[int]
    small: FrozenSet[int]                 # OSDs on which omap cannot be told from RocksDB's files
    small_above_nearfull: FrozenSet[int]  # of all OSDs, where there are small ones
    omap_is_late: bool
    measured: Mapping[int, float]
    shard_ratios: ShardRatios
    ratios: Mapping[int, Tuple[Tuple[float, ...], Mapping[int, float]]]   # of uneven pools


class Look(NamedTuple):
    """A reading, and what was derived from it."""

    reading: Reading
    pools: Mapping[int, Pool]
    osds: Mapping[int, Osd]
    items: Mapping[str, UpmapItems]
    acting: Mapping[str, Sequence[int]]   # pgid → acting set where it may differ from the up set
    pinned: Mapping[str, Immovable]       # pgid → who else has placed it
    surroundings: Surroundings

    def acting_set(self, pgid: str) -> Sequence[int]:
        """The acting set of a PG."""
        return self.acting.get(pgid) or tuple(self.reading.up[pgid])

    def record(self, pgid: str) -> PgRecord:
        """The statistics of a PG, NO_RECORD where there are none."""
        found: PgRecord = self.reading.records.get(pgid, NO_RECORD)
        return found

    def is_out(self) -> Callable[[int], bool]:
        """A function that tells of an OSD whether CRUSH may not choose it."""
        in_osds = self.surroundings.placement.in_osds

        def is_out(osd: int) -> bool:
            return osd not in in_osds
        return is_out


def take_look(reading: Reading, crush: CrushHierarchy, pools: Mapping[int, Pool],
              osds: Mapping[int, Osd], shard_ratios: ShardRatios, before: Optional[Look],
              checkpoint: Checkpoint) -> Look:
    """`before`: the last look, of which is used what stands on the very same parts of an osdmap."""
    osd_map = reading.osd_map
    with_statistics = frozenset([osd.id for osd in osds.values() if osd.has_statistics])
    checkpoint()
    small = smaller_than(osds, reading.min_omap_osd_bytes) if reading.min_omap_osd_bytes else (
        frozenset())
    nearfull = full_ratios(osd_map).nearfull
    surroundings = Surroundings(
        PlacementRules(crush, tuple((p.id, p.size, p.rule_id, p.erasure) for p in pools.values()),
                       frozenset([osd.id for osd in osds.values() if osd.reweight > 0.0])),
        tuple(pool.data_shards for pool in pools.values()),
        {osd.id: osd.device_class for osd in osds.values()}, with_statistics, small,
        frozenset(osd.id for osd in osds.values() if osd.exceeds(nearfull)) if small
        else frozenset(), is_reported_late(osd_map), dict(reading.measured), shard_ratios,
        {pool.id: (pool.position_ratios, pool.osd_ratios) for pool in pools.values()
         if not pool.is_uniform})
    checkpoint()
    is_same_map = before is not None and _same(before.reading.osd_map, osd_map, "pg_upmap_items")
    items = before.items if before is not None and is_same_map else items_by_pg(osd_map)
    pinned = placed_by_others(osd_map, lambda pgid: reading.moves_primaries and has_free_primaries(
        pools.get(pool_of(pgid))))
    return Look(reading, pools, osds, items, acting_sets(reading), pinned, surroundings)


def changed_pgs(before: Look, now: Look, checkpoint: Checkpoint) -> Optional[Set[str]]:
    """pgids of PGs whose own figures have changed; None where any PG may be another one."""
    if before.surroundings != now.surroundings:
        return None
    changed: Set[str] = set()
    for old, new in ((before.reading.up, now.reading.up),
                     (before.reading.records, now.reading.records)):
        if not (isinstance(old, AmendedMap) and isinstance(new, AmendedMap)):
            return None   # somebody may change them in place
        found: Optional[List[str]] = new.changed_since(old, checkpoint)
        if found is None:
            return None
        changed.update(found)
    for earlier, later in ((before.acting, now.acting), (before.items, now.items),
                           (before.pinned, now.pinned)):
        changed.update(_different(earlier, later))
    return changed


def changed_pools(before: Look, now: Look) -> List[int]:
    """Ids of the pools whose PGs may move now and might not before, or the other way round."""
    return [pool.id for pool in now.pools.values()
            if pool.immovable != before.pools[pool.id].immovable]


def _same(one: Mapping[str, Any], other: Mapping[str, Any], part: str) -> bool:
    return part in one and one[part] is other.get(part)


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> List[str]:
    if one is other or one == other:
        return []
    return [pgid for pgid in one.keys() | other.keys() if one.get(pgid) != other.get(pgid)]
