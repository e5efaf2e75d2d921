"""The pools: what they hold, what they could still take, and which OSD ends it."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from ...runtime.formatting import format_bytes, format_percent
from ..cluster.pools import format_known, format_osd
from .markup import LEFT, RIGHT, Html, folded, paragraph, section, table
from .facts.sources import PageFacts

#: Pools below this ratio of the stored bytes are folded away, where there are many.
_SMALL = 0.01
_MANY = 12
_MOST_ROWS = 500


def pools_section(facts: PageFacts) -> Html:
    """Room if all pools grow alike, and a row for each pool, fullest first."""
    return section("Pools", paragraph(_headline(facts)), *_tables(facts))


def _headline(facts: PageFacts) -> str:
    now, later = facts.room_now, facts.room_later
    if now is None or now.limiting_osd is None:
        return "No pool holds data."
    text = (f"Room if all pools grow alike: {format_bytes(now.bytes)} now"
            f" ({_first(now.limiting_osd)})")
    if later is not None:
        text += f", {format_bytes(later.bytes)} {facts.later.label} ({_first(later.limiting_osd)})"
    return text + "."


def _first(osd: Optional[int]) -> str:
    return f"{format_osd(osd)} is full first" if osd is not None else "no OSD limits it"


def _tables(facts: PageFacts) -> List[Html]:
    rows = facts.pools.rows
    if not rows:
        return []
    all_bytes = sum(row["stored"] or 0 for row in rows)
    large = [row for row in rows if (row["stored"] or 0) >= _SMALL * all_bytes]
    small: List[Dict[str, Any]] = []
    if len(rows) > _MANY:
        small = [row for row in rows if (row["stored"] or 0) < _SMALL * all_bytes]
    else:
        large = rows
    parts = [_table(facts, "Pools", large[:_MOST_ROWS])]
    if small:
        parts.append(folded(f"{len(small)} pools below 1% of the data",
                            _table(facts, "Small pools", small[:_MOST_ROWS])))
    left_out = len(rows) - min(len(large), _MOST_ROWS) - min(len(small), _MOST_ROWS)
    if left_out:
        parts.append(paragraph(f"{left_out} more pools are left out; 'ceph equilibrium df' has all"
                               " of them.", class_="note"))
    return [*parts, paragraph(
        "STORED, %USED and MAX AVAIL are Ceph's own. FREE: what fits into this pool alone, as data"
        " lies now; the pools share their OSDs, so it cannot be had for all of them at once."
        " PLANNED: the same, as data lies then; a pool with little data may have less.",
        class_="note")]


def _table(facts: PageFacts, label: str, rows: Sequence[Dict[str, Any]]) -> Html:
    later = facts.wanted is not None
    header = ["POOL", "ID", "PGS", "STORED", "%USED", "FREE", "LIMITED BY",
              *["PLANNED"] * later, "MAX AVAIL"]
    kinds = [LEFT] + [RIGHT] * (len(header) - 1)
    cells = ([row["name"], str(row["id"]), str(row["pg_num"]), format_known(row["stored"]),
              format_percent(row["percent_used"]), format_known(row["free_bytes"]),
              format_osd(row["limiting_osd"]), *[format_known(row["planned_free_bytes"])] * later,
              format_known(row["max_avail"])] for row in rows)
    return table(label, header, kinds, cells, facts.checkpoint)
