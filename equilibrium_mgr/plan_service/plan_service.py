"""Background jobs: they make and keep plans, and compute the consequences of failures and changes.
Commands show the newest answer, or that a job is computing it."""
from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import (
    Any, Callable, Dict, Hashable, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union)

from ..gateway.gateway import Gateway, NotReady
from ..plan.model import PgChange, Plan, Usage, resting_on
from ..plan.options import PlanOptions, Steering
from ..plan.placement import Placement, placement
from ..plan.store import MAX_PLANS, PlanStore
from ..planner.bound.changed import ChangeFigures, change_figures
from ..planner.planner import CONVERGED, make_plan
from ..planner.rule_repair import repair_plan
from ..planner.steering import steered_shards, steering_plan
from ..runtime.job_thread import JobRunner
from ..runtime.time_slice import AskToGoOn, TimeSlice, give_way, giving_way
from ..snapshot.model import Osd, Snapshot
from ..what_if.change import Changes, with_pg_num
from ..what_if.failure import (
    Failure, Recovery, TypeFailures, at_failure, pgs_by_osd, recovery_from, redirected, usage_of,
    worst_failures, worst_first)

#: Named plans that may be in progress at once: each waits for those before it.
MAX_PLANS_IN_PROGRESS = 10
#: A plan waits at most so often for PGs that have just been remapped, because the osdmap of a busy
#: cluster never stops changing.
_MAX_WAITS = 3

Planner = Callable[[Snapshot, PlanOptions], Plan]   # make_plan, or a substitute of it


@dataclass
class PlanProgress:
    """A plan in the making or in the queue; the job thread counts its moves."""

    plan: str           # its name; empty for an automatic plan
    started_at: float   # seconds since the epoch
    aim: str
    moves: int = 0      # found so far


class FailureQuestion(NamedTuple):
    """A question about a failure in a placement."""

    failure: Optional[Failure]   # None: each failure domain, one at a time
    #: of automatic plans; `steering`: what the options allow, None if they allow nothing now
    options: PlanOptions = PlanOptions()
    plan: Optional[str] = None   # name of a kept plan; None: what is in flight
    head: str = ""               # stored head of the plan: another plan may get its name


class SteeredRecovery(NamedTuple):
    """The consequences of a failure if shards that are copied anyway get other targets."""

    recovery: Recovery
    elsewhere: int       # shards that come to other OSDs than CRUSH's
    held: int            # shards that stay where their data is
    is_finished: bool    # False: the search was cut short, so that more may be possible
    #: OSD set → lower bound of the highest utilization that any such choice leads to
    bounds: Mapping[str, float]


class FailureAnswer(NamedTuple):
    """The consequences of a failure: `recovery`, or `worst` for each failure domain."""

    epoch: int              # of the osdmap
    made_at: float          # seconds since the epoch
    backfillfull_ratio: float
    full_ratio: float
    osds: Mapping[int, Osd]             # by id
    degraded_pgs: int                   # PGs that are degraded or inactive in the present cluster
    before: Usage                       # of the placement before the failure
    recovery: Optional[Recovery]
    worst: Optional[Dict[str, TypeFailures]]
    steers: bool   # True if the options allow steering now
    #: the same with steering: of `recovery`, or of as many of `worst` as time was left for, the
    #: worst of each type first
    steered: Mapping[Failure, SteeredRecovery]


class ChangeAnswer(NamedTuple):
    """The consequences of changes."""

    epoch: int       # of the osdmap
    made_at: float   # seconds since the epoch
    taken_at: float  # the same, of the snapshot
    figures: ChangeFigures


class PgNumAnswer(NamedTuple):
    """The result of balancing with more PGs in a pool."""

    epoch: int       # of the osdmap
    made_at: float   # seconds since the epoch
    after: Usage


#: At most so many answers are kept, and so many are computed or wait for it.
MAX_ANSWERS = 16
#: An answer is valid for so many seconds if the osdmap has another epoch by now, and if it has the
#: same epoch: bytes change, too.
_OTHER_EPOCH_SECONDS = 60.0
_SAME_EPOCH_SECONDS = 600.0
#: A job that answers a question ends after so many seconds with what it has computed so far,
#: because plans wait.
_MOST_SECONDS = 10.0

_Answered = Union[FailureAnswer, ChangeAnswer, PgNumAnswer]
_Answer = TypeVar("_Answer", FailureAnswer, ChangeAnswer, PgNumAnswer)


class PlanService:
    """Hands plans and questions to the background jobs, and keeps account of them. Any thread may
    use it.

    `clock`: returns seconds since the epoch.
    """

    plans_begun = 0         # since the mgr became active
    computed_failures = 0   # failure domains that a job has computed so far
    _stopping = False

    def __init__(self, gateway: Gateway, plan_store: PlanStore, jobs: JobRunner,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._jobs = jobs
        self._clock = clock
        self._log = log
        self.planner: Planner = make_plan
        self._lock = threading.Lock()
        self._in_progress: Dict[str, PlanProgress] = {}   # by the plan's name
        #: by the plan's name, the newest last; that of the automatic plan stays until one is made
        self._failures: Dict[str, str] = {}
        #: by question, the newest last: the answer, a str with the reason why a job failed, or None
        #: while a job computes it
        self._answers: Dict[Hashable, Any] = {}

    def plans_in_progress(self) -> Dict[str, PlanProgress]:
        """Returns name → progress of each plan in the making or in the queue; "" is the automatic
        plan."""
        with self._lock:
            return dict(self._in_progress)

    def last_failure(self, name: str) -> Optional[str]:
        """Returns why the last attempt to make a plan of this name failed, or None."""
        return self._failures.get(name)

    def submit_named(self, name: str, options: PlanOptions, max_seconds: float) -> bool:
        """Starts a plan that is kept; returns False if one of that name is in progress."""
        return self._submit(name, None, options, max_seconds, partial(self._keep, name))

    def _keep(self, name: str, plan: Plan, job: PlanProgress) -> None:
        """Stores a plan, and removes it again if it was cancelled in the meantime."""
        store = self._plan_store
        head = store.put(name, plan, self._clock())
        if self._in_progress.get(name) is not job and store.heads().get(name) == head:
            store.remove(name)

    def cancel(self, name: str) -> bool:
        """Cancels a plan in progress: at once, or at its next yield while a job makes it.

        Returns False if no plan of that name is in progress.
        """
        with self._lock:
            return self._in_progress.pop(name, None) is not None

    def submit_automatic(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
                         done: Callable[[Plan], None]) -> bool:
        """Starts a plan for automatic balancing, which goes to `done` and is not kept. Returns
        False if one is in progress."""
        return self._submit("", snapshot, options, max_seconds, lambda plan, _job: done(plan))

    def failure(self, question: FailureQuestion) -> Union[FailureAnswer, str, None]:
        """Returns the consequences of a failure. Starts a job if they are not known, and returns
        None until it ends. Returns why there is no answer if the job failed, once, or if too many
        others wait."""
        name = question.failure.name if question.failure is not None else "the worst"
        return self._ask(question, f"failure of {name}",
                         partial(self._failure_answer, question))

    def known_failure(self, question: FailureQuestion) -> Optional[FailureAnswer]:
        """Returns the consequences of a failure if `failure` would return them at once, else None.
        Starts no job, because a job refreshes the cluster state."""
        with self._lock:
            known = self._answers.get(question)
        if isinstance(known, FailureAnswer) and self._is_valid(known):
            return known
        return None

    def changes(self, changes: Changes, snapshot: Snapshot) -> Union[ChangeAnswer, str, None]:
        """Returns the consequences of changes to the cluster, like `failure`. The job uses this
        snapshot and does not refresh the cluster state."""
        return self._ask(changes, "what changes lead to",
                         partial(self._change_answer, changes, snapshot))

    def _change_answer(self, changes: Changes, snapshot: Snapshot) -> ChangeAnswer:
        with giving_way(self._limited(_MOST_SECONDS, lambda _: True)):
            return ChangeAnswer(snapshot.epoch, self._clock(), snapshot.taken_at,
                                change_figures(snapshot, changes))

    def pg_num(self, snapshot: Snapshot, options: PlanOptions, pool_id: int,
               pg_num: int) -> Optional[Usage]:
        """Returns the usage after balancing with more PGs in a pool. Starts a job if it is not
        known, and returns None until the job ends; None also if the job failed, or too many others
        wait."""
        answer = self._ask(("pg_num", pool_id, pg_num), f"pg_num {pg_num} of pool {pool_id}",
                           partial(self._pg_num_answer, snapshot, options, pool_id, pg_num))
        if isinstance(answer, PgNumAnswer):
            return answer.after
        return None

    def _pg_num_answer(self, snapshot: Snapshot, options: PlanOptions, pool_id: int,
                       pg_num: int) -> PgNumAnswer:
        plan = self._make(with_pg_num(snapshot, pool_id, pg_num), options, _MOST_SECONDS,
                          lambda _: True)
        return PgNumAnswer(snapshot.epoch, self._clock(), plan.after)

    def _is_valid(self, answer: _Answered) -> bool:
        """Returns True if a kept answer is new enough."""
        most = _OTHER_EPOCH_SECONDS
        if answer.epoch == self._gateway.epoch():
            most = _SAME_EPOCH_SECONDS
        return self._clock() - answer.made_at < most

    def _failure_answer(self, question: FailureQuestion) -> FailureAnswer:
        changes: Tuple[PgChange, ...] = ()
        if question.plan is not None:
            changes = self._plan_store.get(question.plan).changes
        gateway = self._gateway
        snapshot = gateway.snapshot()
        failure = question.failure
        recovery = None
        worst = None
        started = time.monotonic()

        def count(computed: int) -> bool:
            self.computed_failures = computed
            return True
        with giving_way(self._limited(_MOST_SECONDS / 2, count)):
            placed = placement(snapshot).after(changes)
            if failure is None:
                worst = worst_failures(placed, gateway.up_sets_without)
                recoveries = worst_first(worst)
            else:
                recovery = recovery_from(placed, failure, pgs_by_osd(placed),
                                         gateway.up_sets_without)
                recoveries = [recovery]
        left = started + _MOST_SECONDS - time.monotonic()
        with giving_way(self._limited(left, lambda _: True)):
            steered = all_steered(placed, recoveries, question.options)
            degraded = sum([states.inactive + states.degraded
                            for states in snapshot.pool_states.values()])
            return FailureAnswer(
                epoch=snapshot.epoch,
                made_at=self._clock(),
                backfillfull_ratio=snapshot.backfillfull_ratio,
                full_ratio=snapshot.full_ratio,
                osds=snapshot.osds,
                degraded_pgs=degraded,
                before=usage_of(placed),
                recovery=recovery,
                worst=worst,
                steers=question.options.steering is not None,
                steered=steered)

    def _ask(self, question: Hashable, name: str,
             compute: Callable[[], _Answer]) -> Union[_Answer, str, None]:
        """Returns the kept answer if it is still valid. Otherwise starts a job, and returns None
        until it ends. Returns why there is no answer if the job failed, once, or if too many others
        wait. `name`: of the job, for the log."""
        answers = self._answers
        with self._lock:
            is_new = self._needs_job(question)
            if is_new:
                if list(answers.values()).count(None) >= MAX_ANSWERS:
                    return f"{MAX_ANSWERS} others wait"   # each holds a snapshot
                answers[question] = None
        if is_new:
            self._jobs.submit(name, partial(self._answer, question, compute))
            self._jobs.run_pending()
        with self._lock:
            known = answers.get(question)
            if isinstance(known, str):
                del answers[question]
            return known

    def _needs_job(self, question: Hashable) -> bool:
        """Returns True if no job computes the answer, and neither a valid answer nor a failure is
        kept. The caller holds the lock."""
        if question not in self._answers:
            return True
        known = self._answers[question]
        if known is None or isinstance(known, str):
            return False
        return not self._is_valid(known)

    def _answer(self, question: Hashable, compute: Callable[[], _Answer]) -> None:
        """Computes an answer, keeps it, and forgets the oldest ones."""
        found: Union[_Answer, str]
        try:
            found = compute()
        except Exception as error:
            self._log.exception("what was asked for cannot be computed")
            found = f"{type(error).__name__}: {error}"
        answers = self._answers
        with self._lock:
            answers.pop(question, None)
            if not self._stopping:
                answers[question] = found
            kept = [one for one, known in answers.items() if known is not None]
            for oldest in kept[:-MAX_ANSWERS]:
                del answers[oldest]

    def stop(self) -> None:
        """Ends the running job at its next yield."""
        self._stopping = True

    def _submit(self, name: str, snapshot: Optional[Snapshot], options: PlanOptions,
                max_seconds: float, done: Callable[[Plan, PlanProgress], None]) -> bool:
        """Starts a job that makes a plan; returns False if one of that name is in progress.

        The jobs run in their order, but the automatic plan goes first: it may relieve a full OSD.
        """
        job = PlanProgress(name, self._clock(), options.aim)
        in_progress = self._in_progress
        with self._lock:
            if name in in_progress:
                return False
            in_progress[name] = job
            if name:
                self._failures.pop(name, None)

        def run() -> None:
            try:
                self._run(job, snapshot, options, max_seconds, done)
            except Exception as error:
                self._log.exception("making plan %r failed", name or "automatic")
                self._record_failure(job, f"{type(error).__name__}: {error}")
            finally:
                with self._lock:
                    if in_progress.get(name) is job:
                        del in_progress[name]
        self._jobs.submit(f"plan {name or 'automatic'}", run, first=not name)
        return True

    def _run(self, job: PlanProgress, snapshot: Optional[Snapshot], options: PlanOptions,
             max_seconds: float, done: Callable[[Plan, PlanProgress], None]) -> None:
        """Makes a plan and hands it to `done`, unless it was cancelled."""
        if not self._advance(job, 0):
            return
        plan = self._make(self._newest(snapshot), options, max_seconds,
                          partial(self._advance, job))
        if not self._advance(job, len(plan.moves)):
            return
        if not self._stopping:
            done(plan, job)
        self._log.info("made plan %s: %d moves, %d bytes, %s", job.plan or "(automatic)",
                       len(plan.moves), plan.bytes, plan.stop_reason)
        with self._lock:
            self._failures.pop(job.plan, None)

    def _record_failure(self, job: PlanProgress, reason: str) -> None:
        """Keeps the reason why a plan failed, unless it was cancelled, and forgets the oldest."""
        with self._lock:
            name = job.plan
            failures = self._failures
            if self._in_progress.get(name) is not job:
                return
            failures.pop(name, None)
            failures[name] = reason
            for oldest in [known for known in failures if known][:-MAX_PLANS]:
                del failures[oldest]

    def _advance(self, job: PlanProgress, moves: int) -> bool:
        """Records the moves found so far; returns False if the plan was cancelled."""
        job.moves = moves
        return self._in_progress.get(job.plan) is job

    def _make(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
              is_wanted: Callable[[int], bool]) -> Plan:
        """Makes a plan, with its basis in the osdmap."""
        self.plans_begun += 1
        planner = repair_plan if options.repair else self.planner
        if options.steering is not None:
            planner = steering_plan
        options = options._replace(max_pg_shards_per_osd=self._gateway.max_pg_shards().most)
        with giving_way(self._limited(max_seconds, is_wanted)):
            plan = planner(snapshot, options)
        return resting_on(snapshot, plan)._replace(limited_to=options.limited_to)

    def _newest(self, snapshot: Optional[Snapshot]) -> Snapshot:
        """Returns the snapshot, or a new one if none was given or the osdmap has changed.

        If PGs have just been remapped, waits some seconds until it is known whether their data has
        to move. An automatic plan, which comes with a snapshot, does not wait: the loop has let the
        cluster settle, or cannot wait.
        """
        gateway = self._gateway
        if snapshot is not None:
            if snapshot.epoch == gateway.epoch():
                return snapshot
            return gateway.snapshot()
        snapshot = gateway.snapshot()
        for _ in range(_MAX_WAITS):
            left = snapshot.unsettled_seconds
            if left <= 0.0 or not self._jobs.wait(left + 1.0):
                break
            try:
                snapshot = gateway.snapshot()
            except NotReady:   # such as while a pool is created: the last snapshot is good enough
                break
        return snapshot

    def _limited(self, max_seconds: float, is_wanted: Callable[[int], bool]) -> AskToGoOn:
        """Returns a function that yields, and returns False if the job has to end: after
        `max_seconds`, at shutdown, or if it is not wanted.

        `is_wanted`: called at each yield with the moves found so far.
        """
        time_slice = TimeSlice()
        started = time.monotonic()
        still_wanted = True

        def ask(moves: int) -> bool:
            nonlocal still_wanted
            if time_slice.yield_if_due():
                still_wanted = is_wanted(moves)
            if not still_wanted or self._stopping:
                return False
            return time.monotonic() - started < max_seconds
        return ask


def all_steered(placed: Placement, recoveries: Sequence[Recovery],
                 options: PlanOptions) -> Dict[Failure, SteeredRecovery]:
    """Returns the consequences of the first failures with steering, as many as time is left for.
    Only the first may be unfinished."""
    found: Dict[Failure, SteeredRecovery] = {}
    for recovery in recoveries:
        if found and not give_way():
            break
        steered = _steered(placed, recovery, options)
        if found and not steered.is_finished:
            break
        found[recovery.failure] = steered
    return found


def _steered(placed: Placement, recovery: Recovery, options: PlanOptions) -> SteeredRecovery:
    """Returns the consequences of a failure if shards get other targets than CRUSH's."""
    snapshot = at_failure(placed, recovery)
    steering = options.steering or Steering()
    steering = steering._replace(at_rest=frozenset(recovery.up))
    plan = steering_plan(snapshot, options._replace(steering=steering))
    elsewhere, held = steered_shards(plan, snapshot)
    return SteeredRecovery(redirected(placed, recovery, plan.changes), elsewhere, held,
                           plan.stop_reason == CONVERGED, plan.bounds)
