"""What a plan rests on of the map: where that has changed, other placements are legal."""
from __future__ import annotations

import zlib
from typing import Dict, Iterable, Tuple

from ..snapshot.model import Snapshot

#: (OSD, in or out, reweight)
OsdWeight = Tuple[int, bool, float]


def topology_mark(crush_version: int, osds: Iterable[OsdWeight]) -> str:
    """A text that is equal as long as the CRUSH map and the weights of all OSDs are."""
    weights = sorted((osd, is_in, round(reweight, 3)) for osd, is_in, reweight in osds)
    return f"{crush_version}:{zlib.crc32(repr(weights).encode()):08x}"


def topology_of(snapshot: Snapshot) -> str:
    """The mark of a snapshot."""
    return topology_mark(snapshot.crush_version, (
        (osd.id, osd.is_in, osd.reweight) for osd in snapshot.osds.values()))


def pool_pgs(pg_nums: Iterable[Tuple[int, int]]) -> Dict[str, int]:
    """Pool id, as JSON has it, → PGs."""
    return {str(pool): count for pool, count in sorted(pg_nums)}
