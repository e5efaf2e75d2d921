"""The tables for people at a terminal, one per cluster."""
from __future__ import annotations

from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tests.support.units import MIB, TIB

NOTHING = "-"
_SAME = 1e-6   # utilizations that differ by less are the same
Result = Mapping[str, Any]   # as measure.measure returns it
Column = Tuple[str, Optional[Mapping[str, Any]]]


def highest_text(ratio: Optional[float]) -> str:
    """A utilization in percent."""
    return NOTHING if ratio is None else f"{100.0 * ratio:.2f} %"


def tib_text(count: float, signed: bool = False) -> str:
    """Bytes in TiB."""
    return ("%+.2f" if signed else "%.2f") % (count / TIB)


def seconds_text(seconds: Optional[float]) -> str:
    return NOTHING if seconds is None else f"{seconds:.2f}"


class _Row(NamedTuple):
    title: str
    key: str
    text: Callable[[Any], str]


_GAINED = (
    _Row("sum of data pools' gains (TiB)", "gained_data_bytes", lambda b: tib_text(b, True)),
    _Row("sum of all pools' gains (TiB)", "gained_all_bytes", lambda b: tib_text(b, True)),
    _Row("gained, worst data pool (TiB)", "worst_data_pool_bytes", lambda b: tib_text(b, True)))
_FREE = _Row("free space of data pools, summed (TiB)", "free_data_bytes", tib_text)
_ROOM = _Row("room if all pools grow alike (TiB)", "room_bytes", tib_text)
_COST = (
    _Row("moved (TiB)", "moved_bytes", tib_text),
    _Row("at least, for this highest (TiB)", "least_moved_bytes", tib_text),
    _Row("shard moves", "shard_moves", str))
_ITEMS = _Row("upmap items in the end", "item_pairs", str)
_BROKEN = _Row("PGs that break a rule", "broken_pgs", str)
_TIME = (
    _Row("seconds to plan", "seconds", seconds_text),
    _Row("peak memory (MiB)", "peak_bytes", lambda count: f"{count / MIB:.0f}"))


def cluster_table(result: Result) -> str:
    """Everything about one cluster, in lines."""
    title = (f"{result['name']}: {result['osds']} OSDs, {result['pools']} pools, "
             f"{result['pgs']} PGs, {result['shards']} shards")
    lines = [title + (f" ({result['description']})" if result.get("description") else "")]
    columns: List[Column] = [("start", result["start"]), ("equilibrium", result["equilibrium"])]
    tool = result.get("osdmaptool")
    if tool is not None:
        columns.append(("osdmaptool", tool))
    bounds = result["bounds"]
    rows = [[""] + [name for name, _ in columns] + ["bound"] * bool(bounds)]
    for device_class in result["start"]["highest"]:
        rows.append(["highest utilization, " + device_class]
                    + [highest_text((column or {}).get("highest", {}).get(device_class))
                       for _, column in columns]
                    + ([highest_text(bounds.get(device_class))] if bounds else []))
    most = result.get("free_data_bound_bytes")
    rows.append([_FREE.title] + [_cell(_FREE, column) for _, column in columns]
                + ([tib_text(most)] if bounds and most is not None else []))
    rows.append([_ROOM.title] + [_cell(_ROOM, column) for _, column in columns])
    for row in _GAINED + _COST:
        rows.append([row.title, ""] + [_cell(row, column) for _, column in columns[1:]])
    for row in (_ITEMS, _BROKEN) + _TIME:
        cells = [_cell(row, column) for _, column in columns]
        if any(cell != NOTHING for cell in cells):
            rows.append([row.title] + cells)
    lines += _aligned(rows)
    lines += ["  " + note for note in _notes(result)]
    return "\n".join(lines)


def _cell(row: _Row, column: Optional[Mapping[str, Any]]) -> str:
    if column is None or column.get(row.key) is None:
        return NOTHING
    return row.text(column[row.key])


def _notes(result: Result) -> List[str]:
    own = result["equilibrium"]
    notes = [f"stopped: {own['stop_reason']}; data pools: {_shortened(result['data_pools'])}"]
    tool = result.get("osdmaptool")
    if tool is not None and tool["problem"]:
        notes.append(f"osdmaptool: {tool['problem']}")
    if "seconds_ratio" in result:
        less = "less than " if tool and tool["problem"] else ""
        notes.append(f"equilibrium took {less}{result['seconds_ratio']:.3g} times as long as "
                     "osdmaptool")
    for device_class, bound in result["bounds"].items():
        if own["highest"].get(device_class, 1.0) < bound - _SAME:
            notes.append(f"{device_class} is below its bound: another class took more, or the "
                         "bound is wrong")
    for device_class, predicted in own["wrong_predictions"].items():
        notes.append(f"WRONG PREDICTION: the plan says {highest_text(predicted)} for "
                     f"{device_class}")
    return notes


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def scale_table(result: Result) -> str:
    """The large cluster."""
    rows = [
        ["OSDs / shards / pools", f"{result['osds']} / {result['shards']} / {result['pools']}"],
        ["first snapshot (s)", seconds_text(result["first_snapshot_seconds"])],
        ["next snapshot (s)", seconds_text(result["next_snapshot_seconds"])],
        [f"first {result['first_moves']} moves after (s)",
         seconds_text(result["first_moves_seconds"])],
        ["whole plan (s)", seconds_text(result["plan_seconds"])],
        ["longest without giving way (s)",
         f"{result['longest_busy_seconds']:.3f}"],
        ["moves", str(result["moves"])], ["moved (TiB)", tib_text(result["bytes"])],
        ["stopped", result["stop_reason"] + (
            f" (limit of {result['limit_seconds']:g} s)" if result["ended_by_limit"] else "")]]
    for name, ratio in result["before"].items():
        bound = result["bounds"].get(name)
        least = f", bound {highest_text(bound)}" if bound is not None else ""
        rows.append(["highest utilization, " + name, f"{highest_text(ratio)} -> "
                     f"{highest_text(result['after'][name])}{least}"])
    rows += [[f"peak memory{of} (MiB)", f"{result[key] / MIB:.0f}"] for of, key in (
        ("", "peak_bytes"), (", once the code is there", "start_peak_bytes"),
        (", and the maps and statistics", "reading_peak_bytes"),
        (", and the first two looks", "snapshot_peak_bytes"))]
    return _titled("scale: a made cluster, processor seconds", rows)


def _titled(title: str, rows: Sequence[Sequence[str]]) -> str:
    width = max(len(row[0]) for row in rows)
    return "\n".join([title] + [f"  {row[0].ljust(width)}  {row[1]}" for row in rows])


def _aligned(rows: Sequence[Sequence[str]]) -> List[str]:
    count = max(len(row) for row in rows)
    full = [list(row) + [""] * (count - len(row)) for row in rows]
    widths = [max(len(row[i]) for row in full) for i in range(count)]
    return [("  " + row[0].ljust(widths[0]) + "".join(
        "  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))).rstrip()
        for row in full]
