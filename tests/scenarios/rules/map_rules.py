"""The rules that the osdmap's upmap items have to keep, whoever has died in between.

S13 Ceph's own cleaning (`osdmaptool --upmap-cleanup`) would keep all of them, S14 there are no more
than there were and were sent, and those without effect do not become more by our doing.
"""
from __future__ import annotations

from typing import Any, Iterator, Tuple

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.osdmap import upmap
from mgr_stub.osdmap.upmap import Items

from ..watch import cluster_view
from .judge import Judge
from .under_way import circles


class MapRules:
    """Looks again only where the map has changed in what matters."""

    def __init__(self, cluster: Cluster, judge: Judge) -> None:
        self._cluster = cluster
        self._judge = judge
        self._first = _count(cluster)
        self._seen: Tuple[Any, ...] = (None, None, None, None)
        self._stale, self._restored = self._count_stale(), 0

    def observe(self) -> None:
        osdmap = self._cluster.map
        seen = (osdmap.upmap_items, osdmap.osds, osdmap.pools, self._cluster.crush)
        before, self._seen = self._seen, seen
        has_changed = [was is not now for was, now in zip(before, seen)]
        if not any(has_changed):
            return
        for what in self._not_kept():
            self._judge.note("S13", what)
        count = _count(self._cluster)
        most = self._first + self._judge.sent_pairs + self._judge.others.pairs
        if count > most:
            self._judge.note("S14", f"{count} pairs in the map, {most} were there or sent")
        stale, earlier = self._count_stale(), self._stale
        earlier += self._judge.restored_pairs - self._restored
        self._stale, self._restored = stale, self._judge.restored_pairs
        if stale > earlier and not any(has_changed[1:]):
            self._judge.note("S14", f"{stale} pairs without effect, {earlier} before")

    def _not_kept(self) -> Iterator[str]:
        cluster = self._cluster
        for pgid, items in cluster.map.upmap_items.items():
            pg = cluster.pgs.get(pgid)
            if pg is None:
                yield f"pg {pgid} is gone and has upmap items"
            elif pg.raw is not None:
                kept = cluster_view.kept(cluster, pg, items)
                if kept != items or len(items) > cluster.size_of(pg):
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
    return sum(old != new for old, new in zip(pg.raw, mapped)) + circles(pg.raw, mapped)


def _count(cluster: Cluster) -> int:
    return sum(map(len, cluster.map.upmap_items.values()))
