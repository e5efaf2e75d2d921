"""The OSDs of a snapshot: what the osdmap and the devices say of each, and what is on its way.

Finds OSDs that have stopped reporting their statistics although the monitor shows them as up.

An OSD sends a report every few seconds, each with a higher sequence number (`seq`). The mgr ignores
reports of an OSD that is out, which therefore does not count as silent.
"""
from __future__ import annotations

from typing import (
    Any, Container, Dict, FrozenSet, Iterable, Mapping, Optional, Sequence, Tuple)

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import piecewise
from .model import NO_CLASS, Osd


_OSDS_A_PIECE = 300   # before it gives way again: about a millisecond


def full_ratios(osd_map: Mapping[str, Any]) -> Tuple[float, float, float]:
    """The ratios of an OSD's size at which Ceph warns, stops backfill and stops writes (nearfull,
    backfillfull, full), of an osdmap dump; a ratio of 0 counts as Ceph's default for it.

    For backfillfull_ratio that is 0.85: an OSD never takes it for less than nearfull_ratio.
    """
    return (osd_map.get("nearfull_ratio") or 0.85, osd_map.get("backfillfull_ratio") or 0.85,
            osd_map.get("full_ratio") or 0.95)


def read_osds(osd_map: Mapping[str, Any], crush: CrushHierarchy,
              osd_stats: Sequence[Mapping[str, Any]],
              drained: Container[int] = ()) -> Dict[int, Osd]:
    """OSD id → OSD of every OSD in the map, nothing on its way counted yet. `drained`: OSDs that
    an operator wants emptied."""
    hosts = crush.hosts()
    reports = {stats["osd"]: (*_size_and_used(stats), int(stats.get("num_pgs", 0)))
               for stats in osd_stats}
    osds: Dict[int, Osd] = {}
    for dump in piecewise(osd_map["osds"], _OSDS_A_PIECE):
        osd = dump["osd"]
        states = dump.get("state", [])
        size, used, pg_shards = reports.get(osd, (0, 0, 0))
        osds[osd] = Osd(
            id=osd, device_class=crush.device_class.get(osd, "") or NO_CLASS,
            host=hosts.get(osd, ""), up=bool(dump.get("up", "up" in states)),
            is_in=bool(dump.get("in", 1)), destroyed="destroyed" in states,
            reweight=float(dump.get("weight", 1.0)), size_bytes=size, used_bytes=used,
            has_statistics=size > 0, inbound_bytes=0, outbound_bytes=0,
            drained=osd in drained, uuid=str(dump.get("uuid", "")),
            pg_shards=pg_shards)
    return osds


def _size_and_used(stats: Mapping[str, Any]) -> Tuple[int, int]:
    """(size, used) in bytes. `used` is at most `size`: a negative free space would make the
    planner's figures useless."""
    statfs = stats.get("statfs") or {}
    total = max(0, statfs.get("total", 0))
    return total, min(total, max(0, total - statfs.get("available", total)))


#: Seconds without a new report after which the last one is too old to be used.
_STALE_SECONDS = 120.0


class OsdReports:
    """The last sequence number of every OSD and when it was first seen. Any thread may use it."""

    def __init__(self) -> None:
        self._last: Dict[int, Tuple[int, float]] = {}
        self._read_at = 0.0
        self._any_change = False  # without any, the sequence numbers mean nothing

    def stale(self, osd_stats: Iterable[Mapping[str, Any]], now: float) -> FrozenSet[int]:
        """Records `get('osd_stats')['osd_stats']`; returns the OSDs that are silent for too long.

        `now` is in seconds since the epoch.
        """
        last: Dict[int, Tuple[int, float]] = {}
        for stats in osd_stats:
            osd, seq = stats["osd"], stats.get("seq")
            if not isinstance(seq, int):
                continue
            before = self._last.get(osd)
            if before is not None and before[0] == seq:
                last[osd] = (seq, min(before[1], now))  # the clock may have been set back
            else:
                last[osd] = (seq, now)
                self._any_change = self._any_change or before is not None
        self._last, self._read_at = last, now
        return self.silent(_STALE_SECONDS)

    def oldest(self, osds: Container[int]) -> Optional[float]:
        """When the oldest of the last reports of these OSDs was first seen, in seconds since the
        epoch; None where nothing is known of them, or no report has ever changed."""
        if not self._any_change:
            return None
        return min([since for osd, (_, since) in self._last.items() if osd in osds], default=None)

    def silent(self, seconds: float) -> FrozenSet[int]:
        """OSDs without a new report for so long, as of the last reading."""
        if not self._any_change:
            return frozenset()
        return frozenset(osd for osd, (_, since) in list(self._last.items())
                         if self._read_at - since > seconds)
