"""One episode of balancing: from its first plan to the idle state after its last.

It is stored while it lasts, so that the next mgr goes on counting, and becomes an entry of the
history when it ends.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional

from ...plan.model import Usage

_LONGEST_TEXT = 300


class Episode(NamedTuple):
    """An episode so far; an empty plan name stands for automatic balancing."""

    plan: str
    why: str
    started_at: float               # seconds since the epoch
    max_before: Dict[str, float]    # device class → highest utilization, a ratio
    plans: int = 0
    moves: int = 0
    bytes: int = 0

    def with_plan(self) -> Episode:
        """The episode with one more plan."""
        return self._replace(plans=self.plans + 1)

    def with_moves(self, moves: int, bytes_moved: int) -> Episode:
        """The episode with more moves that the monitor has kept."""
        return self._replace(moves=self.moves + moves, bytes=self.bytes + bytes_moved)

    def entry(self, outcome: str, now: float, usage: Optional[Usage]) -> Dict[str, Any]:
        """The history's entry when it ends; JSON-ready."""
        return {"plan": self.plan or "automatic", "why": self.why, "started_at": self.started_at,
                "ended_at": now, "outcome": outcome[:_LONGEST_TEXT], "plans": self.plans,
                "moves": self.moves, "bytes": self.bytes, "max_before": self.max_before,
                "max_after": highest(usage)}


def begin(plan: str, why: str, now: float, usage: Optional[Usage]) -> Episode:
    """An episode that begins with a plan; `usage` is that before its first move."""
    return Episode(plan, why[:_LONGEST_TEXT], now, highest(usage))


def highest(usage: Optional[Usage]) -> Dict[str, float]:
    """Device class → highest utilization once everything in flight has arrived, a ratio."""
    return {} if usage is None else {
        name: round(figures.max, 6) for name, figures in usage.classes.items()}


def episode_from_dict(dump: Mapping[str, Any]) -> Optional[Episode]:
    """The episode that another mgr has stored, or None where it cannot be understood."""
    try:
        before = {str(name): float(ratio) for name, ratio in dump["max_before"].items()}
        return Episode(str(dump["plan"]), str(dump["why"])[:_LONGEST_TEXT],
                       float(dump["started_at"]), before, int(dump["plans"]), int(dump["moves"]),
                       int(dump["bytes"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
