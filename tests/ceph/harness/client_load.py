"""A client that writes while a test goes on, and what it has to say about it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Dict, List, Sequence

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for

WRITER = Path(__file__).resolve().parent / "writer.py"
NAME = "writer"
READ_SECONDS = 120.0


class ClientLoad:
    """writer.py as a child of the cluster; it ends with the cluster at the latest."""

    def __init__(self, cluster: DaemonCluster, pools: Sequence[str], per_second: float) -> None:
        self.cluster = cluster
        shutil.copy(WRITER, cluster.work)
        self._out = cluster.work / f"{NAME}.out"
        self._out.unlink(missing_ok=True)
        self._end_file = cluster.work / f"{NAME}.end"
        self._end_file.unlink(missing_ok=True)
        cluster.processes.start(NAME, [
            "python3", str(cluster.work / WRITER.name), str(cluster.conf), str(per_second),
            str(self._end_file), *pools])
        wait_for("the first writes", self._lines, 60)

    def __str__(self) -> str:
        return f"{self.writes()} writes, slowest {self.slowest():.1f} s"

    def writes(self) -> int:
        """Writes that have succeeded so far. ClusterError where the client has ended."""
        if not self.cluster.processes.alive(NAME):
            raise ClusterError(f"the writing client ended: {self.cluster.log_tail(NAME)}")
        return self._lines()[-1]["writes"]

    def slowest(self) -> float:
        """The slowest write so far in seconds."""
        return max(line["slowest"] for line in self._lines())

    def end(self) -> None:
        """No more writes."""
        self.cluster.processes.end(NAME)

    def read_back(self) -> int:
        """No more writes. Reads all that was written: returns how many objects are as they were
        written last, ClusterError if one is not."""
        self._end_file.touch()
        wait_for("the client's end", lambda: self.cluster.processes.has_ended(NAME), READ_SECONDS)
        read = json.loads(self._said()[-1])
        if "read" not in read or read["different"]:
            raise ClusterError(f"the client has read: {read}")
        return int(read["read"])

    def _lines(self) -> List[Dict[str, Any]]:
        return [line for line in map(json.loads, self._said()) if "writes" in line]

    def _said(self) -> List[str]:
        said = self._out.read_text().splitlines() if self._out.exists() else []
        return [line for line in said if line.startswith("{") and line.endswith("}")]
