"""`history`: the balancing runs, why they began, and the maxima before and after them.

Entries come from the store, where they may be damaged: a value that cannot be read is unknown.

Also the event of Ceph's progress module for a balancing run: one each, in bytes, until it ends.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ..control.journal import (
    ARRIVED, COMPLETED, INTERRUPTED, STOPPED, UNKNOWN, outcome_code, outcome_reason)
from ..control.status import BalancerStatus
from ..observation.cluster_view import STUCK
from ..runtime.formatting import (
    format_bytes, format_duration, format_percent, format_time, plural, wrap)
from .answer import CommandAnswer, Row, limited_rows, render_table
from .cluster.cluster_tables import Columns, cells_of

DEFAULT_LIMIT = 20
UNDER_WAY = "under way"
_INDENT = 4
_HEAD = "STARTED (UTC)|TOOK|SHARDS|SENT|CLASS<|%MAX|OUTCOME<"
_COLUMNS: Columns = {   # of a balancing run; the others are of a device class
    "started_at": format_time,
    "took_seconds": format_duration,
    "shards": str,
    "bytes": format_bytes}


def report_history(entries: Sequence[Mapping[str, Any]], episode: Optional[Mapping[str, Any]],
                   now: float, limit: Optional[int] = None) -> CommandAnswer:
    """Returns the newest `limit` balancing runs, the newest last. `episode`: the one under way, if
    any."""
    found = [episode_json(entry, now) for entry in entries]
    if episode is not None:
        found.append(episode_json(episode, now, UNDER_WAY))
    if limit is None:
        limit = DEFAULT_LIMIT
    shown = limited_rows(found[::-1], limit)[::-1]
    total = len(found)
    data = {"episodes": shown, "total": total}
    if not shown:
        return CommandAnswer(data, "nothing has been moved yet")
    lines = ["%MAX: the fullest OSD of the class, before -> after, as OSDs reported it",
             "SHARDS, SENT: moves sent as upmaps; if a plan was stopped, fewer may arrive;",
             "  shards that were steered or held are not counted"]
    if len(shown) < total:
        earlier = plural(total - len(shown), "earlier episode")
        lines.append(f"... {earlier}; --limit {total} shows all")
    blocks = [_rows(entry) for entry in shown]
    rows = iter(render_table(_HEAD, sum(blocks, [])).split("\n"))
    lines += ["", next(rows)]
    for entry, block in zip(shown, blocks):
        lines += [next(rows) for _ in block]
        for note in _notes(entry):
            lines += wrap("", note, _INDENT)
    return CommandAnswer(data, "\n".join(lines))


def _notes(entry: Row) -> List[str]:
    """Returns the sentences below the rows of a balancing run."""
    notes = [f"{entry['plan']}: {entry['why'] or 'reason not known'}"]
    if entry["outcome_reason"]:
        notes.append(f"{entry['outcome']}: {entry['outcome_reason']}")
    if entry["measured"] != INTERRUPTED:
        return notes
    notes.append("the maximum after it is of when it ended, while data was still moving or being"
                 " deleted")
    return notes


def episode_json(entry: Mapping[str, Any], now: float, outcome: str = "") -> Row:
    """Returns an entry of the history with all keys; None is unknown.

    Times are epoch seconds, and maxima are ratios. `shards` and `bytes` were sent; they may not
    have arrived. `outcome`: of a balancing run that is under way; else the entry has it.
    """
    started = _number(entry, "started_at")
    ended = _number(entry, "ended_at")
    until = now
    reason = measured = took = None
    if not outcome:
        stored = entry.get("outcome")
        if not isinstance(stored, str):
            stored = ""
        until = ended
        outcome = outcome_code(stored)
        reason = outcome_reason(stored) or None
        measured = entry.get("measured")
        if measured not in (ARRIVED, INTERRUPTED):
            measured = UNKNOWN
    if started is not None and until is not None:
        took = max(0.0, until - started)
    return {
        "plan": str(entry.get("plan") or "automatic"),
        "why": str(entry.get("why", "")),
        "started_at": started,
        "ended_at": ended,
        "took_seconds": took,
        "outcome": outcome,
        "outcome_reason": reason,
        "shards": _number(entry, "moves"),
        "bytes": _number(entry, "bytes"),
        "classes": _classes_json(entry),
        "measured": measured}


def _classes_json(entry: Mapping[str, Any]) -> List[Row]:
    """Returns the highest utilization of each device class, before and after."""
    before = _ratios(entry, "max_before")
    after = _ratios(entry, "max_after")
    return [{"device_class": name,
             "max_before": before.get(name),
             "max_after": after.get(name)}
            for name in sorted({*before, *after})]


def _ratios(entry: Mapping[str, Any], key: str) -> Dict[str, float]:
    found = entry.get(key)
    if not isinstance(found, dict):
        return {}
    return {str(name): float(ratio) for name, ratio in found.items()
            if isinstance(ratio, (int, float))}


def _rows(entry: Row) -> List[List[str]]:
    """Returns one line for each device class, the first with the figures of the balancing run."""
    rows = []
    for figures in entry["classes"]:
        maxima = format_percent(figures["max_before"]) or "?"
        if entry["outcome"] != UNDER_WAY:
            maxima += f" -> {format_percent(figures['max_after']) or '?'}"
        rows.append([*_UNKNOWN, figures["device_class"], maxima, ""])
    if not rows:
        rows.append([*_UNKNOWN, "", "", ""])
    rows[0][:4], = cells_of([entry], _COLUMNS)
    rows[0][-1] = entry["outcome"]
    return rows


_UNKNOWN = ("", "", "", "")


def _number(entry: Mapping[str, Any], key: str) -> Any:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value


#: Ceph never shows the event of a run under way as complete, because another plan may follow.
_HIGHEST_RATIO = 0.99


class ProgressEvents:
    """Shows the balancing run under way; used by the serve thread, once a round.

    `update`: (event id, message, progress as a ratio). `end`: (event id, why it failed; None if it
    is complete).

    The id of an event comes from the begin of the run, which is stored, so that the next mgr
    continues the event. Its progress never falls: the highest is stored with the run.
    """

    def __init__(self, update: Callable[[str, str, float], None],
                 end: Callable[[str, Optional[str]], None]) -> None:
        self._update = update
        self._end = end
        self._shown_of: Optional[float] = None   # begin of the run whose event is shown

    def report(self, status: BalancerStatus, failure: str = "") -> None:
        """Updates, begins or ends the event. `failure`: why the round failed, or empty."""
        episode = status.episode
        shown = self._shown_of
        ratio = status.progress_ratio()
        started_at = None if episode is None else episode["started_at"]
        if shown is not None and (failure or started_at != shown):
            self._shown_of = None
            self._end(f"equilibrium-{shown:.3f}", failure or _why_failed(status, shown))
            return   # one call a round
        if failure or episode is None or ratio is None:
            return
        message = "equilibrium: automatic balancing"
        if episode["plan"]:
            message = f"equilibrium: plan {episode['plan']}"
        self._shown_of = started_at
        self._update(f"equilibrium-{started_at:.3f}", message,
                     min(max(ratio, episode["progress"]), _HIGHEST_RATIO))


def _why_failed(status: BalancerStatus, started_at: float) -> Optional[str]:
    """Returns the outcome of a balancing run as Ceph's event shows it; None if it is complete or
    nothing more can be moved."""
    outcome = STOPPED
    for entry in status.history:
        if entry.get("started_at") == started_at:
            outcome = str(entry.get("outcome", ""))
    if outcome_code(outcome) in (COMPLETED, STUCK):
        return None
    return outcome
