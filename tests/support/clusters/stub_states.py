"""Small state files for tests of the stub."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Dict, Optional, Sequence, Tuple

from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.state_records import dumped_items, osd_record, pg_key, pg_record
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
    record = pg_record(pgid, up, acting or up, state, objects * OBJECT, objects, omap,
                       num_objects_misplaced=misplaced)
    record.update(ondisk_log_start=log_start, version=f"53'{objects}")
    return record


def state(pgs: Sequence[Dict[str, Any]], osds: int = 6, per_host: int = 2,
          pools: Sequence[Tuple[Any, ...]] = (REPLICATED,), items: Sequence[Any] = (),
          total: int = 100 * GIB) -> Dict[str, Any]:
    """A whole state; every OSD uses what the PGs put there, and 1 GiB."""
    used = dict.fromkeys(range(osds), 0)
    counts = dict(used)
    pg_nums: Dict[int, int] = {}
    types = {number: kind for number, _, kind, *_ in pools}
    for record in pgs:
        pool, ps = pg_key(record["pgid"])
        pg_nums[pool] = max(pg_nums.get(pool, 0), ps + 1)
        chunks = 2 if types[pool] == 3 else 1
        for osd in record["acting"]:
            if osd in used:
                used[osd] += record["stat_sum"]["num_bytes"] // chunks
                counts[osd] += 1
    osd_stats = [osd_record(osd, total, data, 0, GIB, counts[osd]) for osd, data in used.items()]
    return {
        "stateversion": 1,
        "timestamp": "2026-02-03T04:05:06",
        "osd_dump": {
            "epoch": 10,
            "require_min_compat_client": "luminous",
            "full_ratio": 0.95,
            "backfillfull_ratio": 0.9,
            "nearfull_ratio": 0.85,
            "flags": "sortbitwise",
            "flags_set": ["sortbitwise"],
            "pools": [_dumped(pool, pg_nums.get(pool[0], 1)) for pool in pools],
            "osds": [{"osd": osd, "up": 1, "in": 1, "weight": 1} for osd in used],
            "pg_upmap_items": [dumped_items(*entry) for entry in items],
            "erasure_code_profiles": {"k2m1": {"k": "2", "m": "1"}}},
        "pg_dump": {"pg_map": {"pg_stats": list(pgs), "osd_stats": osd_stats}},
        "crush_dump": crush(osds, per_host)}


def _dumped(pool: Sequence[Any], pg_num: int) -> Dict[str, Any]:
    keys = ("pool", "pool_name", "type", "size", "crush_rule", "erasure_code_profile")
    return {**dict(zip(keys, pool)), "min_size": 2, "pg_num": pg_num, "pg_num_pending": pg_num}
