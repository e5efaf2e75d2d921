"""Counts of all PGs' shards by pool and OSD, amended from one look to the next."""
from __future__ import annotations

from typing import (Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple)

from ..plan.usage import ShardCounts, shard_weight
from ..runtime.amended_map import AmendedRows
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Snapshot, pg_number, pool_of

_PGS_A_PIECE = 200   # counted before it gives way again: about a millisecond
_POOL, _UP, _ACTING, _SIZE, _STATE = map(
    Pg._fields.index, ("pool", "up", "acting", "shard_bytes", "state"))

#: What rounding may leave of a sum of weights.
_NOTHING = 1e-9

Row = Tuple[Any, ...]   # a Pg as it is stored


class PlacementCounts(NamedTuple):
    """Immutable. Shards are counted by their weight (plan/usage.py) where they are ShardCounts."""

    soon: ShardCounts = {}     # by the up sets
    #: by the OSDs that hold them; of pools at rest the very ones of `soon`
    now: ShardCounts = {}
    acting: Mapping[int, int] = {}     # OSD id → PGs, by acting sets
    shards: Mapping[int, int] = {}     # OSD id → shards by the up sets
    bytes: Mapping[int, int] = {}      # OSD id → bytes of these
    pool_bytes: Mapping[int, int] = {}   # pool id → bytes of one shard of each PG
    too_full: FrozenSet[str] = frozenset()   # pgids of PGs that wait for a too full OSD


class _Counter:
    """Counts PGs on top of earlier counts, which stay as they are."""

    def __init__(self, snapshot: Snapshot, before: PlacementCounts) -> None:
        self._pools = snapshot.pools
        self._is_even = {pool.id: not pool.pg_num & (pool.pg_num - 1)
                         for pool in snapshot.pools.values()}
        self._own: Dict[int, Dict[int, float]] = {}   # pools whose counts are no longer shared
        self._soon = {pool: before.soon.get(pool, {}) for pool in snapshot.pools}
        self._acting, self._shards = dict(before.acting), dict(before.shards)
        self._bytes, self._pool_bytes = dict(before.bytes), dict(before.pool_bytes)
        self._too_full = set(before.too_full)

    def replace_row(self, row: Row, new_row: Row) -> None:
        """Counts a PG as it is instead of as it was; both are Pgs as they are stored, since all PGs
        change together where other sizes are believed."""
        if row[_UP] is new_row[_UP] and row[_ACTING] == new_row[_ACTING] and (
                row[_STATE] == new_row[_STATE]):
            more, found = new_row[_SIZE] - row[_SIZE], self._bytes
            if self._pools[row[_POOL]].is_uniform:
                for osd in row[_UP]:
                    found[osd] += more
                self._pool_bytes[row[_POOL]] += more
            else:
                self._add_bytes(Pg(*row), -1)
                self._add_bytes(Pg(*new_row), 1)
        else:
            self._replace(Pg(*row), Pg(*new_row))

    def _replace(self, old: Pg, new: Pg) -> None:
        if old.up == new.up:
            self._add_bytes(old, -1)
            self._add_bytes(new, 1)
        else:
            self._add_up(old, -1)
            self._add_up(new, 1)
        if old.acting != new.acting:
            _add(self._acting, old.acting, -1)
            _add(self._acting, new.acting, 1)
        self._note_state(new)

    def add(self, pg: Pg) -> None:
        """Counts a PG that was not counted before."""
        self._add_up(pg, 1)
        _add(self._acting, pg.acting, 1)
        self._note_state(pg)

    def counts(self, moving: Iterable[Pg]) -> PlacementCounts:
        """All counts. `moving`: the PGs whose holders are not their up sets."""
        soon: Mapping[int, Mapping[int, float]] = {**self._soon, **self._own}
        now: Dict[int, Dict[int, float]] = {}
        for pg in moving:
            if pg.pool not in now:
                now[pg.pool] = dict(soon[pg.pool])
            self._add_weights(now[pg.pool], pg, pg.up, -1)
            self._add_weights(now[pg.pool], pg, pg.holders, 1)
        return PlacementCounts(soon, {**soon, **now}, self._acting, self._shards, self._bytes,
                               self._pool_bytes, frozenset(self._too_full))

    def _add_up(self, pg: Pg, sign: int) -> None:
        own = self._own.get(pg.pool)
        if own is None:
            own = self._own[pg.pool] = dict(self._soon[pg.pool])
        self._add_weights(own, pg, pg.up, sign)
        _add(self._shards, pg.up, sign)
        self._add_bytes(pg, sign)
        for osd in pg.up:
            if osd not in self._shards:   # its last shard has left
                self._bytes.pop(osd, None)

    def _add_bytes(self, pg: Pg, sign: int) -> None:
        pool, count = self._pools[pg.pool], sign * pg.shard_bytes
        for osd in pg.up:
            self._bytes[osd] = self._bytes.get(osd, 0) + (
                count if pool.is_uniform else sign * pool.bytes_on(pg.shard_bytes, osd, pg.up))
        self._pool_bytes[pg.pool] = self._pool_bytes.get(pg.pool, 0) + count

    def _add_weights(self, counts: Dict[int, Any], pg: Pg, osds: Sequence[int], sign: int) -> None:
        """Adds a PG's shards, each by its weight."""
        pool = self._pools[pg.pool]
        weight = sign * (1 if self._is_even[pg.pool] else shard_weight(pool, pg.pgid))
        if pool.is_uniform:
            _add(counts, osds, weight)
        else:
            for osd in osds:
                _add(counts, (osd,), weight * pool.ratio_on(osd, osds))

    def _note_state(self, pg: Pg) -> None:
        if "toofull" in pg.state:
            self._too_full.add(pg.pgid)
        else:
            self._too_full.discard(pg.pgid)


def count_placement(snapshot: Snapshot, earlier: Optional[Snapshot],
                    before: PlacementCounts) -> PlacementCounts:
    """The counts of a snapshot. `earlier` and `before`: the last one and its counts, of which is
    used what has not changed; None and no counts at the first."""
    now, then = snapshot.pgs, earlier.pgs if earlier is not None else None
    changed = _changed(snapshot, earlier)
    moving = snapshot.in_flight().values()
    if changed is None or not (isinstance(now, AmendedRows) and isinstance(then, AmendedRows)):
        counter = _Counter(snapshot, PlacementCounts())
        for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
            counter.add(pg)
        return counter.counts(moving)
    counter = _Counter(snapshot, before)
    for pgid in piecewise(changed, _PGS_A_PIECE):
        counter.replace_row(then.row(pgid), now.row(pgid))
    return counter.counts(moving)


def in_order(pgids: Iterable[str]) -> List[str]:
    """In the order of pools and PG numbers."""
    return sorted(pgids, key=lambda pgid: (pool_of(pgid), pg_number(pgid)))


def _changed(snapshot: Snapshot, earlier: Optional[Snapshot]) -> Optional[Sequence[str]]:
    """pgids of PGs that are not as they were; None where all are to be counted."""
    if earlier is None or _shapes(snapshot) != _shapes(earlier):
        return None
    now, then = snapshot.pgs, earlier.pgs
    if not (isinstance(now, AmendedRows) and isinstance(then, AmendedRows)):
        return None
    found: Optional[List[str]] = now.changed_since(then)
    return found


def _shapes(snapshot: Snapshot) -> List[Tuple[Any, ...]]:
    return [(pool.id, pool.pg_num, pool.position_ratios, pool.osd_ratios)
            for pool in snapshot.pools.values()]


def _add(counts: Dict[int, Any], osds: Iterable[int], weight: float) -> None:
    """Adds a weight to the counts of OSDs; what comes to nothing is left out."""
    for osd in osds:
        count = counts.get(osd, 0) + weight
        if count > _NOTHING or count < -_NOTHING:
            counts[osd] = count
        else:
            counts.pop(osd, None)   # a shard without data counts nothing
