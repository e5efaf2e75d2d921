"""Reads from the mgr, sends through it, and switches the built-in balancer."""
from __future__ import annotations

import json
import threading
import time
from typing import (Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence,
                    Set, Tuple)

from ..plan.model import PgChange
from ..runtime.checkpoints import Checkpoint
from ..runtime.time_slice import TimeSlice
from ..runtime.work_counters import Counts, WorkCounters
from ..settings import Settings, default_settings
from ..snapshot.builder import SnapshotBuilder
from ..snapshot.model import NO_CLASS, Snapshot, pg_number, pool_of
from ..snapshot.osd_reports import OsdReports
from ..snapshot.pg_statistics import PgStatistics
from ..snapshot.reading import Reading
from .cluster_summary import ClusterSummary
from .mgr_api import MgrApi, MonReply, OsdMapApi
from .monitor_commands import MonitorCommands
from .osd_map_reader import OsdMapReader, modified_at
from .pool_space import PoolSpaceNow, pool_space
from .summary_reader import OsdMapSettings, SummaryReader

#: Seconds between readings of all statistics of every PG, while pools change and where none does.
_FULL_STATISTICS_SECONDS, _LONGEST_STATISTICS_SECONDS = 3600.0, 86_400.0
#: Ratio by which a pool's objects or omap have to differ from those at the last full reading.
_CHANGED_RATIO = 0.01
_DEFAULT_MISPLACED_RATIO = 0.05
_DEFAULT_BALANCER_SLEEP = 60.0
_CONFIG_SECONDS = 5.0
_GIB = 1 << 30

#: pool id → (PGs, objects, omap bytes)
_PoolTotals = Dict[int, Tuple[int, int, int]]


class NotReady(RuntimeError):
    """The mgr does not have enough data yet; the message is one sentence for operators."""


class UpmapReply(NamedTuple):
    """The monitor's reply to one upmap command; `returncode` is None where none came in time."""

    change: PgChange
    returncode: Optional[int]
    message: str


class UpmapRequest(NamedTuple):
    """An upmap command on its way to the monitor."""

    change: PgChange
    reply: MonReply


class Gateway:
    """Reads snapshots from the mgr and sends upmap commands through it.

    `mgr` is the MgrModule, `settings` returns equilibrium's own options. `clock` returns seconds
    since the epoch, `monotonic` seconds that never go back. Any thread may use it.
    """

    def __init__(self, mgr: MgrApi, clock: Callable[[], float],
                 settings: Callable[[], Settings] = default_settings,
                 monotonic: Callable[[], float] = time.monotonic,
                 checkpoint: Optional[Checkpoint] = None) -> None:
        self._mgr = mgr
        self._settings = settings
        self._clock = clock
        self.counters = WorkCounters()
        self._reports = OsdReports()
        self._monitors = MonitorCommands(mgr, self.counters, monotonic)
        self._summaries = SummaryReader(mgr, self._get, self._monitors, clock, self.counters,
                                        self._reports)
        self._lock = threading.Lock()
        if checkpoint is None:
            checkpoint = TimeSlice()   # all modules share one interpreter
        self._builder = SnapshotBuilder(checkpoint)
        self._statistics = PgStatistics(checkpoint)
        self._statistics_read_at: Optional[float] = None
        self._statistics_totals: _PoolTotals = {}
        self._measured: Mapping[int, float] = {}
        self._maps = OsdMapReader(mgr, clock, self._map_settings, self.counters, checkpoint)
        self._last_reading: Optional[Reading] = None
        self._builtin_was_active = False   # since pop_builtin_was_active

    def snapshot(self, fresh: bool = False) -> Snapshot:
        """Reads the whole cluster. Raises NotReady while the mgr lacks maps or statistics.

        `fresh` asks for an osdmap that was dumped at this epoch, as a plan needs it.
        """
        with self._lock:
            self.counters.add("full_readings")
            self._last_reading = self._read(fresh)
            return self._builder.build(self._last_reading)

    def dumped_at_epoch(self, epoch: int) -> bool:
        """True where a snapshot of this epoch is made from a dump of the osdmap."""
        return self._maps.dumped_at_epoch(epoch)

    def summary(self, with_map_settings: bool = False) -> ClusterSummary:
        """Reads what costs a few milliseconds, at once even during a `snapshot`. Raises NotReady.

        The osdmap's flags and required clients are read only `with_map_settings`, once an epoch
        from a monitor.
        """
        return self._summaries.summary(self.builtin_balancer_active(), with_map_settings)

    @property
    def counts(self) -> Counts:
        """The work done since the mgr became active."""
        return self.counters.counts

    def set_measured(self, bytes_per_object: Mapping[int, float]) -> None:
        """Pool id → bytes per object that later snapshots add to the pool's shards."""
        self._measured = bytes_per_object

    def epoch(self) -> int:
        """The osdmap's epoch now; takes microseconds."""
        return int(self._mgr.get_osdmap().get_epoch())

    def ceph_version(self) -> str:
        """The release of this mgr, as `ceph version` tells it."""
        return str(self._mgr.version)

    def misplaced_copies(self) -> int:
        """Misplaced object copies now, as `pg_status` has them; takes microseconds."""
        return int(self._get("pg_status").get("misplaced_objects", 0))

    def last_reading(self) -> Optional[Reading]:
        """The reading of the newest snapshot; None before the first."""
        return self._last_reading

    def pool_ids_by_name(self) -> Dict[str, int]:
        """Pool name → pool id of all pools; fast enough for a command."""
        return {p["name"]: p["id"] for p in self._get("df").get("pools", [])}

    def pool_space(self) -> Dict[int, PoolSpaceNow]:
        """Pool id → its space as `ceph df` has it now; fast enough for a command."""
        return pool_space(self._get("df"))

    def device_classes(self) -> Set[str]:
        """The device classes of all OSDs, NO_CLASS among them; fast enough for a command."""
        return {device.get("class", "") or NO_CLASS
                for device in self._get("osd_map_crush").get("devices", [])}

    def min_compat_client(self) -> str:
        """The osdmap's require_min_compat_client now."""
        map_settings = self._map_settings(self.epoch())
        if map_settings is not None:
            return map_settings.min_compat_client
        self.counters.add("osdmap_dumps")
        return str(self._mgr.get_osdmap().dump().get("require_min_compat_client", ""))

    def have_mon_connection(self) -> bool:
        """False while the mgr has lost the monitors."""
        return bool(self._mgr.have_mon_connection())

    def target_max_misplaced_ratio(self) -> float:
        """Ceph's own limit of misplaced copies, a ratio, which pg_num changes share."""
        value = self._number_option("target_max_misplaced_ratio", _DEFAULT_MISPLACED_RATIO)
        # Ceph accepts any float for it, nan and a percentage among them
        return value if 0.0 <= value <= 1.0 else _DEFAULT_MISPLACED_RATIO

    def options_set(self, module: str) -> Optional[FrozenSet[str]]:
        """Names of a module's options that are set for this mgr; None without a reply.

        Waits for a monitor, so only the serve thread may call it.
        """
        reply = self._monitors.send(
            {"prefix": "config get", "who": f"mgr.{self._mgr.get_mgr_id()}", "format": "json"})
        if self._monitors.wait([reply], _CONFIG_SECONDS) != [True] or reply.r:
            return None
        try:
            names = [str(name) for name in json.loads(reply.outb)]
        except (TypeError, ValueError):
            return None
        prefix = f"mgr/{module}/"
        return frozenset(name[len(prefix):] for name in names if name.startswith(prefix))

    def set_option(self, name: str, value: str) -> None:
        """Sets one of equilibrium's own options; waits for a commit of the monitors."""
        self._mgr.set_module_option(name, value)

    def silent_osds(self, seconds: float) -> FrozenSet[int]:
        """OSDs without new statistics for so long, as of the last reading or summary; takes
        microseconds."""
        return self._reports.silent(seconds)

    def write_to_cluster_log(self, line: str) -> None:
        """Writes one line of priority INFO (`ceph log last`); waits for nothing."""
        self._mgr.cluster_log("cluster", self._mgr.ClusterLogPrio.INFO, line)

    def set_health_checks(self, checks: Mapping[str, Any]) -> None:
        """Replaces equilibrium's health checks."""
        self._mgr.set_health_checks(checks)

    def announce_service(self, uri: str) -> None:
        """Has `ceph mgr services` show where metrics are served; "" for nowhere."""
        self._mgr.set_uri(uri)

    def own_address(self) -> str:
        """The address of this mgr's host."""
        return str(self._mgr.get_mgr_ip())

    def update_progress(self, event_id: str, message: str, ratio: float) -> None:
        """Begins or changes an event of the progress module, where that runs. It is not shown by
        `ceph -s`: there Ceph would add a time left of its own, which knows no throttle."""
        self._call_progress("update", event_id, message, ratio, [], False)

    def end_progress(self, event_id: str, failure: Optional[str]) -> None:
        """Ends an event: as complete, or as failed for a reason."""
        if failure is None:
            self._call_progress("complete", event_id)
        else:
            self._call_progress("fail", event_id, failure)

    def _call_progress(self, method: str, *arguments: Any) -> None:
        """Methods and arguments are the same from Ceph 16 to 20."""
        try:
            self._mgr.remote("progress", method, *arguments)
        except (ImportError, NameError, RuntimeError):
            pass   # it is off, or still starts: nothing depends on it

    def max_pg_shards(self) -> Tuple[int, int]:
        """(PG shards per OSD at which Ceph refuses new pools, at which an OSD refuses shards);
        0 for no limit."""
        most = self._number_option("mon_max_pg_per_osd", 0.0)
        return int(most), int(most * self._number_option("osd_max_pg_per_osd_hard_ratio", 0.0))

    def _number_option(self, name: str, unknown: float) -> float:
        """An option of Ceph; `unknown` where this release does not have it."""
        try:
            return float(self._mgr.get_ceph_option(name))
        except (KeyError, TypeError, ValueError):
            return unknown

    def without_remapped(self, changes: Sequence[PgChange], snapshot: Snapshot) -> List[PgChange]:
        """The changes whose PGs still have the up set of the snapshot."""
        osdmap = self._mgr.get_osdmap()
        if osdmap.get_epoch() == snapshot.epoch:
            return list(changes)
        return [change for change in changes
                if _up_set(osdmap, change.pgid) == snapshot.pgs[change.pgid].up]

    def send(self, changes: Sequence[PgChange], timeout: float) -> List[UpmapReply]:
        """Sends all commands at once, so that they land in one epoch, and waits for the replies."""
        return self.collect_replies(self.submit_upmaps(changes), timeout)

    def submit_upmaps(self, changes: Sequence[PgChange]) -> List[UpmapRequest]:
        """Hands all commands to the mgr, which sends them; waits for nothing."""
        return [UpmapRequest(change, self._monitors.send(_command(change))) for change in changes]

    def collect_replies(self, requests: Sequence[UpmapRequest], timeout: float) -> List[UpmapReply]:
        """Waits for the monitor's replies, at most `timeout` seconds in all.

        A return code of 0 does not mean that the monitor keeps the items: the map has to be read.
        """
        with self._lock:  # not in submit_upmaps, which must not wait while a job reads the cluster
            self._maps.expect([request.change for request in requests])
        come = self._monitors.wait([request.reply for request in requests], timeout)
        return [UpmapReply(change, reply.r, reply.outs or reply.outb or "") if has_come
                else UpmapReply(change, None, f"no answer within {int(timeout)} s")
                for (change, reply), has_come in zip(requests, come)]

    # -- the built-in balancer ---------------------------------------------------------------

    def builtin_balancer_active(self) -> bool:
        """True where the built-in balancer runs and its option is on, as it is by default.

        Ceph 20 can disable the module (`mgr module force disable`).
        """
        value = self._mgr.get_module_option_ex("balancer", "active")
        wanted = value is None or (
            value if isinstance(value, bool) else str(value).lower() in ("true", "1", "yes"))
        active = wanted and self.builtin_balancer_runs()
        self._builtin_was_active = self._builtin_was_active or active
        return active

    def pop_builtin_was_active(self) -> bool:
        """True where the built-in balancer has been seen active since the last call."""
        was_active, self._builtin_was_active = self._builtin_was_active, False
        return was_active

    def builtin_balancer_runs(self) -> bool:
        """True where the built-in balancer's module is loaded: else the mgr raises ImportError."""
        try:
            self._mgr.remote("balancer", "gather_telemetry")
        except ImportError:
            return False
        except (NameError, RuntimeError):
            pass  # it is loaded and fails for another reason
        return True

    def builtin_balancer_sleep(self) -> float:
        """Seconds until a running built-in balancer notices that it was switched off."""
        value = self._mgr.get_module_option_ex("balancer", "sleep_interval")
        return float(value) if value is not None else _DEFAULT_BALANCER_SLEEP

    def switch_off_builtin_balancer(self) -> None:
        """Switches it off by its option, and wakes it, where that works, so that it notices."""
        self._mgr.set_module_option_ex("balancer", "active", "false")
        for call in (("off",), ("handle_command", "", {"prefix": "balancer off"})):
            try:
                self._mgr.remote("balancer", *call)
                return
            except (ImportError, NameError, RuntimeError):
                continue  # another release's method, or no balancer module at all

    # -- reading -----------------------------------------------------------------------------

    def _read(self, fresh: bool) -> Reading:
        progress = self._get("pg_progress")
        if not progress.get("pg_ready", True):
            raise NotReady("the mgr has not received the statistics of all PGs yet")
        pgs = progress.get("pgs", {})
        pools = self._get("df").get("pools", [])
        maps = self._maps.read(pgs, {pool["id"]: pool["name"] for pool in pools}, fresh)
        pool_stats = self._get("pool_stats").get("pool_stats", [])
        self._refresh_statistics(pool_stats)
        records = self._statistics.records(pgs, pool_stats, maps.acting, maps.up)
        osd_stats = self._get("osd_stats").get("osd_stats", [])
        now, settings = self._clock(), self._settings()
        return Reading(
            taken_at=now, osd_map=maps.osd_map, crush=maps.crush, up=maps.up, records=records,
            osd_stats=osd_stats, pool_stats=pool_stats, pg_status=self._get("pg_status"),
            max_avail=_max_avail(pools), stale_osds=self._reports.stale(osd_stats, now),
            acting=maps.acting, respect_weights=settings.respect_weights, measured=self._measured,
            min_omap_osd_bytes=int(settings.min_omap_osd_size * _GIB),
            changed_at=modified_at(maps.osd_map))

    def _map_settings(self, epoch: int) -> Optional[OsdMapSettings]:
        return self._summaries.map_settings(epoch) if self.have_mon_connection() else None

    def _get(self, name: str) -> Mapping[str, Any]:
        value: Optional[Mapping[str, Any]] = self._mgr.get(name)
        if value is None:
            raise NotReady(f"the mgr has no {name} yet")
        return value

    def _refresh_statistics(self, pool_stats: Sequence[Mapping[str, Any]]) -> None:
        """Reads all statistics of every PG where those of the pools show that they have changed."""
        now = self._clock()
        totals = _totals(pool_stats)
        if self._statistics_read_at is not None:
            age = now - self._statistics_read_at
            if 0.0 <= age < _FULL_STATISTICS_SECONDS:
                return
            if 0.0 <= age < _LONGEST_STATISTICS_SECONDS and self._statistics.is_complete and (
                    not _have_changed(self._statistics_totals, totals)):
                return
        self.counters.add("pg_stats")
        self._statistics.read_full(self._get("pg_stats").get("pg_stats", []), pool_stats)
        self._statistics_read_at, self._statistics_totals = now, totals


def _max_avail(pools: Sequence[Mapping[str, Any]]) -> Dict[int, int]:
    return {p["id"]: p["stats"]["max_avail"] for p in pools if "max_avail" in p.get("stats", {})}


def _totals(pool_stats: Sequence[Mapping[str, Any]]) -> _PoolTotals:
    sums = {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}
    return {pool["poolid"]: (pool.get("num_pg", 0), sums[pool["poolid"]].get("num_objects", 0),
                             sums[pool["poolid"]].get("num_omap_bytes", 0)) for pool in pool_stats}


def _have_changed(then: _PoolTotals, now: _PoolTotals) -> bool:
    """True where a pool was created, deleted, split or merged, or holds clearly more or less."""
    return then.keys() != now.keys() or any(
        then[pool][0] != pgs or any(abs(a - b) > _CHANGED_RATIO * a
                                    for a, b in zip(then[pool][1:], counts))
        for pool, (pgs, *counts) in now.items())


def _up_set(osdmap: OsdMapApi, pgid: str) -> Tuple[int, ...]:
    return tuple(osdmap.pg_to_up_acting_osds(pool_of(pgid), pg_number(pgid))["up"])


def _command(change: PgChange) -> Dict[str, Any]:
    if not change.items:
        return {"prefix": "osd rm-pg-upmap-items", "format": "json", "pgid": change.pgid}
    flat: List[int] = [osd for pair in change.items for osd in pair]
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": change.pgid, "id": flat}
