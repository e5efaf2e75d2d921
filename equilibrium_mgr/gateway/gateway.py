"""Reads from the mgr, sends commands through it, and switches the built-in balancer off."""
from __future__ import annotations

import errno
import json
import math
import threading
import time
from datetime import datetime
from itertools import islice
from typing import (Any, Callable, Collection, Dict, FrozenSet, Iterable, List, Mapping,
                    Optional, Sequence, Set, Tuple)

from mgr_module import CommandResult, MgrModule, OSDMap

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD
from ..drain.status import StopCheck
from ..plan.model import PgChange
from ..plan.options import HARD_SHARE, PgShardLimits
from ..runtime.time_slice import give_way, piecewise, release
from ..settings import Settings, default_settings
from ..snapshot.builder import SnapshotBuilder
from ..snapshot.loads import PoolCounters, capacities_of, count_operations
from ..snapshot.model import (
    NO_CLASS, Osd, PoolRates, Reading, Snapshot, UpmapItems, is_same_placement, pg_number, pool_of)
from ..snapshot.osds import OsdReports, map_fields, read_osds
from ..snapshot.pg_statistics import PgStatistics
from ..snapshot.pools import PoolReader
from .cluster_summary import (
    ClusterSummary, PoolSpaceNow, flags_of, fullness_of, summarize_osds, summarize_pools)

_DEFAULT_MISPLACED_RATIO = 0.05
_DEFAULT_BALANCER_SLEEP = 60.0
_DEFAULT_BALANCER_MODE = "upmap"
#: Modes of the built-in balancer in which it writes neither upmap items nor weights. `read`, from
#: Ceph 19 on, sets only primaries.
_MOTIONLESS_MODES = frozenset(("none", "read"))
#: Seconds after which a monitor that has not answered a question counts as unable to.
_ANSWER_SECONDS = 5.0
#: A counter of OSDs. They always send it: its priority of 9 is above any mgr_stats_threshold.
_OP_LATENCY = "osd.op_latency"
#: The most OSDs whose osd_max_backfills is read: operators set it for all OSDs of a kind.
_OSDS_ASKED = 5
#: Seconds between two readings of all statistics of every PG: at least, and at most. The longer
#: time holds while no pool has changed and no statistics are missing.
_FULL_STATISTICS_SECONDS = 3600.0
_LONGEST_STATISTICS_SECONDS = 86_400.0
#: A pool has changed if its objects or omap differ by more than this ratio from the last full
#: reading.
_CHANGED_RATIO = 0.01
_GIB = 1 << 30
#: Items between two calls of `give_way`: about a millisecond. Each PG is mapped alone: all PGs of a
#: large pool take milliseconds, and other modules' commands need the interpreter's lock often.
_ROWS_A_PIECE = 4000
_MAPPED_A_PIECE = 50

#: Name of an answer of the mgr → (key of its rows, fields that the module reads of each row)
_SHAPES: Dict[str, Tuple[str, Sequence[str]]] = {
    "pg_progress": ("pgs", ("num_bytes", "num_bytes_recovered", "state", "reported_epoch")),
    "pg_stats": ("pg_stats", (
        "pgid", "version", "state", "reported_epoch", "up", "acting", "stat_sum")),
    "pg_status": ("pgs_by_pool_state", ("pool_id", "pg_state_counts")),
    "pool_stats": ("pool_stats", ("poolid", "num_pg", "stat_sum")),
    "osd_stats": ("osd_stats", ("osd", "statfs", "num_pgs")),
    "df": ("pools", ("id", "name", "stats")),
    "osd_map_tree": ("nodes", ("id", "type", "name")),
    "osd_map_crush": ("devices", ("id", "name")),
    "health": ("json", ())}

Osds = Tuple[int, ...]
OsdMapReading = Tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Osds], Mapping[str, Osds]]

#: pool id → (PGs, objects, omap bytes)
_PoolTotals = Dict[int, Tuple[int, ...]]


class NotReady(RuntimeError):
    """Says that the mgr does not have enough data yet; the message is a sentence for operators."""


#: The monitor's reply to one upmap command: (change, return code or None without a reply in time,
#: message)
UpmapReply = Tuple[PgChange, Optional[int], str]


class Gateway:
    """Reads snapshots from the mgr and sends upmap commands through it.

    `mgr` is the MgrModule, `settings` returns equilibrium's own options. `clock` returns seconds
    since the epoch, `monotonic` seconds that never decrease. Any thread may use it.
    """

    def __init__(self, mgr: MgrModule, clock: Callable[[], float],
                 settings: Callable[[], Settings] = default_settings,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._mgr = mgr
        self._clock = clock
        self._reports = OsdReports()
        self._monotonic = monotonic
        #: epoch → (flags, required clients) of its osdmap; has one epoch, replaced whole
        self._map_settings: Dict[int, Tuple[FrozenSet[str], str]] = {}
        self._map_fields: Dict[str, Any] = {"epoch": 0}   # of one epoch, replaced whole
        self._lock = threading.Lock()   # held while a snapshot is read and built
        self._settings = settings
        self._statistics = PgStatistics()
        self._statistics_read_at: Optional[float] = None
        self._statistics_totals: _PoolTotals = {}
        #: (when, pool id → counters) of the last full reading; None before the first
        self.operations: Optional[Tuple[float, Mapping[int, PoolCounters]]] = None
        self._capacities: Mapping[int, float] = {}   # OSD id → operations a second
        self._pool_rows: Dict[int, Mapping[str, Any]] = {}   # of get('pool_stats')
        self._builder = SnapshotBuilder()
        self._maps: Optional[OsdMapReading] = None   # of the last epoch that was read
        #: set by the loop, for later snapshots: see Reading
        self.measured: Mapping[int, float] = {}
        self.drained: FrozenSet[int] = frozenset()
        self.sent_before: Mapping[str, UpmapItems] = {}
        self.pool_rates: Mapping[int, PoolRates] = {}
        self.last_reading: Optional[Reading] = None   # of the newest snapshot
        self._builtin_was_active = False   # since pop_builtin_was_active

    def snapshot(self) -> Snapshot:
        """Reads the whole cluster. Raises NotReady while the mgr lacks maps or statistics."""
        with self._lock:
            reading = self._read()
            snapshot = self._builder.build(reading)
            self.last_reading = reading
            return snapshot

    def summary(self, with_map_settings: bool = False) -> ClusterSummary:
        """Reads the summary in a few milliseconds, without waiting for a `snapshot`.

        Reads the osdmap's flags and required clients only `with_map_settings`, once an epoch and
        from a monitor. Among the mgr's small structures only `health` has them, up to 10 s late.
        Raises NotReady.
        """
        osdmap = self._mgr.get_osdmap()
        epoch = osdmap.get_epoch()
        flags, client = self._settings_of_map(epoch) if with_map_settings else (None, None)
        osd_stats = self._get("osd_stats")["osd_stats"]
        pg_status = self._get("pg_status")
        pool_stats = self._get("pool_stats")["pool_stats"]
        osds = summarize_osds(self._get("osd_map_tree"), osd_stats)
        now = self._clock()
        reporting = frozenset([osd for osd, one in osds.items() if one.up and one.is_in])
        return ClusterSummary(
            taken_at=now,
            epoch=epoch,
            crush_version=osdmap.get_crush_version(),
            osds=osds,
            pools=summarize_pools(pool_stats, pg_status),
            misplaced_copies=pg_status.get("misplaced_objects", 0),
            degraded_copies=pg_status.get("degraded_objects", 0),
            mon_connected=self.have_mon_connection(),
            builtin_active=self.builtin_balancer_active(),
            fullness=fullness_of(self._get("health")["json"]),
            max_pg_shards=self.max_pg_shards(),
            stale_osds=self._reports.stale(osd_stats, now) & reporting,
            statistics_at=self._reports.oldest(reporting),
            flags=flags,
            min_compat_client=client)

    def epoch(self) -> int:
        """Returns the present epoch of the osdmap; takes microseconds."""
        return int(self._mgr.get_osdmap().get_epoch())

    def map_fields(self) -> Mapping[str, Any]:
        """Returns the `map_fields` of the newest osdmap. Dumps each epoch once."""
        osdmap = self._mgr.get_osdmap()
        if self._map_fields["epoch"] != osdmap.get_epoch():
            self._map_fields = map_fields(osdmap.dump())
        return self._map_fields

    def up_sets_without(self, osds: Collection[int],
                        pgids: Iterable[str]) -> Dict[str, Osds]:
        """Returns pgid → the up set that the newest osdmap would give a PG if these OSDs were out.

        Sends nothing. The up sets are those before the monitor cleans the upmap items. Leaves out
        PGs of pools that are gone.

        PyOSDMap.cc in Ceph's src/mgr (16 to 20) applies an incremental to a copy of the map, which
        takes milliseconds with the interpreter's lock held. The copy maps PGs by CRUSH with the new
        reweights and ignores upmap items whose target is out.
        """
        osdmap = self._mgr.get_osdmap()
        incremental = osdmap.new_incremental()
        incremental.set_osd_reweights({osd: 0.0 for osd in osds})
        give_way()
        after = osdmap.apply_incremental(incremental)
        up = ((pgid, up_set(after, pgid)) for pgid in piecewise(pgids, _MAPPED_A_PIECE))
        return {pgid: found for pgid, found in up if found is not None}

    def ceph_version(self) -> str:
        """Returns the release of this mgr, as `ceph version` shows it."""
        return str(self._mgr.version)

    def misplaced_copies(self) -> int:
        """Returns the misplaced object copies by `pg_status`; takes microseconds."""
        return int(self._get("pg_status").get("misplaced_objects", 0))

    def pool_ids_by_name(self) -> Dict[str, int]:
        """Returns pool name → pool id of all pools; fast enough for a command."""
        return {p["name"]: p["id"] for p in self._get("df").get("pools", [])}

    def pool_space(self) -> Dict[int, PoolSpaceNow]:
        """Returns pool id → its space as `ceph df` shows it; fast enough for a command."""
        found: Dict[int, PoolSpaceNow] = {}
        for pool in self._get("df").get("pools", []):
            figures = map(pool.get("stats", {}).get, ("stored", "percent_used", "max_avail"))
            found[pool["id"]] = PoolSpaceNow(pool["name"], *figures)
        return found

    def device_classes(self) -> Set[str]:
        """Returns the device classes of all OSDs, NO_CLASS for an OSD without one; fast enough for
        a command."""
        return {device.get("class", "") or NO_CLASS
                for device in self._get("osd_map_crush").get("devices", [])}

    def crush(self) -> CrushHierarchy:
        """Returns the present CRUSH hierarchy; fast enough for a command."""
        return CrushHierarchy(self._get("osd_map_crush"))

    def min_compat_client(self) -> str:
        """Returns the osdmap's present require_min_compat_client; waits for no monitor."""
        known = self._map_settings.get(self.epoch())
        if known is not None:
            return known[1]
        return str(self._mgr.get_osdmap().dump().get("require_min_compat_client", ""))

    def have_mon_connection(self) -> bool:
        """Returns True unless the mgr has lost the monitors."""
        return bool(self._mgr.have_mon_connection())

    def target_max_misplaced_ratio(self) -> float:
        """Returns Ceph's limit of misplaced copies, a ratio that also limits pg_num changes."""
        value = self._number_option("target_max_misplaced_ratio", _DEFAULT_MISPLACED_RATIO)
        # Ceph accepts any float for it, nan and a percentage among them
        return value if 0.0 <= value <= 1.0 else _DEFAULT_MISPLACED_RATIO

    def options_set(self, module: str) -> Optional[FrozenSet[str]]:
        """Returns the names of a module's options that are set for this mgr; None without a reply.

        Waits for a monitor, so only the serve thread may call it.
        """
        output, = self._outputs(
            {"prefix": "config get", "who": f"mgr.{self._mgr.get_mgr_id()}", "format": "json"})
        try:
            names = [str(name) for name in json.loads(output or "")]
        except (TypeError, ValueError):
            return None
        prefix = f"mgr/{module}/"
        return frozenset(name[len(prefix):] for name in names if name.startswith(prefix))

    def stop_check(self, osds: FrozenSet[int]) -> Optional[StopCheck]:
        """Returns the answer of `ceph osd ok-to-stop` for these OSDs together; None if none comes
        or the command fails.

        It is a command of the mgr, which monitors forward. It waits for a reply, so only the serve
        thread may call it.
        """
        reply, = self._ask({"prefix": "osd ok-to-stop", "format": "json",
                            "ids": [str(osd) for osd in sorted(osds)]})
        if reply is None or reply.r not in (0, -errno.EBUSY):
            return None
        return StopCheck(True, "") if reply.r == 0 else StopCheck(False, reply.outs)

    def op_latency(self, osds: Iterable[int]) -> Dict[int, Tuple[int, int]]:
        """Returns OSD → (nanoseconds, ops) of all client ops with it as primary since it started.

        Takes microseconds for each OSD, and the global lock of the mgr. From Ceph 20 on
        get_latest_counter is for counters with labels, and another function replaces it.
        """
        mgr = self._mgr
        read = getattr(mgr, "get_latest_unlabeled_counter", None) or mgr.get_latest_counter
        points: Dict[int, Tuple[Any, ...]] = {
            osd: read("osd", str(osd), _OP_LATENCY).get(_OP_LATENCY) or () for osd in osds}
        give_way()
        return {osd: (point[1], point[2]) for osd, point in points.items() if len(point) == 3}

    def stacked_backfills(self, osds: Iterable[int]) -> Dict[int, int]:
        """Returns OSD → its osd_max_backfills if that is above 1, for the first few of these OSDs
        with rotating disks; empty without a connection.

        `config show` is a command of the mgr. OSDs report to it the value in use, whether a
        ceph.conf, the monitors or mClock have set it. It waits for a reply, so only the serve
        thread may call it.
        """
        if not self.have_mon_connection():
            return {}
        asked = list(islice(filter(self._is_rotating, osds), _OSDS_ASKED))
        outputs = self._outputs(*[{"prefix": "config show", "who": f"osd.{osd}",
                                   "key": "osd_max_backfills"} for osd in asked])
        found = {osd: (text or "").strip() for osd, text in zip(asked, outputs)}
        return {osd: int(text) for osd, text in found.items() if text.isdigit() and int(text) > 1}

    def _is_rotating(self, osd: int) -> bool:
        """Returns True if the disk of an OSD is known to rotate."""
        metadata = self._mgr.get_metadata("osd", str(osd)) or {}
        return bool(metadata.get("rotational") == "1")

    def copying_options(self, osd: int) -> Dict[str, Any]:
        """Returns Ceph's options for how much an OSD copies at a time, as the monitors have
        them."""
        return {name: self._mgr.get_foreign_ceph_option(f"osd.{osd}", name)
                for name in ("osd_mclock_profile", "osd_max_backfills")}

    def set_option(self, name: str, value: str) -> None:
        """Sets one of equilibrium's own options; waits for a commit of the monitors."""
        self._mgr.set_module_option(name, value)

    def silent_osds(self, seconds: float) -> FrozenSet[int]:
        """Returns the OSDs without new statistics for so many seconds, at the last reading or
        summary; takes microseconds."""
        return self._reports.silent(seconds)

    def write_to_cluster_log(self, line: str) -> None:
        """Writes one line of priority INFO (`ceph log last`); waits for nothing."""
        self._mgr.cluster_log("cluster", self._mgr.ClusterLogPrio.INFO, line)

    def update_progress(self, event_id: str, message: str, ratio: float) -> None:
        """Begins or changes an event of the progress module, if that runs.

        `ceph -s` does not show it: Ceph would add its own time left, which ignores the throttle.
        """
        self._call_progress("update", event_id, message, ratio, [], False)

    def end_progress(self, event_id: str, failure: Optional[str]) -> None:
        """Ends an event. `failure`: the reason if it has failed, else None."""
        if failure is None:
            self._call_progress("complete", event_id)
        else:
            self._call_progress("fail", event_id, failure)

    def _call_progress(self, method: str, *arguments: Any) -> None:
        """Calls the progress module. Its methods are the same from Ceph 16 to 20."""
        try:
            self._mgr.remote("progress", method, *arguments)
        except (ImportError, NameError, RuntimeError):
            pass   # it is off, or still starts; nothing depends on it

    def max_pg_shards(self) -> PgShardLimits:
        """Returns the limits of PG shards by the options of the mgr. An OSD uses its own values."""
        mean = self._number_option("mon_max_pg_per_osd", 0.0)
        hard = mean * self._number_option("osd_max_pg_per_osd_hard_ratio", 0.0)
        return PgShardLimits(int(mean), int(HARD_SHARE * hard))

    def _number_option(self, name: str, unknown: float) -> float:
        """Returns an option of Ceph; `unknown` if this release lacks it, or if it is no number."""
        try:
            value = float(self._mgr.get_ceph_option(name))
        except (KeyError, TypeError, ValueError):
            return unknown
        return value if math.isfinite(value) else unknown

    def at_newest_map(self, snapshot: Snapshot) -> Snapshot:
        """Returns the snapshot with flags, full ratios, pools, CRUSH and OSDs of the newest osdmap.

        PGs, their up sets and the sizes of OSDs stay as in the snapshot.
        """
        osdmap = self._mgr.get_osdmap()
        last = self.last_reading
        if osdmap.get_epoch() == snapshot.epoch or last is None:
            return snapshot
        dump = osdmap.dump()
        crush = snapshot.crush
        if dump.get("crush_version") != snapshot.crush_version:
            crush = CrushHierarchy(osdmap.get_crush().dump())
        osds: Dict[int, Osd] = {}
        for number, now in read_osds(dump, crush, ()).items():
            if number in snapshot.osds:
                osds[number] = snapshot.osds[number]._replace(
                    up=now.up, is_in=now.is_in, reweight=now.reweight)
        pools = PoolReader().read(last._replace(osd_map=dump), crush)
        return snapshot._replace(**map_fields(dump), crush=crush, pools=pools, osds=osds)

    def applicable(self, changes: Iterable[PgChange], snapshot: Snapshot) -> List[PgChange]:
        """Returns the changes whose PGs have the OSDs of `up_before` by the newest osdmap.

        The PG may lack some of these, because they can come back. Changes of pools that the
        snapshot does not have are among them.
        """
        osdmap = self._mgr.get_osdmap()
        found = []
        for change in piecewise(changes, _MAPPED_A_PIECE):
            pool = snapshot.pools.get(pool_of(change.pgid))
            up = up_set(osdmap, change.pgid) or ()
            is_there = pool is None or is_same_placement(up, change.up_before, pool.erasure)
            if is_there or (up and set(up) - {NO_OSD} < set(change.up_before)):
                found.append(change)
        return found

    def without_remapped(self, changes: Sequence[PgChange], snapshot: Snapshot) -> List[PgChange]:
        """Returns the changes whose PGs still have the OSDs of the snapshot, with any primary."""
        osdmap = self._mgr.get_osdmap()
        if osdmap.get_epoch() == snapshot.epoch:
            return list(changes)
        found = []
        for change in changes:
            pg = snapshot.pgs[change.pgid]
            up = up_set(osdmap, pg.pgid) or ()
            if is_same_placement(up, pg.up, snapshot.is_positional(pg)):
                found.append(change)
        return found

    def submit_upmaps(self, changes: Sequence[PgChange]) -> List[Tuple[PgChange, CommandResult]]:
        """Sends all commands at once, so that one epoch can have all of them; waits for nothing."""
        return [(change, self._send(_command(change))) for change in changes]

    def collect_replies(self, requests: Sequence[Tuple[PgChange, CommandResult]],
                        timeout: float) -> List[UpmapReply]:
        """Waits for the monitor's replies, at most `timeout` seconds in all.

        A return code of 0 does not mean that the monitor keeps the items: only the osdmap shows it.
        """
        found: List[UpmapReply] = []
        replies = self._wait([request for _, request in requests], timeout)
        for (change, _), reply in zip(requests, replies):
            code = None
            message = f"no answer within {int(timeout)} s"
            if reply is not None:
                code = reply.r
                message = reply.outs or reply.outb or ""
            found.append((change, code, message))
        return found

    # -- the built-in balancer ---------------------------------------------------------------

    def builtin_balancer_active(self) -> bool:
        """Returns True if the built-in balancer is on in a mode that moves data. Notes that for
        `pop_builtin_was_active`."""
        if self.builtin_balancer_mode() in _MOTIONLESS_MODES or not self.builtin_balancer_on():
            return False
        self._builtin_was_active = True
        return True

    def builtin_balancer_on(self) -> bool:
        """Returns True if the built-in balancer runs and its option is on, as it is by default.

        Ceph 20 can disable the module (`mgr module force disable`).
        """
        value = self._mgr.get_module_option_ex("balancer", "active", True)
        is_on = str(value).lower() in ("true", "1", "yes")
        return is_on and self.builtin_balancer_runs()

    def builtin_balancer_mode(self) -> str:
        """Returns the mode of the built-in balancer: upmap items, weights or primaries."""
        return str(self._mgr.get_module_option_ex("balancer", "mode") or _DEFAULT_BALANCER_MODE)

    def pop_builtin_was_active(self) -> bool:
        """Returns True if `builtin_balancer_active` was True since the last call."""
        was_active = self._builtin_was_active
        self._builtin_was_active = False
        return was_active

    def builtin_balancer_runs(self) -> bool:
        """Returns True if the built-in balancer's module is loaded: else the mgr raises
        ImportError."""
        try:
            self._mgr.remote("balancer", "gather_telemetry")
        except ImportError:
            return False
        except (NameError, RuntimeError):
            pass  # it is loaded and fails for another reason
        return True

    def builtin_balancer_sleep(self) -> float:
        """Returns the seconds within which a running built-in balancer notices that its option is
        off."""
        return float(self._mgr.get_module_option_ex(
            "balancer", "sleep_interval", _DEFAULT_BALANCER_SLEEP))

    def switch_off_builtin_balancer(self) -> None:
        """Switches the built-in balancer off by its option, and wakes it if possible, so that it
        notices."""
        self._mgr.set_module_option_ex("balancer", "active", "false")
        for call in (("off",), ("handle_command", "", {"prefix": "balancer off"})):
            try:
                self._mgr.remote("balancer", *call)
                return
            except (ImportError, NameError, RuntimeError):
                continue  # another release's method, or no balancer module at all

    # -- reading -----------------------------------------------------------------------------

    def _read(self) -> Reading:
        """Reads the whole cluster."""
        progress = self._get("pg_progress")
        if not progress.get("pg_ready", True):
            raise NotReady("the mgr has not received the statistics of all PGs yet")
        pgs = progress.get("pgs", {})
        osdmap = self._mgr.get_osdmap()
        if self._maps is None or self._maps[0]["epoch"] != osdmap.get_epoch():
            self._maps = read_osd_map(osdmap)
        osd_map, crush, up, acting = self._maps
        pool_stats = self._pool_statistics()
        self._refresh_statistics(pool_stats)
        records = self._statistics.records(pgs, pool_stats, acting, up)
        held: List[Any] = [*pgs.values(), *pgs]
        del pgs, progress
        release(held)
        osds = self._get("osd_stats")
        osd_stats = osds.get("osd_stats", [])
        now = self._clock()
        settings = self._settings()
        # no rows if OSDs do not distinguish pools
        rows = piecewise(osds.get("pool_statfs", ()), _ROWS_A_PIECE)
        return Reading(
            taken_at=now,
            osd_map=osd_map,
            crush=crush,
            up=up,
            records=records,
            osd_stats=osd_stats,
            pool_stats=pool_stats,
            pg_status=self._get("pg_status"),
            stale_osds=self._reports.stale(osd_stats, now),
            acting=acting,
            respect_weights=settings.respect_weights,
            measured=self.measured,
            min_omap_osd_bytes=int(settings.min_omap_osd_size * _GIB),
            changed_at=modified_at(osd_map),
            drained=self.drained,
            sent=self.sent_before,
            rates=self.pool_rates,
            capacities=self._capacities,
            pool_statfs=[(row["poolid"], row["osd"], row.get("allocated", 0),
                          row.get("data_stored", 0)) for row in rows])

    def _pool_statistics(self) -> List[Mapping[str, Any]]:
        """Returns the rows of get('pool_stats'). Replaces an impossible row by the last possible
        one of the pool, or leaves it out."""
        rows = self._get("pool_stats").get("pool_stats", [])
        known = {**self._pool_rows, **{row["poolid"]: row for row in rows if _is_possible(row)}}
        pools = [row["poolid"] for row in rows]
        self._pool_rows = {pool: known[pool] for pool in pools if pool in known}
        return list(self._pool_rows.values())

    def _refresh_statistics(self, pool_stats: Sequence[Mapping[str, Any]]) -> None:
        """Reads all statistics of every PG at first and once a day; within the day, at most once an
        hour, if the pools have changed or some are missing."""
        now = self._clock()
        totals: _PoolTotals = {}
        for pool in pool_stats:
            sums = pool.get("stat_sum", {})
            totals[pool["poolid"]] = (pool.get("num_pg", 0), sums.get("num_objects", 0),
                                      sums.get("num_omap_bytes", 0))
        if self._statistics_read_at is not None:
            age = now - self._statistics_read_at
            if 0.0 <= age < _FULL_STATISTICS_SECONDS:
                return
            if 0.0 <= age < _LONGEST_STATISTICS_SECONDS and self._statistics.is_complete:
                if not _have_changed(self._statistics_totals, totals):
                    return
        rows = self._get("pg_stats").get("pg_stats", [])
        self._statistics.read_full(rows, pool_stats)
        self.operations = now, count_operations(rows)
        self._statistics_read_at = now
        self._statistics_totals = totals

    def read_capacities(self) -> None:
        """Asks a monitor what the devices of OSDs can do, as far as the configuration says so; only
        the serve thread may wait for it."""
        if self.have_mon_connection():
            config, = self._outputs({"prefix": "config dump", "format": "json"})
            self._capacities = capacities_of(config or "")

    def _settings_of_map(self, epoch: int) -> Tuple[Optional[FrozenSet[str]], Optional[str]]:
        """Returns (flags, required clients), Nones without a reply. Asks once an epoch."""
        if not self.have_mon_connection():
            return None, None
        known = self._map_settings
        if epoch in known:
            return known[epoch]
        stat, client = self._outputs(
            {"prefix": "osd stat"}, {"prefix": "osd get-require-min-compat-client"})
        if stat is None or client is None:
            return None, None
        settings = flags_of(stat), client.strip()
        self._map_settings = {epoch: settings}   # replaced whole: other threads may read it
        return settings

    def _ask(self, *commands: Mapping[str, Any]) -> List[Optional[CommandResult]]:
        """Sends commands at once, and returns the monitors' replies; None for a late one."""
        return self._wait([self._send(command) for command in commands], _ANSWER_SECONDS)

    def _outputs(self, *commands: Mapping[str, Any]) -> List[Optional[str]]:
        """Sends commands at once, and returns their outputs; None without a successful reply."""
        return list(map(_output_of, self._ask(*commands)))

    def _send(self, command: Mapping[str, Any]) -> CommandResult:
        """Gives a command to the mgr, which sends it to a monitor; waits for nothing."""
        reply = CommandResult("")
        self._mgr.send_command(reply, "mon", "", json.dumps(command), "")
        return reply

    def _wait(self, replies: Sequence[CommandResult],
              timeout: float) -> List[Optional[CommandResult]]:
        """Waits for replies, at most `timeout` seconds in all; returns None for a late one."""
        deadline = self._monotonic() + timeout
        found: List[Optional[CommandResult]] = []
        for reply in replies:
            has_come = reply.ev.wait(max(0.0, deadline - self._monotonic()))
            found.append(reply if has_come else None)
        return found

    def _get(self, name: str) -> Mapping[str, Any]:
        """Returns an answer of the mgr. Raises NotReady if it has none yet."""
        value: Optional[Mapping[str, Any]] = self._mgr.get(name)
        if value is None:
            raise NotReady(f"the mgr has no {name} yet")
        return value


class StrictGateway(Gateway):
    """Rejects answers without the fields that the module reads, for the self-test.

    A Gateway takes a missing field as unknown. The self-test has its own gateway, so it does not
    change the state of the loop's.
    """

    def _get(self, name: str) -> Mapping[str, Any]:
        """Returns an answer of the mgr. Raises RuntimeError if it lacks its rows, or if its first
        row lacks a field."""
        answer, (key, fields) = self._mgr.get(name) or {}, _SHAPES[name]
        rows = answer.get(key)
        lacks = [key]
        if rows is not None:
            first = list(islice(getattr(rows, "values", rows.__iter__)(), 1))
            lacks = [field for field in fields if first and field not in first[0]]
        if lacks:
            raise RuntimeError(f"get('{name}') of the mgr has no '{lacks[0]}'")
        return dict(answer)

    def read_everything(self) -> str:
        """Reads all answers of the mgr that rounds and commands use, and returns a line on them.

        The line says so if an mgr that has just started lacks some. Waits for a monitor.
        """
        self.pool_space()
        flags = self.summary(with_map_settings=True).flags
        try:
            snapshot = self.snapshot()
        except NotReady as error:
            return f"no snapshot yet: {error}"
        osds = snapshot.osds
        self.up_sets_without((), list(snapshot.pgs)[:1])
        self.op_latency(osds)
        self.stacked_backfills(osds)
        self.copying_options(min(osds))
        answer = "no answer of a monitor"
        if flags is not None:
            answer = f"flags: {', '.join(sorted(flags)) or 'none'}"
        classes = ", ".join(sorted(self.device_classes()))
        pgs = len(snapshot.pgs)
        pools = len(snapshot.pools)
        return (f"read {len(osds)} OSDs ({classes}) and {pgs} PGs of {pools} pools at"
                f" epoch {snapshot.epoch}, {answer}")


def _output_of(reply: Optional[CommandResult]) -> Optional[str]:
    """Returns the output of a command, None if it failed or no reply came."""
    return None if reply is None or reply.r else str(reply.outb)


def _command(change: PgChange) -> Dict[str, Any]:
    """Returns the monitor's command for a change."""
    if not change.items:
        return {"prefix": "osd rm-pg-upmap-items", "format": "json", "pgid": change.pgid}
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": change.pgid,
            "id": [osd for pair in change.items for osd in pair]}


def read_osd_map(osdmap: OSDMap) -> OsdMapReading:
    """Returns (OSDMap.dump(), CRUSHMap.dump(), pgid → up set, pgid → acting set if it differs)."""
    osd_map = osdmap.dump()
    up: Dict[str, Osds] = {}
    acting: Dict[str, Osds] = {}
    for pool in osd_map["pools"]:
        for ps in piecewise(range(pool["pg_num"]), _MAPPED_A_PIECE):
            mapped = osdmap.pg_to_up_acting_osds(pool["pool"], ps)
            pgid = f"{pool['pool']}.{ps:x}"
            osds = mapped["up"]
            serving = mapped["acting"]
            up[pgid] = tuple(osds)
            if osds != serving:
                acting[pgid] = tuple(serving)
    return osd_map, osdmap.get_crush().dump(), up, acting


def up_set(osdmap: OSDMap, pgid: str) -> Optional[Osds]:
    """Returns the up set of a PG; None if its pool is gone."""
    try:
        return tuple(osdmap.pg_to_up_acting_osds(pool_of(pgid), pg_number(pgid))["up"])
    except SystemError:
        return None


def modified_at(osd_map: Mapping[str, Any]) -> Optional[float]:
    """Returns the time of an osdmap's epoch, in seconds since the epoch; None if it is not
    known."""
    try:
        return datetime.strptime(str(osd_map.get("modified", "")),
                                 "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None


def _is_possible(pool: Mapping[str, Any]) -> bool:
    """Returns True if the statistics of a pool have its objects and bytes, none below 0."""
    sums = pool.get("stat_sum", {})
    return bool(min(sums.get("num_objects", -1), sums.get("num_bytes", -1)) >= 0)


def _have_changed(then: _PoolTotals, now: _PoolTotals) -> bool:
    """Returns True if a pool is new, gone, split or merged, or has clearly more or less data."""
    if then.keys() != now.keys():
        return True
    for pool, (pgs, *counts) in now.items():
        before, *old_counts = then[pool]
        if pgs != before:
            return True
        if any(abs(a - b) > _CHANGED_RATIO * a for a, b in zip(old_counts, counts)):
            return True
    return False
