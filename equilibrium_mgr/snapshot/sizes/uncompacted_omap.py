"""Omap that has left an OSD and that its RocksDB has not given back yet.

A PG's keys are deleted when its shard has gone, but their space is free only once RocksDB has
compacted the files that hold them: after minutes on a busy OSD, and never by itself on an idle one
(16.2.15 and 20.2.4; `ceph tell osd.N compact` does it at once). Until then the OSD reports what it
held before. Who took that for what it holds would take still more from it, and would give it back
when it has been compacted.

An OSD's own figure for omap tells when it is over: what it reports beyond the omap of the PGs that it
holds, at most what has left it. That is known of moves since the mgr became active; of earlier ones
the OSD's report is believed.
"""
from __future__ import annotations

from typing import Any, Container, Dict, Iterable, Mapping, Set, Tuple

#: Of what has left, an OSD's figure may fall short by so much (a ratio) although nothing is free: that
#: keys are deleted is written, too, and RocksDB only estimates the sizes of ranges (16.2.15: 52 MiB
#: had left, 41 showed).
_ESTIMATED = 0.3
#: What RocksDB holds beside the omap itself of a shard is no more than this ratio of it.
_MOST_BESIDE = 0.5


class UncompactedOmap:
    """While a reading is understood PGs set out and arrive; then `keep` and `update`."""

    def __init__(self) -> None:
        #: pgid → (bytes of omap, all that RocksDB holds of a shard) as its move was first seen
        self._moving: Dict[str, Tuple[int, int]] = {}
        self._left: Dict[Tuple[int, int], int] = {}   # (pool id, OSD) → bytes at most
        self._just_left: Dict[Tuple[int, int], int] = {}   # since the last reading
        self._highest: Dict[int, int] = {}   # OSD → the most it has reported since omap left it
        self._overhead: Dict[Tuple[int, int], float] = {}   # bytes on the device for each of those

    @property
    def osds(self) -> Set[int]:
        """Those that may hold any."""
        return {osd for _, osd in self._left} | {osd for _, osd in self._just_left}

    def bytes_by_pool(self) -> Dict[int, int]:
        """Pool id → bytes on all OSDs, which the pool's own statistics count as its omap."""
        return _summed((pool, count) for (pool, _), count in self._left.items())

    def bytes_by_osd(self) -> Dict[int, int]:
        """OSD → bytes on its device."""
        return _summed((key[1], int(count * self._overhead[key])) for key, count in self._left.items())

    def begin_move(self, pgid: str, omap_bytes: int, db_bytes: int) -> None:
        """A PG moves. The first figures count: later on what devices and the pool's figure hold is
        the new copy as well. `db_bytes`: all of a shard that is RocksDB's."""
        self._moving.setdefault(pgid, (omap_bytes, db_bytes))

    def end_move(self, pgid: str, pool: int, left: Iterable[int], omap_bytes: int) -> None:
        """Its shards have left these OSDs; `omap_bytes` where nobody has seen it set out. What its
        objects cost beside their own bytes is compacted with it."""
        omap_bytes, db_bytes = self._moving.pop(pgid, (omap_bytes, 0))
        if omap_bytes > 0:
            beside = min(_MOST_BESIDE, max(0.0, db_bytes / omap_bytes - 1.0))
            for osd in left:
                key = pool, osd
                self._just_left[key] = self._just_left.get(key, 0) + omap_bytes
                self._overhead[key] = 1.0 + beside

    def keep(self, pgids: Container[str]) -> None:
        """Forgets the moves of PGs that are gone."""
        self._moving = {pgid: sizes for pgid, sizes in self._moving.items() if pgid in pgids}

    def update(self, held: Mapping[int, int], reported: Mapping[int, int]) -> None:
        """What OSDs have given back is forgotten. `held`: OSD → omap bytes of the PGs there;
        `reported`: the same as the OSD has it."""
        most = {osd: max(0, reported.get(osd, 0) - held.get(osd, 0)) for osd in self.osds}
        left = _summed((osd, count) for (_, osd), count in self._left.items())
        # by how much the OSD's figure falls tells whatever PGs are believed to hold
        self._highest = {osd: max(self._highest.get(osd, 0), reported.get(osd, 0)) for osd in most}
        for osd, count in left.items():
            fallen = self._highest[osd] - reported.get(osd, 0)
            if fallen >= (1.0 - _ESTIMATED) * count:
                most[osd] = min(most[osd], max(0, count - fallen))
                self._highest[osd] = reported.get(osd, 0)
        for (pool, osd), count in self._left.items():
            if (1.0 - _ESTIMATED) * left[osd] > most[osd]:
                self._left[pool, osd] = count * most[osd] // left[osd]
        # what has just left may not be in the figures of its pool: only the OSD's whole omap limits it
        for (pool, osd), count in self._just_left.items():
            self._left[pool, osd] = self._left.get((pool, osd), 0) + min(
                count, reported.get(osd, 0))
        self._left = {key: count for key, count in self._left.items() if count > 0}
        self._overhead = {key: self._overhead[key] for key in self._left}
        self._just_left = {}


def reported_omap(osd_stats: Iterable[Mapping[str, Any]]) -> Dict[int, int]:
    """OSD → bytes of omap as it reports them."""
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
