"""Background jobs: they make plans, which are kept, and compute what failures and changes
lead to. Commands show the newest answer, or that it is being computed."""
from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import (
    Any, Callable, Dict, Hashable, Mapping, NamedTuple, Optional, TypeVar, Union)

from ..gateway.gateway import Gateway, NotReady
from ..plan.model import Plan, Usage, resting_on
from ..plan.options import PlanOptions
from ..plan.placement import placement
from ..plan.store import MAX_PLANS, PlanStore
from ..planner.bound.changed import ChangeFigures, change_figures
from ..planner.planner import make_plan
from ..planner.rule_repair import repair_plan
from ..runtime.job_thread import JobRunner
from ..runtime.time_slice import AskToGoOn, TimeSlice, giving_way
from ..snapshot.model import Osd, Snapshot
from ..what_if.change import Changes, with_pg_num
from ..what_if.failure import (
    Failure, Recovery, TypeFailures, pgs_by_osd, recovery_from, usage_of, worst_failures)

#: Named plans that may be in progress at once: each waits for those before it.
MAX_PLANS_IN_PROGRESS = 10
#: A plan waits this often at most for PGs that have just been remapped: the map of a busy cluster
#: never rests.
_MAX_WAITS = 3

Planner = Callable[[Snapshot, PlanOptions], Plan]   # make_plan, or what stands in for it


class PlanProgress:
    """A plan that is made or waits to be; the job thread counts its moves."""

    def __init__(self, plan: str, started_at: float, aim: str) -> None:
        self.plan = plan               # its name; empty for an automatic plan
        self.started_at = started_at   # seconds since the epoch
        self.aim = aim
        self.moves = 0                 # found so far


class FailureQuestion(NamedTuple):
    """What fails, and of which placement."""

    failure: Optional[Failure]   # None: each failure domain, one at a time
    plan: Optional[str] = None   # a kept one's name; None: as everything in flight leads to
    head: str = ""               # of that plan, as it is stored: another one may get its name


class FailureAnswer(NamedTuple):
    """What follows. One of `recovery` and `worst` is there."""

    epoch: int              # of the osdmap
    made_at: float          # seconds since the epoch
    backfillfull_ratio: float
    osds: Mapping[int, Osd]             # by id
    degraded_pgs: int                   # or inactive, of the cluster as it is
    before: Usage                       # of the placement that fails
    recovery: Optional[Recovery]
    worst: Optional[Dict[str, TypeFailures]]


class ChangeAnswer(NamedTuple):
    """What changes lead to."""

    epoch: int       # of the osdmap
    made_at: float   # seconds since the epoch
    taken_at: float  # likewise, of the snapshot
    figures: ChangeFigures


class PgNumAnswer(NamedTuple):
    """What balancing comes to with more PGs in a pool."""

    epoch: int       # of the osdmap
    made_at: float   # seconds since the epoch
    after: Usage


#: Answers that are kept, on failures and changes, and those that are computed at most.
MAX_ANSWERS = 16
#: Seconds for which an answer on a failure or a change serves at another epoch, and at its own:
#: bytes change as well.
_OTHER_EPOCH_SECONDS, _SAME_EPOCH_SECONDS = 60.0, 600.0
#: After so long the worst of the failure domains are those computed so far: plans wait for the job.
_MOST_SECONDS = 10.0

_Answered = Union[FailureAnswer, ChangeAnswer, PgNumAnswer]
_Answer = TypeVar("_Answer", FailureAnswer, ChangeAnswer, PgNumAnswer)


class PlanService:
    """Hands plans and questions to the background jobs and keeps account of them. Any thread may
    use it.

    `clock` returns seconds since the epoch.
    """

    def __init__(self, gateway: Gateway, plan_store: PlanStore, jobs: JobRunner,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._jobs = jobs
        self._clock = clock
        self._log = log
        self.planner: Planner = make_plan
        self.plans_begun = 0   # since the mgr became active
        self._lock = threading.Lock()
        self._in_progress: Dict[str, PlanProgress] = {}   # by the plan's name
        #: by the plan's name, the newest last; the automatic one's stays until one is made
        self._failures: Dict[str, str] = {}
        #: by question, the newest last: the answer, a str that says why a job ended without one, or
        #: None while it is computed
        self._answers: Dict[Hashable, Any] = {}
        self.computed_failures = 0   # of the worst ones that a job computes
        self._stopping = False

    def plans_in_progress(self) -> Dict[str, PlanProgress]:
        """Name → progress of each plan that is made or waits to be; "" is the automatic plan."""
        with self._lock:
            return dict(self._in_progress)

    def last_failure(self, name: str) -> Optional[str]:
        """Why the last attempt to make a plan of this name failed, or None."""
        return self._failures.get(name)

    def submit_named(self, name: str, options: PlanOptions, max_seconds: float) -> bool:
        """Starts to make a plan that is kept; False where one of that name is in progress."""
        return self._submit(name, None, options, max_seconds, partial(self._keep, name))

    def _keep(self, name: str, plan: Plan, job: PlanProgress) -> None:
        head = self._plan_store.put(name, plan, self._clock())
        # it may have been cancelled while it was written
        if self._in_progress.get(name) is not job and (
                self._plan_store.heads().get(name) == head):
            self._plan_store.remove(name)

    def cancel(self, name: str) -> bool:
        """Cancels a plan in progress: at once, or where it next gives way while it is being made.

        False where no plan of that name is in progress.
        """
        with self._lock:
            return self._in_progress.pop(name, None) is not None

    def submit_automatic(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
                         done: Callable[[Plan], None]) -> bool:
        """Starts a plan for automatic balancing, which is handed to `done` and not kept."""
        return self._submit("", snapshot, options, max_seconds, lambda plan, _job: done(plan))

    def failure(self, question: FailureQuestion) -> Union[FailureAnswer, str, None]:
        """What follows from a failure; None while a job computes it, which this starts; or why that
        failed, which is told once."""
        name = question.failure.name if question.failure is not None else "the worst"
        return self._ask(question, f"failure of {name}",
                         partial(self._failure_answer, question))

    def known_failure(self, question: FailureQuestion) -> Optional[FailureAnswer]:
        """What follows from a failure, where `failure` would answer at once. Starts nothing, as a
        job takes a look at the cluster."""
        with self._lock:
            known = self._answers.get(question)
        return known if isinstance(known, FailureAnswer) and self._serves(known) else None

    def changes(self, changes: Changes, snapshot: Snapshot) -> Union[ChangeAnswer, str, None]:
        """As `failure`, of changes to the cluster of a snapshot: no look is taken for it."""
        return self._ask(changes, "what changes lead to",
                         partial(self._change_answer, changes, snapshot))

    def _change_answer(self, changes: Changes, snapshot: Snapshot) -> ChangeAnswer:
        with giving_way(self._limited(_MOST_SECONDS, lambda _: True)):
            return ChangeAnswer(snapshot.epoch, self._clock(), snapshot.taken_at,
                                change_figures(snapshot, changes))

    def pg_num(self, snapshot: Snapshot, options: PlanOptions, pool_id: int,
               pg_num: int) -> Optional[Usage]:
        """Plans with more PGs in a pool; None while a job makes the plan, which this starts."""
        answer = self._ask(("pg_num", pool_id, pg_num), f"pg_num {pg_num} of pool {pool_id}",
                           partial(self._pg_num_answer, snapshot, options, pool_id, pg_num))
        return answer.after if isinstance(answer, PgNumAnswer) else None

    def _pg_num_answer(self, snapshot: Snapshot, options: PlanOptions, pool_id: int,
                       pg_num: int) -> PgNumAnswer:
        plan = self._make(with_pg_num(snapshot, pool_id, pg_num), options, _MOST_SECONDS,
                          lambda _: True)
        return PgNumAnswer(snapshot.epoch, self._clock(), plan.after)

    def _serves(self, answer: _Answered) -> bool:
        return self._clock() - answer.made_at < (
            _SAME_EPOCH_SECONDS if answer.epoch == self._gateway.epoch()
            else _OTHER_EPOCH_SECONDS)

    def _failure_answer(self, question: FailureQuestion) -> FailureAnswer:
        changes = () if question.plan is None else self._plan_store.get(question.plan).changes
        snapshot = self._gateway.snapshot()
        failure, recovery, worst = question.failure, None, None

        def count(computed: int) -> bool:
            self.computed_failures = computed
            return True
        with giving_way(self._limited(_MOST_SECONDS, count)):
            placed = placement(snapshot).after(changes)
            if failure is None:
                worst = worst_failures(placed, self._gateway.up_sets_without)
            else:
                recovery = recovery_from(placed, failure, pgs_by_osd(placed),
                                         self._gateway.up_sets_without)
            return FailureAnswer(
                snapshot.epoch, self._clock(), snapshot.backfillfull_ratio, snapshot.osds,
                sum(states.inactive + states.degraded
                    for states in snapshot.pool_states.values()),
                usage_of(placed), recovery, worst)

    def _ask(self, question: Hashable, name: str,
             compute: Callable[[], _Answer]) -> Union[_Answer, str, None]:
        """The kept answer, where that serves still; None while a job computes it, which this
        starts; or why that failed, which is told once. `name`: of the job, for the log."""
        with self._lock:
            known = self._answers.get(question)
            is_new = question not in self._answers or not (
                known is None or isinstance(known, str) or self._serves(known))
            if is_new and list(self._answers.values()).count(None) >= MAX_ANSWERS:
                return f"{MAX_ANSWERS} others wait"   # each holds a snapshot
            if is_new:
                self._answers[question] = None
        if is_new:
            self._jobs.submit(name, partial(self._answer, question, compute))
            self._jobs.run_pending()
        with self._lock:
            known = self._answers.get(question)
            if isinstance(known, str):
                del self._answers[question]
            return known

    def _answer(self, question: Hashable, compute: Callable[[], _Answer]) -> None:
        found: Union[_Answer, str]
        try:
            found = compute()
        except Exception as error:
            self._log.exception("what was asked for cannot be computed")
            found = f"{type(error).__name__}: {error}"
        with self._lock:
            self._answers.pop(question, None)
            if not self._stopping:
                self._answers[question] = found
            for oldest in [one for one, known in self._answers.items() if known is not None][
                    :-MAX_ANSWERS]:
                del self._answers[oldest]

    def stop(self) -> None:
        """Ends the running job where it next gives way."""
        self._stopping = True

    def _submit(self, name: str, snapshot: Optional[Snapshot], options: PlanOptions,
                max_seconds: float, done: Callable[[Plan, PlanProgress], None]) -> bool:
        """Plans are made in the order in which they are submitted, but an automatic one first: it
        may relieve a full OSD."""
        job = PlanProgress(name, self._clock(), options.aim)
        with self._lock:
            if name in self._in_progress:
                return False
            self._in_progress[name] = job
            if name:
                self._failures.pop(name, None)

        def run() -> None:
            try:
                if self._advance(job, 0):
                    plan = self._make(self._settled(snapshot), options, max_seconds,
                                      partial(self._advance, job))
                    if self._advance(job, len(plan.moves)):
                        if not self._stopping:
                            done(plan, job)
                        self._log.info("made plan %s: %d moves, %d bytes, %s",
                                       name or "(automatic)", len(plan.moves), plan.bytes,
                                       plan.stop_reason)
                        with self._lock:
                            self._failures.pop(name, None)
            except Exception as error:
                self._log.exception("making plan %r failed", name or "automatic")
                with self._lock:
                    if self._in_progress.get(name) is job:
                        self._failures.pop(name, None)
                        self._failures[name] = f"{type(error).__name__}: {error}"
                        for oldest in [known for known in self._failures if known][:-MAX_PLANS]:
                            del self._failures[oldest]
            finally:
                with self._lock:
                    if self._in_progress.get(name) is job:
                        del self._in_progress[name]
        self._jobs.submit(f"plan {name or 'automatic'}", run, first=not name)
        return True

    def _advance(self, job: PlanProgress, moves: int) -> bool:
        """Records the moves found so far; False where the plan has been cancelled."""
        job.moves = moves
        return self._in_progress.get(job.plan) is job

    def _make(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
              is_wanted: Callable[[int], bool]) -> Plan:
        self.plans_begun += 1
        planner = repair_plan if options.repair else self.planner
        options = options._replace(max_pg_shards_per_osd=self._gateway.max_pg_shards().most)
        with giving_way(self._limited(max_seconds, is_wanted)):
            plan = planner(snapshot, options)
        return resting_on(snapshot, plan)._replace(limited_to=options.limited_to)

    def _settled(self, snapshot: Optional[Snapshot]) -> Snapshot:
        """The snapshot, or a newer one where none was given or the osdmap is another.

        Waits some seconds where PGs have just been remapped, until it is known whether their data
        has to move. An automatic plan, for which a snapshot is given, waits for nothing: the loop
        has let the cluster settle, or cannot wait.
        """
        if snapshot is not None:
            is_newest = snapshot.epoch == self._gateway.epoch()
            return snapshot if is_newest else self._gateway.snapshot()
        snapshot = self._gateway.snapshot()
        for _ in range(_MAX_WAITS):
            if snapshot.unsettled_seconds <= 0.0 or not self._jobs.wait(
                    snapshot.unsettled_seconds + 1.0):
                break
            try:
                snapshot = self._gateway.snapshot()
            except NotReady:   # as while a pool is created; the last snapshot is good enough
                break
        return snapshot

    def _limited(self, max_seconds: float, is_wanted: Callable[[int], bool]) -> AskToGoOn:
        """How a plan in the making gives way. It ends after `max_seconds`, at shutdown, or where it
        is not wanted: `is_wanted` is called with the moves found so far, at each yield."""
        time_slice, started = TimeSlice(), time.monotonic()
        still_wanted = True

        def ask(moves: int) -> bool:
            nonlocal still_wanted
            if time_slice.yield_if_due():
                still_wanted = is_wanted(moves)
            return (still_wanted and not self._stopping
                    and time.monotonic() - started < max_seconds)
        return ask
