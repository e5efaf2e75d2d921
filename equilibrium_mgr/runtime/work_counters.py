"""Counts of the work that the module makes for the mgr and the monitors; tests limit them."""
from __future__ import annotations

import threading
from typing import NamedTuple


class Counts(NamedTuple):
    """Numbers of times that something was done since the mgr became active."""

    full_readings: int = 0  # readings of the whole cluster
    pg_stats: int = 0       # readings of all statistics of every PG
    osdmap_dumps: int = 0   # dumps of the osdmap, which hold the mgr's lock since Ceph 18
    summaries: int = 0      # cheap readings, see gateway/cluster_summary.py
    kv_writes: int = 0      # values written to the key-value store: a monitor commit each
    mon_commands: int = 0   # commands to the monitors, upmaps and others
    plans: int = 0          # plans begun, including those that compare aims


class WorkCounters:
    """Counters that any thread may use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts = Counts()   # replaced whole

    def add(self, name: str, count: int = 1) -> None:
        """Adds to a field of Counts. Raises AttributeError for any other name."""
        with self._lock:
            self.counts = self.counts._replace(**{name: getattr(self.counts, name) + count})
