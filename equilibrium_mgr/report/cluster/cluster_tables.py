"""The figures of device classes and of pools, with their tables.

Current figures are those of `ceph osd df` and `ceph df`. Other figures are predictions.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ...gateway.cluster_summary import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...plan.model import ClassUsage, PoolSpace, Room, Usage
from ...plan.usage import class_usage
from ...planner.bound.pool_space import PoolSpaceBound
from ...runtime.formatting import format_bytes, format_duration, format_percent, wrap
from ...snapshot.model import Snapshot
from ...snapshot.operator_weights import held_advice
from ..answer import Row, Table, rest_line


def format_known(count: Optional[float]) -> str:
    """Formats bytes as `ceph df` does; empty if they are unknown."""
    if count is None:
        return ""
    return format_bytes(count)


def format_figure(figure: Optional[float], digits: int) -> str:
    """Formats a figure with so many decimals; `-` if it is not known."""
    if figure is None:
        return "-"
    return f"{figure:.{digits}f}"


def format_osd(osd: int) -> str:
    """Returns 'osd.3'."""
    return f"osd.{osd}"


def text_of(lines: Sequence[str]) -> str:
    """Joins lines, without the empty ones."""
    return "\n".join([line for line in lines if line])


#: Key of a row → how to format its value: one column of a table each.
Columns = Mapping[str, Callable[[Any], str]]


def cells_of(rows: Sequence[Row], columns: Columns) -> List[List[str]]:
    """Returns the lines of a table; the cell of an unknown value is empty."""
    return [_cells(row, columns) for row in rows]


def _cells(row: Row, columns: Columns) -> List[str]:
    cells = []
    for key, form in columns.items():
        value = row[key]
        cell = ""
        if value is not None:
            cell = form(value)
        cells.append(cell)
    return cells


#: OSDs with a lowered weight that have a sentence each.
_HELD_SHOWN = 10
_CLASS_HEAD = "CLASS<|OSDS|SIZE|%USE|%MAX|FULLEST|%MIN|STDDEV|%SOON|%PLAN|%BOUND"
_CLASS_COLUMNS: Columns = {
    "device_class": str,
    "osds": str,
    "size_bytes": format_bytes,
    "utilization": format_percent,
    "max_utilization": format_percent,
    "fullest_osd": format_osd,
    "min_utilization": format_percent,
    "stddev": format_percent,
    "soon_max_utilization": format_percent,
    "planned_max_utilization": format_percent,
    "bound_utilization": format_percent}
_POOL_HEAD = "POOL<|ID|PGS|STORED|%USED|FREE|LIMITED BY|PLANNED|MAX AVAIL"
_POOL_COLUMNS: Columns = {
    "name": str,
    "id": str,
    "pg_num": str,
    "stored": format_bytes,
    "percent_used": format_percent,
    "free_bytes": format_bytes,
    "limiting_osd": format_osd,
    "planned_free_bytes": format_bytes,
    "max_avail": format_bytes}


def held_sentences(snapshot: Snapshot) -> List[str]:
    """Returns a sentence for each of the first OSDs with a lowered weight. The last sentence
    counts the others."""
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    sentences = [held_advice(osd) for osd in held[:_HELD_SHOWN]]
    if len(held) > _HELD_SHOWN:
        rest = rest_line(_HELD_SHOWN, len(held), "OSD")
        sentences.append(f"{rest} are held to a share of the size")
    return sentences


def class_rows(view: ClusterView, planned_used: Optional[Mapping[int, int]] = None) -> List[Row]:
    """Returns one row for each OSD set by name: as a rule a device class, as `hdd` or `hdd,ssd`.

    Utilizations are ratios. `utilization` is the used bytes ÷ the size of the class. All current
    figures count drained OSDs, and leave out OSDs that are out or without statistics. Predictions
    leave drained OSDs out, and are None if the class has no other OSD. `soon_`: after everything in
    flight has arrived. `planned_`: by `planned_used`, OSD id → bytes; None without it. `bound_`: no
    legal placement that keeps the operator's weights has a lower maximum; None if the class has no
    bound of its own.
    """
    soon = class_usage(view.snapshot, view.used_soon)
    planned: Mapping[str, ClassUsage] = {}
    if planned_used is not None:
        planned = class_usage(view.snapshot, planned_used)
    rows: List[Row] = []
    for name, now in view.classes_now.items():
        mean = None
        if now.size_bytes:
            mean = now.used_bytes / now.size_bytes
        row = {
            "device_class": name,
            "osds": now.osds,
            "size_bytes": now.size_bytes,
            "used_bytes": now.used_bytes,
            "utilization": mean,
            "bound_utilization": view.bounds.get(name),
            **class_figures("", now),
            **class_figures("soon_", soon.get(name)),
            **class_figures("planned_", planned.get(name))}
        rows.append(row)
    return rows


#: Key of a row, behind a prefix → field of ClassUsage.
_CLASS_FIGURES = {
    "max_utilization": "max",
    "fullest_osd": "fullest_osd",
    "min_utilization": "min",
    "stddev": "stddev"}
#: Keys of a row, behind a prefix: fields of PoolSpace.
_POOL_KEYS = ("free_bytes", "limiting_osd")


def class_figures(prefix: str, usage: Optional[ClassUsage]) -> Row:
    """Returns max, its OSD, min and stddev of a class, JSON-ready; all None without a usage."""
    return {prefix + key: getattr(usage, field, None) for key, field in _CLASS_FIGURES.items()}


def class_table(rows: Sequence[Row]) -> Table:
    """Returns one line for each of the `class_rows`, in per cent."""
    return _CLASS_HEAD, cells_of(rows, _CLASS_COLUMNS)


def pool_rows(view: ClusterView, space: Mapping[int, PoolSpaceNow], now: Usage,
              planned: Optional[Usage]) -> List[Row]:
    """Returns one row for each pool, the fullest first.

    `stored`, `percent_used` and `max_avail` are Ceph's figures, in Ceph's words. `free_bytes`: what
    clients can still write into this pool alone before its first OSD is at full_ratio, with the
    current placement. `planned_`: the same by the `planned` usage; None without it.
    `best_free_bytes`: no placement has more. `reads_per_second`, `writes_per_second` and their sum:
    operations of clients on average of the last days, None if they are not known.
    """
    bounds: Mapping[int, PoolSpaceBound] = {}
    loads = view.snapshot.loads
    if view.utilization_bounds is not None:
        bounds = view.utilization_bounds.pool_space
    planned_pools: Mapping[str, PoolSpace] = {}
    if planned is not None:
        planned_pools = planned.pools
    rows: List[Row] = []
    for pool in view.snapshot.pools.values():
        ceph = space.get(pool.id)
        if ceph is None:   # deleted since the snapshot
            continue
        row = {
            "id": pool.id,
            "name": ceph.name,
            "pg_num": pool.pg_num,
            "stored": ceph.stored,
            "percent_used": ceph.percent_used,
            "max_avail": ceph.max_avail,
            **pool_figures("", now.pools.get(pool.name)),
            **pool_figures("planned_", planned_pools.get(pool.name)),
            "best_free_bytes": getattr(bounds.get(pool.id), "free_bytes", None),
            "reads_per_second": getattr(loads.get(pool.id), "reads", None),
            "writes_per_second": getattr(loads.get(pool.id), "writes", None),
            "operations_per_second": getattr(loads.get(pool.id), "operations", None)}
        rows.append(row)
    rows.sort(key=lambda row: (-(row["percent_used"] or 0.0), row["id"]))
    return rows


def pool_figures(prefix: str, space: Optional[PoolSpace]) -> Row:
    """Returns the free space of a pool, JSON-ready; None if it is unknown."""
    return {prefix + key: getattr(space, key, None) for key in _POOL_KEYS}


def pool_table(rows: Sequence[Row]) -> Table:
    """Returns one line for each of the `pool_rows`; with operations if any are known."""
    cells = cells_of(rows, _POOL_COLUMNS)
    if all(row["operations_per_second"] is None for row in rows):
        return _POOL_HEAD, cells
    for row, line in zip(rows, cells):
        line.append(format_figure(row["operations_per_second"], 0))
    return f"{_POOL_HEAD}|OP/S", cells


def room_lines(now: Optional[Mapping[str, Any]], planned: Optional[Mapping[str, Any]],
               when: str) -> List[str]:
    """Returns the headline of a screen. Rooms are as of `room_json`."""
    return wrap("room ", room_sentence(now, planned, when), 5)


def room_sentence(now: Optional[Mapping[str, Any]], planned: Optional[Mapping[str, Any]],
                  when: str) -> str:
    """Returns how much fits if all pools grow in proportion to their data."""
    text = f"if all pools grow alike: {room_text(now)} now"
    if planned is not None:
        text += f", {room_text(planned)} {when}"
    return text


def room_text(room: Optional[Mapping[str, Any]]) -> str:
    """Returns the bytes, and the OSD that is full first then."""
    if room is None:
        return "unknown"
    text = format_bytes(room["bytes"])
    osd = room["limiting_osd"]
    if osd is not None:
        text += f" (osd.{osd})"
    return text


def room_json(room: Optional[Room]) -> Optional[Dict[str, Any]]:
    """Returns the room JSON-ready; None if it is unknown."""
    if room is None:
        return None
    return room._asdict()


def age_line(view: ClusterView, age_seconds: float) -> str:
    """Returns the sentence that says how old a view is."""
    epoch = view.snapshot.epoch
    return f"placement of osdmap e{epoch}, {format_duration(age_seconds)} old"


def age_json(view: ClusterView, age_seconds: float) -> Row:
    """Returns the age of a view, JSON-ready."""
    return {"osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds}
