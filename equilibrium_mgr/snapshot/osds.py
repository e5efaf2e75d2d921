"""The OSDs of a snapshot: what the osdmap and the devices say of each, and what is on its way."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from .model import NO_CLASS, Osd


class FullRatios(NamedTuple):
    """The ratios of an OSD's size at which Ceph warns, stops backfill and stops writes."""

    nearfull: float
    backfillfull: float
    full: float


def full_ratios(osd_map: Mapping[str, Any]) -> FullRatios:
    """The ratios of an osdmap dump; a ratio of 0 counts as Ceph's default for it.

    For backfillfull_ratio that is 0.85: an OSD never takes it for less than nearfull_ratio.
    """
    return FullRatios(osd_map.get("nearfull_ratio") or 0.85,
                      osd_map.get("backfillfull_ratio") or 0.85,
                      osd_map.get("full_ratio") or 0.95)


def read_osds(osd_map: Mapping[str, Any], crush: CrushHierarchy,
              osd_stats: Sequence[Mapping[str, Any]]) -> Dict[int, Osd]:
    """OSD id → OSD of every OSD in the map, nothing on its way counted yet."""
    hosts = crush.hosts()
    usage = {stats["osd"]: _size_and_used(stats) for stats in osd_stats}
    osds: Dict[int, Osd] = {}
    for dump in osd_map["osds"]:
        osd = dump["osd"]
        states = dump.get("state", [])
        size, used = usage.get(osd, (0, 0))
        osds[osd] = Osd(
            id=osd, device_class=crush.device_class.get(osd, "") or NO_CLASS,
            host=hosts.get(osd, ""), up=bool(dump.get("up", "up" in states)),
            is_in=bool(dump.get("in", 1)), destroyed="destroyed" in states,
            reweight=float(dump.get("weight", 1.0)), size_bytes=size, used_bytes=used,
            has_statistics=size > 0, inbound_bytes=0, outbound_bytes=0)
    return osds


def with_transfers(osds: Mapping[int, Osd], inbound: Mapping[int, int],
                   outbound: Mapping[int, int], uncompacted: Mapping[int, int]) -> Dict[int, Osd]:
    """The OSDs with the bytes that move to and from them, and with their uncompacted omap.

    All three are by OSD id; `uncompacted` is omap that has left the OSD and is not free yet.
    """
    changed = {number: osds[number]._replace(
        inbound_bytes=inbound.get(number, 0), outbound_bytes=outbound.get(number, 0),
        uncompacted_bytes=uncompacted.get(number, 0))
        for number in {*inbound, *outbound, *uncompacted} if number in osds}
    return {**osds, **changed}


def smaller_than(osds: Mapping[int, Osd], size_bytes: int) -> FrozenSet[int]:
    """Ids of the OSDs with statistics that are smaller than a size."""
    return frozenset(osd.id for osd in osds.values()
                     if osd.has_statistics and osd.size_bytes < size_bytes)


def _size_and_used(stats: Mapping[str, Any]) -> Tuple[int, int]:
    """(size, used) in bytes. The device's statfs is exact where kb figures are rounded.

    `used` is at most `size`: a negative free space would make the planner's figures useless.
    """
    statfs = stats.get("statfs") or {}
    total = statfs.get("total", 0)
    if total > 0:
        return total, min(total, max(0, total - statfs.get("available", total)))
    size = max(0, stats.get("kb", 0)) * 1024
    return size, min(size, max(0, stats.get("kb_used", 0)) * 1024)
