"""Reads the osdmap, and maps PGs by it.

Each PG is mapped by itself, and the interpreter's lock given up in between: a large pool at once
takes milliseconds, and a command of another module needs the lock several times.
"""
from __future__ import annotations

from datetime import datetime
from typing import Any, Collection, Dict, Iterable, Mapping, Optional, Tuple

from mgr_module import OSDMap

from ..runtime.time_slice import give_way, piecewise
from ..snapshot.model import pg_number, pool_of

_MAPPED_A_PIECE = 50   # before it gives way again: about a millisecond

Osds = Tuple[int, ...]
OsdMapReading = Tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Osds], Mapping[str, Osds]]


def read_osd_map(osdmap: OSDMap) -> OsdMapReading:
    """(OSDMap.dump(), CRUSHMap.dump(), pgid → up set, pgid → acting set where that is not the up
    set)."""
    osd_map = osdmap.dump()
    up: Dict[str, Osds] = {}
    acting: Dict[str, Osds] = {}
    for pool in osd_map["pools"]:
        for ps in piecewise(range(pool["pg_num"]), _MAPPED_A_PIECE):
            mapped = osdmap.pg_to_up_acting_osds(pool["pool"], ps)
            pgid, osds, serving = f"{pool['pool']}.{ps:x}", mapped["up"], mapped["acting"]
            up[pgid] = tuple(osds)
            if osds != serving:
                acting[pgid] = tuple(serving)
    return osd_map, osdmap.get_crush().dump(), up, acting


def up_sets_without(osdmap: OSDMap, osds: Collection[int],
                    pgids: Iterable[str]) -> Dict[str, Osds]:
    """pgid → up set with these OSDs out, of PGs whose pool the map has; nothing is sent.

    PyOSDMap.cc in Ceph's src/mgr (16 to 20): an incremental is applied to a copy of the map, which
    takes milliseconds with the interpreter's lock held. The copy maps PGs by CRUSH with the new
    reweights and drops upmap items whose target is out; no monitor cleans the others.
    """
    incremental = osdmap.new_incremental()
    incremental.set_osd_reweights({osd: 0.0 for osd in osds})
    give_way()
    after = osdmap.apply_incremental(incremental)
    up = ((pgid, up_set(after, pgid)) for pgid in piecewise(pgids, _MAPPED_A_PIECE))
    return {pgid: found for pgid, found in up if found is not None}


def up_set(osdmap: OSDMap, pgid: str) -> Optional[Osds]:
    """The up set of a PG; None where its pool is gone."""
    try:
        return tuple(osdmap.pg_to_up_acting_osds(pool_of(pgid), pg_number(pgid))["up"])
    except SystemError:
        return None


def modified_at(osd_map: Mapping[str, Any]) -> Optional[float]:
    """Returns the time of this epoch in seconds since the epoch; None where it is not told."""
    try:
        return datetime.strptime(str(osd_map.get("modified", "")),
                                 "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None
