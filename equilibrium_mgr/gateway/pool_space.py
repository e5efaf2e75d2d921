"""The space of pools as `ceph df` has it: the mgr computes get('df') with the code of the monitor
(PGMapDigest::dump_pool_stats_full in Ceph's src/mon/PGMap.cc)."""
from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional


class PoolSpaceNow(NamedTuple):
    """Ceph's own figures of one pool at this moment; None for what a release does not tell."""

    name: str
    stored: Optional[int]            # client bytes
    percent_used: Optional[float]    # a ratio: used ÷ (used + available), raw bytes of the pool
    max_avail: Optional[int]         # client bytes


def pool_space(df: Mapping[str, Any]) -> Dict[int, PoolSpaceNow]:
    """Pool id → its space, from get('df')."""
    return {int(pool["id"]): PoolSpaceNow(
        str(pool["name"]), pool.get("stats", {}).get("stored"),
        pool.get("stats", {}).get("percent_used"), pool.get("stats", {}).get("max_avail"))
        for pool in df.get("pools", [])}
