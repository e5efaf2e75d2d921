"""Watches a run: takes its figures, and notes every rule that is broken.

Called after each round and every virtual minute while something moves; commands are judged as they
are sent (judge.py). The names S1 … S14 are those of the invariants that each check stands for.
"""
from __future__ import annotations

from typing import List, Set

from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR

from ..rules.judge import Judge
from ..rules.map_rules import MapRules
from ..rules.under_way import REMOVE_ITEMS, SET_ITEMS
from .deserved_rest import DeservedRest
from .figures import Ceiling, Figures, Repeats
from .open_executions import OpenExecutions
from .truth import Truth


class Watch:
    """Figures and broken rules of one run."""

    def __init__(self, session: Session) -> None:
        self.figures = Figures(session)
        self.repeats = Repeats()
        self.judge = Judge(session, self.repeats.on_move)
        self.risen: List[str] = []   # L8
        self.truth = Truth()
        self._map_rules = MapRules(session.cluster, self.judge)
        self._ceiling = Ceiling()
        self._open_executions = OpenExecutions()
        self.rest = DeservedRest(session)
        self._start = session.simulation.clock.now
        self._read = len(session.simulation.monitor.log)
        self._ours: Set[str] = set()
        self._failure = ""   # of the last round
        session.listeners.append(self._on_command)

    def __call__(self, session: Session) -> None:
        """One look."""
        self.judge.observe()
        self._map_rules.observe()
        for what in self._open_executions.observe(session):
            self.judge.note("L5", what)
        for what in self.rest.observe(session):
            self.judge.note("R1", what)
        self._hold_rounds(session)
        self.truth.observe(session, self.judge.ours)
        utilizations = session.cluster.utilizations()
        fresh = self._done_commands(session)
        self.figures.count(session, fresh)
        self._ours = {pgid for pgid in self._ours.union(fresh)
                      if pgid in session.cluster.unclean}
        self.figures.measure(session, self._ours, utilizations)
        self.risen += self._ceiling.passed(session, self.judge.ours, utilizations)

    def _hold_rounds(self, session: Session) -> None:
        """L13: whatever the cluster is like, no round ends by an exception."""
        failure = session.module._failure if session.module is not None else ""
        if failure and failure != self._failure:
            self.judge.note("L13", f"a round has failed: {failure}")
        self._failure = failure

    def _on_command(self, line: str, code: int) -> None:
        """A command that came in the middle of a round."""
        self.judge.answers.before(line)
        self.judge.silence.on_answer(line, code)

    @property
    def broken(self) -> List[str]:
        return self.judge.broken

    def _done_commands(self, session: Session) -> List[str]:
        """PGs whose upmap commands the monitor has done since the last look."""
        log = session.simulation.monitor.log
        fresh: List[str] = []
        while self._read < len(log) and (log[self._read].returncode is not None
                                         or log[self._read].sender != MGR):
            entry = log[self._read]
            self._read += 1
            if entry.sender == MGR and entry.prefix in (SET_ITEMS, REMOVE_ITEMS):
                self.figures.commands += 1
                self.figures.last_command_at = entry.sent_at - self._start
                if entry.returncode == 0:
                    fresh.append(str(entry.command["pgid"]))
        return fresh
