"""A small cluster whose mgr runs in threads, brought into each state of the module."""
from __future__ import annotations

import functools
import json
import random
import tempfile
import threading
from concurrent.futures import Future, TimeoutError as Late
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Osds, PoolPlan, fill

from mgr_stub.console.session import Session, ThreadedSession
from mgr_stub.host.threaded_host import MAX_AT_ONCE
from mgr_stub.monitor.monitor import MGR
from tests.scenarios import clusters
from tests.support.rules import HDD_HOSTS

from .stand_ins import HeldPlanner

_SET = "config set mgr mgr/equilibrium/"
#: Real seconds for an answer that may depend on the very thread that waits for it.
_GRACE_SECONDS = 0.05
_STARTING = ("equilibrium on", "equilibrium execute", "equilibrium drain add", "equilibrium undo",
             "equilibrium cancel", "equilibrium freeze", _SET + "active true")
_UPMAPS = ("osd pg-upmap-items", "osd rm-pg-upmap-items")


@functools.cache
def _uneven() -> str:
    """A state file's text."""
    rng = random.Random(1)
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((0.25, 0.5)) for _ in range(2)])
            for h in range(5)}
    layout = osds.layout(tree, {0: HDD_HOSTS}, [PoolPlan("rbd", 0.9, 32), PoolPlan("fs", 0.1, 8)])
    return json.dumps(state_of(fill(layout, rng, clusters.crush_places)))


@functools.cache
def _balanced() -> str:
    """The same cluster when nothing is left to do."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.json"
        path.write_text(_uneven())
        session = Session.from_state(str(path), 18)
        session.command("equilibrium on")
        session.command("sim run 12h")
        assert session.module.balancer.status.state == "balanced"
        session.command(f"sim save {path}")
        return path.read_text()


class Running:
    """The session, and what is held against it."""

    def __init__(self, folder: Path, planner: HeldPlanner, errors: List[str],
                 balanced: bool = False) -> None:
        path = folder / "state.json"
        path.write_text(_balanced() if balanced else _uneven())
        self.planner = planner
        self.session: ThreadedSession = ThreadedSession.from_state(str(path), 18)  # type: ignore
        planner.session = self.session
        self._errors = errors
        self._silent_since: Optional[int] = None
        self.command("sim backfill rate 4M")
        for option in ("start_delay 0", "max_misplaced_ratio 0.1", "pg_cooldown 0"):
            self.command(_SET + option)

    # -- what happens -------------------------------------------------------------------------

    def command(self, line: str) -> Tuple[int, str, str]:
        answer = self.session.command(line)
        self._hear(line, answer)
        return answer

    def post(self, line: str) -> Future[Any]:
        """As `command`, without waiting for the answer or for anything that comes of it."""
        answer = self.session.post(line)
        answer.add_done_callback(lambda future: self._hear(line, future.result()))
        return answer

    def in_between(self, line: str) -> None:
        """As `command`, for a thread of the module, which goes on where the answer is late."""
        try:
            self.post(line).result(_GRACE_SECONDS)
        except Late:
            pass

    def _hear(self, line: str, answer: Tuple[int, str, str]) -> None:
        if "Traceback" in answer[2]:
            self._errors.append(f"'{line}' raises: {answer[2]}")
        if line == "equilibrium off" and answer[0] == 0:
            self._silent_since = len(self.sent())
        elif line.startswith(_STARTING) and "--dry-run" not in line:
            self._silent_since = None

    def run(self, seconds: float) -> None:
        self.session.host.run_for(seconds)

    def status(self) -> Dict[str, Any]:
        status: Dict[str, Any] = json.loads(self.command("equilibrium status --format json")[1])
        return status

    # -- what came of it ------------------------------------------------------------------------

    def sent(self) -> List[str]:
        """PGs of the upmap commands that the module has sent."""
        return [str(entry.command["pgid"]) for entry in list(self.session.command_log)
                if entry.sender == MGR and entry.prefix in _UPMAPS]

    def is_off(self) -> bool:
        """Whether the last that was answered of `on`, `execute` and `off` is `off`."""
        return self._silent_since is not None

    def broken(self) -> List[str]:
        found = list(self._errors) + self.session.host.failures
        if self._silent_since is not None and len(self.sent()) > self._silent_since:
            found.append(f"{len(self.sent()) - self._silent_since} commands after 'off' has "
                         "answered")
        if self.session.host.max_rounds_at_once > MAX_AT_ONCE:
            found.append("rounds follow one another without end")
        return found

    def close(self) -> None:
        self.planner.let_go()
        self.session.close()


# -- states --------------------------------------------------------------------------------------

_LIMITED = ("sim backfill rate 0", "equilibrium on", "sim run 3m")
#: State → lines that bring the module into it.
STATES: Dict[str, Sequence[str]] = {
    "planning": ["equilibrium on"],   # its plan is held
    "moving": ["equilibrium on"],
    "moving at its limit": _LIMITED,
    # moves of others take up the limit: the module cannot move anything
    "throttled": [_SET + "max_misplaced_ratio 0.01", "sim osd reweight 5 0.7", "sim run 1m",
                  *_LIMITED],
    "blocked": ["sim flag set norebalance", "equilibrium on"],
    "waiting": [_SET + "start_delay 3600", "equilibrium on"],
    "balanced": ["equilibrium on"]}
#: States of the operator's making, which the loop calls by another name.
OPERATIONS: Dict[str, Sequence[str]] = {
    "draining": ["equilibrium drain add 0 h1"],
    "undoing": ["equilibrium on", "sim run 3m", "equilibrium off", "equilibrium undo"]}


def reach(running: Running, state: str) -> None:
    """Brings the module into a state."""
    if state == "planning":
        running.planner.hold()
    for line in {**STATES, **OPERATIONS}[state]:
        running.command(line)
    if state in OPERATIONS:
        return
    status = running.status()
    assert state.startswith(status["state"]), status["reason"]
    if "sim backfill rate 0" in STATES[state]:
        assert status["waiting"]


# -- events --------------------------------------------------------------------------------------

def _line(line: str) -> Callable[[Running, bool], None]:
    def happen(running: Running, between: bool) -> None:
        (running.in_between if between else running.command)(line)
    return happen


def _die(running: Running, between: bool) -> None:
    """The mgr dies where it stands; another one begins a few seconds later."""
    if between:
        running.session.mgr.process.kill()
    else:
        running.command("sim mgr fail takeover=5s")


def _shut_down(running: Running, between: bool) -> None:
    if not between:
        running.session.host.failover()
        return
    threading.Thread(target=running.session.host.shut_down, daemon=True).start()


#: Events for which a plan named `p` must be there.
OF_PLANS = ("execute", "reset")
_LINES = {
    "off": "equilibrium off",
    "on": "equilibrium on",
    "execute": "equilibrium execute p",
    "reset": "equilibrium reset",
    "window": _SET + "begin_time 1200",
    "flag": "sim flag set nobackfill",
    "builtin": "sim balancer on",
    "monitor": "sim mon down"}
#: About data that is to leave OSDs or to come back.
_OPERATING = {
    "drain add": "equilibrium drain add 3",
    "drain rm": "equilibrium drain rm 0 h1",
    "undo": "equilibrium undo",
    "cancel": "equilibrium cancel",
    "freeze": "equilibrium freeze"}
Happen = Callable[[Running, bool], None]
EVENTS: Dict[str, Happen] = {
    **{name: _line(line) for name, line in _LINES.items()},
    "failover": _die,
    "shutdown": _shut_down}
OPERATING: Dict[str, Happen] = {name: _line(line) for name, line in _OPERATING.items()}
