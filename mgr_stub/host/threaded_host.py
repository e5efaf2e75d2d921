"""A ModuleHost in which the module's threads run as in a mgr: its serve thread and its jobs.

Where a module's serve thread waits between its rounds, in virtual time.
"""
from __future__ import annotations

import sys
import threading
import time
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from ..clock import VirtualClock
from ..mgr.api import CommandResult
from ..mgr.mgr import Mgr
from ..mgr.mgr_process import MgrDied
from ..mgr.osd_map_api import OSDMap
from ..simulation.simulation import Simulation
from .module_host import MODULE_NAME, ModuleHost, load_equilibrium


#: Rounds at one virtual moment that are not taken for an endless loop; one more stops the thread.
MAX_AT_ONCE = 20

#: Virtual seconds that it is stopped at the most.
_HELD_SECONDS = 3600.0

#: Real seconds after which the threads of a module count as stuck.
_IDLE_TIMEOUT_SECONDS = 30.0


class ServeWait:
    """Replaces `wait` of the serve thread's event.

    The thread sleeps until the event is set, by the module or by `release`: the host decides when
    virtual time passes. A thread that makes round after round while no time passes is stopped until
    time passes; `max_at_once` counts those rounds.
    """

    def __init__(self, wakeup: threading.Event, clock: VirtualClock,
                 condition: threading.Condition, tracer: Callable[[], Any]) -> None:
        self._wakeup = wakeup
        self._clock = clock
        self._condition = condition
        self._tracer = tracer
        self._moment = -1.0
        self._at_once = 0
        self._waits = False
        self._held = False
        self._dead = False
        self.ended = False
        self.rounds = 0
        self.max_at_once = 0
        #: Moment of the virtual clock at which the next round is due.
        self.due = clock.now

    def __call__(self, timeout: Optional[float] = None) -> bool:
        """Waits in the serve thread. Raises MgrDied if its mgr is dead."""
        sys.settrace(None)
        with self._condition:
            self._count()
            self.due = float("inf") if timeout is None else self._clock.now + timeout
            if self._at_once > MAX_AT_ONCE:
                self._hold()
                self.due = self._clock.now
            self._waits = self.due > self._clock.now
            self._condition.notify_all()
            waits = self._waits
        if waits and not self._dead:
            threading.Event.wait(self._wakeup)
        with self._condition:
            self._waits = False
            if self._dead:
                raise MgrDied("serve")
        sys.settrace(self._tracer())
        return self._wakeup.is_set()

    def _count(self) -> None:
        self.rounds += 1
        if self._clock.now != self._moment:
            self._moment = self._clock.now
            self._at_once = 0
        self._at_once += 1
        self.max_at_once = max(self.max_at_once, self._at_once)

    def _hold(self) -> None:
        self._held = True
        self.due = self._clock.now + _HELD_SECONDS
        self._condition.notify_all()
        while self._held and not self._dead and self._clock.now == self._moment:
            self._condition.wait()
        self._held = False

    # -- for the host ---------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Returns True if the thread does nothing until time passes; the caller has the lock of the
        condition.
        """
        if self.ended or self._held:
            return True
        return self._waits and not self._wakeup.is_set()

    def release(self) -> None:
        """Starts the next round."""
        self.allow_end()
        self._wakeup.set()

    def allow_end(self) -> None:
        """Lets a stopped thread continue, because the module shuts down."""
        with self._condition:
            self._held = False
            self._condition.notify_all()

    def kill(self) -> None:
        """Ends the thread at its wait, because the mgr is dead."""
        self._dead = True
        self.release()

    def thread_ended(self) -> None:
        """Notes that the serve thread, which calls this, ends."""
        with self._condition:
            self.ended = True
            self._condition.notify_all()


def await_idle(condition: threading.Condition, is_idle: Callable[[], bool]) -> None:
    """Waits until all threads wait; RuntimeError if that takes too long."""
    with condition:
        if not condition.wait_for(is_idle, _IDLE_TIMEOUT_SECONDS):
            raise RuntimeError("the module's threads do not become idle within "
                               f"{_IDLE_TIMEOUT_SECONDS:.0f} s")


#: Real seconds within which the serve thread has to end after `shutdown`.
_SHUTDOWN_SECONDS = 30.0


class ObservedMgr(Mgr):
    """Reports the module's calls before they take the mgr's lock and after they released it."""

    #: Called with the name of the call and True if the call has ended.
    listener: Optional[Callable[[str, bool], None]] = None

    @contextmanager
    def _reported(self, name: str) -> Iterator[None]:
        if self.listener is not None:
            self.listener(name, False)
        yield
        if self.listener is not None:
            self.listener(name, True)

    def get(self, name: str) -> Any:
        with self._reported("get"):
            return super().get(name)

    def get_osdmap(self) -> OSDMap:
        with self._reported("get_osdmap"):
            return super().get_osdmap()

    def set_store(self, key: str, value: Optional[str]) -> None:
        with self._reported("set_store"):
            super().set_store(key, value)

    def send_command(self, result: CommandResult, svc_type: str, svc_id: str,
                     command: str) -> None:
        with self._reported("send_command"):
            super().send_command(result, svc_type, svc_id, command)


class _JobCount:
    """Jobs of one mgr: those submitted and not ended, and those of them that a test holds or that
    wait by themselves."""

    def __init__(self) -> None:
        self.unfinished = 0
        self.held = 0
        self.waits_until: List[float] = []   # moments of the virtual clock
        self.is_over = False                 # the module shuts down

    def all_wait(self, now: float) -> bool:
        """Returns True if no job runs until somebody releases one or time passes. Jobs run one at a
        time, so one that waits stops those behind it.
        """
        waits = not self.is_over and any(moment > now for moment in self.waits_until)
        return not self.unfinished or self.held > 0 or waits


class ThreadedHost(ModuleHost):
    """Runs the module's own `serve` in a thread; its jobs have the module's thread.

    Virtual time passes only while both wait, or while the module waits for the monitor.
    Exceptions of these threads are collected in `failures`.
    """

    def __init__(self, simulation: Simulation, seed: int = 0, own_job_thread: bool = True,
                 load_module: Callable[[], type] = load_equilibrium,
                 frozen: bool = True) -> None:
        self._condition = threading.Condition()
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

    # -- life cycle of a mgr --------------------------------------------------------------------

    def _make_mgr(self) -> Mgr:
        return ObservedMgr(self.simulation, MODULE_NAME)

    def _start_threads(self) -> None:
        module = self.module
        wait = ServeWait(module.wakeup, self.clock, self._condition, lambda: self.tracer)
        module.wakeup.wait = wait
        submit = module.jobs.submit
        module.jobs.submit = lambda name, job, first=False: submit(
            name, self._counted(name, job), first)
        module.jobs.wait = self._job_wait(self._job_count, self.mgr)
        module.jobs.stop = self._job_stop(self._job_count, module.jobs.stop)
        self._serve_wait = wait
        self._waits.append(wait)
        self._serve_thread = threading.Thread(target=self._serve, args=(module, wait),
                                              name="mgr-serve", daemon=True)
        self._serve_thread.start()

    def _serve(self, module: Any, wait: ServeWait) -> None:
        """Runs the serve thread."""
        try:
            module.serve()
        except MgrDied:
            pass
        except BaseException:
            self.failures.append(f"serve: {traceback.format_exc()}")
        finally:
            sys.settrace(None)
            wait.thread_ended()

    def _counted(self, name: str, job: Callable[[], None]) -> Callable[[], None]:
        """Returns the job, counted as unfinished until it ends."""
        count = self._job_count
        with self._condition:
            count.unfinished += 1

        def run() -> None:
            try:
                job()
            except MgrDied:
                pass
            except BaseException:
                self.failures.append(f"job {name}: {traceback.format_exc()}")
            finally:
                with self._condition:
                    count.unfinished -= 1
                    self._condition.notify_all()
        return run

    def _job_wait(self, count: _JobCount, mgr: Mgr) -> Callable[[float], bool]:
        """Replaces `wait` of the module's jobs: it ends when virtual time has passed."""
        def wait(seconds: float) -> bool:
            until = self.clock.now + seconds

            def is_over() -> bool:
                return count.is_over or mgr.process.is_dead or self.clock.now >= until
            with self._condition:
                count.waits_until.append(until)
                self._condition.notify_all()
                self._condition.wait_for(is_over)
                count.waits_until.remove(until)
            if mgr.process.is_dead:
                raise MgrDied("wait")
            return not count.is_over
        return wait

    def _job_stop(self, count: _JobCount, stop: Callable[[], None]) -> Callable[[], None]:
        """Replaces `stop` of the module's jobs, which ends their waits."""
        def stop_all() -> None:
            with self._condition:
                count.is_over = True
                self._condition.notify_all()
            stop()
        return stop_all

    @contextmanager
    def holding_job(self) -> Iterator[None]:
        """Marks a job that waits for the test: the host does not wait for it inside."""
        count = self._job_count
        with self._condition:
            count.held += 1
            self._condition.notify_all()
        yield
        with self._condition:
            count.held -= 1

    def failover(self) -> None:
        self.mgr.commit()
        self.close()
        self._take_over()

    def close(self) -> None:
        """Shuts the module down as a mgr does; a serve thread that does not end is a failure."""
        if self.module is None or self._serve_wait is None or self._serve_thread is None:
            return
        self.shut_down()
        self._serve_thread.join(_SHUTDOWN_SECONDS)
        if self._serve_thread.is_alive():
            self.failures.append("the serve thread does not end")
        self._serve_wait = self._serve_thread = None
        self._job_count = _JobCount()   # its jobs that have not begun never end

    def shut_down(self) -> None:
        """Calls the module's `shutdown`; from any thread but those of the module."""
        wait = self._serve_wait
        started = time.monotonic()
        self.module.shutdown()
        if wait is not None:
            wait.allow_end()
            with self._condition:
                self._condition.wait_for(lambda: wait.ended, _SHUTDOWN_SECONDS)
        self.shutdown_seconds = max(self.shutdown_seconds, time.monotonic() - started)

    @contextmanager
    def _mgr_may_die(self) -> Iterator[None]:
        try:
            yield
        except MgrDied:
            pass

    def _schedule_takeover(self, takeover: Optional[float]) -> None:
        if self._serve_wait is not None:
            self._serve_wait.kill()
        self._serve_wait = self._serve_thread = None
        super()._schedule_takeover(takeover)
        self._job_count = _JobCount()

    def _detect_death(self) -> None:
        if self.mgr.process.is_dead and self.simulation.mgr_alive:
            self._schedule_takeover(self._takeover)

    # -- time -----------------------------------------------------------------------------------

    @property
    def next_round(self) -> float:
        """Returns the moment at which the next round, or another mgr's start, is due."""
        if self._serve_wait is None:
            return self._next_round
        return float("inf") if self._serve_wait.ended else self._serve_wait.due

    @next_round.setter
    def next_round(self, moment: float) -> None:
        self._next_round = moment

    def run_pending(self) -> None:
        """Waits until all threads of the module wait."""
        while True:
            self._detect_death()
            if self._serve_wait is None:
                return
            self.mgr.notify_config()
            await_idle(self._condition, self._is_idle)
            if not (self.mgr.config_changed or self.mgr.process.is_dead):
                break
        self.mgr.commit()

    def _is_idle(self) -> bool:
        wait = self._serve_wait
        count = self._job_count
        return (wait is None or wait.is_idle) and count.all_wait(self.clock.now)

    def run_round(self) -> None:
        if self.module is None:
            if not self.simulation.mgr_alive:
                self._take_over()
            return
        if self._serve_wait is None:
            self._start_threads()
        else:
            self._serve_wait.release()
        self.run_pending()
        self._notify_observers()

    def _run_due_round(self) -> None:
        self.run_round()

    def _advance(self, seconds: float) -> None:
        with self.mgr.lock:
            super()._advance(seconds)
        with self._condition:   # a stopped thread, or a job that waits, continues
            self._condition.notify_all()

    def busy(self) -> bool:
        return self._job_count.unfinished > 0 or super().busy()

    # -- counters for tests ---------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """Rounds of all mgrs so far."""
        return sum(wait.rounds for wait in self._waits)

    @property
    def max_rounds_at_once(self) -> int:
        """Returns the most rounds that followed one another without time passing."""
        return max((wait.max_at_once for wait in self._waits), default=0)
