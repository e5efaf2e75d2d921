"""The limits in force: what keeps moves slow, small or away."""
from __future__ import annotations

import time
from typing import Any, Iterator, List

from ...plan.options import effective_fill_limit
from ...runtime.formatting import format_duration, format_percent
from ...settings import OPTIONS, Settings
from .markup import Html, section, table
from .facts.sources import PageFacts

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
#: Options that limit moves, in the order of the table. The window has a row of its own.
_LIMITS = ("max_misplaced_ratio", "max_backfills_per_osd", "max_transit_ratio",
           "max_moves_per_round", "fill_limit", "max_upmap_items", "pg_cooldown", "min_gain",
           "start_delay", "max_wait", "relieve_while_degraded", "respect_weights", "pool_ids",
           "device_classes", "from_buckets", "to_buckets", "not_buckets")
_NAMES_SHOWN = 10
_UNLIMITED = frozenset(("max_backfills_per_osd", "max_transit_ratio", "max_upmap_items"))


def limits_section(facts: PageFacts) -> Html:
    """Options with the values that hold now."""
    rows = list(_rows(facts))
    return section("Limits in force", table(
        "Limits in force", ["OPTION", "IN FORCE", "WHAT IT LIMITS"], ["text", "text", "text"],
        rows), is_short=True)


def _rows(facts: PageFacts) -> Iterator[List[str]]:
    settings = facts.sources.settings
    descriptions = {option["name"]: option["desc"] for option in OPTIONS}
    for name in _LIMITS:
        value = _in_force(name, getattr(settings, name), facts)
        default = next(option["default"] for option in OPTIONS if option["name"] == name)
        given = facts.sources.option(name)
        changed = given is not None and given != default
        yield [_breakable(name), value + (" (set)" if changed else ""), descriptions[name]]
    yield [_breakable("begin_time, end_time"), _window(settings, facts.sources.identity.now),
           "when automatic moves are sent; 'execute' does not mind it"]


def _breakable(name: str) -> Html:
    """An option's name that a narrow column may break at its underscores."""
    return Html("_<wbr>".join(name.split("_")))


def _in_force(name: str, value: Any, facts: PageFacts) -> str:
    if name == "max_misplaced_ratio":
        return f"{format_percent(facts.view.max_misplaced_ratio)}%"
    if name == "fill_limit":
        ratio = effective_fill_limit(value, facts.view.snapshot.backfillfull_ratio)
        return f"{format_percent(ratio)}%"
    if name == "pool_ids" and value is not None:
        pools = facts.view.snapshot.pools
        return _listed([pools[pool].name for pool in sorted(value) if pool in pools])
    if name == "not_buckets" and value is None:
        return "none"
    if name in ("pool_ids", "device_classes", "from_buckets", "to_buckets", "not_buckets"):
        return "all" if value is None else _listed(sorted(value))
    if name == "max_upmap_items" and 0.0 < value <= 1.0:
        return f"{value:g} per PG"
    if name in ("pg_cooldown", "start_delay", "max_wait"):
        return format_duration(value)
    if name in _UNLIMITED and not value:
        return "no limit"
    if name in ("max_transit_ratio", "min_gain"):
        return f"{format_percent(value)}%"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}"


def _listed(names: List[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    shown = ", ".join(names[:_NAMES_SHOWN]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown


def _window(settings: Settings, now: float) -> str:
    zone = time.strftime("%Z", time.localtime(now))
    if min(settings.begin_time, settings.end_time) < 0:
        return "never: a time cannot be read"
    hours = "at any time"
    if settings.begin_time % 1440 != settings.end_time % 1440:
        hours = f"{_clock(settings.begin_time)} to {_clock(settings.end_time)} {zone}"
    begin, end = settings.begin_weekday % 7, settings.end_weekday % 7
    if begin == end:
        return hours
    return f"{hours}, from {_DAYS[begin]} to {_DAYS[(end - 1) % 7]}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
