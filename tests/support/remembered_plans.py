"""A planner that makes each plan once: commands plan the demo cluster again and again."""
from __future__ import annotations

import importlib
import math
import pickle
from typing import Any, Callable, Dict

import pytest
from tests.support.giving_way import give_way

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.planner import INTERRUPTED


#: Pickled snapshot without times, and options → the plan; of all tests of a process, and of
#: whatever release: a package that is imported again reads them as its own.
_PLANS: Dict[bytes, bytes] = {}


def remembered(make_plan: Callable[..., Plan]) -> Callable[..., Plan]:
    """Stands in for make_plan; keeps the plans that were not interrupted, and hands out copies."""
    def make(snapshot: Any, options: Any) -> Plan:
        key = pickle.dumps((_without_times(snapshot), options))
        if key in _PLANS and give_way():
            known: Plan = pickle.loads(_PLANS[key])
            return known
        plan = make_plan(snapshot, options)
        if plan.stop_reason != INTERRUPTED:
            _PLANS[key] = pickle.dumps(plan)
        return plan
    return make


def _without_times(snapshot: Any) -> Any:
    """The snapshot without times, which no plan depends on, and with all places of the CRUSH map,
    which it remembers once somebody has asked."""
    snapshot.crush.places()
    pools = {number: pool._replace(stepped_at=0.0) for number, pool in snapshot.pools.items()}
    return snapshot._replace(taken_at=0.0, pools=pools)


@pytest.fixture(autouse=True)
def plans_are_made_once(own_mgr_module: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For folders whose tests plan the same cluster, and do not test the planner."""
    service = importlib.import_module("equilibrium_mgr.plan_service.plan_service")
    monkeypatch.setattr(service, "make_plan", remembered(service.make_plan))


@pytest.fixture(autouse=True)
def questions_are_answered_whole(own_mgr_module: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For recorded answers: on a busy machine the limit of seconds would cut them short."""
    service = importlib.import_module("equilibrium_mgr.plan_service.plan_service")
    monkeypatch.setattr(service, "_MOST_SECONDS", math.inf)
