"""The shards that came to other OSDs, by Ceph's own word: from one clean placement of a PG to the
next."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, NamedTuple, Sequence

from ...cluster import DaemonCluster
from ...daemons import Agent, ClusterError

PERIOD_SECONDS = 0.5
DATA_SHARDS = {"replicated": 1, "erasure": 2}
"""Bytes of a PG are those of so many shards."""


class Moved(NamedTuple):
    """What was copied."""

    shards: int
    bytes: int             # of them all, by the size of their PGs
    recovered_bytes: int   # that Ceph has counted itself; those of a moved primary may be lacking

    def __str__(self) -> str:
        return (f"{self.shards} shards of {self.bytes / (1 << 20):.0f} MiB (Ceph counts"
                f" {self.recovered_bytes / (1 << 20):.0f} MiB)")


class CleanPlacements:
    """Reads the PGs twice a second, in a thread of its own, until it is stopped.

    `kinds`: pool id → "replicated" or "erasure", of the pools that count.
    """

    def __init__(self, cluster: DaemonCluster, kinds: Dict[int, str]) -> None:
        self._kinds = kinds
        self._agent = Agent(cluster.processes, cluster.conf)
        self._placed: Dict[str, List[int]] = {}
        self._recovered: Dict[str, int] = {}
        self._shards = self._bytes = self._recovered_bytes = 0
        self._read()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="placements", daemon=True)
        self._thread.start()

    def stop(self) -> Moved:
        """Reads a last time; what was moved since the first time."""
        self._over.set()
        self._thread.join(30)
        self._read()
        self._agent.close()
        return Moved(self._shards, self._bytes, self._recovered_bytes)

    def _run(self) -> None:
        while not self._over.wait(PERIOD_SECONDS):
            try:
                self._read()
            except (ClusterError, OSError):
                self._agent.close()

    def _read(self) -> None:
        answer = self._agent.ask("mgr", {"prefix": "pg dump", "dumpcontents": ["pgs"],
                                         "format": "json"}, seconds=15.0)
        if answer.rc:
            raise ClusterError(f"pg dump: {answer.err}")
        for stat in answer.json()["pg_stats"]:
            kind = self._kinds.get(int(stat["pgid"].split(".")[0]))
            if kind is not None:
                self._add(stat, kind)

    def _add(self, stat: Dict[str, Any], kind: str) -> None:
        pgid, sums = stat["pgid"], stat["stat_sum"]
        recovered = sums["num_bytes_recovered"]
        self._recovered_bytes += max(0, recovered - self._recovered.get(pgid, recovered))
        self._recovered[pgid] = recovered
        if "clean" not in stat["state"].split("+") or stat["up"] != stat["acting"]:
            return
        shards = came(self._placed.get(pgid, stat["up"]), stat["up"], kind)
        self._shards += shards
        self._bytes += shards * (sums["num_bytes"] // DATA_SHARDS[kind])
        self._placed[pgid] = stat["up"]


def came(before: Sequence[int], after: Sequence[int], kind: str) -> int:
    """Shards that are elsewhere: of an erasure-coded PG, each belongs to its position."""
    if kind == "erasure":
        return sum(a != b for a, b in zip(before, after))
    return len(set(after) - set(before))
