"""What a new mgr shows while some OSDs have not reported to it yet.

It says `pg_ready` all the same. PGs that one of them leads are `unknown` with nothing in them, the
sums of the pools lack them, and those OSDs have no statistics.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping

from .cluster import Cluster

_UNKNOWN = "unknown"


def without_reports(name: str, value: Any, cluster: Cluster, silent: FrozenSet[int]) -> Any:
    """A structure of get() without what these OSDs would have reported."""
    if name == "pg_progress":
        return {**value, "pgs": {pgid: record if _is_told(cluster, pgid, silent) else {
            **record, "num_bytes": 0, "num_bytes_recovered": 0, "reported_epoch": 0,
            "state": _UNKNOWN} for pgid, record in value["pgs"].items()}}
    if name == "pg_stats":
        return {**value, "pg_stats": _pgs(value["pg_stats"], cluster, silent)}
    if name == "osd_stats":
        return {**value, "osd_stats": _of_osds(value["osd_stats"], silent),
                "pool_statfs": _of_osds(value["pool_statfs"], silent)}
    if name == "pool_stats":
        return {**value, "pool_stats": [_pool(record, cluster, silent)
                                        for record in value["pool_stats"]]}
    if name == "pg_status":
        return _status(value, cluster, silent)
    if name == "pg_dump":
        return {**value, "pg_stats": _pgs(value["pg_stats"], cluster, silent),
                "osd_stats": _of_osds(value["osd_stats"], silent)}
    return value


def _is_told(cluster: Cluster, pgid: str, silent: FrozenSet[int]) -> bool:
    return cluster.map.acting_primary(pgid) not in silent


def _pgs(records: List[Dict[str, Any]], cluster: Cluster,
         silent: FrozenSet[int]) -> List[Dict[str, Any]]:
    return [record if _is_told(cluster, record["pgid"], silent) else {
        **record, "state": _UNKNOWN, "reported_epoch": 0,
        "stat_sum": dict.fromkeys(record["stat_sum"], 0)} for record in records]


def _of_osds(records: List[Dict[str, Any]], silent: FrozenSet[int]) -> List[Dict[str, Any]]:
    return [record for record in records if record["osd"] not in silent]


def _pool(record: Mapping[str, Any], cluster: Cluster, silent: FrozenSet[int]) -> Dict[str, Any]:
    sums = dict(record["stat_sum"])
    for pg in cluster.pgs_of(int(record["poolid"])):
        if not _is_told(cluster, pg.pgid, silent):
            for key, amount in (("num_bytes", pg.num_bytes), ("num_objects", pg.num_objects),
                                ("num_object_copies", pg.num_copies)):
                sums[key] = max(0, sums.get(key, 0) - amount)
    return {**record, "stat_sum": sums}


def _status(value: Mapping[str, Any], cluster: Cluster, silent: FrozenSet[int]) -> Dict[str, Any]:
    unknown = [pg for pg in cluster.pgs.values() if not _is_told(cluster, pg.pgid, silent)]
    if not unknown:
        return dict(value)
    counts = {row["state_name"]: row["count"] for row in value["pgs_by_state"]}
    for pg in unknown:
        counts[cluster.state_of(pg)] -= 1
        counts[_UNKNOWN] = counts.get(_UNKNOWN, 0) + 1
    return {**value, "unknown_pgs_ratio": len(unknown) / len(cluster.pgs),
            "num_objects": value["num_objects"] - sum(pg.num_objects for pg in unknown),
            "pgs_by_state": [{"state_name": state, "count": count}
                             for state, count in counts.items() if count > 0]}
