"""The reports that the mgr has of OSDs and PGs: fresh, late, frozen or noisy.

A new mgr knows PGs from the osdmap alone until their primaries have reported them
(PGMapUpdater::check_osd_map). OSDs that have not reported yet are one cause; a primary that
withholds a PG is another, because nobody reports that PG.

Such PGs are `unknown` and empty, sums of pools and misplaced objects do not include them, and OSDs
that have not reported have no statistics.
"""
from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, FrozenSet, Iterable, List, Mapping, Optional, Tuple

from ..cluster import operations, pg_reports
from ..cluster.cluster import Cluster
from ..cluster.pg import OPERATIONS, Pg
from ..cluster.usage import share
from . import statistics
from .client_load import Noise
from .deletion import Timer


_UNKNOWN = "unknown"


def without_reports(name: str, value: Any, cluster: Cluster, silent: FrozenSet[int],
                    unknown: Mapping[str, Pg]) -> Any:
    """Returns a structure of get() without the reports of the `silent` OSDs, and of the `unknown`
    PGs.
    """
    if name == "pg_progress":
        records = dict(value["pgs"])
        for pgid in records.keys() & unknown.keys():
            records[pgid] = {**records[pgid], "num_bytes": 0, "num_bytes_recovered": 0,
                             "reported_epoch": 0, "state": _UNKNOWN}
        return {**value, "pgs": records}
    if name == "pg_stats":
        return {"pg_stats": [_pg_record(record, unknown) for record in value["pg_stats"]]}
    if name == "osd_stats":
        return {**value, "osd_stats": _of_osds(value["osd_stats"], silent),
                "pool_statfs": _of_osds(value["pool_statfs"], silent)}
    if name == "pool_stats":
        return {**value, "pool_stats": [_pool(cluster, record, unknown.values())
                                        for record in value["pool_stats"]]}
    if name == "pg_status" and unknown:
        return _status(value, cluster, list(unknown.values()))
    return value


def _pg_record(record: Mapping[str, Any], unknown: Mapping[str, Pg]) -> Mapping[str, Any]:
    if record["pgid"] not in unknown:
        return record
    return {
        **record,
        "state": _UNKNOWN,
        "reported_epoch": 0,
        "version": "0'0",
        "up": [],
        "acting": [],
        "up_primary": -1,
        "acting_primary": -1,
        "stat_sum": dict.fromkeys(record["stat_sum"], 0)}


def _of_osds(records: List[Dict[str, Any]], silent: FrozenSet[int]) -> List[Dict[str, Any]]:
    return [record for record in records if record["osd"] not in silent]


def _pool(cluster: Cluster, record: Mapping[str, Any], unknown: Iterable[Pg]) -> Dict[str, Any]:
    sums = dict(record["stat_sum"])
    for pg in unknown:
        if pg.pool_id == int(record["poolid"]):
            done = operations.counts_of(cluster, pg)
            for key, amount in (("num_bytes", pg.num_bytes), ("num_objects", pg.num_objects),
                                ("num_object_copies", pg.num_copies), *zip(OPERATIONS, done)):
                sums[key] = max(0, sums.get(key, 0) - amount)
    return {**record, "stat_sum": sums}


def _status(value: Mapping[str, Any], cluster: Cluster, unknown: List[Pg]) -> Dict[str, Any]:
    by_pool = [{**entry, "pg_state_counts": _recounted(
        entry["pg_state_counts"], cluster,
        [pg for pg in unknown if pg.pool_id == entry["pool_id"]])}
        for entry in value["pgs_by_pool_state"]]
    return {**_without_unreported(value, cluster, unknown),
            "unknown_pgs_ratio": len(unknown) / len(cluster.pgs),
            "num_objects": value["num_objects"] - sum(pg.num_objects for pg in unknown),
            "pgs_by_state": _recounted(value["pgs_by_state"], cluster, unknown),
            "pgs_by_pool_state": by_pool}


def _recounted(rows: List[Dict[str, Any]], cluster: Cluster,
               unknown: List[Pg]) -> List[Dict[str, Any]]:
    """Returns PGs by state, with the unreported ones counted as unknown."""
    counts = {row["state_name"]: row["count"] for row in rows}
    for pg in unknown:
        state = pg_reports.state_of(cluster, pg)
        counts[state] = counts.get(state, 0) - 1
        counts[_UNKNOWN] = counts.get(_UNKNOWN, 0) + 1
    return [{"state_name": state, "count": count} for state, count in counts.items() if count > 0]


def _without_unreported(value: Any, cluster: Cluster, unknown: List[Pg]) -> Dict[str, Any]:
    """Returns the misplaced and degraded figures without those of the unreported PGs."""
    shown = dict(value)
    copies = sum(pg.num_copies for pg in unknown)
    hidden = [pg_reports.reported(cluster, pg)[1] for pg in unknown]
    for name, less in (("misplaced", sum(counts.misplaced for counts in hidden)),
                       ("degraded", sum(counts.degraded for counts in hidden))):
        count = shown.pop(f"{name}_objects", 0) - less
        total = shown.pop(f"{name}_total", 0) - copies
        shown.pop(f"{name}_ratio", None)
        if count > 0:
            shown.update({f"{name}_objects": count, f"{name}_total": total,
                          f"{name}_ratio": share(count, total, 1.0)})
    return shown


#: Structures of `MgrModule.get` that are built from reports.
REPORTED: Dict[str, Callable[[Cluster], Any]] = {
    "pg_progress": statistics.pg_progress,
    "pg_stats": lambda cluster: {"pg_stats": statistics.pg_stats(cluster)},
    "pool_stats": lambda cluster: {"pool_stats": statistics.pool_stats(cluster)},
    "osd_stats": lambda cluster: {"osd_stats": statistics.osd_stats(cluster),
                                  "pool_statfs": cluster.pool_usage.dump()},
    "pg_status": statistics.pg_status,
    "df": statistics.df,
}

#: Seconds between two reports of an OSD (mgr_stats_period).
REPORT_SECONDS = 5.0

#: Snapshots taken per span of the lag.
_SNAPSHOTS_PER_LAG = 4

_Snapshot = Dict[str, Any]


class Reports(Timer):
    """Answers with the newest reading of the statistics that is old enough.

    Readings are not copied, so callers must not change them.
    """

    def __init__(self, cluster: Cluster, seed: int, account_copied: Callable[[], None]) -> None:
        self._cluster = cluster
        #: Makes the statistics of the OSDs show all that has been copied.
        self._account_copied = account_copied
        self.seed = seed
        #: Largest relative error of reported bytes, in either direction.
        self.noise = 0.0
        #: Seconds that the errors last.
        self.noise_seconds = REPORT_SECONDS
        self._lag = 0.0
        self._frozen_until = 0.0
        self._frozen_since = 0.0
        self._frozen: Optional[_Snapshot] = None
        #: OSDs that have not reported to a new mgr yet.
        self._silent: FrozenSet[int] = frozenset()
        self._silent_until = 0.0
        #: Hanging OSD → since when, until when, and its last report.
        self._hanging: Dict[int, Tuple[float, float, Dict[str, Any]]] = {}
        self._snapshots: Deque[Tuple[float, _Snapshot]] = deque()
        #: Called when a reading is taken, with its content.
        self.observers: List[Callable[[], None]] = []
        self._noise = Noise()

    def freeze(self, seconds: float) -> None:
        """Freezes all reports for some seconds; 0 ends that."""
        frozen = None
        if seconds > 0:
            frozen = self._snapshot()
        self._frozen = frozen
        self._frozen_since = self._cluster.clock.now
        self._frozen_until = self._cluster.clock.now + seconds

    def lag(self, seconds: float) -> None:
        """Makes reports at least so many seconds old, and at most a quarter more."""
        self._lag = seconds
        self._snapshots.clear()
        if seconds > 0:
            self._take()

    def set_unreported(self, seconds: float, osds: Iterable[int]) -> None:
        """Removes the reports of these OSDs for some seconds, as right after a failover."""
        self._silent = frozenset(osds)
        self._silent_until = self._cluster.clock.now + seconds

    def forget(self) -> None:
        """Forgets the reports of PGs that peer, because another mgr begins. All others are reported
        at once: each report of an OSD has all PGs that it leads (OSD::collect_pg_stats)."""
        for pgid in self._cluster.peering:
            self._cluster.pgs[pgid].reported_epoch = -1

    def hang(self, seconds: float, osds: Iterable[int]) -> None:
        """Stops the reports of these OSDs for some seconds; the mgr keeps the last ones."""
        self._account_copied()
        last = {record["osd"]: record for record in self.get("osd_stats")["osd_stats"]}
        now = self._cluster.clock.now
        self._hanging.update({osd: (now, now + seconds, last[osd]) for osd in osds if osd in last})

    @property
    def unreported(self) -> FrozenSet[int]:
        """Returns the OSDs without statistics in the mgr."""
        if self._cluster.clock.now < self._silent_until:
            return self._silent
        return frozenset()

    def _unknown(self) -> Dict[str, Pg]:
        """Returns the PGs that nobody has reported to this mgr."""
        cluster = self._cluster
        silent = self.unreported
        found: Dict[str, Pg] = {}
        pgids: Iterable[str] = cluster.peering
        if silent:
            pgids = cluster.pgs
        for pgid in pgids:
            pg = cluster.pgs[pgid]
            is_silent = cluster.map.acting_primary(pgid) in silent
            if is_silent or statistics.reported_epoch(cluster, pg) < 0:
                found[pgid] = pg
        return found

    @property
    def hanging_since(self) -> Dict[int, float]:
        """Returns OSD → moment since which it does not report, although it did before."""
        now = self._cluster.clock.now
        if self._is_frozen:
            return dict.fromkeys(self._cluster.map.osds, self._frozen_since)
        return {osd: since for osd, (since, until, _) in self._hanging.items() if now < until}

    @property
    def is_fresh(self) -> bool:
        """Returns True if the reports show the present cluster."""
        if self._is_frozen or self._lag or self.noise:
            return False
        return not self.hanging_since and self._cluster.clock.now >= self._silent_until

    @property
    def frozen_seconds(self) -> float:
        """Returns the seconds without any report; 0 if reports are not frozen."""
        if not self._is_frozen:
            return 0.0
        return self._cluster.clock.now - self._frozen_since

    @property
    def _is_frozen(self) -> bool:
        return self._frozen is not None and self._cluster.clock.now < self._frozen_until

    def get(self, name: str) -> Any:
        """Returns the mgr's present version of a structure of REPORTED."""
        now = self._cluster.clock.now
        snapshot: Optional[_Snapshot] = None
        if self._frozen is not None and now < self._frozen_until:
            snapshot = self._frozen
        elif self._lag:
            snapshot = self._snapshots[0][1]
        if snapshot is None:
            value = REPORTED[name](self._cluster)
        else:
            value = _of_existing_pools(name, snapshot[name], self._cluster)
        if self._hanging and name == "osd_stats":
            value = {**value, "osd_stats": self._with_hanging(value["osd_stats"])}
        unknown = self._unknown()
        if unknown or self.unreported:
            value = without_reports(name, value, self._cluster, self.unreported, unknown)
        if self.noise:
            return self._noisy(name, value)
        return value

    def _with_hanging(self, records: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Returns the records, with the last one of each hanging OSD."""
        now = self._cluster.clock.now
        last = {osd: record for osd, (_, until, record) in self._hanging.items() if now < until}
        return [last.get(record["osd"], record) for record in records]

    # -- snapshots ----------------------------------------------------------------------------

    def next_moment(self) -> Optional[float]:
        if not self._lag:
            return None
        return self._snapshots[-1][0] + max(REPORT_SECONDS, self._lag / _SNAPSHOTS_PER_LAG)

    def run(self) -> None:
        self._take()
        limit = self._cluster.clock.now - self._lag
        while len(self._snapshots) > 1 and self._snapshots[1][0] <= limit:
            self._snapshots.popleft()

    def _take(self) -> None:
        self._snapshots.append((self._cluster.clock.now, self._snapshot()))

    def _snapshot(self) -> _Snapshot:
        self._account_copied()
        for observe in self.observers:
            observe()
        return {name: make(self._cluster) for name, make in REPORTED.items()}

    def _noisy(self, name: str, value: Any) -> Any:
        """Returns the structure with noise; the same in every query for `noise_seconds`."""
        period = int(self._cluster.clock.now // self.noise_seconds)
        return self._noise.added(name, value, self.noise, f"{self.seed}/%s/{period}")


def _of_existing_pools(name: str, value: Any, cluster: Cluster) -> Any:
    """Returns an old reading without removed pools: the mgr drops those with the osdmap."""
    pools = cluster.map.pools
    if name == "pg_progress":
        return {**value, "pgs": {pgid: pg for pgid, pg in value["pgs"].items()
                                 if int(pgid.partition(".")[0]) in pools}}
    if name == "pg_stats":
        return {"pg_stats": [record for record in value["pg_stats"]
                             if int(record["pgid"].partition(".")[0]) in pools]}
    if name == "pool_stats":
        return {"pool_stats": [record for record in value["pool_stats"]
                               if record["poolid"] in pools]}
    if name == "df":
        return {**value, "pools": [pool for pool in value["pools"] if pool["id"] in pools]}
    return value
