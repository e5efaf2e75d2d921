"""The answer of a command: data for programs, text for operators, one sentence for errors.

Also the tables of all screens: columns under heads, closer together if the table is wider than
WIDTH, with sorted and limited rows.
"""
from __future__ import annotations

import errno
import json
import logging
import re
from typing import (
    Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..gateway.gateway import NotReady
from ..runtime.formatting import WIDTH, format_bytes, plural
from ..runtime.time_slice import grouped


FORMATS = ("plain", "json", "json-pretty")

#: All control characters except the end of a line.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_EMPTY_LINE = re.compile(r"\n(?=\n)")
_LONGEST = 1000   # characters of the sentence of an error

CommandResult = Tuple[int, str, str]


class CommandAnswer(NamedTuple):
    """The answer of a command that succeeded; `data` is JSON-ready."""

    data: Any
    plain: str


class CommandError(Exception):
    """Raised if a command cannot be carried out, with an errno and one sentence."""

    def __init__(self, errno_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = -abs(errno_code)
        self.sentence = sentence


def run_command(command: Callable[[], CommandAnswer], output_format: str,
                log: logging.Logger) -> CommandResult:
    """Runs a command. Returns (0 or a negative errno, output, one sentence for stderr)."""
    if output_format not in FORMATS:
        return -errno.EINVAL, "", _sentence(
            f"format '{output_format}' is not supported; use one of {', '.join(FORMATS)}")
    try:
        return 0, _output(command(), output_format), ""
    except CommandError as error:
        return error.errno, "", _sentence(error.sentence)
    except NotReady as not_ready:
        return -errno.EAGAIN, "", _sentence(f"{not_ready}; try again")
    except Exception as error:
        log.exception("a command failed")
        return -errno.EINVAL, "", _sentence(
            f"equilibrium failed to answer ({type(error).__name__}: {error}); the mgr log has more")


def _output(answer: CommandAnswer, output_format: str) -> str:
    if output_format == "plain":
        text = _screen(answer.plain)
    elif output_format == "json":
        text = json.dumps(answer.data, sort_keys=True)
    else:
        text = json.dumps(answer.data, sort_keys=True, indent=4)
    return f"{text}\n" if text else ""


def _screen(text: str) -> str:
    """Returns the text with `?` for control characters, which names of pools can contain. Puts a
    space on each empty line, because Ceph drops empty lines of an answer."""
    return _EMPTY_LINE.sub("\n ", _CONTROL.sub("?", text))


def _sentence(text: str) -> str:
    """Returns the text in one line, without its middle if somebody has given an endless name."""
    line = _CONTROL.sub("?", " ".join(text.split()))
    if len(line) < _LONGEST:
        return line
    return f"{line[:_LONGEST // 2]} ... {line[-_LONGEST // 4:]}"


Row = Dict[str, Any]   # JSON-ready, one a line
#: Name of a sort key → the value of a row to compare; None if it is unknown.
SortKeys = Mapping[str, Callable[[Row], Any]]
#: The head as of `render_table`, and the cells.
Table = Tuple[str, Sequence[Sequence[str]]]


def render_table(head: str, rows: Sequence[Sequence[str]], width: int = WIDTH) -> str:
    """Returns the table; an empty cell is unknown.

    `head`: the titles with | between. A < behind a title marks names, which are aligned to the
    left; numbers are aligned to the right. Two spaces stand between columns, and one in a table
    that is too wide.
    """
    aligns = []
    for title in head.split("|"):
        align = str.ljust if title.endswith("<") else str.rjust
        aligns.append(align)
    lines = [head.replace("<", "").split("|"), *rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    gap = "  "
    if sum(widths) + 2 * (len(widths) - 1) > width:
        gap = " "
    shown = []
    for line in lines:
        cells = [align(text, size) for align, text, size in zip(aligns, line, widths)]
        shown.append(gap.join(cells).rstrip())
    return "\n".join(shown)


def sorted_rows(rows: Sequence[Row], wanted: str, keys: SortKeys) -> List[Row]:
    """Returns the rows in the order of a key of `keys`, descending with `-` in front of it; rows in
    which it is unknown come last. Raises CommandError for another key."""
    name = wanted.removeprefix("-")
    if name not in keys:
        raise CommandError(errno.EINVAL, f"--sort '{wanted}' is not known; use one of"
                           f" {', '.join(keys)}, or --sort=-{next(iter(keys))} for descending")
    value = keys[name]
    known = [row for row in rows if value(row) is not None]
    unknown = [row for row in rows if value(row) is None]
    return sorted(known, key=value, reverse=name != wanted) + unknown


def limited_rows(rows: Sequence[Row], limit: Optional[int]) -> List[Row]:
    """Returns the first `limit` rows, or all for None. Raises CommandError for a limit below 1."""
    if limit is not None and limit < 1:
        raise CommandError(errno.EINVAL, "--limit must be at least 1")
    return list(rows[:limit])


def largest_groups(pairs: Iterable[Tuple[Any, Any]]) -> List[Tuple[Any, List[Any]]]:
    """Returns the keys with their values, as of `grouped`. The key with the most values comes
    first; keys with equally many are sorted."""
    return sorted(grouped(pairs).items(), key=lambda group: (-len(group[1]), group[0]))


def rest_line(shown: int, rows: int, noun: str) -> str:
    """Returns a line that says how many rows a limit hides; empty if it hides none."""
    if rows <= shown:
        return ""
    return f"... {plural(rows - shown, f'more {noun}')}"


def amount(shards: int, count: int) -> str:
    """Returns shards and their bytes as in '12 shards, 3.5 TiB'."""
    return f"{plural(shards, 'shard')}, {format_bytes(count)}"
