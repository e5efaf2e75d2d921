"""Acting sets of PGs with a pg_temp, as Ceph computes them (OSDMap::_get_temp_osds)."""
from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, List, Mapping, Sequence, Tuple

from ..crush.placement import NO_OSD
from .model import pool_of
from .reading import Reading

_ERASURE = 3
_OPTIMIZED = "ec_optimizations"


def acting_sets(reading: Reading) -> Mapping[str, Sequence[int]]:
    """pgid → acting set of all PGs where it may differ from the up set."""
    if reading.acting is not None:
        return reading.acting
    return acting_from_pg_temp(reading.osd_map)


def acting_from_pg_temp(osd_map: Mapping[str, Any]) -> Dict[str, Tuple[int, ...]]:
    """pgid → acting set by the pg_temp of an osdmap dump, without OSDs that are down.

    A pg_temp without any OSD that is up has no effect.
    """
    pools = {pool["pool"]: pool for pool in osd_map.get("pools", ())}
    up = {osd["osd"] for osd in osd_map.get("osds", ())
          if osd.get("up", "up" in osd.get("state", ()))}
    found: Dict[str, Tuple[int, ...]] = {}
    for entry in osd_map.get("pg_temp", ()):
        pool = pools.get(pool_of(entry["pgid"]), {})
        osds = in_shard_order(entry["osds"], nonprimary_shards(pool))
        if pool.get("type") == _ERASURE:
            osds = [osd if osd in up else NO_OSD for osd in osds]
        else:
            osds = [osd for osd in osds if osd in up]
        if any(osd != NO_OSD for osd in osds):
            found[entry["pgid"]] = tuple(osds)
    return found


def nonprimary_shards(pool: Mapping[str, Any]) -> FrozenSet[int]:
    """Shards that can never be primary; since Ceph 20 a text such as `{1,2,3}` in the dump."""
    shards = pool.get("nonprimary_shards") or ()
    if isinstance(shards, str):
        return frozenset(int(number) for number in re.findall(r"\d+", shards))
    return frozenset(int(number) for number in shards)


def is_optimized(pool: Mapping[str, Any]) -> bool:
    """True where an erasure-coded pool has shards of different sizes (`allow_ec_optimizations`)."""
    return _OPTIMIZED in str(pool.get("flags_names", "")) or bool(nonprimary_shards(pool))


def in_shard_order(osds: Sequence[int], nonprimary: FrozenSet[int]) -> List[int]:
    """A pg_temp in the order of the shards.

    Of an EC-optimized pool the monitor keeps the shards that can be primary first, then the others.
    """
    if not nonprimary or max(nonprimary) >= len(osds):
        return list(osds)
    primary, others = iter(osds[:len(osds) - len(nonprimary)]), iter(osds[-len(nonprimary):])
    return [next(others if shard in nonprimary else primary) for shard in range(len(osds))]
