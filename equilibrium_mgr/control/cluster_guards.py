"""Guards of the whole cluster, in the order in which `status` names them.

These are the time window, `start_delay` and the wait for the built-in balancer, around the guards
of `execution/guards.py` (flags, old clients, no monitor). The window limits only automatic
balancing; the other guards limit all that moves data. A plan that only ends movements, as `freeze`
and `cancel` do, needs nothing but a monitor that keeps it.

The window is in hours and weekdays of the mgr's local time. A window that crosses midnight belongs
to the day of its begin. With begin_time 2200, end_time 0600, begin_weekday 1 and end_weekday 6 it
is open on Saturday until six, and closed on Monday before ten at night. Begins are inclusive and
ends exclusive. If both are equal there is no limit. A time that nobody can read is below 0: such a
window never opens.
"""
from __future__ import annotations

import time
from typing import Callable, Optional, Union

from ..execution.execution import Execution
from ..execution.guards import cluster_guard
from ..execution.outcomes import Verdict
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway
from ..observation.cluster_view import BLOCKED, WAITING
from ..runtime.formatting import format_local, format_time
from ..runtime.waiting import WaitTimer
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot


DAY_MINUTES = 24 * 60


def is_limited(window: Settings) -> bool:
    """Returns True if there are times at which the window is closed."""
    if min(window.begin_time, window.end_time) < 0:
        return True
    if window.begin_time % DAY_MINUTES != window.end_time % DAY_MINUTES:
        return True
    return window.begin_weekday % 7 != window.end_weekday % 7


def is_open(window: Settings, now: float) -> bool:
    """Returns True if the window is open at `now`, in seconds since the epoch."""
    if min(window.begin_time, window.end_time) < 0:
        return False
    local = time.localtime(now)
    minute = local.tm_hour * 60 + local.tm_min
    weekday = (local.tm_wday + 1) % 7
    begin = window.begin_time % DAY_MINUTES
    end = window.end_time % DAY_MINUTES
    if minute < end < begin:   # it has opened the day before
        weekday = (weekday - 1) % 7
    is_day = _is_within(weekday, window.begin_weekday % 7, window.end_weekday % 7)
    return is_day and _is_within(minute, begin, end)


def next_opening(window: Settings, now: float) -> Optional[float]:
    """Returns the time at which a closed window opens, in seconds since the epoch; None if its
    begin or end cannot be read.

    A minute that summer time skips becomes the first one after it.
    """
    today = time.localtime(now)
    for day in range(9):
        for minute in sorted({0, window.begin_time % DAY_MINUTES}):
            moment = time.mktime((today.tm_year, today.tm_mon, today.tm_mday + day, minute // 60,
                                  minute % 60, 0, 0, 0, -1))
            if moment > now and is_open(window, moment):
                return moment
    return None


def _is_within(number: int, begin: int, end: int) -> bool:
    """Returns True if a number of a cycle is in the part from `begin` to `end`; all are if both are
    equal."""
    if begin == end:
        return True
    if begin < end:
        return begin <= number < end
    return number >= begin or number < end


def wait_until(code: str, why: str, now: float, left: float) -> Optional[Verdict]:
    """Returns a wait of `left` seconds from now on, None if it is over. `why`: the sentence
    without the time at its end."""
    if left <= 0.0:
        return None
    # rounded down: it may end within that minute
    until = f"{format_time(now + left)} UTC"
    return Verdict(code, f"{why} {until}", {"until": until}, WAITING, left)


class ClusterGuards:
    """The guards since the mgr became active, which is when `start_delay` begins.

    The built-in balancer reads its option once in a round of its own, and may send one more batch
    after it was switched off. For so long nothing is sent that begins a movement.
    """

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._active_since = clock()
        self._builtin_grace = WaitTimer()

    def check(self, osd_map: Union[Snapshot, ClusterSummary], mon_connected: bool,
              builtin_active: bool, settings: Settings, execution: Optional[Execution],
              drains_only: bool) -> Optional[Verdict]:
        """Returns the first guard that holds, by the newest readings, or None. `drains_only`: the
        next plan only drains OSDs, at any time."""
        self.observe_builtin(builtin_active)
        is_unguarded = execution is not None and execution.is_unguarded
        if not is_unguarded:
            is_named = execution is not None and bool(execution.name)
            guard = None
            if not drains_only and not is_named:
                guard = self._closed(settings)
            guard = guard or self._start_delay(settings)
            if guard is not None:
                return guard
        guard = cluster_guard(osd_map, mon_connected, builtin_active, is_unguarded)
        if guard is not None:
            return guard._replace(state=BLOCKED)
        if is_unguarded:
            return None
        now = self._clock()
        return wait_until(
            codes.CONFLICT, "the built-in balancer may be finishing; nothing is sent before",
            now, self._builtin_grace.seconds_left(now))

    def observe_builtin(self, is_active: bool) -> None:
        """Begins the grace when the built-in balancer is found off after it was on.

        Rounds that check no guard call this as well: an operator may switch it off by hand, and
        equilibrium on a moment later.
        """
        if is_active or not self._gateway.pop_builtin_was_active():
            return
        if not self._builtin_grace.seconds_left(self._clock()):
            self.begin_builtin_grace()

    def begin_builtin_grace(self) -> None:
        """Begins the grace: a balancer that was just switched off may send one more batch."""
        self._builtin_grace.begin(self._clock(), self._gateway.builtin_balancer_sleep())

    def _start_delay(self, settings: Settings) -> Optional[Verdict]:
        now = self._clock()
        self._active_since = min(self._active_since, now)  # if the clock was set back
        return wait_until(
            codes.START_DELAY, "the mgr has only just become active (start_delay); nothing is sent"
            " before", now, settings.start_delay - (now - self._active_since))

    def _closed(self, settings: Settings) -> Optional[Verdict]:
        now = self._clock()
        if is_open(settings, now):
            return None
        outside = "outside the window of automatic balancing"
        opening = next_opening(settings, now)
        if opening is not None:
            at = format_local(opening)
            return Verdict(codes.WINDOW, f"{outside}, which opens at {at}", {"until": at}, WAITING,
                           opening - now)
        option = "end_time" if settings.begin_time >= 0 > settings.end_time else "begin_time"
        return Verdict(
            codes.WINDOW, f"{outside}, which never opens; begin_time or end_time cannot be read",
            {"option": option}, WAITING)
