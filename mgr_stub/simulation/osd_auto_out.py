"""The monitor marks OSDs out that stay down (mon_osd_down_out_interval)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from ..cluster.cluster import Cluster
from ..monitor.config import Config
from ..osdmap.map_change import MapChange
from ..osdmap.osd_entry import marked_out
from .timers import Timer


class OsdAutoOut(Timer):
    """Marks OSDs out that have been down for `mon_osd_down_out_interval`, unless `noout` is set."""

    def __init__(self, cluster: Cluster, config: Config,
                 enact: Callable[[MapChange], None]) -> None:
        self._cluster = cluster
        self._config = config
        #: Makes the epoch of a change.
        self._enact = enact
        #: When each OSD went down; those down in the state file stay in.
        self._down_since: Dict[int, float] = {}
        self._known_osds = cluster.map.osds
        self._down_at_first = {osd for osd, entry in self._known_osds.items() if not entry["up"]}

    def next_moment(self) -> Optional[float]:
        osdmap = self._cluster.map
        if osdmap.osds is not self._known_osds:
            self._update(osdmap.osds)
        if not self._down_since or "noout" in osdmap.flags:
            return None
        return min(self._down_since.values()) + self._interval()

    def _update(self, osds: Dict[int, Dict[str, Any]]) -> None:
        known, now = self._down_since, self._cluster.clock.now
        self._known_osds = osds
        self._down_at_first &= {osd for osd, entry in osds.items() if not entry["up"]}
        self._down_since = {
            osd: known.get(osd, now) for osd, entry in osds.items()
            if not entry["up"] and float(entry["weight"]) > 0 and osd not in self._down_at_first}

    def _interval(self) -> float:
        return float(self._config.core("mon", "mon_osd_down_out_interval"))

    def run(self) -> None:
        limit = self._cluster.clock.now - self._interval()
        due = sorted(osd for osd, since in self._down_since.items() if since <= limit)
        for osd in due:
            del self._down_since[osd]
        osds = self._cluster.map.osds
        self._enact(MapChange(
            osds={osd: marked_out(osds[osd], automatically=True) for osd in due}))
