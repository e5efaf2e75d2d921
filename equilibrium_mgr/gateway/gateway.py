"""Reads from the mgr, sends through it, and switches the built-in balancer."""
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
from ..snapshot.model import (
    NO_CLASS, Pool, Reading, Snapshot, is_same_placement, pg_number, pool_of)
from ..snapshot.osds import OsdReports, map_fields, read_osds
from ..snapshot.pg_statistics import PgStatistics
from ..snapshot.pools import PoolReader
from .cluster_summary import (
    ClusterSummary, PoolSpaceNow, flags_of, fullness_of, summarize_osds, summarize_pools)

_DEFAULT_MISPLACED_RATIO = 0.05
_DEFAULT_BALANCER_SLEEP = 60.0
_DEFAULT_BALANCER_MODE = "upmap"
#: Modes of the built-in balancer in which it writes neither upmap items nor weights; `read`, from
#: Ceph 19 on, sets primaries alone.
_MOTIONLESS_MODES = frozenset(("none", "read"))
#: Seconds after which a monitor that has not answered a question counts as unable to.
_ANSWER_SECONDS = 5.0
#: The counter of an OSD: priority 9, so that it is sent whatever mgr_stats_threshold is.
_OP_LATENCY = "osd.op_latency"
#: OSDs that are asked for an option: operators set it for all of a kind.
_OSDS_ASKED = 5
#: Seconds between readings of all statistics of every PG, while pools change and where none does.
_FULL_STATISTICS_SECONDS, _LONGEST_STATISTICS_SECONDS = 3600.0, 86_400.0
#: Ratio by which a pool's objects or omap have to differ from those at the last full reading.
_CHANGED_RATIO = 0.01
_GIB = 1 << 30
#: Before it gives way again: about a millisecond. Each PG is mapped by itself: a large pool at once
#: takes milliseconds, and a command of another module needs the interpreter's lock several times.
_ROWS_A_PIECE, _MAPPED_A_PIECE = 4000, 50

#: What the mgr is asked for → where the answer has its rows, and what is read of each.
_SHAPES: Dict[str, Tuple[str, Sequence[str]]] = {
    "pg_progress": ("pgs", ("num_bytes", "num_bytes_recovered", "state", "reported_epoch")),
    "pg_stats": ("pg_stats", ("pgid", "state", "reported_epoch", "up", "acting", "stat_sum")),
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
    """The mgr does not have enough data yet; the message is one sentence for operators."""


#: The monitor's reply to one upmap command: the change, the return code, None where none came in
#: time, and the message.
UpmapReply = Tuple[PgChange, Optional[int], str]


class Gateway:
    """Reads snapshots from the mgr and sends upmap commands through it.

    `mgr` is the MgrModule, `settings` returns equilibrium's own options. `clock` returns seconds
    since the epoch, `monotonic` seconds that never go back. Any thread may use it.
    """

    def __init__(self, mgr: MgrModule, clock: Callable[[], float],
                 settings: Callable[[], Settings] = default_settings,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._mgr = mgr
        self._clock = clock
        self._reports = OsdReports()
        self._monotonic = monotonic
        #: epoch → (flags, required clients) of its osdmap: what can forbid all movement; of one
        #: epoch, replaced whole
        self._map_settings: Dict[int, Tuple[FrozenSet[str], str]] = {}
        self._map_fields: Dict[str, Any] = {"epoch": 0}   # of one epoch, replaced whole
        self._lock = threading.Lock()   # of what snapshots are made from
        self._settings = settings
        self._statistics = PgStatistics()
        self._statistics_read_at: Optional[float] = None
        self._statistics_totals: _PoolTotals = {}
        self._pool_rows: Dict[int, Optional[Mapping[str, Any]]] = {}   # of get('pool_stats')
        self._builder = SnapshotBuilder()
        self._maps: Optional[OsdMapReading] = None   # of the last epoch that was read
        #: told by the loop, for later snapshots: see Reading
        self.measured: Mapping[int, float] = {}
        self.drained: FrozenSet[int] = frozenset()
        self.sent_before: FrozenSet[str] = frozenset()
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
        """Reads what costs a few milliseconds, at once even during a `snapshot`. Raises NotReady.

        The osdmap's flags and required clients are read only `with_map_settings`, once an epoch
        from a monitor: the mgr's small structures do not have them, but for its `health`, where
        they are up to 10 s late.
        """
        osdmap = self._mgr.get_osdmap()
        epoch = int(osdmap.get_epoch())
        flags, client = (self._settings_of_map(epoch) if with_map_settings else None) or (
            None, None)
        osd_stats, pg_status = self._get("osd_stats")["osd_stats"], self._get("pg_status")
        pool_stats = self._get("pool_stats")["pool_stats"]
        osds, now = summarize_osds(self._get("osd_map_tree"), osd_stats), self._clock()
        reporting = frozenset(osd for osd, one in osds.items() if one.up and one.is_in)
        stale = self._reports.stale(osd_stats, now)
        return ClusterSummary(
            taken_at=now, epoch=epoch, crush_version=int(osdmap.get_crush_version()),
            osds=osds, pools=summarize_pools(pool_stats, pg_status),
            misplaced_copies=int(pg_status.get("misplaced_objects", 0)),
            degraded_copies=int(pg_status.get("degraded_objects", 0)),
            mon_connected=self.have_mon_connection(),
            builtin_active=self.builtin_balancer_active(),
            fullness=fullness_of(self._get("health")["json"]),
            max_pg_shards=self.max_pg_shards(), stale_osds=stale & reporting,
            statistics_at=self._reports.oldest(reporting),
            flags=flags, min_compat_client=client)

    def epoch(self) -> int:
        """The osdmap's epoch now; takes microseconds."""
        return int(self._mgr.get_osdmap().get_epoch())

    def map_fields(self) -> Mapping[str, Any]:
        """Returns what `map_fields` finds in the newest osdmap. Dumps each epoch once."""
        osdmap = self._mgr.get_osdmap()
        if self._map_fields["epoch"] != osdmap.get_epoch():
            self._map_fields = map_fields(osdmap.dump())
        return self._map_fields

    def up_sets_without(self, osds: Collection[int],
                        pgids: Iterable[str]) -> Dict[str, Osds]:
        """pgid → the up set that the newest osdmap gives a PG once these OSDs are out; no monitor
        has cleaned its upmap items, and nothing is sent. PGs of pools that are gone are left out.

        PyOSDMap.cc in Ceph's src/mgr (16 to 20): an incremental is applied to a copy of the map,
        which takes milliseconds with the interpreter's lock held. The copy maps PGs by CRUSH with
        the new reweights and drops upmap items whose target is out.
        """
        osdmap = self._mgr.get_osdmap()
        incremental = osdmap.new_incremental()
        incremental.set_osd_reweights({osd: 0.0 for osd in osds})
        give_way()
        after = osdmap.apply_incremental(incremental)
        up = ((pgid, up_set(after, pgid)) for pgid in piecewise(pgids, _MAPPED_A_PIECE))
        return {pgid: found for pgid, found in up if found is not None}

    def ceph_version(self) -> str:
        """The release of this mgr, as `ceph version` tells it."""
        return str(self._mgr.version)

    def misplaced_copies(self) -> int:
        """Misplaced object copies now, as `pg_status` has them; takes microseconds."""
        return int(self._get("pg_status").get("misplaced_objects", 0))

    def pool_ids_by_name(self) -> Dict[str, int]:
        """Pool name → pool id of all pools; fast enough for a command."""
        return {p["name"]: p["id"] for p in self._get("df").get("pools", [])}

    def pool_space(self) -> Dict[int, PoolSpaceNow]:
        """Pool id → its space as `ceph df` has it now; fast enough for a command."""
        return {int(pool["id"]): PoolSpaceNow(
            str(pool["name"]), pool.get("stats", {}).get("stored"),
            pool.get("stats", {}).get("percent_used"), pool.get("stats", {}).get("max_avail"))
            for pool in self._get("df").get("pools", [])}

    def device_classes(self) -> Set[str]:
        """The device classes of all OSDs, NO_CLASS among them; fast enough for a command."""
        return {device.get("class", "") or NO_CLASS
                for device in self._get("osd_map_crush").get("devices", [])}

    def crush(self) -> CrushHierarchy:
        """The CRUSH hierarchy now; fast enough for a command."""
        return CrushHierarchy(self._get("osd_map_crush"))

    def min_compat_client(self) -> str:
        """The osdmap's require_min_compat_client now; waits for no monitor."""
        known = self._map_settings.get(self.epoch())
        if known is not None:
            return known[1]
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
        reply, = self._ask(
            {"prefix": "config get", "who": f"mgr.{self._mgr.get_mgr_id()}", "format": "json"})
        if reply is None or reply.r:
            return None
        try:
            names = [str(name) for name in json.loads(reply.outb)]
        except (TypeError, ValueError):
            return None
        prefix = f"mgr/{module}/"
        return frozenset(name[len(prefix):] for name in names if name.startswith(prefix))

    def stop_check(self, osds: FrozenSet[int]) -> Optional[StopCheck]:
        """What `ceph osd ok-to-stop` says of these OSDs together; None without a reply.

        It is a command of the mgr, which monitors hand on. Waits, so only the serve thread may
        call it.
        """
        reply, = self._ask({"prefix": "osd ok-to-stop", "format": "json",
                            "ids": [str(osd) for osd in sorted(osds)]})
        return None if reply is None or reply.r not in (0, -errno.EBUSY) else (
            StopCheck(reply.r == 0, "" if reply.r == 0 else reply.outs))

    def op_latency(self, osds: Iterable[int]) -> Dict[int, Tuple[int, int]]:
        """OSD → (nanoseconds, ops) of all ops of clients since it started, as it last reported them
        as their primary; microseconds each, with the lock of all that the mgr knows.

        From Ceph 20 on get_latest_counter is for counters with labels, and another has its place.
        """
        read = getattr(self._mgr, "get_latest_unlabeled_counter", None) or (
            self._mgr.get_latest_counter)
        points: Dict[int, Tuple[Any, ...]] = {
            osd: read("osd", str(osd), _OP_LATENCY).get(_OP_LATENCY) or () for osd in osds}
        give_way()
        return {osd: (point[1], point[2]) for osd, point in points.items() if len(point) == 3}

    def stacked_backfills(self, osds: Iterable[int]) -> Dict[int, int]:
        """OSD → the osd_max_backfills that it runs with, where that is above 1, of the first few of
        these that are on rotating disks; none without a connection.

        `config show` is a command of the mgr, to which OSDs tell what they run with, whoever has
        set it: a ceph.conf, the monitors, mClock. Waits, so only the serve thread may call it.
        """
        asked = list(islice((osd for osd in osds if (
            self._mgr.get_metadata("osd", str(osd)) or {}).get("rotational") == "1"),
            _OSDS_ASKED * self.have_mon_connection()))
        replies = self._ask(*[{"prefix": "config show", "who": f"osd.{osd}",
                               "key": "osd_max_backfills"} for osd in asked])
        found = {osd: reply.outb.strip() for osd, reply in zip(asked, replies)
                 if reply is not None and not reply.r}
        return {osd: int(text) for osd, text in found.items() if text.isdigit() and int(text) > 1}

    def copying_options(self, osd: int) -> Dict[str, Any]:
        """Those of Ceph that say how much an OSD copies at a time, as the monitors have them."""
        return {name: self._mgr.get_foreign_ceph_option(f"osd.{osd}", name)
                for name in ("osd_mclock_profile", "osd_max_backfills")}

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

    def max_pg_shards(self) -> PgShardLimits:
        """As the mgr has the options: an OSD goes by its own values."""
        mean = self._number_option("mon_max_pg_per_osd", 0.0)
        hard = mean * self._number_option("osd_max_pg_per_osd_hard_ratio", 0.0)
        return PgShardLimits(int(mean), int(HARD_SHARE * hard))

    def _number_option(self, name: str, unknown: float) -> float:
        """An option of Ceph; `unknown` where this release does not have it, or it is no number."""
        try:
            value = float(self._mgr.get_ceph_option(name))
        except (KeyError, TypeError, ValueError):
            return unknown
        return value if math.isfinite(value) else unknown

    def at_newest_map(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, or one with what a newer osdmap tells of flags, full ratios, pools, CRUSH
        and OSDs; PGs, their up sets and sizes of OSDs are not read again."""
        osdmap, last = self._mgr.get_osdmap(), self.last_reading
        if osdmap.get_epoch() == snapshot.epoch or last is None:
            return snapshot
        dump, crush = osdmap.dump(), snapshot.crush
        if dump.get("crush_version") != snapshot.crush_version:
            crush = CrushHierarchy(osdmap.get_crush().dump())
        osds = read_osds(dump, crush, ())
        return snapshot._replace(
            **map_fields(dump), crush=crush,
            pools=PoolReader().read(last._replace(osd_map=dump), crush),
            osds={number: osd._replace(up=osds[number].up, is_in=osds[number].is_in,
                                       reweight=osds[number].reweight)
                  for number, osd in snapshot.osds.items() if number in osds})

    def applicable(self, changes: Iterable[PgChange], snapshot: Snapshot) -> List[PgChange]:
        """The changes whose PGs are, by the newest osdmap, where their plan found them, or lack
        OSDs there that may come back."""
        osdmap, found = self._mgr.get_osdmap(), []
        for change in piecewise(changes, _MAPPED_A_PIECE):
            pool = snapshot.pools.get(pool_of(change.pgid))
            up = up_set(osdmap, change.pgid)
            if pool is None or _is_up_on(osdmap, change.pgid, change.up_before, pool) or (
                    up and set(up) - {NO_OSD} < set(change.up_before)):
                found.append(change)
        return found

    def without_remapped(self, changes: Sequence[PgChange], snapshot: Snapshot) -> List[PgChange]:
        """The changes whose PGs are still where the snapshot has them; another primary counts for
        nothing."""
        osdmap = self._mgr.get_osdmap()
        if osdmap.get_epoch() == snapshot.epoch:
            return list(changes)
        return [change for change in changes for pg in (snapshot.pgs[change.pgid],)
                if _is_up_on(osdmap, pg.pgid, pg.up, snapshot.pools[pg.pool])]

    def submit_upmaps(self, changes: Sequence[PgChange]) -> List[Tuple[PgChange, CommandResult]]:
        """Hands all commands to the mgr at once, so that they land in one epoch; waits for
        nothing."""
        return [(change, self._send(_command(change))) for change in changes]

    def collect_replies(self, requests: Sequence[Tuple[PgChange, CommandResult]],
                        timeout: float) -> List[UpmapReply]:
        """Waits for the monitor's replies, at most `timeout` seconds in all.

        A return code of 0 does not mean that the monitor keeps the items: the map has to be read.
        """
        come = self._wait([reply for _, reply in requests], timeout)
        return [(change, reply.r, reply.outs or reply.outb or "") if has_come
                else (change, None, f"no answer within {int(timeout)} s")
                for (change, reply), has_come in zip(requests, come)]

    # -- the built-in balancer ---------------------------------------------------------------

    def builtin_balancer_active(self) -> bool:
        """True where the built-in balancer is on in a mode that moves data."""
        active = self.builtin_balancer_mode() not in _MOTIONLESS_MODES and (
            self.builtin_balancer_on())
        self._builtin_was_active = self._builtin_was_active or active
        return active

    def builtin_balancer_on(self) -> bool:
        """True where the built-in balancer runs and its option is on, as it is by default.

        Ceph 20 can disable the module (`mgr module force disable`).
        """
        value = self._mgr.get_module_option_ex("balancer", "active")
        wanted = value is None or (
            value if isinstance(value, bool) else str(value).lower() in ("true", "1", "yes"))
        return wanted and self.builtin_balancer_runs()

    def builtin_balancer_mode(self) -> str:
        """What the built-in balancer writes: upmap items, weights, primaries."""
        return str(self._mgr.get_module_option_ex("balancer", "mode") or _DEFAULT_BALANCER_MODE)

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

    def _read(self) -> Reading:
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
        now, settings = self._clock(), self._settings()
        return Reading(
            taken_at=now, osd_map=osd_map, crush=crush, up=up, records=records,
            osd_stats=osd_stats, pool_stats=pool_stats, pg_status=self._get("pg_status"),
            stale_osds=self._reports.stale(osd_stats, now),
            acting=acting, respect_weights=settings.respect_weights, measured=self.measured,
            min_omap_osd_bytes=int(settings.min_omap_osd_size * _GIB),
            changed_at=modified_at(osd_map), drained=self.drained, sent=self.sent_before,
            # none where OSDs do not tell their pools apart
            pool_statfs=[(row["poolid"], row["osd"], row.get("allocated", 0),
                          row.get("data_stored", 0))
                         for row in piecewise(osds.get("pool_statfs", ()), _ROWS_A_PIECE)])

    def _pool_statistics(self) -> List[Mapping[str, Any]]:
        """The rows of get('pool_stats'). A pool with a figure that cannot be is as it was last."""
        rows = self._get("pool_stats").get("pool_stats", [])
        before = self._pool_rows
        self._pool_rows = {row["poolid"]: row if _is_possible(row) else before.get(row["poolid"])
                           for row in rows}
        return [row for row in self._pool_rows.values() if row is not None]

    def _refresh_statistics(self, pool_stats: Sequence[Mapping[str, Any]]) -> None:
        """Reads all statistics of every PG where those of the pools show that they have changed."""
        now = self._clock()
        totals = {pool["poolid"]: (pool.get("num_pg", 0), *[
            pool.get("stat_sum", {}).get(name, 0) for name in ("num_objects", "num_omap_bytes")])
                  for pool in pool_stats}
        if self._statistics_read_at is not None:
            age = now - self._statistics_read_at
            if 0.0 <= age < _FULL_STATISTICS_SECONDS:
                return
            if 0.0 <= age < _LONGEST_STATISTICS_SECONDS and self._statistics.is_complete and (
                    not _have_changed(self._statistics_totals, totals)):
                return
        self._statistics.read_full(self._get("pg_stats").get("pg_stats", []), pool_stats)
        self._statistics_read_at, self._statistics_totals = now, totals

    def _settings_of_map(self, epoch: int) -> Optional[Tuple[FrozenSet[str], str]]:
        """(flags, required clients); asks a monitor once an epoch. None without a reply."""
        if not self.have_mon_connection():
            return None
        known = self._map_settings
        if epoch in known:
            return known[epoch]
        stat, client = self._ask(
            {"prefix": "osd stat"}, {"prefix": "osd get-require-min-compat-client"})
        if stat is None or stat.r or client is None or client.r:
            return None
        found = flags_of(stat.outb), client.outb.strip()
        self._map_settings = {epoch: found}
        return found

    def _ask(self, *commands: Mapping[str, Any]) -> List[Optional[CommandResult]]:
        """The monitors' replies to commands that are sent at once; None for one that did not come
        in time."""
        replies = [self._send(command) for command in commands]
        return [reply if has_come else None
                for reply, has_come in zip(replies, self._wait(replies, _ANSWER_SECONDS))]

    def _send(self, command: Mapping[str, Any]) -> CommandResult:
        """Hands a command to the mgr, which sends it to a monitor; waits for nothing."""
        reply = CommandResult("")
        self._mgr.send_command(reply, "mon", "", json.dumps(command), "")
        return reply

    def _wait(self, replies: Sequence[CommandResult], timeout: float) -> List[bool]:
        """Returns, for each reply, whether it has come, after at most `timeout` seconds in all."""
        deadline = self._monotonic() + timeout
        return [reply.ev.wait(max(0.0, deadline - self._monotonic())) for reply in replies]

    def _get(self, name: str) -> Mapping[str, Any]:
        value: Optional[Mapping[str, Any]] = self._mgr.get(name)
        if value is None:
            raise NotReady(f"the mgr has no {name} yet")
        return value


class StrictGateway(Gateway):
    """For the self-test: refuses answers that lack what is read of them, which others take for
    unknown. One of its own leaves the loop's as it is."""

    def _get(self, name: str) -> Mapping[str, Any]:
        answer, (key, fields) = self._mgr.get(name), _SHAPES[name]
        rows = None if answer is None else answer.get(key)
        lacks = [key] if rows is None else [
            field for row in islice(getattr(rows, "values", lambda: rows)(), 1) for field in fields
            if field not in row]
        if lacks:
            raise RuntimeError(f"get('{name}') of the mgr has no '{lacks[0]}'")
        return dict(answer)

    def read_everything(self) -> str:
        """Reads all that rounds and commands ask of the mgr, and says what there is, or what an mgr
        that has just started cannot tell yet. Waits for a monitor."""
        self.pool_space()
        flags = self.summary(with_map_settings=True).flags
        try:
            snapshot = self.snapshot()
        except NotReady as error:
            return f"no snapshot yet: {error}"
        self.up_sets_without((), list(snapshot.pgs)[:1])
        self.op_latency(snapshot.osds)
        self.stacked_backfills(snapshot.osds)
        self.copying_options(min(snapshot.osds))
        return (f"read {len(snapshot.osds)} OSDs ({', '.join(sorted(self.device_classes()))}) and"
                f" {len(snapshot.pgs)} PGs of {len(snapshot.pools)} pools at epoch"
                f" {snapshot.epoch}, "
                + ("no answer of a monitor" if flags is None
                   else f"flags: {', '.join(sorted(flags)) or 'none'}"))


def _command(change: PgChange) -> Dict[str, Any]:
    if not change.items:
        return {"prefix": "osd rm-pg-upmap-items", "format": "json", "pgid": change.pgid}
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": change.pgid,
            "id": [osd for pair in change.items for osd in pair]}


def read_osd_map(osdmap: OSDMap) -> OsdMapReading:
    """(OSDMap.dump(), CRUSHMap.dump(), pgid → up set, pgid → acting set where that is not the up
    set)."""
    osd_map = osdmap.dump()
    up: Dict[str, Osds] = {}
    acting: Dict[str, Osds] = {}
    for pool in osd_map["pools"]:
        for ps in piecewise(range(pool["pg_num"]), _MAPPED_A_PIECE):
            mapped = osdmap.pg_to_up_acting_osds(pool["pool"], ps)
            pgid, osds, serving = f"{pool['pool']}.{ps:x}", mapped["up"], mapped["acting"]
            up[pgid] = tuple(osds)
            if osds != serving:
                acting[pgid] = tuple(serving)
    return osd_map, osdmap.get_crush().dump(), up, acting


def up_set(osdmap: OSDMap, pgid: str) -> Optional[Osds]:
    """The up set of a PG; None where its pool is gone."""
    try:
        return tuple(osdmap.pg_to_up_acting_osds(pool_of(pgid), pg_number(pgid))["up"])
    except SystemError:
        return None


def modified_at(osd_map: Mapping[str, Any]) -> Optional[float]:
    """Returns the time of this epoch in seconds since the epoch; None where it is not told."""
    try:
        return datetime.strptime(str(osd_map.get("modified", "")),
                                 "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None


def _is_up_on(osdmap: OSDMap, pgid: str, up: Osds, pool: Pool) -> bool:
    return is_same_placement(up_set(osdmap, pgid) or (), up, pool.erasure)


def _is_possible(pool: Mapping[str, Any]) -> bool:
    """Returns True if statistics of a pool have its objects and bytes, none of them below 0."""
    sums = pool.get("stat_sum", {})
    return bool(min(sums.get("num_objects", -1), sums.get("num_bytes", -1)) >= 0)


def _have_changed(then: _PoolTotals, now: _PoolTotals) -> bool:
    """True where a pool was created, deleted, split or merged, or holds clearly more or less."""
    return then.keys() != now.keys() or any(
        then[pool][0] != pgs or any(abs(a - b) > _CHANGED_RATIO * a
                                    for a, b in zip(then[pool][1:], counts))
        for pool, (pgs, *counts) in now.items())
