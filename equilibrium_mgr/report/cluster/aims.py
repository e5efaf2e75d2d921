"""The effects of plans with each aim side by side: part of `eval <plan>`."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ...plan.aim_comparison import FAILED, PLANNING, READY, AimFigures, AimComparison, figures_of
from ...plan.model import Plan
from ...plan.options import AIMS
from ...runtime.formatting import format_bytes, format_ratio, table


def aims_json(plan: Plan, comparison: Optional[AimComparison]) -> Dict[str, Any]:
    """Aim → figures of the plan and of those compared with it; null until they are computed."""
    return {aim: figures._asdict() for aim, figures in _figures(plan, comparison).items()}


def aims_table(plan: Plan, comparison: Optional[AimComparison]) -> str:
    """One line for each aim, and notes about those without figures."""
    aims = _figures(plan, comparison)
    classes = list(plan.after.classes)
    rows = [_row(aim + (" (this plan)" if aim == plan.aim else ""), figures, classes)
            for aim, figures in aims.items() if figures.state == READY]
    header = ["AIM"] + [f"MAX {name}" for name in classes] + ["GAINED", "BYTES", "MOVES"]
    return "\n".join([table(header, rows)] + _notes(plan, aims, comparison))


def _figures(plan: Plan, comparison: Optional[AimComparison]) -> Dict[str, AimFigures]:
    """Aim → figures in the order of AIMS; an aim that this release does not know comes last."""
    known = dict(comparison.aims) if comparison is not None else {}
    known[plan.aim] = figures_of(plan)
    return {aim: known[aim] for aim in list(AIMS) + [plan.aim] if aim in known}


def _row(aim: str, figures: AimFigures, classes: List[str]) -> List[str]:
    highest = figures.classes or {}
    return ([aim] + [format_ratio(highest[name]) if name in highest else "" for name in classes]
            + [format_bytes(figures.gained_bytes or 0), format_bytes(figures.bytes or 0),
               str(figures.moves)])


def _notes(plan: Plan, aims: Dict[str, AimFigures],
           comparison: Optional[AimComparison]) -> List[str]:
    notes: List[str] = []
    planning = [aim for aim, figures in aims.items() if figures.state == PLANNING]
    if planning:
        notes.append(f"{', '.join(planning)}: being planned; ask again")
    notes += [f"{aim}: could not be planned ({figures.failure}); ask again"
              for aim, figures in aims.items() if figures.state == FAILED]
    epochs = sorted({figures.osdmap_epoch for figures in aims.values()
                     if figures.osdmap_epoch is not None} - {plan.epoch})
    if epochs:
        notes.append(f"the plan was made at osdmap epoch {plan.epoch}, the others at"
                     f" {', '.join(map(str, epochs))}")
    if comparison is not None and not comparison.options_known:
        notes.append("this mgr does not know the limits that the plan was made with: the others"
                     " have those of the present settings")
    return notes
