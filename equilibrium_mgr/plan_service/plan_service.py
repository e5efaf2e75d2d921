"""The planning desk: which plans are in the making, and how jobs make and compare them."""
from __future__ import annotations

import logging
import time
from typing import Any, Callable, Dict, Optional

from ..gateway.gateway import Gateway, NotReady
from ..plan.aim_comparison import FAILED, AimFigures, AimComparison, AimComparisons, figures_of
from ..plan.model import Plan
from ..plan.options import PlanOptions
from ..plan.store import MAX_PLANS, PlanStore
from ..planner.planner import make_plan
from ..runtime.checkpoints import Checkpoint
from ..runtime.job_thread import JobRunner
from ..runtime.time_slice import TimeSlice
from ..snapshot.model import Snapshot
from .plan_queue import Failures, PlanJob, PlanQueue, PlanProgress

#: Named plans that may be in the making at once: each waits for those before it.
MAX_PLANS_IN_PROGRESS = 10
#: How often a plan waits for PGs that have just been remapped; the map of a busy cluster never rests.
_MOST_WAITS = 3


class PlanService:
    """Hands plans to the background jobs and keeps account of them."""

    def __init__(self, gateway: Gateway, plan_store: PlanStore, jobs: JobRunner,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._jobs = jobs
        self._clock = clock
        self._log = log
        self._queue = PlanQueue()
        self._failures = Failures(MAX_PLANS)
        self._comparisons = AimComparisons()
        self.last_plan: Optional[Dict[str, Any]] = None   # JSON-ready figures, for `status`
        self._stopping = False

    def plans_in_progress(self) -> Dict[str, PlanProgress]:
        """Name → progress of each plan that is made or waits to be; "" is the automatic one."""
        return self._queue.progress()

    def last_failure(self, name: str) -> Optional[str]:
        """Why the last attempt to make this plan failed, or None."""
        return self._failures.get(name)

    def submit_named(self, name: str, options: PlanOptions, max_seconds: float) -> bool:
        """Starts the making of a plan that is kept; False where one of that name is being made."""
        def keep(plan: Plan, job: PlanJob) -> None:
            head = self._plan_store.put(name, plan, self._clock())
            self._comparisons.made(head, options)
            if job.cancelled and self._plan_store.heads().get(name) == head:  # while it was written
                self._plan_store.remove(name)
                self._comparisons.forget(name)
        begins = self._submit(name, None, options, max_seconds, keep)
        if begins:
            self._comparisons.drop(name)  # nobody should wait for what is void soon
        return begins

    def cancel(self, name: str) -> bool:
        """Ends the making of a plan: at once, or where it runs at its next checkpoint.

        False where no plan of that name is in the making.
        """
        return self._queue.cancel(name)

    def submit_automatic(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
                         done: Callable[[Plan], None]) -> bool:
        """Starts a plan for automatic balancing, which is handed to `done` and not kept."""
        return self._submit("", snapshot, options, max_seconds, lambda plan, _making: done(plan))

    def forget(self, name: str) -> None:
        """A plan was removed: nothing about it is worth its memory any more."""
        self._comparisons.forget(name)

    def compare(self, name: str, otherwise: PlanOptions,
                max_seconds: float) -> Optional[AimComparison]:
        """What the other aims would give under the limits of a kept plan; None for an unknown one.

        What is not known yet is planned by the job thread, at most `max_seconds` for each aim.
        `otherwise` has the limits for a plan that another mgr has made. A failure is told once.
        """
        head = self._plan_store.heads().get(name)
        if head is None:
            return None
        comparison, begins = self._comparisons.of(head, otherwise)
        if begins:
            self._plan_next_aim(comparison, None, max_seconds)
            self._jobs.run_pending()
        if comparison.has_failed():
            self._comparisons.drop(name)
        return comparison

    def stop(self) -> None:
        """Ends the running plan at its next checkpoint."""
        self._stopping = True

    def _submit(self, name: str, snapshot: Optional[Snapshot], options: PlanOptions,
                max_seconds: float, done: Callable[[Plan, PlanJob], None]) -> bool:
        def make(job: PlanJob) -> None:
            taken = self._with_dumped_osdmap(snapshot)
            self._gateway.counters.add("plans")
            plan = make_plan(taken, self._within_ceph_limits(options), self._checkpoint(
                max_seconds, lambda moves: self._queue.advance(job, moves)))
            if job.cancelled:
                return
            if not self._stopping:
                done(plan, job)
            self.last_plan = _figures(name, plan, self._clock())
            self._log.info("made plan %s: %d moves, %d bytes, %s", name or "(automatic)",
                           len(plan.moves), plan.bytes, plan.stop_reason)
            self._failures.forget(name)
        if not self._queue.add(PlanJob(PlanProgress(name, self._clock(), 0, options.aim), make)):
            return False
        if name:  # an automatic plan's failure shows until one succeeds
            self._failures.forget(name)
        self._jobs.submit("plan %s" % (name or "automatic"), self._run_next_job)
        return True

    def _run_next_job(self) -> None:
        """A job for each plan that was submitted; which one it makes is the queue's choice."""
        job = self._queue.next_job()
        if job is None:   # the one that it was for has been cancelled
            return
        name = job.progress.plan
        try:
            job.make(job)
        except Exception as error:
            self._log.exception("making plan %r failed", name or "automatic")
            if not job.cancelled:
                self._failures.record(name, error)
        finally:
            self._queue.finish(job)

    def _plan_next_aim(self, comparison: AimComparison, snapshot: Optional[Snapshot],
                       max_seconds: float) -> None:
        """One aim a job, so that plans that somebody waits for come in between."""
        aim = comparison.next_aim()
        if aim is None or self._stopping:
            return
        name = comparison.head.name

        def wanted(_moves: int) -> bool:
            return self._comparisons.keeps(comparison)

        def job() -> None:
            if self._stopping or not wanted(0):
                return
            taken = snapshot
            try:
                taken = self._with_dumped_osdmap(taken)
                self._gateway.counters.add("plans")
                plan = make_plan(taken, self._within_ceph_limits(comparison.options._replace(aim=aim)),
                                 self._checkpoint(max_seconds, wanted))
                if not self._stopping:
                    comparison.set_figures(aim, figures_of(plan))
            except Exception as error:
                self._log.exception("planning %r with aim %s failed", name, aim)
                comparison.set_figures(aim, AimFigures(FAILED, failure=f"{type(error).__name__}: {error}"))
            self._plan_next_aim(comparison, taken, max_seconds)
        self._jobs.submit(f"compare {name} with aim {aim}", job)

    def _with_dumped_osdmap(self, snapshot: Optional[Snapshot]) -> Snapshot:
        """The snapshot, or a newer one where none was given or its osdmap was not dumped.

        Where PGs were remapped a moment ago it is not known yet whether their data has to move: a
        plan waits until it is, some seconds.
        """
        if snapshot is None or not self._gateway.dumped_at_epoch(snapshot.epoch):
            snapshot = self._gateway.snapshot(fresh=True)
        for _ in range(_MOST_WAITS):
            if snapshot.unsettled_seconds <= 0.0 or not self._jobs.wait(
                    snapshot.unsettled_seconds + 1.0):
                break
            try:
                snapshot = self._gateway.snapshot(fresh=True)
            except NotReady:   # as while a pool is created; the snapshot at hand will do
                break
        return snapshot

    def _within_ceph_limits(self, options: PlanOptions) -> PlanOptions:
        """With the PG shards that Ceph lets an OSD have, as of now."""
        most, hard = self._gateway.max_pg_shards()
        return options._replace(max_pg_shards_per_osd=most, max_pg_shards_hard=hard)

    def _checkpoint(self, max_seconds: float,
                    is_wanted: Callable[[int], bool]) -> Checkpoint:
        """For make_plan; each time it yields it tells `is_wanted` the moves found so far."""
        time_slice, started = TimeSlice(), time.monotonic()
        going_on = True

        def checkpoint(moves: Optional[int] = None) -> bool:
            nonlocal going_on
            if time_slice.yield_if_due():
                going_on = is_wanted(moves or 0)
            return (going_on and not self._stopping
                    and time.monotonic() - started < max_seconds)
        return checkpoint


def _figures(name: str, plan: Plan, now: float) -> Dict[str, Any]:
    return {"plan": name or "automatic", "made_at": now, "osdmap_epoch": plan.epoch,
            "moves": len(plan.moves), "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
            "stop_reason": plan.stop_reason, "aim": plan.aim}
