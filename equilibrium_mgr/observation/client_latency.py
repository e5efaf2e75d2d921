"""How long clients wait at the OSDs of our moves: in the last minutes, and before these moves.

Only shown: other causes lift it as well (a deep scrub a hundredfold), and moves that are in flight
go on whatever is decided.
"""
from __future__ import annotations

from collections import deque
from math import inf
from typing import Callable, Collection, Deque, Dict, Mapping, NamedTuple, Optional, Tuple

#: What counts as the last minutes, in seconds.
RECENT_SECONDS = 300.0
#: Without moves for so many seconds an OSD is quiet: what it does then is what was before the next.
_QUIET_SECONDS = 3600.0
#: OSDs that are read at a look: a sample of them tells as much.
_MOST_OSDS = 50

#: Of all ops of clients since an OSD started: (nanoseconds, ops).
Counters = Tuple[int, int]
_NONE: Counters = (0, 0)


class ClientLatency(NamedTuple):
    """Seconds that an op took on average, by the OSDs' own counters; None where there was none."""

    osds: int                  # whose ops these are
    recent: Optional[float]    # of the last minutes
    before: Optional[float]    # of the time without moves before these: an hour, or since the start


class LatencyWatch:
    """Used by the serve thread, at each look."""

    def __init__(self) -> None:
        #: OSD → when its last move was seen to have arrived, its counters then, and `_before`
        self._quiet: Dict[int, Tuple[float, Counters, Counters]] = {}
        self._before: Dict[int, Counters] = {}   # OSD with moves → its ops while it was quiet
        self._points: Deque[Tuple[float, Mapping[int, Counters]]] = deque()   # the last minutes

    def observe(self, now: float, osds: Collection[int],
                read: Callable[[Collection[int]], Mapping[int, Counters]]
                ) -> Optional[ClientLatency]:
        """The latency at these OSDs, those of our moves in flight; None where there are none. `now`
        in seconds since the epoch. `read` returns the counters of OSDs that have told some."""
        watched = sorted(osds, key=lambda osd: (osd not in self._before, osd))[:_MOST_OSDS]
        found = read({*watched, *self._before})
        self._quiet.update({osd: (now, found.get(osd, _NONE), before)
                            for osd, before in self._before.items() if osd not in watched})
        self._before = {osd: self._before[osd] if osd in self._before else
                        before if 0.0 <= now - at < _QUIET_SECONDS else _since(then, found[osd])
                        for osd in watched if osd in found
                        for at, then, before in (self._quiet.get(osd, (-inf, _NONE, _NONE)),)}
        while self._points and (self._points[-1][0] > now or len(self._points) > 1 and (
                self._points[1][0] <= now - RECENT_SECONDS)):
            self._points.popleft()   # older than the minutes, or the clock was set back
        self._points.append((now, {osd: found[osd] for osd in self._before}))
        ops, taken, usual_ops, usual = 0, 0, 0, 0.0
        for osd, (quiet, quiet_ops) in self._before.items():
            first = next(point[osd] for _, point in self._points if osd in point)
            nanoseconds, count = _since(first, found[osd])
            ops, taken = ops + count, taken + nanoseconds
            if quiet_ops:   # weighed as the OSD counts now
                usual_ops, usual = usual_ops + count, usual + count * quiet / quiet_ops
        return ClientLatency(
            len(self._before), taken / ops / 1e9 if ops else None,
            usual / usual_ops / 1e9 if usual_ops else None) if self._before else None


def _since(then: Counters, now: Counters) -> Counters:
    """What has come since; all of it where the OSD has started anew."""
    return (now[0] - then[0], now[1] - then[1]) if then[1] <= now[1] else now
