"""The status of the loop for other threads: an immutable value, replaced after each step."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..drain.status import DrainStatus
from ..execution.dispatcher import has_same_states
from ..execution.outcomes import (
    Items, Refusals, Verdict, WaitingChange, WaitingGroup, waiting_groups)
from ..execution.execution import Execution, ExecutionProgress
from ..execution.pending_moves import PendingMove
from ..execution.size_check import Misprediction
from ..gateway.cluster_summary import ClusterSummary
from ..observation.observer import limits
from ..observation.cluster_view import (
    BALANCED, BLOCKED, MOVING, OFF, STUCK, THROTTLED, WAITING, ClusterView, WillNotFit)
from ..observation.movements import time_left
from ..plan.model import PgChange
from ..runtime.formatting import format_time
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .journal import Episode
from .steering import Steered

_NOTHING_YET = "nothing of it has arrived yet"
#: Codes of states in which nothing moves, or nobody can see whether it does. NO_MONITOR is none of
#: them: data goes on to arrive.
_STANDS = (codes.FLAG, codes.NOT_READY)

IS_OFF = Verdict(codes.SWITCHED_OFF, "automatic balancing is off", state=OFF)
#: The state of a mgr that has just taken over. It soon refreshes.
AWAITS_REPORTS = Verdict(
    codes.MOVING, "what the last mgr has sent shows within a minute", state=MOVING, seconds=10.0)


class BalancerStatus(NamedTuple):
    """All that reports show of the loop, at one moment. Nobody edits it."""

    state: str = OFF
    reason: str = "no round has run yet"
    reason_code: str = codes.NOT_READY
    reason_numbers: Mapping[str, Any] = {}        # as Verdict.numbers
    refusals: Optional[Refusals] = None           # the same
    since_at: Optional[float] = None              # seconds since the epoch: begin of the state
    until_at: Optional[float] = None              # the same: end of the state; None if unknown
    view: Optional[ClusterView] = None            # None before the first snapshot
    builtin_active: Optional[bool] = None         # when last seen; None before
    progress: Optional[ExecutionProgress] = None  # None if nothing is executed
    waiting: Tuple[WaitingGroup, ...] = ()        # of the execution: all of `wanted`
    wanted: Sequence[PgChange] = ()               # of the execution: not sent yet
    deferred: Sequence[WaitingChange] = ()        # those that the last decision deferred
    sent: Mapping[str, PendingMove] = {}          # by pgid: sent, and not seen to arrive
    last_execution: Optional[Dict[str, Any]] = None   # JSON-ready, see Execution.summary
    episode: Optional[Dict[str, Any]] = None      # the one that lasts; JSON-ready
    history: List[Dict[str, Any]] = []            # finished episodes, the newest last; JSON-ready
    #: by pgid: why upmap items were not kept, or that an OSD has withheld the PG
    rejected: Items = {}
    #: PG withheld by an OSD, whose move is not cancelled → (why, the command that cancels it)
    withheld: Mapping[str, Tuple[str, str]] = {}
    mispredicted: Mapping[int, Misprediction] = {}   # by pool id: pools that are stopped
    decided_on: Optional[ClusterSummary] = None   # the summary that an idle state rests on
    drains: DrainStatus = DrainStatus()
    steered: Optional[Steered] = None   # while shards whose targets were chosen are on their way
    steering_at: Optional[float] = None   # as SteeringTrigger.due_at
    steering_waits_for: str = ""   # the plan with a name that keeps shards from being steered
    holds_placement: bool = False   # shards that CRUSH moves are kept where their data is
    steered_at: float = 0.0   # Steered.at of the last choice; 0: none yet

    @property
    def plan_name(self) -> str:
        """Returns the name of the plan that is executed; empty for none, and for an automatic
        one."""
        return self.progress.name if self.progress is not None else ""

    def progress_ratio(self) -> Optional[float]:
        """Returns the bytes that have arrived, as a ratio of all bytes of the episode, in whole per
        cent; None if unknown."""
        if self.progress is not None:
            done = self.progress.bytes_done
            total = self.progress.bytes_total
        elif self.view is None or self.episode is None:
            return None
        else:   # nothing is planned, and the last shards are on their way
            total = self.episode["bytes"]
            done = max(0, total - self.view.moving.bytes)
        if done is None or total is None:
            return None
        if not total:
            return 0.0
        return min(100, 100 * done // total) / 100.0

    def will_not_fit(self, view: ClusterView) -> List[WillNotFit]:
        """Returns the OSDs without space for what comes to them. Returns none while other OSDs are
        about to be chosen for shards that come."""
        if self.steering_at is not None:
            return []
        return view.will_not_fit()

    def as_of(self, summary: ClusterSummary) -> BalancerStatus:
        """Returns the status, corrected if a newer summary contradicts its state.

        The loop acts on it with its next round; if it is balanced or stuck, within ten minutes or
        one round.
        """
        empty: FrozenSet[int] = frozenset()
        if self.view is not None and _is_same_map(self.view.snapshot, summary):
            empty = summary.without_pgs
        now = self._due(summary)._replace(drains=self.drains.as_of(summary.epoch, empty))
        then = self.decided_on
        if then is None or self.state not in (BALANCED, STUCK):
            return now
        is_more = summary.misplaced_copies > then.misplaced_copies
        if not is_more and limits(then) == limits(summary):
            return now
        since = "" if self.since_at is None else f" since {format_time(self.since_at)} UTC"
        reason = ("the cluster has changed, which is looked at within ten minutes;"
                  f" {self.state}{since} before that ({self.reason})")
        shards = sum([group.shards for group in self.waiting])
        group = WaitingGroup(codes.SETTLING, shards, reason=reason)
        return now._replace(
            state=WAITING,
            reason_code=codes.SETTLING,
            reason=reason,
            reason_numbers={},
            refusals=None,
            since_at=None,
            waiting=(group,) if shards else ())

    def _due(self, summary: ClusterSummary) -> BalancerStatus:
        """Returns the status after arrivals: changes that have waited for the misplaced limit, and
        fit below it now, wait for the next round alone."""
        misplaced = 1.0
        if self.view is not None:
            misplaced = self.view._replace(
                misplaced_copies=summary.misplaced_copies,
                statistics_at=summary.statistics_at).misplaced_ratio
        due = {codes.NEXT_BATCH}
        for group in self.waiting:
            if group.numbers.get("fits_ratio", -1.0) >= misplaced:
                due.add(group.code)
        groups = []
        shards = 0
        for group in self.waiting:
            if group.code in due:
                shards += group.shards
            else:
                groups.append(group)
        if shards:
            groups.append(WaitingGroup(codes.NEXT_BATCH, shards))
        return self._replace(
            waiting=tuple(sorted(groups, key=lambda group: -group.shards)),
            reason_code=codes.NEXT_BATCH if self.reason_code in due else self.reason_code)


def _is_same_map(snapshot: Snapshot, summary: ClusterSummary) -> bool:
    """Returns True if the CRUSH map, the pools and the states of OSDs are the same."""
    if snapshot.crush_version != summary.crush_version:
        return False
    if snapshot.pools.keys() != summary.pools.keys():
        return False
    if snapshot.osds.keys() != summary.osds.keys():
        return False
    return has_same_states(snapshot, summary)


def groups_of(execution: Optional[Execution], outcome: Verdict) -> Tuple[WaitingGroup, ...]:
    """Groups the waiting changes of an execution by reason, from the outcome of the last round."""
    if execution is None:
        return ()
    code = codes.NEXT_BATCH
    reason = ""
    if outcome.code != codes.MOVING and outcome.state in (BLOCKED, WAITING, THROTTLED, MOVING):
        code = outcome.code
        reason = outcome.reason
    return waiting_groups(execution.wanted, outcome.waiting, code, reason)


def execution_progress(execution: Execution, episode: Optional[Episode],
                       view: Optional[ClusterView], code: str, now: float) -> ExecutionProgress:
    """Returns the progress as of the view. `code`: of the state.

    Totals and times are unknown without a view, and until the execution has been compared with the
    osdmap: its changes may be in place already.

    Bytes are those of the episode, which outlives both a plan and a mgr: those that were sent, and
    those that the plan under way will send. Bytes that were sent and are not in flight have
    arrived.
    """
    progress = ExecutionProgress(execution.name, execution.summary())
    if view is None or episode is None or not execution.is_compared:
        return progress
    wanted = execution.wanted_bytes
    progress = progress._replace(bytes_total=episode.bytes + sum(wanted.values()),
                                 bytes_done=max(0, episode.bytes - view.moving.bytes))
    if view.stale_osds:
        return progress._replace(still_reason="OSDs do not report")
    rates = view.rates
    if code in _STANDS or rates.stand_still(now):
        return progress._replace(still_reason="none of these shards arrives at present")
    rate = rates.ours_now
    left = time_left(rates, view.movements, wanted)
    if rates.moved_at is None or left is None:
        return progress._replace(still_reason=_NOTHING_YET)
    if execution.wanted and not wanted and left.seconds <= 0.0:
        return progress._replace(still_reason=_NOTHING_YET)
    return progress._replace(
        eta_at=view.snapshot.taken_at + left.seconds, eta_osd=left.osd,
        bytes_per_second=rate.per_second if rate.seconds > 0.0 else None)
