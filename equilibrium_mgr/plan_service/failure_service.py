"""Computes in background jobs what failures would lead to, and keeps the newest answers."""
from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Callable, Dict, Mapping, NamedTuple, Optional, Set

from ..gateway.gateway import Gateway
from ..plan.model import Usage
from ..plan.store import PlanStore
from ..runtime.job_thread import JobRunner
from ..runtime.time_slice import TimeSlice, giving_way
from ..snapshot.model import Osd
from ..what_if.failure import (
    Failure, Recovery, TypeFailures, pgs_by_osd, placement, recovery_from, usage_of,
    worst_failures)

#: Answers that are kept.
MAX_ANSWERS = 16
#: Seconds for which an answer serves at another epoch, and at its own: bytes change as well.
_OTHER_EPOCH_SECONDS, _SAME_EPOCH_SECONDS = 60.0, 600.0
#: After so long the worst of the failure domains are those computed so far: plans wait for the job.
_MOST_SECONDS = 60.0


class FailureQuestion(NamedTuple):
    """What fails, and of which placement."""

    failure: Optional[Failure]   # None: each failure domain, one at a time
    plan: Optional[str] = None   # a kept one's name; None: as everything in flight leads to
    generation: int = 0          # of that plan


class FailureAnswer(NamedTuple):
    """What follows. One of `recovery` and `worst` is there."""

    epoch: int              # of the osdmap
    made_at: float          # seconds since the epoch
    applied_changes: int    # of the plan; the others' PGs are elsewhere by now
    backfillfull_ratio: float
    osds: Mapping[int, Osd]             # by id
    degraded_pgs: int                   # or inactive, of the cluster as it is
    before: Usage                       # of the placement that fails
    recovery: Optional[Recovery]
    worst: Optional[Dict[str, TypeFailures]]


class FailureService:
    """Any thread may use it. `clock` returns seconds since the epoch."""

    def __init__(self, gateway: Gateway, plan_store: PlanStore, jobs: JobRunner,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._jobs = jobs
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._answers: Dict[FailureQuestion, FailureAnswer] = {}   # the newest last
        self._failed: Dict[FailureQuestion, str] = {}      # why a job ended without an answer
        self._asked: Set[FailureQuestion] = set()   # those whose job has not ended
        self._stopping = False

    def stop(self) -> None:
        """Ends the running job where it next gives way."""
        self._stopping = True

    def known(self, question: FailureQuestion) -> Optional[FailureAnswer]:
        """The answer that is kept, if it still serves; starts nothing."""
        answer = self._answers.get(question)
        if answer is None:
            return None
        serves = (_SAME_EPOCH_SECONDS if answer.epoch == self._gateway.epoch()
                  else _OTHER_EPOCH_SECONDS)
        return answer if self._clock() - answer.made_at < serves else None

    def ask(self, question: FailureQuestion) -> Optional[FailureAnswer]:
        """The answer; None while a job computes it, which this starts."""
        answer = self.known(question)
        if answer is not None:
            return answer
        with self._lock:
            is_new = question not in self._asked
            if is_new:
                self._asked.add(question)
                self._failed.pop(question, None)
        if is_new:
            name = question.failure.name if question.failure is not None else "the worst"
            self._jobs.submit(f"failure of {name}", partial(self._run, question))
            self._jobs.run_pending()
        return self.known(question)

    def pop_reason(self, question: FailureQuestion) -> Optional[str]:
        """Why the last attempt to answer failed, or None; it is told once."""
        return self._failed.pop(question, None)

    def _run(self, question: FailureQuestion) -> None:
        try:
            answer = self._answer(question)
            if not self._stopping:
                self._answers.pop(question, None)
                self._answers[question] = answer
                for oldest in list(self._answers)[:-MAX_ANSWERS]:
                    del self._answers[oldest]
        except Exception as error:
            self._log.exception("what a failure leads to cannot be computed")
            self._failed = {question: f"{type(error).__name__}: {error}"}   # the newest
        finally:
            with self._lock:
                self._asked.discard(question)

    def _answer(self, question: FailureQuestion) -> FailureAnswer:
        changes = () if question.plan is None else self._plan_store.get(question.plan).changes
        time_slice, started = TimeSlice(), time.monotonic()

        def ask(_moves: int) -> bool:
            time_slice.yield_if_due()
            return not self._stopping and time.monotonic() - started < _MOST_SECONDS
        snapshot = self._gateway.snapshot()
        failure, recovery, worst = question.failure, None, None
        with giving_way(ask):
            placed = placement(snapshot, changes)
            if failure is None:
                worst = worst_failures(placed, self._gateway.up_sets_without)
            else:
                recovery = recovery_from(placed, failure, pgs_by_osd(placed),
                                         self._gateway.up_sets_without)
            return FailureAnswer(
                snapshot.epoch, self._clock(), len(placed.changes), snapshot.backfillfull_ratio,
                snapshot.osds, sum(states.inactive + states.degraded
                                   for states in snapshot.pool_states.values()),
                usage_of(placed), recovery, worst)
