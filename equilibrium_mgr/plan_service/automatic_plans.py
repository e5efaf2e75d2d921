"""Makes an automatic plan from what the former one wanted, where that is near enough."""
from __future__ import annotations

import logging
from typing import Optional, Protocol

from ..plan.model import Plan
from ..plan.options import PlanOptions
from ..planner.planner import CONVERGED
from ..planner.replanning import FormerPlan, plan_result, replan
from ..snapshot.model import Snapshot


class Planner(Protocol):
    """planner.make_plan, or what stands in for it."""

    def __call__(self, snapshot: Snapshot, options: PlanOptions, /) -> Plan:
        """Makes a plan; ends early with what it has where `give_way` tells it to."""


class AutomaticPlan:
    """A planner for one plan. `basis` is, once it is made, what the next plan can start from."""

    def __init__(self, from_scratch: Planner, former: Optional[FormerPlan],
                 log: logging.Logger) -> None:
        self._from_scratch = from_scratch
        self._former = former
        self._log = log
        self.basis: Optional[FormerPlan] = None

    def __call__(self, snapshot: Snapshot, options: PlanOptions, /) -> Plan:
        """Makes the plan: from what was wanted where that is possible, else from scratch."""
        plan = self._from_wanted(snapshot, options)
        if plan is None:
            plan = self._from_scratch(snapshot, options)
            self.basis = self._basis(snapshot, options, plan)
        return plan

    def _from_wanted(self, snapshot: Snapshot, options: PlanOptions) -> Optional[Plan]:
        former = self._former
        if former is None:
            return None
        try:
            made = replan(snapshot, options, former)
        except Exception:   # a plan from scratch does without what the former one wanted
            self._log.exception("planning from the wanted placement failed")
            return None
        if made is None:
            self._log.info("the wanted placement is too far from a good one: planning from scratch")
            return None
        self.basis = FormerPlan(made.plan.changes, former.result, former.replans + 1)
        self._log.info("planned from the wanted placement: %d changes were wanted, %d are; dropped"
                       " moves: %s", len(former.changes), len(made.plan.changes),
                       made.dropped or "none")
        return made.plan

    def _basis(self, snapshot: Snapshot, options: PlanOptions, plan: Plan) -> Optional[FormerPlan]:
        """What the next plan can start from; None where this one has no moves or was cut short."""
        if not plan.changes or plan.stop_reason != CONVERGED:
            return None
        try:
            return FormerPlan(plan.changes, plan_result(snapshot, options, plan))
        except Exception:   # the plan itself is sound
            self._log.exception("the plan's result cannot be kept for the next plan")
            return None
