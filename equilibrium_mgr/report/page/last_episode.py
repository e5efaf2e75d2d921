"""The last episode of balancing, and the one under way."""
from __future__ import annotations

from typing import Any, Iterator, List, Mapping

from ...runtime.formatting import format_bytes, format_duration, format_percent, format_time
from .markup import LEFT, RIGHT, Html, paragraph, section, table
from .facts.sources import PageFacts

_SHOWN = 5


def history_section(facts: PageFacts) -> Html:
    """The newest episodes, the newest first; entries of older releases lack some figures."""
    status = facts.sources.status
    entries: List[Mapping[str, Any]] = list(status.history[-_SHOWN:])
    if status.episode is not None:
        entries.append(dict(status.episode, outcome="under way", ended_at=None))
    if not entries:
        return section("Last episode", paragraph("Nothing has been moved by equilibrium yet."))
    now = facts.sources.identity.now
    return section("Last episodes", table(
        "Last episodes", ["STARTED (UTC)", "TOOK", "SHARDS", "SENT", "%MAX", "OUTCOME", "WHY"],
        [LEFT, RIGHT, RIGHT, RIGHT, "text", "text", "text"],
        (list(_cells(entry, now)) for entry in reversed(entries))), is_short=True)


def _cells(entry: Mapping[str, Any], now: float) -> Iterator[str]:
    started, ended = entry.get("started_at"), entry.get("ended_at")
    if isinstance(started, (int, float)):
        yield format_time(started)
        yield format_duration((ended if isinstance(ended, (int, float)) else now) - started)
    else:
        yield from ("", "")
    yield str(entry.get("moves", ""))
    sent = entry.get("bytes")
    yield format_bytes(sent) if isinstance(sent, (int, float)) else ""
    yield _maxima(entry.get("max_before"), entry.get("max_after"))
    yield str(entry.get("outcome", ""))
    yield str(entry.get("why", ""))


def _maxima(before: Any, after: Any) -> str:
    """Highest utilizations by device class, as in 'hdd 87.00 → 65.20'."""
    if not isinstance(before, dict):
        return ""
    later = after if isinstance(after, dict) else {}
    return ", ".join(f"{name} {_percent(before[name])}"
                     + (f" → {_percent(later[name])}" if name in later else "")
                     for name in sorted(before))


def _percent(value: Any) -> str:
    return format_percent(value) if isinstance(value, (int, float)) else "?"
