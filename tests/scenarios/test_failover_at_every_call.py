"""A mgr dies at any call of some stories; whatever the next one does and shows is by the rules.

The process that plays a story forks before and after each call. In the child the mgr dies there,
and the child plays the story to its end. Calls between which nothing outside of the mgr has
changed are one point, because a dead mgr leaves nothing else behind.
"""
from __future__ import annotations

import os
import signal
import traceback
from operator import attrgetter
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from mgr_stub.host.module_host import ModuleHost
from mgr_stub.mgr.mgr import Mgr
from mgr_stub.mgr.mgr_process import MgrDied
from tests.support.few import few

from . import drive, scenario
from .rules.under_way import is_ours
from .watch import truth
from .watch.watch import Watch

_STORIES = sorted(scenario.FOLDER.with_name("failovers").glob("*.txt"))
_CALLS = ("get", "get_osdmap", "send_command", "set_store", "set_module_option")
#: Of a mgr: what is left if it dies, with the monitor's log.
_OUTSIDE = attrgetter("simulation.clock.now", "cluster.map.epoch", "simulation.config.version",
                      "store.writes")
#: The end of each story, in which no mgr dies.
_SETTLE_SECONDS = 1200.0
_MOST_SECONDS = 120   # of a child
#: In which what is not known yet has to show.
_HEARD_SECONDS = 60.0
_OF_THE_SUCCESSOR = {"T1": truth.t1_fill, "T2": truth.t2_misplaced, "T3": truth.t3_moving}
#: T2 is held by Successor; and the first batch may go a round after its plan.
_EXCUSED = ("T2:", "T17: nothing is copied")


class Deaths:
    """Forks at each point of which the number is a multiple of `apart`, `until` an end in virtual
    seconds. `where` is the point at which the mgr of this process has died."""

    _mark: Any = None   # what was outside of the mgr at the last point

    def __init__(self, apart: int, until: float) -> None:
        self.where = ""
        self.points = 0
        self._apart = apart
        self._until = until
        self._answers = 0   # of commands that change something
        self._only_reads = False

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call of the mgr's API with a point before it and one after it."""
        def made(mgr: Mgr, *arguments: Any) -> Any:
            self._reach(mgr)
            answer = call(mgr, *arguments)
            self._reach(mgr)
            return answer
        return made

    def apart_from(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call of the host: no mgr dies while rules look, or a command only reads."""
        def made(host: ModuleHost, *arguments: Any) -> Any:
            before = self._only_reads
            changes = [handler for handler in arguments[:1] if "w" in handler.perm]
            self._only_reads = before or not changes
            answer = call(host, *arguments)
            self._only_reads = before
            self._answers += len(changes)
            return answer
        return made

    def _reach(self, mgr: Mgr) -> None:
        simulation = mgr.simulation
        mark = _OUTSIDE(mgr), len(simulation.monitor.log), self._answers
        now = simulation.clock.elapsed()
        is_over = self.where or now > self._until
        if is_over or self._only_reads or mark == self._mark:
            return
        self._mark = mark
        self.points += 1
        if self.points % self._apart:
            return
        child = os.fork()
        if child:
            assert not os.waitpid(child, 0)[1]
            return
        signal.alarm(_MOST_SECONDS)
        self.where = f"point {self.points}, at {now} s"
        mgr.process.kill()
        raise MgrDied


class Successor:
    """Holds what the next mgr shows against the cluster, whenever that is of this moment.

    A PG that has not reported since may be counted as moving for a minute. A plan is made of
    nothing else than what is so.
    """

    def __init__(self) -> None:
        self.wrong: List[str] = []
        self._session: Any = None
        self._planned = self._sent = 0
        self._wrong_since: Dict[str, float] = {}   # rule → since when, without end

    def begin(self, line: str, session: Session, watch: Watch) -> None:
        """Before each event."""
        if self._session is not None:
            return
        self._session = session
        self._first = session.module
        self._ours = watch.judge.ours
        session.host.observers.append(self._observe)
        session.simulation.monitor.observers.append(self._on_command)

    def _observe(self, host: ModuleHost) -> None:
        session = self._session
        module = session.module
        if module in (None, self._first) or not truth.Truth._is_fresh(session):
            return
        now = session.clock.elapsed()
        planned = module.plan_service.plans_begun
        is_planning = planned > self._planned and not self._sent
        self._planned = planned
        status = truth.ask(session, "status")
        for rule, check in _OF_THE_SUCCESSOR.items():
            found = list(check(session, self._ours, status))
            if not found:
                self._wrong_since.pop(rule, None)
            elif is_planning or now - self._wrong_since.setdefault(rule, now) >= _HEARD_SECONDS:
                self.wrong.append(f"next {rule}: {found} at {now} s, planning: {is_planning}")

    def _on_command(self, entry: Any) -> None:
        """What it has sent itself shows later as well."""
        if self._session.module is not self._first:
            self._sent += is_ours(entry)


def _broken(story: scenario.Scenario, folder: Path) -> List[str]:
    """What is wrong with a play."""
    successor = Successor()
    try:
        result = drive.run(story, folder, successor.begin)
    except BaseException:   # pytest does not go on in a child
        return [traceback.format_exc()]
    watch = result.watch
    found = watch.broken + watch.truth.broken + watch.screen.broken + successor.wrong
    found += story.missed(result.lines)
    return [what for what in found if not what.startswith(_EXCUSED)]


@pytest.mark.parametrize("path", few(_STORIES, 1), ids=lambda path: path.stem)
def test_failover(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                  pytestconfig: pytest.Config) -> None:
    story = scenario.read(path)
    deaths = Deaths(pytestconfig.getoption("--calls-apart"), story.seconds - _SETTLE_SECONDS)
    for name in _CALLS:
        monkeypatch.setattr(Mgr, name, deaths.around(getattr(Mgr, name)))
    for name in ("call_handler", "_notify_observers"):
        monkeypatch.setattr(ModuleHost, name, deaths.apart_from(getattr(ModuleHost, name)))
    found = _broken(story, tmp_path)
    report = tmp_path / "report"
    with report.open("a") as out:
        out.writelines(f"{deaths.where}: {what}\n" for what in found)
    if deaths.where:
        os._exit(0)
    wrong = report.read_text()
    assert deaths.points and not wrong, wrong
