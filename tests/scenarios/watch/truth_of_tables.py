"""Rules of truth for `df` and `osds`: T12 pools, T13 OSDs, T14 room.

Each figure of now equals what Ceph reports, and each figure that Ceph does not report is computed
here anew, from the simulated cluster alone.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Iterator, List

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.cluster.pg import pg_order
from mgr_stub.crush.hashes import NONE
from mgr_stub.osdmap.osd_map import share_of


Answer = Dict[str, Any]

#: Of a pool's free space and the room: sizes of shards move while they are read.
_FREE_SLACK = 0.02
_FEW_BYTES = 64 << 20


def t12_pools(session: Session, df: Answer) -> Iterator[str]:
    """Stored bytes, per cent used and MAX AVAIL are Ceph's; free is what the OSDs allow."""
    cluster = session.cluster
    reported = {pool["id"]: pool["stats"] for pool in session.simulation.reports.get("df")["pools"]}
    said = {pool["id"]: pool for pool in df["pools"]}
    if said.keys() != cluster.map.pools.keys():
        yield f"df tells of pools {sorted(said)}, there are {sorted(cluster.map.pools)}"
    free = free_bytes(cluster)
    parts = parts_held(cluster)
    for pool_id in said.keys() & reported.keys() & parts.keys():
        for key in ("stored", "percent_used", "max_avail"):
            if said[pool_id][key] != reported[pool_id][key]:
                yield (f"{key} of pool {pool_id} is {reported[pool_id][key]}, said is"
                       f" {said[pool_id][key]}")
        most = min((free[osd] / part for osd, part in parts[pool_id].items() if osd in free),
                   default=0.0)
        if abs(said[pool_id]["free_bytes"] - most) > _FREE_SLACK * most + _FEW_BYTES:
            yield (f"pool {pool_id} can take {most:.0f}, said is {said[pool_id]['free_bytes']}")


def t13_osds(session: Session, osds: Answer) -> Iterator[str]:
    """Size and used bytes of an OSD are those that it reports; its PGs are counted by acting sets,
    as `ceph osd df` does (PGMap::get_num_pg_by_osd)."""
    pgs = Counter(osd for pgid in session.cluster.pgs for osd in session.cluster.map.acting(pgid))
    reported = {record["osd"]: record
                for record in session.simulation.reports.get("osd_stats")["osd_stats"]}
    for row in osds["osds"]:
        record = reported.get(row["id"])
        if record is None or not record["statfs"]["total"]:
            continue
        size, available = record["statfs"]["total"], record["statfs"]["available"]
        truth = (size, size - available, pgs[row["id"]])
        told = (row["size_bytes"], row["used_bytes"], row["pgs"])
        if told != truth:
            yield f"osd.{row['id']} reports size, used, PGs {truth}, said is {told}"
    known = {row["id"] for row in osds["osds"]}
    if known != set(session.cluster.map.osds):
        yield f"OSDs {sorted(set(session.cluster.map.osds) ^ known)} are not told of"


def t14_room(session: Session, df: Answer) -> Iterator[str]:
    """What fits if all pools grow alike."""
    cluster, free = session.cluster, free_bytes(session.cluster)
    stored: Dict[int, int] = {}
    for pg in cluster.pgs.values():
        stored[pg.pool_id] = stored.get(pg.pool_id, 0) + pg.num_bytes
    growth: Dict[int, float] = {}
    for pool_id, parts in parts_held(cluster).items():
        for osd, part in parts.items():
            growth[osd] = growth.get(osd, 0.0) + stored.get(pool_id, 0) * part
    most = min((free[osd] / rate for osd, rate in growth.items() if rate > 0.0 and osd in free),
               default=0.0) * sum(stored.values())
    if df["room"] is not None and abs(df["room"]["bytes"] - most) > _FREE_SLACK * most + _FEW_BYTES:
        yield f"{most:.0f} bytes fit into all pools, said is {df['room']['bytes']}"


def free_bytes(cluster: Cluster) -> Dict[int, float]:
    """OSD → bytes until it is full."""
    full = cluster.map.ratio("full_ratio")
    return {osd: max(0.0, full * usage.total - usage.used) for osd, usage in cluster.usage.items()
            if usage.total}


def parts_held(cluster: Cluster) -> Dict[int, Dict[int, float]]:
    """Pool → OSD → its part of the bytes that clients write to the pool, where data is now.

    PGs that are still to be split get twice as much as others. What the mean shard takes beyond
    the clients' bytes does not count, as it does not in Ceph's MAX AVAIL. What is written has as
    much metadata and omap as what there is: that takes the same everywhere.
    """
    parts: Dict[int, Dict[int, float]] = {}
    for pool_id in cluster.map.pools:
        pgs = cluster.pgs_of(pool_id)
        shares = {pg.pgid: share_of(pg_order(pg.pgid)[1], len(pgs)) for pg in pgs}
        whole = sum(shares.values()) * max(1, cluster.map.data_chunks(pool_id))
        found = parts[pool_id] = {}
        positions = cluster.shard_ratios.positions.get(pool_id, (1.0,))
        mean = sum(positions) / len(positions)
        data = mean * sum(pg.shard.data for pg in pgs)
        beside = sum(pg.shard.total - pg.shard.data for pg in pgs)
        for pg in pgs:
            for place, osd in enumerate(pg.held):
                if osd != NONE:
                    ratio = positions[place] if place < len(positions) else 1.0
                    ratio *= cluster.shard_ratios.ratio(pool_id, osd) / mean
                    if data > 0:
                        ratio = (ratio * data + beside) / (data + beside)
                    found[osd] = found.get(osd, 0.0) + ratio * shares[pg.pgid] / whole
    return parts


_Check = Callable[[Session, Answer], Iterator[str]]
#: Command → its rules.
TABLE_RULES: Dict[str, Dict[str, _Check]] = {
    "df": {"T12": t12_pools, "T14": t14_room}, "osds": {"T13": t13_osds}}


def tables(answers: Dict[str, Answer], session: Session) -> Dict[str, List[str]]:
    """Rule → what is wrong in the answers."""
    found: Dict[str, List[str]] = {}
    for name, answer in answers.items():
        for rule, check in TABLE_RULES[name].items():
            found[rule] = ([f"{name} is refused: {answer['refused']}"] if "refused" in answer
                           else list(check(session, answer)))
    return found
