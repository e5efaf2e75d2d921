"""The journal: what must outlive the process, in the key-value store, and the history.

Stored are: which named plan is being executed, the episode, what the monitor rejected, the log of
what was sent, what moves have shown of sizes, which OSDs are drained, totals, and the history.
"""
from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..execution.dispatcher import SentBatch, moving
from ..execution.execution import CarriedCounts
from ..execution.outcomes import Items, from_dict, to_dict
from ..observation.cluster_view import ClusterView
from ..plan.model import PgChange
from ..runtime.kv_store import (
    DRAINS, EPISODE, EXECUTION, HISTORY, MEASURED, REJECTED, TOTALS, BufferedKvStore, KeyValueStore)
from ..snapshot.model import Snapshot
from ..undo.change_log import ChangeLog, ChangeRow
from .history import (
    DROPPED, SUPERSEDED, Episode, EpisodeLog, History, Totals, because, begin, episode_from_dict,
    totals_from_dict)


#: Seconds after which a running execution is stored again, with the time.
_STORED_SECONDS = 3600.0
#: Seconds after which a stored execution is void: a module that is enabled weeks later must not go
#: on with it by itself.
_VOID_SECONDS = 86400.0
#: Seconds for which a PG that was sent may be on its way: a shard may have to wait for others.
_IN_FLIGHT_SECONDS = 6 * 3600.0


class RecoveredState(NamedTuple):
    """The stored state of the last mgr."""

    plan: Optional[str]          # a named plan whose execution was under way
    rejected: Items
    #: of the log: what was sent lately, or may have been, the oldest first
    sent: Sequence[ChangeRow]
    corrections: Mapping[str, Any] = {}   # what moves had shown of sizes
    counts: Optional[CarriedCounts] = None   # of the execution; None where it is not known
    drains: Mapping[str, Any] = {}   # as DrainList.to_dict


class Journal:
    """State for a successor. The serve thread ends each round with `write`; `off` and `execute`
    store before they answer. Every call takes one lock."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger,
                 write_to_cluster_log: Callable[[str], None] = lambda line: None) -> None:
        self._episode_log = EpisodeLog(write_to_cluster_log, log)
        self._store = BufferedKvStore(kv, log)
        self.changes = ChangeLog(self._store)
        self._lock = threading.RLock()   # held while a value is written: one commit of a monitor
        self._sent_for: Optional[Episode] = None
        self._rejected: Items = {}
        self._totals = Totals()
        self.history = History()
        self.episode: Optional[Episode] = None
        self._stored_start: Optional[float] = None   # of the episode that the store has
        #: As stored, so that they never fall with a successor; None until `recover` has read them.
        self.totals: Optional[Totals] = None

    def recover(self, now: float, sleep_interval: float = 0.0,
                cooldown: float = 0.0) -> RecoveredState:
        """Reads everything, once; what cannot be read counts as absent. The last mgr stored its
        state no more often than every `sleep_interval` seconds, and left PGs where they were for
        `cooldown` seconds."""
        with self._lock:
            return self._recover(now, sleep_interval, cooldown)

    def _recover(self, now: float, sleep_interval: float, cooldown: float) -> RecoveredState:
        plan, was_long_ago = _execution(self._store.read(EXECUTION) or {}, now, max(
            _VOID_SECONDS, 2.0 * sleep_interval + _STORED_SECONDS))
        self.history.restore(self._store.read(HISTORY) or {})
        self.changes.restore()
        episode = self._store.read(EPISODE)
        self.episode = episode_from_dict(episode) if episode is not None else None
        if self.episode is not None and self.history.has(self.episode.started_at):
            self.episode = None   # the last mgr died between these two writes
            self._store.put(EPISODE, None)
        self._stored_start = None if self.episode is None else self.episode.started_at
        self._rejected = from_dict(self._store.read(REJECTED) or {})
        self.totals = self._totals = totals_from_dict(self._store.read(TOTALS) or {})
        if was_long_ago:
            self.end(because(DROPPED, "equilibrium has not run for more than a day"), now, None)
        elif self.episode is not None and self.episode.plan != (plan or ""):
            self.end(because(DROPPED, "its execution had ended with the last mgr"), now, None)
        lately = now - max(cooldown, _IN_FLIGHT_SECONDS)
        return RecoveredState(plan, self._rejected,
                        [row._replace(at=min(row.at, now)) for row in self.changes.rows(lately)
                         if row.at >= lately],
                        self._store.read(MEASURED) or {},
                        _counts((self._store.read(EXECUTION) or {}).get("counts")),
                        self._store.read(DRAINS) or {})

    # -- the episode ---------------------------------------------------------------------------

    def begin_plan(self, plan: str, why: str, now: float, view: Optional[ClusterView],
                   is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Records that a plan begins, if `is_wanted` still; automatic plans share one episode."""
        with self._lock:
            if not is_wanted():
                return
            if self.episode is not None and (plan or self.episode.plan != plan):
                by = f"by plan '{plan}'" if plan else "by an automatic plan"
                self.end(because(SUPERSEDED, by), now, view)
            if self.episode is None:
                self.episode = begin(plan, why, now, view)
                self._episode_log.begins(self.episode)
            self.episode = self.episode._replace(plans=self.episode.plans + 1)

    def end(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and adds it to the history."""
        with self._lock:
            if self.episode is not None:
                entry = self.episode.entry(outcome, now, view)
                self.history.add(entry)
                self._episode_log.ends(entry)
                self._store.put(HISTORY, self.history.to_dict())
                self._store.put(EPISODE, None)
                self.episode = None
                self._totals = self._totals.with_episode(outcome)

    def stop(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and deletes the execution, for `off`; on return both are stored."""
        with self._lock:
            self.end(outcome, now, view)
            self._store.put(EXECUTION, None)
            self._flush()

    def observe_state(self, state: str, code: str, reason: str, now: float) -> None:
        """After each round: the state that the loop is in, and why."""
        with self._lock:
            self.episode = self._episode_log.observe(self.episode, state, code, reason, now)

    def observe_progress(self, ratio: Optional[float]) -> None:
        """Keeps the highest progress of the episode, so that no successor shows a lower one."""
        with self._lock:
            if self.episode is not None and ratio is not None and ratio > self.episode.progress:
                self.episode = self.episode._replace(progress=ratio)

    # -- state of the loop ---------------------------------------------------------------------

    def record_execution(self, plan: Callable[[], Optional[str]], now: float,
                         counts: Optional[CarriedCounts] = None) -> None:
        """Records the name of the plan that a successor continues, or None, and its counts. `plan`
        is called under the lock: a name read before `off` must not be stored after it."""
        with self._lock:
            name = plan()
            self._store.put(EXECUTION, None if name is None else {
                "plan": name, "at": int(now - now % _STORED_SECONDS),
                "counts": list(counts or ())})

    def log_changes(self, plan: str, kind: str, batch: Sequence[PgChange], before: Snapshot,
                    now: float) -> None:
        """Records a batch in the log of changes before it is sent, and the episode that it belongs
        to: a successor's rows must be of the same one. On return both are stored."""
        with self._lock:
            self._sent_for, begun_at = self.episode, now
            if self.episode is not None:
                begun_at = self.episode.started_at
                if begun_at != self._stored_start:
                    self._put_episode(self.episode)
            moved = {change.pgid for change in moving(batch, before)}
            self.changes.append([ChangeRow(
                now, plan, kind, begun_at, before.epoch, change.pgid, change.raw,
                before.upmap_items.get(change.pgid, ()), change.items,
                change.shards if change.pgid in moved else 0) for change in batch], now)
            self._flush()

    def settle_changes(self, sent: Optional[SentBatch]) -> None:
        """Ends that batch in the log, by the snapshot that followed; None: nothing was sent."""
        with self._lock:
            if sent is None or not sent.handed_over:
                self.changes.settle((), {})
            else:
                self.changes.settle({change.pgid for change in sent.handed_over},
                                    sent.snapshot.upmap_items, sent.snapshot.epoch)

    def record_sent(self, moves: int, bytes_moved: int) -> None:
        """Counts the shard moves and bytes of a batch; a command may have ended the episode
        meanwhile."""
        with self._lock:
            self._totals = self._totals.with_moves(moves, bytes_moved)
            if self.episode is not None:
                self.episode = self.episode.with_moves(moves, bytes_moved)
            elif self._sent_for is not None and moves:
                if self.history.add_moves(self._sent_for.started_at, moves, bytes_moved):
                    self._store.put(HISTORY, self.history.to_dict())
            self._sent_for = None

    def record_rejected(self, items: Items) -> None:
        """Records the PGs whose upmap items the monitor did not keep."""
        with self._lock:
            if items != self._rejected:
                self._rejected = items
                self._store.put(REJECTED, to_dict(items) if items else None)

    def record_corrections(self, dump: Mapping[str, Any]) -> None:
        """Corrections of sizes; nothing is stored where there are none."""
        with self._lock:
            told = dump.get("stopped") or dump.get("bytes_per_object")
            self._store.put(MEASURED, dump if told else None)

    def record_drains(self, drains: Mapping[str, Any]) -> None:
        """Records which OSDs are drained; `stop` and `flush` store it."""
        with self._lock:
            self._store.put(DRAINS, drains)

    def flush(self) -> None:
        """Stores for a command what has been recorded, before it answers."""
        with self._lock:
            self._flush()

    def write(self) -> None:
        """Stores the state, once at the end of a round; what has not changed is not written."""
        with self._lock:
            if self.episode is not None:
                self._put_episode(self.episode)
            self._flush()

    def _put_episode(self, episode: Episode) -> None:
        self._store.put(EPISODE, episode.to_dict())
        self._stored_start = episode.started_at

    def _flush(self) -> None:
        if self.totals is not None and self._totals != self.totals:
            self._store.put(TOTALS, self._totals.to_dict())
        totals = self._totals
        self._store.flush()
        if self.totals is not None:
            self.totals = totals


def _counts(stored: Any) -> Optional[CarriedCounts]:
    """The counts of an execution; None where they are not known or cannot be read."""
    if isinstance(stored, list) and len(stored) == len(CarriedCounts._fields) and all(
            isinstance(count, int) and count >= 0 for count in stored):
        return CarriedCounts(*stored)
    return None


def _execution(stored: Mapping[str, Any], now: float,
               void_seconds: float) -> Tuple[Optional[str], bool]:
    """(the named plan that was being executed, whether one was and that is too long ago)."""
    plan, at = stored.get("plan"), stored.get("at")
    if not isinstance(plan, str):
        return None, False
    if isinstance(at, (int, float)) and now - at > void_seconds:
        return None, True
    return plan, False
