"""Tables of all screens: columns under heads, at most WIDTH wide, with rows sorted and limited."""
from __future__ import annotations

import errno
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..runtime.formatting import WIDTH, plural
from .command_answer import CommandError

Row = Dict[str, Any]   # JSON-ready, one a line
#: Name of a sort key → what to compare; None for a row in which that is unknown.
SortKeys = Mapping[str, Callable[[Row], Any]]

_CUT = ".."
#: Characters that are left of a name, however narrow its column has to be.
_LEAST_NAME = 6


class Column(NamedTuple):
    """The head of a column. Names are aligned to the left, numbers to the right."""

    title: str
    is_name: bool = False   # its cells are cut where the table would be too wide


def render_table(columns: Sequence[Column], rows: Sequence[Sequence[str]],
                 width: int = WIDTH) -> str:
    """The table, two spaces between columns, an empty cell for what is unknown.

    A table that is too wide has one space between columns, and its names are cut where that is not
    enough.
    """
    widths = [max([len(column.title)] + [len(row[i]) for row in rows])
              for i, column in enumerate(columns)]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= width else " "
    _narrow(columns, widths, width - len(gap) * (len(widths) - 1))
    lines = [[column.title for column in columns], *rows]
    return "\n".join(gap.join(_cell(text, column, size) for text, column, size in zip(
        line, columns, widths)).rstrip() for line in lines)


def _narrow(columns: Sequence[Column], widths: List[int], room: int) -> None:
    """Narrows the columns of names, the widest first, until all columns fit in `room`."""
    names = [i for i, column in enumerate(columns) if column.is_name]
    while sum(widths) > room:
        widest = max(names, key=lambda i: widths[i], default=None)
        if widest is None or widths[widest] <= max(_LEAST_NAME, len(columns[widest].title)):
            return
        widths[widest] -= 1


def _cell(text: str, column: Column, width: int) -> str:
    if len(text) > width:
        text = text[:width - len(_CUT)] + _CUT
    return text.ljust(width) if column.is_name else text.rjust(width)


def sorted_rows(rows: Sequence[Row], wanted: str, keys: SortKeys) -> List[Row]:
    """The rows in the order of a key of `keys`, descending with `-` in front of it; rows in which
    it is unknown come last. Raises CommandError for another key."""
    name = wanted[1:] if wanted.startswith("-") else wanted
    if name not in keys:
        raise CommandError(errno.EINVAL, f"--sort '{wanted}' is not known; use one of"
                           f" {', '.join(keys)}, or --sort=-{next(iter(keys))} for descending")
    value = keys[name]
    known = [row for row in rows if value(row) is not None]
    return (sorted(known, key=value, reverse=wanted.startswith("-"))
            + [row for row in rows if value(row) is None])


def limited_rows(rows: Sequence[Row], limit: Optional[int]) -> List[Row]:
    """The first `limit` rows; all for None. Raises CommandError for a limit below 1."""
    if limit is not None and limit < 1:
        raise CommandError(errno.EINVAL, "--limit must be at least 1")
    return list(rows if limit is None else rows[:limit])


def rest_line(shown: int, rows: int, noun: str) -> str:
    """A line that says how many rows a limit hides; empty where it hides none."""
    return f"... {plural(rows - shown, f'more {noun}')}" if rows > shown else ""
