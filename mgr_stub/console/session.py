"""A module on a simulated mgr: command lines in, answers out, and virtual time between them."""

from __future__ import annotations

import errno
import importlib
import logging
import os
import random
import shlex
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Tuple

from ..errors import StubError, invalid
from ..mgr.builtin_balancer import try_command
from ..mgr.failure_points import Doom, Meanwhile, MgrDied
from ..mgr.handlers import find_handler, parse_words
from ..mgr.install import install
from ..mgr.mgr import Mgr
from ..monitor.mon_faults import LoggedCommand
from ..simulation.simulation import Simulation
from ..state.cluster_builder import build_cluster
from ..state.state_file import read_state
from . import mon_commands, sim_commands
from .inline_jobs import InlineJobs

Answer = Tuple[int, str, str]

#: The cluster that is loaded where no state file is named.
DEMO_STATE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo", "cluster.json.xz")

#: Rounds that may follow one another at one moment before time goes on.
_ROUNDS_AT_ONCE = 20

#: Virtual seconds between two looks of the observers while something moves.
_LOOK_SECONDS = 60.0

#: Virtual seconds until another mgr takes over, shortest and longest.
_TAKEOVER_SECONDS = (5.0, 30.0)

MODULE_NAME = "equilibrium"


def load_equilibrium() -> type:
    """The module class under test; imported late, since it needs `mgr_module` in place."""
    return importlib.import_module("equilibrium_mgr").Module


class Session:
    """One simulated cluster with one mgr that runs one module.

    `module_class` is for tests of the stub itself. With `threads` the module keeps its own
    background thread for jobs; otherwise they run inline, after each command and round. With
    `frozen` the module's readings cannot be changed, as from Ceph 21 on.
    """

    def __init__(self, simulation: Simulation, seed: int = 0, threads: bool = False,
                 load_module: Callable[[], type] = load_equilibrium,
                 frozen: bool = True) -> None:
        random.seed(seed)
        simulation.reseed(seed)
        self.simulation = simulation
        self.cluster = simulation.cluster
        self.clock = simulation.clock
        self._threads = threads
        self._frozen = frozen
        self._load_module = load_module
        #: Called after every round of the module, and every virtual minute while something moves.
        self.observers: List[Callable[[Session], None]] = []
        #: Told of every command line that came in the middle of a round, and of its return code.
        self.listeners: List[Callable[[str, int], None]] = []
        # without this Python prints a module's warnings to stderr, where the answers go
        logging.getLogger(MODULE_NAME).addHandler(logging.NullHandler())
        logging.getLogger("equilibrium_mgr").addHandler(logging.NullHandler())
        self._takeover: Optional[float] = None
        self.next_round = self.clock.now
        simulation.config.set_module_option("balancer", "active", "false")
        self._start()

    @classmethod
    def from_state(cls, path: Optional[str] = None, release: int = 16, seed: int = 0,
                   threads: bool = False,
                   load_module: Callable[[], type] = load_equilibrium,
                   frozen: bool = True) -> Session:
        """A session over a state file (None: the demo cluster); StubError if it will not do."""
        name = path or DEMO_STATE
        cluster = build_cluster(read_state(name), release, name)
        install(release)
        return cls(Simulation(cluster), seed, threads, load_module, frozen)

    # -- the life of a mgr --------------------------------------------------------------------

    def _start(self) -> None:
        self.jobs = InlineJobs()
        self.mgr = self._make_mgr()
        self.mgr.shares_readings = self._frozen
        module_class: Any = self._load_module()
        self.handlers = module_class.handlers()
        self.simulation.config.declare(MODULE_NAME, list(module_class.MODULE_OPTIONS))
        extra = {} if self._threads else {"jobs": self.jobs}
        #: None while no mgr is active.
        self.module: Any = None
        self.simulation.mgr_alive = True
        with self._mortal():
            self.module = module_class(MODULE_NAME, None, self.mgr, clock=self.clock, **extra)
            self.mgr.module = self.module
        if self.module is not None:
            # a mgr starts serve() as soon as it has made the module
            self.round()
            self.settle()

    def _make_mgr(self) -> Mgr:
        return Mgr(self.simulation, MODULE_NAME)

    def failover(self) -> None:
        """The mgr stops in good order; another one takes over with what the monitor has kept."""
        self.mgr.commit()
        if self.module is not None:
            self.module.shutdown()
        self.jobs.stop()
        self._start()

    def fail_mgr(self, takeover: Optional[float] = None) -> None:
        """The mgr dies where it stands; the module is not told.

        Another mgr begins after `takeover` virtual seconds (by chance if None) with what the
        monitor has been given.
        """
        self.mgr.life.end()
        self._bury(takeover)

    def doom_mgr(self, call: str, after: bool = False, count: int = 1,
                 takeover: Optional[float] = None) -> None:
        """The mgr dies at the `count`-th call of the API from now on, before or after its effect.

        `call` is one of failure_points.CALLS' values, such as `send_command`.
        """
        self.mgr.life.doom = Doom(call, after, count)
        self._takeover = takeover

    def come_between(self, call: str, after: bool, count: int, line: str) -> None:
        """A command line is run in the middle of what the module does: at the `count`-th call of
        the API from now on, before or after its effect."""
        self.mgr.life.meanwhile.append(
            Meanwhile(call, after, count, lambda: self._run_between(line)))

    def _run_between(self, line: str) -> None:
        code = self._dispatch(shlex.split(line))[0]
        for listener in self.listeners:
            listener(line, code)

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        """Around all that the module does: it may end with the mgr."""
        try:
            yield
        except MgrDied:
            pass
        if self.mgr.life.dead and self.simulation.mgr_alive:
            self._bury(self._takeover)

    def _bury(self, takeover: Optional[float]) -> None:
        if takeover is None:
            takeover = self.simulation.rng.uniform(*_TAKEOVER_SECONDS)
        self._takeover = None
        if self._threads and self.module is not None:
            self.module.jobs.stop()  # a thread would not end with the mgr
        self.jobs.stop()
        self.module = self.mgr.module = None
        self.mgr.health_checks, self.mgr.config_changed = {}, False
        self.simulation.mgr_alive = False
        self.next_round = self.clock.now + takeover

    def close(self) -> None:
        """Shuts the module down."""
        if self.module is not None:
            self.module.shutdown()
        self.jobs.stop()

    @property
    def command_log(self) -> List[LoggedCommand]:
        """All commands that the monitor has been sent, with their times, senders and results."""
        return self.simulation.monitor.log

    # -- commands -----------------------------------------------------------------------------

    def command(self, line: str) -> Answer:
        """Runs one command line (with or without `ceph` in front): return code, stdout, stderr."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            return -errno.EINVAL, "", f"'{line}' cannot be split into words: {error}"
        return self.command_words(words)

    def command_words(self, words: List[str]) -> Answer:
        """As `command`, for a line that is split already."""
        if words[:1] == ["ceph"]:
            words = words[1:]
        answer = self._dispatch(words)
        self.settle()
        return answer

    def _dispatch(self, words: List[str]) -> Answer:
        try:
            if words[:1] == ["sim"]:
                return sim_commands.run(self, words[1:])
            answer = try_command(self.mgr.balancer, words) or mon_commands.try_command(
                self.mgr, words)
            return answer or self._module_command(words)
        except StubError as error:
            return error.code, "", error.message

    def _module_command(self, words: List[str]) -> Answer:
        handler = find_handler(self.handlers, words)
        if handler is None:
            raise invalid(f"no valid command found: {' '.join(words) or 'the line is empty'}")
        if self.module is None:
            raise StubError(errno.EAGAIN, "no mgr is active")
        arguments = parse_words(handler, words[len(handler.prefix.split()):])
        answer: Any = (-errno.ETIMEDOUT, "", "the mgr has died")
        try:
            with self._mortal():
                answer = handler.call(self.module, arguments)
        except Exception:
            # what a mgr makes of an exception in a handler
            return -errno.EINVAL, "", traceback.format_exc().rstrip("\n")
        if not isinstance(answer, tuple) or len(answer) != 3:
            return -errno.EINVAL, "", f"the handler of '{handler.prefix}' gave no 3-tuple"
        rc, out, err = answer
        return int(rc), str(out), str(err)

    # -- time ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Runs what is due at this moment: jobs, notifications, and rounds that were asked for."""
        for _ in range(_ROUNDS_AT_ONCE):
            with self._mortal():
                self.mgr.notify_config()
                self.jobs.run_pending()
            if self.module is None or not self.module.wakeup.is_set():
                break
            self.round()

    def round(self) -> None:
        """One round of the module's serve loop, now; a new mgr's beginning if there is none."""
        if self.module is None:
            if not self.simulation.mgr_alive:
                self._start()
            return
        self.module.wakeup.clear()
        with self._mortal():
            delay = float(self.module.step())
            self.mgr.notify_config()
            self.mgr.commit()
            self.next_round = self.clock.now + max(1.0, delay)
        self._look()

    def _look(self) -> None:
        for observer in self.observers:
            observer(self)

    def _pass(self, seconds: float) -> None:
        """Lets virtual time pass without a round; observers look every minute of movement."""
        end = self.clock.now + max(0.0, seconds)
        while self.clock.now + _LOOK_SECONDS < end and not self.simulation.idle():
            self.simulation.advance(_LOOK_SECONDS)
            self._look()
        self.simulation.advance(max(0.0, end - self.clock.now))

    def run_until(self, moment: float) -> None:
        """Lets virtual time (`clock.now`) pass up to a moment, with the module's rounds in it."""
        while True:
            self.settle()
            self._pass(min(self.next_round, moment) - self.clock.now)
            if self.next_round > moment:
                break
            if self.clock.now >= self.next_round:
                self._due_round()
        self.settle()

    def run_for(self, seconds: float) -> None:
        """Lets so much virtual time pass."""
        self.run_until(self.clock.now + seconds)

    def next_round_and_rest(self) -> None:
        """Lets virtual time pass up to and through the module's next round."""
        self.settle()
        self._pass(self.next_round - self.clock.now)
        self._due_round()
        self.settle()

    def _due_round(self) -> None:
        with self._mortal():
            self.jobs.run_pending()
        self.round()

    def busy(self) -> bool:
        """Whether something moves, waits for an epoch, is being planned, or no mgr is active."""
        return bool(self.jobs.pending) or self.module is None or not self.simulation.idle()
