"""One episode of balancing: from its first plan to the idle state after its last.

It is stored while it lasts, so that the next mgr goes on counting, and becomes an entry of the
history when it ends.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from ...observation.cluster_view import ClusterView
from ...plan.usage import class_usage

AUTOMATIC = "automatic"   # instead of a plan's name
#: How an entry of the history has what OSDs reported after it: when all that it had moved had
#: arrived; while data of it was still moving; or not at all.
ARRIVED, INTERRUPTED, UNKNOWN = "arrived", "interrupted", "unknown"
_LONGEST_TEXT = 300


class Episode(NamedTuple):
    """An episode so far; an empty plan name stands for automatic balancing."""

    plan: str
    why: str
    started_at: float               # seconds since the epoch
    max_before: Dict[str, float]    # device class → highest utilization as OSDs reported it
    plans: int = 0
    moves: int = 0
    bytes: int = 0
    logged: Tuple[str, ...] = ()    # reason codes of which the cluster log has a line
    progress: float = 0.0           # the highest that was shown, a ratio in whole per cent

    def with_moves(self, moves: int, bytes_moved: int) -> Episode:
        """The episode with more moves that the monitor has kept."""
        return self._replace(moves=self.moves + moves, bytes=self.bytes + bytes_moved)

    def entry(self, outcome: str, now: float, view: Optional[ClusterView]) -> Dict[str, Any]:
        """The history's entry when it ends; JSON-ready. `view`: of the end, which predicts what
        will be when all has arrived."""
        predicted = {} if view is None else class_usage(view.snapshot, view.used_soon)
        measured = (UNKNOWN if view is None else INTERRUPTED if view.moving.shards else ARRIVED)
        return {"plan": self.plan or AUTOMATIC, "automatic": not self.plan, "why": self.why,
                "started_at": self.started_at, "ended_at": now, "outcome": outcome[:_LONGEST_TEXT],
                "plans": self.plans, "moves": self.moves, "bytes": self.bytes,
                "max_before": self.max_before,
                "max_predicted": {name: round(usage.max, 6) for name, usage in predicted.items()},
                "max_after": _reported_maxima(view), "measured": measured,
                "measured_at": None if view is None else view.snapshot.taken_at}

    def summary(self) -> Dict[str, Any]:
        """JSON-ready, for reports."""
        dump = self._asdict()
        del dump["logged"]
        return dump

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form for the key-value store."""
        return dict(self._asdict(), logged=list(self.logged))


def begin(plan: str, why: str, now: float, view: Optional[ClusterView]) -> Episode:
    """An episode that begins with a plan; `view` is of before its first move."""
    return Episode(plan, why[:_LONGEST_TEXT], now, _reported_maxima(view))


def _reported_maxima(view: Optional[ClusterView]) -> Dict[str, float]:
    """Device class → highest utilization as OSDs report it."""
    return {} if view is None else {
        name: round(figures.max, 6) for name, figures in view.classes_now.items()}


def episode_from_dict(dump: Mapping[str, Any]) -> Optional[Episode]:
    """The episode that another mgr has stored, or None where it cannot be understood."""
    try:
        before = {str(name): float(ratio) for name, ratio in dump["max_before"].items()}
        return Episode(str(dump["plan"]), str(dump["why"])[:_LONGEST_TEXT],
                       float(dump["started_at"]), before, int(dump["plans"]), int(dump["moves"]),
                       int(dump["bytes"]), tuple(map(str, dump["logged"])),
                       min(1.0, max(0.0, float(dump["progress"]))))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
