"""The figures of device classes: of now as `ceph osd df` has them, and of what is to come."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_placement
from ...plan.model import ClassUsage, PgChange
from ...plan.usage import class_usage
from ...runtime.formatting import format_bytes, format_percent
from ..table import Column, Row, render_table

_COLUMNS = (Column("CLASS", is_name=True),) + tuple(Column(title) for title in (
    "OSDS", "SIZE", "%USE", "%MAX", "FULLEST", "%MIN", "STDDEV", "%SOON", "%PLAN", "%BOUND"))


def class_figures(view: ClusterView,
                  wanted: Optional[Iterable[PgChange]] = None) -> List[Row]:
    """One dictionary for each device class, in the order of names; OSDs that are out or without
    statistics do not count.

    Utilizations are ratios: `utilization` is used bytes ÷ size of the class; it, max, min and
    stddev are of now, as OSDs report them, those that are being drained too. What is to be is of
    the OSDs that take data, and None where a class has none. `soon_`: once everything in flight has
    arrived. `planned_`: once the `wanted` changes have been made too; None without `wanted`.
    `bound_`: no legal placement that keeps the operator's weights has a lower maximum, one that
    does not may; None where that is not known of the class by itself.
    """
    planned = None if wanted is None else planned_placement(view, wanted).used
    return class_rows(view, planned)


def class_rows(view: ClusterView, planned_used: Optional[Mapping[int, int]]) -> List[Row]:
    """As class_figures, for used bytes that are known: OSD id → bytes."""
    soon = class_usage(view.snapshot, view.used_soon)
    planned = {} if planned_used is None else class_usage(view.snapshot, planned_used)
    rows: List[Row] = []
    for name, now in class_usage(view.snapshot, view.used_now, with_drained=True).items():
        rows.append({
            "device_class": name, "osds": now.osds, "size_bytes": now.size_bytes,
            "used_bytes": now.used_bytes,
            "utilization": now.used_bytes / now.size_bytes if now.size_bytes else None,
            "max_utilization": now.max, "fullest_osd": now.fullest_osd,
            "min_utilization": now.min, "stddev": now.stddev,
            **_later("soon_", soon.get(name)), **_later("planned_", planned.get(name)),
            "bound_utilization": view.bounds.get(name)})
    return rows


def _later(prefix: str, usage: Optional[ClassUsage]) -> Row:
    return {f"{prefix}max_utilization": usage.max if usage is not None else None,
            f"{prefix}fullest_osd": usage.fullest_osd if usage is not None else None,
            f"{prefix}min_utilization": usage.min if usage is not None else None,
            f"{prefix}stddev": usage.stddev if usage is not None else None}


def class_table(rows: Sequence[Dict[str, Any]]) -> str:
    """One line for each dictionary of `class_figures`, in per cent."""
    return render_table(_COLUMNS, [[
        row["device_class"], str(row["osds"]), format_bytes(row["size_bytes"]),
        format_percent(row["utilization"]), format_percent(row["max_utilization"]),
        f"osd.{row['fullest_osd']}", format_percent(row["min_utilization"]),
        format_percent(row["stddev"]), format_percent(row["soon_max_utilization"]),
        format_percent(row["planned_max_utilization"]),
        format_percent(row["bound_utilization"])] for row in rows])
