"""The time window of automatic balancing: hours and weekdays in the local time of the mgr.

A window that crosses midnight belongs to the day on which it begins: with 2200 to 0600 and the
weekdays Monday to Friday it is open on Saturday until six and closed on Monday before ten at night.
"""
from __future__ import annotations

import time
from typing import NamedTuple, Optional

from ..settings import Settings

DAY_MINUTES = 24 * 60


class Window(NamedTuple):
    """Begins are inclusive and ends exclusive; where both are equal there is no limit.

    A negative minute is a time that nobody can read: such a window never opens.
    """

    begin_minute: int    # of the local day, 0 to 1440
    end_minute: int      # of the local day, 0 to 1440; before the begin: on the next day
    begin_weekday: int   # 0 is Sunday
    end_weekday: int


def window_of(settings: Settings) -> Window:
    """The window that the options set."""
    return Window(settings.begin_time, settings.end_time, settings.begin_weekday,
                  settings.end_weekday)


def is_limited(window: Window) -> bool:
    """True where there are times at which the window is closed."""
    return (window.begin_minute % DAY_MINUTES != window.end_minute % DAY_MINUTES
            or window.begin_weekday % 7 != window.end_weekday % 7
            or min(window.begin_minute, window.end_minute) < 0)


def is_open(window: Window, now: float) -> bool:
    """True where moves may be sent at `now`, in seconds since the epoch."""
    if min(window.begin_minute, window.end_minute) < 0:
        return False
    local = time.localtime(now)
    minute, weekday = local.tm_hour * 60 + local.tm_min, (local.tm_wday + 1) % 7
    begin, end = window.begin_minute % DAY_MINUTES, window.end_minute % DAY_MINUTES
    if begin == end:
        return _on_day(window, weekday)
    if begin < (end or DAY_MINUTES):
        return begin <= minute < (end or DAY_MINUTES) and _on_day(window, weekday)
    if minute >= begin:
        return _on_day(window, weekday)
    return minute < end and _on_day(window, (weekday - 1) % 7)


def next_opening(window: Window, now: float) -> Optional[float]:
    """Returns the time at which a closed window opens, in seconds since the epoch; None if
    never. A minute that summer time skips becomes the first one after it."""
    today = time.localtime(now)
    for day in range(9):
        for minute in sorted({0, window.begin_minute % DAY_MINUTES}):
            moment = time.mktime((today.tm_year, today.tm_mon, today.tm_mday + day, minute // 60,
                                  minute % 60, 0, 0, 0, -1))
            if moment > now and is_open(window, moment):
                return moment
    return None


def _on_day(window: Window, weekday: int) -> bool:
    begin, end = window.begin_weekday % 7, window.end_weekday % 7
    if begin == end:
        return True
    if begin < end:
        return begin <= weekday < end
    return weekday >= begin or weekday < end
