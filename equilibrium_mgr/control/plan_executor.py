"""Carries an execution on by one step: chooses a batch, sends it, or tells what it waits for."""
from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import (
    AbstractSet, Callable, FrozenSet, Iterator, NamedTuple, Optional, Sequence)

from ..drain.drain_list import DrainList
from ..execution.batch_selection import Decision
from ..execution.change_outcomes import DroppedChange
from ..execution.dispatcher import UpmapDispatcher, moving
from ..execution.execution import Execution, ExecutionUpdate
from ..execution.execution_slot import ExecutionSlot
from ..execution.inactive_pools import TRANSIENT_RECHECK_SECONDS
from ..execution.verdict import Verdict
from ..observation.movements import own_pgids
from ..observation.observer import ClusterObserver
from ..observation.states import BLOCKED, MOVING, PLANNING, THROTTLED, WAITING
from ..plan.kinds import DRAIN, command_of
from ..plan.model import PgChange
from ..runtime.formatting import format_deadline, plural
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .cluster_guards import ClusterGuards
from .episodes.outcomes import COMPLETED, DROPPED, because
from .journal import Journal
from .round_timer import RoundTimer
from .status import IS_OFF

#: Changes that are sent at a time where most of them move nothing, which no limit of movement
#: binds: the monitors put them into one map.
_MOST_CHANGES = 1000
#: Seconds between two batches of a plan that moves nothing.
_NEXT_SECONDS = 2.0
#: States of PGs whose data has no whole copy among the OSDs that are up: they may last for ever.
_LOST_STATES = frozenset(("down", "incomplete"))
#: The same, and of those whose data stands still until an OSD is less full.
_HELD_STATES = _LOST_STATES.union(("backfill_toofull", "recovery_toofull"))


class Ending(NamedTuple):
    """The end of an execution."""

    outcome: str                   # for the log, `status` and the history
    nothing_sent: Optional[str]    # the first reason where nothing of the plan could be sent


class PlanExecutor:
    """Used by the serve thread. `wake` starts a round at once, `publish` publishes the status,
    `drains` is the list as commands have it now."""

    def __init__(self, slot: ExecutionSlot, dispatcher: UpmapDispatcher,
                 observer: ClusterObserver, guards: ClusterGuards, journal: Journal,
                 timer: RoundTimer, settings: Callable[[], Settings], clock: Callable[[], float],
                 wake: Callable[[], None], publish: Callable[[], None],
                 drains: Callable[[], DrainList]) -> None:
        self._slot = slot
        self._dispatcher = dispatcher
        self._observer = observer
        self._guards = guards
        self._journal = journal
        self._timer = timer
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._publish = publish
        self._drains = drains

    def record(self, execution: Execution, why: str) -> None:
        """Counts the execution in an episode, once, unless a command has ended it meanwhile."""
        if not execution.is_recorded:
            self._journal.begin_plan(execution.name, why, self._clock(), self._observer.view,
                                     lambda: self._slot.execution is execution)
            execution.is_recorded = True

    def advance(self, execution: Execution, snapshot: Snapshot,
                settings: Settings) -> Optional[Verdict]:
        """Sends the next batch where one may go. None where nothing is left to be waited for; then
        `ending` tells how it ends."""
        if execution.name:
            self.record(execution, command_of(execution.kind))
        self._journal.record_execution(self._slot.plan_name, self._clock(), self._slot.counts())
        self._dispatcher.drop_stopped_pools(execution, snapshot)
        decision = self._dispatcher.choose(execution, snapshot, settings,
                                           self._observer.max_misplaced_ratio(snapshot, settings))
        self._dispatcher.accept(execution, decision)
        if decision.send:
            return self._send(execution, decision, snapshot, settings)
        if decision.holds_up or not execution.wanted:
            self._observer.change_detector.await_arrivals(snapshot)
        if execution.wanted:
            return self._wait(execution, decision, snapshot, settings)
        if execution.is_motionless:
            return None   # what is on its way is none of it
        if self._dispatcher.pending.entries and not (
                self._dispatcher.has_stalled(execution, snapshot, settings)):
            return self.in_flight(snapshot, settings)
        return None

    def in_flight(self, snapshot: Snapshot, settings: Settings) -> Optional[Verdict]:
        """The state while moves of our own are in flight and nothing else is to be done; None where
        none are. What the last mgr sent is not pending with this one: the view knows of it."""
        count = sum(_may_arrive(snapshot, pgid) for pgid in self._under_way())
        if not count:
            return None
        self._observer.change_detector.await_arrivals(snapshot)
        return Verdict(
            codes.MOVING, f"{plural(count, 'PG')} {'is on its' if count == 1 else 'are on their'}"
            " way", state=MOVING)

    def _under_way(self) -> AbstractSet[str]:
        """PGs of our own moves that have not arrived."""
        view = self._observer.view
        return own_pgids(view.movements if view is not None else ()).union(
            self._dispatcher.pending.entries)

    def _throttled(self, snapshot: Snapshot) -> str:
        """The state where what is left of a plan waits for a limit: arrivals end that."""
        return MOVING if any(_may_arrive(snapshot, pgid, _HELD_STATES)
                             for pgid in self._under_way()) else THROTTLED

    def ending(self, execution: Execution, settings: Settings) -> Ending:
        """The end of an execution of which nothing is left to be waited for."""
        kept = execution.changed_pgs if execution.is_motionless else execution.done_moves
        if execution.dropped and not (execution.sent_moves or kept):
            reason = execution.dropped[0][1]
            return Ending(because(DROPPED, reason), reason)
        stalled = 0 if execution.is_motionless else len(self._dispatcher.pending.entries)
        if stalled:
            return Ending(because(DROPPED, f"nothing of {stalled} PGs on their way has arrived for"
                                  f" max_wait ({int(settings.max_wait)} s)"), None)
        if not execution.dropped or not execution.name:
            return Ending(COMPLETED, None)
        reasons = Counter(reason for _, reason in execution.dropped).most_common(2)
        left = plural(execution.planned_pgs - execution.changed_pgs, "PG")
        return Ending(because(COMPLETED, f"all but {left} ("
                              f"{'; '.join(reason for reason, _ in reasons)})"), None)

    def _wait(self, execution: Execution, decision: Decision, snapshot: Snapshot,
              settings: Settings) -> Verdict:
        self._break_deadlock(execution, snapshot, decision)
        self._dispatcher.drop_stalled(execution, decision, snapshot, settings)
        if not execution.wanted:
            self._observer.require_observation()
        transient = any(why.is_transient for _, why in decision.waiting)
        leading = decision.leading
        assert leading is not None   # what is wanted and was not sent waits
        state = (self._throttled(snapshot) if leading.is_throttle
                 else WAITING if transient else BLOCKED)
        return leading._replace(state=state, waiting=decision.waiting,
                                seconds=TRANSIENT_RECHECK_SECONDS if transient else None)

    def _break_deadlock(self, execution: Execution, snapshot: Snapshot,
                        decision: Decision) -> None:
        """Drops the remaining changes where nothing is in flight and all wait for full targets."""
        if len(decision.full) == len(decision.later) and not self._dispatcher.pending.entries:
            if not snapshot.misplaced_copies and not snapshot.in_flight():
                execution.apply(ExecutionUpdate(dropped=[
                    DroppedChange(change, deferral.reason)
                    for change, deferral in decision.full]))

    def _send(self, execution: Execution, decision: Decision, before: Snapshot,
              settings: Settings) -> Verdict:
        """Sends a batch, unless it has to wait or everything has been stopped."""
        wait = self._wait_before_sending(execution, decision, before)
        if wait is not None:
            return wait
        batch = self._dispatcher.still_allowed(
            decision.send[:max(_MOST_CHANGES, settings.max_moves_per_round)], before,
            execution.is_motionless)
        if not batch:
            return self._look_again(execution, decision)
        self._journal.log_changes(execution.name, execution.kind, batch, before, self._clock())
        self._store_sending(batch, before)
        self._timer.batch_sent(settings.sleep_interval)   # whatever the answers
        sent = self._dispatcher.send(execution, batch, before,
                                     lambda execution: self._permit(execution, settings, before),
                                     self._publish_submitted)
        self._journal.settle_changes(sent.snapshot if sent is not None else None)
        if sent is None:  # a successor must not take them for sent
            self._store_sending([], before)
            return self._not_permitted()
        if not sent.handed_over:
            self._store_sending([], before)
            return self._look_again(execution, decision)
        execution.stall.end()
        self._journal.record_sent(sent.moves, sent.bytes, sent.kept)
        if len(sent.handed_over) < len(batch):   # the rest has no cooldown with a successor
            self._store_sending(sent.handed_over, before)
        self._guards.builtin_grace.accept(sent.snapshot.upmap_items)
        self._observer.update_view(sent.snapshot, settings, same_bounds=True)
        return _moving(execution, decision, self._seconds_to_next(execution))

    def _look_again(self, execution: Execution, decision: Decision) -> Verdict:
        """The state where the map is another one than that of the look."""
        self._timer.allow_batch()
        self._observer.require_observation()
        return _moving(execution, decision, TRANSIENT_RECHECK_SECONDS)

    def _seconds_to_next(self, execution: Execution) -> Optional[float]:
        """Seconds until the next batch, of a plan that moves nothing; None for an ordinary round.
        There is no arrival to wait for, only the monitors' next map."""
        if not execution.is_motionless:
            return None
        self._timer.allow_batch()
        self._observer.require_observation()
        return _NEXT_SECONDS

    def _store_sending(self, batch: Sequence[PgChange], before: Snapshot) -> None:
        """Stores what of the batch moves data: a successor counts it as misplaced."""
        view = self._observer.view
        self._journal.store_sending(moving(batch, before), self._dispatcher.cooldown, self._clock(),
                                    own_pgids(view.movements if view is not None else ()),
                                    before.epoch)

    def _publish_submitted(self) -> None:
        """A batch counts as misplaced for commands as soon as it is submitted."""
        self._observer.count_submitted()
        self._publish()

    def _wait_before_sending(self, execution: Execution, decision: Decision,
                             before: Snapshot) -> Optional[Verdict]:
        """Returns the state in which a batch that is ready has to wait, or None where it may go."""
        left = self._dispatcher.backoff.seconds_left(self._clock())
        if left > 0.0:
            at = format_deadline(self._clock() + left)
            return Verdict(
                codes.MONITOR_BACKOFF,
                f"the monitor took nothing of the last batch; the next goes at {at}",
                {"until": at}, WAITING, left)
        if self._dispatcher.has_unconfirmed_excess and not execution.is_motionless:
            return Verdict(codes.MISPREDICTED, "an OSD seems to have taken more than was predicted;"
                           " it is looked at once more first", state=self._throttled(before))
        left = self._timer.batch_seconds()
        if left > 0.0:
            return _moving(execution, decision, left)
        return None

    @contextmanager
    def _permit(self, execution: Execution, settings: Settings,
                before: Snapshot) -> Iterator[bool]:
        """Context that yields True where neither `off` nor another option or list of drains has
        come since the round began; `off` waits until the context is left."""
        drained = before.drained_osds
        with self._slot.permit_sending(execution) as is_current:
            now, drains = self._settings(), self._drains()
            yield is_current and (
                bool(execution.name) or now.active
                or execution.kind == DRAIN and drains.is_running) and (
                now._replace(active=settings.active) == settings) and (
                drained == drains.osds.intersection(before.osds))

    def _not_permitted(self) -> Verdict:
        if not self._settings().active and self._slot.execution is None:
            return IS_OFF
        self._timer.allow_batch()
        self._observer.require_observation()
        self._wake()
        return Verdict(
            codes.PLANNING, "the options or the drains have changed, or a plan to execute has come"
            " in between", state=PLANNING)


def _moving(execution: Execution, decision: Decision, seconds: Optional[float]) -> Verdict:
    return Verdict(codes.MOVING, execution.progress(decision),
                   {"what_moves": "no data"} if execution.is_motionless else {}, MOVING, seconds,
                   decision.waiting)


def _may_arrive(snapshot: Snapshot, pgid: str, never: FrozenSet[str] = _LOST_STATES) -> bool:
    """False for a PG of which nothing can be copied: one in any of the states `never`."""
    pg = snapshot.pgs.get(pgid)
    return pg is None or never.isdisjoint(pg.state.split("+"))
