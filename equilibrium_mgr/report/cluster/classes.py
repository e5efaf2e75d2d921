"""The figures of device classes: of now as `ceph osd df` has them, and of what is to come."""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...plan.usage import class_usage
from ...runtime.formatting import format_bytes, format_percent
from ..table import Column, Row, render_table

_COLUMNS = (Column("CLASS", is_name=True),) + tuple(Column(title) for title in (
    "OSDS", "SIZE", "%USE", "%MAX", "FULLEST", "%MIN", "STDDEV", "%SOON", "%PLAN", "%BOUND"))
#: Points of utilization that a line stands for: the least that keeps to so many lines.
_STEPS = (1, 2, 4, 5, 10, 20, 50, 100)
_MOST_LINES = 10
_BAR = 22


def class_rows(view: ClusterView, planned_used: Optional[Mapping[int, int]] = None) -> List[Row]:
    """One dictionary for each device class, in the order of names; OSDs that are out or without
    statistics do not count.

    Utilizations are ratios: `utilization` is used bytes ÷ size of the class; it, max, min and
    stddev are of now, as OSDs report them, those that are being drained too. What is to be is of
    the OSDs that take data, and None where a class has none. `soon_`: once everything in flight has
    arrived. `planned_`: by `planned_used`, OSD id → bytes; None without it. `bound_`: no legal
    placement that keeps the operator's weights has a lower maximum, one that does not may; None
    where that is not known of the class by itself.
    """
    later = (("soon_", class_usage(view.snapshot, view.used_soon)),
             ("planned_", {} if planned_used is None else class_usage(view.snapshot, planned_used)))
    rows: List[Row] = []
    for name, now in class_usage(view.snapshot, view.used_now, with_drained=True).items():
        row: Row = {
            "device_class": name, "osds": now.osds, "size_bytes": now.size_bytes,
            "used_bytes": now.used_bytes,
            "utilization": now.used_bytes / now.size_bytes if now.size_bytes else None,
            "max_utilization": now.max, "fullest_osd": now.fullest_osd,
            "min_utilization": now.min, "stddev": now.stddev,
            "bound_utilization": view.bounds.get(name)}
        for prefix, usages in later:
            usage = usages.get(name)
            row.update({f"{prefix}max_utilization": usage and usage.max,
                        f"{prefix}fullest_osd": usage and usage.fullest_osd,
                        f"{prefix}min_utilization": usage and usage.min,
                        f"{prefix}stddev": usage and usage.stddev})
        rows.append(row)
    return rows


def class_table(rows: Sequence[Dict[str, Any]]) -> str:
    """One line for each dictionary of `class_rows`, in per cent."""
    return render_table(_COLUMNS, [[
        row["device_class"], str(row["osds"]), format_bytes(row["size_bytes"]),
        format_percent(row["utilization"]), format_percent(row["max_utilization"]),
        f"osd.{row['fullest_osd']}", format_percent(row["min_utilization"]),
        format_percent(row["stddev"]), format_percent(row["soon_max_utilization"]),
        format_percent(row["planned_max_utilization"]),
        format_percent(row["bound_utilization"])] for row in rows])


def histogram(now: Sequence[float], later: Sequence[float],
              bound: Optional[float]) -> List[Row]:
    """One row for each step of utilization from the fullest down.

    `now`, `later`: utilization of each OSD, a ratio; `later_osds` is None where that is empty, as
    nothing is compared.
    """
    known = [*now, *later]
    if not known:
        return []
    known += [bound] if bound is not None else []
    step = next((step for step in _STEPS if _index(max(known), step) - _index(min(known), step)
                 < _MOST_LINES), _STEPS[-1])
    osds, later_osds = (Counter(_index(value, step) for value in values)
                        for values in (now, later))
    return [{"from_ratio": step * index / 100.0, "to_ratio": step * (index + 1) / 100.0,
             "osds": osds[index], "later_osds": later_osds[index] if later else None}
            for index in range(_index(max(known), step), _index(min(known), step) - 1, -1)]


def histogram_lines(rows: Sequence[Row], bound: Optional[float], when: str) -> List[str]:
    """A line for each step of utilization, the fullest first. `when`: the head of what is later."""
    most = max([1, *[row["osds"] for row in rows], *[row["later_osds"] or 0 for row in rows]])
    is_compared = any(row["later_osds"] is not None for row in rows)

    def side(count: int) -> str:
        bar = "#" * max(1, round(_BAR * count / most)) if count else "."
        return f"  {count or '':>4}  {bar.ljust(_BAR)}"
    right = f"  OSDS  {when[:_BAR]}" if is_compared else ""
    lines = [f"  %USE  OSDS  {'now'.ljust(_BAR)}{right}".rstrip()]
    for row in rows:
        begin, end = (round(100.0 * row[key]) for key in ("from_ratio", "to_ratio"))
        text = f"{begin:6}" + side(row["osds"]) + (side(row["later_osds"]) if is_compared else "")
        is_marked = bound is not None and _index(bound, end - begin) * (end - begin) == begin
        lines.append((text + "  < bound" * is_marked).rstrip())
    return lines


def _index(value: float, step: int) -> int:
    return math.floor(100.0 * max(0.0, value) / step)
