"""What the OSDs' utilization and the misplaced ratio have been since the start of a run."""

from __future__ import annotations

from array import array
from typing import Dict, List

from ..cluster.cluster import Cluster
from .statistics import pg_status

#: Virtual seconds between two samples at first; they double whenever there are so many.
_SECONDS = 60.0
_MOST = 360


class Course:
    """Samples of a whole run, however long: few, and about as far from each other everywhere."""

    def __init__(self) -> None:
        self._seconds = _SECONDS
        self.times: List[float] = []   # virtual seconds since the start
        self.misplaced: List[float] = []
        #: OSD id → its utilization at each time; NaN if it had none
        self.used: Dict[int, array[float]] = {}

    def sample(self, cluster: Cluster, now: float, is_last: bool = False) -> None:
        """Takes a sample if one is due; with `is_last` also if the last is a second old."""
        least = self._seconds - 1.0
        if is_last:
            least = 1.0
        if self.times and now - self.times[-1] < least:
            return
        if len(self.times) >= _MOST:
            self._seconds *= 2.0
            for column in (self.times, self.misplaced, *self.used.values()):
                del column[1::2]
        missing = [float("nan")] * len(self.times)
        self.times.append(now)
        self.misplaced.append(pg_status(cluster).get("misplaced_ratio", 0.0))
        for of_class in cluster.utilizations().values():
            for osd, ratio in of_class.items():
                self.used.setdefault(osd, array("f", missing)).append(ratio)
        for values in self.used.values():
            values.extend([float("nan")] * (len(self.times) - len(values)))
