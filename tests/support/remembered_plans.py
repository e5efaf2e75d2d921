"""A planner that makes each plan once: commands plan the demo cluster again and again."""
from __future__ import annotations

import functools
import importlib
import pickle
from typing import Any, Callable, Dict

import pytest
from tests.support.giving_way import give_way

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.planner import INTERRUPTED


class RememberedPlans:
    """Stands in for make_plan. Keeps the plans that were not interrupted, by snapshot and options.

    A plan is known by its pickled arguments, and is handed out as a copy of its own.
    """

    def __init__(self, make_plan: Callable[..., Plan]) -> None:
        self._make_plan = make_plan
        self._plans: Dict[bytes, bytes] = {}

    def __call__(self, snapshot: Any, options: Any) -> Plan:
        key = pickle.dumps((snapshot, options))
        if key in self._plans and give_way():
            known: Plan = pickle.loads(self._plans[key])
            return known
        plan = self._make_plan(snapshot, options)
        if plan.stop_reason != INTERRUPTED:
            self._plans[key] = pickle.dumps(plan)
        return plan


@functools.cache
def remembered(make_plan: Callable[..., Plan]) -> RememberedPlans:
    """One memory for all tests of a process."""
    return RememberedPlans(make_plan)


@pytest.fixture(autouse=True)
def plans_are_made_once(own_mgr_module: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For folders whose tests plan the same cluster, and do not test the planner."""
    service = importlib.import_module("equilibrium_mgr.plan_service.plan_service")
    monkeypatch.setattr(service, "make_plan", remembered(service.make_plan))
