"""Reads the osdmap, which is dumped once an epoch, and the sets of all PGs."""
from __future__ import annotations

from datetime import datetime
from typing import Any, Collection, Dict, Mapping, NamedTuple, Optional

from ..runtime.time_slice import give_way, piecewise
from ..runtime.work_counters import WorkCounters
from ..snapshot.model import pg_number, pool_of
from .mgr_api import MgrApi, OsdMapApi
from .up_sets import Osds, UpSets, read_up_sets

_MAPPED_A_PIECE = 50   # before it gives way again: about a millisecond


class OsdMapReading(NamedTuple):
    """The osdmap at one epoch."""

    osd_map: Mapping[str, Any]   # OSDMap.dump()
    crush: Mapping[str, Any]     # CRUSHMap.dump()
    up: UpSets                   # pgid → up set
    acting: Mapping[str, Osds]   # pgid → acting set, of PGs whose acting set is not their up set


class OsdMapReader:
    """Remembers the last reading."""

    def __init__(self, mgr: MgrApi, counters: WorkCounters) -> None:
        self._mgr = mgr
        self._counters = counters
        self._last: Optional[OsdMapReading] = None

    def read(self) -> OsdMapReading:
        """The newest osdmap; the very last reading where that is of its epoch."""
        osdmap = self._mgr.get_osdmap()
        if self._last is None or self._last.osd_map["epoch"] != osdmap.get_epoch():
            self._last = self._dumped(osdmap)
        return self._last

    def _dumped(self, osdmap: OsdMapApi) -> OsdMapReading:
        self._counters.add("osdmap_dumps")
        osd_map = osdmap.dump()
        give_way()
        up = read_up_sets(osdmap, osd_map["pools"], self._last.up if self._last is not None else {})
        temporary = [entry["pgid"] for entry in osd_map.get("pg_temp", ())]
        return OsdMapReading(osd_map, osdmap.get_crush().dump(), up,
                             self._acting_sets(osdmap, temporary, up))

    def _acting_sets(self, osdmap: OsdMapApi, pgids: Collection[str],
                     up: Mapping[str, Osds]) -> Dict[str, Osds]:
        """pgid → acting set, in the order of the shards, of PGs where it is not the up set."""
        acting: Dict[str, Osds] = {}
        for pgid in piecewise(pgids, _MAPPED_A_PIECE):
            if pgid in up:
                osds = tuple(osdmap.pg_to_up_acting_osds(
                    pool_of(pgid), pg_number(pgid))["acting"])
                if osds != up[pgid]:
                    acting[pgid] = osds
        return acting


def modified_at(osd_map: Mapping[str, Any]) -> Optional[float]:
    """Returns the time of this epoch in seconds since the epoch; None where it is not told."""
    try:
        return datetime.strptime(str(osd_map.get("modified", "")),
                                 "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None
