"""What the PGs of a cluster did while a test went on: one sample a second, in a thread of its own.

Each sample is one command's answer, so that its figures belong to the same moment.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence

from ..cluster import DaemonCluster
from ..daemons import Agent, ClusterError

PERIOD_SECONDS = 1.0
ANSWER_SECONDS = 15.0


class Sample(NamedTuple):
    """The PGs as the active mgr knew them at one moment."""

    at: float                  # seconds since the epoch
    misplaced: int             # object copies
    copies: int                # object copies in all
    moving: FrozenSet[str]     # PGs with misplaced objects
    troubled: Dict[str, str]   # state of the PGs that are inactive, degraded or undersized
    utilization: Dict[int, float] = {}   # used ÷ size by OSD, as far as OSDs have reported

    @property
    def misplaced_ratio(self) -> float:
        """Ceph's own ratio: of all object copies."""
        return self.misplaced / self.copies if self.copies else 0.0


class Watcher:
    """Samples until it is stopped; seconds in which no mgr answers leave none."""

    def __init__(self, cluster: DaemonCluster) -> None:
        self.samples: List[Sample] = []
        self._agent = Agent(cluster.processes, cluster.conf)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more samples."""
        self._over.set()
        self._thread.join(2 * ANSWER_SECONDS)

    def between(self, begin: float, end: float) -> List[Sample]:
        """The samples of that span of time; both in seconds since the epoch."""
        return [sample for sample in self.samples if begin <= sample.at <= end]

    def _run(self) -> None:
        while not self._over.wait(PERIOD_SECONDS):
            sample = self._sample()
            if sample is not None:
                self.samples.append(sample)
        self._agent.close()

    def _sample(self) -> Optional[Sample]:
        command = {"prefix": "pg dump", "dumpcontents": ["pgs", "osds"], "format": "json"}
        try:
            answer = self._agent.ask("mgr", command, seconds=ANSWER_SECONDS)
        except (ClusterError, OSError):
            self._agent.close()
            return None
        if answer.rc:
            return None
        dump = answer.json()
        return sample_of(dump["pg_stats"], time.time(), dump.get("osd_stats", []))


def sample_of(pgs: List[Dict[str, Any]], at: float,
              osds: Sequence[Dict[str, Any]] = ()) -> Sample:
    """The sample that the `pg_stats` and `osd_stats` of one `pg dump` make."""
    misplaced = {pg["pgid"]: pg["stat_sum"]["num_objects_misplaced"] for pg in pgs}
    return Sample(
        at=at, misplaced=sum(misplaced.values()),
        copies=sum(pg["stat_sum"]["num_object_copies"] for pg in pgs),
        moving=frozenset(pgid for pgid, copies in misplaced.items() if copies),
        troubled={pg["pgid"]: pg["state"] for pg in pgs if _is_troubled(pg["state"])},
        utilization={osd["osd"]: osd["kb_used"] / osd["kb"] for osd in osds if osd.get("kb")})


def _is_troubled(state: str) -> bool:
    words = set(state.split("+"))
    return "active" not in words or bool(words & {"degraded", "undersized"})
