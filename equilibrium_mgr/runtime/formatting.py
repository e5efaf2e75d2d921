"""Numbers and tables as Ceph prints them, and sizes as Ceph reads them."""
from __future__ import annotations

import math
import re
import time
from typing import List, Optional, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_BYTES = 2.0 ** 63
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)([KMGTPE]?)(?:i?B)?$", re.IGNORECASE)


def format_bytes(count: float) -> str:
    """1536 → '1.5 KiB', as `ceph df` prints sizes."""
    sign = "-" if count < 0 else ""
    value = abs(float(count))
    for unit in _UNITS:
        if value < 1024.0 or unit == _UNITS[-1]:
            break
        value /= 1024.0
    digits = 0 if unit == "B" or value >= 100 else 1 if value >= 10 else 2
    return f"{sign}{value:.{digits}f} {unit}"


def parse_size(text: str) -> Optional[int]:
    """'1T' → bytes, in Ceph's binary units; None for a text that is no size."""
    match = _SIZE.match(text.strip())
    if match is None:
        return None
    power = "KMGTPE".find(match.group(2).upper()) + 1 if match.group(2) else 0
    size = float(match.group(1)) * 1024 ** power
    return int(size) if size < _MOST_BYTES else None


def format_ratio(ratio: float) -> str:
    """0.5 → '0.5000'."""
    return f"{ratio:.4f}"


def format_duration(seconds: Optional[float]) -> str:
    """93784 → '1d2h'; the two largest units."""
    if seconds is None:
        return ""
    left = int(max(0.0, seconds))
    parts: List[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts[:2])


def format_time(epoch_seconds: float) -> str:
    """UTC, rounded up to a second. For texts that are read later: a countdown would be wrong."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(math.ceil(epoch_seconds)))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns under a header without borders, the first `left` columns left-aligned."""
    widths = [max([len(title)] + [len(row[i]) for row in rows])
              for i, title in enumerate(header)]
    lines: List[str] = []
    for row in [list(header)] + [list(r) for r in rows]:
        cells = [cell.ljust(width) if i < left else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def histogram_bar(counts: Sequence[int]) -> str:
    """One character for each count, ` .:-=+*#%@` from none to the highest."""
    levels = " .:-=+*#%@"
    most = max(counts) if counts else 0
    if not most:
        return " " * len(counts)
    return "".join(levels[0 if not c else 1 + (c * (len(levels) - 2)) // most] for c in counts)
