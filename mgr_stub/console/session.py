"""Command lines in, answers out: the operator's side of a ModuleHost.

A session whose module runs in its own threads; commands have a third one, as in a mgr.
"""
from __future__ import annotations

import errno
import shlex
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, List, Optional, Type

from ..clock import VirtualClock
from ..cluster.cluster import Cluster
from ..demo import DEMO_STATE
from ..errors import Answer, StubError, invalid
from ..host.module_host import ModuleHost, load_equilibrium
from ..host.threaded_host import ThreadedHost
from ..mgr.builtin_balancer import try_command
from ..mgr.handlers import find_handler, parse_words
from ..mgr.install import install, release_of
from ..mgr.mgr import Mgr
from ..monitor.mon_store import LoggedCommand
from ..simulation.simulation import Simulation
from ..state.cluster_builder import build_cluster
from ..state.state_file import read_state
from . import mon_commands, sim_commands


class Session:
    """Runs command lines of operators against one host; the arguments are those of ModuleHost.

    `load_module` is replaced by tests of the stub itself.
    """

    host_class: Type[ModuleHost] = ModuleHost

    def __init__(self, simulation: Simulation, seed: int = 0, own_job_thread: bool = False,
                 load_module: Callable[[], type] = load_equilibrium,
                 frozen: bool = True) -> None:
        #: Called with every command line that ran inside a module's call, and its return code.
        self.listeners: List[Callable[[str, int], None]] = []
        self.host = self.host_class(simulation, seed, own_job_thread, load_module, frozen)

    @classmethod
    def from_state(cls, path: Optional[str] = None, release: Optional[int] = 16, seed: int = 0,
                   own_job_thread: bool = False,
                   load_module: Callable[[], type] = load_equilibrium,
                   frozen: bool = True) -> Session:
        """Returns a session over a state file (None: the demo cluster); StubError if it is not
        valid.

        Without a release it plays that of the file.
        """
        name = path or DEMO_STATE
        state = read_state(name)
        release = release or release_of(state.get("versions") or {})
        cluster = build_cluster(state, release, name)
        if path:
            cluster.extras["origin"] = time.strftime(
                "from a state file of %Y-%m-%d %H:%M UTC", time.gmtime(cluster.clock()))
        simulation = Simulation(cluster)
        try:
            for option in state.get("config_dump", ()):
                simulation.config.set(option["section"], option["name"], option["value"])
        except (KeyError, TypeError, AttributeError) as error:
            raise invalid(f"{name}: config_dump does not make sense: {error!r}") from None
        install(release)
        return cls(simulation, seed, own_job_thread, load_module, frozen)

    def close(self) -> None:
        """Shuts the module down."""
        self.host.close()

    # -- what the host runs -------------------------------------------------------------------

    @property
    def simulation(self) -> Simulation:
        return self.host.simulation

    @property
    def cluster(self) -> Cluster:
        return self.host.cluster

    @property
    def clock(self) -> VirtualClock:
        return self.host.clock

    @property
    def mgr(self) -> Mgr:
        return self.host.mgr

    @property
    def module(self) -> Any:
        """Returns the module's object; None while no mgr is active."""
        return self.host.module

    @property
    def command_log(self) -> List[LoggedCommand]:
        """Returns all commands that the monitor has been sent, with their times, senders and
        results.
        """
        return self.host.simulation.monitor.log

    # -- commands -----------------------------------------------------------------------------

    def command(self, line: str) -> Answer:
        """Runs one command line (with or without `ceph` in front): return code, stdout, stderr."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            return -errno.EINVAL, "", f"'{line}' cannot be split into words: {error}"
        return self.command_words(words)

    def command_words(self, words: List[str]) -> Answer:
        """Does the same as `command`, for a line that is already split into words."""
        if words[:1] == ["ceph"]:
            words = words[1:]
        answer = self.dispatch(words)
        self.host.run_pending()
        return answer

    def dispatch(self, words: List[str]) -> Answer:
        """Answers a command at this moment: no plan in progress ends before it returns."""
        try:
            if words[:1] == ["sim"] or words == ["mgr", "fail"]:
                words = words[words[0] == "sim":]
                return sim_commands.run(self.host, words, self._run_interrupting)
            answer = try_command(self.mgr.balancer, words) or mon_commands.try_command(
                self.mgr, words)
            return answer or self._module_command(words)
        except StubError as error:
            return error.code, "", error.message

    def _run_interrupting(self, line: str) -> None:
        """Runs a command line in the middle of a module's call."""
        code = self.dispatch(shlex.split(line))[0]
        for listener in self.listeners:
            listener(line, code)

    def _module_command(self, words: List[str]) -> Answer:
        if words[-1:] == ["-h"]:
            begin = " ".join(words[:-1])
            return 0, "\n".join(f"{name}  {one.description}" for name, one in
                                self.host.handlers.items() if name.startswith(begin)), ""
        handler = find_handler(self.host.handlers, words)
        if handler is None:
            raise invalid(f"no valid command found: {' '.join(words) or 'the line is empty'}")
        if self.module is None:
            raise StubError(errno.EAGAIN, "no mgr is active")
        arguments = parse_words(handler, words[len(handler.prefix.split()):])
        code, out, err = self.host.call_handler(handler, arguments)
        return code, _as_sent(out), err


def _as_sent(out: str) -> str:
    """Returns a module's output without empty lines, like an mgr (seen on 16.2.15, 20.2.4)."""
    return "".join(f"{line}\n" for line in out.split("\n") if line)


#: Real seconds that a command may take.
_COMMAND_SECONDS = 30.0


class ThreadedSession(Session):
    """As a Session, over a ThreadedHost."""

    host: ThreadedHost
    host_class = ThreadedHost

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._commands = ThreadPoolExecutor(1, "mgr-commands")
        super().__init__(*arguments, **named)

    def close(self) -> None:
        super().close()
        self._commands.shutdown(wait=False)

    def post(self, line: str) -> Future[Answer]:
        """Makes the commands' thread run a line; the caller may be any thread of the module."""
        return self._commands.submit(self._locked_dispatch, line.split())

    def dispatch(self, words: List[str]) -> Answer:
        if words[:1] == ["sim"]:
            return super().dispatch(words)
        return self._commands.submit(self._locked_dispatch, words).result(_COMMAND_SECONDS)

    def _locked_dispatch(self, words: List[str]) -> Answer:
        if words[:1] == ["ceph"]:
            words = words[1:]
        if find_handler(self.host.handlers, words) is not None:
            answer = super().dispatch(words)
            self.mgr.notify_config()
            return answer
        with self.mgr.lock:
            return super().dispatch(words)
