"""The execution of one plan: its changes that are wanted, sent, done or dropped.

Also compares a batch with the osdmap, measures for how long nothing could be sent, and has the slot
for the execution under way, which the loop and the commands replace under one lock.
"""
from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import contextmanager
from typing import (
    Any, Callable, Container, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple,
    Optional, Sequence, Tuple)

from ..gateway.gateway import UpmapReply
from ..plan.model import BALANCE, MOTIONLESS, UNGUARDED, PgChange
from ..runtime.formatting import plural
from ..runtime.time_slice import piecewise
from ..snapshot.model import Snapshot, UpmapItems
from .outcomes import DroppedChange
from .pending_moves import PendingMove

#: During an execution two observations are at most so many seconds apart, or two rounds if that is
#: longer. If they seem to be further apart, the clock has jumped.
_LONGEST_SECONDS = 600.0


class Stall:
    """A stopwatch over observations. Times are seconds since the epoch.

    A new one takes its place when something was sent, when a guard forbade all sending, or while
    PGs of a named plan cool down.
    """

    def __init__(self) -> None:
        self._last: Optional[float] = None   # when the last observation was
        self._waited = 0.0    # seconds
        self._to_come = 0     # at the last observation

    def observe(self, now: float, to_come: int, throttled: bool, sleep_interval: float) -> float:
        """Notes an observation. Returns for how many seconds nothing could be sent, or nothing has
        arrived.

        `throttled`: the plan waits for arrivals. Then the stall begins again when `to_come` falls,
        which is object copies or bytes. `sleep_interval`: seconds between rounds.
        """
        if self._last is None or (throttled and to_come < self._to_come):
            self._waited = 0.0
        else:
            longest = max(_LONGEST_SECONDS, 2.0 * sleep_interval)
            self._waited += min(max(0.0, now - self._last), longest)
        self._last = now
        self._to_come = to_come
        return self._waited


_CHANGES_A_PIECE = 500   # before other threads have their turn
_KEPT_DROPS = 200
_MAX_ATTEMPTS = 3


class ExecutionUpdate(NamedTuple):
    """The outcomes of some changes of an execution. The others stay wanted."""

    sent: Sequence[PgChange] = ()          # the monitor has kept their upmap items
    done: Sequence[PgChange] = ()          # found in place without being sent
    rejected: Sequence[DroppedChange] = ()   # the monitor has not kept their upmap items
    dropped: Sequence[DroppedChange] = ()    # for other reasons
    unanswered: Sequence[PgChange] = ()    # sent, without an answer; dropped after some attempts
    taken_back: Sequence[PgChange] = ()    # sent, and cancelled before anything was copied

    @property
    def sent_moves(self) -> int:
        """Returns the number of shards that were sent."""
        return sum([change.shards for change in self.sent])

    @property
    def sent_bytes(self) -> int:
        """Returns the bytes of these shards."""
        return sum([change.shards * change.shard_bytes for change in self.sent])


def verify_batch(answers: Sequence[UpmapReply], snapshot: Snapshot) -> ExecutionUpdate:
    """Compares the monitor's answers with the osdmap, which alone shows the kept items."""
    kept: List[PgChange] = []
    rejected: List[DroppedChange] = []
    unanswered: List[PgChange] = []
    superseded: List[DroppedChange] = []
    for change, code, message in answers:
        present = snapshot.items_of(change.pgid)
        if present == change.items:
            kept.append(change)
        elif code is None:
            unanswered.append(change)
        elif code != 0:
            rejected.append(DroppedChange(change, f"the monitor refused it: {message}",
                                          is_refused=True))
        elif not set(present) <= set(change.items):   # the monitor itself drops some pairs at most
            superseded.append(DroppedChange(change, "somebody else has set other upmap items"))
        elif present:
            rejected.append(DroppedChange(change, "the monitor kept its upmap items only in part"))
        else:
            rejected.append(DroppedChange(change, "the monitor dropped its upmap items"))
    return ExecutionUpdate(sent=kept, rejected=rejected, dropped=superseded, unanswered=unanswered)


class ExecutionProgress(NamedTuple):
    """The figures of an execution at one moment, for threads other than the serve thread."""

    name: str                # of its plan; empty for automatic balancing
    summary: Dict[str, Any]  # JSON-ready, see Execution.summary; nobody edits it
    eta_at: Optional[float] = None   # seconds since the epoch when it is complete; None: unknown
    eta_osd: Optional[int] = None    # the OSD that takes longest; None if all together do
    still_reason: str = ""           # why no time is known, as a clause
    bytes_total: Optional[int] = None   # of its episode, as far as it is planned; None: unknown
    bytes_done: Optional[int] = None    # of these, have arrived
    bytes_per_second: Optional[float] = None   # that arrived in the last minutes; None: unknown

    def eta_seconds(self, now: float) -> Optional[float]:
        """Returns the seconds from `now` until it is complete, at the rates so far, or None."""
        return None if self.eta_at is None else max(0.0, self.eta_at - now)


class Execution:
    """The execution of one plan. An empty name stands for automatic balancing.

    Only `apply` changes its figures. `wanted` is replaced whole, because commands read it.
    """

    def __init__(self, name: str, changes: Sequence[PgChange], started_at: float,
                 kind: str = BALANCE) -> None:
        self.name = name
        self.kind = kind   # of its plan
        self.started_at = started_at
        self.moved_before: FrozenSet[str] = frozenset()   # PGs in flight as it began, if known
        self.wanted: List[PgChange] = list(changes)
        self.wanted_bytes = bytes_by_target(changes)   # replaced whole, as `wanted` is
        self.planned_pgs = len(changes)
        self.planned_moves = sum(change.shards for change in changes)
        self.sent_moves = 0
        self.sent_bytes = 0
        self.done_moves = 0       # found in place without sending
        self.changed_pgs = 0      # PGs that have their upmap items, sent or found so
        self.dropped_moves = 0
        self.dropped: List[Tuple[str, str]] = []   # (pgid, reason) of the first ones
        self.unanswered: Counter[str] = Counter()  # pgid → attempts without an answer
        #: pgid → its change, and the items that cancel it, which are not in the osdmap yet
        self.cancelling: Dict[str, Tuple[PgChange, UpmapItems]] = {}
        self.moved: Counter[int] = Counter()   # OSD → bytes that our changes brought or took
        self.is_compared = False  # whether its changes have been compared with the map
        self.is_recorded = False  # whether the episode under way counts it
        self.stall = Stall()      # used by the serve thread alone, as is `moved`
        #: all that was left has waited too long, for a rebuild alone: the next plan may be the same
        self.waits_for_rebuild = False

    def apply(self, update: ExecutionUpdate) -> None:
        """Applies the outcomes of changes, all of a round at once: one pass over a plan of 66,000
        changes is cheap, one pass per change is not."""
        dropped = [*update.rejected, *update.dropped]
        for change in update.unanswered:
            self.unanswered[change.pgid] += 1
            if self.unanswered[change.pgid] >= _MAX_ATTEMPTS:
                reason = f"no answer from the monitor in {_MAX_ATTEMPTS} attempts"
                dropped.append(DroppedChange(change, reason))
        kept = [*update.sent, *update.done]
        back = ExecutionUpdate(update.taken_back)
        gone = {change.pgid: change.shards for change in kept}
        for change, _, _ in dropped:
            gone[change.pgid] = change.shards
            self.dropped_moves += change.shards
        if gone or back.sent:
            self._replace_wanted(gone, back.sent)
        self.changed_pgs += len(kept) - len(back.sent)
        self.sent_moves += update.sent_moves - back.sent_moves
        self.sent_bytes += update.sent_bytes - back.sent_bytes
        self.done_moves += sum([change.shards for change in update.done])
        self._count_bytes(kept, 1)
        self._count_bytes(back.sent, -1)
        left = max(0, _KEPT_DROPS - len(self.dropped))
        self.dropped += [(given_up.change.pgid, given_up.reason) for given_up in dropped[:left]]

    def _count_bytes(self, changes: Sequence[PgChange], sign: int) -> None:
        for change in changes:
            for osd in change.gained_by | change.lost_by:
                self.moved[osd] += sign * change.bytes_on(osd)

    def note_cancelling(self, batch: Sequence[PgChange], snapshot: Snapshot,
                        pending: Mapping[str, PendingMove]) -> None:
        """Notes the changes that a batch is about to cancel."""
        for back in batch:
            change = back._replace(
                up_before=back.up_after,
                up_after=back.up_before,
                items=snapshot.items_of(back.pgid),
                shards=pending[back.pgid].shards)
            self.cancelling[back.pgid] = change, back.items

    def take_cancelled(self, snapshot: Snapshot, pending: Container[str]) -> List[PgChange]:
        """Puts the changes that the osdmap shows cancelled back into the plan, and returns them.

        `pending`: PGs that are still in flight, and whose items the monitor has not rejected.
        """
        cancelled = []
        left = {}
        for pgid, (change, items) in self.cancelling.items():
            if snapshot.items_of(pgid) == items:
                cancelled.append(change)
            elif pgid in pending:
                left[pgid] = change, items
        self.cancelling = left
        self.apply(ExecutionUpdate(taken_back=cancelled))
        return cancelled

    def _replace_wanted(self, gone: Mapping[str, int], back: Sequence[PgChange]) -> None:
        """Removes changes, and adds those that are wanted again.

        `gone`: pgid → shards of the change, which may be more than were planned.
        """
        left = list(back)
        for change in self.wanted:
            if change.pgid in gone:
                self.planned_moves += gone[change.pgid] - change.shards
            else:
                left.append(change)
        left_bytes = bytes_by_target(left)   # gives way: other threads read both
        self.wanted = left
        self.wanted_bytes = left_bytes

    @property
    def is_motionless(self) -> bool:
        """Returns True if none of its changes copies a shard that is not copied anyway
        (plan/model.py)."""
        return self.kind in MOTIONLESS

    @property
    def is_unguarded(self) -> bool:
        """Returns True if neither flags nor the built-in balancer stop it."""
        return self.kind in UNGUARDED

    @property
    def has_sent_nothing(self) -> bool:
        """Returns True if changes were dropped, and no other one was sent or found in place."""
        if not self.dropped or self.sent_moves:
            return False
        return not (self.changed_pgs if self.is_motionless else self.done_moves)

    @property
    def remaining_moves(self) -> int:
        """Returns the number of shards that are still to be sent."""
        return sum([change.shards for change in self.wanted])

    def progress(self) -> str:
        """Returns how much of the plan was sent, as a clause."""
        if not self.is_motionless:
            return f"{self.sent_moves} of {self.planned_moves} shards sent"
        changed = (f"the upmap items of {self.planned_pgs - len(self.wanted)} of"
                   f" {plural(self.planned_pgs, 'PG')} are changed")
        return f"{changed}; {MOTIONLESS[self.kind]}"

    def summary(self) -> Dict[str, Any]:
        """Returns JSON-ready figures for `status`."""
        return {
            "plan": self.name or "automatic",
            "kind": self.kind,
            "started_at": self.started_at,
            "progress": self.progress(),
            "planned_pgs": self.planned_pgs,
            "remaining_pgs": len(self.wanted),
            "planned_moves": self.planned_moves,
            "sent_moves": self.sent_moves,
            "sent_bytes": self.sent_bytes,
            "done_moves": self.done_moves,
            "dropped_moves": self.dropped_moves,
            "dropped": [{"pgid": pgid, "reason": reason} for pgid, reason in self.dropped]}


def bytes_by_target(changes: Iterable[PgChange]) -> Counter[int]:
    """Returns OSD → bytes of the shards that it gets by the changes. Leaves out OSDs that get
    none."""
    found: Counter[int] = Counter()
    for change in piecewise(changes, _CHANGES_A_PIECE):
        if not change.shards:
            continue
        for osd in change.up_after:
            if osd not in change.up_before:
                found[osd] += change.bytes_on(osd)
    return +found


class ExecutionSlot:
    """Holds at most one execution. A named one takes the place of an automatic one.

    The loop hands a batch to the mgr under the lock that `stop` takes, so that nothing is sent once
    `stop` has returned. Nobody waits for a monitor with the lock held.
    """

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        #: how often all sending, the automatic plan or a named one was stopped. A round that began
        #: before that is void
        self.stop_count = 0
        self.execution: Optional[Execution] = None
        self.last: Optional[Dict[str, Any]] = None   # the last one's figures, JSON-ready

    def start(self, execution: Execution, stop_count: Optional[int] = None) -> bool:
        """Starts an execution. Returns False if there is one, unless a named one takes the place of
        an automatic one. Returns False as well if something was stopped since the loop has read
        `stop_count`."""
        with self._lock:
            present = self.execution
            if present is not None and (present.name or not execution.name):
                return False
            if stop_count is not None and stop_count != self.stop_count:
                return False
            self.execution = execution
            return True

    def end(self, execution: Execution, outcome: str) -> bool:
        """Ends the execution for the loop. Returns False if a command has ended or replaced it."""
        with self._lock:
            if self.execution is not execution:
                return False
            self.execution = None
        self._remember(execution, outcome)
        return True

    def stop(self, outcome: str, name: Optional[str] = None) -> Optional[Execution]:
        """Ends the execution for a command and returns it, or None.

        `name`: ends only the execution of this plan, '' only an automatic one, None any. Waits
        while a batch is being handed over, which takes milliseconds.
        """
        with self._lock:
            execution = self.execution
            if execution is not None and name not in (None, execution.name):
                execution = None
            if execution is not None or not name:
                self.stop_count += 1
            if execution is None:
                return None
            self.execution = None
        self._remember(execution, outcome)
        return execution

    @contextmanager
    def permit_sending(self, execution: Optional[Execution]) -> Iterator[bool]:
        """Context in which no command can end the execution, for handing a batch over. Yields False
        if a command has ended or replaced it already."""
        with self._lock:
            yield self.execution is execution

    def plan_name(self) -> Optional[str]:
        """Returns the name of the plan that is being executed, or None."""
        execution = self.execution
        if execution is None:
            return None
        return execution.name or None

    def _remember(self, execution: Execution, outcome: str) -> None:
        self._log.info("plan %s %s: %d of %d shards sent, %d dropped",
                       execution.name or "(automatic)", outcome, execution.sent_moves,
                       execution.planned_moves, execution.dropped_moves)
        self.last = dict(execution.summary(), outcome=outcome, ended_at=self._clock())
