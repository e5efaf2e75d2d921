"""What PGs are built from at one look.

Why a PG may not be moved: by its placement, its state, what is known of its OSDs.

Each check returns one of `immovable_reasons`, or None.
"""
from __future__ import annotations

from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD
from ..runtime.time_slice import give_way, piecewise
from . import immovable_reasons as reasons
from .immovable_reasons import Immovable
from .model import Osd, PgRecord, Pool, Reading, UpmapItems, pool_of
from .upmap_items import invert_items, items_by_pg


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
        pool = pools.get(pool_of(entry["pgid"]))
        # where one block fills all positions alike, the order of an up set tells nothing
        if pool is None or pool.erasure or pool.rule is None or len(pool.rule.blocks) != 1:
            pinned.setdefault(entry["pgid"], reasons.UPMAP_PRIMARY)
    return pinned


def untrusted_state(state: str) -> Optional[Immovable]:
    """Returns a reason for a state in which no copy of a PG should be given up, or None."""
    if "inconsistent" in state or "failed_repair" in state:
        return reasons.INCONSISTENT
    return reasons.STALE if "stale" in state else None


#: The record of a PG that the mgr's statistics do not have.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)
_CHECKED_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond


class PlacementRules(NamedTuple):
    """What the check of a PG's placement depends on beside its up set and items: where it differs
    all PGs are checked again. Such changes are few."""

    crush: CrushHierarchy   # the very object: another version is another one
    pools: Tuple[Tuple[int, int, int, bool], ...]
    in_osds: FrozenSet[int]   # of which CRUSH may choose


class Look(NamedTuple):
    """A reading, and what was derived from it."""

    reading: Reading
    pgids: Sequence[str]                  # of the PGs whose pool is known
    pools: Mapping[int, Pool]
    osds: Mapping[int, Osd]
    items: Mapping[str, UpmapItems]
    acting: Mapping[str, Sequence[int]]   # pgid → acting set where it may differ from the up set
    pinned: Mapping[str, Immovable]       # pgid → who else has placed it
    placement: PlacementRules
    with_statistics: FrozenSet[int]

    def acting_set(self, pgid: str) -> Sequence[int]:
        """The acting set of a PG."""
        return self.acting.get(pgid) or tuple(self.reading.up[pgid])

    def record(self, pgid: str) -> PgRecord:
        """The statistics of a PG, NO_RECORD where there are none."""
        return self.reading.records.get(pgid, NO_RECORD)

    def is_out(self, osd: int) -> bool:
        """True where CRUSH may not choose an OSD."""
        return osd not in self.placement.in_osds


def take_look(reading: Reading, crush: CrushHierarchy, pools: Mapping[int, Pool],
              osds: Mapping[int, Osd]) -> Look:
    """What follows from a reading at once."""
    osd_map = reading.osd_map
    placement = PlacementRules(
        crush, tuple((p.id, p.size, p.rule_id, p.erasure) for p in pools.values()),
        frozenset([osd.id for osd in osds.values() if osd.reweight > 0.0]))
    give_way()
    pgids: List[str] = [pgid for pgid in piecewise(reading.up, _CHECKED_PGS_A_PIECE)
                        if pool_of(pgid) in pools]
    return Look(reading, pgids, pools, osds, items_by_pg(osd_map), reading.acting,
                placed_by_others(osd_map, pools), placement,
                frozenset([osd.id for osd in osds.values() if osd.has_statistics]))
