"""The planner's options for a benchmark run."""
from __future__ import annotations

from typing import Any, Dict

from equilibrium_mgr.plan import options
from equilibrium_mgr.plan.options import PlanOptions


def plan_options(aim: str) -> PlanOptions:
    """Options with an aim; empty for the planner's own default. Raises ValueError for others."""
    if not aim:
        return PlanOptions()
    known = tuple(getattr(options, "AIMS", ()))
    if aim not in known:
        raise ValueError(f"{aim!r} is none of the aims ({', '.join(known)})")
    fields: Dict[str, Any] = {"aim": aim}
    return PlanOptions(**fields)
