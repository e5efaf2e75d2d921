"""What the simulated cluster itself knows, apart from what it reports to the mgr."""
from __future__ import annotations

from typing import Dict, Iterable, Set

from mgr_stub.cluster import Cluster
from mgr_stub.pg import Pg

NONE = 0x7FFFFFFF
_FILL_MARGIN = 0.02


def object_copies(cluster: Cluster) -> int:
    """All object copies that the pools ask for."""
    return sum(pg.num_objects * cluster.size_of(pg) for pg in cluster.pgs.values())


def misplaced_copies(cluster: Cluster, pgids: Iterable[str]) -> int:
    return sum(cluster.misplaced_of(cluster.pgs[pgid]) for pgid in pgids if pgid in cluster.pgs)


def coming(cluster: Cluster, pg: Pg) -> Dict[int, int]:
    """OSD → bytes of the PG that its up set wants there and that are not there yet."""
    landed = {flow.target: flow.landed.total for flow in pg.flows.values()}
    up, held = cluster.map.up.get(pg.pgid, ()), pg.held
    if pg.erasure:
        wanted = {osd for place, osd in enumerate(up)
                  if osd != NONE and held[place:place + 1] != (osd,)}
    else:
        wanted = {osd for osd in up if osd not in held}
    return {osd: max(0, pg.shard.total - landed.get(osd, 0)) for osd in wanted}


def peaks(cluster: Cluster) -> Dict[int, int]:
    """OSD → bytes once all that is on its way there has come and nothing has left."""
    found = {osd: usage.used for osd, usage in cluster.usage.items()}
    for pg in cluster.restless.values():
        for osd, more in coming(cluster, pg).items():
            found[osd] = found.get(osd, 0) + more
    return found


def fill_limit(cluster: Cluster) -> float:
    """The utilisation that no OSD may pass by the module's doing, with default options."""
    return float(cluster.map.rest.get("backfillfull_ratio", 0.9)) - _FILL_MARGIN


def nearfull(cluster: Cluster) -> float:
    return float(cluster.map.rest.get("nearfull_ratio", 0.85))


def osds_in_trouble(cluster: Cluster) -> Set[int]:
    """OSDs that degraded or inactive PGs are on."""
    found: Set[int] = set()
    for pg in cluster.restless.values():
        state = cluster.state_of(pg)
        if "degraded" in state or "active" not in state or "undersized" in state:
            found.update(osd for osd in cluster.map.up.get(pg.pgid, ()) if osd != NONE)
    return found


def may_take(cluster: Cluster, osd: int) -> bool:
    entry = cluster.map.osds.get(osd)
    return entry is not None and bool(entry["up"]) and float(entry["weight"]) > 0.0
