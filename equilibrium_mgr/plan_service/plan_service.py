"""Makes plans in background jobs, keeps them, and compares their aims."""
from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from ..gateway.gateway import Gateway, NotReady
from ..plan.aim_comparison import FAILED, PLANNING, AimComparison, AimFigures, figures_of
from ..plan.model import Plan, pool_pgs, topology_of
from ..plan.options import PlanOptions
from ..plan.store import MAX_PLANS, PlanHead, PlanStore
from ..planner.planner import make_plan
from ..planner.rule_repair import repair_plan
from ..runtime.job_thread import JobRunner
from ..runtime.time_slice import AskToGoOn, TimeSlice, giving_way
from ..snapshot.model import Snapshot, pool_of

#: Named plans that may be in progress at once: each waits for those before it.
MAX_PLANS_IN_PROGRESS = 10
#: A plan waits this often at most for PGs that have just been remapped: the map of a busy cluster
#: never rests.
_MAX_WAITS = 3

Planner = Callable[[Snapshot, PlanOptions], Plan]   # make_plan, or what stands in for it


class PlanProgress(NamedTuple):
    """A plan that is made or waits to be."""

    plan: str          # its name; empty for an automatic plan
    started_at: float  # seconds since the epoch
    moves: int         # found so far
    aim: str
    running: bool = False   # False while it waits for another plan


class _Job:
    """One attempt to make a plan."""

    def __init__(self, progress: PlanProgress) -> None:
        self.progress = progress
        self.cancelled = False


class PlanService:
    """Hands plans to the background jobs and keeps account of them.

    `clock` returns seconds since the epoch; `monotonic` those of time limits, never going back.
    """

    def __init__(self, gateway: Gateway, plan_store: PlanStore, jobs: JobRunner,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._plan_store = plan_store
        self._jobs = jobs
        self._clock = clock
        self._log = log
        self.planner: Planner = make_plan
        self.monotonic: Callable[[], float] = time.monotonic
        self.time_slice: Callable[[], TimeSlice] = TimeSlice
        self.plans_begun = 0   # since the mgr became active, those that compare aims included
        self._lock = threading.Lock()
        self._in_progress: Dict[str, _Job] = {}   # by the plan's name
        #: by the plan's name, the newest last; the automatic one's stays until one is made
        self._failures: Dict[str, str] = {}
        #: by the plan's name: what it was made with, for those of this process; and its comparison
        self._options: Dict[str, Tuple[PlanHead, PlanOptions]] = {}
        self._comparisons: Dict[str, AimComparison] = {}
        self.last_plan: Optional[Dict[str, Any]] = None   # JSON-ready figures, for `status`
        self._stopping = False

    def plans_in_progress(self) -> Dict[str, PlanProgress]:
        """Name → progress of each plan that is made or waits to be; "" is the automatic plan."""
        with self._lock:
            return {name: job.progress for name, job in self._in_progress.items()}

    def last_failure(self, name: str) -> Optional[str]:
        """Why the last attempt to make a plan of this name failed, or None."""
        return self._failures.get(name)

    def submit_named(self, name: str, options: PlanOptions, max_seconds: float) -> bool:
        """Starts to make a plan that is kept; False where one of that name is in progress."""
        is_new = self._submit(name, None, options, max_seconds, partial(self._keep, name, options))
        if is_new:
            self._comparisons.pop(name, None)  # its plan is about to be replaced
        return is_new

    def _keep(self, name: str, options: PlanOptions, plan: Plan, job: _Job) -> None:
        head = self._plan_store.put(name, plan, self._clock())
        self._options[name] = head, options
        # it may have been cancelled while it was written
        if job.cancelled and self._plan_store.heads().get(name) == head:
            self._plan_store.remove(name)
            self.forget(name)

    def cancel(self, name: str) -> bool:
        """Cancels a plan in progress: at once, or where it next gives way while it is being made.

        False where no plan of that name is in progress.
        """
        with self._lock:
            job = self._in_progress.pop(name, None)
            if job is not None:
                job.cancelled = True
            return job is not None

    def submit_automatic(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
                         done: Callable[[Plan], None]) -> bool:
        """Starts a plan for automatic balancing, which is handed to `done` and not kept."""
        return self._submit("", snapshot, options, max_seconds, lambda plan, _job: done(plan))

    def forget(self, name: str) -> None:
        """Forgets what is known of the other aims of a plan that was removed."""
        self._options.pop(name, None)
        self._comparisons.pop(name, None)

    def compare(self, name: str, otherwise: PlanOptions,
                max_seconds: float) -> Optional[AimComparison]:
        """Figures of plans with the other aims, under the limits of a kept plan; None where no plan
        has that name.

        Figures that are missing are planned by the job thread, at most `max_seconds` for each aim.
        `otherwise` has the limits for a plan that another mgr has made. A failure is returned once.
        """
        head = self._plan_store.heads().get(name)
        if head is None:
            return None
        comparison = self._comparisons.get(name)
        if comparison is None or comparison.head != head:
            made, options = self._options.get(name, (None, otherwise))
            comparison = self._comparisons[name] = AimComparison(
                head, options if made == head else otherwise, made == head)
            for aim in comparison.aims:
                self._jobs.submit(f"compare {name} with aim {aim}", partial(
                    self._plan_aim, comparison, aim, max_seconds))
            self._jobs.run_pending()
        states = {figures.state for figures in comparison.aims.values()}
        if FAILED in states and PLANNING not in states:
            self._comparisons.pop(name, None)
        return comparison

    def stop(self) -> None:
        """Ends the running plan where it next gives way."""
        self._stopping = True

    def _submit(self, name: str, snapshot: Optional[Snapshot], options: PlanOptions,
                max_seconds: float, done: Callable[[Plan, _Job], None]) -> bool:
        """Plans are made in the order in which they are submitted, but an automatic one first: it
        may relieve a full OSD."""
        job = _Job(PlanProgress(name, self._clock(), 0, options.aim))
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
                    if not job.cancelled:
                        if not self._stopping:
                            done(plan, job)
                        self.last_plan = {
                            "plan": name or "automatic", "made_at": self._clock(),
                            "osdmap_epoch": plan.epoch, "moves": len(plan.moves),
                            "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
                            "stop_reason": plan.stop_reason, "aim": plan.aim}
                        self._log.info("made plan %s: %d moves, %d bytes, %s",
                                       name or "(automatic)", len(plan.moves), plan.bytes,
                                       plan.stop_reason)
                        with self._lock:
                            self._failures.pop(name, None)
            except Exception as error:
                self._log.exception("making plan %r failed", name or "automatic")
                with self._lock:
                    if not job.cancelled:
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

    def _advance(self, job: _Job, moves: int) -> bool:
        """Records the moves found so far; False where the plan has been cancelled."""
        with self._lock:
            job.progress = job.progress._replace(moves=moves, running=True)
            return not job.cancelled

    def _plan_aim(self, comparison: AimComparison, aim: str, max_seconds: float) -> None:
        name = comparison.head.name

        def is_wanted(_moves: int) -> bool:
            return self._comparisons.get(name) is comparison
        if self._stopping or not is_wanted(0):
            return
        try:
            figures = figures_of(self._make(
                self._settled(None), comparison.options._replace(aim=aim), max_seconds, is_wanted))
        except Exception as error:
            self._log.exception("planning %r with aim %s failed", name, aim)
            figures = AimFigures(FAILED, failure=f"{type(error).__name__}: {error}")
        comparison.aims = {**comparison.aims, aim: figures}

    def _make(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
              is_wanted: Callable[[int], bool]) -> Plan:
        self.plans_begun += 1
        planner = repair_plan if options.repair else self.planner
        soft, hard = self._gateway.max_pg_shards()   # that Ceph lets an OSD have now
        options = options._replace(max_pg_shards_per_osd=soft, max_pg_shards_hard=hard)
        with giving_way(self._limited(max_seconds, is_wanted)):
            plan = planner(snapshot, options)
        pools = {pool_of(change.pgid) for change in plan.changes} & snapshot.pools.keys()
        return plan._replace(
            limited_to=options.limited_to, topology=topology_of(snapshot),
            pool_pgs=pool_pgs((pool, snapshot.pools[pool].pg_num) for pool in pools))

    def _settled(self, snapshot: Optional[Snapshot]) -> Snapshot:
        """The snapshot, or a newer one where none was given or the osdmap is another.

        Waits some seconds where PGs have just been remapped, until it is known whether their data
        has to move.
        """
        if snapshot is None or snapshot.epoch != self._gateway.epoch():
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
        time_slice, started = self.time_slice(), self.monotonic()
        still_wanted = True

        def ask(moves: int) -> bool:
            nonlocal still_wanted
            if time_slice.yield_if_due():
                still_wanted = is_wanted(moves)
            return (still_wanted and not self._stopping
                    and self.monotonic() - started < max_seconds)
        return ask
