"""The OSDs of a snapshot: what the osdmap and the devices say of each, and what is on its way."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import give_way, piecewise
from .model import NO_CLASS, Osd
from .operator_weights import with_shares
from .reading import Reading

_OSDS_A_PIECE = 1000   # before it gives way again: about a millisecond


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
            has_statistics=size > 0, inbound_bytes=0, outbound_bytes=0,
            uuid=str(dump.get("uuid", "")))
    return osds


class OsdReader:
    """Reads the OSDs of one look after the other; those of which nothing has changed are kept."""

    def __init__(self) -> None:
        self._dump: Any = None    # the osdmap's list that the OSDs are from
        self._crush: Any = None
        self._osds: Dict[int, Osd] = {}
        self._sizes: List[int] = []
        self._held: Dict[int, Tuple[float, str]] = {}   # OSD id → its share, and why

    def read(self, reading: Reading, crush: CrushHierarchy) -> Dict[int, Osd]:
        """OSD id → OSD of every OSD in the map, nothing on its way counted yet."""
        dump = reading.osd_map["osds"]
        is_same_map = dump is self._dump and crush is self._crush
        if not is_same_map:
            self._osds = read_osds(reading.osd_map, crush, ())
            give_way()
        osds = self._with_usage(reading.osd_stats)
        sizes = [osd.size_bytes for osd in osds.values()]
        if not is_same_map or sizes != self._sizes:
            give_way()
            held = with_shares(osds, crush)
            self._held = {osd.id: (osd.share, osd.held_by) for osd in held.values()
                          if osd.share < 1.0}
        self._dump, self._crush, self._osds, self._sizes = dump, crush, osds, sizes
        give_way()
        changed = {number: osds[number]._replace(drained=True)
                   for number in reading.drained if number in osds}
        if reading.respect_weights:
            changed.update((number, changed.get(number, osds[number])._replace(
                share=share, held_by=why)) for number, (share, why) in self._held.items())
        return {**osds, **changed} if changed else osds

    def _with_usage(self, osd_stats: Sequence[Mapping[str, Any]]) -> Dict[int, Osd]:
        usage = {stats["osd"]: _size_and_used(stats) for stats in piecewise(
            osd_stats, _OSDS_A_PIECE)}
        osds: Dict[int, Osd] = {}
        for number, osd in piecewise(self._osds.items(), _OSDS_A_PIECE):
            size, used = usage.get(number, (0, 0))
            if size != osd.size_bytes or used != osd.used_bytes:
                osd = osd._replace(size_bytes=size, used_bytes=used, has_statistics=size > 0)
            osds[number] = osd
        return osds


def scaled(osds: Mapping[int, Osd], factors: Mapping[int, float]) -> Mapping[int, Osd]:
    """The OSDs with bytes that are comparable among them. `factors`: OSD id → its size_factor,
    where that is not 1."""
    if not factors:
        return osds
    return {**osds, **{number: osds[number]._replace(
        size_factor=factor, device=(osds[number].size_bytes, osds[number].used_bytes),
        size_bytes=int(osds[number].size_bytes / factor),
        used_bytes=int(osds[number].used_bytes / factor))
        for number, factor in factors.items() if number in osds}}


def with_transfers(osds: Mapping[int, Osd], inbound: Mapping[int, int],
                   outbound: Mapping[int, int], uncompacted: Mapping[int, int],
                   undeleted: Mapping[int, int]) -> Dict[int, Osd]:
    """The OSDs with the bytes that move to and from them, and with what has left them and is not
    free yet: `uncompacted` omap, as devices have it, and `undeleted` data. All by OSD id.
    """
    changed = {number: osds[number]._replace(
        inbound_bytes=inbound.get(number, 0), outbound_bytes=outbound.get(number, 0),
        uncompacted_bytes=int(uncompacted.get(number, 0) / osds[number].size_factor),
        undeleted_bytes=undeleted.get(number, 0))
        for number in {*inbound, *outbound, *uncompacted, *undeleted} if number in osds}
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
