"""Counters for Prometheus: over a week with failovers none of them ever falls."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import pytest
from tests.commands.asking import run
from tests.support.exposition import Labels, parse

from equilibrium_mgr.commands.report_commands import show_metrics
from mgr_stub.console.session import Session

Counts = Dict[Tuple[str, Labels], float]
#: What happens on each day, before it passes.
WEEK = (["equilibrium on"], ["sim osd out 3"], ["sim mgr fail takeover=5s"],
        ["sim osd in 3", "sim mgr fail at before-store"], ["equilibrium off", "equilibrium on"],
        ["sim osd out 5", "sim mgr fail at after-send"], ["equilibrium off"])


class Watch:
    """The counters after each round of the loop, as a scrape shows them."""

    def __init__(self, session: Session) -> None:
        self.counts: Counts = {}
        self.falls: List[str] = []
        self.mgrs: List[Any] = []
        session.host.observers.append(lambda host: self.observe(session))

    def observe(self, session: Session) -> None:
        if session.host.module is None or session.mgr.process.is_dead:
            return
        if session.mgr not in self.mgrs:
            self.mgrs.append(session.mgr)
        # a command of the session would let rounds pass before it has answered
        parsed = parse(show_metrics(session.module.parts).plain + "\n")
        for name, samples in parsed.samples.items():
            for labels, value in samples.items():
                if parsed.types[name] == "counter":
                    self._note((name, labels), value)

    def _note(self, key: Tuple[str, Labels], value: float) -> None:
        if value < self.counts.get(key, 0.0):
            self.falls.append(f"{key}: {self.counts[key]} -> {value}")
        self.counts[key] = value


@pytest.mark.full
@pytest.mark.parametrize("hours", [3, 24])
def test_counters_never_fall(open_session: Callable[..., Session], hours: int) -> None:
    """Seven days, in the short run of so many hours each, with three mgrs that die."""
    session = open_session(18)
    watch = Watch(session)
    for lines in WEEK:
        run(session, *lines, f"sim run {hours}h")
    assert watch.falls == []
    assert len(watch.mgrs) == 4
    highest: Dict[str, float] = {}
    for (name, _), value in watch.counts.items():
        highest[name] = max(highest.get(name, 0.0), value)
    assert len(highest) == 3 and min(highest.values()) > 0.0


def test_a_killed_mgr_takes_at_most_its_round_with_it(
        open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    run(session, "config set mgr mgr/equilibrium/max_moves_per_round 5", "equilibrium on",
        "sim run 30m", "sim mgr fail at after-send", "sim run 12h")
    history = session.module.balancer.status.history
    told = parse(run(session, "equilibrium metrics")).one("moves_total")
    sent = sum(len(entry.command.get("id", [])) // 2 for entry in session.command_log
               if entry.prefix == "osd pg-upmap-items")
    assert history and told is not None and 0 < told <= sent
