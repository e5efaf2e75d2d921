"""OSDs for planning if unequal bytes belong to no shard, such as those of a DB device.

The data of an OSD can use only the space that these bytes leave. OSDs that are equally full by
size then do not become full at the same time. So the planner gets a smaller OSD without these
bytes, which is full when the real OSD is full. The padding of allocation units goes with the
shards, and so is not fixed.
"""
from __future__ import annotations

from typing import Dict

from ..runtime.time_slice import grouped
from ..snapshot.model import Osd, Snapshot
from ..snapshot.operator_weights import subtract_shards
from .usage import with_chance

#: Bytes that differ by more than this ratio of the size are unequal.
_CLEAR_DIFFERENCE = 0.03


def without_fixed_bytes(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot without the fixed bytes of OSDs, except as many as all OSDs of their set
    have. Sets whose OSDs hardly differ stay as they are. OSDs with lowered weights keep theirs,
    because their share is a share of the bytes of others; it is that of `with_chance`."""
    snapshot = with_chance(snapshot)
    fixed = _fixed_bytes(snapshot)
    changed: Dict[int, Osd] = {}
    for members in grouped((snapshot.set_of(osd), osd) for osd in fixed).values():
        ratios = {osd: max(0.0, fixed[osd] / snapshot.osds[osd].size_bytes) for osd in members}
        least = min(ratios.values())
        if max(ratios.values()) - least <= _CLEAR_DIFFERENCE:
            continue
        for number, ratio in ratios.items():
            osd = snapshot.osds[number]
            more = int((ratio - least) * osd.size_bytes)
            changed[number] = osd._replace(
                size_bytes=max(1, int(osd.size_bytes - more / snapshot.full_ratio)),
                used_bytes=osd.used_bytes - more, fixed_bytes=more)
    if not changed:
        return snapshot
    return snapshot._replace(osds={**snapshot.osds, **changed})


def _fixed_bytes(snapshot: Snapshot) -> Dict[int, int]:
    """Returns OSD → bytes that belong to no shard, of usable OSDs whose weight is not lowered."""
    fixed: Dict[int, int] = {
        osd.id: osd.target_bytes - osd.padding_bytes for osd in snapshot.osds.values()
        if osd.share >= 1.0 and osd.unusable_reason() is None}
    subtract_shards(fixed, snapshot.pgs.values(), snapshot.pools)
    return fixed
