"""The up sets that the osdmap would have with other reweights, for modules that ask `what if`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping as MappingType, Optional

from ..crush.placement_seed import stable_mod
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import OsdMap, up_from_mapping
from ..osdmap.primaries import with_primary, with_primary_first
from ..osdmap.upmap import Mapping, apply_items
from .cluster import Cluster
from .pg import Pg
from .raw_mapping import Topology


class UpSets(Dict[str, Mapping]):
    """{pgid: up set} under a map with other reweights, each computed when it is first asked for.

    As in a mgr's copy of the map, upmap items are applied as they stand: no monitor cleans them.
    """

    def __init__(self, cluster: Cluster, base: OsdMap, crush: CrushMap, after: OsdMap) -> None:
        super().__init__()
        self._cluster = cluster
        self._base = base
        self._after = after
        self._before_change = Topology(crush, base.osds, base.pools)
        self._after_change = Topology(crush, after.osds, after.pools)
        self._raw: Dict[str, Mapping] = {}

    def get(self, pgid: str, default: Any = ()) -> Any:
        if pgid not in self._base.up:
            return default
        if pgid not in self:
            self[pgid] = self._up(pgid)
        return self[pgid]

    def _up(self, pgid: str) -> Mapping:
        pg = self._cluster.pgs.get(pgid)
        raw = None if pg is None else self._raw_of(pg)
        return self._base.up[pgid] if pg is None or raw is None else _up(pg, raw, self._after)

    def _raw_of(self, pg: Pg) -> Optional[Mapping]:
        pool = self._after.pools[pg.pool_id]
        parent = stable_mod(pg.order[1], int(pool.get("pg_placement_num") or pool["pg_num"]))
        if parent != pg.order[1]:
            folded = self._cluster.pgs.get(f"{pg.pool_id}.{parent:x}")
            return None if folded is None else self._raw_of(folded)
        if pg.pgid not in self._raw:
            found = self._new_raw(pg)
            if found is None:
                return None
            self._raw[pg.pgid] = found
        return self._raw[pg.pgid]

    def _new_raw(self, pg: Pg) -> Optional[Mapping]:
        mapping, before, after = (self._cluster.raw_mapping, self._before_change,
                                  self._after_change)
        if pg.raw is not None:
            return mapping.foreseen(pg, before, after)
        # it lacks an OSD: CRUSH's result is its raw mapping where that explains its up set
        if _up(pg, mapping.compute(before, *pg.order, before.reweights()),
               self._base) != self._base.up[pg.pgid]:
            return None
        return mapping.compute(after, *pg.order, after.reweights())


def _up(pg: Pg, raw: Mapping, osdmap: OsdMap) -> Mapping:
    """The up set of a PG with a raw mapping under a map."""
    def is_out(osd: int) -> bool:
        return osdmap.exists(osd) and osdmap.reweight(osd) <= 0
    full = osdmap.full_upmaps.get(pg.pgid)
    if full is not None and not any(is_out(osd) for osd in full):
        raw = full
    mapped = with_primary(apply_items(raw, osdmap.upmap_items.get(pg.pgid, ()), is_out),
                          osdmap.chosen_primaries.get(pg.pgid), is_out)
    up = up_from_mapping(mapped, pg.erasure, osdmap)
    if pg.erasure or not osdmap.has_affinities:
        return up
    return with_primary_first(up, osdmap.osds, osdmap.pools[pg.pool_id], pg.order[1])


def with_reweights(cluster: Cluster, base: OsdMap, crush: CrushMap, osdmap: OsdMap,
                   reweights: MappingType[int, float]) -> OsdMap:
    """The epoch after `osdmap` with other reweights. `base` is the newest map of the cluster,
    from which its raw mappings come; `osdmap` is that one or one made of it here."""
    osds = dict(osdmap.osds)
    for osd, reweight in reweights.items():
        if osd in osds:   # Ceph's map has a weight for every id; only existing OSDs are mapped to
            osds[osd] = {**osds[osd], "weight": max(0.0, min(1.0, reweight)),
                         "in": 1 if reweight > 0 else 0}
    after = replace(osdmap, osds=osds, epoch=osdmap.epoch + 1)
    return replace(after, up=UpSets(cluster, base, crush, after))
