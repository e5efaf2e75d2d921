"""The journal: the state that must outlive the process, in the key-value store, and the history.

It stores which named plan is being executed, the episode, the log of changes, measured sizes and
rejections, the drained OSDs, the operations of pools, and the history.

An episode of balancing is stored while it lasts, so that the next mgr goes on counting. An outcome
is a word, with a reason after it if there is one, as in 'dropped: its pool is gone'. Automatic
balancing ends in an idle state, 'balanced' or 'stuck', unless something stops it. The history is
bounded, the newest entry last.
"""
from __future__ import annotations

import json
import logging
import threading
from textwrap import shorten
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..execution.dispatcher import SentBatch, SentBefore, moving
from ..execution.outcomes import WITHHELD_SECONDS
from ..observation.cluster_view import BALANCED, STUCK, ClusterView
from ..plan.model import STEER, UNDO, ClassUsage, PgChange, typed
from ..plan.usage import class_usage
from ..runtime.formatting import format_bytes, format_duration, plural
from ..runtime.kv_store import (
    DRAINS, EPISODE, EXECUTION, HISTORY, LOADS, MAX_LIST_BYTES, MEASURED, BufferedKvStore,
    KeyValueStore)
from ..snapshot.model import Snapshot, shard_changes
from ..undo.change_log import ChangeLog, ChangeRow


AUTOMATIC = "automatic"   # instead of a plan's name
#: When OSDs reported the utilization that an entry of the history shows: after all of its data had
#: arrived; while data was still moving or being deleted; or not at all.
ARRIVED = "arrived"
INTERRUPTED = "interrupted"
UNKNOWN = "unknown"
#: Ratio of an OSD's size: its report differs by less from the prediction once all data has arrived
#: and been deleted.
_ARRIVED_RATIO = 0.001
#: Characters of a reason or an outcome that are kept: enough for the plans of an outage.
_LONGEST_TEXT = 600


class Episode(NamedTuple):
    """An episode so far; an empty plan name stands for automatic balancing."""

    plan: str
    why: str
    started_at: float               # seconds since the epoch
    max_before: Dict[str, float]    # device class → highest utilization as OSDs reported it
    moves: int = 0
    bytes: int = 0
    progress: float = 0.0           # the highest that was shown, a ratio in whole per cent

    def entry(self, outcome: str, now: float, view: Optional[ClusterView]) -> Dict[str, Any]:
        """Returns the history's entry when the episode ends; JSON-ready. `view`: of that moment."""
        after = _reported_maxima(view)
        predicted = {}   # once all data has arrived
        if view is not None:
            predicted = _maxima(class_usage(view.snapshot, view.used_soon))
        return {
            "plan": self.plan or AUTOMATIC,
            "automatic": not self.plan,
            "why": self.why,
            "started_at": self.started_at,
            "ended_at": now,
            "outcome": _shortened(outcome),
            "moves": self.moves,
            "bytes": self.bytes,
            "max_before": self.max_before,
            "max_predicted": predicted,
            "max_after": after,
            "measured": _measured(view, predicted, after)}


def _shortened(text: str) -> str:
    """Returns the text, or as many of its words as are kept."""
    return shorten(text, _LONGEST_TEXT, placeholder=" ...")


def _name(plan: str) -> str:
    return f"plan '{plan}'" if plan else f"{AUTOMATIC} balancing"


def _reported_maxima(view: Optional[ClusterView]) -> Dict[str, float]:
    """Returns device class → highest utilization as OSDs report it."""
    return _maxima(view.classes_now) if view is not None else {}


def _maxima(usage: Mapping[str, ClassUsage]) -> Dict[str, float]:
    return {name: round(figures.max, 6) for name, figures in usage.items()}


def _measured(view: Optional[ClusterView], predicted: Mapping[str, float],
              after: Mapping[str, float]) -> str:
    if view is None:
        return UNKNOWN
    if view.moving.shards:
        return INTERRUPTED
    for name, ratio in predicted.items():
        if abs(after.get(name, ratio) - ratio) >= _ARRIVED_RATIO:
            return INTERRUPTED
    return ARRIVED


def episode_from_dict(dump: Mapping[str, Any]) -> Optional[Episode]:
    """Returns the episode that another mgr has stored, or None if it is garbled."""
    try:
        found: Episode = typed(dump, Episode)
    except (KeyError, TypeError, ValueError):
        return None
    return found._replace(
        why=_shortened(found.why), progress=min(1.0, max(0.0, found.progress)))


COMPLETED = "completed"     # all of the plan that could be sent was sent, and has arrived
STOPPED = "stopped"         # by a command or an option
SUPERSEDED = "superseded"   # another plan takes its place
DROPPED = "dropped"         # nothing of it could be sent, nothing arrived, or it was lost

STOPPED_BY_OFF = f"{STOPPED}: by 'ceph equilibrium off'"
STOPPED_BY_RM = f"{STOPPED}: by 'ceph equilibrium rm'"
STOPPED_BY_DRAIN_RM = f"{STOPPED}: by 'ceph equilibrium drain rm'"
DRAINED_GONE = f"{DROPPED}: the drained OSDs are gone or have a new disk"
DRAIN_CHANGED = f"{SUPERSEDED}: the list of drained OSDs has changed"
SWITCHED_OFF = f"{STOPPED}: automatic balancing was switched off"

#: Codes of outcomes, for programs.
OUTCOMES = (COMPLETED, STUCK, STOPPED, SUPERSEDED, DROPPED)


def outcome_code(outcome: str) -> str:
    """Returns one of OUTCOMES for an outcome in words, DROPPED for a garbled one."""
    word = outcome.partition(": ")[0]
    if word == BALANCED:
        return COMPLETED
    return word if word in OUTCOMES else DROPPED


def outcome_reason(outcome: str) -> str:
    """Returns the reason after the code of an outcome in words, '' without one; the outcome itself
    if it begins with no code."""
    word, _, reason = outcome.partition(": ")
    return reason if word in OUTCOMES else outcome


MOST_ENTRIES = 100


def with_entry(entries: List[Dict[str, Any]], entry: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Returns the entries with one more. Drops the oldest ones if there are too many, or if they
    are too long together."""
    grown = (entries + [entry])[-MOST_ENTRIES:]
    while len(grown) > 1 and len(json.dumps(grown)) > MAX_LIST_BYTES:
        grown = grown[1:]
    return grown


class Totals(NamedTuple):
    """The moves that the monitors have accepted since the mgr became active."""

    moves: int = 0   # of shards
    bytes: int = 0   # of these shards


#: Seconds after which a running execution is stored again, with the time.
_STORED_SECONDS = 3600.0
#: Seconds after which a stored execution is void: a module that is enabled weeks later must not go
#: on with it.
_VOID_SECONDS = 86400.0
#: A PG may be on its way for so many seconds after it was sent: shards may wait for others for
#: hours.
_IN_FLIGHT_SECONDS = 86400.0


def sent_before(rows: Sequence[ChangeRow]) -> SentBefore:
    """Returns what the last mgr has sent, by rows of the log, the oldest first."""
    sent = SentBefore({}, {}, {}, {}, {})
    in_flight = sent.in_flight
    for row in rows:
        pgid = row.pgid
        at = row.at
        kind = row.kind
        before = row.before
        in_flight.pop(pgid, None)
        sent.steered.pop(pgid, None)
        if kind == STEER:
            sent.steered[pgid] = at
        if row.shards:
            sent.moved[pgid] = at
            in_flight[pgid] = at, row.epoch, before
        elif kind == UNDO:
            sent.made_way[pgid] = at
        if row.cancels_withheld:
            sent.withheld[pgid] = at, {osd for _, osd in set(before) - set(row.after)}
    return sent


def _execution(plan: str, now: float) -> Dict[str, Any]:
    return {"plan": plan, "at": int(now - now % _STORED_SECONDS)}


class Journal:
    """The state for the next mgr. Every call takes one lock.

    The serve thread ends each round with `write`. `off`, `execute`, `rm` and `drain` store before
    they answer.
    """

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
        """Reads everything, once. A garbled value counts as absent.

        `sleep_interval`: the longest time between two rounds. The last mgr stored its state at the
        end of each.
        `cooldown`: it moved no PG again for so many seconds.

        Returns the name of the plan whose execution was under way, or None; the recent rows of the
        log, the oldest first, which may not have been sent; measured sizes and rejections; and the
        drains, as DrainList.to_dict.
        """
        with self._lock:
            # first: if a read raises, nothing has begun
            stored, measured, drains = [
                self._store.read(key) or {} for key in (EXECUTION, MEASURED, DRAINS)]
            self._recover_history()
            self.changes.restore()
            plan = stored.get("plan")
            at = stored.get("at")
            plan = plan if isinstance(plan, str) else None
            void = max(_VOID_SECONDS, 2.0 * sleep_interval + _STORED_SECONDS)
            was_long_ago = plan is not None and isinstance(at, (int, float)) and now - at > void
            if was_long_ago:
                plan = None
                self.end(f"{DROPPED}: equilibrium has not run for more than a day", now, None)
            elif self.episode is not None and self.episode.plan != (plan or ""):
                self.end(f"{DROPPED}: its execution had ended with the last mgr", now, None)
            lately = now - max(cooldown, _IN_FLIGHT_SECONDS, WITHHELD_SECONDS)
            sent = [row._replace(at=min(row.at, now)) for row in self.changes.rows(lately)
                    if row.at >= lately]
            return plan, sent, measured, drains

    def _recover_history(self) -> None:
        """Reads the history and the episode that lasts."""
        entries = (self._store.read(HISTORY) or {}).get("entries")
        if isinstance(entries, list):
            self.history = [one for one in entries if isinstance(one, dict)][-MOST_ENTRIES:]
        self.episode = episode_from_dict(self._store.read(EPISODE) or {})
        if self.episode is not None and self.history:
            if self.history[-1].get("started_at") == self.episode.started_at:
                self.episode = None   # the last mgr died between these two writes
                self._store.put(EPISODE, None)

    # -- the episode ---------------------------------------------------------------------------

    def begin_plan(self, plan: str, why: str, now: float, view: Optional[ClusterView],
                   is_wanted: Callable[[], bool] = lambda: True, adds: bool = False) -> None:
        """Records that a plan begins, if it is still wanted. Automatic plans share one episode.
        `adds`: the episode also shows this plan's `why` if it is not its first plan."""
        with self._lock:
            if not is_wanted():
                return
            if self.episode is not None and (plan or self.episode.plan != plan):
                by = f"by plan '{plan}'" if plan else "by an automatic plan"
                self.end(f"{SUPERSEDED}: {by}", now, view)
            if self.episode is None:
                self.episode = Episode(plan, _shortened(why), now, _reported_maxima(view))
                self._write_line(f"{_name(plan)} begins: {self.episode.why}")
            elif adds:
                both = f"{self.episode.why}; {why}"
                self.episode = self.episode._replace(why=_shortened(both))
                self._write_line(f"{_name(plan)}: {why}")

    def end(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and adds it to the history."""
        with self._lock:
            episode = self.episode
            if episode is None:
                return
            entry = episode.entry(outcome, now, view)
            self.history = with_entry(self.history, entry)
            lasted = format_duration(max(0.0, now - episode.started_at))
            line = (f"{_name(episode.plan)} {outcome_code(outcome)} after {lasted}:"
                    f" {plural(episode.moves, 'shard')}, {format_bytes(episode.bytes)} sent")
            reason = outcome_reason(entry["outcome"])
            self._write_line(f"{line} ({reason})" if reason else line)
            self._store.put(HISTORY, {"entries": self.history})
            self._store.put(EPISODE, None)
            self.episode = None

    def _write_line(self, line: str) -> None:
        try:
            self._write_to_cluster_log(f"equilibrium: {line}")
        except Exception:
            self._log.exception("the cluster log does not take: %r", line)

    def stop(self, outcome: str, now: float, view: Optional[ClusterView]) -> None:
        """Ends the episode and deletes the execution, for commands. On return both are stored."""
        with self._lock:
            self.end(outcome, now, view)
            self._store.put(EXECUTION, None)
            self._store.flush()

    def observe_progress(self, ratio: Optional[float]) -> None:
        """Keeps the highest progress of the episode, so that the next mgr shows no lower one."""
        with self._lock:
            if self.episode is not None and ratio is not None and ratio > self.episode.progress:
                self.episode = self.episode._replace(progress=ratio)

    # -- state of the loop ---------------------------------------------------------------------

    def record_execution(self, plan: Callable[[], Optional[str]], now: float) -> None:
        """Records the name of the plan that the next mgr goes on with, or None. `plan` is called
        under the lock: a name read before `off` must not be stored after it."""
        with self._lock:
            name = plan()
            self._store.put(EXECUTION, None if name is None else _execution(name, now))

    def begin_execution(self, plan: str, now: float, begin: Callable[[], bool]) -> bool:
        """Stores that a plan is executed, then calls `begin`: a plan that cannot be stored does not
        begin. Returns the answer of `begin`. If that is False, stores the former value again."""
        with self._lock:
            before = self._store.read(EXECUTION)
            self._store.write(EXECUTION, _execution(plan, now))
            has_begun = begin()
            if not has_begun:
                self._store.write(EXECUTION, before)
            return has_begun

    def log_changes(self, plan: str, kind: str, batch: Sequence[PgChange], before: Snapshot,
                    now: float) -> Sequence[ChangeRow]:
        """Records a batch in the log of changes before it is sent, and its episode: batches of the
        next mgr must belong to the same one. On return both are stored. Returns the rows."""
        with self._lock:
            begun_at = now
            episode = self.episode
            if episode is not None:
                begun_at = episode.started_at
                if not episode.moves:   # else it is stored already
                    self._store.put(EPISODE, episode._asdict())
            shards = {change.pgid: change.shards for change in moving(kind, batch, before)}
            rows = []
            for change in batch:
                pgid = change.pgid
                held: List[int] = []
                if kind == STEER:
                    pg = before.pgs[pgid]
                    gains, _ = shard_changes(pg.up, change.up_after, before.is_positional(pg))
                    held = sorted(set(gains).intersection(pg.holders))
                rows.append(ChangeRow(
                    at=now,
                    plan=plan,
                    kind=kind,
                    begun_at=begun_at,
                    epoch=before.epoch,
                    pgid=pgid,
                    raw=change.raw,
                    before=before.items_of(pgid),
                    after=change.items,
                    shards=shards.get(pgid, 0),
                    held=tuple(held)))
            self.changes.append(rows, now)
            self._store.flush()
            return rows

    def end_batch(self, sent: Optional[SentBatch]) -> None:
        """Ends the batch of `log_changes`, by the snapshot after it. None: nothing was sent."""
        with self._lock:
            if sent is None:
                self.changes.end_batch((), {})
                return
            pgids = {change.pgid for change in sent.handed_over}
            self.changes.end_batch(pgids, sent.snapshot.upmap_items, sent.snapshot.epoch)

    def record_sent(self, moves: int, bytes_moved: int) -> None:
        """Counts the shard moves and bytes of a batch. Below 0: they were cancelled and stay
        wanted. The monitors had accepted these, so that the totals keep them."""
        with self._lock:
            totals = self.totals
            episode = self.episode
            self.totals = Totals(totals.moves + max(0, moves), totals.bytes + max(0, bytes_moved))
            if episode is not None:   # else a command has just ended it
                self.episode = episode._replace(
                    moves=episode.moves + moves, bytes=episode.bytes + bytes_moved)

    def record_learnt(self, dump: Mapping[str, Any]) -> None:
        """Records corrections of sizes, and rejections. Deletes the stored ones if there are
        none."""
        with self._lock:
            is_known = any(map(dump.get, ("stopped", "bytes_per_object", "rejected")))
            self._store.put(MEASURED, dump if is_known else None)

    def stored_loads(self) -> Mapping[str, Any]:
        """Returns what the last mgr has recorded by `record_loads`; empty if it has not."""
        with self._lock:
            return self._store.read(LOADS) or {}

    def record_loads(self, dump: Mapping[str, Any]) -> None:
        """Records what clients have asked of pools, as LoadLedger.to_dict."""
        with self._lock:
            self._store.put(LOADS, dump)

    def record_drains(self, drains: Mapping[str, Any], at_once: bool) -> None:
        """Records which OSDs are drained. Stores it at once, or with the next write."""
        with self._lock:
            record = self._store.write if at_once else self._store.put
            record(DRAINS, drains)

    def write(self) -> None:
        """Stores the state at the end of a round, as far as it has changed."""
        with self._lock:
            if self.episode is not None:
                self._store.put(EPISODE, self.episode._asdict())
            self._store.flush()
