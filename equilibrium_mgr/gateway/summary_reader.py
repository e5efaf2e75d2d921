"""Reads a ClusterSummary: the mgr's small structures, and two commands to a monitor.

No lock is held and nothing large is built, so that commands may read one during a full reading.
None of the small structures has the osdmap's flags. The `health` map has them up to 10 s late; a
monitor answers `osd stat` within a millisecond, so it is asked.
"""
from __future__ import annotations

import json
import threading
from typing import Any, Callable, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence

from ..runtime.work_counters import WorkCounters
from ..snapshot.statistics.osd_reports import OsdReports
from .cluster_summary import (
    ClusterSummary, SummaryReading, fullness_of, object_copies, summarize_osds, summarize_pools)
from .mgr_api import MgrApi
from .monitor_commands import MonitorCommands

_FLAGS, _MIN_COMPAT = "osd stat", "osd get-require-min-compat-client"
#: Seconds after which a monitor that has not replied counts as unable to.
_ANSWER_SECONDS = 5.0


class OsdMapSettings(NamedTuple):
    """The parts of the osdmap that can forbid all movement, read at `epoch` or later."""

    epoch: int
    flags: FrozenSet[str]
    min_compat_client: str


class SummaryReader:
    """Safe to be used from any thread.

    `read` returns a structure of the mgr and raises NotReady while the mgr does not have it.
    """

    def __init__(self, mgr: MgrApi, read: Callable[[str], Mapping[str, Any]],
                 monitors: MonitorCommands, clock: Callable[[], float], counters: WorkCounters,
                 reports: OsdReports) -> None:
        self._mgr = mgr
        self._read = read
        self._monitors = monitors
        self._clock = clock
        self._counters = counters
        self._reports = reports
        self._lock = threading.Lock()
        self._map_settings: Optional[OsdMapSettings] = None

    def summary(self, builtin_active: bool, with_map_settings: bool) -> ClusterSummary:
        """The cluster now; flags and clients only `with_map_settings`, which may ask a monitor."""
        self._counters.add("summaries")
        connected = bool(self._mgr.have_mon_connection())
        osdmap = self._mgr.get_osdmap()
        epoch = int(osdmap.get_epoch())
        map_settings = self.map_settings(epoch) if with_map_settings and connected else None
        reading = SummaryReading(
            tree=self._read("osd_map_tree"), osd_stats=self._read("osd_stats")["osd_stats"],
            pool_stats=self._read("pool_stats")["pool_stats"], pg_status=self._read("pg_status"),
            health=json.loads(self._read("health")["json"] or "{}").get("checks", {}))
        now, osds = self._clock(), summarize_osds(reading)
        reporting = frozenset(osd for osd, one in osds.items() if one.up and one.is_in)
        stale = self._reports.stale(reading.osd_stats, now)
        return ClusterSummary(
            taken_at=now, epoch=epoch, crush_version=int(osdmap.get_crush_version()),
            osds=osds, pools=summarize_pools(reading),
            misplaced_copies=int(reading.pg_status.get("misplaced_objects", 0)),
            degraded_copies=int(reading.pg_status.get("degraded_objects", 0)),
            object_copies=object_copies(reading), mon_connected=connected,
            builtin_active=builtin_active,
            fullness=fullness_of(reading),
            stale_osds=stale & reporting, statistics_at=self._reports.oldest(reporting),
            flags=map_settings.flags if map_settings is not None else None,
            min_compat_client=map_settings.min_compat_client if map_settings is not None else None)

    def map_settings(self, epoch: int) -> Optional[OsdMapSettings]:
        """Asks a monitor once an epoch; None where none replies in time."""
        with self._lock:
            known = self._map_settings
        if known is not None and known.epoch == epoch:
            return known
        stat, client = self._ask((_FLAGS, _MIN_COMPAT))
        if stat is None or client is None:
            return None
        found = OsdMapSettings(epoch, flags_of(stat), client.strip())
        with self._lock:
            self._map_settings = found
        return found

    def _ask(self, prefixes: Sequence[str]) -> List[Optional[str]]:
        """The outputs of commands; None for one that failed or did not come in time."""
        replies = [self._monitors.send({"prefix": prefix}) for prefix in prefixes]
        come = self._monitors.wait(replies, _ANSWER_SECONDS)
        return [reply.outb if has_come and reply.r == 0 else None
                for reply, has_come in zip(replies, come)]


def flags_of(stat: str) -> FrozenSet[str]:
    """The flags in the output of `osd stat` (`flags noout,norebalance` in its last line)."""
    for line in stat.splitlines():
        word, _, flags = line.strip().partition(" ")
        if word == "flags":
            return frozenset(flag.strip() for flag in flags.split(",") if flag.strip())
    return frozenset()
