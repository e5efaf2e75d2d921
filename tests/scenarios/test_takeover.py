"""A mgr dies at any call; what its successor shows is what is so, and it plans from nothing else.

Held against the simulated cluster: what is in flight, what is misplaced, how full OSDs will be. A
PG that has not reported since may be counted as moving, for a minute at most.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from . import clusters
from .rules.judge import Judge
from .rules.under_way import is_ours
from .watch import truth

_SECONDS, _ASKED_EVERY = 600, 20
#: In which what is not known yet has to show.
_HEARD_SECONDS = 60.0


class Story(NamedTuple):
    """How the first mgr works, and with what."""

    cluster: str
    seed: int
    lines: List[str]


_EAGER = ["config set mgr mgr/equilibrium/start_delay 10",
          "config set mgr mgr/equilibrium/sleep_interval 30",
          "config set mgr mgr/equilibrium/max_moves_per_round 8",
          "config set mgr mgr/equilibrium/max_misplaced_ratio 0.1"]
_STORIES: Dict[str, Story] = {
    "fast": Story("random", 6, [*_EAGER, "sim backfill rate 1G", "equilibrium on"]),
    "slow": Story("random", 6, [*_EAGER, "sim backfill rate 40M", "equilibrium on"]),
    "logs": Story("logs", 2, [*_EAGER, "sim backfill rate 400M", "equilibrium on"]),
    "drain": Story("nested", 3, [*_EAGER, "sim backfill rate 400M", "equilibrium drain add 1"]),
    "named": Story("erasure", 2, [*_EAGER, "sim backfill rate 2G", "equilibrium optimize p",
                                  "sim run 1m", "equilibrium execute p"])}
_POINTS = [f"{when}-{call}" for call in (
    "send 1", "send 3", "send 11", "store 3", "store 9", "store 14", "map 5", "map 12", "map 29",
    "get 20", "get 75", "get 140") for when in ("before", "after")]
#: Every point with one or two of the stories, and every story with many points; and the one where
#: T2 and T3 see what is planned while it is not known what has arrived.
_CASES = [(story, point) for point in _POINTS for story in _STORIES][::3] + [
    ("drain", "before-send 3")]
_RULES = {"T1": truth.t1_fill, "T2": truth.t2_misplaced, "T3": truth.t3_moving}


class Takeover:
    """Looks at the successor whenever its figures are of this moment."""

    def __init__(self, session: Session, first: Any) -> None:
        self.wrong: List[str] = []
        self.looks = self._planned = self._sent = 0
        self._wrong_since: Dict[str, float] = {}   # rule → since when, without end
        self._session, self._first = session, first
        self._judge = Judge(session, lambda move: None)
        self._looked_at = float("inf")
        session.host.observers.append(lambda _: self.observe())
        session.simulation.monitor.observers.append(self._on_command)

    def observe(self) -> None:
        self._judge.observe()
        session = self._session
        if session.module in (None, self._first) or not truth.Truth._is_fresh(session):
            return
        now = session.clock.now
        self._looked_at = min(now, self._looked_at)
        self.looks += 1
        planned = session.module.plan_service.plans_begun
        is_planning = planned > self._planned and not self._sent
        self._planned = planned
        status = truth.ask(session, "status")
        for rule, check in _RULES.items():
            found = list(check(session, self._judge.ours, status))
            if not found:
                self._wrong_since.pop(rule, None)
            elif is_planning:
                self.wrong.append(f"{rule}: {found}, where it plans")
            elif now - self._wrong_since.setdefault(rule, now) >= _HEARD_SECONDS:
                self.wrong.append(f"{rule}: {found}, {int(now - self._looked_at)} s after its first"
                                  " look, and for a minute")

    def _on_command(self, entry: Any) -> None:
        """What it has sent itself shows later as well."""
        if self._session.module is not self._first:
            self._sent += is_ours(entry)


@pytest.mark.parametrize("case", few(_CASES, 2), ids="-".join)
def test_the_successor_shows_what_is_so(case: Tuple[str, str], tmp_path: Path) -> None:
    name, point = case
    story = _STORIES[name]
    session = clusters.session_of(story.cluster, story.seed, tmp_path)
    for line in story.lines:
        assert session.command(line)[0] == 0, line
    session.host.run_for(20.0)
    takeover = Takeover(session, session.module)
    session.command(f"sim mgr fail at {point} takeover=5s")
    for _ in range(_SECONDS // _ASKED_EVERY):
        session.host.run_for(_ASKED_EVERY)
        session.command("equilibrium status")
    died = session.module is not takeover._first
    session.close()
    if not died:
        pytest.skip("so many calls there are not")
    assert takeover.looks
    assert not takeover.wrong, "\n".join(takeover.wrong[:12])
