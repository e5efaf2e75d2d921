"""What the test clusters hold: pools with few PGs, real objects, and how full that makes the OSDs.

CRUSH weights are the OSDs' sizes, as operators have them; with so few PGs per pool the OSDs are
unequally full all the same. How much is written is bounded: a full OSD stops every writer for ever.
"""

from __future__ import annotations

from statistics import pvariance
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for

MIB = 1 << 20
FULLEST = 0.80
"""No OSD may become fuller than this by what the tests write."""

BUILTIN_SLEEP = 8
"""Seconds between two rounds of the built-in balancer."""

NO_OSD = 0x7fffffff
"""In a place of a PG's set that no OSD has (CRUSH_ITEM_NONE)."""

#: With longer ones, Ceph recovers PGs of so few objects by their log, which asks for no room, and
#: the module leaves such PGs alone.
SHORT_LOGS = {"osd_min_pg_log_entries": "2", "osd_max_pg_log_entries": "4",
              "osd_pg_log_trim_min": "1"}
_DISKS = ("hdd", "ssd", "hybrid")

EC_PROFILE = "eq21"
POOLS: Tuple[Tuple[str, str, int, int], ...] = (
    ("rep", "replicated", 32, 1650), ("ec", "erasure", 16, 1250))
"""Name, type, PGs and MiB to write of each pool; replicated is size 3, erasure-coded 2+1."""


class Usage(NamedTuple):
    """How full the OSDs are: used ÷ size by OSD."""

    utilization: Dict[int, float]

    @property
    def highest(self) -> float:
        """Utilization of the fullest OSD."""
        return max(self.utilization.values())

    @property
    def variance(self) -> float:
        """Variance of the utilization over the OSDs."""
        return pvariance(self.utilization.values())

    def __str__(self) -> str:
        return (f"highest {self.highest:.4f}, lowest {min(self.utilization.values()):.4f}, "
                f"stddev {self.variance ** 0.5:.4f}")


def make_pools(cluster: DaemonCluster) -> None:
    """Create POOLS and wait until their PGs are clean.

    The built-in balancer is switched off; where a test switches it on, it finds nothing to do.
    """
    cluster.mgr("balancer off")
    cluster.set_config("mgr", "mgr/balancer/upmap_max_deviation", 100)
    cluster.set_config("mgr", "mgr/balancer/sleep_interval", BUILTIN_SLEEP)
    cluster.mon("osd erasure-code-profile set", name=EC_PROFILE,
                profile=["k=2", "m=1", "crush-failure-domain=host"])
    for name, kind, pgs, _ in POOLS:
        make_pool(cluster, name, kind, pgs)
    wait_clean(cluster)


def make_pool(cluster: DaemonCluster, name: str, kind: str = "replicated", pgs: int = 8,
              profile: str = EC_PROFILE) -> None:
    """Create one pool; `kind` is "replicated" (size 3) or "erasure" (as its profile says)."""
    more: Dict[str, Any] = {"size": 3}
    if kind == "erasure":
        more = {"erasure_code_profile": profile}
    cluster.mon("osd pool create", pool=name, pg_num=pgs, pgp_num=pgs, pool_type=kind, **more)
    cluster.mon("osd pool application enable", pool=name, app="rados")


def set_pool(cluster: DaemonCluster, name: str, variable: str, value: object) -> None:
    """`ceph osd pool set NAME VARIABLE VALUE`."""
    cluster.mon("osd pool set", pool=name, var=variable, val=str(value))


def set_ratios(cluster: DaemonCluster, ratios: Dict[str, float]) -> None:
    """All three, in an order that Ceph takes."""
    for name in sorted(ratios, key=ratios.__getitem__):
        cluster.mon(f"osd set-{name}-ratio", ratio=round(ratios[name], 3))


def pace_recovery(cluster: DaemonCluster, seconds: float) -> None:
    """Each OSD waits for so long between two objects that it copies; 0.0 for Ceph's defaults."""
    names = [f"osd_recovery_sleep_{disk}" for disk in _DISKS]
    if cluster.release.major >= 20:   # these hold for degraded PGs there
        names += [f"osd_recovery_sleep_degraded_{disk}" for disk in _DISKS]
    for name in names:
        if seconds:
            cluster.set_config("osd", name, seconds)
        else:
            cluster.remove_config("osd", name)


def delete_pool(cluster: DaemonCluster, name: str) -> None:
    """Delete one pool; does not wait."""
    cluster.set_config("mon", "mon_allow_pool_delete", "true")
    cluster.mon("osd pool delete", pool=name, pool2=name, yes_i_really_really_mean_it=True)


def pool_of(cluster: DaemonCluster, name: str, **arguments: Any) -> Dict[str, Any]:
    """A pool as `osd dump` has it, that of an `epoch` if one is named; its id is `pool`."""
    pools = cluster.osd_dump(**arguments)["pools"]
    return next(pool for pool in pools if pool["pool_name"] == name)


def write(cluster: DaemonCluster, pool: str, mebibytes: int) -> None:
    """Write that many objects of 1 MiB with `rados bench`, under a time limit. It begins as many as
    it has in flight, whatever the most is."""
    bench(cluster, pool, 240, MIB, min(8, mebibytes), mebibytes,
          "--run-name", f"{pool}-{mebibytes}", "--no-cleanup")


def bench(cluster: DaemonCluster, pool: str, seconds: int, size: int, at_once: int, objects: int,
          *more: str) -> None:
    """`rados bench` that writes so many objects of that size, deletes them unless more is said."""
    rados = ["rados", "-c", str(cluster.conf), "-p", pool, "bench", str(seconds), "write"]
    cluster.processes.check([*rados, "-b", str(size), "-t", str(at_once), "--max-objects",
                             str(objects), *more], 300)


def fill(cluster: DaemonCluster) -> Usage:
    """Write the POOLS' objects; the usage once the statistics have followed."""
    for name, _, _, mebibytes in POOLS:
        write(cluster, name, mebibytes)
    usage = settled_usage(cluster)
    if usage.highest > FULLEST:
        raise ClusterError(f"wrote too much: {usage}")
    return usage


def usage_of(cluster: DaemonCluster) -> Usage:
    """What `ceph osd df` says now; OSDs that are out have no size there and are left out."""
    return Usage({node["id"]: node["kb_used"] / node["kb"]
                  for node in cluster.osd_nodes() if node["kb"]})


def settled_usage(cluster: DaemonCluster, seconds: float = 180.0, quiet: int = 8) -> Usage:
    """Usage once no OSD holds a PG that it has to delete, and none's has changed for `quiet`
    seconds: BlueStore frees space with a delay, OSDs report every 5 s, and a busy machine deletes
    late. An OSD that was killed may keep a stray for good (16.2.15: one of 147 PGs): such a number
    has to stay five times as long. ClusterError says what was not settled."""
    seen: List[Usage] = []
    spare: List[int] = []   # PGs that OSDs hold beyond those that they are to have

    def settled() -> bool:
        spare.append(spare_pgs(cluster))
        seen.append(usage_of(cluster))
        count = quiet if spare[-1] <= 0 else 5 * quiet
        if len(seen) < count or len(set(spare[-count:])) > 1:
            return False
        return all(_is_alike(one, seen[-1]) for one in seen[-count:])
    try:
        wait_for("settled statistics", settled, seconds, pause=1.0)
    except ClusterError as error:
        raise ClusterError(f"{error}; PGs beyond those wanted: {spare[-50:]}, usage"
                           f" {seen[-3:]!r}") from None
    return seen[-1]


def _is_alike(one: Usage, other: Usage) -> bool:
    for a, b in zip(one.utilization.values(), other.utilization.values()):
        if abs(a - b) >= 1e-4:
            return False
    return True


def wait_clean(cluster: DaemonCluster, seconds: float = 180.0) -> None:
    """Wait until every PG of every pool is active+clean where the present osdmap wants it.

    PG statistics lag: right after a map change all still look clean at their old place.
    """
    def clean() -> bool:
        wanted = sum(pool["pg_num"] for pool in cluster.osd_dump()["pools"])
        stats = cluster.pg_stats("pgs_brief")
        if len(stats) != wanted or not all(is_clean(stat["state"]) for stat in stats):
            return False
        mapped = up_sets(cluster)
        return all(stat["up"] == stat["acting"] == mapped[stat["pgid"]] for stat in stats)
    wait_for("all PGs active+clean", clean, seconds)


def up_set(cluster: DaemonCluster, pgid: str) -> List[int]:
    """Up set of a PG as the monitor maps it from the present osdmap."""
    return cluster.mon_json("pg map", pgid=pgid)["up"]


def up_sets(cluster: DaemonCluster) -> Dict[str, List[int]]:
    """Up set by PG, likewise."""
    stats = cluster.pg_stats("pgs_brief")
    return {stat["pgid"]: up_set(cluster, stat["pgid"]) for stat in stats}


def pgs_held(cluster: DaemonCluster) -> Dict[int, int]:
    """OSD → PGs that it says it holds, those that it still deletes among them."""
    reports = cluster.mgr_json("pg dump", dumpcontents=["osds"])["osd_stats"]
    return {report["osd"]: report["num_pgs"] for report in reports}


def spare_pgs(cluster: DaemonCluster) -> int:
    """PGs that OSDs hold, by OSD, summed, beyond those that they are to have: they delete them."""
    count = sum(pgs_held(cluster).values())
    for stat in cluster.pg_stats("pgs_brief"):
        count -= len({*stat["up"], *stat["acting"]} - {NO_OSD})
    return count


def is_clean(state: str) -> bool:
    """Whether a PG's state is active+clean, scrubbed or not."""
    return set(state.split("+")) - {"scrubbing", "deep"} == {"active", "clean"}


def upmap_items(cluster: DaemonCluster) -> Dict[str, List[List[int]]]:
    """Present upmap items by PG, pairs [from, to]."""
    return items_of(cluster.osd_dump())


def items_of(osd_dump: Dict[str, Any]) -> Dict[str, List[List[int]]]:
    """The same of any osdmap."""
    return {entry["pgid"]: [[pair["from"], pair["to"]] for pair in entry["mappings"]]
            for entry in osd_dump["pg_upmap_items"]}


def clear_upmaps(cluster: DaemonCluster, pgids: Sequence[str] = ()) -> None:
    """Take upmap items away, all or those of the PGs named, and wait for the backfill."""
    for pgid in pgids or list(upmap_items(cluster)):
        cluster.mon("osd rm-pg-upmap-items", pgid=pgid)
    wait_clean(cluster)
