"""Upmap items as Ceph treats them: applying, inverting, verifying and cleaning.

Independent of the module's own legality check on purpose: the simulated monitor must be able to
disagree with it.

The primary of a PG: set by pg_upmap_primaries, primary affinity, and nonprimary shards.

The hash of the affinity is that of OSDMap::_apply_primary_affinity. In a pool with EC optimizations
(Ceph 20) the shards in `nonprimary_shards` cannot be primary; if `up` begins with one of them, the
PG keeps a permanent pg_temp entry. The osdmap stores such entries with the shards that can be
primary first; reported acting sets are in the order of the shards.
"""
from __future__ import annotations

from typing import (
    Any, Callable, Container, Dict, FrozenSet, Iterable, List, Mapping as MappingType, Optional,
    Sequence, Set, Tuple)

from ..crush.hashes import NONE, WEIGHT_ONE, has_hashpspool, hash2, placement_seed
from .crush_map import CrushMap


Items = Tuple[Tuple[int, int], ...]
Mapping = Tuple[int, ...]


def apply_items(raw: Sequence[int], items: Items, is_out: Callable[[int], bool]) -> Mapping:
    """Returns the mapping with the items applied in order, as OSDMap::_apply_upmap does.

    A pair does nothing when its target is already in the set, its source is not, or its target
    is out.
    """
    now = list(raw)
    for source, target in items:
        if target in now or source not in now or is_out(target):
            continue
        now[now.index(source)] = target
    return tuple(now)


def invert_items(mapped: Sequence[int], items: Items) -> Mapping:
    """Returns the raw mapping of a complete mapping; the caller verifies it by applying the items.
    """
    raw = list(mapped)
    for source, target in reversed(items):
        if target in raw and source not in raw:
            raw[raw.index(target)] = source
    return tuple(raw)


def with_holes(members: Iterable[int], gone: Container[int]) -> Mapping:
    """Returns the mapping with NONE in place of some OSDs."""
    return tuple(NONE if osd in gone else osd for osd in members)


def _fan_out(step: Dict[str, object], size: int) -> int:
    number = int(str(step.get("num", 0)))
    if number > 0:
        return number
    return number + size


def verify(crush: CrushMap, rule_id: int, size: int, up: Sequence[int]) -> Optional[str]:
    """Returns why the monitor would reject this mapping, or None (CrushWrapper::verify_upmap)."""
    rule = crush.rules.get(rule_id)
    if rule is None:
        return f"rule {rule_id} does not exist"
    cursor = 0
    root: Optional[int] = None
    levels: Dict[str, int] = {}
    for step in rule["steps"]:
        operation = step["op"]
        if operation == "take":
            root = step["item"]
        elif operation.startswith("choose") and operation != "choosemsr":   # because it knows none
            number = _fan_out(step, size)
            # only the first step of a type in a take counts
            levels.setdefault(step["type"], number)
            problem = _check_step(crush, rule_id, operation, step["type"], number, up)
            if problem:
                return problem
        elif operation == "emit":
            count = 1
            for number in levels.values():
                count *= number
            if root is not None and root < 0:
                below = crush.weights_below(root)
                for osd in up[cursor:cursor + count]:
                    if osd not in below:
                        return f"osd.{osd} is not under bucket {root}"
                cursor += count
            root = None
            levels = {}
    return None


def _check_step(crush: CrushMap, rule_id: int, operation: str, type_name: str, number: int,
                up: Sequence[int]) -> Optional[str]:
    if type_name == "osd":
        return None
    held: Dict[int, Set[int]] = {}
    for osd in up:
        parent = crush.parent_of_type(osd, type_name, rule_id)
        if parent:
            held.setdefault(parent, set()).add(osd)  # an OSD listed twice counts once
    if operation.startswith("chooseleaf"):
        for parent, osds in held.items():
            if len(osds) > 1:
                return f"{len(osds)} OSDs under {type_name} {parent}"
    elif len(held) > number:
        return f"{len(held)} buckets of type {type_name}, the rule chooses {number}"
    return None


def clean(crush: CrushMap, rule_id: int, size: int, raw: Sequence[int], items: Items,
          reweight: Callable[[int], float], base: Optional[Sequence[int]] = None) -> Items:
    """Returns the items that OSDMap::check_pg_upmaps keeps; empty means that the entry is removed.

    `base` is a pg_upmap in place of `raw`; sources are searched in `raw` nevertheless.
    """
    def is_out(osd: int) -> bool:
        return reweight(osd) <= 0

    if base is None:
        base = raw
    up = apply_items(base, items, is_out)
    if verify(crush, rule_id, size, up) is not None:
        return ()
    weights = crush.rule_weights(rule_id)
    for osd in up:
        if weights.get(osd, 0.0) * reweight(osd) <= 0:
            return ()
    kept: List[Tuple[int, int]] = [
        (source, target) for source, target in items if source in raw and not is_out(target)]
    return tuple(kept)


Osds = MappingType[int, MappingType[str, Any]]


def with_primary(mapping: Mapping, primary: Optional[int],
                 is_out: Callable[[int], bool]) -> Mapping:
    """Returns the mapping with the primary in front, if that is a member and not out.

    As OSDMap::_apply_upmap does for pg_upmap_primaries.
    """
    if primary is None or primary not in mapping or is_out(primary):
        return mapping
    swapped = list(mapping)
    place = swapped.index(primary)
    swapped[0], swapped[place] = primary, swapped[0]
    return tuple(swapped)


def has_affinities(osds: Osds) -> bool:
    """Returns True if any OSD has a primary affinity other than 1."""
    return any(float(entry.get("primary_affinity", 1.0)) != 1.0 for entry in osds.values())


def primary_place(members: Sequence[int], osds: Osds, pool: MappingType[str, Any],
                  position: int) -> int:
    """Returns the index of the primary among the members of a PG's `up`; -1 if there is none."""
    present = [place for place, osd in enumerate(members) if osd != NONE]
    if not present or all(_affinity(osds, members[place]) >= WEIGHT_ONE for place in present):
        if present:
            return present[0]
        return -1
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
    """Returns the `up` of a replicated PG with its primary in front."""
    place = primary_place(members, osds, pool, position)
    if place <= 0:
        return members
    return (members[place], *members[:place], *members[place + 1:])


def nonprimary_shards(pool: MappingType[str, Any]) -> FrozenSet[int]:
    """Returns the shards of a pool's PGs that cannot be primary, from its entry in the dump:
    `{1,2,3}`.
    """
    shown = str(pool.get("nonprimary_shards", "")).strip("{}")
    return frozenset(int(word) for word in shown.split(",") if word)


def _order(size: int, pool: Dict[str, Any]) -> List[int]:
    unable = nonprimary_shards(pool)
    return sorted(range(size), key=lambda shard: (shard in unable, shard))


def as_kept(acting: Sequence[int], pool: Dict[str, Any]) -> Mapping:
    """Returns an acting set in shard order, reordered as pg_temp stores it."""
    return tuple(acting[shard] for shard in _order(len(acting), pool))


def in_shard_order(temp: Sequence[int], pool: Dict[str, Any]) -> Mapping:
    """Returns a pg_temp entry, reordered into shard order."""
    found = [NONE] * len(temp)
    for osd, shard in zip(temp, _order(len(temp), pool)):
        found[shard] = osd
    return tuple(found)
