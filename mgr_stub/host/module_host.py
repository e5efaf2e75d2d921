"""Runs one mgr module over a simulated cluster: the mgr's life cycle and the passing of time.

Background jobs of a module, run inline: virtual time does not pass while they run.
"""
from __future__ import annotations

import errno
import importlib
import logging
import random
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..errors import Answer
from ..mgr.handlers import Handler
from ..mgr.mgr import Mgr
from ..mgr.mgr_process import CrashPoint, Interruption, MgrDied
from ..osdmap.osd_map import MapChange
from ..simulation.course import Course
from ..simulation.simulation import Simulation


class InlineJobs:
    """Queues a module's jobs and runs them on demand, in the order of submission."""

    def __init__(self) -> None:
        self._queue: List[Tuple[str, Callable[[], None]]] = []

    def submit(self, name: str, job: Callable[[], None], first: bool = False) -> None:
        place = len(self._queue)
        if first:
            place = 0
        self._queue.insert(place, (name, job))

    def wait(self, seconds: float) -> bool:
        """Returns False: no time passes while a job runs."""
        return False

    def stop(self) -> None:
        """Drops the pending jobs."""
        self._queue.clear()

    @property
    def pending(self) -> List[str]:
        """Returns the names of the pending jobs."""
        return [name for name, _ in self._queue]

    def run_pending(self) -> int:
        """Runs all jobs, also the jobs that they submit; returns how many.

        No virtual time passes, so a handler can run them at once.
        """
        count = 0
        while self._queue:
            _, job = self._queue.pop(0)
            job()
            count += 1
        return count


#: Rounds that may follow one another at one moment before time goes on.
_MAX_ROUNDS_AT_ONCE = 20

#: Virtual seconds between two calls of the observers while data moves.
_OBSERVATION_SECONDS = 60.0

#: Virtual seconds until another mgr takes over, shortest and longest.
_TAKEOVER_SECONDS = (5.0, 30.0)

MODULE_NAME = "equilibrium"


def load_equilibrium() -> type:
    """Returns the module class under test; imported late, since it needs `mgr_module` in place."""
    module_class: type = importlib.import_module("equilibrium_mgr").Module
    return module_class


class ModuleHost:
    """One simulated cluster with one mgr that runs one module.

    `load_module` gives the module's class. With `own_job_thread` the module keeps its own
    background thread for jobs; otherwise they run inline, after each command and round. With
    `frozen` the module's readings cannot be changed, as from Ceph 21 on.
    """

    def __init__(self, simulation: Simulation, seed: int = 0, own_job_thread: bool = False,
                 load_module: Callable[[], type] = load_equilibrium,
                 frozen: bool = True) -> None:
        random.seed(seed)
        simulation.reseed(seed)
        self.simulation = simulation
        self.cluster = simulation.cluster
        self.clock = simulation.clock
        self._own_job_thread = own_job_thread
        self._frozen = frozen
        self._load_module = load_module
        #: Called after every round of the module, and every virtual minute while data moves.
        self.observers: List[Callable[[ModuleHost], None]] = [
            lambda host: host.course.sample(host.cluster, host.clock.elapsed())]
        self.course = Course()
        # without a handler Python prints a module's warnings to stderr, between the answers
        logging.getLogger(MODULE_NAME).addHandler(logging.NullHandler())
        logging.getLogger("equilibrium_mgr").addHandler(logging.NullHandler())
        self._takeover: Optional[float] = None
        #: Moment of `clock.now` at which the next round, or another mgr's start, is due.
        self.next_round = self.clock.now
        simulation.config.set_module_option("balancer", "active", "false")
        self._start_mgr()

    # -- life cycle of a mgr ------------------------------------------------------------------

    def _start_mgr(self) -> None:
        self.jobs = InlineJobs()
        self.mgr = self._make_mgr()
        self.mgr.shares_readings = self._frozen
        module_class: Any = self._load_module()
        self.handlers: Dict[str, Handler] = module_class.handlers()
        self.simulation.config.declare(MODULE_NAME, list(module_class.MODULE_OPTIONS))
        extra: Dict[str, InlineJobs] = {}
        if not self._own_job_thread:
            extra["jobs"] = self.jobs
        #: None while no mgr is active.
        self.module: Any = None
        self.simulation.mgr_alive = True
        with self._mgr_may_die():
            self.module = module_class(MODULE_NAME, None, self.mgr, clock=self.clock, **extra)
            self.mgr.module = self.module
        if self.module is not None:
            # a mgr starts serve() at once after it has made the module
            self.run_round()
            self.run_pending()

    def _make_mgr(self) -> Mgr:
        return Mgr(self.simulation, MODULE_NAME)

    def failover(self) -> None:
        """Stops the mgr in order; another one takes over with what the monitor has stored."""
        self.mgr.commit()
        if self.module is not None:
            self.module.shutdown()
        self.jobs.stop()
        self._take_over()

    def _take_over(self) -> None:
        """Makes another mgr active. The monitors block the last one's address: an epoch, at which
        clean PGs do not report."""
        self.simulation.apply_change(MapChange(force_epoch=True))
        self.simulation.reports.forget()
        self._start_mgr()

    def kill_mgr(self, takeover: Optional[float] = None) -> None:
        """Kills the mgr process; the module is not shut down.

        Another mgr begins after `takeover` virtual seconds (random if None) with what the
        monitor has stored.
        """
        self.mgr.process.kill()
        self._schedule_takeover(takeover)

    def kill_mgr_at(self, call: str, after: bool = False, count: int = 1,
                    takeover: Optional[float] = None) -> None:
        """Makes the mgr die at the `count`-th API call from now on, before or after its effect.

        `call` is one of the values of mgr_process.CALLS, such as `send_command`.
        """
        self.mgr.process.crash_point = CrashPoint(call, after, count)
        self._takeover = takeover

    def interrupt_at(self, call: str, after: bool, count: int,
                     action: Callable[[], None]) -> None:
        """Runs `action` inside the `count`-th API call from now on, before or after its effect."""
        self.mgr.process.interruptions.append(Interruption(call, after, count, action))

    @contextmanager
    def _mgr_may_die(self) -> Iterator[None]:
        """Encloses all code of the module: MgrDied ends it, and a takeover is scheduled."""
        try:
            yield
        except MgrDied:
            pass
        if self.mgr.process.is_dead and self.simulation.mgr_alive:
            self._schedule_takeover(self._takeover)

    def _schedule_takeover(self, takeover: Optional[float]) -> None:
        """Drops the module of a dead mgr; the next round starts another mgr."""
        if takeover is None:
            takeover = self.simulation.rng.uniform(*_TAKEOVER_SECONDS)
        self._takeover = None
        if self._own_job_thread and self.module is not None:
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

    # -- commands -----------------------------------------------------------------------------

    def call_handler(self, handler: Handler, arguments: Dict[str, Any]) -> Answer:
        """Calls a command handler of the module; ETIMEDOUT if the mgr dies in it.

        An exception in the handler becomes EINVAL with the traceback, as in a real mgr.
        """
        answer: Any = (-errno.ETIMEDOUT, "", "the mgr has died")
        try:
            with self._mgr_may_die():
                answer = handler.call(self.module, arguments)
        except Exception:
            return -errno.EINVAL, "", traceback.format_exc().rstrip("\n")
        if not isinstance(answer, tuple) or len(answer) != 3:
            return -errno.EINVAL, "", f"the handler of '{handler.prefix}' gave no 3-tuple"
        rc, out, err = answer
        return int(rc), str(out), str(err)

    # -- time ---------------------------------------------------------------------------------

    def run_pending(self) -> None:
        """Runs the jobs, notifications and requested rounds that are due at this moment."""
        for _ in range(_MAX_ROUNDS_AT_ONCE):
            with self._mgr_may_die():
                self.mgr.notify_config()
                self.jobs.run_pending()
            if self.module is None or not self.module.wakeup.is_set():
                break
            self.run_round()

    def run_round(self) -> None:
        """Runs one round of the module's serve loop now; starts a new mgr if there is none."""
        if self.module is None:
            if not self.simulation.mgr_alive:
                self._take_over()
            return
        self.module.wakeup.clear()
        with self._mgr_may_die():
            delay = float(self.module.step())
            self.mgr.notify_config()
            self.mgr.commit()
            self.next_round = self.clock.now + max(1.0, delay)
        self._notify_observers()

    def _notify_observers(self) -> None:
        for observer in self.observers:
            observer(self)

    def _advance(self, seconds: float) -> None:
        """Advances virtual time without a round; observers run every minute while data moves."""
        end = self.clock.now + max(0.0, seconds)
        while self.clock.now + _OBSERVATION_SECONDS < end and not self.simulation.idle():
            self.simulation.advance(_OBSERVATION_SECONDS)
            self._notify_observers()
        self.simulation.advance(max(0.0, end - self.clock.now))

    def run_until(self, moment: float) -> None:
        """Advances virtual time (`clock.now`) to a moment, with the module's rounds in it."""
        while True:
            self.run_pending()
            self._advance(min(self.next_round, moment) - self.clock.now)
            if self.next_round > moment:
                break
            if self.clock.now >= self.next_round:
                self._run_due_round()
        self.run_pending()

    def run_for(self, seconds: float) -> None:
        """Advances virtual time by some seconds."""
        self.run_until(self.clock.now + seconds)

    def run_next_round(self) -> None:
        """Advances virtual time up to and through the module's next round."""
        self.run_pending()
        self._advance(self.next_round - self.clock.now)
        self._run_due_round()
        self.run_pending()

    def _run_due_round(self) -> None:
        with self._mgr_may_die():
            self.jobs.run_pending()
        self.run_round()

    def busy(self) -> bool:
        """Returns True if data moves, an epoch or a job is pending, or no mgr is active."""
        return bool(self.jobs.pending) or self.module is None or not self.simulation.idle()
