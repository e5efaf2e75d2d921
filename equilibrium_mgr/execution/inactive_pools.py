"""Distinguishes pools whose PGs are inactive for a moment, as while they peer, from others."""
from __future__ import annotations

from typing import Dict, FrozenSet, Optional

from ..snapshot.model import Snapshot

#: PGs that have been inactive for less than this may just be peering.
TRANSIENT_SECONDS = 30.0
#: Seconds after which such a pool is observed again.
TRANSIENT_RECHECK_SECONDS = 10.0


class InactivePools:
    """Remembers since when pools have had inactive PGs, by the snapshots that it was shown."""

    def __init__(self) -> None:
        self._since: Dict[int, float] = {}   # pool → seconds since the epoch
        self._seen_at: Optional[float] = None

    def observe(self, snapshot: Snapshot) -> FrozenSet[int]:
        """Takes in a newer snapshot; returns the pools that have been inactive for a moment
        only."""
        now, earlier = snapshot.taken_at, self._seen_at
        self._seen_at = now
        if earlier is None or now < earlier:
            self._since = {}
        self._since = {pool: self._since.get(pool, now)
                       for pool, states in snapshot.pool_states.items() if states.inactive}
        return frozenset(pool for pool, since in self._since.items()
                         if now - since < TRANSIENT_SECONDS)
