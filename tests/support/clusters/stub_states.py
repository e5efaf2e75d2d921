"""Small state files for tests of the stub."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Dict, Optional, Sequence, Tuple

from tests.support.clusters.crush_maps import crush_map
from tests.support.units import GIB

OBJECT = 4 << 20

#: One pool: (id, name, type, size, rule, profile).
REPLICATED = (2, "rep", 1, 3, 0, "")
BY_HOST = (3, "hosts", 1, 3, 1, "")
ERASURE = (4, "ec", 3, 3, 2, "k2m1")


def load_fake() -> type:
    """The fake module's class, imported against the style that is in place."""
    sys.modules.pop("tests.support.fake_module", None)
    return importlib.import_module("tests.support.fake_module").Module


def crush(osds: int, per_host: int = 2) -> Dict[str, Any]:
    """Hosts of `per_host` OSDs; rules over OSDs, over hosts, and one for erasure-coded pools."""
    hosts = {f"host host{first // per_host}": list(range(first, min(first + per_host, osds)))
             for first in range(0, osds, per_host)}
    dump = crush_map({"root default": hosts}, {
        0: "take default; choose firstn 0 osd; emit",
        1: "take default; chooseleaf firstn 0 host; emit",
        2: "take default; choose indep 0 osd; emit"})
    return {**dump, "tunables": {}}


def pg(pgid: str, up: Sequence[int], acting: Optional[Sequence[int]] = None, objects: int = 256,
       state: str = "active+clean", omap: int = 0, misplaced: int = 0,
       log_start: str = "53'177") -> Dict[str, Any]:
    """A pg_stats[] record of `objects` objects of 4 MiB.

    Its log does not reach back to its first object, so new members are filled by backfill; with
    `log_start` "0'0" it does.
    """
    return {"pgid": pgid, "state": state, "up": list(up), "acting": list(acting or up),
            "ondisk_log_start": log_start, "version": f"53'{objects}",
            "stat_sum": {"num_bytes": objects * OBJECT, "num_objects": objects,
                         "num_object_copies": objects * len(up), "num_omap_bytes": omap,
                         "num_objects_misplaced": misplaced, "num_objects_degraded": 0}}


def osd_record(osd: int, used: int, total: int = 100 * GIB) -> Dict[str, Any]:
    """An osd_stats[] record with `used` bytes of data and 1 GiB of metadata."""
    taken = used + GIB
    return {"osd": osd, "num_pgs": 0, "kb": total >> 10, "kb_used": taken >> 10,
            "kb_used_data": used >> 10, "kb_used_omap": 0, "kb_used_meta": GIB >> 10,
            "kb_avail": (total - taken) >> 10,
            "statfs": {"total": total, "available": total - taken, "allocated": used,
                       "internal_metadata": GIB, "omap_allocated": 0}}


def state(pgs: Sequence[Dict[str, Any]], osds: int = 6, per_host: int = 2,
          pools: Sequence[Tuple[Any, ...]] = (REPLICATED,), items: Sequence[Any] = (),
          total: int = 100 * GIB) -> Dict[str, Any]:
    """A whole state; every OSD uses what the PGs put there, and 1 GiB."""
    chunks = {pool[0]: 2 if pool[2] == 3 else 1 for pool in pools}
    used = dict.fromkeys(range(osds), 0)
    counts = dict.fromkeys(range(osds), 0)
    for record in pgs:
        for osd in record["acting"]:
            if osd in used:
                used[osd] += (record["stat_sum"]["num_bytes"]
                              // chunks[int(record["pgid"].split(".")[0])])
                counts[osd] += 1
    numbers = {pool[0]: max([int(p["pgid"].split(".")[1], 16) + 1 for p in pgs
                             if p["pgid"].startswith(f"{pool[0]}.")] or [1]) for pool in pools}
    return {
        "stateversion": 1, "timestamp": "2026-02-03T04:05:06",
        "osd_dump": {
            "epoch": 10, "require_min_compat_client": "luminous", "full_ratio": 0.95,
            "backfillfull_ratio": 0.9, "nearfull_ratio": 0.85,
            "flags": "sortbitwise", "flags_set": ["sortbitwise"],
            "pools": [{"pool": pool[0], "pool_name": pool[1], "type": pool[2], "size": pool[3],
                       "min_size": 2, "crush_rule": pool[4], "pg_num": numbers[pool[0]],
                       "pg_num_pending": numbers[pool[0]], "erasure_code_profile": pool[5]}
                      for pool in pools],
            "osds": [{"osd": osd, "up": 1, "in": 1, "weight": 1} for osd in range(osds)],
            "pg_upmap_items": [{"pgid": pgid, "mappings": [{"from": a, "to": b}
                                                           for a, b in pairs]}
                               for pgid, pairs in items],
            "erasure_code_profiles": {"k2m1": {"k": "2", "m": "1"}}},
        "pg_dump": {"pg_map": {
            "pg_stats": list(pgs),
            "osd_stats": [{**osd_record(osd, used[osd], total), "num_pgs": counts[osd]}
                          for osd in range(osds)]}},
        "crush_dump": crush(osds, per_host)}
