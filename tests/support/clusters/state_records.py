"""Records of a state file, in the layout of `ceph pg dump`."""
from __future__ import annotations

from typing import Any, Dict, Iterable, Sequence, Tuple


def osd_record(osd: int, total: int, data: int, omap: int, metadata: int,
               pgs: int = 0) -> Dict[str, Any]:
    """An osd_stats[] record: bytes of the device, and what is on it."""
    used = data + omap + metadata
    available = total - used
    return {
        "osd": osd,
        "num_pgs": pgs,
        "kb": total >> 10,
        "kb_used": used >> 10,
        "kb_used_data": data >> 10,
        "kb_used_omap": omap >> 10,
        "kb_used_meta": metadata >> 10,
        "kb_avail": available >> 10,
        "statfs": {
            "total": total,
            "available": available,
            "allocated": data,
            "data_stored": data,
            "internal_metadata": metadata,
            "omap_allocated": omap}}


def pg_record(pgid: str, up: Sequence[int], acting: Sequence[int], state: str, num_bytes: int,
              objects: int, omap: int = 0, copies: int = 0, **stat_sum: int) -> Dict[str, Any]:
    """A pg_stats[] record; copies are as many as members unless given."""
    return {
        "pgid": pgid,
        "state": state,
        "up": list(up),
        "acting": list(acting),
        "stat_sum": {
            "num_bytes": num_bytes,
            "num_objects": objects,
            "num_object_copies": objects * (copies or len(up)),
            "num_omap_bytes": omap,
            "num_objects_misplaced": 0,
            "num_objects_degraded": 0,
            **stat_sum}}


def dumped_items(pgid: str, pairs: Iterable[Tuple[int, int]]) -> Dict[str, Any]:
    """An entry of pg_upmap_items in `ceph osd dump`."""
    return {"pgid": pgid, "mappings": [{"from": a, "to": b} for a, b in pairs]}


def pg_key(pgid: str) -> Tuple[int, int]:
    """(pool, seed) of a pgid: the order in which Ceph keeps PGs."""
    pool, seed = pgid.split(".")
    return int(pool), int(seed, 16)
