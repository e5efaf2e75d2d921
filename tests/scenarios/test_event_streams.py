"""Random clusters and random streams of events, held against the rules of safety and of rest.

`--event-streams N` plays more or fewer of them. A failing one is shown as a scenario file that can
be put into tests/scenarios/files as it is.
"""
from __future__ import annotations

from pathlib import Path
from typing import List

import pytest

from . import drive, random_events, scenario
from .watch import truth
from .watch.at_rest import Rest


def test_event_stream(stream_seed: int, tmp_path: Path) -> None:
    play(random_events.scenario(stream_seed), tmp_path)


@pytest.mark.full
def test_event_stream_with_steering(steered_seed: int, tmp_path: Path) -> None:
    play(random_events.steered(steered_seed), tmp_path)


def test_cluster_to_which_nothing_happens(quiet_seed: int, tmp_path: Path) -> None:
    """L4 no shard is moved twice; L8 the highest utilization does not rise."""
    played, rest = random_events.quiet(quiet_seed), Rest()
    result = drive.run(played, tmp_path, rest.before_event)
    broken = result.watch.broken + rest.broken
    for rule, found in (("L4", result.watch.repeats.found), ("L8", result.watch.risen)):
        broken += [f"{rule}: {what}" for what in found]
    hold(played, result, broken)


def play(played: scenario.Scenario, folder: Path) -> None:
    """Plays a stream, which may break no rule."""
    rest = Rest()
    result = drive.run(played, folder, rest.before_event)
    hold(played, result, result.watch.broken + rest.broken)


def hold(played: scenario.Scenario, result: drive.Result, broken: List[str]) -> None:
    """Fails with the stream as a scenario file where a rule was broken."""
    untrue = result.watch.truth.broken
    lines = [event.line for event in played.events]
    broken = broken + [what for what in untrue
                       if not truth.is_pending(what.partition(":")[0], lines)]
    if broken:
        pytest.fail("\n".join(broken + ["", scenario.text_of(played)] + result.lines),
                    pytrace=False)
    if untrue:
        pytest.xfail("\n".join(untrue))
