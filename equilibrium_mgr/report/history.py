"""`history`: what was moved, why, and by how much that lowered the highest utilization."""
from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..runtime.formatting import format_bytes, format_duration, table
from .command_answer import CommandAnswer

_UNDER_WAY = "under way"
_HEADER = ("STARTED (UTC)", "PLAN", "TOOK", "PLANS", "MOVES", "BYTES", "MAX UTILISATION", "OUTCOME")


def report_history(entries: Sequence[Mapping[str, Any]], episode: Optional[Mapping[str, Any]],
                   now: float) -> CommandAnswer:
    """Finished episodes and the one under way, the newest last.

    The entries may come from another version of equilibrium: what is missing stays empty.
    """
    episodes: List[Dict[str, Any]] = [dict(entry) for entry in entries]
    if episode is not None:
        episodes.append(dict(episode, plan=episode["plan"] or "automatic", ended_at=None,
                             outcome=_UNDER_WAY, max_after={}))
    if not episodes:
        return CommandAnswer({"episodes": []}, "nothing has been moved yet")
    rows = [_row(entry, now) for entry in episodes]
    whys = [f"  {row[0]}  {entry.get('why', '')}" for row, entry in zip(rows, episodes)]
    return CommandAnswer({"episodes": episodes},
                  "\n".join([table(_HEADER, rows, left=2), "", "why:"] + whys))


def _row(entry: Mapping[str, Any], now: float) -> List[str]:
    started, ended = _number(entry, "started_at"), _number(entry, "ended_at")
    if ended is None and entry.get("outcome") == _UNDER_WAY:
        ended = now
    moved = _number(entry, "bytes")
    return [
        "" if started is None else datetime.fromtimestamp(started, timezone.utc).strftime(
            "%Y-%m-%d %H:%M"),
        str(entry.get("plan", "")),
        "" if started is None or ended is None else format_duration(ended - started),
        str(entry.get("plans", "")), str(entry.get("moves", "")),
        "" if moved is None else format_bytes(moved),
        _maxima(entry.get("max_before"), entry.get("max_after")), str(entry.get("outcome", ""))]


def _maxima(before: Any, after: Any) -> str:
    """Highest utilizations by device class, as in 'hdd 0.870 -> 0.652'."""
    if not isinstance(before, dict):
        return ""
    later = after if isinstance(after, dict) else {}
    return ", ".join(
        f"{name} {_ratio(before[name])}" + (f" -> {_ratio(later[name])}" if name in later else "")
        for name in sorted(before))


def _ratio(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, (int, float)) else "?"


def _number(entry: Mapping[str, Any], key: str) -> Optional[float]:
    value = entry.get(key)
    return float(value) if isinstance(value, (int, float)) else None
