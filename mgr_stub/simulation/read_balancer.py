"""The built-in balancer in mode `read`, from Ceph 19 on: it evens out which OSDs are primaries.

It sends no upmap items. As Ceph's it rests while PGs are degraded or inactive, or more is misplaced
than target_max_misplaced_ratio.

The monitor marks OSDs out that stay down (mon_osd_down_out_interval).
"""
from __future__ import annotations

import json
from collections import Counter
from typing import Any, Callable, Dict, List, Optional

from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..monitor.config import Config
from ..monitor.monitor import Monitor
from ..osdmap.osd_map import MapChange, has_flag, marked_out
from . import statistics
from .deletion import Timer


SENDER = "mgr.x balancer"
_ROUND_SECONDS = 60.0
#: Figures of pg_status that are there only while PGs lack copies or a report.
_NOT_HEALTHY = frozenset(("inactive_pgs_ratio", "degraded_ratio", "unknown_pgs_ratio"))


class ReadBalancer(Timer):
    """Sends the balancer's commands while it is on in that mode."""

    def __init__(self, cluster: Cluster, monitor: Monitor, config: Config,
                 is_loaded: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._monitor = monitor
        self._config = config
        self._is_loaded = is_loaded
        self._next = 0.0

    def next_moment(self) -> Optional[float]:
        if self._config.module_option("balancer", "mode") != "read":
            return None
        if not self._config.module_option("balancer", "active"):
            return None
        self._next = max(self._next, self._cluster.clock.now - _ROUND_SECONDS)
        return self._next

    def run(self) -> None:
        self._next = self._cluster.clock.now + _ROUND_SECONDS
        status = statistics.pg_status(self._cluster)
        limit = float(self._config.core("mgr", "target_max_misplaced_ratio"))
        if not self._is_loaded() or status.get("misplaced_ratio", 0.0) > limit:
            return
        if not status.keys().isdisjoint(_NOT_HEALTHY):
            return
        for pool_id in self._cluster.map.pools:
            self._even_out([pg for pg in self._cluster.pgs.values()
                            if pg.pool_id == pool_id and not pg.erasure])

    def _even_out(self, pgs: List[Pg]) -> None:
        """Evens out the primaries of a pool. Only OSDs that CRUSH chooses become primary: monitors
        of Ceph 20 drop others."""
        osdmap = self._cluster.map
        leads = Counter(osdmap.acting_primary(pg.pgid) for pg in pgs)
        for pg in pgs:
            primary = osdmap.acting_primary(pg.pgid)
            chosen = set(pg.raw or ()).intersection(osdmap.acting(pg.pgid))
            least = min(chosen, key=lambda osd: (leads[osd], osd), default=primary)
            if leads[primary] - leads[least] > 1:
                leads.update({primary: -1, least: 1})
                self._monitor.submit_from(SENDER, json.dumps(
                    {"prefix": "osd pg-upmap-primary", "pgid": pg.pgid, "id": least}),
                    lambda *_: None)


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
        crush = self._cluster.crush
        since = [moment for osd, moment in self._down_since.items()
                 if not has_flag(osdmap, crush, osd, "noout")]
        return min(since) + self._interval() if since else None

    def _update(self, osds: Dict[int, Dict[str, Any]]) -> None:
        known = self._down_since
        now = self._cluster.clock.now
        self._known_osds = osds
        self._down_at_first &= {osd for osd, entry in osds.items() if not entry["up"]}
        down = {osd for osd, entry in osds.items()
                if not entry["up"] and float(entry["weight"]) > 0}
        self._down_since = {osd: known.get(osd, now) for osd in down - self._down_at_first}

    def _interval(self) -> float:
        return float(self._config.core("mon", "mon_osd_down_out_interval"))

    def run(self) -> None:
        limit = self._cluster.clock.now - self._interval()
        due = sorted(osd for osd, since in self._down_since.items() if since <= limit
                     and not has_flag(self._cluster.map, self._cluster.crush, osd, "noout"))
        for osd in due:
            del self._down_since[osd]
        osds = self._cluster.map.osds
        self._enact(MapChange(
            osds={osd: marked_out(osds[osd], automatically=True) for osd in due}))
