"""Planning again after an event, when a part of the plan has been sent: against from scratch."""
from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, TypeVar

from mgr_stub.console.session import Session
from tests.support.clusters.plans_under_way import EVENTS, under_way

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.replanning import replan
from equilibrium_mgr.snapshot.model import Snapshot

from ..clusters import Source

_T = TypeVar("_T")


class BothPlans(NamedTuple):
    """The plans after one event, with the processor seconds that each took (medians)."""

    snapshot: Snapshot      # what the event has left
    again: Optional[Plan]   # from what was wanted; None where that is refused
    seconds: float          # spent in either case
    scratch: Plan
    scratch_seconds: float


def both_plans(session: Session, event: str, options: PlanOptions, repeat: int = 1) -> BothPlans:
    """Plans the session's cluster, lets an event happen on the way and plans again, both ways.
    Closes the session."""
    found = under_way(session, event, options)
    session.close()
    former = found.former(options)
    seconds, made = _timed(lambda: replan(found.after, options, former), repeat)
    scratch_seconds, scratch = _timed(lambda: make_plan(found.after, options), repeat)
    return BothPlans(found.after, made.plan if made is not None else None, seconds, scratch,
                     scratch_seconds)


def replans(source: Source, options: PlanOptions) -> List[Dict[str, Any]]:
    """One entry for each event: processor seconds, bytes and highest utilizations of both plans.

    `replanned` is False where a plan from what was wanted is refused; its seconds are spent then.
    """
    return [replan_after(source, options, event) for event in EVENTS]


def replan_after(source: Source, options: PlanOptions, event: str) -> Dict[str, Any]:
    """The entry of one event."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session.from_state(str(source.write_state(Path(folder))), release=18)
    both = both_plans(session, event, options)
    return {"event": event, "replanned": both.again is not None, "seconds": both.seconds,
            "scratch_seconds": both.scratch_seconds,
            **_result("", both.again), **_result("scratch_", both.scratch)}


def _timed(work: Callable[[], _T], repeat: int) -> Tuple[float, _T]:
    """The median of the processor seconds, and what came of it."""
    seconds: List[float] = []
    for _ in range(repeat):
        started = time.process_time()
        result = work()
        seconds.append(time.process_time() - started)
    return median(seconds), result


def _result(prefix: str, plan: Optional[Plan]) -> Dict[str, Any]:
    values: Tuple[Any, Any] = (None, None) if plan is None else (
        plan.bytes, {name: usage.max for name, usage in plan.after.classes.items()})
    return dict(zip((prefix + "bytes", prefix + "highest"), values))
