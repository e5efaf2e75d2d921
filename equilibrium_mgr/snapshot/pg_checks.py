"""Why a PG may not be moved: by its placement, its state, what is known of its OSDs.

Each check returns one of `immovable_reasons`, or None.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from . import immovable_reasons as reasons
from .immovable_reasons import Immovable
from .model import Osd, Pool, UpmapItems, pool_of
from .sizes.omap import is_much_omap
from .upmap_items import invert_items


class CheckedPlacement(NamedTuple):
    """The checked placement of one PG, and the up set and items that it holds for."""

    up: Tuple[int, ...]
    items: UpmapItems
    raw: Tuple[int, ...]       # what CRUSH alone gives; `up` where that is not known
    immovable: Optional[Immovable]   # why the placement forbids moving the PG


def check_placement(pool: Pool, up: Tuple[int, ...], items: UpmapItems,
                    is_out: Callable[[int], bool]) -> CheckedPlacement:
    """Recovers what CRUSH alone gives a PG, and checks its placement by the pool's rule."""
    raw = invert_items(up, items, is_out) if items else up
    if raw is not None and pool.rule is not None and pool.rule.blocks_overlap:
        if any(source in raw and target in raw for source, target in items):
            raw = None  # CRUSH may have chosen one OSD twice
    return CheckedPlacement(up, items, raw or up, _fault(pool, up, raw))


def _fault(pool: Pool, up: Tuple[int, ...], raw: Optional[Tuple[int, ...]]) -> Optional[Immovable]:
    if pool.rule is None:
        return pool.immovable
    if len(up) != pool.size or NO_OSD in up:
        return reasons.NO_OSD_FOR_SHARD
    if raw is None:
        return reasons.RAW_UNKNOWN
    broken = pool.rule.violation(up)
    if (broken or pool.rule.needs_full_check) and pool.rule.upmap_rejection(up):
        return reasons.MONITOR_REJECTS
    if broken:
        return reasons.BREAKS_RULE
    return None


def placed_by_others(osd_map: Mapping[str, Any], pools: Mapping[int, Pool]
                     ) -> Dict[str, Immovable]:
    """pgid → reason of PGs that somebody else has placed in full, or in an order that is not that
    of their rule."""
    pinned = {e["pgid"]: reasons.FULL_UPMAP for e in osd_map.get("pg_upmap", [])}
    for entry in osd_map.get("pg_upmap_primaries", []):
        if not _has_free_primaries(pools.get(pool_of(entry["pgid"]))):
            pinned.setdefault(entry["pgid"], reasons.UPMAP_PRIMARY)
    return pinned


def _has_free_primaries(pool: Optional[Pool]) -> bool:
    """True for a pool of which any OSD of a PG may be its primary: the rule fills all positions
    alike, so that the order of an up set tells nothing."""
    return (pool is not None and not pool.erasure and pool.rule is not None
            and len(pool.rule.blocks) == 1)


def osd_not_reported(up: Sequence[int], awaited: FrozenSet[int]) -> Optional[Immovable]:
    """`awaited`: OSDs without statistics. What they use is unknown, and so is what a move adds."""
    if awaited and not awaited.isdisjoint(up):
        return reasons.OSD_NOT_REPORTED
    return None


def untrusted_state(state: str) -> Optional[Immovable]:
    """Returns a reason for a state in which no copy of a PG should be given up, or None."""
    if "inconsistent" in state or "failed_repair" in state:
        return reasons.INCONSISTENT
    return reasons.STALE if "stale" in state else None


def omap_on_small_osd(omap_bytes: int, data_bytes: int, up: Sequence[int],
                      osds: Mapping[int, Osd], nearfull_ratio: float) -> Optional[Immovable]:
    """Returns a reason for a PG on a small OSD; None where one of its OSDs is above nearfull."""
    if not is_much_omap(omap_bytes, data_bytes) or any(
            osd in osds and osds[osd].exceeds(nearfull_ratio)
            for osd in up):
        return None
    return reasons.OMAP_ON_SMALL_OSD
