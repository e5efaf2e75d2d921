"""The planning desk: which plans are in the making, and how a job makes one."""
from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Optional

from .gateway import Gateway
from .planner.options import PlanOptions
from .planner.plan import Plan
from .planner.planner import make_plan
from .shelf import PlanShelf
from .snapshot.model import Snapshot

#: A planner holds Python's global lock; it is given up for a moment this often.
_YIELD_EVERY_SECONDS = 0.01
_YIELD_SECONDS = 0.001


class Progress(NamedTuple):
    """A plan in the making."""

    plan: str
    started_at: float  # seconds since the epoch
    moves: int


class PlanningDesk:
    """Hands plans to the job thread and keeps account of them.

    `jobs` has `submit(name, job)`; the thread is the mgr's, the simulator runs jobs inline.
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
            self._shelf.put(name, plan, self._clock())
        return self._submit(name, None, options, max_seconds, keep)

    def submit_automatic(self, snapshot: Snapshot, options: PlanOptions, max_seconds: float,
                         done: Callable[[Plan], None]) -> bool:
        """Starts a plan for automatic balancing, which is handed to `done` and not kept."""
        return self._submit("", snapshot, options, max_seconds, done)

    def stop(self) -> None:
        """Ends the running plan at its next checkpoint."""
        self._stopping = True

    def _submit(self, name: str, snapshot: Optional[Snapshot], options: PlanOptions,
                max_seconds: float, done: Callable[[Plan], None]) -> bool:
        with self._lock:
            if name in self._making:
                return False
            self._making[name] = Progress(name, self._clock(), 0)
            if name:  # an automatic plan's failure shows until one succeeds
                self._failed.pop(name, None)

        def job() -> None:
            try:
                taken = snapshot if snapshot is not None else self._gateway.snapshot()
                plan = make_plan(taken, options, self._checkpoint(name, max_seconds))
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

    def _checkpoint(self, name: str, max_seconds: float) -> Callable[[int], bool]:
        started = last_yield = time.monotonic()

        def checkpoint(moves: int) -> bool:
            nonlocal last_yield
            now = time.monotonic()
            if now - last_yield >= _YIELD_EVERY_SECONDS:
                with self._lock:
                    self._making[name] = self._making[name]._replace(moves=moves)
                time.sleep(_YIELD_SECONDS)
                last_yield = time.monotonic()
            return not self._stopping and now - started < max_seconds
        return checkpoint


def _figures(name: str, plan: Plan, now: float) -> Dict[str, Any]:
    return {"plan": name or "automatic", "made_at": now, "osdmap_epoch": plan.epoch,
            "moves": len(plan.moves), "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
            "stop_reason": plan.stop_reason}
