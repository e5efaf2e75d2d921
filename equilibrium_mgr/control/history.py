"""Episodes of balancing: the one under way, the words and the log line for how it ends, and those
that have ended, with totals.

An episode is stored while it lasts, so that the next mgr goes on counting. An outcome is a word;
where there is more to say it follows, as in 'dropped: its pool is gone'. Automatic balancing ends
in an idle state, 'balanced' or 'stuck'. The history is bounded, the newest entry last.
"""
from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..observation.cluster_view import BALANCED, STUCK, ClusterView
from ..plan.usage import class_usage
from ..runtime.formatting import format_bytes, format_duration, plural
from ..runtime.kv_store import MAX_LIST_BYTES


AUTOMATIC = "automatic"   # instead of a plan's name
#: How an entry of the history has what OSDs reported after it: when all that it had moved had
#: arrived; while data of it was still moving or being deleted; or not at all.
ARRIVED, INTERRUPTED, UNKNOWN = "arrived", "interrupted", "unknown"
#: Of an OSD's size: what OSDs report differs by less once all has arrived and been deleted.
_SETTLED_RATIO = 0.001
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
    progress: float = 0.0           # the highest that was shown, a ratio in whole per cent

    def entry(self, outcome: str, now: float, view: Optional[ClusterView]) -> Dict[str, Any]:
        """The history's entry when it ends; JSON-ready. `view`: of the end, which predicts what
        will be when all has arrived."""
        predicted = {} if view is None else {
            name: round(usage.max, 6)
            for name, usage in class_usage(view.snapshot, view.used_soon).items()}
        after = _reported_maxima(view)
        is_settled = all(abs(after.get(name, ratio) - ratio) < _SETTLED_RATIO
                         for name, ratio in predicted.items())
        measured = (UNKNOWN if view is None else ARRIVED if is_settled and not view.moving.shards
                    else INTERRUPTED)
        return {"plan": self.plan or AUTOMATIC, "automatic": not self.plan, "why": self.why,
                "started_at": self.started_at, "ended_at": now, "outcome": outcome[:_LONGEST_TEXT],
                "plans": self.plans, "moves": self.moves, "bytes": self.bytes,
                "max_before": self.max_before,
                "max_predicted": predicted, "max_after": after, "measured": measured,
                "measured_at": None if view is None else view.snapshot.taken_at}

    def begin_line(self) -> str:
        """For the cluster log, when it begins."""
        return f"equilibrium: {_name(self.plan)} begins: {self.why}"


def begin(plan: str, why: str, now: float, view: Optional[ClusterView]) -> Episode:
    """An episode that begins with a plan; `view` is of before its first move."""
    return Episode(plan, why[:_LONGEST_TEXT], now, _reported_maxima(view))


def end_line(entry: Mapping[str, Any]) -> str:
    """For the cluster log, when an episode has become an entry of the history."""
    reason = outcome_reason(entry["outcome"])
    return (f"equilibrium: {_name('' if entry['automatic'] else entry['plan'])}"
            f" {outcome_code(entry['outcome'])} after"
            f" {format_duration(max(0.0, entry['ended_at'] - entry['started_at']))}:"
            f" {plural(entry['moves'], 'shard')}, {format_bytes(entry['bytes'])} sent"
            + (f" ({reason})" if reason else ""))


def _name(plan: str) -> str:
    return f"plan '{plan}'" if plan else f"{AUTOMATIC} balancing"


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
                       int(dump["bytes"]), min(1.0, max(0.0, float(dump["progress"]))))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


COMPLETED = "completed"     # all that could be sent of the plan was sent, and has arrived
STOPPED = "stopped"         # by a command or an option
SUPERSEDED = "superseded"   # another plan takes its place
DROPPED = "dropped"         # nothing of it could be sent, or nothing arrived

STOPPED_BY_OFF = f"{STOPPED}: by 'ceph equilibrium off'"
STOPPED_BY_RM = f"{STOPPED}: by 'ceph equilibrium rm'"
STOPPED_BY_DRAIN_RM = f"{STOPPED}: by 'ceph equilibrium drain rm'"
DRAIN_CHANGED = f"{SUPERSEDED}: other OSDs are to be drained"
SWITCHED_OFF = f"{STOPPED}: automatic balancing was switched off"

#: Codes of outcomes, for programs.
OUTCOMES = (COMPLETED, STUCK, STOPPED, SUPERSEDED, DROPPED)


def because(outcome: str, reason: str) -> str:
    """An outcome with its reason."""
    return f"{outcome}: {reason}"


def outcome_code(outcome: str) -> str:
    """One of OUTCOMES for an outcome in words; DROPPED for one that is garbled."""
    word = outcome.partition(": ")[0]
    return COMPLETED if word == BALANCED else word if word in OUTCOMES else DROPPED


def outcome_reason(outcome: str) -> str:
    """What an outcome in words says beyond its code; '' where that is nothing."""
    word, _, reason = outcome.partition(": ")
    return reason if word in OUTCOMES else outcome


MOST_ENTRIES = 100


def with_entry(entries: List[Dict[str, Any]], entry: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The entries with one more; the oldest go where there are too many."""
    grown = (entries + [entry])[-MOST_ENTRIES:]
    while len(grown) > 1 and len(json.dumps(grown)) > MAX_LIST_BYTES:
        grown = grown[1:]
    return grown


class Totals(NamedTuple):
    """Since the mgr became active: what the monitors have accepted, and how episodes have ended."""

    moves: int = 0   # of shards
    bytes: int = 0   # of those shards
    episodes: Mapping[str, int] = {}   # by one of OUTCOMES
