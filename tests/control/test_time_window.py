"""When automatic balancing may send: hours, weekdays, midnight, and clocks that are changed."""
from __future__ import annotations

import math
import time
from typing import Iterator, Tuple

import pytest
from tests.support.tables import rows

from equilibrium_mgr.control.cluster_guards import is_open, next_opening
from equilibrium_mgr.settings import Settings, default_settings


def window_of(begin: int, end: int, begin_weekday: int, end_weekday: int) -> Settings:
    """Times in minutes."""
    return default_settings()._replace(begin_time=begin, end_time=end, begin_weekday=begin_weekday,
                                       end_weekday=end_weekday)


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> float:
    """Local time; 2024-01-07 was a Sunday."""
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M"))


#: begin_weekday, end_weekday → days on which it opens, of which Sunday is 0
WEEKDAYS = rows("""
0 0  0123456
1 6  12345
6 1  06
0 7  0123456
5 7  56
6 7  6
3 4  3
4 3  012456
7 1  0
""")


def is_within(begin: int, end: int, days: str, day: int, minute: int) -> bool:
    """A night belongs to the day on which it begins."""
    today, yesterday = str(day) in days, str((day - 1) % 7) in days
    if begin == end:
        return today
    if begin < end:
        return today and begin <= minute < end
    return today if minute >= begin else yesterday and minute < end


@pytest.mark.parametrize("weekdays, days", WEEKDAYS)
@pytest.mark.parametrize("begin, end", [
    (0, 1440), (720, 720), (540, 1020), (1080, 1440), (1320, 360)])
def test_hours_and_weekdays(begin: int, end: int, weekdays: str, days: str) -> None:
    window = window_of(begin, end, *map(int, weekdays.split()))
    for day in range(7):
        for minute in {0, begin - 1, begin, end - 1, end, 1439} - {-1, 1440}:
            hour = divmod(minute, 60)
            moment = at("2024-01-%02d %02d:%02d" % (7 + day, *hour))
            expected = is_within(begin, end, days, day, minute)
            assert is_open(window, moment) == expected, (day, minute)


@pytest.mark.parametrize("window, text, opening", rows("""
540 1020 0 0   2024-01-08 08:00  2024-01-08 09:00
540 1020 0 0   2024-01-08 18:00  2024-01-09 09:00
1320 360 1 6   2024-01-13 07:00  2024-01-15 22:00
0 1440 3 4     2024-01-11 00:00  2024-01-17 00:00
1080 1440 1 2  2024-01-31 12:00  2024-02-05 18:00
"""))
def test_next_opening(window: str, text: str, opening: str) -> None:
    numbers = map(int, window.split())
    assert next_opening(window_of(*numbers), at(text)) == at(opening)


@pytest.mark.parametrize("day", ["2024-03-30", "2024-10-26"])
def test_summer_time_begins_and_ends(day: str) -> None:
    """Minute by minute through the change: it opens when it was told to, and by local time."""
    window = window_of(150, 240, 0, 0)
    begin, told = at(day + " 00:00"), math.inf
    for minute in range(36 * 60):
        now = begin + 60 * minute
        local = time.localtime(now)
        is_so = is_open(window, now)
        assert is_so is (150 <= local.tm_hour * 60 + local.tm_min < 240)
        if is_so:
            assert now <= told            # never later than it was told
            told = math.inf
        elif minute % 60 == 0:
            told = next_opening(window, now) or now
            assert told > now


@pytest.mark.parametrize("weekdays", [(0, 0), (2, 3), (6, 2)])
def test_every_window_opens_some_time(weekdays: Tuple[int, int]) -> None:
    now = at("2024-10-26 12:00")
    for begin in range(0, 1440, 97):
        for end in range(0, 1441, 120):
            window = window_of(begin, end, *weekdays)
            if is_open(window, now):
                continue
            opening = next_opening(window, now) or now
            assert now < opening <= now + 8 * 86400
            assert is_open(window, opening)
            assert not is_open(window, opening - 60)
