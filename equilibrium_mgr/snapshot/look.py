"""What PGs are built from at one look."""
from __future__ import annotations

from typing import Callable, FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import give_way, piecewise
from .acting_sets import acting_sets
from .immovable_reasons import Immovable
from .model import Osd, Pool, UpmapItems, pool_of
from .pg_checks import placed_by_others
from .reading import PgRecord, Reading
from .upmap_items import items_by_pg

#: The record of a PG that the mgr's statistics do not have.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)
_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond


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

    def is_out(self) -> Callable[[int], bool]:
        """A function that tells of an OSD whether CRUSH may not choose it."""
        in_osds = self.placement.in_osds

        def is_out(osd: int) -> bool:
            return osd not in in_osds
        return is_out


def take_look(reading: Reading, crush: CrushHierarchy, pools: Mapping[int, Pool],
              osds: Mapping[int, Osd]) -> Look:
    """What follows from a reading at once."""
    osd_map = reading.osd_map
    placement = PlacementRules(
        crush, tuple((p.id, p.size, p.rule_id, p.erasure) for p in pools.values()),
        frozenset([osd.id for osd in osds.values() if osd.reweight > 0.0]))
    give_way()
    pgids: List[str] = [pgid for pgid in piecewise(reading.up, _PGS_A_PIECE)
                        if pool_of(pgid) in pools]
    return Look(reading, pgids, pools, osds, items_by_pg(osd_map), acting_sets(reading),
                placed_by_others(osd_map, pools), placement,
                frozenset([osd.id for osd in osds.values() if osd.has_statistics]))
