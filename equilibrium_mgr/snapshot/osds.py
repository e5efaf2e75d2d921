"""The OSDs of a snapshot, by the osdmap and their own reports, and the sets that they form.

Finds OSDs that do not report although the monitor shows them as up. An OSD sends a report every
few seconds, each with a higher sequence number (`seq`). The mgr ignores the reports of an OSD that
is out, so such an OSD never counts as stale.
"""
from __future__ import annotations

from collections import defaultdict
from typing import (
    AbstractSet, Any, Container, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set,
    Tuple)

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import piecewise
from .model import NO_CLASS, Osd, Pool


_OSDS_A_PIECE = 300   # between two calls of `give_way`: about a millisecond

#: Bytes that two sets share tie them only above this ratio of all bytes, or of the size of one of
#: the sets. Fewer bytes show in no utilization (.mgr is often on all OSDs).
_TIE = 0.01

#: Flags of single OSDs, as `ceph osd set-group` sets them.
_OSD_FLAGS = frozenset(("noin", "noout", "nodown", "noup"))

#: OSDs that the take of a rule reaches → (bytes of shards that may be on any of them, its name)
_Tied = Mapping[FrozenSet[int], Tuple[int, str]]


def map_fields(osd_map: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the fields of a snapshot that an osdmap dump has as they are.

    A nearfull_ratio or full_ratio of 0 counts as Ceph's default. A backfillfull_ratio of 0 counts
    as 0.85, because an OSD never takes it for less than nearfull_ratio.
    """
    get = osd_map.get
    flags = get("flags", "").split(",")
    return {"epoch": osd_map["epoch"],
            "nearfull_ratio": get("nearfull_ratio") or 0.85,
            "backfillfull_ratio": get("backfillfull_ratio") or 0.85,
            "full_ratio": get("full_ratio") or 0.95,
            "flags": tuple(sorted(filter(None, flags))),
            "group_flags": _group_flags(osd_map),
            "min_compat_client": get("require_min_compat_client", "")}


def _group_flags(osd_map: Mapping[str, Any]) -> Dict[str, FrozenSet[str]]:
    """Returns the flags of single OSDs (`osd.3`), of device classes and of CRUSH buckets, by the
    name that `ceph osd unset-group` takes."""
    found = {f"osd.{osd['osd']}": _OSD_FLAGS.intersection(osd.get("state", ()))
             for osd in piecewise(osd_map.get("osds", ()), _OSDS_A_PIECE)}
    for key in ("device_class_flags", "crush_node_flags"):
        for name, flags in osd_map.get(key, {}).items():
            found[name] = frozenset(flags)
    return {name: flags for name, flags in found.items() if flags}


def read_osds(osd_map: Mapping[str, Any], crush: CrushHierarchy,
              osd_stats: Sequence[Mapping[str, Any]],
              drained: Container[int] = ()) -> Dict[int, Osd]:
    """Returns OSD id → OSD for every OSD of the osdmap, without what is in flight to and from it
    (`SizeModel.osds_with_traffic`). `drained`: OSDs that an operator wants emptied."""
    hosts = crush.hosts()
    classes = crush.device_class
    reports = {stats["osd"]: (*_size_and_used(stats), int(stats.get("num_pgs", 0)))
               for stats in osd_stats}
    osds: Dict[int, Osd] = {}
    for dump in piecewise(osd_map["osds"], _OSDS_A_PIECE):
        osd = dump["osd"]
        get = dump.get
        states = get("state", [])
        size, used, pg_shards = reports.get(osd, (0, 0, 0))
        osds[osd] = Osd(
            id=osd,
            device_class=classes.get(osd) or NO_CLASS,
            host=hosts.get(osd, ""),
            up=bool(get("up", "up" in states)),
            is_in=bool(get("in", 1)),
            destroyed="destroyed" in states,
            reweight=float(get("weight", 1.0)),
            size_bytes=size,
            used_bytes=used,
            has_statistics=size > 0,
            drained=osd in drained,
            uuid=str(get("uuid", "")),
            pg_shards=pg_shards)
    return osds


def name_sets(osds: Mapping[int, Osd], crush: CrushHierarchy,
              pools: Mapping[int, Pool], pool_bytes: Mapping[int, int]) -> Dict[int, str]:
    """Returns OSD id → name of its OSD set, if that is not its device class.

    OSDs are in one set if pools may place the same bytes on either. `pool_bytes`: pool id → bytes
    of one shard of each PG. The name of a set is its device classes. If several sets have these
    classes, it includes the narrowest take of a rule that reaches most of the set. OSDs of such
    classes that no rule reaches are named `CLASS (no pool)`.
    """
    tied = _tied_osds(crush, pools, pool_bytes)
    sets = _find_sets(osds, tied)
    titles = [",".join(sorted({osds[osd].device_class for osd in found})) for found in sets]
    shared: Set[str] = set()   # device classes whose name alone names no set
    for title in titles:
        if "," in title or titles.count(title) > 1:
            shared.update(title.split(","))
    names = {number: f"{osd.device_class} (no pool)" for number, osd in osds.items()
             if osd.device_class in shared}
    for found, title in zip(sets, titles):
        if titles.count(title) > 1:
            takes = [(-len(reached & found), len(reached), name)
                     for reached, (_, name) in tied.items()]
            title += f" ({min(takes)[-1]})"
        names.update(dict.fromkeys(found, title))
    return {osd: name for osd, name in names.items() if name != osds[osd].device_class}


def _tied_osds(crush: CrushHierarchy, pools: Mapping[int, Pool],
               pool_bytes: Mapping[int, int]) -> _Tied:
    """Returns the OSDs that each take of a pool's rule reaches, with the bytes that it places."""
    tied: Dict[FrozenSet[int], Tuple[int, str]] = {}
    for pool in pools.values():
        for block in pool.blocks:
            count, name = tied.get(block.osds, (0, "~"))
            take, _, _ = crush.name_of(block.take).partition("~")
            more = block.positions * pool_bytes.get(pool.id, 0)
            tied[block.osds] = count + more, min(name, take)
    return tied


def _find_sets(osds: Mapping[int, Osd], tied: _Tied) -> List[AbstractSet[int]]:
    """Returns the sets: pools may place many of the same bytes on any OSD of one set.

    Takes are considered by their bytes, the most first.
    """
    total = sum([count for count, _ in tied.values()])
    sets: List[AbstractSet[int]] = []
    by_bytes = sorted(tied.items(), key=lambda entry: (-entry[1][0], entry[1][1]))
    for reached, (count, _) in piecewise(by_bytes, 1):
        parts = [found for found in sets if not found.isdisjoint(reached)]
        sets = [found for found in sets if found.isdisjoint(reached)]
        by_class: Dict[str, Set[int]] = defaultdict(set)
        # OSDs that no pool with more bytes may use
        for osd in (reached & osds.keys()).difference(*parts):
            by_class[osds[osd].device_class].add(osd)
        parts += [by_class[title] for title in sorted(by_class)]
        sizes = [total]
        for part in parts:
            sizes.append(sum([osds[osd].size_bytes for osd in part]) or total)
        if count > _TIE * min(sizes):
            parts = [set().union(*parts)]
        sets += parts
    return sets


def _size_and_used(stats: Mapping[str, Any]) -> Tuple[int, int]:
    """Returns (size, used) in bytes. `used` is at most `size`, because the planner can do nothing
    with a negative free space."""
    statfs = stats.get("statfs") or {}
    total = max(0, statfs.get("total", 0))
    return total, min(total, max(0, total - statfs.get("available", total)))


#: Seconds without a new report after which the last one is too old to be used.
SILENT_SECONDS = 120.0


class OsdReports:
    """Remembers the last sequence number of every OSD and when it was first seen.

    Any thread may use it.
    """

    _read_at = 0.0
    _any_change = False  # without any, the sequence numbers mean nothing

    def __init__(self) -> None:
        self._last: Dict[int, Tuple[int, float]] = {}   # OSD → (number, seconds since the epoch)

    def stale(self, osd_stats: Iterable[Mapping[str, Any]], now: float) -> FrozenSet[int]:
        """Records `get('osd_stats')['osd_stats']`, and returns the OSDs with stale statistics.

        `now`: seconds since the epoch.
        """
        last: Dict[int, Tuple[int, float]] = {}
        for stats in osd_stats:
            osd = stats["osd"]
            seq = stats.get("seq")
            if not isinstance(seq, int):
                continue
            before, since = self._last.get(osd, (None, now))
            if before is not None and before != seq:
                self._any_change = True
                since = now
            last[osd] = seq, min(since, now)  # if the clock was set back
        self._last = last
        self._read_at = now
        return self.silent(SILENT_SECONDS)

    def oldest(self, osds: Container[int]) -> Optional[float]:
        """Returns when the oldest of the last reports of these OSDs was first seen, in seconds
        since the epoch; None without reports of them, or if no report has ever changed."""
        if not self._any_change:
            return None
        return min([since for osd, (_, since) in self._last.items() if osd in osds], default=None)

    def silent(self, seconds: float) -> FrozenSet[int]:
        """Returns the OSDs without a new report for so many seconds, at the last reading; none if
        no report has ever changed."""
        if not self._any_change:
            return frozenset()
        now = self._read_at
        return frozenset([osd for osd, (_, since) in list(self._last.items())
                          if now - since > seconds])
