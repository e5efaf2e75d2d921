"""Finds OSDs that have stopped reporting their statistics although the monitor shows them as up.

An OSD sends a report every few seconds, each with a higher sequence number (`seq`). The mgr ignores
reports of an OSD that is out, which therefore does not count as silent.
"""
from __future__ import annotations

from typing import Any, Container, Dict, FrozenSet, Iterable, Mapping, Optional, Tuple

#: Seconds without a new report after which the last one is too old to be used.
_STALE_SECONDS = 120.0


class OsdReports:
    """The last sequence number of every OSD and when it was first seen. Any thread may use it."""

    def __init__(self) -> None:
        self._last: Dict[int, Tuple[int, float]] = {}
        self._read_at = 0.0
        self._any_change = False  # without any, the sequence numbers mean nothing

    def stale(self, osd_stats: Iterable[Mapping[str, Any]], now: float) -> FrozenSet[int]:
        """Records `get('osd_stats')['osd_stats']`; returns the OSDs that are silent for too long.

        `now` is in seconds since the epoch.
        """
        last: Dict[int, Tuple[int, float]] = {}
        for stats in osd_stats:
            osd, seq = stats["osd"], stats.get("seq")
            if not isinstance(seq, int):
                continue
            before = self._last.get(osd)
            if before is not None and before[0] == seq:
                last[osd] = (seq, min(before[1], now))  # the clock may have been set back
            else:
                last[osd] = (seq, now)
                self._any_change = self._any_change or before is not None
        self._last, self._read_at = last, now
        if not self._any_change:
            return frozenset()
        return frozenset(osd for osd, (_, since) in last.items() if now - since > _STALE_SECONDS)

    def oldest(self, osds: Container[int]) -> Optional[float]:
        """When the oldest of the last reports of these OSDs was first seen, in seconds since the
        epoch; None where nothing is known of them, or no report has ever changed."""
        if not self._any_change:
            return None
        return min([since for osd, (_, since) in self._last.items() if osd in osds], default=None)

    def silent(self, seconds: float) -> FrozenSet[int]:
        """OSDs without a new report for so long, as of the last reading."""
        if not self._any_change:
            return frozenset()
        return frozenset(osd for osd, (_, since) in list(self._last.items())
                         if self._read_at - since > seconds)
