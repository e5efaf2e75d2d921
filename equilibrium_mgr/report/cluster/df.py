"""`df`: what clients can still write, into each pool and into all of them."""
from __future__ import annotations

from typing import Mapping, Optional, Sequence

from ...gateway.pool_space import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...plan.model import PgChange
from ...runtime.formatting import format_duration
from ..command_answer import CommandAnswer
from ..table import limited_rows, rest_line, sorted_rows
from .pool_figures import POOL_SORT_KEYS, pool_figures, pool_table, room_json, room_lines


def report_df(view: ClusterView, age_seconds: float, space: Mapping[int, PoolSpaceNow],
              plan: Optional[str], wanted: Optional[Sequence[PgChange]],
              sort: Optional[str] = None, limit: Optional[int] = None) -> CommandAnswer:
    """`plan`: name of the plan whose changes are `wanted`; None for those of the execution, which
    are None where nothing is executed. Raises CommandError for a wrong `sort` or `limit`."""
    figures = pool_figures(view, space, wanted)
    rows = figures.rows if sort is None else sorted_rows(figures.rows, sort, POOL_SORT_KEYS)
    shown = limited_rows(rows, limit)
    data = {"osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds, "plan": plan,
            "room": room_json(figures.room), "planned_room": room_json(figures.planned_room),
            "pools": shown}
    when = f"with plan {plan}" if plan is not None else "with the plan"
    lines = [f"placement of osdmap e{view.snapshot.epoch}, {format_duration(age_seconds)} old",
             *room_lines(figures.room, figures.planned_room, when)]
    if shown:
        lines += ["", pool_table(shown)]
    return CommandAnswer(data, "\n".join(
        lines + [line for line in [rest_line(len(shown), len(rows), "pool")] if line]))
