"""Numbers for people."""
from __future__ import annotations

import random

import pytest
from tests.support.tables import rows

from equilibrium_mgr.runtime.formatting import (
    format_bytes, format_deadline, format_duration, format_percent, format_time, parse_size,
    plural, wrap)


def test_time_is_never_too_early() -> None:
    assert format_deadline(1000.2) == "1970-01-01 00:17 UTC"
    assert format_deadline(1020.0) == "1970-01-01 00:17 UTC"
    assert format_time(1079.9) == "1970-01-01 00:17"


@pytest.mark.parametrize("count, text", rows("""
0                     0 B
1                     1 B
1023                  1023 B
1024                  1 KiB
1536                  1.5 KiB
1540                  1.5 KiB
10240                 10 KiB
10241                 10 KiB
102400                100 KiB
1073741824            1 GiB
5497558138880         5 TiB
10445360463872        9.5 TiB
1047553               1023 KiB
1152921504606846976   1 EiB
5764607523034234880000  5000 EiB
-2048                 -2 KiB
1234567890123         1.1 TiB
"""))
def test_bytes(count: str, text: str) -> None:
    assert format_bytes(int(count)) == text


@pytest.mark.parametrize("text, size", [(" 2M ", "2097152"), *rows("""
0       0
1       1
500G    536870912000
1T      1099511627776
1TiB    1099511627776
1TB     1099511627776
1.5k    1536
3p      3377699720527872
1E      1152921504606846976
7B      7
""")])
def test_sizes(text: str, size: str) -> None:
    assert parse_size(text) == int(size)


@pytest.mark.parametrize("text", ["", "１G\n1", *"""
G
-1
1X
1 2
1e5
nan
inf
1.G
.5G
1GG
0x10
1,5G
""".strip().split("\n")])
def test_what_is_no_size(text: str) -> None:
    assert parse_size(text) is None


def test_sizes_written_by_format_bytes_are_read_again() -> None:
    rng = random.Random(5)
    for _ in range(300):
        count = rng.randrange(1 << rng.randrange(1, 62))
        back = parse_size(format_bytes(count).replace(" ", ""))
        assert back is not None
        assert abs(back - count) <= count * 0.05 + 1


@pytest.mark.parametrize("seconds, text", rows("""
0        0s
59.9     59s
60       1m00s
61       1m01s
3600     1h00m
3656     1h00m
93784    1d02h
86405    1d00h
-5       0s
"""))
def test_durations(seconds: str, text: str) -> None:
    assert format_duration(float(seconds)) == text


def test_an_unknown_duration_is_empty() -> None:
    assert format_duration(None) == ""


def test_percents_and_counts() -> None:
    assert format_percent(0.849571) == "84.96"
    assert format_percent(None) == ""
    assert [plural(1, "shard"), plural(0, "shard"), plural(2, "entry", "entries")] == [
        "1 shard", "0 shards", "2 entries"]


def test_wrapped_text_hangs_below_its_beginning_and_keeps_to_the_width() -> None:
    lines = wrap("why:", "14 of 35 shards wait: " + "7 for a target that has 4 coming, " * 5)
    assert lines[0].startswith("why:         14 of 35")
    assert len(lines) > 2
    for line in lines[1:]:
        assert line.startswith(" " * 13)
    assert max(map(len, lines)) <= 80
    assert wrap("window:", "") == ["window:"]


def test_a_command_is_broken_only_if_no_line_has_room_for_it() -> None:
    command = "'ceph config set mgr mgr/equilibrium/max_misplaced_ratio 0.02'"
    lines = wrap("do:", f"nothing; it ends by itself; {command}, at clients' cost")
    assert command in "\n".join(lines)
    assert max(map(len, lines)) <= 80
    long = f"'ceph osd in {' '.join(map(str, range(60)))}'"
    lines = wrap("do:", f"bring them in: {long}", 4)
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == f"do: bring them in: {long}"
