"""How long clients wait at the OSDs of our moves: in the last minutes, and before these moves.

The module only shows it. Other causes raise it as well (a deep scrub a hundredfold), and moves in
flight cannot be stopped.
"""
from __future__ import annotations

from collections import deque
from math import inf
from typing import Callable, Collection, Deque, Dict, Mapping, NamedTuple, Optional, Tuple

#: The last minutes, in seconds.
RECENT_SECONDS = 300.0
#: An OSD without moves for so many seconds is quiet: its later ops are compared with those of then.
_QUIET_SECONDS = 3600.0
#: At most so many OSDs are read at a time: a sample shows as much.
_MOST_OSDS = 50

#: Of all ops of clients since an OSD started: (nanoseconds, ops).
Counters = Tuple[int, int]
_NONE: Counters = (0, 0)


class ClientLatency(NamedTuple):
    """Seconds that an op took on average, by the OSDs' own counters; None if there was no op.
    JSON-ready by `_asdict`."""

    osds: int                  # whose ops these are
    recent_seconds: Optional[float]   # of the last minutes
    #: before these moves: of an hour or more, or since it started
    before_seconds: Optional[float]


class _Quiet(NamedTuple):
    """The ops of an OSD when its last move had arrived."""

    at: float = -inf           # seconds since the epoch
    counters: Counters = _NONE   # at that moment
    before: Counters = _NONE   # its ops while it was quiet, before those moves


class _Mean:
    """Adds up ops, and has their mean time in seconds; None without ops."""

    def __init__(self) -> None:
        self._nanoseconds = 0.0
        self._ops = 0

    def add(self, nanoseconds: float, ops: int) -> None:
        self._nanoseconds += nanoseconds
        self._ops += ops

    @property
    def seconds(self) -> Optional[float]:
        return self._nanoseconds / self._ops / 1e9 if self._ops else None


class LatencyWatch:
    """Measures the latency at each snapshot. Used by the serve thread."""

    def __init__(self) -> None:
        self._quiet: Dict[int, _Quiet] = {}
        self._before: Dict[int, Counters] = {}   # OSD with moves → its ops while it was quiet
        self._points: Deque[Tuple[float, Mapping[int, Counters]]] = deque()   # the last minutes

    def observe(self, now: float, osds: Collection[int],
                read: Callable[[Collection[int]], Mapping[int, Counters]]
                ) -> Optional[ClientLatency]:
        """Returns the latency at these OSDs, those of our moves in flight; None if there are none.

        `now`: seconds since the epoch. `read` returns the counters of the OSDs that report some.
        """
        watched = sorted(osds, key=lambda osd: (osd not in self._before, osd))[:_MOST_OSDS]
        found = read({*watched, *self._before})
        self._compare(now, [osd for osd in watched if osd in found], watched, found)
        self._forget(now)
        quiet = self._before
        self._points.append((now, {osd: found[osd] for osd in quiet}))
        if not quiet:
            return None
        recent = _Mean()
        before = _Mean()
        for osd, (nanoseconds, ops) in quiet.items():
            first = next(point[osd] for _, point in self._points if osd in point)
            taken, count = _since(first, found[osd])
            recent.add(taken, count)
            if ops:   # each OSD counts by its present ops, so that both means are of the same OSDs
                before.add(count * nanoseconds / ops, count)
        return ClientLatency(len(quiet), recent.seconds, before.seconds)

    def _compare(self, now: float, known: Collection[int], watched: Collection[int],
                 found: Mapping[int, Counters]) -> None:
        """Keeps, for each OSD with moves, its ops from the quiet time before these moves. When its
        last move has arrived, notes its counters for the next comparison.

        `watched`: OSDs with moves; `known`: those of them in `found`, the counters that were read.
        """
        for osd, ops in self._before.items():
            if osd not in watched:
                self._quiet[osd] = _Quiet(now, found.get(osd, _NONE), ops)
        before: Dict[int, Counters] = {}
        for osd in known:
            if osd in self._before:
                before[osd] = self._before[osd]
                continue
            quiet = self._quiet.get(osd, _Quiet())
            is_short = 0.0 <= now - quiet.at < _QUIET_SECONDS
            before[osd] = quiet.before if is_short else _since(quiet.counters, found[osd])
        self._before = before

    def _forget(self, now: float) -> None:
        """Forgets points older than the last minutes, or of the future if the clock was set
        back."""
        points = self._points
        while points:
            is_future = points[-1][0] > now
            is_old = len(points) > 1 and points[1][0] <= now - RECENT_SECONDS
            if not is_future and not is_old:
                return
            points.popleft()


def _since(then: Counters, now: Counters) -> Counters:
    """Returns the ops since `then`; all ops if the OSD has restarted."""
    if then[1] > now[1]:
        return now
    return now[0] - then[0], now[1] - then[1]
