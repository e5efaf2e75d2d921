"""A session in which the module's threads run as in a mgr: serve, jobs, and commands."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from ..mgr.api import CommandResult
from ..mgr.failure_points import MgrDied
from ..mgr.handlers import find_handler
from ..mgr.mgr import Mgr
from ..mgr.osd_map_api import OSDMap
from ..simulation.simulation import Simulation
from .serve_wait import ServeWait, await_quiet
from .session import MODULE_NAME, Answer, Session, load_equilibrium

#: Real seconds that a command may take.
_COMMAND_SECONDS = 30.0


class ToldMgr(Mgr):
    """Tells of the module's calls before they take the mgr's lock, and after they have left it."""

    #: Called with the name of the call and whether it is through.
    listener: Optional[Callable[[str, bool], None]] = None

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        if self.listener is not None:
            self.listener(name, False)
        yield
        if self.listener is not None:
            self.listener(name, True)

    def get(self, name: str) -> Any:
        with self._told("get"):
            return super().get(name)

    def get_osdmap(self) -> OSDMap:
        with self._told("get_osdmap"):
            return super().get_osdmap()

    def set_store(self, key: str, value: Optional[str]) -> None:
        with self._told("set_store"):
            super().set_store(key, value)

    def send_command(self, result: CommandResult, svc_type: str, svc_id: str,
                     command: str) -> None:
        with self._told("send_command"):
            super().send_command(result, svc_type, svc_id, command)


class _JobCount:
    """Jobs of one mgr: submitted and not through, and those of them that wait for the test."""

    def __init__(self) -> None:
        self.under_way = 0
        self.held = 0


class ServedSession(Session):
    """As a Session, but the module's own `serve` runs, in a thread of its own.

    Jobs have the module's thread, and commands a third one. Virtual time passes only while all
    three wait, or while the module waits for the monitor. What no thread may do is in `failures`.
    """

    def __init__(self, simulation: Simulation, seed: int = 0, threads: bool = True,
                 load_module: Callable[[], type] = load_equilibrium,
                 frozen: bool = True) -> None:
        self._condition = threading.Condition()
        self._commands = ThreadPoolExecutor(1, "mgr-commands")
        self._job_count = _JobCount()
        self._serve_wait: Optional[ServeWait] = None
        self._serve_thread: Optional[threading.Thread] = None
        self._waits: List[ServeWait] = []
        self._next_round = simulation.clock.now
        self.failures: List[str] = []
        #: Real seconds that threads took to end after `shutdown`, the longest.
        self.shutdown_seconds = 0.0
        #: Of `sys.settrace`, for the serve thread's rounds.
        self.tracer: Any = None
        super().__init__(simulation, seed, True, load_module, frozen)

    # -- the life of a mgr ----------------------------------------------------------------------

    def _make_mgr(self) -> Mgr:
        return ToldMgr(self.simulation, MODULE_NAME)

    def _begin_threads(self) -> None:
        module = self.module
        wait = ServeWait(module.wakeup, self.clock, self._condition, lambda: self.tracer)
        module.wakeup.wait = wait
        submit = module.jobs.submit
        module.jobs.submit = lambda name, job: submit(name, self._counted(name, job))
        self._serve_wait = wait
        self._waits.append(wait)

        def serve() -> None:
            try:
                module.serve()
            except MgrDied:
                pass
            except BaseException:
                self.failures.append(f"serve: {traceback.format_exc()}")
            finally:
                sys.settrace(None)
                wait.thread_ended()
        self._serve_thread = threading.Thread(target=serve, name="mgr-serve", daemon=True)
        self._serve_thread.start()

    def _counted(self, name: str, job: Callable[[], None]) -> Callable[[], None]:
        """The job, and an account of whether it is under way."""
        count = self._job_count
        with self._condition:
            count.under_way += 1

        def run() -> None:
            try:
                job()
            except MgrDied:
                pass
            except BaseException:
                self.failures.append(f"job {name}: {traceback.format_exc()}")
            finally:
                with self._condition:
                    count.under_way -= 1
                    self._condition.notify_all()
        return run

    @contextmanager
    def holding_job(self) -> Iterator[None]:
        """Entered by a job that waits for the test: nobody else waits for it meanwhile."""
        count = self._job_count
        with self._condition:
            count.held += 1
            self._condition.notify_all()
        yield
        with self._condition:
            count.held -= 1

    def failover(self) -> None:
        self.mgr.commit()
        self._end_module()
        self._start()

    def close(self) -> None:
        self._end_module()
        self._commands.shutdown(wait=False)

    def _end_module(self) -> None:
        """Shuts the module down as a mgr does, and sees that its threads end."""
        if self.module is None or self._serve_wait is None or self._serve_thread is None:
            return
        self.shut_down()
        self._serve_thread.join(_COMMAND_SECONDS)
        if self._serve_thread.is_alive():
            self.failures.append("the serve thread does not end")
        self._serve_wait = self._serve_thread = None

    def shut_down(self) -> None:
        """What a mgr calls as it ends; from any thread but those of the module."""
        wait, started = self._serve_wait, time.monotonic()
        self.module.shutdown()
        if wait is not None:
            wait.let_end()
            with self._condition:
                self._condition.wait_for(lambda: wait.ended, _COMMAND_SECONDS)
        self.shutdown_seconds = max(self.shutdown_seconds, time.monotonic() - started)

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        try:
            yield
        except MgrDied:
            pass

    def _bury(self, takeover: Optional[float]) -> None:
        if self._serve_wait is not None:
            self._serve_wait.end()
        self._serve_wait = self._serve_thread = None
        super()._bury(takeover)
        self._job_count = _JobCount()

    def _bury_the_dead(self) -> None:
        if self.mgr.life.dead and self.simulation.mgr_alive:
            self._bury(self._takeover)

    # -- commands -------------------------------------------------------------------------------

    def post(self, line: str) -> Future[Answer]:
        """Has the commands' thread run a line; the caller may be any thread of the module."""
        return self._commands.submit(self._locked_dispatch, line.split())

    def _dispatch(self, words: List[str]) -> Answer:
        if words[:1] == ["sim"]:
            return super()._dispatch(words)
        return self._commands.submit(self._locked_dispatch, words).result(_COMMAND_SECONDS)

    def _locked_dispatch(self, words: List[str]) -> Answer:
        if words[:1] == ["ceph"]:
            words = words[1:]
        if find_handler(self.handlers, words) is not None:
            answer = super()._dispatch(words)
            self.mgr.notify_config()
            return answer
        with self.mgr.lock:
            return super()._dispatch(words)

    # -- time -----------------------------------------------------------------------------------

    @property
    def next_round(self) -> float:
        """When the next round is due, or another mgr begins."""
        if self._serve_wait is None:
            return self._next_round
        return float("inf") if self._serve_wait.ended else self._serve_wait.due

    @next_round.setter
    def next_round(self, moment: float) -> None:
        self._next_round = moment

    def settle(self) -> None:
        """Waits until all threads of the module wait."""
        while True:
            self._bury_the_dead()
            if self._serve_wait is None:
                return
            self.mgr.notify_config()
            await_quiet(self._condition, self._is_quiet)
            if not (self.mgr.config_changed or self.mgr.life.dead):
                break
        self.mgr.commit()

    def _is_quiet(self) -> bool:
        wait = self._serve_wait
        count = self._job_count
        return (wait is None or wait.is_quiet) and count.under_way <= count.held

    def round(self) -> None:
        if self.module is None:
            if not self.simulation.mgr_alive:
                self._start()
            return
        if self._serve_wait is None:
            self._begin_threads()
        else:
            self._serve_wait.release()
        self.settle()
        self._look()

    def _due_round(self) -> None:
        self.round()

    def _pass(self, seconds: float) -> None:
        with self.mgr.lock:
            super()._pass(seconds)
        if self._serve_wait is not None:
            self._serve_wait.time_passed()

    def busy(self) -> bool:
        return self._job_count.under_way > 0 or super().busy()

    # -- what tests look at ---------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """Rounds of all mgrs so far."""
        return sum(wait.rounds for wait in self._waits)

    @property
    def most_rounds_at_once(self) -> int:
        """The most rounds that followed one another without time passing."""
        return max((wait.most_at_once for wait in self._waits), default=0)
