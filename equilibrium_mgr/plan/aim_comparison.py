"""Figures of plans with the other aims, for an operator who chooses between them.

Only figures are kept: they can be computed again.
"""
from __future__ import annotations

from typing import Dict, NamedTuple, Optional

from .model import Plan
from .options import AIMS, PlanOptions
from .store import PlanHead

PLANNING, READY, FAILED = "planning", "ready", "failed"


class AimFigures(NamedTuple):
    """The figures of a plan with one aim; None until it is ready."""

    state: str
    classes: Optional[Dict[str, float]] = None  # device class → highest utilization, a ratio
    room_gain_bytes: Optional[int] = None       # how much more fits if all pools grow alike
    bytes: Optional[int] = None
    moves: Optional[int] = None
    osdmap_epoch: Optional[int] = None
    stop_reason: Optional[str] = None
    failure: Optional[str] = None


def figures_of(plan: Plan) -> AimFigures:
    """The figures of a finished plan."""
    return AimFigures(
        READY, {name: usage.max for name, usage in plan.after.classes.items()},
        plan.room_gained_bytes, plan.bytes, len(plan.moves), plan.epoch, plan.stop_reason)


class AimComparison:
    """The other aims of one kept plan, under the same limits. `aims` is replaced, never changed."""

    def __init__(self, head: PlanHead, options: PlanOptions, options_known: bool) -> None:
        self.head = head
        self.options = options
        self.options_known = options_known   # False: the plan's own limits are lost
        self.aims: Dict[str, AimFigures] = {
            aim: AimFigures(PLANNING) for aim in AIMS if aim != head.aim}
