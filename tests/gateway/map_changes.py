"""Clusters that change between two readings of the osdmap, and readings to compare."""
from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from tests.gateway.fake_mgr import Clock, FakeMgr
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.gateway.gateway import Gateway
from equilibrium_mgr.snapshot.reading import Reading


Mutation = Callable[[Cluster], object]


def small() -> Cluster:
    cluster = Cluster(hosts(6)).pool(1, size=2, name="rbd").pool(2, size=2, name="data")
    for ps in range(8):
        cluster.pg(f"1.{ps:x}", [ps % 6, (ps + 1) % 6]).pg(f"2.{ps:x}", [ps % 6, (ps + 2) % 6])
    return cluster


def open_gateway(cluster: Cluster) -> Tuple[Gateway, FakeMgr, Clock]:
    mgr, clock = FakeMgr(cluster), Clock()
    gateway = Gateway(mgr, clock)
    gateway.snapshot()
    return gateway, mgr, clock


def shown(reading: Any) -> Dict[str, Any]:
    """What placement follows from."""
    osd_map = reading.osd_map
    plain = ("epoch", "require_min_compat_client", "crush_version", "full_ratio",
             "backfillfull_ratio", "nearfull_ratio", "erasure_code_profiles")
    return {
        **{key: osd_map.get(key) for key in plain},
        "flags": set(osd_map["flags"].split(",")), "crush": reading.crush,
        "osds": sorted((o["osd"], o["up"], o.get("in", 1), o["weight"], sorted(o["state"]))
                       for o in osd_map["osds"]),
        "pools": sorted((p["pool"], p["pool_name"], p["size"], p["crush_rule"], p["pg_num"])
                        for p in osd_map["pools"]),
        "items": {e["pgid"]: [(m["from"], m["to"]) for m in e["mappings"]]
                  for e in osd_map["pg_upmap_items"]},
        "up": dict(reading.up), "acting": dict(reading.acting or {})}


def now(gateway: Gateway) -> Reading:
    gateway.snapshot()
    reading = gateway.last_reading()
    assert reading is not None
    return reading


def by_a_dump(mgr: Any, clock: Any) -> Reading:
    """What a gateway reads that knows nothing yet."""
    return now(Gateway(mgr, clock))


def set_extra(**values: Any) -> Mutation:
    return lambda cluster: cluster.extra.update(values)


def grown_pool(cluster: Cluster) -> None:
    cluster.pools[1].update(pg_num=9)
    cluster.pg("1.8", [4, 5])


def shrunk_pool(cluster: Cluster) -> None:
    cluster.pools[2].update(pg_num=7)
    del cluster.up["2.7"], cluster.records["2.7"]


def deleted_pool(cluster: Cluster) -> None:
    del cluster.pools[2]


def moved_bucket(cluster: Cluster) -> None:
    """The up sets stay what they are: only the version tells."""
    cluster.crush = dict(cluster.crush, buckets=list(reversed(cluster.crush["buckets"])))
    cluster.extra.update(crush_version=6)


def out(cluster: Cluster) -> None:
    cluster.osd(3, weight=0.0)
    cluster.osds[3]["in"] = 0


def down(cluster: Cluster) -> None:
    cluster.osd(3, up=0, state=["exists"])
    for pgid, osds in cluster.up.items():
        cluster.up[pgid] = [osd for osd in osds if osd != 3]


def foreign_items(cluster: Cluster) -> None:
    cluster.pg("1.0", [5, 1], items=[(0, 5)])
