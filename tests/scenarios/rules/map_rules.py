"""The rules that the osdmap's upmap items have to keep, whoever has died in between.

S13 Ceph's own cleaning (`osdmaptool --upmap-cleanup`) would keep all of them, S14 there are no more
than there were and were sent, and those without effect do not become more by our doing.
"""
from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.osdmap import upmap
from mgr_stub.osdmap.upmap import Items

from .judge import Judge
from .under_way import circles


class MapRules:
    """Looks again only where the map has changed in what matters."""

    def __init__(self, cluster: Cluster, judge: Judge) -> None:
        self._cluster = cluster
        self._judge = judge
        self._first = _count(cluster)
        self._seen: Optional[Tuple[Any, ...]] = None
        self._stale, self._restored = self._count_stale(), 0

    def observe(self) -> None:
        osdmap = self._cluster.map
        seen = (osdmap.upmap_items, osdmap.osds, osdmap.pools, self._cluster.crush)
        before, self._seen = self._seen, seen
        if before is not None and all(a is b for a, b in zip(before, seen)):
            return
        for what in self._not_kept():
            self._judge.note("S13", what)
        count, most = _count(self._cluster), (
            self._first + self._judge.sent_pairs + self._judge.others.pairs)
        if count > most:
            self._judge.note("S14", f"{count} pairs in the map, {most} were there or sent")
        stale, earlier = self._count_stale(), self._stale
        earlier += self._judge.restored_pairs - self._restored
        self._stale, self._restored = stale, self._judge.restored_pairs
        only_ours = before is not None and all(a is b for a, b in zip(before[1:], seen[1:]))
        if only_ours and stale > earlier:
            self._judge.note("S14", f"{stale} pairs without effect, {earlier} before")

    def _not_kept(self) -> Iterator[str]:
        cluster = self._cluster
        for pgid, items in cluster.map.upmap_items.items():
            pg = cluster.pgs.get(pgid)
            if pg is None:
                yield f"pg {pgid} is gone and has upmap items"
            elif pg.raw is not None:
                pool = cluster.map.pools[pg.pool_id]
                kept = upmap.clean(cluster.crush, int(pool["crush_rule"]), int(pool["size"]),
                                   pg.raw, items, cluster.map.reweight)
                if kept != items or len(items) > int(pool["size"]):
                    yield f"pg {pgid} has {items}, cleaning would keep {kept}"

    def _count_stale(self) -> int:
        """Pairs that move nothing."""
        return sum(len(items) - _effective(self._cluster, pgid, items)
                   for pgid, items in self._cluster.map.upmap_items.items())


def _effective(cluster: Cluster, pgid: str, items: Items) -> int:
    pg = cluster.pgs.get(pgid)
    if pg is None or pg.raw is None:
        return len(items)
    mapped = upmap.apply_items(pg.raw, items, cluster.is_out)
    return sum(1 for old, new in zip(pg.raw, mapped) if old != new) + circles(pg.raw, mapped)


def _count(cluster: Cluster) -> int:
    return sum(len(items) for items in cluster.map.upmap_items.values())
