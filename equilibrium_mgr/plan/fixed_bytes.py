"""OSDs as they are planned for where unequal bytes belong to no shard, such as those of a DB device.

Data grows on each OSD by what is left beside these bytes: OSDs that are equally full by size are
not full at the same time. So an OSD is planned for as a smaller one that is without them, and is
full when it is. What is allocated for data beyond what it stores goes with the shards, and so is
not fixed.
"""
from __future__ import annotations

from typing import Dict

from ..runtime.time_slice import grouped, piecewise
from ..snapshot.model import Osd, Snapshot
from .usage import with_chance

#: Unequal are those that differ by more than this ratio of the size.
_CLEAR_DIFFERENCE = 0.03

_PGS_A_PIECE = 500   # before it gives way again: about a millisecond


def without_fixed_bytes(snapshot: Snapshot) -> Snapshot:
    """The same cluster without what OSDs hold beside shards, beyond what all of their set do. Those
    that are held to a share keep it: it is a share of what others hold."""
    snapshot = with_chance(snapshot)
    beside: Dict[int, int] = {
        osd.id: osd.target_bytes - osd.padding_bytes for osd in snapshot.osds.values()
        if osd.unusable_reason() is None and osd.share >= 1.0}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        pool = snapshot.pools[pg.pool]
        for osd in pg.up:
            if osd in beside:
                beside[osd] -= pool.bytes_on(pg.shard_bytes, osd, pg.up)
    changed: Dict[int, Osd] = {}
    for members in grouped((snapshot.set_of(osd), osd) for osd in beside).values():
        ratios = {osd: max(0.0, beside[osd] / snapshot.osds[osd].size_bytes) for osd in members}
        least = min(ratios.values())
        if max(ratios.values()) - least > _CLEAR_DIFFERENCE:
            changed.update({number: _without(
                snapshot.osds[number],
                int((ratio - least) * snapshot.osds[number].size_bytes), snapshot.full_ratio)
                for number, ratio in ratios.items()})
    return snapshot._replace(osds={**snapshot.osds, **changed}) if changed else snapshot


def _without(osd: Osd, fixed_bytes: int, full_ratio: float) -> Osd:
    return osd._replace(
        size_bytes=max(1, int(osd.size_bytes - fixed_bytes / full_ratio)),
        used_bytes=osd.used_bytes - fixed_bytes, fixed_bytes=fixed_bytes)
