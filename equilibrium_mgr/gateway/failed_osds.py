"""Maps PGs as if OSDs were out, in a copy of the mgr's osdmap; nothing is sent.

PyOSDMap.cc in Ceph's src/mgr (16 to 20): an incremental holds the CRUSH map of its osdmap and is
applied to a copy, which takes milliseconds with the interpreter's lock held. The copy maps PGs by
CRUSH with the new reweights and drops upmap items whose target is out; the monitor's cleaning of
items is not part of it.
"""
from __future__ import annotations

from typing import Collection, Dict, Iterable, Tuple

from ..runtime.time_slice import give_way, piecewise
from ..snapshot.model import pg_number, pool_of
from .mgr_api import OsdMapApi

_MAPPED_A_PIECE = 50   # before it gives way again: about a millisecond


def up_sets_without(osdmap: OsdMapApi, osds: Collection[int],
                    pgids: Iterable[str]) -> Dict[str, Tuple[int, ...]]:
    """pgid → up set with these OSDs out, of PGs whose pool the map has."""
    incremental = osdmap.new_incremental()
    incremental.set_osd_reweights({osd: 0.0 for osd in osds})
    give_way()
    after = osdmap.apply_incremental(incremental)
    up: Dict[str, Tuple[int, ...]] = {}
    for pgid in piecewise(pgids, _MAPPED_A_PIECE):
        try:
            mapped = after.pg_to_up_acting_osds(pool_of(pgid), pg_number(pgid))
        except SystemError:   # Ceph raises it for a pool that is gone
            continue
        up[pgid] = tuple(mapped["up"])
    return up
