"""The planning desk: which plans are in the making, and how jobs make and compare them."""
from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Optional

from .comparing import FAILED, AimFigures, Comparison, ComparisonMemory, figures_of
from .gateway import Gateway
from .planner.options import PlanOptions
from .planner.plan import Plan
from .planner.planner import make_plan
from .shelf import PlanShelf
from .snapshot.model import Snapshot
from .turns import Turns


class Progress(NamedTuple):
    """A plan in the making."""

    plan: str
    started_at: float  # seconds since the epoch
    moves: int
    aim: str


class PlanningDesk:
    """Hands plans to the job thread and keeps account of them.

    `jobs` has `submit(name, job)` and `settle()`; the thread is the mgr's, the simulator runs
    jobs inline.
    """

    def __init__(self, gateway: Gateway, shelf: PlanShelf, jobs: Any,
                 clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._shelf = shelf
        self._jobs = jobs
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._making: Dict[str, Progress] = {}
        self._failed: Dict[str, str] = {}
        self._comparisons = ComparisonMemory()
        self.last_plan: Optional[Dict[str, Any]] = None   # JSON-ready figures, for `status`
        self._stopping = False

    def in_the_making(self) -> Dict[str, Progress]:
        with self._lock:
            return dict(self._making)

    def failure(self, name: str) -> Optional[str]:
        """Why the last attempt to make this plan failed, or None."""
        with self._lock:
            return self._failed.get(name)

    def submit_named(self, name: str, options: PlanOptions, max_seconds: float) -> bool:
        """Starts the making of a plan that is kept; False where one of that name is being made."""
        def keep(plan: Plan) -> None:
            self._comparisons.made(self._shelf.put(name, plan, self._clock()), options)
        begins = self._submit(name, None, options, max_seconds, keep)
        if begins:
            self._comparisons.drop(name)  # nobody should wait for what is void soon
        return begins

    def submit_automatic(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
                         done: Callable[[Plan], None]) -> bool:
        """Starts a plan for automatic balancing, which is handed to `done` and not kept."""
        return self._submit("", snapshot, options, max_seconds, done)

    def forget(self, name: str) -> None:
        """A plan was removed: nothing about it is worth its memory any more."""
        self._comparisons.forget(name)

    def compare(self, name: str, otherwise: PlanOptions,
                max_seconds: float) -> Optional[Comparison]:
        """What the other aims would give under the limits of a kept plan; None for an unknown one.

        What is not known yet is planned by the job thread, at most `max_seconds` for each aim.
        `otherwise` has the limits for a plan that another mgr has made. A failure is told once.
        """
        head = self._shelf.heads().get(name)
        if head is None:
            return None
        comparison, begins = self._comparisons.of(head, otherwise)
        if begins:
            self._plan_next_aim(comparison, None, max_seconds)
            self._jobs.settle()
        if comparison.has_failed():
            self._comparisons.drop(name)
        return comparison

    def stop(self) -> None:
        """Ends the running plan at its next checkpoint."""
        self._stopping = True

    def _submit(self, name: str, snapshot: Optional[Snapshot], options: PlanOptions,
                max_seconds: float, done: Callable[[Plan], None]) -> bool:
        with self._lock:
            if name in self._making:
                return False
            self._making[name] = Progress(name, self._clock(), 0, options.aim)
            if name:  # an automatic plan's failure shows until one succeeds
                self._failed.pop(name, None)

        def progress(moves: int) -> bool:
            with self._lock:
                self._making[name] = self._making[name]._replace(moves=moves)
            return True

        def job() -> None:
            try:
                taken = self._dumped(snapshot)
                self._gateway.counters.add("plans")
                plan = make_plan(taken, options, self._checkpoint(max_seconds, progress))
                if not self._stopping:
                    done(plan)
                self.last_plan = _figures(name, plan, self._clock())
                self._log.info("made plan %s: %d moves, %d bytes, %s", name or "(automatic)",
                               len(plan.moves), plan.bytes, plan.stop_reason)
                with self._lock:
                    self._failed.pop(name, None)
            except Exception as error:
                self._log.exception("making plan %r failed", name or "automatic")
                with self._lock:
                    self._failed[name] = "%s: %s" % (type(error).__name__, error)
            finally:
                with self._lock:
                    del self._making[name]
        self._jobs.submit("plan %s" % (name or "automatic"), job)
        return True

    def _plan_next_aim(self, comparison: Comparison, snapshot: Optional[Snapshot],
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
                taken = self._dumped(taken)
                self._gateway.counters.add("plans")
                plan = make_plan(taken, comparison.options._replace(aim=aim),
                                 self._checkpoint(max_seconds, wanted))
                if not self._stopping:
                    comparison.note(aim, figures_of(plan))
            except Exception as error:
                self._log.exception("planning %r with aim %s failed", name, aim)
                comparison.note(aim, AimFigures(FAILED, failure="%s: %s" % (
                    type(error).__name__, error)))
            self._plan_next_aim(comparison, taken, max_seconds)
        self._jobs.submit("compare %s with aim %s" % (name, aim), job)

    def _dumped(self, snapshot: Optional[Snapshot]) -> Snapshot:
        """The snapshot, or a newer one where none was given or its osdmap was not dumped."""
        if snapshot is not None and self._gateway.dumped_at_epoch(snapshot.epoch):
            return snapshot
        return self._gateway.snapshot(fresh=True)

    def _checkpoint(self, max_seconds: float,
                    now_and_then: Callable[[int], bool]) -> Callable[[int], bool]:
        """For make_plan; `now_and_then` is told the moves so far and says whether to go on."""
        turns, started = Turns(), time.monotonic()
        going_on = True

        def checkpoint(moves: int) -> bool:
            nonlocal going_on
            if turns():
                going_on = now_and_then(moves)
            return (going_on and not self._stopping
                    and time.monotonic() - started < max_seconds)
        return checkpoint


def _figures(name: str, plan: Plan, now: float) -> Dict[str, Any]:
    return {"plan": name or "automatic", "made_at": now, "osdmap_epoch": plan.epoch,
            "moves": len(plan.moves), "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
            "stop_reason": plan.stop_reason, "aim": plan.aim}
