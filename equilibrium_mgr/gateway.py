"""The only room that knows the mgr API: what is read, what is sent, the built-in balancer."""
from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from mgr_module import CommandResult

from .counts import Counts, WorkCounters
from .planner.plan import PgChange
from .snapshot.build import SnapshotBuilder
from .snapshot.model import NO_CLASS, Snapshot
from .snapshot.reading import Reading
from .snapshot.reports import OsdReports
from .snapshot.statistics import PgStatistics
from .snapshot.summary import ClusterSummary
from .summary_reader import SummaryReader
from .turns import Turns

#: Pools with more PGs than this are mapped in slices, so that the mgr's global lock is given up.
MAP_WHOLE_POOL_PGS = 1000
_MAP_SLICE_PGS = 256
_FULL_STATISTICS_SECONDS = 3600.0
_DEFAULT_MISPLACED_RATIO = 0.05
_DEFAULT_BALANCER_SLEEP = 60.0


class NotReady(RuntimeError):
    """The mgr does not know enough yet; the message is one sentence for people."""


class Sent(NamedTuple):
    """The monitor's answer to one upmap command; `returncode` None means none came in time."""

    change: PgChange
    returncode: Optional[int]
    message: str


class Gateway:
    """Reads snapshots from the mgr and sends upmap commands through it.

    `mgr` is the MgrModule. Safe to use from the serve thread and the job thread at once.
    """

    def __init__(self, mgr: Any, clock: Callable[[], float]) -> None:
        self._mgr = mgr
        self._clock = clock
        self.counters = WorkCounters()
        self._summaries = SummaryReader(mgr, self._get, clock, self.counters)
        self._lock = threading.Lock()
        self._turns = Turns()   # all modules share one interpreter
        self._builder = SnapshotBuilder(self._turns)
        self._statistics = PgStatistics(self._turns)
        self._reports = OsdReports()
        self._statistics_read_at: Optional[float] = None
        self._up_epoch = -1
        self._up: Dict[str, Sequence[int]] = {}
        self._last_reading: Optional[Reading] = None

    def snapshot(self) -> Snapshot:
        """A fresh snapshot. Raises NotReady while the mgr lacks maps or statistics."""
        with self._lock:
            self.counters.add("looks")
            self._last_reading = self._read()
            return self._builder.build(self._last_reading)

    def summary(self, with_guards: bool = False) -> ClusterSummary:
        """What costs a few milliseconds, whatever else is being read; raises NotReady.

        The osdmap's flags and required clients are told only `with_guards`: a monitor is asked for
        them once an epoch.
        """
        return self._summaries.summary(self.builtin_balancer_active(), with_guards)

    @property
    def counts(self) -> Counts:
        """The work done since the mgr became active."""
        return self.counters.counts

    def epoch(self) -> int:
        """The osdmap's epoch as of now; costs next to nothing."""
        return int(self._mgr.get_osdmap().get_epoch())

    def misplaced_copies(self) -> int:
        """Misplaced object copies as of now; costs next to nothing."""
        return int(self._get("pg_status").get("misplaced_objects", 0))

    def last_reading(self) -> Optional[Reading]:
        """What the newest snapshot was made from; None before the first."""
        return self._last_reading

    def pool_ids_by_name(self) -> Dict[str, int]:
        """Every pool's id; cheap enough for a command."""
        return {p["name"]: p["id"] for p in self._get("df").get("pools", [])}

    def device_classes(self) -> Set[str]:
        """The device classes of all OSDs, as equilibrium calls them; cheap."""
        return {device.get("class", "") or NO_CLASS
                for device in self._get("osd_map_crush").get("devices", [])}

    def min_compat_client(self) -> str:
        """The oldest release that clients may have, as of now."""
        self.counters.add("osdmap_dumps")
        return str(self._mgr.get_osdmap().dump().get("require_min_compat_client", ""))

    def have_mon_connection(self) -> bool:
        return bool(self._mgr.have_mon_connection())

    def target_max_misplaced_ratio(self) -> float:
        """The mgr's own limit, which pg_num changes share."""
        value = self._mgr.get_ceph_option("target_max_misplaced_ratio")
        return float(value) if value is not None else _DEFAULT_MISPLACED_RATIO

    def send(self, changes: Sequence[PgChange], timeout: float) -> List[Sent]:
        """Sends all commands at once, so that they land in one epoch, then waits for the answers.

        Waits at most `timeout` seconds in all. A return code of 0 does not mean that the monitor
        keeps the items: read the map again.
        """
        results = []
        self.counters.add("mon_commands", len(changes))
        for change in changes:
            result = CommandResult("")
            self._mgr.send_command(result, "mon", "", json.dumps(_command(change)), "")
            results.append(result)
        deadline = time.monotonic() + timeout
        answers = []
        for change, result in zip(changes, results):
            if result.ev.wait(max(0.0, deadline - time.monotonic())):
                answers.append(Sent(change, result.r, result.outs or result.outb or ""))
            else:
                answers.append(Sent(change, None, "no answer within %d s" % timeout))
        return answers

    # -- the built-in balancer ---------------------------------------------------------------

    def builtin_balancer_active(self) -> bool:
        """Is the built-in balancer on? Its option is unset while at its default, which is on.

        Ceph 20 can do without the module (`mgr module force disable`): then nothing is active.
        """
        value = self._mgr.get_module_option_ex("balancer", "active")
        wanted = value is None or (
            value if isinstance(value, bool) else str(value).lower() in ("true", "1", "yes"))
        return wanted and self.builtin_balancer_runs()

    def builtin_balancer_runs(self) -> bool:
        """Is the built-in balancer's module there? ImportError is what the mgr says of no other."""
        try:
            self._mgr.remote("balancer", "gather_telemetry")
        except ImportError:
            return False
        except (NameError, RuntimeError):
            pass  # it is there, and has something else the matter with it
        return True

    def builtin_balancer_sleep(self) -> float:
        """Seconds after which a running built-in balancer has noticed that it was switched off."""
        value = self._mgr.get_module_option_ex("balancer", "sleep_interval")
        return float(value) if value is not None else _DEFAULT_BALANCER_SLEEP

    def switch_off_builtin_balancer(self) -> None:
        """Switches it off by its option, and wakes it so that it notices, where that works."""
        self._mgr.set_module_option_ex("balancer", "active", "false")
        for call in (("off",), ("handle_command", "", {"prefix": "balancer off"})):
            try:
                self._mgr.remote("balancer", *call)
                return
            except (ImportError, NameError, RuntimeError):
                continue  # the other release's way, or no balancer module at all

    # -- reading -----------------------------------------------------------------------------

    def _read(self) -> Reading:
        progress = self._get("pg_progress")
        if not progress.get("pg_ready", True):
            raise NotReady("the mgr has not received the statistics of all PGs yet")
        osdmap = self._mgr.get_osdmap()
        osd_map = osdmap.dump()
        self.counters.add("osdmap_dumps")
        crush = osdmap.get_crush().dump()
        up = self._up_sets(osdmap, osd_map)
        pool_stats = self._get("pool_stats").get("pool_stats", [])
        self._refresh_statistics(pool_stats)
        moving = {e["pgid"] for e in osd_map.get("pg_temp", [])}
        records = self._statistics.records(progress.get("pgs", {}), pool_stats, moving)
        osd_stats = self._get("osd_stats").get("osd_stats", [])
        now = self._clock()
        return Reading(
            taken_at=now, osd_map=osd_map, crush=crush, up=up, records=records,
            osd_stats=osd_stats, pool_stats=pool_stats, pg_status=self._get("pg_status"),
            max_avail=self._max_avail(), stale_osds=self._reports.stale(osd_stats, now))

    def _get(self, name: str) -> Mapping[str, Any]:
        value = self._mgr.get(name)
        if value is None:
            raise NotReady("the mgr has no %s yet" % name)
        return value

    def _max_avail(self) -> Dict[int, int]:
        return {p["id"]: p["stats"]["max_avail"] for p in self._get("df").get("pools", [])
                if "max_avail" in p.get("stats", {})}

    def _refresh_statistics(self, pool_stats: Sequence[Mapping[str, Any]]) -> None:
        now = self._clock()
        read_at = self._statistics_read_at
        if read_at is not None and 0.0 <= now - read_at < _FULL_STATISTICS_SECONDS:
            return
        self.counters.add("pg_stats")
        self._statistics.read_full(self._get("pg_stats").get("pg_stats", []), pool_stats)
        self._statistics_read_at = now

    def _up_sets(self, osdmap: Any, osd_map: Mapping[str, Any]) -> Dict[str, Sequence[int]]:
        if osd_map["epoch"] != self._up_epoch:
            up: Dict[str, Sequence[int]] = {}
            for pool in osd_map["pools"]:
                up.update(_map_pool(osdmap, pool["pool"], pool["pg_num"]))
                self._turns()
            self._up, self._up_epoch = up, osd_map["epoch"]
        return self._up


def _map_pool(osdmap: Any, pool_id: int, pg_num: int) -> Dict[str, Sequence[int]]:
    if pg_num <= MAP_WHOLE_POOL_PGS:
        return osdmap.map_pool_pgs_up(pool_id)
    up: Dict[str, Sequence[int]] = {}
    for ps in range(pg_num):
        if ps % _MAP_SLICE_PGS == 0:
            time.sleep(0)
        up["%d.%x" % (pool_id, ps)] = osdmap.pg_to_up_acting_osds(pool_id, ps)["up"]
    return up


def _command(change: PgChange) -> Dict[str, Any]:
    if not change.items:
        return {"prefix": "osd rm-pg-upmap-items", "format": "json", "pgid": change.pgid}
    flat: List[int] = [osd for pair in change.items for osd in pair]
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": change.pgid, "id": flat}
