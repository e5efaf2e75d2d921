"""Guards of the whole cluster, in the order in which `status` names them.

The time window binds automatic balancing alone; the rest binds whatever wants to move data. A plan
that moves none needs no more than a monitor that keeps it.
"""
from __future__ import annotations

from typing import Callable, Mapping, Optional

from ..execution.execution import Execution
from ..execution.guards import cluster_guard
from ..execution.verdict import Verdict
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway
from ..observation.states import BLOCKED, WAITING
from ..runtime.formatting import format_deadline, format_local
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot, UpmapItems
from .builtin_balancer_grace import BuiltinBalancerGrace
from .time_window import is_open, next_opening, window_of


class ClusterGuards:
    """Made when the mgr becomes active, which is when `start_delay` begins."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._active_since = clock()
        self.builtin_grace = BuiltinBalancerGrace()

    def check(self, summary: ClusterSummary, settings: Settings, execution: Optional[Execution],
              drains_only: bool = False) -> Optional[Verdict]:
        """Returns the first guard that holds by a summary, or None. Guards that need a snapshot are
        left to `check_snapshot`. `drains_only`: what is to be planned drains OSDs, at any time."""
        self._note_builtin(summary.builtin_active)
        is_motionless = _is_motionless(execution)
        return self._time_guard(settings, execution, drains_only) or self._cluster_guard(
            cluster_guard(summary, summary.mon_connected, summary.builtin_active, is_motionless),
            0.0 if is_motionless else self.builtin_grace.peek_seconds_left(self._clock()))

    def check_snapshot(self, snapshot: Snapshot, settings: Settings,
                       execution: Optional[Execution],
                       drains_only: bool = False) -> Optional[Verdict]:
        """Returns the first guard that holds by a snapshot that has just been taken, or None."""
        builtin_active = self._gateway.builtin_balancer_active()
        self._note_builtin(builtin_active)
        is_motionless = _is_motionless(execution)
        return self._time_guard(settings, execution, drains_only) or self._cluster_guard(
            cluster_guard(snapshot, self._gateway.have_mon_connection(), builtin_active,
                          is_motionless),
            0.0 if is_motionless else self.builtin_grace.seconds_left(self._clock()))

    def observe_builtin(self) -> None:
        """Records whether the built-in balancer is on, in rounds that check no guard: an operator
        may switch it off by hand, and equilibrium on a moment later."""
        self._note_builtin(self._gateway.builtin_balancer_active())

    def begin_builtin_grace(self) -> None:
        """Begins the grace: a balancer that was just switched off may send one more batch."""
        self.builtin_grace.begin(self._clock(), self._gateway.builtin_balancer_sleep())

    def observe_items(self, items: Mapping[str, UpmapItems]) -> None:
        """Takes in the upmap items of a newer map: the built-in balancer may have added some."""
        self.builtin_grace.observe(items, self._clock(), self._gateway.builtin_balancer_sleep())

    def _note_builtin(self, is_active: bool) -> None:
        """Begins the grace where the built-in balancer is seen off for the first time."""
        if not is_active and self._gateway.pop_builtin_was_active() and not (
                self.builtin_grace.peek_seconds_left(self._clock())):
            self.begin_builtin_grace()

    def _time_guard(self, settings: Settings, execution: Optional[Execution],
                    drains_only: bool) -> Optional[Verdict]:
        """Returns the guard that the time window or `start_delay` sets, or None."""
        if _is_motionless(execution):
            return None
        if not drains_only and (execution is None or not execution.name):
            closed = self._closed(settings)
            if closed is not None:
                return closed
        now = self._clock()
        self._active_since = min(self._active_since, now)  # the clock may have been set back
        left = settings.start_delay - (now - self._active_since)
        if left > 0.0:
            until = format_deadline(now + left)
            return Verdict(
                codes.START_DELAY, "the mgr has only just become active (start_delay); nothing is"
                f" sent before {until}", {"until": until}, WAITING, left)
        return None

    def _cluster_guard(self, guard: Optional[Verdict],
                       grace_seconds: float) -> Optional[Verdict]:
        if guard is not None:
            return guard._replace(state=BLOCKED)
        if grace_seconds > 0.0:
            until = format_deadline(self._clock() + grace_seconds)
            return Verdict(
                codes.CONFLICT, "the built-in balancer may be finishing; nothing is sent before"
                f" {until}", {"until": until}, WAITING, grace_seconds)
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


def _is_motionless(execution: Optional[Execution]) -> bool:
    return execution is not None and execution.is_motionless
