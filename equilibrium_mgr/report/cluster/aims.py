"""The effects of plans with each aim side by side: `eval <plan> --aims`."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ...plan.aim_comparison import FAILED, PLANNING, READY, AimComparison, AimFigures, figures_of
from ...plan.kinds import BALANCE
from ...plan.model import Plan
from ...plan.options import AIMS
from ...runtime.formatting import format_bytes, format_percent, wrap
from ..table import Column, render_table


def aims_json(plan: Plan, comparison: Optional[AimComparison]) -> List[Dict[str, Any]]:
    """Figures of the plan and of those compared with it, one dictionary for each aim; null until
    they are computed. None of them where the plan has no aim."""
    if plan.kind != BALANCE:
        return []
    return [{"aim": aim, "is_this_plan": aim == plan.aim,
             **{**figures._asdict(), "classes": None if figures.classes is None else [
                 {"device_class": name, "max_utilization": highest}
                 for name, highest in figures.classes.items()]}}
            for aim, figures in _figures(plan, comparison).items()]


def aims_table(name: str, plan: Plan, comparison: Optional[AimComparison]) -> str:
    """One line for each aim, and notes about those without figures. ROOM: how much more fits then
    if all pools grow alike."""
    aims = _figures(plan, comparison)
    classes = list(plan.after.classes)
    rows = [_row(f"{aim} ({name})" if aim == plan.aim else aim, figures, classes)
            for aim, figures in aims.items() if figures.state == READY]
    columns = (Column("AIM", is_name=True), *[Column(f"%MAX {title}") for title in classes],
               Column("ROOM"), Column("MOVED"), Column("SHARDS"))
    return "\n".join([render_table(columns, rows), *_notes(plan, aims, comparison)])


def _figures(plan: Plan, comparison: Optional[AimComparison]) -> Dict[str, AimFigures]:
    """Aim → figures in the order of AIMS; an aim that this release does not know comes last."""
    known = dict(comparison.aims) if comparison is not None else {}
    known[plan.aim] = figures_of(plan)
    return {aim: known[aim] for aim in list(AIMS) + [plan.aim] if aim in known}


def _row(aim: str, figures: AimFigures, classes: List[str]) -> List[str]:
    highest = figures.classes or {}
    return ([aim] + [format_percent(highest.get(name)) for name in classes]
            + [format_change(figures.room_gain_bytes), format_bytes(figures.bytes or 0),
               str(figures.moves)])


def format_change(count: Optional[int]) -> str:
    """'+2.8 TiB', '-604 GiB'; empty where it is not known."""
    return "" if count is None else ("+" if count >= 0 else "") + format_bytes(count)


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
    return [line for note in notes for line in wrap("", note, 0)]
