"""Statistics of PGs, OSDs and pools, in the structures of `MgrModule.get`."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Optional, Tuple

from ..cluster import operations, peering, pg_reports
from ..cluster.cluster import Cluster, PoolSums
from ..cluster.pg import OPERATIONS, Pg, version_number
from ..cluster.pg_reports import CLEAN
from ..cluster.usage import OsdUsage, share
from ..crush.hashes import NONE
from ..frozen import ReadOnlyDict, ReadOnlyRecords
from . import client_load as omap

_SUMS = ("num_bytes", "num_objects", "num_omap_bytes", "num_omap_keys", "num_object_copies",
         "num_objects_degraded", "num_objects_misplaced")


#: Seconds between two reports of an OSD (mgr_stats_period).
_REPORT_SECONDS = 5.0


def pg_stat(cluster: Cluster, pg: Pg) -> Dict[str, Any]:
    """Returns the pg_stats[] record of a PG now."""
    up = cluster.map.up.get(pg.pgid, ())
    acting = cluster.map.acting(pg.pgid)
    state, counts = pg_reports.reported(cluster, pg)
    done = operations.counts_of(cluster, pg)
    sums = {**pg.stats.get("stat_sum", {}), **dict(zip(OPERATIONS, done)),
            "num_bytes": pg.num_bytes,
            "num_objects": pg.num_objects, "num_omap_bytes": pg.omap_reported,
            "num_object_copies": pg.num_copies, "num_objects_misplaced": counts.misplaced,
            "num_objects_degraded": counts.degraded, "num_bytes_recovered": pg.recovered()}
    blockers: List[int] = []
    if "down" in state.split("+"):
        blockers = sorted(peering.blockers_of(cluster, pg))
    blocked: Dict[str, Any] = {}
    if blockers or "blocked_by" in pg.stats:
        blocked["blocked_by"] = blockers
    return {**pg.stats, **_locations(cluster, pg, state), **blocked,
            "version": _version(cluster, pg, done[-1]),
            "state": state, "up": list(up), "acting": list(acting),
            "up_primary": cluster.map.up_primary(pg.pgid),
            "acting_primary": cluster.map.acting_primary(pg.pgid),
            "reported_epoch": reported_epoch(cluster, pg), "stat_sum": sums}


def _version(cluster: Cluster, pg: Pg, number: int) -> str:
    """Returns the version of the PG; after writes with the epoch of its last report, not theirs."""
    if number == version_number(pg.stats):
        return str(pg.stats.get("version", "0'0"))
    return f"{reported_epoch(cluster, pg)}'{number}"


def _locations(cluster: Cluster, pg: Pg, state: str) -> Dict[str, Any]:
    """Returns the locations of the objects of a PG; empty lists for a clean PG, as in Ceph."""
    states = state.split("+")
    if not pg.movable or {"down", "peering"} & set(states) or states[:2] == ["active", "clean"]:
        return {name: [] for name in ("avail_no_missing", "object_location_counts")
                if name in pg.stats}
    alive = [(osd, place) for place, osd in enumerate(pg.held)
             if osd != NONE and cluster.map.is_up(osd)]
    form = "{}"
    if pg.erasure:
        form = "{}({})"
    names = [form.format(*one) for one in sorted(alive)]
    counts: List[Dict[str, Any]] = []
    if pg.num_objects:
        counts.append({"shards": ",".join(names), "objects": pg.num_objects})
    return {"avail_no_missing": names, "object_location_counts": counts}


def reported_epoch(cluster: Cluster, pg: Pg) -> int:
    """Returns the epoch of the PG's last report: it reports while it peers, and continuously in
    backfill.

    At the moment of a change the mgr still has the previous report, as with real statistics.
    """
    peering = cluster.peering.get(pg.pgid)
    peers = peering is not None and cluster.clock.now > peering.since
    if pg.backfilling or peers:
        return cluster.map.epoch
    return pg.reported_epoch


def pg_stats(cluster: Cluster) -> List[Dict[str, Any]]:
    """Returns the pg_stats[] records now; read-only, since those of clean PGs are cached."""
    unclean = cluster.unclean
    shown: List[Dict[str, Any]] = []
    for pgid, pg in cluster.pgs.items():
        record = pg.stats_record
        if record is None or pgid in unclean or pg.pool_id in cluster.loads:
            record = pg_stat(cluster, pg)
            # not cached for unmovable PGs: their acting sets depend on the OSDs that are up
            if pg.movable:
                pg.stats_record = record
        shown.append(record)
    return shown


def pg_progress(cluster: Cluster) -> Dict[str, Any]:
    """Returns get('pg_progress'): bytes and state of every reported PG; its records are read-only.
    """
    records = cluster.progress_records
    pgs = cluster.pgs
    if len(records) != len(pgs):
        records.clear()
        records.update({pgid: pg.progress_record or _progress_record(cluster, pg)
                        for pgid, pg in pgs.items()})
    for pg in [pg for pg in pgs.values() if pg.progress_record is None]:
        records[pg.pgid] = pg.progress_record = _progress_record(cluster, pg)
    for pg in cluster.unclean.values():   # they change as time passes
        records[pg.pgid] = pg.progress_record = _progress_record(cluster, pg)
    return {"pgs": ReadOnlyRecords(records), "pg_ready": True}


def _progress_record(cluster: Cluster, pg: Pg) -> ReadOnlyDict:
    return ReadOnlyDict({
        "num_bytes_recovered": pg.recovered(), "num_bytes": pg.num_bytes,
        "reported_epoch": reported_epoch(cluster, pg),
        "state": pg_reports.reported(cluster, pg)[0]})


def pool_sums(cluster: Cluster) -> Dict[int, PoolSums]:
    """Returns the sums and states of every pool now; read-only.

    Cached while no time passes, no epoch is made and no PG is refreshed.
    """
    moment = cluster.moment
    if cluster.current_sums[0] != moment:
        cluster.current_sums = moment, _current_sums(cluster)
    return cluster.current_sums[1]


def _current_sums(cluster: Cluster) -> Dict[int, PoolSums]:
    """Returns the sums of clean PGs, corrected for the unclean ones."""
    if not cluster.clean_sums:
        cluster.clean_sums.update(_clean_sums(cluster))
    now = {pool_id: PoolSums(dict(sums.stat_sum), dict(sums.states))
           for pool_id, sums in cluster.clean_sums.items()}
    for pg in cluster.unclean.values():
        sums = now[pg.pool_id]
        state, counts = pg_reports.reported(cluster, pg)
        sums.stat_sum["num_objects_misplaced"] += counts.misplaced
        sums.stat_sum["num_objects_degraded"] += counts.degraded
        sums.states[CLEAN] -= 1
        sums.states[state] = sums.states.get(state, 0) + 1
    return now


def _clean_sums(cluster: Cluster) -> Dict[int, PoolSums]:
    sums = {pool_id: PoolSums(dict.fromkeys(_SUMS, 0)) for pool_id in cluster.map.pools}
    for pg in cluster.pgs.values():
        total = sums[pg.pool_id].stat_sum
        total["num_bytes"] += pg.num_bytes
        total["num_objects"] += pg.num_objects
        total["num_omap_bytes"] += pg.omap_reported
        total["num_omap_keys"] += pg.stat("num_omap_keys")
        total["num_object_copies"] += pg.num_copies
        state = CLEAN
        if not pg.movable:
            total["num_objects_misplaced"] += pg.stat("num_objects_misplaced")
            total["num_objects_degraded"] += pg.stat("num_objects_degraded")
            state = pg.file_state
        states = sums[pg.pool_id].states
        states[state] = states.get(state, 0) + 1
    return sums


def pool_stats(cluster: Cluster) -> List[Dict[str, Any]]:
    """Returns the pool_stats[] records: sums over the PGs of each pool."""
    from_file = {int(record["poolid"]): record for record in cluster.extras["pool_stats"]}
    shown = []
    held = cluster.pool_usage.by_pool()
    undeleted: Dict[int, int] = {}
    for (pool_id, _), count in cluster.undeleted.items():
        undeleted[pool_id] = undeleted.get(pool_id, 0) + count
    for pool_id, sums in pool_sums(cluster).items():
        record = from_file.get(pool_id, {})
        at_start = record.get("stat_sum", {})
        stored = {**record.get("store_stats", {}), **held.get(pool_id, {})}
        if stored.get("allocated") and pool_id not in held:
            stored["allocated"] += undeleted.get(pool_id, 0)
        stored["omap_allocated"] = omap.stored(cluster, pool_id)
        shown.append({**record, "poolid": pool_id,
                      "num_pg": int(cluster.map.pools[pool_id]["pg_num"]),
                      "stat_sum": {**at_start, **sums.stat_sum,
                                   **operations.of_pool(cluster, pool_id, at_start)},
                      "store_stats": stored})
    return shown


def osd_stats(cluster: Cluster) -> List[Dict[str, Any]]:
    """Returns the osd_stats[] records that the mgr has; the records are read-only.

    In Ceph, too, the record of an OSD that is out is empty except for its number
    (ClusterState::ingest_pgstats). The record of an OSD that is down is its last one.
    """
    hidden = omap.hidden(cluster)
    osds = cluster.map.osds
    period = int(cluster.clock.elapsed() / _REPORT_SECONDS)
    return [_osd_stat(osds[osd], usage, hidden.get(osd, 0), period)
            for osd, usage in sorted(cluster.usage.items()) if usage.total and osd in osds]


def _osd_stat(entry: Dict[str, Any], usage: OsdUsage, hidden: int,
              period: int) -> Dict[str, Any]:
    """Returns a record with the epoch since which the OSD is up, and a sequence number.

    As in Ceph the number increases with each report.
    """
    record = None
    if float(entry["weight"]) > 0:
        record = usage.dump(hidden)
    last_entry, last_record, last_period, shown = usage.shown
    if last_entry is not entry or last_record is not record or last_period != period:
        shown = _shown(entry, record, period)
        usage.shown = entry, record, period, shown
    if usage.is_flat:
        return shown
    return copy.deepcopy(shown)


def _shown(entry: Dict[str, Any], record: Optional[ReadOnlyDict], period: int) -> ReadOnlyDict:
    if record is None:
        shown = {**no_statistics(int(entry["osd"])), "seq": 0}
    else:
        shown = dict(record)
    if "up_from" in entry:
        shown["up_from"] = entry["up_from"]
    reports = 0
    if entry.get("up"):
        reports = period
    if "seq" in shown:
        shown["seq"] = reports + int(shown["seq"])
    elif reports:
        shown["seq"] = reports + int(shown.get("up_from", 0) << 32)
    return ReadOnlyDict(shown)


def is_counted(cluster: Cluster, osd: int) -> bool:
    """Returns True if the mgr uses the reports of the OSD: not while it is out."""
    return cluster.map.reweight(osd) > 0


def no_statistics(osd: int) -> Dict[str, Any]:
    """Returns the record of an OSD without statistics (out, or new)."""
    zeros = dict.fromkeys(("num_pgs", "kb", "kb_used", "kb_used_data", "kb_used_omap",
                           "kb_used_meta", "kb_avail"), 0)
    return {"osd": osd, **zeros, "statfs": ReadOnlyDict({"total": 0, "available": 0})}


def pg_status(cluster: Cluster) -> Dict[str, Any]:
    """Returns get('pg_status'): PGs by state, and ratios of trouble that are above zero."""
    by_pool = pool_sums(cluster)
    by_state: Dict[str, int] = {}
    total = dict.fromkeys(_SUMS, 0)
    for sums in by_pool.values():
        for state, count in sums.states.items():
            by_state[state] = by_state.get(state, 0) + count
        for name in _SUMS:
            total[name] += sums.stat_sum[name]
    status: Dict[str, Any] = {
        "pgs_by_state": _counts(by_state),
        "pgs_by_pool_state": [{"pool_id": pool_id, "pg_state_counts": _counts(sums.states)}
                              for pool_id, sums in by_pool.items()],
        "num_pgs": len(cluster.pgs), "num_pools": len(cluster.map.pools),
        "num_objects": total["num_objects"], "data_bytes": total["num_bytes"],
        **_space(cluster),
    }
    copies = total["num_object_copies"]
    for name in ("degraded", "misplaced"):
        count = total[f"num_objects_{name}"]
        if count:
            status.update({f"{name}_objects": count, f"{name}_total": copies,
                           f"{name}_ratio": share(count, copies, 1.0)})
    unknown = sum(count for state, count in by_state.items() if "unknown" in state)
    inactive = sum(count for state, count in by_state.items()
                   if "active" not in state.split("+")) - unknown
    for name, count in (("unknown", unknown), ("inactive", inactive)):
        if count:
            status[f"{name}_pgs_ratio"] = count / len(cluster.pgs)
    return status


def _counts(states: Dict[str, int]) -> List[Dict[str, Any]]:
    return [{"state_name": state, "count": count}
            for state, count in sorted(states.items(), key=lambda item: (-item[1], item[0]))
            if count]


def _space(cluster: Cluster) -> Dict[str, int]:
    counted = [usage for osd, usage in cluster.usage.items() if is_counted(cluster, osd)]
    total = sum(usage.total for usage in counted)
    used = sum(usage.used for usage in counted if usage.total)
    return {"bytes_used": used, "bytes_avail": total - used, "bytes_total": total}


def max_avail(cluster: Cluster, pool_id: int) -> int:
    """Returns Ceph's MAX AVAIL of a pool in user bytes: until the first OSD is full, by CRUSH
    weights.
    """
    pool = cluster.map.pools[pool_id]
    of_rule = cluster.crush.rule_weights(int(pool["crush_rule"]))
    weights = {osd: weight * cluster.map.reweight(osd) for osd, weight in of_rule.items()}
    total = sum(weights.values())
    rate = float(pool["size"]) / cluster.map.data_chunks(pool_id)
    full = cluster.map.ratio("full_ratio")
    free: List[float] = []
    for osd, usage in cluster.usage.items():
        if weights.get(osd, 0.0) > 0 and usage.total:
            until_full = max(0.0, usage.total * full - usage.used)
            free.append(until_full * total / weights[osd])
    if not free:
        return 0
    return int(min(free) / rate)


def df(cluster: Cluster) -> Dict[str, Any]:
    """Returns get('df') and `ceph df detail`: space of the cluster, the device classes and the
    pools.
    """
    osds = {osd: usage for osd, usage in cluster.usage.items()
            if usage.total and is_counted(cluster, osd)}
    classes = sorted({cluster.crush.classes[osd] for osd in osds if osd in cluster.crush.classes})
    by_class = {name: _class_space([(usage.total, usage.used) for osd, usage in osds.items()
                                    if cluster.crush.classes.get(osd) == name])
                for name in classes}
    stats = {**_class_space([(usage.total, usage.used) for usage in osds.values()]),
             "num_osds": len(osds), "num_per_pool_osds": len(osds),
             "num_per_pool_omap_osds": len(osds)}
    return {"stats": stats, "stats_by_class": by_class, "pools": _df_pools(cluster)}


def _class_space(osds: List[Tuple[int, int]]) -> Dict[str, Any]:
    total = sum(size for size, _ in osds)
    used = sum(bytes_used for _, bytes_used in osds)
    return {"total_bytes": total, "total_avail_bytes": total - used, "total_used_bytes": used,
            "total_used_raw_bytes": used, "total_used_raw_ratio": share(used, total)}


def _df_pools(cluster: Cluster) -> List[Dict[str, Any]]:
    file_df = cluster.extras.get("df_dump") or {}
    from_file = {pool["id"]: pool for pool in file_df.get("pools", [])}
    shown = []
    for record in pool_stats(cluster):
        pool_id = record["poolid"]
        pool = cluster.map.pools[pool_id]
        sums = record["stat_sum"]
        rate = float(pool["size"]) / cluster.map.data_chunks(pool_id)
        free = max_avail(cluster, pool_id)
        used = int(sums["num_bytes"] * rate)
        omap_raw = record["store_stats"]["omap_allocated"]
        omap_user = omap_raw // int(pool["size"])
        stats = {
            **from_file.get(pool_id, {}).get("stats", {}),
            "stored": sums["num_bytes"] + omap_user,
            "stored_data": sums["num_bytes"], "stored_omap": omap_user,
            "objects": sums["num_objects"], "kb_used": (used + omap_raw + 1023) // 1024,
            "bytes_used": used + omap_raw, "data_bytes_used": used, "omap_bytes_used": omap_raw,
            "percent_used": (used + omap_raw) / max(1.0, used + omap_raw + free * rate),
            "max_avail": free, "avail_raw": int(free * rate), "stored_raw": used + omap_raw,
        }
        for key in ("quota_objects", "quota_bytes"):
            stats.setdefault(key, 0)
        shown.append({"name": pool["pool_name"], "id": pool_id, "stats": stats})
    return shown


def pg_dump(cluster: Cluster) -> Dict[str, Any]:
    """Returns get('pg_dump') and the pg_map of `ceph pg dump`."""
    return {**cluster.extras["pg_map"], "last_osdmap_epoch": cluster.map.epoch,
            "pg_stats": pg_stats(cluster), "pool_stats": pool_stats(cluster),
            "osd_stats": osd_stats(cluster), "pool_statfs": cluster.pool_usage.dump()}
