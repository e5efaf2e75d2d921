"""`history`: what was moved, why, what that was to lead to, and what OSDs reported after it.

Entries come from the store, where they may be garbled: what cannot be read is unknown.

The event of Ceph's progress module that shows an episode: one each, in bytes, until it ends.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..control.journal import (
    ARRIVED, COMPLETED, INTERRUPTED, STOPPED, UNKNOWN, outcome_code, outcome_reason)
from ..control.status import BalancerStatus
from ..observation.cluster_view import STUCK
from ..runtime.formatting import (
    format_bytes, format_duration, format_percent, format_time, plural, wrap)
from .answer import CommandAnswer, limited_rows, render_table

DEFAULT_LIMIT = 20
UNDER_WAY = "under way"
_INDENT = 4


def report_history(entries: Sequence[Mapping[str, Any]], episode: Optional[Mapping[str, Any]],
                   now: float, limit: Optional[int] = None) -> CommandAnswer:
    """Ended episodes and the one under way, the newest last: the newest `limit` of them."""
    found = [episode_json(entry, now) for entry in entries]
    if episode is not None:
        found.append(episode_json(dict(episode, automatic=not episode["plan"]), now, UNDER_WAY))
    shown = limited_rows(found[::-1], DEFAULT_LIMIT if limit is None else limit)[::-1]
    data = {"episodes": shown, "total": len(found)}
    if not shown:
        return CommandAnswer(data, "nothing has been moved yet")
    lines = ["%MAX: the fullest OSD of the class, before -> after, as OSDs reported it",
             "SHARDS, SENT: what upmaps were sent for; of what is stopped less may arrive"]
    if len(shown) < len(found):
        lines.append(f"... {plural(len(found) - len(shown), 'earlier episode')};"
                     f" --limit {len(found)} shows all")
    rows = [_rows(entry) for entry in shown]
    table = render_table("STARTED (UTC)|TOOK|SHARDS|SENT|CLASS<|%MAX|OUTCOME<",
                         [row for block in rows for row in block]).split("\n")
    lines += ["", table.pop(0)]
    for entry, block in zip(shown, rows):
        lines += [table.pop(0) for _ in block]
        predicted = [f"{figures['device_class']} {format_percent(figures['max_predicted'])}"
                     for figures in entry["classes"] if figures["max_predicted"] is not None]
        for holds, part in (
                (True, f"{entry['plan']}: {entry['why'] or 'reason not known'}"),
                (entry["outcome_reason"], f"{entry['outcome']}: {entry['outcome_reason']}"),
                (entry["measured"] == INTERRUPTED, "the maximum after it is of when it ended, while"
                 " data was still moving or being deleted"),
                (predicted and entry["measured"] == INTERRUPTED,
                 f"%MAX when all has arrived: {', '.join(predicted)}")):
            lines += wrap("", part, _INDENT) if holds else ()
    return CommandAnswer(data, "\n".join(lines))


def episode_json(entry: Mapping[str, Any], now: float, outcome: str = "") -> Dict[str, Any]:
    """An entry of the history, all keys, None for what is unknown. Times are epoch seconds,
    maxima are ratios; `shards` and `bytes` are what was sent, arrived or not."""
    words = entry.get("outcome") if isinstance(entry.get("outcome"), str) else ""
    started, ended = _number(entry, "started_at"), _number(entry, "ended_at")
    until = now if outcome else ended
    measured = entry.get("measured")
    # the highest utilization of each device class
    maxima = {key: {str(name): float(ratio) for name, ratio in found.items()
                    if isinstance(ratio, (int, float))} if isinstance(found, dict) else {}
              for key, found in ((key, entry.get(key)) for key in (
                  "max_before", "max_predicted", "max_after"))}
    return {
        "plan": str(entry.get("plan") or "automatic"),
        "automatic": bool(entry.get("automatic")),
        "why": str(entry.get("why", "")), "started_at": started, "ended_at": ended,
        "took_seconds": None if started is None or until is None else max(0.0, until - started),
        "outcome": outcome or outcome_code(words or ""),
        "outcome_reason": None if outcome else outcome_reason(words or "") or None,
        "plans": _number(entry, "plans"), "shards": _number(entry, "moves"),
        "bytes": _number(entry, "bytes"), "classes": [
            {"device_class": name, **{key: ratios.get(name) for key, ratios in maxima.items()}}
            for name in sorted(set().union(*maxima.values()))],
        "measured": None if outcome else measured if measured in (
            ARRIVED, INTERRUPTED) else UNKNOWN,
        "measured_at": _number(entry, "measured_at")}


def _rows(entry: Mapping[str, Any]) -> List[Tuple[str, ...]]:
    """One line for each device class, the first with the figures of the episode."""
    rows: List[Tuple[str, ...]] = []
    for figures in entry["classes"] or [{}]:
        before, after = (format_percent(figures.get(key)) or "?"
                         for key in ("max_before", "max_after"))
        of_class = figures.get("device_class", ""), (
            "" if not figures else before if entry["outcome"] == UNDER_WAY
            else f"{before} -> {after}")
        started, shards, size = (entry[key] for key in ("started_at", "shards", "bytes"))
        rows.append(("", "", "", "", *of_class, "") if rows else (
            "" if started is None else format_time(started),
            format_duration(entry["took_seconds"]), "" if shards is None else str(shards),
            "" if size is None else format_bytes(size), *of_class, entry["outcome"]))
    return rows


def _number(entry: Mapping[str, Any], key: str) -> Any:
    value = entry.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


#: While an episode lasts its event is not complete, whatever has arrived: another plan may follow.
_HIGHEST_RATIO = 0.99


class ProgressEvents:
    """Shows the episode that lasts; used by the serve thread, once a round.

    `update`: (event id, message, progress as a ratio); `end`: (event id, why it failed; None where
    it is complete).

    An event's id comes from the begin of the episode, which is stored, so that a successor goes on
    with it. Its progress never falls: the highest is stored with the episode.
    """

    def __init__(self, update: Callable[[str, str, float], None],
                 end: Callable[[str, Optional[str]], None]) -> None:
        self._update = update
        self._end = end
        self._shown_of: Optional[float] = None   # begin of the episode of the event that is shown

    def report(self, status: BalancerStatus, failure: str = "") -> None:
        """Updates, begins or ends the event. `failure`: why the round failed, or empty."""
        started_at = status.episode["started_at"] if status.episode is not None else None
        shown = self._shown_of
        if shown is not None and (failure or started_at != shown):
            self._shown_of = None
            outcome = failure or next((
                str(entry.get("outcome", "")) for entry in reversed(status.history)
                if entry.get("started_at") == shown), STOPPED)
            self._end(f"equilibrium-{shown:.3f}", None if not failure and outcome_code(outcome) in (
                COMPLETED, STUCK) else outcome)
            return   # one call a round
        ratio = status.progress_ratio()
        if failure or started_at is None or ratio is None or status.episode is None:
            return
        ratio = min(max(ratio, status.episode["progress"]), _HIGHEST_RATIO)
        plan = status.episode["plan"]
        self._shown_of = started_at
        self._update(f"equilibrium-{started_at:.3f}", f"equilibrium: plan {plan}" if plan
                     else "equilibrium: automatic balancing", ratio)
