"""Counts of the work that the module makes for the mgr and the monitors; tests hold budgets on it."""
from __future__ import annotations

import threading
from typing import Dict, NamedTuple


class Counts(NamedTuple):
    """How often something was done since the mgr became active."""

    full_readings: int = 0          # full readings of the cluster
    pg_stats: int = 0       # readings of every PG's whole statistics
    osdmap_dumps: int = 0   # dumps of the osdmap, which hold the mgr's lock since Ceph 18
    summaries: int = 0      # cheap readings, see snapshot.summary
    kv_writes: int = 0      # values put into the key-value store: a monitor commit each
    mon_commands: int = 0   # upmap commands and questions to the monitors
    plans: int = 0          # plans begun, those for comparing aims among them


class WorkCounters:
    """Adds up; safe to be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Dict[str, int] = Counts()._asdict()

    def add(self, name: str, count: int = 1) -> None:
        """Counts something that a field of Counts is named for; KeyError for any other name."""
        with self._lock:
            self._counts[name] += count

    @property
    def counts(self) -> Counts:
        """The counts as of now."""
        with self._lock:
            return Counts(**self._counts)
