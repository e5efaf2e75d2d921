"""Types and keys of a nested reading, as lines that can be compared: `osds[].weight: float`.

Copied into the probe module's folder and run in the mgr, hence self-contained.
"""

from __future__ import annotations

import re
from typing import Any, Set

_DATA = re.compile(r"-?\d+(\.[0-9a-f]+)?$|.*:\d+/\d+$")
"""Keys that are data, not names: OSD, pool and PG ids, addresses."""


def shape_of(value: Any) -> Set[str]:
    """One line for each path that ends in a plain value; empty lists and dicts tell nothing."""
    lines: Set[str] = set()
    _execution(value, "", lines)
    return lines


def _execution(value: Any, path: str, lines: Set[str]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "*" if _DATA.match(str(key)) else str(key)
            _execution(inner, f"{path}.{name}" if path else name, lines)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _execution(inner, path + "[]", lines)
    else:
        lines.add(f"{path}: {type(value).__name__}")
