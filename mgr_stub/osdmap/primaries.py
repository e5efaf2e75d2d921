"""The primary of a PG: set by pg_upmap_primaries, primary affinity, and nonprimary shards.

The hash of the affinity is that of OSDMap::_apply_primary_affinity. In a pool with EC optimizations
(Ceph 20) the shards in `nonprimary_shards` cannot be primary; if `up` begins with one of them, the
PG keeps a permanent pg_temp entry. The osdmap stores such entries with the shards that can be
primary first; reported acting sets are in the order of the shards.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence
from typing import Mapping as MappingType

from ..crush.constants import NONE, WEIGHT_ONE
from ..crush.hashes import hash2
from ..crush.placement_seed import has_hashpspool, placement_seed
from .upmap import Mapping

Osds = MappingType[int, MappingType[str, Any]]


def with_primary(mapping: Mapping, primary: Optional[int],
                 is_out: Callable[[int], bool]) -> Mapping:
    """The mapping with the primary in front, if that is a member and not out.

    As OSDMap::_apply_upmap does for pg_upmap_primaries.
    """
    if primary is None or primary not in mapping or is_out(primary):
        return mapping
    swapped = list(mapping)
    place = swapped.index(primary)
    swapped[0], swapped[place] = primary, swapped[0]
    return tuple(swapped)


def has_affinities(osds: Osds) -> bool:
    """True if any OSD has a primary affinity other than 1."""
    return any(float(entry.get("primary_affinity", 1.0)) != 1.0 for entry in osds.values())


def primary_place(members: Sequence[int], osds: Osds, pool: MappingType[str, Any],
                  position: int) -> int:
    """Index of the primary among the members of a PG's `up`; -1 if there is none."""
    present = [place for place, osd in enumerate(members) if osd != NONE]
    if not present or all(_affinity(osds, members[place]) >= WEIGHT_ONE for place in present):
        return present[0] if present else -1
    pgp_num = int(pool.get("pg_placement_num") or pool["pg_num"])
    seed = placement_seed(int(pool["pool"]), position, pgp_num, has_hashpspool(pool))
    for place in present:
        affinity = _affinity(osds, members[place])
        if affinity >= WEIGHT_ONE or hash2(seed, members[place]) >> 16 < affinity:
            return place
    return present[0]


def _affinity(osds: Osds, osd: int) -> int:
    return int(float(osds.get(osd, {}).get("primary_affinity", 1.0)) * WEIGHT_ONE)


def with_primary_first(members: Mapping, osds: Osds, pool: MappingType[str, Any],
                      position: int) -> Mapping:
    """The `up` of a replicated PG with its primary in front."""
    place = primary_place(members, osds, pool, position)
    if place <= 0:
        return members
    return (members[place], *members[:place], *members[place + 1:])


def nonprimary_shards(pool: MappingType[str, Any]) -> FrozenSet[int]:
    """Shards of a pool's PGs that cannot be primary, from its entry in the dump: `{1,2,3}`."""
    shown = str(pool.get("nonprimary_shards", "")).strip("{}")
    return frozenset(int(word) for word in shown.split(",") if word)


def _order(size: int, pool: Dict[str, Any]) -> List[int]:
    unable = nonprimary_shards(pool)
    return sorted(range(size), key=lambda shard: (shard in unable, shard))


def as_kept(acting: Sequence[int], pool: Dict[str, Any]) -> Mapping:
    """An acting set in shard order, reordered as pg_temp stores it."""
    return tuple(acting[shard] for shard in _order(len(acting), pool))


def in_shard_order(temp: Sequence[int], pool: Dict[str, Any]) -> Mapping:
    """A pg_temp entry, reordered into shard order."""
    found = [NONE] * len(temp)
    for osd, shard in zip(temp, _order(len(temp), pool)):
        found[shard] = osd
    return tuple(found)
