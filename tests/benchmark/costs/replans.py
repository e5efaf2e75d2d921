"""Planning again after an event, when a part of the plan has been sent: against from scratch."""
from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from mgr_stub.console.session import Session
from tests.support.clusters.plans_under_way import EVENTS, under_way

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.replanning import replan

from ..clusters import Source


def replans(source: Source, options: PlanOptions) -> List[Dict[str, Any]]:
    """One entry for each event: processor seconds, bytes and highest utilizations of both plans.

    `replanned` is False where a plan from what was wanted is refused; its seconds are spent then.
    """
    return [replan_after(source, options, event) for event in EVENTS]


def replan_after(source: Source, options: PlanOptions, event: str) -> Dict[str, Any]:
    """The entry of one event."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session.from_state(str(source.write_state(Path(folder))), release=18)
    found = under_way(session, event, options)
    session.close()
    former = found.former(options)
    started = time.process_time()
    again = replan(found.after, options, former)
    planned = time.process_time()
    scratch = make_plan(found.after, options)
    return {"event": event, "replanned": again is not None, "seconds": planned - started,
            "scratch_seconds": time.process_time() - planned,
            **_result("", again.plan if again else None), **_result("scratch_", scratch)}


def _result(prefix: str, plan: Optional[Plan]) -> Dict[str, Any]:
    values: Tuple[Any, Any] = (None, None) if plan is None else (
        plan.bytes, {name: usage.max for name, usage in plan.after.classes.items()})
    return dict(zip((prefix + "bytes", prefix + "highest"), values))
