"""Reads the osdmap, and dumps it only where cheap calls cannot tell what has changed.

From Ceph 18 on a dump computes read balance scores with the interpreter's lock held, which takes
more than half a second at 1,000 OSDs.
"""
from __future__ import annotations

import math
from datetime import datetime
from typing import (Any, Callable, Collection, Dict, List, Mapping, NamedTuple, Optional,
                    Sequence, Set, Tuple)

from ..plan.model import PgChange
from ..runtime.checkpoints import Checkpoint, with_checkpoints
from ..runtime.work_counters import WorkCounters
from ..snapshot.model import pg_number, pool_of
from ..snapshot.statistics.pg_reports import PgReports, Reports
from .mgr_api import MgrApi, OsdMapApi
from .summary_reader import OsdMapSettings
from .up_sets import Osds, UpSetReader, UpSets

_MAPPED_A_PIECE = 50   # between two checkpoints: about a millisecond
_NO_OSD = 0x7FFFFFFF
#: Seconds after which the osdmap is dumped for what no cheap call has (full ratios, a
#: pg_num_target, full pg_upmaps). The shorter time holds where an epoch has shown no change, and
#: where no epoch has passed since one that was not dumped.
_REFRESH_SECONDS, _UNEXPLAINED_SECONDS = 300.0, 120.0
#: `osd stat` does not show these flags, which are set once and for all.
_HIDDEN_FLAGS = frozenset(("sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit",
                           "require_jewel_osds", "require_kraken_osds", "require_luminous_osds"))


class OsdMapReading(NamedTuple):
    """The osdmap at one epoch."""

    osd_map: Mapping[str, Any]   # as OSDMap.dump() would have it
    crush: Mapping[str, Any]     # as CRUSHMap.dump() has it
    up: UpSets                   # pgid → up set
    acting: Mapping[str, Osds]   # pgid → acting set, of PGs whose acting set is not their up set


class _NeedsDump(Exception):
    """Raised where cheap calls cannot tell what has changed."""


class OsdMapReader:
    """Remembers the last reading and the upmaps that were sent since.

    `map_settings` asks a monitor for the flags at an epoch; None without a reply in time.
    `checkpoint` is called between small pieces of work.
    """

    def __init__(self, mgr: MgrApi, clock: Callable[[], float],
                 map_settings: Callable[[int], Optional[OsdMapSettings]], counters: WorkCounters,
                 checkpoint: Checkpoint) -> None:
        self._mgr = mgr
        self._clock = clock
        self._map_settings = map_settings
        self._counters = counters
        self._checkpoint = checkpoint
        self._up_sets = UpSetReader(checkpoint)
        self._last: Optional[OsdMapReading] = None
        self._dumped_at = 0.0        # seconds since the epoch
        self._dumped_epoch = -1
        self._rates: Dict[int, float] = {}         # pool id → raw bytes a byte takes, at the dump
        self._pool_names: Mapping[int, str] = {}   # as `df` had them at the last dump
        self._expected: Dict[str, PgChange] = {}   # pgid → upmap of ours that no up set shows yet
        self._watched: Dict[str, int] = {}         # pgid → epoch of a change of its up set

    def read(self, progress: Reports, reports: PgReports, pool_names: Mapping[int, str],
             fresh: bool) -> OsdMapReading:
        """Reads the newest osdmap; `fresh` asks for one that was dumped at its epoch.

        `progress` is get('pg_progress')['pgs'], which `reports` has compared; `pool_names` are
        those of get('df').
        """
        osdmap = self._mgr.get_osdmap()
        epoch = int(osdmap.get_epoch())
        if self._last is not None and self._last.osd_map["epoch"] == epoch and (
                self._dumped_epoch == epoch or not fresh and self._has_same_pgs(reports)
                and self._dump_is_recent(_UNEXPLAINED_SECONDS)):
            return self._last
        if self._last is None or fresh or not self._dump_is_recent(_REFRESH_SECONDS):
            self._last = self._dumped(osdmap, pool_names)
            return self._last
        try:
            self._last = self._updated(osdmap, self._last, progress, reports, pool_names)
        except _NeedsDump:
            self._last = self._dumped(osdmap, pool_names)
        return self._last

    def expect(self, changes: Sequence[PgChange]) -> None:
        """Records upmaps of ours, for which no dump is needed once the up sets show them. Those do
        not tell which primaries are set."""
        if any(change.primary is not None for change in changes):
            self._dumped_at = -math.inf
        self._expected = {**self._expected, **{change.pgid: change for change in changes}}

    def dumped_at_epoch(self, epoch: int) -> bool:
        """True where the osdmap of this epoch was dumped."""
        return self._dumped_epoch == epoch

    def _dump_is_recent(self, seconds: float) -> bool:
        return 0.0 <= self._clock() - self._dumped_at < seconds

    # -- by a dump -----------------------------------------------------------------------------

    def _dumped(self, osdmap: OsdMapApi, pool_names: Mapping[int, str]) -> OsdMapReading:
        self._counters.add("osdmap_dumps")
        osd_map = osdmap.dump()
        self._checkpoint()
        before = self._last
        crush = osdmap.get_crush().dump()
        up = self._up_sets.read(osdmap, osd_map["pools"])
        self._rates = {pool["pool"]: osdmap.pool_raw_used_rate(pool["pool"])
                       for pool in osd_map["pools"]}
        self._dumped_at, self._dumped_epoch = self._clock(), osd_map["epoch"]
        self._pool_names = pool_names
        self._expected = {}
        if before is not None:
            changed = up.changed_since(before.up, self._checkpoint)
            self._watch_pgs(osd_map["epoch"], changed if changed is not None else [
                pgid for pgid in up if before.up.get(pgid) != up[pgid]])
        temporary = [entry["pgid"] for entry in osd_map.get("pg_temp", ())]
        return OsdMapReading(osd_map, crush, up, self._acting_sets(osdmap, temporary, up))

    def _acting_sets(self, osdmap: OsdMapApi, pgids: Collection[str],
                     up: Mapping[str, Osds]) -> Dict[str, Osds]:
        """pgid → acting set, in the order of the shards, of PGs where it is not the up set."""
        acting: Dict[str, Osds] = {}
        for pgid in with_checkpoints(pgids, _MAPPED_A_PIECE, self._checkpoint):
            if pgid in up:
                osds = tuple(osdmap.pg_to_up_acting_osds(
                    pool_of(pgid), pg_number(pgid))["acting"])
                if osds != up[pgid]:
                    acting[pgid] = osds
        return acting

    # -- by cheap calls ------------------------------------------------------------------------

    def _updated(self, osdmap: OsdMapApi, last: OsdMapReading,
                 progress: Reports, reports: PgReports,
                 pool_names: Mapping[int, str]) -> OsdMapReading:
        """The last reading with what has changed since. Raises _NeedsDump."""
        osd_map, epoch = last.osd_map, int(osdmap.get_epoch())
        if pool_names != self._pool_names or osdmap.get_crush_version() != osd_map["crush_version"]:
            raise _NeedsDump
        if not self._has_same_pgs(reports):
            raise _NeedsDump
        flipped = flipped_osds(osd_map["osds"], self._mgr.get("osd_map_tree"))
        if flipped and osd_map.get("stretch_mode", {}).get("stretch_mode_enabled"):
            raise _NeedsDump   # the stretch mode may be degraded now, which forbids moves
        if any(_raw_used_rate(osdmap, pool) != rate for pool, rate in self._rates.items()):
            raise _NeedsDump   # a pool has another size
        self._checkpoint()
        up, changed = self._changed_up_sets(osdmap, last)
        own_changes = self._own_changes(up, changed, last.up, flipped)
        self._watch_pgs(epoch, changed)
        acting = self._acting_sets(osdmap, self._maybe_remapped(progress, reports, last.acting), up)
        map_settings = self._map_settings(epoch)
        if map_settings is None:
            raise _NeedsDump
        if not (changed or flipped or acting != last.acting or _differ(map_settings, osd_map)
                or self._dump_is_recent(_UNEXPLAINED_SECONDS)):
            raise _NeedsDump
        self._expected = {}
        started = started_osds(osd_map["osds"], flipped, self._mgr.get("osd_stats"), epoch)
        patched = _patched(osd_map, epoch, map_settings, flipped, started, own_changes, acting)
        return OsdMapReading(patched, last.crush, up, acting)

    def _has_same_pgs(self, reports: PgReports) -> bool:
        """True where every pool has as many PGs as at the last reading.

        The mgr has a record of each PG as soon as it has the osdmap. Mapping a PG shows nothing:
        Ceph folds the number of a PG that does not exist onto one that does.
        """
        assert self._last is not None
        return reports.pg_nums == {pool["pool"]: pool["pg_num"]
                                   for pool in self._last.osd_map["pools"]}

    def _changed_up_sets(self, osdmap: OsdMapApi,
                         last: OsdMapReading) -> Tuple[UpSets, List[str]]:
        """(pgid → up set of all PGs, pgids whose up set has changed). Raises _NeedsDump."""
        try:
            up = self._up_sets.read(osdmap, last.osd_map["pools"])
        except SystemError:   # Ceph raises it for a pool that is gone
            raise _NeedsDump from None
        changed = up.changed_since(last.up, self._checkpoint)
        if changed is None or len(up) != sum(pool["pg_num"] for pool in last.osd_map["pools"]):
            raise _NeedsDump
        return up, changed

    def _own_changes(self, up: Mapping[str, Osds], changed: Sequence[str],
                     before: Mapping[str, Osds], flipped: Collection[int]) -> List[PgChange]:
        """Returns the upmaps of ours that were sent, once all of them show in the up sets. Raises
        _NeedsDump where one does not show, or where an up set has changed for another reason."""
        for pgid in changed:
            change = self._expected.get(pgid)
            if change is None or up[pgid] != change.up_after:
                difference = set(up[pgid]).symmetric_difference(before[pgid])
                if change is not None or not difference.issubset({*flipped, _NO_OSD}):
                    raise _NeedsDump
                if not difference:   # in another order
                    raise _NeedsDump
        for pgid, change in self._expected.items():
            if up.get(pgid) != change.up_after or change.up_after == change.up_before:
                raise _NeedsDump
        return list(self._expected.values())

    def _watch_pgs(self, epoch: int, changed: Sequence[str]) -> None:
        """Records the epoch at which PGs changed: statistics may be older, a pg_temp may follow."""
        for pgid in changed:
            self._watched[pgid] = epoch

    def _maybe_remapped(self, progress: Reports, reports: PgReports,
                        acting: Mapping[str, Osds]) -> Set[str]:
        """pgids of PGs whose acting set may differ from their up set."""
        self._watched = {
            pgid: epoch for pgid, epoch in self._watched.items()
            if pgid in progress and progress[pgid].get("reported_epoch", 0) < epoch}
        return reports.not_clean.union(acting, self._watched)


def modified_at(osd_map: Mapping[str, Any]) -> Optional[float]:
    """Returns the time of this epoch in seconds since the epoch; None where it was not dumped."""
    try:
        return datetime.strptime(str(osd_map.get("modified", "")),
                                 "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None


def flipped_osds(osds: Sequence[Mapping[str, Any]],
                 tree: Optional[Mapping[str, Any]]) -> Dict[int, bool]:
    """OSD id → is up, of OSDs that have come up or gone down since the dump.

    `tree` is get('osd_map_tree'). Raises _NeedsDump where an OSD was created, destroyed or removed,
    or its reweight or primary affinity has changed.
    """
    if tree is None:
        raise _NeedsDump
    now = {node["id"]: node for part in ("nodes", "stray") for node in tree.get(part, ())
           if node["id"] >= 0 and node.get("exists", 1)}
    if len(now) != len(osds):
        raise _NeedsDump
    flipped: Dict[int, bool] = {}
    for osd in osds:
        node = now.get(osd["osd"])
        if node is None or _weights(osd, "weight") != _weights(node, "reweight") or (
                (node["status"] == "destroyed") != ("destroyed" in osd.get("state", ()))):
            raise _NeedsDump
        if (node["status"] == "up") != bool(osd["up"]):
            flipped[osd["osd"]] = node["status"] == "up"
    return flipped


def started_osds(osds: Sequence[Mapping[str, Any]], flipped: Mapping[int, bool],
                 stats: Optional[Mapping[str, Any]], epoch: int) -> Dict[int, int]:
    """OSD id → epoch since which it is up, of OSDs that have been down since the dump.

    `stats` is get('osd_stats'): the reports show an OSD that was down between two readings.
    """
    started = {osd: epoch for osd, up in flipped.items() if up}
    up_from = {entry["osd"]: entry.get("up_from", 0)
               for entry in (stats or {}).get("osd_stats", ())}
    for osd in osds:
        number = osd["osd"]
        if number not in started and up_from.get(number, 0) > osd.get("up_from", 0):
            started[number] = up_from[number]
    return started


def _weights(osd: Mapping[str, Any], reweight: str) -> Tuple[float, float]:
    return round(osd[reweight], 5), round(osd.get("primary_affinity", 1.0), 5)


def _raw_used_rate(osdmap: OsdMapApi, pool: int) -> float:
    """Raw bytes that a byte in the pool takes, computed by Ceph: erasure-code plugins have formulas
    of their own. Raises _NeedsDump where the pool is gone."""
    try:
        return float(osdmap.pool_raw_used_rate(pool))
    except SystemError:
        raise _NeedsDump from None


def _differ(map_settings: OsdMapSettings, osd_map: Mapping[str, Any]) -> bool:
    flags = frozenset(flag for flag in osd_map.get("flags", "").split(",") if flag)
    return (map_settings.flags - _HIDDEN_FLAGS != flags - _HIDDEN_FLAGS
            or map_settings.min_compat_client != osd_map.get("require_min_compat_client", ""))


def _patched(osd_map: Mapping[str, Any], epoch: int, map_settings: OsdMapSettings,
             flipped: Mapping[int, bool], started: Mapping[int, int],
             own_changes: Sequence[PgChange], acting: Mapping[str, Osds]) -> Mapping[str, Any]:
    """The osdmap dump as it would be at this epoch."""
    hidden = _HIDDEN_FLAGS.intersection(osd_map.get("flags", "").split(","))
    flags = sorted(map_settings.flags | hidden)
    return {
        **osd_map, "epoch": epoch, "modified": "", "flags": ",".join(flags), "flags_set": flags,
        "require_min_compat_client": map_settings.min_compat_client,
        "osds": [_with_state(osd, flipped, started) for osd in osd_map["osds"]]
        if flipped or started else osd_map["osds"],
        "pg_upmap_items": _with_items(osd_map.get("pg_upmap_items", ()), own_changes),
        "pg_temp": [{"pgid": pgid, "osds": list(osds)} for pgid, osds in acting.items()]}


def _with_state(osd: Mapping[str, Any], flipped: Mapping[int, bool],
             started: Mapping[int, int]) -> Mapping[str, Any]:
    if osd["osd"] in started:
        osd = {**osd, "up_from": started[osd["osd"]]}
    if osd["osd"] not in flipped:
        return osd
    up = flipped[osd["osd"]]
    state = [word for word in osd.get("state", ()) if word != "up"]
    return {**osd, "up": int(up), "state": state + ["up"] if up else state}


def _with_items(entries: Sequence[Mapping[str, Any]],
                changes: Sequence[PgChange]) -> Sequence[Mapping[str, Any]]:
    if not changes:
        return entries
    replaced = {change.pgid for change in changes}
    return [entry for entry in entries if entry["pgid"] not in replaced] + [
        {"pgid": change.pgid, "mappings": [{"from": a, "to": b} for a, b in change.items]}
        for change in changes if change.items]
