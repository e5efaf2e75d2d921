"""When automatic balancing may send: hours, weekdays, midnight, and clocks that are changed."""
from __future__ import annotations

import time
from typing import Any, Iterator, List

import pytest

from equilibrium_mgr.control.cluster_guards import is_open, next_opening
from equilibrium_mgr.settings import Settings, default_settings


def window_of(begin: int, end: int, begin_weekday: int, end_weekday: int) -> Settings:
    """Times in minutes."""
    return default_settings()._replace(begin_time=begin, end_time=end, begin_weekday=begin_weekday,
                                       end_weekday=end_weekday)


ALWAYS = window_of(0, 1440, 0, 0)
DAY = window_of(9 * 60, 17 * 60, 0, 0)
NIGHT = window_of(22 * 60, 6 * 60, 0, 0)
WEEKDAY_NIGHTS = window_of(22 * 60, 6 * 60, 1, 6)     # Monday to Friday


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


@pytest.mark.parametrize("window, text, is_so", [
    (ALWAYS, "2024-01-07 00:00", True), (ALWAYS, "2024-01-10 23:59", True),
    (window_of(720, 720, 3, 3), "2024-01-10 11:59", True),
    (DAY, "2024-01-08 08:59", False), (DAY, "2024-01-08 09:00", True),
    (DAY, "2024-01-08 16:59", True), (DAY, "2024-01-08 17:00", False),
    (window_of(18 * 60, 1440, 0, 0), "2024-01-08 23:59", True),
    (window_of(18 * 60, 1440, 0, 0), "2024-01-08 00:00", False),
    (NIGHT, "2024-01-08 21:59", False), (NIGHT, "2024-01-08 22:00", True),
    (NIGHT, "2024-01-08 00:00", True), (NIGHT, "2024-01-08 05:59", True),
    (NIGHT, "2024-01-08 06:00", False)])
def test_hours(window: Settings, text: str, is_so: bool) -> None:
    assert is_open(window, at(text)) is is_so


@pytest.mark.parametrize("begin, end, days", [
    (0, 0, [0, 1, 2, 3, 4, 5, 6]), (1, 6, [1, 2, 3, 4, 5]), (6, 1, [0, 6]), (0, 7, list(range(7))),
    (5, 7, [5, 6]), (6, 7, [6]), (3, 4, [3]), (4, 3, [0, 1, 2, 4, 5, 6]), (7, 1, [0])])
def test_weekdays(begin: int, end: int, days: List[int]) -> None:
    window = window_of(0, 1440, begin, end)
    assert [day for day in range(7)
            if is_open(window, at(f"2024-01-{7 + day:02} 12:00"))] == days


@pytest.mark.parametrize("text, is_so", [
    ("2024-01-12 23:00", True),      # Friday
    ("2024-01-13 05:00", True),      # Saturday, in the night that began on Friday
    ("2024-01-13 22:30", False), ("2024-01-14 05:00", False),
    ("2024-01-15 05:00", False),     # Monday, in the night that began on Sunday
    ("2024-01-15 22:00", True)])
def test_night_belongs_to_the_day_on_which_it_begins(text: str, is_so: bool) -> None:
    assert is_open(WEEKDAY_NIGHTS, at(text)) is is_so


@pytest.mark.parametrize("window, text, opening", [
    (DAY, "2024-01-08 08:00", "2024-01-08 09:00"), (DAY, "2024-01-08 18:00", "2024-01-09 09:00"),
    (WEEKDAY_NIGHTS, "2024-01-13 07:00", "2024-01-15 22:00"),
    (window_of(0, 1440, 3, 4), "2024-01-11 00:00", "2024-01-17 00:00"),
    (window_of(18 * 60, 1440, 1, 2), "2024-01-31 12:00", "2024-02-05 18:00")])
def test_next_opening(window: Settings, text: str, opening: str) -> None:
    assert next_opening(window, at(text)) == at(opening)


@pytest.mark.parametrize("day", ["2024-03-30", "2024-10-26"])
def test_summer_time_begins_and_ends(day: str) -> None:
    """Minute by minute through the change: it opens when it was told to, and by local time."""
    window = window_of(2 * 60 + 30, 4 * 60, 0, 0)
    moment, told = at(day + " 00:00"), None
    for minute in range(36 * 60):
        now = moment + 60 * minute
        local = time.localtime(now)
        assert is_open(window, now) is (150 <= local.tm_hour * 60 + local.tm_min < 240)
        if told is not None and is_open(window, now):
            assert now <= told            # never later than it was told
            told = None
        elif not is_open(window, now) and minute % 60 == 0:
            told = next_opening(window, now)
            assert told is not None and told > now


def test_every_window_opens_some_time(monkeypatch: Any) -> None:
    now = at("2024-10-26 12:00")
    for begin in range(0, 1440, 97):
        for end in range(0, 1441, 120):
            for days in ((0, 0), (2, 3), (6, 2)):
                window = window_of(begin, end, *days)
                opening = next_opening(window, now)
                assert is_open(window, now) or (
                    opening is not None and now < opening <= now + 8 * 86400
                    and is_open(window, opening) and not is_open(window, opening - 60))
