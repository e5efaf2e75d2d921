"""Guards of the whole cluster, in the order in which `status` names them.

The time window binds automatic balancing alone; the rest binds whatever wants to move data. A plan
that moves none needs no more than a monitor that keeps it.
"""
from __future__ import annotations

from typing import Callable, Mapping, Optional, Union

from ..execution.execution import Execution
from ..execution.guards import cluster_guard
from ..execution.verdict import Verdict
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway
from ..observation.states import BLOCKED, WAITING
from ..runtime.formatting import format_deadline, format_local
from ..runtime.wait_timer import WaitTimer
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot, UpmapItems
from .time_window import is_open, next_opening, window_of


class ClusterGuards:
    """Made when the mgr becomes active, which is when `start_delay` begins.

    After the built-in balancer was switched off nothing is sent for one round of its own, as it
    reads its option once a round and may send one more batch. Upmap items that somebody else adds
    begin that wait anew. Items that disappear do not: the monitor removes those of a purged OSD or
    a deleted pool by itself.
    """

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._active_since = clock()
        self._builtin_grace = WaitTimer()
        self._items: Optional[Mapping[str, UpmapItems]] = None   # of the last map

    def check(self, osd_map: Union[Snapshot, ClusterSummary], mon_connected: bool, builtin_active: bool,
              settings: Settings, execution: Optional[Execution],
              drains_only: bool) -> Optional[Verdict]:
        """Returns the first guard that holds by what has just been read, or None. `drains_only`:
        what is to be planned drains OSDs, at any time."""
        self.observe_builtin(builtin_active)
        is_motionless = execution is not None and execution.is_motionless
        if not is_motionless:
            is_named = execution is not None and bool(execution.name)
            guard = (None if drains_only or is_named else self._closed(settings)) or (
                self._start_delay(settings))
            if guard is not None:
                return guard
        guard = cluster_guard(osd_map, mon_connected, builtin_active, is_motionless)
        if guard is not None:
            return guard._replace(state=BLOCKED)
        now = self._clock()
        left = 0.0 if is_motionless else self._builtin_grace.peek_seconds_left(now)
        if left > 0.0:
            until = format_deadline(now + left)
            return Verdict(
                codes.CONFLICT, "the built-in balancer may be finishing; nothing is sent before"
                f" {until}", {"until": until}, WAITING, left)
        return None

    def observe_builtin(self, is_active: bool) -> None:
        """Begins the grace where the built-in balancer is seen off for the first time, also in
        rounds that check no guard: an operator may switch it off by hand, and equilibrium on a
        moment later."""
        if not is_active and self._gateway.pop_builtin_was_active() and not (
                self._builtin_grace.peek_seconds_left(self._clock())):
            self.begin_builtin_grace()

    def begin_builtin_grace(self) -> None:
        """Begins the grace: a balancer that was just switched off may send one more batch."""
        self._builtin_grace.begin(self._clock(), self._gateway.builtin_balancer_sleep())

    def observe_items(self, items: Mapping[str, UpmapItems], are_ours: bool = False) -> None:
        """Takes in the upmap items of a newer map: the built-in balancer may have added some.
        `are_ours`: they are those after a batch of our own."""
        before = self._items
        if not are_ours and self._builtin_grace.begun and before is not None:
            if any(pairs != before.get(pgid) and not set(pairs) <= set(before.get(pgid, ()))
                   for pgid, pairs in items.items()):
                self.begin_builtin_grace()
            else:
                self._builtin_grace.seconds_left(self._clock())   # ends it where it is over
        self._items = items

    def _start_delay(self, settings: Settings) -> Optional[Verdict]:
        now = self._clock()
        self._active_since = min(self._active_since, now)  # the clock may have been set back
        left = settings.start_delay - (now - self._active_since)
        if left > 0.0:
            until = format_deadline(now + left)
            return Verdict(
                codes.START_DELAY, "the mgr has only just become active (start_delay); nothing is"
                f" sent before {until}", {"until": until}, WAITING, left)
        return None

    def _closed(self, settings: Settings) -> Optional[Verdict]:
        window = window_of(settings)
        now = self._clock()
        if is_open(window, now):
            return None
        outside, opening = "outside the window of automatic balancing", next_opening(window, now)
        if opening is None:
            unreadable = min(settings.begin_time, settings.end_time) < 0
            why = "; begin_time or end_time cannot be read" if unreadable else ""
            return Verdict(codes.WINDOW, f"{outside}, which never opens{why}", {
                "option": "end_time" if settings.begin_time >= 0 > settings.end_time
                          else "begin_time"}, WAITING)
        at = format_local(opening)
        return Verdict(codes.WINDOW, f"{outside}, which opens at {at}", {"until": at}, WAITING,
                       opening - now)
