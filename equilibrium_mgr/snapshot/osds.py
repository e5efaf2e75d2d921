"""The OSDs of a snapshot: what the osdmap and the devices say of each, and what is on its way.

Finds OSDs that have stopped reporting their statistics although the monitor shows them as up.

An OSD sends a report every few seconds, each with a higher sequence number (`seq`). The mgr ignores
reports of an OSD that is out, which therefore does not count as silent.
"""
from __future__ import annotations

from math import inf
from typing import (
    Any, Container, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple)

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import piecewise
from .model import NO_CLASS, Osd, Pool


_OSDS_A_PIECE = 300   # before it gives way again: about a millisecond

#: Bytes that more than one set may hold tie these where they are more than this ratio of all, or of
#: the size of one of them: a tie that no utilization shows is none (.mgr is often on all OSDs).
_TIE = 0.01


def map_fields(osd_map: Mapping[str, Any]) -> Dict[str, Any]:
    """The fields of a snapshot that an osdmap dump has as they are.

    A full ratio of 0 counts as Ceph's default for it. For backfillfull_ratio that is 0.85: an OSD
    never takes it for less than nearfull_ratio.
    """
    return {"epoch": osd_map["epoch"],
            "nearfull_ratio": osd_map.get("nearfull_ratio") or 0.85,
            "backfillfull_ratio": osd_map.get("backfillfull_ratio") or 0.85,
            "full_ratio": osd_map.get("full_ratio") or 0.95,
            "flags": tuple(sorted(f for f in osd_map.get("flags", "").split(",") if f)),
            "group_flags": _group_flags(osd_map),
            "min_compat_client": osd_map.get("require_min_compat_client", "")}


#: Flags that OSDs have of their own, as `ceph osd set-group` sets them.
_OSD_FLAGS = ("noin", "noout", "nodown", "noup")


def _group_flags(osd_map: Mapping[str, Any]) -> Dict[str, FrozenSet[str]]:
    """Returns the flags of single OSDs (`osd.3`), of device classes and of CRUSH buckets, by the
    name that `ceph osd unset-group` takes."""
    found = {f"osd.{osd['osd']}": frozenset(_OSD_FLAGS).intersection(osd.get("state", ()))
             for osd in piecewise(osd_map.get("osds", ()), _OSDS_A_PIECE)}
    for key in ("device_class_flags", "crush_node_flags"):
        for name, flags in osd_map.get(key, {}).items():
            found[name] = frozenset(flags)
    return {name: flags for name, flags in found.items() if flags}


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


def name_sets(osds: Mapping[int, Osd], crush: CrushHierarchy,
              pools: Mapping[int, Pool], pool_bytes: Mapping[int, int]) -> Dict[int, str]:
    """OSD id → the name of the OSD set that it belongs to, where that is not its device class.

    OSDs are in one set where pools may place the same bytes on either. `pool_bytes`: pool id →
    bytes of one shard of each PG. A set is called by its
    device classes, and by the narrowest take of a rule that reaches most of it where several sets
    are of these classes.
    """
    tied: Dict[FrozenSet[int], Tuple[int, str]] = {}   # what a take reaches → bytes, its name
    for pool in pools.values():
        for block in pool.blocks:
            count, name = tied.get(block.osds, (0, "~"))
            tied[block.osds] = (
                count + block.positions * pool_bytes.get(pool.id, 0),
                min(name, crush.name_of(block.take).split("~")[0]))
    sets: List[Set[int]] = []
    for reached, (count, _) in piecewise(sorted(tied.items(), key=lambda entry: (
            -entry[1][0], entry[1][1])), 1):
        parts = [found for found in sets if not found.isdisjoint(reached)]
        sets = [found for found in sets if found.isdisjoint(reached)]
        rest = (reached & osds.keys()).difference(*parts)   # that no pool of more bytes may use
        parts += [{osd for osd in rest if osds[osd].device_class == title}
                  for title in sorted({osds[osd].device_class for osd in rest})]
        sets += [set().union(*parts)] if count > _TIE * min(
            sum([amount for amount, _ in tied.values()]), *filter(None, [
                sum([osds[osd].size_bytes for osd in part]) for part in parts]), inf) else parts
    classes = [",".join(sorted({osds[osd].device_class for osd in found})) for found in sets]
    shared = {one for title in classes if "," in title or classes.count(title) > 1
              for one in title.split(",")}
    names = {number: f"{osd.device_class} (no pool)" for number, osd in osds.items()
             if osd.device_class in shared}
    for found, title in zip(sets, classes):
        if classes.count(title) > 1:
            title += " ({})".format(min([(-len(reached & found), len(reached), name)
                                         for reached, (_, name) in tied.items()])[-1])
        names.update(dict.fromkeys(found, title))
    return {osd: name for osd, name in names.items() if name != osds[osd].device_class}


def _size_and_used(stats: Mapping[str, Any]) -> Tuple[int, int]:
    """(size, used) in bytes. `used` is at most `size`: a negative free space would make the
    planner's figures useless."""
    statfs = stats.get("statfs") or {}
    total = max(0, statfs.get("total", 0))
    return total, min(total, max(0, total - statfs.get("available", total)))


#: Seconds without a new report after which the last one is too old to be used.
SILENT_SECONDS = 120.0


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
        return self.silent(SILENT_SECONDS)

    def oldest(self, osds: Container[int]) -> Optional[float]:
        """When the oldest of the last reports of these OSDs was first seen, in seconds since the
        epoch; None where nothing is known of them, or no report has ever changed."""
        return min([since for osd, (_, since) in self._last.items() if osd in osds],
                   default=None) if self._any_change else None

    def silent(self, seconds: float) -> FrozenSet[int]:
        """OSDs without a new report for so long, as of the last reading."""
        return frozenset(osd for osd, (_, since) in list(self._last.items())
                         if self._any_change and self._read_at - since > seconds)
