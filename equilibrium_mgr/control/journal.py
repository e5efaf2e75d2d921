"""The journal: what must outlive the process, in the key-value store, and the history.

Stored are: which named plan is being executed, the episode, the log of what was sent, what moves
have shown of sizes, which OSDs are drained, and the history.
"""
from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..execution.dispatcher import SentBatch, moving
from ..observation.cluster_view import ClusterView
from ..plan.model import PgChange
from ..runtime.kv_store import (
    DRAINS, EPISODE, EXECUTION, HISTORY, MEASURED, BufferedKvStore, KeyValueStore)
from ..snapshot.model import Snapshot
from ..undo.change_log import ChangeLog, ChangeRow
from .history import (
    DROPPED, MOST_ENTRIES, SUPERSEDED, Episode, Totals, because, begin, end_line,
    episode_from_dict, outcome_code, with_entry)


#: Seconds after which a running execution is stored again, with the time.
_STORED_SECONDS = 3600.0
#: Seconds after which a stored execution is void: a module that is enabled weeks later must not go
#: on with it by itself.
_VOID_SECONDS = 86400.0
#: Seconds for which a PG that was sent may be on its way: a shard may have to wait for others.
_IN_FLIGHT_SECONDS = 6 * 3600.0


class Journal:
    """State for a successor. The serve thread ends each round with `write`; `off` and `execute`
    store before they answer. Every call takes one lock."""

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
        self._stored_start: Optional[float] = None   # of the episode that the store has

    def recover(self, now: float, sleep_interval: float = 0.0, cooldown: float = 0.0) -> Tuple[
            Optional[str], Sequence[ChangeRow], Mapping[str, Any], Mapping[str, Any]]:
        """Reads everything, once; what cannot be read counts as absent. The last mgr stored its
        state no more often than every `sleep_interval` seconds, and left PGs where they were for
        `cooldown` seconds.

        Returns the name of a plan whose execution was under way, or None; the rows of the log that
        were sent lately, or may have been, the oldest first; what moves had shown of sizes; and the
        drains, as DrainList.to_dict.
        """
        with self._lock:
            plan, was_long_ago = _execution(self._store.read(EXECUTION) or {}, now, max(
                _VOID_SECONDS, 2.0 * sleep_interval + _STORED_SECONDS))
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
            self._stored_start = None if self.episode is None else self.episode.started_at
            if was_long_ago:
                self.end(because(DROPPED, "equilibrium has not run for more than a day"), now, None)
            elif self.episode is not None and self.episode.plan != (plan or ""):
                self.end(because(DROPPED, "its execution had ended with the last mgr"), now, None)
            lately = now - max(cooldown, _IN_FLIGHT_SECONDS)
            sent = [row._replace(at=min(row.at, now)) for row in self.changes.rows(lately)
                    if row.at >= lately]
            return plan, sent, self._store.read(MEASURED) or {}, self._store.read(DRAINS) or {}

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
                self._write_line(self.episode.begin_line())
            self.episode = self.episode._replace(plans=self.episode.plans + 1)

    def end(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and adds it to the history."""
        with self._lock:
            if self.episode is not None:
                entry = self.episode.entry(outcome, now, view)
                self.history = with_entry(self.history, entry)
                self._write_line(end_line(entry))
                self._store.put(HISTORY, {"entries": self.history})
                self._store.put(EPISODE, None)
                self.episode = None
                code, ended = outcome_code(outcome), self.totals.episodes
                self.totals = self.totals._replace(episodes={**ended, code: ended.get(code, 0) + 1})

    def _write_line(self, line: str) -> None:
        try:
            self._write_to_cluster_log(line)
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
            self._store.put(EXECUTION, None if name is None else {
                "plan": name, "at": int(now - now % _STORED_SECONDS)})

    def log_changes(self, plan: str, kind: str, batch: Sequence[PgChange], before: Snapshot,
                    now: float) -> None:
        """Records a batch in the log of changes before it is sent, and the episode that it belongs
        to: a successor's rows must be of the same one. On return both are stored."""
        with self._lock:
            begun_at = now
            if self.episode is not None:
                begun_at = self.episode.started_at
                if begun_at != self._stored_start:
                    self._put_episode(self.episode)
            moved = {change.pgid for change in moving(batch, before)}
            self.changes.append([ChangeRow(
                now, plan, kind, begun_at, before.epoch, change.pgid, change.raw,
                before.upmap_items.get(change.pgid, ()), change.items,
                change.shards if change.pgid in moved else 0) for change in batch], now)
            self._store.flush()

    def settle_changes(self, sent: Optional[SentBatch]) -> None:
        """Ends that batch in the log, by the snapshot that followed; None: nothing was sent."""
        with self._lock:
            if sent is None or not sent.handed_over:
                self.changes.settle((), {})
            else:
                self.changes.settle({change.pgid for change in sent.handed_over},
                                    sent.snapshot.upmap_items, sent.snapshot.epoch)

    def record_sent(self, moves: int, bytes_moved: int) -> None:
        """Counts the shard moves and bytes of a batch."""
        with self._lock:
            self.totals = self.totals._replace(moves=self.totals.moves + moves,
                                               bytes=self.totals.bytes + bytes_moved)
            if self.episode is not None:   # else a command has ended it meanwhile
                self.episode = self.episode._replace(moves=self.episode.moves + moves,
                                                     bytes=self.episode.bytes + bytes_moved)

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
            self._store.flush()

    def write(self) -> None:
        """Stores the state, once at the end of a round; what has not changed is not written."""
        with self._lock:
            if self.episode is not None:
                self._put_episode(self.episode)
            self._store.flush()

    def _put_episode(self, episode: Episode) -> None:
        self._store.put(EPISODE, episode._asdict())
        self._stored_start = episode.started_at


def _execution(stored: Mapping[str, Any], now: float,
               void_seconds: float) -> Tuple[Optional[str], bool]:
    """(the named plan that was being executed, whether one was and that is too long ago)."""
    plan, at = stored.get("plan"), stored.get("at")
    if not isinstance(plan, str):
        return None, False
    if isinstance(at, (int, float)) and now - at > void_seconds:
        return None, True
    return plan, False
