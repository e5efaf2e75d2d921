"""Figures of plans with the other aims, for an operator who chooses between them.

Only figures are kept: they can be computed again.
"""
from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

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

    def set_figures(self, aim: str, figures: AimFigures) -> None:
        """Sets the figures of one aim; callable from any thread."""
        self.aims = {**self.aims, aim: figures}

    def next_aim(self) -> Optional[str]:
        """The first aim that is still to be planned, or None."""
        return next((aim for aim, known in self.aims.items() if known.state == PLANNING), None)

    def has_failed(self) -> bool:
        """True if all aims have been planned and one failed."""
        return self.next_aim() is None and any(
            known.state == FAILED for known in self.aims.values())


class AimComparisons:
    """The options of the plans that this process has made, and the comparisons of kept plans, by
    the plan's name. Callable from any thread: each line of it is one step."""

    def __init__(self) -> None:
        self._options: Dict[str, Tuple[PlanHead, PlanOptions]] = {}
        self._kept: Dict[str, AimComparison] = {}

    def plan_made(self, head: PlanHead, options: PlanOptions) -> None:
        """Called when a plan was made and kept: figures of an older one of its name are dropped."""
        self._options[head.name] = (head, options)
        self.drop(head.name)

    def forget(self, name: str) -> None:
        """Called when a plan was removed."""
        self._options.pop(name, None)
        self.drop(name)

    def drop(self, name: str) -> None:
        """Forgets a plan's comparison; the next one begins anew."""
        self._kept.pop(name, None)

    def is_kept(self, comparison: AimComparison) -> bool:
        """True if this comparison has not been dropped."""
        return self._kept.get(comparison.head.name) is comparison

    def get_or_begin(self, head: PlanHead, otherwise: PlanOptions) -> Tuple[AimComparison, bool]:
        """The comparison of a kept plan, and True if it is a new one.

        It has the options that the plan was made with, or `otherwise` where they are not known.
        """
        known = self._kept.get(head.name)
        if known is not None and known.head == head:
            return known, False
        made, options = self._options.get(head.name, (None, otherwise))
        comparison = AimComparison(head, options if made == head else otherwise, made == head)
        self._kept[head.name] = comparison
        return comparison, True
