"""OSDMap and CRUSHMap of the `mgr_module` API."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from ..crush.hashes import NONE, stable_mod
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import OsdMap, pgids_of


class CRUSHMap:
    """The CRUSH map of one osdmap."""

    def __init__(self, crush: CrushMap, release: int) -> None:
        self._crush = crush
        self._release = release

    def dump(self) -> Dict[str, Any]:
        return self._crush.dump(self._release)


class OSDMapIncremental:
    """Changes that OSDMap.apply_incremental makes in a copy of the map; nothing reaches a cluster.

    Only reweights are simulated.
    """

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self.reweights: Dict[int, float] = {}

    def get_epoch(self) -> int:
        return self._epoch

    def set_osd_reweights(self, weightmap: Dict[int, float]) -> None:
        """Sets {osd: reweight 0..1}, 0 for out; the key and the value types are checked as in C++.
        """
        for osd, reweight in weightmap.items():
            if not isinstance(osd, int) or not isinstance(reweight, (int, float)):
                raise SystemError("returned NULL without setting an exception")
            self.reweights[osd] = float(reweight)


class OSDMap:
    """One epoch of the osdmap, unchanged by later ones.

    `reweighted` makes the map of other reweights of this one.
    """

    def __init__(self, osdmap: OsdMap, crush: CrushMap, release: int,
                 count: Callable[[str], None],
                 reweighted: Callable[[OsdMap, Dict[int, float]], OsdMap]) -> None:
        self._map = osdmap
        self._crush = crush
        self._release = release
        self._count = count
        self._reweighted = reweighted

    def new_incremental(self) -> OSDMapIncremental:
        return OSDMapIncremental(self._map.epoch + 1)

    def apply_incremental(self, inc: OSDMapIncremental) -> OSDMap:
        """Returns a copy of the map with the changes; an incremental of another epoch ends Ceph's
        mgr.
        """
        self._count("apply_incremental")
        assert inc.get_epoch() == self._map.epoch + 1, "an incremental of another epoch"
        return OSDMap(self._reweighted(self._map, inc.reweights), self._crush, self._release,
                      self._count, self._reweighted)

    def get_epoch(self) -> int:
        return self._map.epoch

    def get_crush_version(self) -> int:
        return int(self._map.rest.get("crush_version", 1))

    def dump(self) -> Dict[str, Any]:
        self._count("osdmap.dump")
        return self._map.dump(self._release)

    def get_crush(self) -> CRUSHMap:
        return CRUSHMap(self._crush, self._release)

    def get_pools(self) -> Dict[int, Dict[str, Any]]:
        return {pool["pool"]: pool for pool in self.dump()["pools"]}

    def _pool(self, pool_id: int) -> Dict[str, Any]:
        if pool_id not in self._map.pools:
            # the error of Ceph 16's C extension for a wrong pool id
            raise SystemError("returned NULL without setting an exception")
        return self._map.pools[pool_id]

    def map_pool_pgs_up(self, poolid: int) -> Dict[str, List[int]]:
        self._count("map_pool_pgs_up")
        up = self._map.up
        return {pgid: list(up.get(pgid, ())) for pgid in pgids_of(poolid, self._pool(poolid))}

    def pg_to_up_acting_osds(self, pool_id: int, ps: int) -> Dict[str, Any]:
        osdmap = self._map   # modules call this for every PG
        pool = osdmap.pools.get(pool_id) or self._pool(pool_id)
        pg_num = int(pool["pg_num"])
        if ps >= pg_num:   # folded as Ceph does (raw_pg_to_pg)
            ps = stable_mod(ps, pg_num)
        pgid = f"{pool_id}.{ps:x}"
        up = osdmap.up.get(pgid, ())
        primary = up[0] if up else -1
        if up and (primary == NONE or osdmap.has_affinities):
            primary = osdmap.up_primary(pgid)
        if pgid not in osdmap.pg_temp:  # most PGs; the hot path
            return {"up": list(up), "acting": list(up), "up_primary": primary,
                    "acting_primary": primary}
        acting = osdmap.acting(pgid)
        return {"up": list(up), "acting": list(acting), "up_primary": primary,
                "acting_primary": osdmap.acting_primary(pgid)}
