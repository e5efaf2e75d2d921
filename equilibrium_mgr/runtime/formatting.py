"""Formats sizes like Ceph, ratios, times and lines for people, and reads sizes and spans."""
from __future__ import annotations

import math
import re
import textwrap
import time
from typing import List, Match, Optional, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_BYTES = 2.0 ** 63
#: Characters of a size as Ceph prints it; four digits take one more.
_SIZE_WIDTH = 7
#: Columns of a terminal, which every screen fits into.
WIDTH = 80
#: Two equal commands of a shell. Each repeats `freeze` while it returns EAGAIN (11), which asks to
#: try again. The second one ends when the pins of the first are in the osdmap.
PINS = ("(until ceph equilibrium freeze; do [ $? = 11 ] && sleep 5 || exit; done)",) * 2
_COMMAND = re.compile("'ceph [^']*'")
_NO_BREAK = "\0"
_DURATIONS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_SPAN = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")
_MOST_SECONDS = 1e11
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)([KMGTPE]?)(?:i?B)?$", re.IGNORECASE)


def format_bytes(count: float) -> str:
    """Returns a size as `ceph df` prints it: 1536 → '1.5 KiB'.

    It has as many decimals, at most 2, as fit in 7 characters. Whole numbers of a unit have none
    (byte_u_t in Ceph's include/types.h).
    """
    if count < 0:
        return "-" + format_bytes(-count)
    whole = int(count)
    unit = 0
    while whole >> (10 * (unit + 1)) and unit < len(_UNITS) - 1:
        unit += 1
    size = 1 << (10 * unit)
    if whole % size == 0:
        return f"{whole // size} {_UNITS[unit]}"
    for decimals in (2, 1, 0):
        text = f"{whole / size:.{decimals}f} {_UNITS[unit]}"
        if len(text) <= _SIZE_WIDTH:
            break
    return text


def parse_size(text: str) -> Optional[int]:
    """Returns bytes for a text such as '1T', in Ceph's binary units; None for other texts."""
    match = _SIZE.match(text.strip())
    if match is None:
        return None
    power = " KMGTPE".find(match[2].upper() or " ")
    size = float(match[1]) * 1024 ** power
    return int(size) if size < _MOST_BYTES else None


def parse_span(text: str) -> Optional[float]:
    """Returns seconds for a text such as '6h' or '1d12h'; None for other texts."""
    match = _SPAN.match(text.strip())
    if match is None or not any(match.groups()):
        return None
    seconds = 0.0
    for number, (_, size) in zip(match.groups("0"), _DURATIONS):
        seconds += float(number) * size
    return seconds if seconds < _MOST_SECONDS else None


def format_percent(ratio: Optional[float]) -> str:
    """Returns a ratio for columns under a % head: 0.84957 → '84.96', None → ''."""
    return "" if ratio is None else f"{100.0 * ratio:.2f}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Returns a count with its noun: (1, 'shard') → '1 shard', (2, 'shard') → '2 shards'."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {nouns or noun + 's'}"


def named(names: Sequence[str], most: int) -> str:
    """Returns the first few names, and the number of others: 'a, b and 3 more'."""
    more = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {more} more" if more > 0 else shown


def named_osds(osds: Sequence[int], most: int) -> str:
    """Returns names of OSDs: 'osd.3, osd.7 and 2 more'."""
    return named([f"osd.{osd}" for osd in osds], most)


def format_duration(seconds: Optional[float]) -> str:
    """Returns a time in its two largest adjacent units, the second with two digits: '3h00m'; below
    a minute '59s'; '' for None."""
    if seconds is None:
        return ""
    left = int(max(0.0, seconds))
    for (unit, size), (next_unit, next_size) in zip(_DURATIONS, _DURATIONS[1:]):
        if left >= size:
            return f"{left // size}{unit}{left % size // next_size:02d}{next_unit}"
    return f"{left}s"


def format_time(epoch_seconds: float) -> str:
    """Returns a time in UTC: '2026-01-01 00:01'."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(math.floor(epoch_seconds)))


def format_deadline(epoch_seconds: float) -> str:
    """Returns `format_time`, rounded up to a minute and with the zone.

    It is for sentences that people read later, because a countdown would be wrong by then.
    """
    return format_time(60.0 * math.ceil(epoch_seconds / 60.0)) + " UTC"


def format_local(epoch_seconds: float) -> str:
    """Returns a time in the mgr's own time zone: '2026-01-01 22:00 CET'."""
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(epoch_seconds))


def wrap(label: str, text: str, indent: int = 13) -> List[str]:
    """Returns lines of at most WIDTH characters: the label, and the text with a hanging indent.

    A command that fits in a line is not broken, so that people can paste it. Only a word that is
    longer than a line makes a line longer. The commands of a freeze follow as a block.
    """
    def unbroken(command: Match[str]) -> str:
        """Returns a command; if it fits in a line, with spaces at which lines do not break."""
        fits = len(command[0]) < WIDTH - indent   # a comma follows
        return command[0].replace(" ", _NO_BREAK) if fits else command[0]
    lines = textwrap.wrap(
        _COMMAND.sub(unbroken, text), WIDTH,
        initial_indent=label.ljust(indent),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False)
    lines = lines or [label.rstrip()]
    return [line.replace(_NO_BREAK, " ") for line in lines] + _block(text)


def pasted(commands: Sequence[str]) -> List[str]:
    """Returns lines of a shell that stop at the first command that fails.

    So the last command, which lets data move again, runs only after all others.
    """
    return [f"  {command} &&" for command in commands[:-1]] + [f"  {commands[-1]}"]


def _block(text: str) -> List[str]:
    """Returns the commands of a sentence as a block to paste, if they are those of a freeze: the
    first sets norebalance. Returns no lines for other sentences."""
    commands: List[str] = []
    for command in _COMMAND.findall(text):
        commands += PINS if command == "'ceph equilibrium freeze'" else [command[1:-1]]
    is_freeze = len(commands) > 1 and commands[0].endswith("set norebalance")
    return pasted(commands) if is_freeze else []
