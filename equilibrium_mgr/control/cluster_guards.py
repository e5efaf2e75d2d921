"""What keeps everything from being sent, in the order in which `status` names it.

The window binds automatic balancing alone; the rest binds whatever wants to move data.
"""
from __future__ import annotations

import time
from typing import Callable, NamedTuple, Optional

from ..execution.guards import cluster_guard
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway
from ..observation.states import BLOCKED, WAITING
from ..runtime.formatting import format_time
from ..settings import Settings
from ..snapshot.model import Snapshot
from .builtin_balancer_grace import BuiltinBalancerGrace
from .time_window import Window, is_open, next_opening


class ActiveGuard(NamedTuple):
    """Why nothing goes now."""

    state: str
    reason: str
    seconds: Optional[float] = None   # after which it is over, where that is known


class ClusterGuards:
    """Made when the mgr becomes active."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._active_since = clock()
        self.builtin_grace = BuiltinBalancerGrace()

    def check(self, summary: ClusterSummary, settings: Settings,
              automatic: bool) -> Optional[ActiveGuard]:
        """The first reason, or None; all but what only a full look can tell."""
        self._note_builtin(summary.builtin_active)
        return self._waits(settings, automatic) or self._guard(
            cluster_guard(summary, summary.mon_connected, summary.builtin_active),
            self.builtin_grace.peek_seconds_left(self._clock()))

    def check_snapshot(self, snapshot: Snapshot, settings: Settings,
                      automatic: bool) -> Optional[ActiveGuard]:
        """As `stops`, after a full look."""
        builtin_active = self._gateway.builtin_balancer_active()
        self._note_builtin(builtin_active)
        return self._waits(settings, automatic) or self._guard(
            cluster_guard(snapshot, self._gateway.have_mon_connection(), builtin_active),
            self.builtin_grace.seconds_left(self._clock()))

    def observe_builtin(self) -> None:
        """For rounds in which nothing is asked: an operator may switch the built-in balancer off by
        hand, and equilibrium on a moment later."""
        self._note_builtin(self._gateway.builtin_balancer_active())

    def _note_builtin(self, is_active: bool) -> None:
        """The wait begins when the built-in balancer is first seen off, whoever switched it off."""
        if not is_active and self._gateway.pop_builtin_was_active() and not (
                self.builtin_grace.peek_seconds_left(self._clock())):
            self.builtin_grace.begin(self._clock(), self._gateway.builtin_balancer_sleep())

    def _waits(self, settings: Settings, automatic: bool) -> Optional[ActiveGuard]:
        if automatic:
            closed = self._closed(settings)
            if closed is not None:
                return closed
        now = self._clock()
        self._active_since = min(self._active_since, now)  # the clock may have been set back
        left = settings.start_delay - (now - self._active_since)
        if left > 0.0:
            return ActiveGuard(WAITING, "the mgr has only just become active (start_delay);"
                        " nothing is sent before %s" % format_time(now + left), left)
        return None

    def _guard(self, guard: Optional[str], hold_seconds: float) -> Optional[ActiveGuard]:
        if guard is not None:
            return ActiveGuard(BLOCKED, guard)
        if hold_seconds > 0.0:
            return ActiveGuard(WAITING, "the built-in balancer may be finishing; nothing is sent before %s"
                        % format_time(self._clock() + hold_seconds), hold_seconds)
        return None

    def _closed(self, settings: Settings) -> Optional[ActiveGuard]:
        window = Window(settings.begin_time, settings.end_time, settings.begin_weekday,
                        settings.end_weekday)
        now = self._clock()
        if is_open(window, now):
            return None
        opening = next_opening(window, now)
        if opening is None:
            unreadable = min(settings.begin_time, settings.end_time) < 0
            return ActiveGuard(WAITING, "outside the window of automatic balancing, which never opens%s"
                        % ("; begin_time or end_time cannot be read" if unreadable else ""))
        said = time.strftime("%Y-%m-%d %H:%M", time.localtime(opening))
        return ActiveGuard(WAITING, f"outside the window of automatic balancing, which opens at {said}",
                    opening - now)
