"""The answer of a command: data for programs, text for operators, one sentence for errors.

Tables of all screens: columns under heads, at most WIDTH wide, with rows sorted and limited.
"""
from __future__ import annotations

import errno
import json
import logging
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..gateway.gateway import NotReady
from ..runtime.formatting import WIDTH, format_bytes, plural


FORMATS = ("plain", "json", "json-pretty")

#: All but the end of a line.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_EMPTY_LINE = re.compile(r"\n(?=\n)")
_LONGEST = 1000   # characters of the sentence of an error

CommandResult = Tuple[int, str, str]


class CommandAnswer(NamedTuple):
    """The answer of a command that succeeded; `data` is JSON-ready."""

    data: Any
    plain: str


class CommandError(Exception):
    """Raised where a command cannot be carried out, with an errno and one sentence."""

    def __init__(self, errno_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = -abs(errno_code)
        self.sentence = sentence


def run_command(command: Callable[[], CommandAnswer], output_format: str,
                log: logging.Logger) -> CommandResult:
    """Runs a command; returns (0 or a negative errno, output, one sentence for stderr)."""
    if output_format not in FORMATS:
        return -errno.EINVAL, "", _sentence(
            f"format '{output_format}' is not supported; use one of {', '.join(FORMATS)}")
    try:
        answer = command()
        text = _screen(answer.plain) if output_format == "plain" else json.dumps(
            answer.data, sort_keys=True, indent=4 if output_format == "json-pretty" else None)
        return 0, text + "\n" if text else "", ""
    except CommandError as error:
        return error.errno, "", _sentence(error.sentence)
    except NotReady as not_ready:
        return -errno.EAGAIN, "", _sentence(f"{not_ready}; try again")
    except Exception as error:
        log.exception("a command failed")
        return -errno.EINVAL, "", _sentence(
            f"equilibrium failed to answer ({type(error).__name__}: {error}); the mgr log has more")


def _screen(text: str) -> str:
    """The text without control characters, which names of pools may have. An empty line has one
    space: Ceph drops empty lines of an answer."""
    return _EMPTY_LINE.sub("\n ", _CONTROL.sub("?", text))


def _sentence(text: str) -> str:
    """The text in one line, and cut where somebody has given an endless name."""
    line = _CONTROL.sub("?", " ".join(text.split()))
    return line if len(line) < _LONGEST else f"{line[:_LONGEST // 2]} ... {line[-_LONGEST // 4:]}"


Row = Dict[str, Any]   # JSON-ready, one a line
#: Name of a sort key → what to compare; None for a row in which that is unknown.
SortKeys = Mapping[str, Callable[[Row], Any]]
#: The titles with | between, a < behind those of names, and the cells.
Table = Tuple[str, Sequence[Sequence[str]]]


def render_table(head: str, rows: Sequence[Sequence[str]], width: int = WIDTH) -> str:
    """The table, two spaces between columns, an empty cell for what is unknown.

    `head`: the titles with | between. A < behind a title marks names: these are aligned to the
    left, numbers to the right. A table that is too wide has one space between columns.
    """
    titles = head.split("|")
    names = [i for i, title in enumerate(titles) if title.endswith("<")]
    lines: List[Sequence[str]] = [[title.rstrip("<") for title in titles], *rows]
    widths = [max([len(line[i]) for line in lines]) for i in range(len(titles))]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= width else " "
    return "\n".join([gap.join([
        text.ljust(widths[i]) if i in names else text.rjust(widths[i])
        for i, text in enumerate(line)]).rstrip() for line in lines])


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


def amount(shards: int, count: int) -> str:
    """Returns shards and their bytes as in '12 shards, 3.5 TiB'."""
    return f"{plural(shards, 'shard')}, {format_bytes(count)}"
