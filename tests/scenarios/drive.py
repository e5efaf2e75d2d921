"""Runs a scenario to its end."""
from __future__ import annotations

from pathlib import Path
from typing import List, NamedTuple, Tuple

from mgr_stub.session import Session

from . import clusters, outcome
from .scenario import Scenario
from .watch import Watch

_DEFAULT_LIMIT = 0.05


class Result(NamedTuple):
    """What came of a run."""

    lines: List[str]
    watch: Watch
    session: Session


def run(scenario: Scenario, folder: Path) -> Result:
    """Plays the events at their moments. Raises AssertionError for a command that fails."""
    session = clusters.session_of(scenario.cluster, scenario.seed, folder)
    for name, value in scenario.options:
        command(session, "config set mgr mgr/equilibrium/%s %s" % (name, value))
    growing = any("grow" in event.line or "write" in event.line for event in scenario.events)
    watch = Watch(session, growing)
    session.observers.append(watch)
    start = session.simulation.clock.now
    for event in scenario.events:
        run_to(session, start + event.at)
        command(session, event.line)
    run_to(session, start + scenario.seconds)
    limit = float(dict(scenario.options).get("max_misplaced_ratio", _DEFAULT_LIMIT))
    found = Result(outcome.lines(session, watch, limit), watch, session)
    session.close()
    return found


def run_to(session: Session, moment: float) -> None:
    """Up to a moment of the virtual clock that never jumps."""
    if moment > session.simulation.clock.now:
        session.run_until(moment)


def command(session: Session, line: str) -> Tuple[int, str, str]:
    answer = session.command(line)
    assert answer[0] == 0, "'%s' failed: %s" % (line, answer[2])
    return answer
