"""The status of the loop for other threads: an immutable value, replaced after each step."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..drain.status import DrainStatus
from ..execution.outcomes import (
    Items, Refusals, Verdict, WaitingChange, WaitingGroup, waiting_groups)
from ..execution.execution import Execution, ExecutionProgress
from ..execution.pending_moves import PendingMove
from ..execution.size_check import Misprediction
from ..gateway.cluster_summary import ClusterSummary
from ..observation.observer import limits
from ..observation.cluster_view import (
    BALANCED, BLOCKED, MOVING, OFF, STUCK, THROTTLED, WAITING, ClusterView)
from ..observation.movements import time_left
from ..plan.model import PgChange
from ..runtime.formatting import format_time
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .journal import Episode

_NOTHING_YET = "nothing of it has arrived yet"
#: Codes of states in which nothing moves, or nothing can be seen to. Without a monitor data goes on
#: to arrive.
_STANDS = (codes.FLAG, codes.NOT_READY)


IS_OFF = Verdict(codes.SWITCHED_OFF, "automatic balancing is off", state=OFF)
#: Of a mgr that has taken over a moment ago; its next look is before long.
AWAITS_REPORTS = Verdict(
    codes.MOVING, "what the last mgr has sent shows within a minute", state=MOVING, seconds=10.0)


class BalancerStatus(NamedTuple):
    """Everything that reports read of the loop, at one moment. Nothing in it is edited."""

    state: str = OFF
    reason: str = "no round has run yet"
    reason_code: str = codes.NOT_READY
    reason_numbers: Mapping[str, Any] = {}        # as Verdict.numbers
    refusals: Optional[Refusals] = None           # the same
    since_at: Optional[float] = None              # seconds since the epoch: begin of the state
    until_at: Optional[float] = None              # the same: when it ends by itself; None unknown
    view: Optional[ClusterView] = None            # None before the first observation
    builtin_active: Optional[bool] = None         # when last seen; None before
    progress: Optional[ExecutionProgress] = None  # None where nothing is executed
    waiting: Tuple[WaitingGroup, ...] = ()        # of the execution: all of `wanted`
    wanted: Sequence[PgChange] = ()               # of the execution: not sent yet
    deferred: Sequence[WaitingChange] = ()        # what of these the last decision deferred
    sent: Mapping[str, PendingMove] = {}          # by pgid: sent, and not seen to arrive
    last_execution: Optional[Dict[str, Any]] = None   # JSON-ready, see Execution.summary
    episode: Optional[Dict[str, Any]] = None      # the one that lasts; JSON-ready
    history: List[Dict[str, Any]] = []            # finished episodes, the newest last; JSON-ready
    rejected: Items = {}                          # by pgid: what the monitor did not keep
    #: PG that an OSD withholds, and that is not taken back → (why, the command that takes it back)
    withheld: Mapping[str, Tuple[str, str]] = {}
    mispredicted: Mapping[int, Misprediction] = {}   # by pool id: pools that are stopped
    decided_on: Optional[ClusterSummary] = None   # the summary that an idle state rests on
    drains: DrainStatus = DrainStatus()

    def progress_ratio(self) -> Optional[float]:
        """Bytes that have arrived, as a ratio of those that the episode moves, in whole per cent;
        None where unknown."""
        if self.progress is not None:
            done, total = self.progress.bytes_done, self.progress.bytes_total
        elif self.view is None or self.episode is None:
            return None
        else:   # nothing is planned, and the last shards are on their way
            total = self.episode["bytes"]
            done = max(0, total - self.view.moving.bytes)
        if done is None or total is None:
            return None
        return min(100, 100 * done // total) / 100.0 if total else 0.0

    def as_of(self, summary: ClusterSummary) -> BalancerStatus:
        """The status with what a newer summary shows that speaks against its state.

        The loop takes it in with its next round; where it is balanced or stuck, within ten minutes.
        """
        empty = summary.without_pgs if self.view is not None and _is_same_map(
            self.view.snapshot, summary) else frozenset()
        now = self._due(summary)._replace(drains=self.drains.as_of(summary.epoch, empty))
        then = self.decided_on
        if then is None or self.state not in (BALANCED, STUCK) or (
                limits(then) == limits(summary)
                and summary.misplaced_copies <= then.misplaced_copies):
            return now
        shards = sum(group.shards for group in self.waiting)
        since = "" if self.since_at is None else f" since {format_time(self.since_at)} UTC"
        reason = ("the cluster has changed, which is looked at within ten minutes;"
                  f" {self.state}{since} before that ({self.reason})")
        return now._replace(
            state=WAITING, reason_code=codes.SETTLING, reason=reason, reason_numbers={},
            refusals=None, since_at=None,
            waiting=(WaitingGroup(codes.SETTLING, shards, reason=reason),) if shards else ())

    def _due(self, summary: ClusterSummary) -> BalancerStatus:
        """What waited for the misplaced limit at the last round, and fits below it by now, waits
        for the next round alone."""
        misplaced = 1.0 if self.view is None else self.view._replace(
            misplaced_copies=summary.misplaced_copies,
            statistics_at=summary.statistics_at).misplaced_ratio
        due = {codes.NEXT_BATCH, *(group.code for group in self.waiting
                                   if group.numbers.get("fits_ratio", -1.0) >= misplaced)}
        shards = sum(group.shards for group in self.waiting if group.code in due)
        return self._replace(
            waiting=tuple(sorted([
                *(group for group in self.waiting if group.code not in due),
                *[WaitingGroup(codes.NEXT_BATCH, shards)] * bool(shards)],
                key=lambda group: -group.shards)),
            reason_code=codes.NEXT_BATCH if self.reason_code in due else self.reason_code)


def _is_same_map(snapshot: Snapshot, summary: ClusterSummary) -> bool:
    """True where CRUSH places no PG otherwise than at that look."""
    return (snapshot.crush_version == summary.crush_version
            and snapshot.pools.keys() == summary.pools.keys()
            and {osd.id: (osd.up, osd.is_in, osd.reweight) for osd in snapshot.osds.values()}
            == {number: (osd.up, osd.is_in, osd.reweight) for number, osd in summary.osds.items()})


def groups_of(execution: Optional[Execution], outcome: Verdict) -> Tuple[WaitingGroup, ...]:
    """The groups of what of an execution waits, by what the outcome of a round says of it."""
    if execution is None:
        return ()
    holds_up = outcome.state in (BLOCKED, WAITING, THROTTLED, MOVING) and (
        outcome.code != codes.MOVING)
    return waiting_groups(
        execution.wanted, outcome.waiting, outcome.code if holds_up else codes.NEXT_BATCH,
        outcome.reason if holds_up else "")


def execution_progress(execution: Execution, episode: Optional[Episode],
                       view: Optional[ClusterView], code: str, now: float) -> ExecutionProgress:
    """The progress as of the view; totals and times are unknown without one, and before the
    execution has been compared with the map: what it wants may be in place already.

    Bytes are those of the episode, which outlives both a plan and a mgr: what it has sent, and what
    the plan under way is still to send. Sent and not yet in flight no more: arrived. No time is
    known where nothing moves, nor by statistics that stand still. `code`: of the state.
    """
    progress = ExecutionProgress(execution.name, execution.summary())
    if view is None or episode is None or not execution.is_compared:
        return progress
    wanted = execution.wanted_bytes
    progress = progress._replace(bytes_total=episode.bytes + sum(wanted.values()),
                                 bytes_done=max(0, episode.bytes - view.moving.bytes))
    rate, left = view.rates.ours_now, time_left(view.rates, view.movements, wanted)
    why = ("OSDs do not report" if view.stale_osds
           else "nothing arrives at present" if code in _STANDS or view.rates.stand_still(now)
           else _NOTHING_YET if view.rates.moved_at is None or left is None
           or execution.wanted and not wanted and left.seconds <= 0.0 else "")
    if why or left is None:
        return progress._replace(still_reason=why)
    return progress._replace(
        eta_at=view.snapshot.taken_at + left.seconds, eta_osd=left.osd,
        bytes_per_second=rate.per_second if rate.seconds > 0.0 else None)
