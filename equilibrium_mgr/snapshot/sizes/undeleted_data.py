"""Data that has left an OSD and that it has not deleted yet.

A PG is clean as soon as its new OSD has all of it; the old one deletes its objects a few at a time:
on rotating disks 30 in 5 s by default (osd_delete_sleep_hdd of 16.2.15), which takes an hour and
more for a large PG. Until then it reports their bytes as used. A plan that believed that would take
still more from the OSD: right after 7 moves that evened a pool out, the next plan had 17.

An OSD counts in `num_pgs` what it is still deleting. While that is more than the PGs that it holds,
undeleted is the data that it has beyond them more than before, at most what has left it. That is
known for moves since the mgr became active; for earlier ones the OSD's report is believed.
"""
from __future__ import annotations

from typing import Container, Dict, Iterable, Mapping, NamedTuple, Optional, Set, Tuple


class OsdContent(NamedTuple):
    """What an OSD reports beside what it is known to hold."""

    excess_bytes: int   # of data beyond what the shards take that it holds, also in part
    excess_before: Optional[int]   # the same at the last reading, where that is known
    spare_pgs: int      # counted beyond those of which it holds a whole shard


class UndeletedData:
    """Undeleted data by OSD and pool, in bytes that are comparable among OSDs.

    For each reading: `begin_move` and `end_move` of PGs, then `keep`, then `update`.
    """

    def __init__(self) -> None:
        self._moving: Dict[str, int] = {}   # pgid → bytes of data of a shard as its move began
        self._left: Dict[Tuple[int, int], int] = {}        # (pool id, OSD) → bytes at most
        self._just_left: Dict[Tuple[int, int], int] = {}   # since the last reading
        self._bases: Dict[int, int] = {}   # OSD → excess bytes before the first had left it
        self._remaining: Dict[int, float] = {}   # OSD → ratio of what has left it
        self._new_pools: Set[int] = set()        # of which something had left at the last reading

    def copy(self) -> UndeletedData:
        """One that remembers the same."""
        copied = UndeletedData()
        copied.__dict__.update({name: kept.copy() for name, kept in self.__dict__.items()})
        return copied

    @property
    def osds(self) -> Set[int]:
        """Ids of the OSDs that may hold any."""
        return {*self._bases, *(osd for _, osd in self._just_left)}

    def bytes_by_osd(self) -> Dict[int, int]:
        """OSD id → bytes."""
        sums: Dict[int, int] = {}
        for (_, osd), count in self._left.items():
            sums[osd] = sums.get(osd, 0) + int(count * self._remaining[osd])
        return {osd: count for osd, count in sums.items() if count > 0}

    def most_by_pool(self) -> Dict[int, int]:
        """Pool id → bytes that have left OSDs which have not deleted all of that."""
        sums: Dict[int, int] = {}
        for (pool, osd), count in self._left.items():
            if self._remaining[osd] > 0.0:
                sums[pool] = sums.get(pool, 0) + count
        return sums

    @property
    def new_pools(self) -> Set[int]:
        """Ids of the pools of which shards had just left OSDs at the last reading."""
        return self._new_pools

    def begin_move(self, pgid: str, data_bytes: int) -> None:
        """Records a PG that moves, with the bytes of its first call: later ones are of a pool of
        which there are more copies."""
        self._moving.setdefault(pgid, data_bytes)

    def end_move(self, pgid: str, pool: int, left: Iterable[Tuple[int, float]],
                 data_bytes: int) -> None:
        """Records that shards of a PG have left. `left`: (OSD id, its shard as a ratio of the mean
        shard); `data_bytes` is used where `begin_move` was not called."""
        data_bytes = self._moving.pop(pgid, data_bytes)
        for osd, ratio in left:
            count = self._just_left.get((pool, osd), 0) + int(ratio * data_bytes)
            self._just_left[pool, osd] = count

    def keep(self, pgids: Container[str]) -> None:
        """Forgets the moves of PGs that do not exist any more."""
        self._moving = {pgid: size for pgid, size in self._moving.items() if pgid in pgids}

    def update(self, found: Mapping[int, OsdContent]) -> None:
        """Forgets what OSDs have deleted. `found`: of `osds`."""
        new: Dict[int, int] = {}
        for (pool, osd), count in self._just_left.items():
            self._left[pool, osd] = self._left.get((pool, osd), 0) + count
            new[osd] = new.get(osd, 0) + count
        self._new_pools, self._just_left = {pool for pool, _ in self._just_left}, {}
        for osd, count in new.items():
            if osd in found and osd not in self._bases:
                before = found[osd].excess_before
                self._bases[osd] = found[osd].excess_bytes - count if before is None else before
        self._bases = {osd: base for osd, base in self._bases.items()
                       if osd in found and found[osd].spare_pgs > 0}
        self._left = {key: count for key, count in self._left.items() if key[1] in self._bases}
        left: Dict[int, int] = dict.fromkeys(self._bases, 0)
        for (_, osd), count in self._left.items():
            left[osd] += count
        self._remaining = {
            osd: min(left[osd], max(0, found[osd].excess_bytes - base)) / max(1, left[osd])
            for osd, base in self._bases.items()}
