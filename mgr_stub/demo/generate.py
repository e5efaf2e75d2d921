"""Generates the demo cluster: `python3 -m mgr_stub.demo.generate [FILE]`.

24 OSDs of unequal sizes on six hosts, two device classes, six pools. The placement is a weighted
draw by hashes, similar to CRUSH (hosts first, then an OSD of the host) and as uneven. The output is
reproducible.
"""

from __future__ import annotations

import hashlib
import math
import sys
from typing import Any, Dict, List, Tuple

from ..state.cluster_builder import build_cluster
from ..state.state_writer import save_state
from . import DEMO_STATE

GIB = 1 << 30
OBJECT_BYTES = 4 << 20
METADATA_BASE = GIB
METADATA_PER_OBJECT = 600

#: GiB of the three hdd and the one ssd OSD of every host.
HOSTS: Tuple[Tuple[int, ...], ...] = (
    (2000, 2000, 1000, 480), (2000, 1000, 1000, 480), (4000, 2000, 1000, 960),
    (2000, 2000, 2000, 480), (4000, 1000, 1000, 480), (4000, 2000, 2000, 960))

#: (id, name, rule, size, k, pg_num, GiB stored, omap bytes of a PG)
POOLS: Tuple[Tuple[int, str, int, int, int, int, float, int], ...] = (
    (1, ".mgr", 0, 3, 1, 1, 0.01, 0),
    (2, "vms", 0, 3, 1, 128, 3720.0, 0),
    (3, "backup", 1, 5, 3, 64, 4440.0, 0),
    (4, "cephfs_data", 0, 3, 1, 32, 950.0, 0),
    (5, "cephfs_metadata", 2, 3, 1, 16, 2.0, 300 << 20),
    (6, "fast", 2, 3, 1, 32, 720.0, 0))

#: Seed of the placement.
SEED = "equilibrium-demo-18"


def draw(weights: Dict[int, float], *key: object) -> int:
    """The item with the longest straw: -ln(hash) / weight, the smallest wins."""
    def straw(item: int) -> float:
        text = "/".join(str(part) for part in (SEED, *key, item))
        digest = hashlib.sha256(text.encode()).digest()
        share = (int.from_bytes(digest[:8], "big") + 1) / (2 ** 64 + 1)
        return -math.log(share) / weights[item]
    return min(sorted(weights), key=straw)


def osds_by_class() -> Dict[str, Dict[int, Dict[int, int]]]:
    """{class: {host: {osd: GiB}}}."""
    found: Dict[str, Dict[int, Dict[int, int]]] = {"hdd": {}, "ssd": {}}
    number = 0
    for host, sizes in enumerate(HOSTS):
        for index, size in enumerate(sizes):
            name = "ssd" if index == 3 else "hdd"
            found[name].setdefault(host, {})[number] = size
            number += 1
    return found


def place(pgid: str, size: int, hosts: Dict[int, Dict[int, int]]) -> List[int]:
    """One OSD on each of `size` hosts, drawn by weight."""
    left = {host: float(sum(osds.values())) for host, osds in hosts.items()}
    chosen: List[int] = []
    for position in range(size):
        host = draw(left, pgid, position)
        del left[host]
        chosen.append(draw({osd: float(gib) for osd, gib in hosts[host].items()}, pgid, host))
    return chosen


def pg_stats() -> List[Dict[str, Any]]:
    """All PGs, with sizes within 7 % of the pool's mean."""
    classes = osds_by_class()
    stats = []
    for pool_id, _, rule, size, _, pg_num, stored, omap in POOLS:
        hosts = classes["ssd" if rule == 2 else "hdd"]
        for position in range(pg_num):
            pgid = f"{pool_id}.{position:x}"
            spread = int.from_bytes(hashlib.sha256(f"{SEED}/{pgid}".encode()).digest()[:2], "big")
            objects = max(1, int(stored * GIB / pg_num / OBJECT_BYTES
                                 * (0.93 + 0.14 * spread / 65535)))
            up = place(pgid, size, hosts)
            stats.append({
                "pgid": pgid, "state": "active+clean", "up": up, "acting": list(up),
                "up_primary": up[0], "acting_primary": up[0], "reported_epoch": 40,
                "stat_sum": {"num_bytes": objects * OBJECT_BYTES, "num_objects": objects,
                             "num_object_copies": objects * size, "num_objects_degraded": 0,
                             "num_objects_misplaced": 0, "num_omap_bytes": omap,
                             "num_omap_keys": omap // 1000, "num_bytes_recovered": 0}})
    return stats


def osd_stats(pgs: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Statistics consistent with the PGs: data, omap, and metadata by objects."""
    chunks = {pool[0]: pool[4] for pool in POOLS}
    records = []
    for osd, gib in sorted(_sizes().items()):
        mine = [pg for pg in pgs if osd in pg["up"]]
        data = sum(pg["stat_sum"]["num_bytes"] // chunks[int(pg["pgid"].split(".")[0])]
                   for pg in mine)
        omap = sum(pg["stat_sum"]["num_omap_bytes"] for pg in mine)
        metadata = METADATA_BASE + METADATA_PER_OBJECT * sum(
            pg["stat_sum"]["num_objects"] for pg in mine)
        total, used = gib * GIB, data + omap + metadata
        records.append({
            "osd": osd, "num_pgs": len(mine), "kb": total >> 10, "kb_used": used >> 10,
            "kb_used_data": data >> 10, "kb_used_omap": omap >> 10,
            "kb_used_meta": metadata >> 10, "kb_avail": (total - used) >> 10,
            "statfs": {"total": total, "available": total - used, "internally_reserved": 0,
                       "allocated": data, "data_stored": data, "data_compressed": 0,
                       "data_compressed_allocated": 0, "data_compressed_original": 0,
                       "omap_allocated": omap, "internal_metadata": metadata}})
    return records


def _sizes() -> Dict[int, int]:
    return {osd: gib for hosts in osds_by_class().values() for osds in hosts.values()
            for osd, gib in osds.items()}


def _weight(gib: int) -> int:
    """CRUSH weight of 16.16 fixed point: 1.0 is a TiB."""
    return gib * 65536 // 1024


def _bucket(number: int, name: str, type_name: str, items: Dict[int, int]) -> Dict[str, Any]:
    type_id = {"host": 1, "root": 11}[type_name]
    return {"id": number, "name": name, "type_id": type_id, "type_name": type_name,
            "weight": sum(items.values()), "alg": "straw2", "hash": "rjenkins1",
            "items": [{"id": item, "weight": weight, "pos": position}
                      for position, (item, weight) in enumerate(items.items())]}


def crush_dump() -> Dict[str, Any]:
    """One root with six hosts, and the shadow trees of both classes."""
    classes = osds_by_class()
    names = {osd: name for name, hosts in classes.items() for osds in hosts.values()
             for osd in osds}
    trees = [("", -1, _merge(classes)), ("~hdd", -11, classes["hdd"]),
             ("~ssd", -21, classes["ssd"])]
    buckets = []
    for suffix, root, hosts in trees:
        made = [_bucket(root - 1 - host, f"host{host}{suffix}", "host",
                        {osd: _weight(gib) for osd, gib in sorted(osds.items())})
                for host, osds in sorted(hosts.items())]
        buckets.append(_bucket(root, f"default{suffix}", "root",
                               {bucket["id"]: bucket["weight"] for bucket in made}))
        buckets += made
    return {
        "devices": [{"id": osd, "name": f"osd.{osd}", "class": names[osd]}
                    for osd in sorted(names)],
        "types": [{"type_id": 0, "name": "osd"}, {"type_id": 1, "name": "host"},
                  {"type_id": 11, "name": "root"}],
        "buckets": buckets,
        "rules": [_rule(0, "replicated_hdd", -11, "default~hdd", "firstn"),
                  _rule(1, "erasure_hdd", -11, "default~hdd", "indep"),
                  _rule(2, "replicated_ssd", -21, "default~ssd", "firstn")],
        "tunables": {"profile": "jewel"}, "choose_args": {}}


def _merge(classes: Dict[str, Dict[int, Dict[int, int]]]) -> Dict[int, Dict[int, int]]:
    merged: Dict[int, Dict[int, int]] = {}
    for hosts in classes.values():
        for host, osds in hosts.items():
            merged.setdefault(host, {}).update(osds)
    return merged


def _rule(number: int, name: str, take: int, take_name: str, mode: str) -> Dict[str, Any]:
    return {"rule_id": number, "rule_name": name, "type": 3 if mode == "indep" else 1,
            "steps": [{"op": "take", "item": take, "item_name": take_name},
                      {"op": f"chooseleaf_{mode}", "num": 0, "type": "host"}, {"op": "emit"}]}


def osd_dump() -> Dict[str, Any]:
    """The osdmap: all OSDs up and in, no upmap items yet."""
    address = "(unrecognized address family 0)/0"
    return {
        "epoch": 42, "fsid": "e9b1a2f0-0000-4000-8000-00000000d390", "max_osd": 24,
        "flags": "sortbitwise,recovery_deletes,purged_snapdirs,pglog_hardlimit",
        "full_ratio": 0.95, "backfillfull_ratio": 0.9, "nearfull_ratio": 0.85,
        "pool_max": len(POOLS), "require_min_compat_client": "luminous",
        "require_osd_release": "pacific",
        "pools": [_pool(*pool) for pool in POOLS],
        "osds": [{"osd": osd, "uuid": f"00000000-0000-4000-8000-{osd:012x}", "up": 1, "in": 1,
                  "weight": 1, "primary_affinity": 1, "public_addr": address,
                  "cluster_addr": address, "state": ["exists", "up"]} for osd in sorted(_sizes())],
        "osd_xinfo": [{"osd": osd, "laggy_probability": 0, "laggy_interval": 0, "features": 0,
                       "old_weight": 0} for osd in sorted(_sizes())],
        "pg_upmap_items": [], "pg_temp": [],
        "erasure_code_profiles": {"backup": {"k": "3", "m": "2", "plugin": "jerasure",
                                             "technique": "reed_sol_van",
                                             "crush-failure-domain": "host",
                                             "crush-device-class": "hdd"}}}


def _pool(pool_id: int, name: str, rule: int, size: int, k: int, pg_num: int, _: float,
          __: int) -> Dict[str, Any]:
    return {"pool": pool_id, "pool_name": name, "flags": 1, "flags_names": "hashpspool",
            "type": 3 if k > 1 else 1, "size": size, "min_size": max(2, k + (k > 1)),
            "crush_rule": rule, "object_hash": 2, "pg_autoscale_mode": "off", "pg_num": pg_num,
            "pg_placement_num": pg_num, "pg_placement_num_target": pg_num,
            "pg_num_target": pg_num, "pg_num_pending": pg_num, "tiers": [], "tier_of": -1,
            "read_tier": -1, "write_tier": -1, "cache_mode": "none", "quota_max_bytes": 0,
            "quota_max_objects": 0, "erasure_code_profile": name if k > 1 else "",
            "options": {}, "application_metadata": {}}


def make_state() -> Dict[str, Any]:
    """The independent part of the demo cluster's state; `main` has the rest filled in."""
    pgs = pg_stats()
    return {"stateversion": 1, "timestamp": "2026-01-01T00:00:00", "osd_dump": osd_dump(),
            "pg_dump": {"pg_map": {"version": 1, "pg_stats": pgs, "osd_stats": osd_stats(pgs)}},
            "crush_dump": crush_dump()}


def main() -> None:
    """Writes the file; the simulation fills in the rest of the layout."""
    path = sys.argv[1] if len(sys.argv) > 1 else DEMO_STATE
    cluster = build_cluster(make_state(), 16, "demo")
    save_state(cluster, path)
    for name, used in cluster.utilizations().items():
        print(f"{name}: {len(used)} OSDs, {min(used.values()):.3f} to {max(used.values()):.3f}, "
              f"mean {sum(used.values()) / len(used):.3f}")


if __name__ == "__main__":
    main()
