"""The figures that README.md and measurements.md publish of equilibrium, and their record.

`python3 -m tests.benchmark --publish …` writes all three; a test compares them, and the record of
the demo cluster with a plan that is made anew.
"""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

from tests.support.units import TIB

_TOP = Path(__file__).parents[2]
RECORD = Path(__file__).parent / "published.json"
PAGES = (_TOP / "README.md", _TOP / "equilibrium_mgr/doc/measurements.md")
#: Of its OSDs the tables tell the highest utilization: they hold nearly all bytes of each cluster.
_CLASS = "hdd"
#: TiB that are written without a decimal.
_WHOLE_TIB = 40.0
_FIGURES = re.compile(r"\d+\.\d % \(\d+\.\d\), [+-][\d,.]+ TiB for [\d,.]+")


def cell(result: Mapping[str, Any]) -> str:
    """What a table says of equilibrium on a cluster: highest utilization of class hdd (the bound),
    growth of the data pools' free space, what is moved."""
    columns = result["columns"]
    end, bound = (columns[name]["highest"][_CLASS] for name in ("equilibrium", "bound"))
    gained, moved = (columns["equilibrium"][key] for key in ("gained_data_bytes", "moved_bytes"))
    return (f"{100.0 * end:.1f} % ({100.0 * bound:.1f}),"
            f" +{_tib(gained)} TiB for {_tib(moved)}")


def _tib(count: float) -> str:
    size = count / TIB
    return f"{size:,.0f}" if size >= _WHOLE_TIB else f"{size:.1f}"


def recorded() -> Dict[str, Any]:
    """Cluster → its title in tables and its cell."""
    found: Dict[str, Any] = json.loads(RECORD.read_text())
    return found


def publish(results: Sequence[Mapping[str, Any]]) -> None:
    """Records what was measured of clusters that are published, and writes it into the pages."""
    record = recorded()
    for result in results:
        if result["name"] in record:
            record[result["name"]]["cell"] = cell(result)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8"), record), encoding="utf-8")


def rendered(page: str, record: Mapping[str, Any]) -> str:
    """The page with the recorded figures in rows of its tables."""
    cells = {title: entry["cell"] for name, entry in record.items()
             for title in (entry["title"], f"{name}: {entry['title']}")}
    lines: List[str] = []
    for line in page.split("\n"):
        title = line[2:].partition(" | ")[0] if line.startswith("| ") else "no row"
        # a lambda: the cell is no pattern
        lines.append(_FIGURES.sub(lambda _: cells[title], line) if title in cells else line)
    return "\n".join(lines)
