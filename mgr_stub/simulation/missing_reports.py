"""Statistics of a new mgr to which some OSDs have not reported yet.

PGs whose primary is such an OSD are `unknown` and empty, sums of
pools and misplaced objects do not include them, and such OSDs have no statistics.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping

from ..cluster import pg_reports
from ..cluster.cluster import Cluster
from ..cluster.pg import Pg

_UNKNOWN = "unknown"


def without_reports(name: str, value: Any, cluster: Cluster, silent: FrozenSet[int]) -> Any:
    """A structure of get() without the reports of the `silent` OSDs."""
    if name == "pg_progress":
        return {**value, "pgs": {pgid: record if _is_reported(cluster, pgid, silent) else {
            **record, "num_bytes": 0, "num_bytes_recovered": 0, "reported_epoch": 0,
            "state": _UNKNOWN} for pgid, record in value["pgs"].items()}}
    if name == "pg_stats":
        return {"pg_stats": [
            record if _is_reported(cluster, record["pgid"], silent) else {
                **record, "state": _UNKNOWN, "reported_epoch": 0,
                "stat_sum": dict.fromkeys(record["stat_sum"], 0)}
            for record in value["pg_stats"]]}
    if name == "osd_stats":
        return {**value, "osd_stats": _of_osds(value["osd_stats"], silent),
                "pool_statfs": _of_osds(value["pool_statfs"], silent)}
    if name == "pool_stats":
        return {**value, "pool_stats": [_pool(record, cluster, silent)
                                        for record in value["pool_stats"]]}
    if name == "pg_status":
        return _status(value, cluster, silent)
    return value


def _is_reported(cluster: Cluster, pgid: str, silent: FrozenSet[int]) -> bool:
    return cluster.map.acting_primary(pgid) not in silent


def _of_osds(records: List[Dict[str, Any]], silent: FrozenSet[int]) -> List[Dict[str, Any]]:
    return [record for record in records if record["osd"] not in silent]


def _pool(record: Mapping[str, Any], cluster: Cluster, silent: FrozenSet[int]) -> Dict[str, Any]:
    sums = dict(record["stat_sum"])
    for pg in cluster.pgs_of(int(record["poolid"])):
        if not _is_reported(cluster, pg.pgid, silent):
            for key, amount in (("num_bytes", pg.num_bytes), ("num_objects", pg.num_objects),
                                ("num_object_copies", pg.num_copies)):
                sums[key] = max(0, sums.get(key, 0) - amount)
    return {**record, "stat_sum": sums}


def _status(value: Mapping[str, Any], cluster: Cluster, silent: FrozenSet[int]) -> Dict[str, Any]:
    unknown = [pg for pg in cluster.pgs.values() if not _is_reported(cluster, pg.pgid, silent)]
    if not unknown:
        return dict(value)
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
    """PGs by state, with the unreported ones counted as unknown."""
    counts = {row["state_name"]: row["count"] for row in rows}
    for pg in unknown:
        state = pg_reports.state_of(cluster, pg)
        counts[state] = counts.get(state, 0) - 1
        counts[_UNKNOWN] = counts.get(_UNKNOWN, 0) + 1
    return [{"state_name": state, "count": count} for state, count in counts.items() if count > 0]


def _without_unreported(value: Any, cluster: Cluster, unknown: List[Pg]) -> Dict[str, Any]:
    """Misplaced and degraded figures without those of the unreported PGs."""
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
                          f"{name}_ratio": count / total if total > 0 else 1.0})
    return shown
