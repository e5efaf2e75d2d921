"""Virtual time, which only the simulation advances, and its spans and timestamps as text."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from .errors import invalid

#: Where virtual time starts when the state file has no readable timestamp (2026-01-01T00:00:00Z).
DEFAULT_START = 1767225600.0

_SPAN_UNITS = {
    "s": 1, "sec": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
    "w": 604800, "wk": 604800, "week": 604800, "weeks": 604800,
    "mo": 2592000, "month": 2592000, "months": 2592000,
    "y": 31536000, "yr": 31536000, "year": 31536000, "years": 31536000,
}
_SPAN_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)")


class VirtualClock:
    """A call gives the wall clock in seconds since the epoch, as `time.time` does.

    `now` is the monotonic time of the simulation; the wall clock can be set apart from it.
    """

    def __init__(self, start: float = DEFAULT_START) -> None:
        self.start = start
        self.now = start
        #: Seconds that the wall clock is ahead of `now`.
        self.wall_offset = 0.0

    def __call__(self) -> float:
        return self.now + self.wall_offset

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or (negative) back."""
        self.wall_offset += seconds

    def elapsed(self) -> float:
        """Returns the virtual seconds since the simulation began."""
        return self.now - self.start


def parse_timestamp(text: object) -> float:
    """Returns seconds since the epoch of an ISO timestamp (UTC if it has no zone), or the default
    start.
    """
    if not isinstance(text, str):
        return DEFAULT_START
    clean = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text.strip().replace("Z", "+00:00"))
    try:
        moment = datetime.fromisoformat(clean)
    except ValueError:
        return DEFAULT_START
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


def parse_span(text: str) -> float:
    """Returns seconds in a time span such as `90`, `2h`, `1d12h` or `10 min`; StubError if invalid.
    """
    rest = text.strip().lower()
    total = 0.0
    if not rest:
        raise invalid("an empty text is not a time span")
    while rest:
        part = _SPAN_PART.match(rest)
        unit = ""
        if part:
            unit = part.group(2) or "s"
        if part is None or unit not in _SPAN_UNITS:
            raise invalid(f"'{text}' is not a time span such as 90s, 2h or 1d12h")
        total += float(part.group(1)) * _SPAN_UNITS[unit]
        rest = rest[part.end():]
    return total


def format_time(moment: float) -> str:
    """Returns a moment as Ceph stamps it: `2026-01-01T00:00:00.000000+0000`."""
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")


def format_span(seconds: float) -> str:
    """Returns a time span as text: `45s`, `12m`, `3h20m`, `2d5h`."""
    whole = int(round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, _ = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m"
