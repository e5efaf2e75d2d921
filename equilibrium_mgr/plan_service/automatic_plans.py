"""Makes an automatic plan from what the former one wanted, where that is near enough."""
from __future__ import annotations

import logging
from typing import Callable, Optional, Tuple

from ..plan.model import Plan
from ..plan.options import PlanOptions
from ..planner.planner import CONVERGED
from ..planner.replanning import FormerPlan, plan_result, replan
from ..snapshot.model import Snapshot

#: planner.make_plan, or what stands in for it: ends early with what it has where `give_way` tells
#: it to.
Planner = Callable[[Snapshot, PlanOptions], Plan]


def automatic_plan(snapshot: Snapshot, options: PlanOptions, former: Optional[FormerPlan],
                   from_scratch: Planner,
                   log: logging.Logger) -> Tuple[Plan, Optional[FormerPlan]]:
    """The plan, made from what was wanted where that is possible, and what the next one can start
    from; None where this one has no moves or was cut short."""
    made = None
    if former is not None:
        try:
            made = replan(snapshot, options, former)
        except Exception:   # a plan from scratch does without what the former one wanted
            log.exception("planning from the wanted placement failed")
    if former is not None and made is not None:
        log.info("planned from the wanted placement: %d changes were wanted, %d are; dropped"
                 " moves: %s", len(former.changes), len(made.plan.changes), made.dropped or "none")
        return made.plan, FormerPlan(made.plan.changes, former.result, former.replans + 1)
    plan = from_scratch(snapshot, options)
    if not plan.changes or plan.stop_reason != CONVERGED:
        return plan, None
    try:
        return plan, FormerPlan(plan.changes, plan_result(snapshot, options, plan))
    except Exception:   # the plan itself is sound
        log.exception("the plan's result cannot be kept for the next plan")
        return plan, None
