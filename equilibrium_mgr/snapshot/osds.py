"""The OSDs of a snapshot: what the osdmap and the devices say of each, and what is on its way."""
from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import give_way, piecewise
from .model import NO_CLASS, Osd
from .operator_weights import with_shares
from .reading import Reading

_OSDS_A_PIECE = 300   # before it gives way again: about a millisecond


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
    for dump in piecewise(osd_map["osds"], _OSDS_A_PIECE):
        osd = dump["osd"]
        states = dump.get("state", [])
        size, used = usage.get(osd, (0, 0))
        osds[osd] = Osd(
            id=osd, device_class=crush.device_class.get(osd, "") or NO_CLASS,
            host=hosts.get(osd, ""), up=bool(dump.get("up", "up" in states)),
            is_in=bool(dump.get("in", 1)), destroyed="destroyed" in states,
            reweight=float(dump.get("weight", 1.0)), size_bytes=size, used_bytes=used,
            has_statistics=size > 0, inbound_bytes=0, outbound_bytes=0,
            uuid=str(dump.get("uuid", "")))
    return osds


class OsdReader:
    """Reads the OSDs of one look after the other; what the operator's weights leave them is found
    anew where the osdmap, the CRUSH map or a size is another one."""

    def __init__(self) -> None:
        self._found_for: Tuple[Any, ...] = ()
        self._held: Dict[int, Tuple[float, str]] = {}   # OSD id → its share, and why

    def read(self, reading: Reading, crush: CrushHierarchy) -> Dict[int, Osd]:
        """OSD id → OSD of every OSD in the map, nothing on its way counted yet."""
        osds = read_osds(reading.osd_map, crush, reading.osd_stats)
        sizes, dump = [osd.size_bytes for osd in osds.values()], reading.osd_map["osds"]
        if not self._found_for or self._found_for[0] is not dump or (
                self._found_for[1] is not crush or self._found_for[2] != sizes):
            give_way()
            self._held = {osd.id: (osd.share, osd.held_by)
                          for osd in with_shares(osds, crush).values() if osd.share < 1.0}
            self._found_for = dump, crush, sizes
        for number in reading.drained.intersection(osds):
            osds[number] = osds[number]._replace(drained=True)
        for number, (share, why) in self._held.items() if reading.respect_weights else ():
            osds[number] = osds[number]._replace(share=share, held_by=why)
        return osds


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
