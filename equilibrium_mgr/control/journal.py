"""The journal: what must outlive the process, in the key-value store, and the history.

Stored are: which named plan is being executed, the episode, the log of what was sent, what moves
have shown of sizes, which OSDs are drained, and the history.

An episode of balancing is stored while it lasts, so that the next mgr goes on counting. An outcome
is a word; where there is more to say it follows, as in 'dropped: its pool is gone'. Automatic
balancing ends in an idle state, 'balanced' or 'stuck'. The history is bounded, the newest entry
last.
"""
from __future__ import annotations

import json
import logging
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..execution.dispatcher import SentBatch, SentBefore, moving
from ..execution.outcomes import WITHHELD_SECONDS
from ..observation.cluster_view import BALANCED, STUCK, ClusterView
from ..plan.model import UNDO, PgChange
from ..plan.usage import class_usage
from ..runtime.formatting import format_bytes, format_duration, plural
from ..runtime.kv_store import (
    DRAINS, EPISODE, EXECUTION, HISTORY, MAX_LIST_BYTES, MEASURED, BufferedKvStore, KeyValueStore)
from ..snapshot.model import Snapshot
from ..undo.change_log import ChangeLog, ChangeRow


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
    """Since the mgr became active: what the monitors have accepted."""

    moves: int = 0   # of shards
    bytes: int = 0   # of those shards


#: Seconds after which a running execution is stored again, with the time.
_STORED_SECONDS = 3600.0
#: Seconds after which a stored execution is void: a module that is enabled weeks later must not go
#: on with it by itself.
_VOID_SECONDS = 86400.0
#: Seconds for which a PG that was sent may be on its way: a shard may wait for hours for others.
_IN_FLIGHT_SECONDS = 86400.0


def sent_before(rows: Sequence[ChangeRow]) -> SentBefore:
    """Returns what rows of the log tell of the last mgr. `rows`: the oldest first."""
    sent = SentBefore({}, {}, {}, {})
    last = {}
    for row in rows:
        last[row.pgid] = row
        if row.shards:
            sent.moved[row.pgid] = row.at
        elif row.kind == UNDO:
            sent.made_way[row.pgid] = row.at
        if row.takes_back:
            targets = {osd for _, osd in set(row.before) - set(row.after)}
            sent.withheld[row.pgid] = row.at, targets
    for row in last.values():
        if row.shards:
            sent.in_flight[row.pgid] = row.at, row.epoch
    return sent


def _execution(plan: str, now: float) -> Dict[str, Any]:
    return {"plan": plan, "at": int(now - now % _STORED_SECONDS)}


class Journal:
    """State for a successor. The serve thread ends each round with `write`; `off`, `execute` and
    `drain` store before they answer. Every call takes one lock."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger,
                 write_to_cluster_log: Callable[[str], None] = lambda line: None) -> None:
        self._write_to_cluster_log = write_to_cluster_log   # waits for nothing
        self._log = log
        self._store = BufferedKvStore(kv, log)
        self.changes = ChangeLog(self._store)
        self._lock = threading.RLock()   # held while a value is written: one commit of a monitor
        self.totals = Totals()
        self.history: List[Dict[str, Any]] = []   # as Episode.entry; replaced whole
        self.episode: Optional[Episode] = None

    def recover(self, now: float, sleep_interval: float = 0.0, cooldown: float = 0.0) -> Tuple[
            Optional[str], Sequence[ChangeRow], Mapping[str, Any], Mapping[str, Any]]:
        """Reads everything, once; what cannot be read counts as absent. The last mgr stored its
        state no more often than every `sleep_interval` seconds, and left PGs where they were for
        `cooldown` seconds.

        Returns the name of a plan whose execution was under way, or None; the rows of the log that
        were sent lately, or may have been, the oldest first; what moves had shown of sizes, and
        rejections; and the drains, as DrainList.to_dict.
        """
        with self._lock:
            # first: where a read raises, nothing has begun
            stored, measured, drains = [
                self._store.read(key) or {} for key in (EXECUTION, MEASURED, DRAINS)]
            plan, at = stored.get("plan"), stored.get("at")
            plan = plan if isinstance(plan, str) else None
            was_long_ago = plan is not None and isinstance(at, (int, float)) and now - at > max(
                _VOID_SECONDS, 2.0 * sleep_interval + _STORED_SECONDS)
            entries = (self._store.read(HISTORY) or {}).get("entries")
            if isinstance(entries, list):
                self.history = [one for one in entries if isinstance(one, dict)][-MOST_ENTRIES:]
            self.changes.restore()
            episode = self._store.read(EPISODE)
            self.episode = episode_from_dict(episode) if episode is not None else None
            if self.episode is not None and self.history and (
                    self.history[-1].get("started_at") == self.episode.started_at):
                self.episode = None   # the last mgr died between these two writes
                self._store.put(EPISODE, None)
            if was_long_ago:
                plan = None
                self.end(f"{DROPPED}: equilibrium has not run for more than a day", now, None)
            elif self.episode is not None and self.episode.plan != (plan or ""):
                self.end(f"{DROPPED}: its execution had ended with the last mgr", now, None)
            lately = now - max(cooldown, _IN_FLIGHT_SECONDS)
            sent = [row._replace(at=min(row.at, now))
                    for row in self.changes.rows(min(lately, now - WITHHELD_SECONDS))
                    if row.at >= lately or row.takes_back]
            return plan, sent, measured, drains

    # -- the episode ---------------------------------------------------------------------------

    def begin_plan(self, plan: str, why: str, now: float, view: Optional[ClusterView],
                   is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Records that a plan begins, if `is_wanted` still; automatic plans share one episode."""
        with self._lock:
            if not is_wanted():
                return
            if self.episode is not None and (plan or self.episode.plan != plan):
                by = f"by plan '{plan}'" if plan else "by an automatic plan"
                self.end(f"{SUPERSEDED}: {by}", now, view)
            if self.episode is None:
                self.episode = Episode(plan, why[:_LONGEST_TEXT], now, _reported_maxima(view))
                self._write_line(f"{_name(plan)} begins: {self.episode.why}")
            self.episode = self.episode._replace(plans=self.episode.plans + 1)

    def end(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and adds it to the history."""
        with self._lock:
            if self.episode is not None:
                entry, plan = self.episode.entry(outcome, now, view), self.episode.plan
                code, reason = outcome_code(outcome), outcome_reason(entry["outcome"])
                self.history = with_entry(self.history, entry)
                self._write_line(
                    f"{_name(plan)} {code} after"
                    f" {format_duration(max(0.0, now - self.episode.started_at))}:"
                    f" {plural(entry['moves'], 'shard')}, {format_bytes(entry['bytes'])} sent"
                    + (f" ({reason})" if reason else ""))
                self._store.put(HISTORY, {"entries": self.history})
                self._store.put(EPISODE, None)
                self.episode = None

    def _write_line(self, line: str) -> None:
        try:
            self._write_to_cluster_log(f"equilibrium: {line}")
        except Exception:
            self._log.exception("the cluster log does not take: %r", line)

    def stop(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and deletes the execution, for `off`; on return both are stored."""
        with self._lock:
            self.end(outcome, now, view)
            self._store.put(EXECUTION, None)
            self._store.flush()

    def observe_progress(self, ratio: Optional[float]) -> None:
        """Keeps the highest progress of the episode, so that no successor shows a lower one."""
        with self._lock:
            if self.episode is not None and ratio is not None and ratio > self.episode.progress:
                self.episode = self.episode._replace(progress=ratio)

    # -- state of the loop ---------------------------------------------------------------------

    def record_execution(self, plan: Callable[[], Optional[str]], now: float) -> None:
        """Records the name of the plan that a successor continues, or None. `plan` is called under
        the lock: a name read before `off` must not be stored after it."""
        with self._lock:
            name = plan()
            self._store.put(EXECUTION, None if name is None else _execution(name, now))

    def begin_execution(self, plan: str, now: float, begin: Callable[[], bool]) -> bool:
        """Stores that a plan is executed, and calls `begin` once that is so: what cannot be stored
        does not begin. Returns the answer of `begin`; after a refusal what was stored is again."""
        with self._lock:
            before = self._store.read(EXECUTION)
            self._store.write(EXECUTION, _execution(plan, now))
            has_begun = begin()
            if not has_begun:
                self._store.write(EXECUTION, before)
            return has_begun

    def log_changes(self, plan: str, kind: str, batch: Sequence[PgChange], before: Snapshot,
                    now: float) -> None:
        """Records a batch in the log of changes before it is sent, and the episode that it belongs
        to: a successor's rows must be of the same one. On return both are stored."""
        with self._lock:
            begun_at = now
            if self.episode is not None:
                begun_at = self.episode.started_at
                if not self.episode.moves:   # else it is stored already
                    self._store.put(EPISODE, self.episode._asdict())
            moved = {change.pgid for change in moving(batch, before)}
            self.changes.append([ChangeRow(
                now, plan, kind, begun_at, before.epoch, change.pgid, change.raw,
                before.items_of(change.pgid), change.items,
                change.shards if change.pgid in moved else 0) for change in batch], now)
            self._store.flush()

    def settle_changes(self, sent: Optional[SentBatch]) -> None:
        """Ends that batch in the log, by the snapshot that followed; None: nothing was sent."""
        with self._lock:
            if sent is None:
                self.changes.settle((), {})
            else:
                self.changes.settle({change.pgid for change in sent.handed_over},
                                    sent.snapshot.upmap_items, sent.snapshot.epoch)

    def record_sent(self, moves: int, bytes_moved: int) -> None:
        """Counts the shard moves and bytes of a batch; below 0 what makes way and stays wanted,
        which the monitors have accepted all the same."""
        with self._lock:
            self.totals = self.totals._replace(moves=self.totals.moves + max(0, moves),
                                               bytes=self.totals.bytes + max(0, bytes_moved))
            if self.episode is not None:   # else a command has ended it meanwhile
                self.episode = self.episode._replace(moves=self.episode.moves + moves,
                                                     bytes=self.episode.bytes + bytes_moved)

    def record_learnt(self, dump: Mapping[str, Any]) -> None:
        """Corrections of sizes, and rejections; nothing is stored where there are none."""
        with self._lock:
            told = any(map(dump.get, ("stopped", "bytes_per_object", "rejected")))
            self._store.put(MEASURED, dump if told else None)

    def record_drains(self, drains: Mapping[str, Any], at_once: bool) -> None:
        """Records which OSDs are drained; stores it at once, or with the next write."""
        with self._lock:
            record = self._store.write if at_once else self._store.put
            record(DRAINS, drains)

    def write(self) -> None:
        """Stores the state, once at the end of a round; what has not changed is not written."""
        with self._lock:
            if self.episode is not None:
                self._store.put(EPISODE, self.episode._asdict())
            self._store.flush()
