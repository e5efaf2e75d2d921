"""The lines of Ceph's cluster log: an episode begins, ends, or is blocked for long. No others."""
from __future__ import annotations

import logging
from typing import Any, Callable, Mapping, Optional, Tuple

from ...observation.states import BLOCKED
from ...runtime.formatting import format_bytes, format_duration, plural
from ...snapshot.reason_codes import NO_MONITOR
from .episode import AUTOMATIC, Episode
from .outcomes import outcome_code, outcome_reason

#: Seconds for which the same reason has to block an episode.
_BLOCKED_SECONDS = 3600.0


class EpisodeLog:
    """Writes one line by `write`, which waits for nothing; where it fails, `log` has that, and the
    episode goes on. Not thread-safe: the journal's lock."""

    def __init__(self, write: Callable[[str], None], log: logging.Logger) -> None:
        self._write_line = write
        self._log = log
        self._blocked: Optional[Tuple[str, float]] = None   # (reason code, since)

    def begins(self, episode: Episode) -> None:
        """An episode begins."""
        self._blocked = None
        self._write(f"equilibrium: {_name(episode.plan)} begins: {episode.why}")

    def ends(self, entry: Mapping[str, Any]) -> None:
        """An episode has become an entry of the history."""
        self._blocked = None
        outcome, reason = outcome_code(entry["outcome"]), outcome_reason(entry["outcome"])
        self._write(
            f"equilibrium: {_name('' if entry['automatic'] else entry['plan'])} {outcome} after"
            f" {format_duration(max(0.0, entry['ended_at'] - entry['started_at']))}:"
            f" {plural(entry['moves'], 'shard')}, {format_bytes(entry['bytes'])} sent"
            + (f" ({reason})" if reason else ""))

    def observe(self, episode: Optional[Episode], state: str, code: str, reason: str,
                now: float) -> Optional[Episode]:
        """After each round: the episode, marked where a line on what blocks it was written."""
        # without a monitor there is neither a cluster log nor a store to mark the line in
        if episode is None or state != BLOCKED or code == NO_MONITOR:
            self._blocked = None
            return episode
        if self._blocked is None or self._blocked[0] != code or now < self._blocked[1]:
            self._blocked = code, now
        since = self._blocked[1]
        if now - since < _BLOCKED_SECONDS or code in episode.logged:
            return episode
        self._write(f"equilibrium: {_name(episode.plan)} has been blocked for"
                    f" {format_duration(now - since)}: {reason}")
        return episode._replace(logged=episode.logged + (code,))

    def _write(self, line: str) -> None:
        try:
            self._write_line(line)
        except Exception:
            self._log.exception("the cluster log does not take: %r", line)


def _name(plan: str) -> str:
    return f"plan '{plan}'" if plan else f"{AUTOMATIC} balancing"
