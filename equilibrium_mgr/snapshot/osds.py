"""The OSDs of a snapshot: what the osdmap and the devices say of each, and what is on its way.

Finds OSDs that have stopped reporting their statistics although the monitor shows them as up.

An OSD sends a report every few seconds, each with a higher sequence number (`seq`). The mgr ignores
reports of an OSD that is out, which therefore does not count as silent.

Sums over the PGs of a snapshot.
"""
from __future__ import annotations

from typing import (
    Any, Container, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import give_way, piecewise
from .immovable_reasons import Immovable
from .model import NO_CLASS, Osd, Pg, Pool, Reading, transfers
from .operator_weights import with_shares


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
        if not self._any_change:
            return frozenset()
        return frozenset(osd for osd, (_, since) in last.items() if now - since > _STALE_SECONDS)

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


class PgTotals:
    """Whole numbers, so that the sums are the same in whatever order PGs are added."""

    def __init__(self) -> None:
        self.objects: Dict[int, int] = {}    # by pool id
        self.skipped: Dict[Immovable, int] = {}    # reason → PGs that cannot be moved for it
        self.inbound: Dict[int, int] = {}    # by OSD, as what follows; bytes
        self.outbound: Dict[int, int] = {}
        self.up_bytes: Dict[int, int] = {}   # of the shards by the up sets
        self.moving: List[str] = []          # pgids

    def add(self, pg: Pg, pool: Pool) -> None:
        """Adds a PG."""
        self.objects[pg.pool] = self.objects.get(pg.pool, 0) + pg.objects
        if pg.immovable:
            self.skipped[pg.immovable] = self.skipped.get(pg.immovable, 0) + 1
        size, up_bytes = pg.shard_bytes, self.up_bytes
        for osd in pg.up:
            up_bytes[osd] = up_bytes.get(osd, 0) + (
                size if pool.is_uniform else pool.bytes_on(pg.shard_bytes, osd, pg.up))
        if pg.is_moving:
            self._add_moving(pg, pool)

    def _add_moving(self, pg: Pg, pool: Pool) -> None:
        self.moving.append(pg.pgid)
        gains, losses = transfers(pg, pool.erasure)
        for osd in gains:
            self.inbound[osd] = self.inbound.get(osd, 0) + int(
                pool.bytes_on(pg.shard_bytes, osd, pg.up) * pg.uncopied_ratio)
        for osd in losses:
            self.outbound[osd] = self.outbound.get(osd, 0) + pool.bytes_on(
                pg.shard_bytes, osd, pg.holders)

    def object_copies(self, pools: Mapping[int, Pool]) -> int:
        """Object copies of all PGs, as their pools want them."""
        return sum(count * pools[pool].size for pool, count in self.objects.items())
