"""Tables of a simulated cluster as text."""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple

from ..cluster.cluster import Cluster
from ..simulation import statistics

_BAR = 40


class ClusterUsage(NamedTuple):
    """Utilization (0..1) of a cluster at one moment, and free user bytes of its pools."""

    by_class: Dict[str, Dict[int, float]]
    pool_free: Dict[str, int]
    upmap_items: int


def usage_of(cluster: Cluster) -> ClusterUsage:
    """The present usage of a cluster."""
    return ClusterUsage(cluster.utilizations(),
                   {cluster.map.pools[pool]["pool_name"]: free_space(cluster, pool)
                    for pool in cluster.map.pools}, len(cluster.map.upmap_items))


def free_space(cluster: Cluster, pool_id: int) -> int:
    """User bytes that the pool can store until the first of its OSDs reaches the full ratio.

    By the shards of the pool on each OSD, not by CRUSH weights as MAX AVAIL.
    """
    shards: Dict[int, int] = {}
    count = 0
    for pg in cluster.pgs_of(pool_id):
        for osd in cluster.map.up.get(pg.pgid, ()):
            shards[osd] = shards.get(osd, 0) + 1
        count += 1
    rate = 1 / cluster.map.data_chunks(pool_id)
    full = cluster.map.ratio("full_ratio")
    free = [max(0.0, cluster.usage[osd].total * full - cluster.usage[osd].used)
            / (number / count * rate) for osd, number in shards.items() if osd in cluster.usage]
    return int(min(free)) if free else 0


def format_bytes(count: float) -> str:
    """As Ceph prints sizes: `3.4 TiB`, `512 GiB`, `87 B`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 1024 or unit == "PiB":
            digits = 0 if unit == "B" or abs(value) >= 100 else 1
            return f"{value:.{digits}f} {unit}"
        value /= 1024
    return ""


def class_table(usage: ClusterUsage) -> List[str]:
    """One line a device class."""
    lines = ["CLASS   OSDS   LOWEST    MEAN  HIGHEST  STDDEV"]
    for name, used in usage.by_class.items():
        values = list(used.values())
        lines.append(f"{name or '-':<6} {len(values):>5} {min(values):>7.1%} {_mean(values):>7.1%}"
                     f" {max(values):>8.1%} {_deviation(values):>7.4f}")
    return lines


def osd_table(cluster: Cluster, usage: ClusterUsage) -> List[str]:
    """One line an OSD, with a bar."""
    lines = ["  OSD  CLASS  HOST          SIZE   USED"]
    for name, used in usage.by_class.items():
        for osd, share in used.items():
            size = format_bytes(cluster.usage[osd].total)
            bar = "#" * int(round(share * _BAR))
            lines.append(f"{osd:>5}  {name or '-':<5}  {cluster.crush.host_of(osd) or '-':<9} "
                         f"{size:>9} {share:>6.1%}  |{bar:<{_BAR}}|")
    return lines


def pool_table(cluster: Cluster, usage: ClusterUsage) -> List[str]:
    """One line a pool: user bytes stored and free."""
    stored = {pool["poolid"]: pool["stat_sum"]["num_bytes"]
              for pool in statistics.pool_stats(cluster)}
    lines = ["POOL              TYPE       PGS     STORED       FREE"]
    for pool_id, pool in cluster.map.pools.items():
        chunks = cluster.map.data_chunks(pool_id)
        kind = (f"{chunks}+{pool['size'] - chunks}" if chunks > 1 else f"{pool['size']} copies")
        lines.append(f"{pool['pool_name']:<16}  {kind:<8} {pool['pg_num']:>5} "
                     f"{format_bytes(stored[pool_id]):>10} "
                     f"{format_bytes(usage.pool_free[pool['pool_name']]):>10}")
    return lines


def comparison(before: ClusterUsage, after: ClusterUsage) -> List[str]:
    """Before and after, side by side."""
    lines = [f"{'':<24} {'BEFORE':>10} {'AFTER':>10} {'CHANGE':>11}"]
    for name, used in before.by_class.items():
        first, last = list(used.values()), list(after.by_class[name].values())
        rows = (("highest", max(first), max(last)), ("lowest", min(first), min(last)))
        for word, old, new in rows:
            lines.append(f"{name or '-'} {word:<{23 - len(name or '-')}} {old:>10.1%} {new:>10.1%} "
                         f"{(new - old) * 100:>+8.1f} pp")
        lines.append(f"{name or '-'} {'stddev':<{23 - len(name or '-')}} "
                     f"{_deviation(first):>10.4f} {_deviation(last):>10.4f} "
                     f"{_deviation(last) - _deviation(first):>+11.4f}")
    for name, old_bytes in before.pool_free.items():
        new_bytes = after.pool_free.get(name, 0)
        sign = "+" if new_bytes >= old_bytes else "-"
        lines.append(f"free in {name:<16} {format_bytes(old_bytes):>10} "
                     f"{format_bytes(new_bytes):>10} "
                     f"{sign + format_bytes(abs(new_bytes - old_bytes)):>11}")
    lines.append(f"{'PGs with upmap items':<24} {before.upmap_items:>10} {after.upmap_items:>10} "
                 f"{after.upmap_items - before.upmap_items:>+11}")
    return lines


def _mean(values: List[float]) -> float:
    return sum(values) / len(values)


def _deviation(values: List[float]) -> float:
    mean = _mean(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
