"""Plain-text charts of 80 columns: how seconds and memory grow with the number of OSDs."""
from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Sequence

from tests.support.units import MIB

_WIDTH = 80
_BAR = "#"
Result = Mapping[str, Any]   # as scaling.measure_scale returns it


class _Quantity(NamedTuple):
    """What one chart shows of each result, and per shard."""

    title: str
    key: str
    unit: float            # one of what is shown, in the result's unit
    per_shard: float       # one of what is shown per shard
    per_shard_unit: str


_QUANTITIES = (
    _Quantity("a plan (processor seconds)", "plan_seconds", 1.0, 1e-6, "us"),
    _Quantity("first look (processor seconds)", "first_snapshot_seconds", 1.0, 1e-6, "us"),
    _Quantity("a full look after it (processor seconds)", "next_snapshot_seconds", 1.0, 1e-6, "us"),
    _Quantity("peak memory without the interpreter (MiB)", "own_peak_bytes", MIB, 1.0, "B"))


def scale_chart(results: Sequence[Result]) -> str:
    """A chart for each quantity, a bar for each cluster; lines of at most 80 columns of ASCII."""
    lines: List[str] = []
    for quantity in _QUANTITIES:
        shown = [result for result in results if result.get(quantity.key) is not None]
        if shown:
            lines += ["", quantity.title] + _bars(quantity, shown)
    return "\n".join(lines[1:])


def _bars(quantity: _Quantity, results: Sequence[Result]) -> List[str]:
    names = [f"{result['osds']:,} OSDs" for result in results]
    values = [result[quantity.key] / quantity.unit for result in results]
    texts = [_short(value) for value in values]
    shares = [f"{result[quantity.key] / result['shards'] / quantity.per_shard:,.0f} "
              f"{quantity.per_shard_unit}/shard" for result in results]
    heads = [name.rjust(max(map(len, names))) for name in names]
    tails = [text.rjust(max(map(len, texts))) + "  " + share.rjust(max(map(len, shares)))
             for text, share in zip(texts, shares)]
    room = _WIDTH - len(heads[0]) - len(tails[0]) - 6
    most = max(values) or 1.0
    return [f"  {head} |{(_BAR * round(room * value / most)).ljust(room)}  {tail}"
            for head, value, tail in zip(heads, values, tails)]


def _short(value: float) -> str:
    return f"{value:,.2f}" if value < 10.0 else f"{value:,.0f}"
