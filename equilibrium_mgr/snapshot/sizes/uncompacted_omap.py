"""Omap that has left an OSD and whose space its RocksDB has not freed yet.

A PG's keys are deleted when its shard has left, but their space is free only once RocksDB has
compacted the files that hold them: after minutes on a busy OSD, and never by itself on an idle one
(16.2.15 and 20.2.4; `ceph tell osd.N compact` does it at once). Until then the OSD reports what it
held before. A plan that believed that would take still more from the OSD, and the next one would
give it back.

An OSD's own figure for omap shows when the space is free: uncompacted is what it reports beyond the
omap of the PGs that it holds, at most what has left it. That is known for moves since the mgr
became active; for earlier ones the OSD's report is believed.
"""
from __future__ import annotations

from typing import Any, Container, Dict, Iterable, Mapping, Set, Tuple

#: An OSD's figure may fall short of what has left by this ratio although nothing is free: deletions
#: are written as well, and RocksDB only estimates the sizes of ranges (16.2.15: 52 MiB had left, 41
#: showed).
_ESTIMATED = 0.3
#: RocksDB holds at most this ratio of a shard's omap beside the omap itself.
_MOST_BESIDE = 0.5


class UncompactedOmap:
    """Uncompacted omap by OSD and pool.

    For each reading: `begin_move` and `end_move` of PGs, then `keep`, then `update`.
    """

    def __init__(self) -> None:
        #: pgid → (bytes of omap, all that RocksDB holds of a shard) as its move was first seen
        self._moving: Dict[str, Tuple[int, int]] = {}
        self._left: Dict[Tuple[int, int], int] = {}   # (pool id, OSD) → bytes at most
        self._just_left: Dict[Tuple[int, int], int] = {}   # since the last reading
        self._highest: Dict[int, int] = {}   # OSD → the most it has reported since omap left it
        self._overhead: Dict[Tuple[int, int], float] = {}   # bytes on the device for each of those

    def copy(self) -> UncompactedOmap:
        """One that remembers the same."""
        copied = UncompactedOmap()
        copied.__dict__.update({name: dict(kept) for name, kept in self.__dict__.items()})
        return copied

    @property
    def osds(self) -> Set[int]:
        """Ids of the OSDs that may hold any."""
        return {osd for _, osd in self._left} | {osd for _, osd in self._just_left}

    def bytes_by_pool(self) -> Dict[int, int]:
        """Pool id → bytes on all OSDs; the pool's own statistics still count them."""
        return _summed((pool, count) for (pool, _), count in self._left.items())

    def bytes_by_osd(self) -> Dict[int, int]:
        """OSD id → bytes on its device."""
        return _summed((key[1], int(count * self._overhead[key]))
                       for key, count in self._left.items())

    def begin_move(self, pgid: str, omap_bytes: int, db_bytes: int) -> None:
        """Records a PG that moves, with the bytes of its first call: later ones include new copies.

        `db_bytes`: all that RocksDB holds of one shard.
        """
        self._moving.setdefault(pgid, (omap_bytes, db_bytes))

    def end_move(self, pgid: str, pool: int, left: Iterable[int], omap_bytes: int) -> None:
        """Records that a PG's shards have left OSDs.

        `omap_bytes` is used where `begin_move` was not called. What its objects cost beside their
        own bytes is compacted with the omap.
        """
        omap_bytes, db_bytes = self._moving.pop(pgid, (omap_bytes, 0))
        if omap_bytes > 0:
            beside = min(_MOST_BESIDE, max(0.0, db_bytes / omap_bytes - 1.0))
            for osd in left:
                key = pool, osd
                self._just_left[key] = self._just_left.get(key, 0) + omap_bytes
                self._overhead[key] = 1.0 + beside

    def keep(self, pgids: Container[str]) -> None:
        """Forgets the moves of PGs that do not exist any more."""
        self._moving = {pgid: sizes for pgid, sizes in self._moving.items() if pgid in pgids}

    def update(self, held: Mapping[int, int], reported: Mapping[int, int]) -> None:
        """Forgets what OSDs have freed.

        `held`: OSD id → omap bytes of its PGs; `reported`: OSD id → omap bytes as it reports them.
        """
        most = {osd: max(0, reported.get(osd, 0) - held.get(osd, 0)) for osd in self.osds}
        left = _summed((osd, count) for (_, osd), count in self._left.items())
        # a fall of the OSD's figure counts, whatever its PGs are believed to hold
        self._highest = {osd: max(self._highest.get(osd, 0), reported.get(osd, 0)) for osd in most}
        for osd, count in left.items():
            fallen = self._highest[osd] - reported.get(osd, 0)
            if fallen >= (1.0 - _ESTIMATED) * count:
                most[osd] = min(most[osd], max(0, count - fallen))
                self._highest[osd] = reported.get(osd, 0)
        for (pool, osd), count in self._left.items():
            if (1.0 - _ESTIMATED) * left[osd] > most[osd]:
                self._left[pool, osd] = count * most[osd] // left[osd]
        # the figures of its pool may not have what has just left: the OSD's whole omap limits it
        for (pool, osd), count in self._just_left.items():
            self._left[pool, osd] = self._left.get((pool, osd), 0) + min(
                count, reported.get(osd, 0))
        self._left = {key: count for key, count in self._left.items() if count > 0}
        self._overhead = {key: self._overhead[key] for key in self._left}
        self._just_left = {}


def reported_omap(osd_stats: Iterable[Mapping[str, Any]]) -> Dict[int, int]:
    """OSD id → bytes of omap as it reports them."""
    found: Dict[int, int] = {}
    for stats in osd_stats:
        in_statfs = (stats.get("statfs") or {}).get("omap_allocated", 0)
        found[stats["osd"]] = max(0, in_statfs or stats.get("kb_used_omap", 0) * 1024)
    return found


def _summed(parts: Iterable[Tuple[int, int]]) -> Dict[int, int]:
    sums: Dict[int, int] = {}
    for key, count in parts:
        sums[key] = sums.get(key, 0) + count
    return sums
