"""Parsing the words of `sim` commands; StubError with one sentence for invalid ones."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..clock import parse_span
from ..errors import StubError, invalid
from ..monitor.config import parse_value
from ..monitor.group_flags import osd_number


def parse_osd(word: str) -> int:
    """Returns the number of `3` or `osd.3`."""
    osd = osd_number(word)
    if osd is None:
        raise invalid(f"'{word}' is not an OSD")
    return osd


def parse_whole(word: str) -> int:
    """Returns a whole number, 0 or more."""
    if not (word.isascii() and word.isdigit()):
        raise invalid(f"'{word}' is not a whole number")
    return int(word)


def parse_number(word: str) -> float:
    """Returns a finite number."""
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise invalid(f"'{word}' is not a number")
    return value


def parse_ratio(word: str) -> float:
    """Returns a number from 0 to 1."""
    value = parse_number(word)
    if not 0.0 <= value <= 1.0:
        raise invalid(f"{word} is not between 0 and 1")
    return value


def parse_amount(word: str) -> float:
    """Returns a number, 0 or more."""
    value = parse_number(word)
    if value < 0.0:
        raise invalid(f"{word} is below 0")
    return value


def parse_hours(word: str) -> List[float]:
    """Returns a factor for each hour of the day: that of `22-4:3` from 22 to 4 h, 1 else."""
    hours, _, factor = word.partition(":")
    first, _, end = hours.partition("-")
    if not (first.isdigit() and end.isdigit() and factor):
        raise invalid(f"'{word}' is not hours of the day with a factor, such as 22-4:3")
    begin = int(first)
    length = (int(end) - begin) % 24
    factors = [1.0] * 24
    for hour in range(begin, begin + length):
        factors[hour % 24] = parse_amount(factor)
    return factors


def parse_size(word: str) -> int:
    """Bytes, in Ceph's units: `4096`, `10G`, `1TiB`."""
    try:
        return int(parse_value("size", word))
    except StubError:
        raise invalid(f"'{word}' is not a size such as 500G or 1T") from None


def parse_rate(word: str) -> float:
    """Returns the bytes per second of `10G/1h`; the time may be a unit alone, and the size
    negative.
    """
    if word == "0":
        return 0.0
    amount, slash, span = word.partition("/")
    if not slash or not span:
        raise invalid(f"'{word}' is not a rate such as 10G/1h, nor 0")
    negative = amount.startswith("-")
    if not span[0].isdigit():
        span = "1" + span
    seconds = parse_span(span)
    if seconds <= 0:
        raise invalid(f"'{word}' is not a rate such as 10G/1h, nor 0")
    bytes_per_second = parse_size(amount[negative:]) / seconds
    if negative:
        return -bytes_per_second
    return bytes_per_second


def parse_jump(word: str) -> float:
    """Returns the seconds of a time span with a sign: `-1h`."""
    if word.startswith("-"):
        return -parse_span(word[1:])
    return parse_span(word[word.startswith("+"):])


def parse_on_off(word: str) -> bool:
    """Returns True for `on`, False for `off`."""
    if word not in ("on", "off"):
        raise invalid(f"'{word}' is neither on nor off")
    return word == "on"


def split_options(words: Sequence[str], known: Sequence[str]) -> Tuple[List[str], Dict[str, str]]:
    """Returns (plain words, {name: value} of the `name=value` words)."""
    plain: List[str] = []
    named: Dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            plain.append(word)
        elif name in known:
            named[name] = value
        else:
            raise invalid(f"'{name}' is not known here; there are {', '.join(known)}")
    return plain, named


def exact_words(words: Sequence[str], count: int, usage: str) -> List[str]:
    """Returns the words, if there are exactly `count`; else StubError with the usage."""
    if words and not count:
        raise invalid(f"sim {usage} takes no arguments")
    if len(words) != count:
        raise invalid(f"it is: sim {usage}")
    return list(words)


def command(usage: str, act: Callable[..., Any],
            *parsers: Callable[[str], Any]) -> Callable[[Any, List[str]], str]:
    """Returns a `sim` command that calls `act` with its target and its words, each parsed by its
    parser.

    If the usage ends in `...`, the last parser is for each of the remaining words, at least one;
    `act` gets them in one list. The answer is the text that `act` returns, if any.
    """
    def run(target: Any, words: List[str]) -> str:
        values: List[Any] = [parse(word) for parse, word in zip(parsers, words)]
        if not usage.endswith("..."):
            exact_words(words, len(parsers), usage)
        elif len(words) < len(parsers):
            raise invalid(f"it is: sim {usage}")
        else:
            values[-1:] = [list(map(parsers[-1], words[len(parsers) - 1:]))]
        answer = act(target, *values)
        if isinstance(answer, str):
            return answer
        return ""
    return run
