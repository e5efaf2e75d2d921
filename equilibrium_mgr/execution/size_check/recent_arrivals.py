"""Shards that have arrived so lately that their OSDs may not have reported them.

A PG's primary tells that the PG is clean, each OSD how much it stores: the mgr may have the second
a minute after the first.
"""
from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence

from ...snapshot.model import Snapshot

#: Seconds after which an OSD has reported what has come to it, and the mgr has its figures.
_REPORTED_SECONDS = 60.0


class _Arrival(NamedTuple):
    targets: FrozenSet[int]
    seen_at: float   # seconds since the epoch


class RecentArrivals:
    """Kept up to date with every snapshot, whoever moves the shards."""

    def __init__(self) -> None:
        self._since: Optional[float] = None   # of the first snapshot, seconds since the epoch
        self._handed_over: FrozenSet[str] = frozenset()   # pgids of the last mgr's moves
        self._moving: Dict[str, FrozenSet[int]] = {}   # pgid → OSDs that get a shard
        self._arrived: Dict[str, _Arrival] = {}

    def restore(self, pgids: Collection[str]) -> None:
        """Takes over the PGs that the last mgr has moved: some have arrived before the first
        snapshot, a moment or an hour ago."""
        self._handed_over = frozenset(pgids)

    def observe(self, snapshot: Snapshot) -> None:
        """Notes what moves, and what has come since the last snapshot."""
        now = snapshot.taken_at
        if self._since is None or now < self._since:   # the clock was set back
            self._since = now
        moving = {pgid: frozenset(snapshot.transfers(pg)[0])
                  for pgid, pg in snapshot.in_flight().items()}
        self._arrived = {pgid: arrival for pgid, arrival in self._arrived.items()
                         if 0.0 <= now - arrival.seen_at < _REPORTED_SECONDS}
        for pgid, targets in self._moving.items():
            there = targets - moving.get(pgid, frozenset())
            if there:
                self._arrived[pgid] = _Arrival(there, now)
        self._moving = moving
        if self.knows_all(now):
            self._handed_over = frozenset()

    def expect(self, targets_by_pg: Mapping[str, Sequence[int]]) -> None:
        """Notes what is sent: it may have arrived by the next snapshot."""
        for pgid, targets in targets_by_pg.items():
            self._moving[pgid] = self._moving.get(pgid, frozenset()).union(targets)

    def knows_all(self, now: float) -> bool:
        """True once all that came before the first snapshot has been reported."""
        return self._since is not None and now - self._since >= _REPORTED_SECONDS

    def is_recent(self, pgid: str, osd: int) -> bool:
        """True where this mgr has seen a shard of the PG arrive, which the OSD may not have
        reported at the last snapshot."""
        arrival = self._arrived.get(pgid)
        return arrival is not None and osd in arrival.targets

    def came_before(self, pgids: Collection[str]) -> Collection[str]:
        """Those of these PGs whose shards may have arrived right before the first snapshot."""
        return self._handed_over.intersection(pgids)
