"""Small clusters for tests: readings in the shapes of the mgr API from a compact description.

    cluster = Cluster(hosts(4, 2)).pool(1, size=2).pg("1.0", [0, 2], num_bytes=GIB)
    snapshot = cluster.snapshot()

Unless `osd` says otherwise, an OSD is 100 GiB, up and in, and uses exactly what its shards occupy.
"""
from __future__ import annotations

from operator import itemgetter
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from tests.support.clusters.crush_maps import (  # noqa: F401, tests take the trees from here
    Branch, crush_map, hosts as hosts, racks as racks)
from tests.support.clusters.state_records import dumped_items
from tests.support.rules import HOST_RULE, OSD_RULE
from tests.support.units import GIB
from tests.support import placed

from equilibrium_mgr.plan.model import PgChange, Plan, Usage
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import PgRecord, Reading, Snapshot, pool_of
from mgr_stub.frozen import frozen

NONE = 0x7FFFFFFF
OSD_BYTES = 100 * GIB


class Cluster:
    """Collects the parts of a reading; every method returns the cluster for the next call."""

    def __init__(self, tree: Mapping[str, Branch], rules: Optional[Mapping[int, str]] = None,
                 classes: Optional[Mapping[int, str]] = None,
                 weights: Optional[Mapping[int, float]] = None) -> None:
        self.crush = crush_map(tree, rules or {0: HOST_RULE}, classes, weights)
        self.osds: Dict[int, Dict[str, Any]] = {}
        for device in self.crush["devices"]:
            osd = device["id"]
            self.osds[osd] = {
                "osd": osd, "up": 1, "in": 1, "weight": 1.0, "state": ["exists", "up"]}
        self.sizes: Dict[int, int] = dict.fromkeys(self.osds, OSD_BYTES)
        self.used: Dict[int, int] = {}
        self.pools: Dict[int, Dict[str, Any]] = {}
        self.profiles: Dict[str, Dict[str, str]] = {}
        self.store_stats: Dict[int, Dict[str, int]] = {}
        self.omap_reported: Dict[int, int] = {}   # by OSD
        self.num_pgs: Dict[int, int] = {}   # by OSD, those that are being deleted included
        #: (pool, OSD) → bytes that the data of its shards takes there for each that it takes
        #: elsewhere; OSDs tell what they have of each pool where there are any
        self.taken_ratios: Dict[Tuple[int, int], float] = {}
        self.stored: List[Dict[str, int]] = []   # what they tell, where it is given
        self.up: Dict[str, List[int]] = {}
        self.acting: Dict[str, List[int]] = {}
        self.items: Dict[str, List[Tuple[int, int]]] = {}
        self.records: Dict[str, PgRecord] = {}
        self.extra: Dict[str, Any] = {}
        self.pg_status: Dict[str, Any] = {}
        self.bytes_per_object = 0   # of metadata, on every OSD
        self.without_statistics: List[int] = []
        self.measured: Mapping[int, float] = {}   # pool → bytes per object that moves have shown
        self.drained: FrozenSet[int] = frozenset()   # OSDs
        self.epoch = 100

    def pool(self, pool_id: int, size: int = 3, rule: int = 0, k: int = 0, name: str = "",
             plugin: str = "jerasure", **fields: Any) -> Cluster:
        """A pool; with `k` an erasure-coded one. Its pg_num follows the PGs unless given."""
        profile = f"profile{pool_id}" if k else ""
        if k:
            self.profiles[profile] = {"k": str(k), "m": str(size - k), "plugin": plugin}
        self.pools[pool_id] = {
            "pool": pool_id,
            "pool_name": name or f"pool{pool_id}",
            "type": 3 if k else 1,
            "size": size,
            "min_size": 1,
            "crush_rule": rule,
            "erasure_code_profile": profile,
            "tier_of": -1,
            "tiers": [],
            **fields}
        return self

    def pg(self, pgid: str, up: placed.Osds, num_bytes: int = GIB, objects: int = 0,
           omap: int = 0, items: placed.Pairs = (),
           acting: Optional[placed.Osds] = None, state: str = "active+clean",
           uncopied_ratio: float = 1.0, reported: int = 100) -> Cluster:
        """A PG with its up set (upmap items already applied) and its statistics."""
        self.up[pgid] = list(placed.osds(up))
        self.records[pgid] = PgRecord(num_bytes, objects, omap, state, uncopied_ratio, reported)
        if items:
            self.items[pgid] = list(placed.pairs(items))
        if acting is not None:
            self.acting[pgid] = list(placed.osds(acting))
        return self

    def osd(self, osd: int, size: int = 0, used: int = -1, **fields: Any) -> Cluster:
        """Changes one OSD: its size and used bytes, or fields of its entry in the map."""
        if size:
            self.sizes[osd] = size
        if used >= 0:
            self.used[osd] = used
        self.osds[osd].update(fields)
        return self

    def shard_bytes(self, pgid: str) -> int:
        """What a shard occupies where devices add nothing of their own."""
        return self.data_bytes(pgid) + self.records[pgid].omap_bytes

    def data_bytes(self, pgid: str) -> int:
        """The same without its omap."""
        profile = self.profiles.get(f"profile{pool_of(pgid)}", {})
        return -(-self.records[pgid].num_bytes // int(profile.get("k", "1")))

    def serving(self, pgid: str) -> List[int]:
        """Its acting set."""
        return self.acting.get(pgid, self.up.get(pgid, []))

    def used_bytes(self, osd: int) -> int:
        if osd in self.used:
            return self.used[osd]
        total = self.allocated_bytes(osd)
        for pgid, record in self.records.items():
            if osd in self.serving(pgid):
                total += record.omap_bytes + self.bytes_per_object * record.num_objects
        return total

    def allocated_bytes(self, osd: int) -> int:
        """Data of its shards, and of those that are being copied to it what is there."""
        total = 0
        for pgid, record in self.records.items():
            if osd in self.serving(pgid):
                part = 1.0
            elif osd in self.up.get(pgid, ()):
                part = 1.0 - record.uncopied_ratio
            else:
                continue
            total += int(self.data_bytes(pgid) * self.taken_ratio(pool_of(pgid), osd) * part)
        return total

    def taken_ratio(self, pool: int, osd: int) -> float:
        return self.taken_ratios.get((pool, osd), 1.0)

    def drain(self, *osds: int) -> Cluster:
        """As `ceph equilibrium drain add`."""
        self.drained = frozenset(osds)
        return self

    def pool_statfs(self) -> List[Dict[str, int]]:
        """In the shape of get('osd_stats')['pool_statfs']."""
        if self.stored:
            return self.stored
        stored: Dict[Tuple[int, int], int] = {}
        for pgid in self.records if self.taken_ratios else ():
            for osd in self.serving(pgid):
                key = pool_of(pgid), osd
                stored[key] = stored.get(key, 0) + self.data_bytes(pgid)
        rows = []
        for (pool, osd), count in sorted(stored.items()):
            allocated = int(count * self.taken_ratio(pool, osd))
            rows.append({"poolid": pool, "osd": osd, "data_stored": count, "allocated": allocated})
        return rows

    def mark_out(self, osd: int) -> Cluster:
        """As `ceph osd out`."""
        self.osds[osd].update({"in": 0, "weight": 0.0})
        return self

    def osd_map(self) -> Dict[str, Any]:
        """In the shape of OSDMap.dump()."""
        for pool_id, pool in self.pools.items():
            count = len(self.pgids(pool_id)) or 1
            for key in ("pg_num", "pg_num_target", "pg_num_pending", "pg_placement_num",
                        "pg_placement_num_target"):
                pool.setdefault(key, pool.get("pg_num", count))
        return {
            "epoch": self.epoch,
            "fsid": "f",
            "flags": "sortbitwise",
            "crush_version": 5,
            "full_ratio": 0.95,
            "backfillfull_ratio": 0.9,
            "nearfull_ratio": 0.85,
            "require_min_compat_client": "luminous",
            "pools": list(self.pools.values()),
            "osds": list(self.osds.values()),
            "erasure_code_profiles": self.profiles,
            "pg_upmap": [],
            "pg_temp": [{"pgid": pgid, "osds": osds} for pgid, osds in self.acting.items()],
            "pg_upmap_items": [dumped_items(*entry) for entry in self.items.items()],
            **self.extra}

    def pgids(self, pool: int) -> List[str]:
        return [pgid for pgid in self.up if pool_of(pgid) == pool]

    def osd_stats(self) -> List[Dict[str, Any]]:
        """In the shape of get('osd_stats')['osd_stats']."""
        return [self._osd_stat(osd) for osd in self.osds if osd not in self.without_statistics]

    def _osd_stat(self, osd: int) -> Dict[str, Any]:
        total, used = self.sizes[osd], self.used_bytes(osd)
        statfs = {"total": total, "available": total - used,
                  "omap_allocated": self.omap_reported.get(osd, 0)}
        if osd not in self.used:
            statfs["allocated"] = self.allocated_bytes(osd)
        stat = {"osd": osd, "up_from": self.osds[osd].get("up_from", 0), "kb": total // 1024,
                "kb_used": used // 1024, "statfs": statfs}
        if osd in self.num_pgs:
            stat["num_pgs"] = self.num_pgs[osd]
        return stat

    def osd_map_tree(self) -> Dict[str, Any]:
        """In the shape of get('osd_map_tree'), without the buckets."""
        weights: Dict[int, float] = {}
        for bucket in self.crush["buckets"]:
            weights.update((item["id"], item["weight"] / 0x10000) for item in bucket["items"])
        classes = {device["id"]: device.get("class", "") for device in self.crush["devices"]}
        found = []
        for osd, entry in self.osds.items():
            found.append(dict(
                id=osd, type="osd", exists=1, status=_status(entry),
                crush_weight=weights.get(osd, 0.0), reweight=entry["weight"],
                primary_affinity=entry.get("primary_affinity", 1.0),
                device_class=classes.get(osd, "")))
        return {"nodes": [], "stray": found}

    def pool_stats(self) -> List[Dict[str, Any]]:
        """In the shape of get('pool_stats')['pool_stats']."""
        stats = []
        for pool_id, pool in self.pools.items():
            records = [r for pgid, r in self.records.items() if pool_of(pgid) == pool_id]
            objects = sum(r.num_objects for r in records)
            stat_sum = {
                "num_bytes": sum(r.num_bytes for r in records),
                "num_objects": objects,
                "num_object_copies": objects * pool["size"],
                "num_omap_bytes": sum(r.omap_bytes for r in records)}
            stats.append({"poolid": pool_id, "num_pg": len(records), "stat_sum": stat_sum,
                          "store_stats": self.store_stats.get(pool_id, {})})
        return stats

    def acting_sets(self) -> Dict[str, Tuple[int, ...]]:
        """As Ceph maps PGs: OSDs that are down serve nothing."""
        found = {}
        for pgid, osds in self.acting.items():
            up = [osd for osd in osds if self.osds.get(osd, {}).get("up")]
            if up and self.pools.get(pool_of(pgid), {}).get("type") == 3:
                up = [osd if osd in up else NONE for osd in osds]
            if up:
                found[pgid] = tuple(up)
        return found

    def reading(self) -> Reading:
        """None of it can be changed, as what Ceph 21 hands out."""
        row_of = itemgetter("poolid", "osd", "allocated", "data_stored")
        return Reading(
            taken_at=1000.0,
            osd_map=frozen(self.osd_map()),
            crush=frozen(self.crush),
            up=self.up,
            records=self.records,
            osd_stats=frozen(self.osd_stats()),
            pool_stats=frozen(self.pool_stats()),
            pg_status=frozen(self.pg_status),
            measured=self.measured,
            drained=self.drained,
            acting=self.acting_sets(),
            pool_statfs=[row_of(row) for row in self.pool_statfs()])

    def snapshot(self) -> Snapshot:
        return SnapshotBuilder().build(self.reading())


def _status(osd: Mapping[str, Any]) -> str:
    if "destroyed" in osd["state"]:
        return "destroyed"
    return "up" if osd["up"] else "down"


def change_of(pgid: str, raw: placed.Osds, after: placed.Osds, before: placed.Osds = (),
              shard_bytes: int = GIB, objects: int = 10) -> PgChange:
    """What a plan does to one PG whose up set is its raw mapping unless `before` tells."""
    raw, after, before = placed.osds(raw), placed.osds(after), placed.osds(before or raw)
    items = tuple((r, a) for r, a in zip(raw, after) if r != a)
    return PgChange(pgid=pgid, raw=raw, up_before=before, up_after=after, items=items,
                    shards=len(set(after) - set(before)), shard_bytes=shard_bytes, objects=objects)


def plan_of(changes: Sequence[PgChange] = (), epoch: int = 100) -> Plan:
    """A plan with nothing but changes."""
    return Plan(epoch=epoch, stop_reason="converged", moves=(), changes=tuple(changes),
                before=Usage({}, {}), after=Usage({}, {}), skipped={},
                aim="space", bounds={})


def single_copies(*gib_by_osd: Sequence[int]) -> Cluster:
    """A pool of size 1 on OSDs of 100 GiB: what PGs, in GiB, each OSD holds."""
    cluster = Cluster(hosts(1, len(gib_by_osd)), {0: OSD_RULE}).pool(1, size=1)
    ps = 0
    for osd, gibs in enumerate(gib_by_osd):
        for gib in gibs:
            cluster.pg(f"1.{ps:x}", [osd], num_bytes=gib * GIB)
            ps += 1
    return cluster
