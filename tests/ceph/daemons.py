"""The processes of a test cluster: started as children, ended by pid, never outliving pytest."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, TypeVar

from .release import Release

T = TypeVar("T")


class ClusterError(Exception):
    """The harness could not do something with the cluster; the text says what and why."""


class Answer(NamedTuple):
    """What a command gave: `rc` 0 or a negative errno, both outputs, seconds until the answer."""

    rc: int
    out: str
    err: str
    seconds: float

    def json(self) -> Any:
        """The output parsed as JSON."""
        return json.loads(self.out)


def wait_for(what: str, probe: Callable[[], T], seconds: float, pause: float = 0.5) -> T:
    """Ask `probe` until it gives something true, which is handed back; ClusterError if never."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {seconds:.0f} s (last seen: {found!r})")
        time.sleep(pause)


class Processes:
    """Children of a cluster, in the order they were started; `end` leaves none behind."""

    def __init__(self, release: Release, work: Path) -> None:
        self.release = release
        self.work = work
        self.running: Dict[str, subprocess.Popen[bytes]] = {}

    def argv(self, argv: Sequence[str]) -> List[str]:
        """argv of a program of the release; it dies with this process, however that ends."""
        return ["setpriv", "--pdeathsig", "KILL", *self.release.command(argv, self.work)]

    def environment(self) -> Dict[str, str]:
        """The caller's environment without a Python of its own (a venv, a pyenv)."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CEPH"))}
        kept["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
        kept["PYTHONDONTWRITEBYTECODE"] = "1"  # the module may be a link into a checkout
        return kept

    def run(self, argv: Sequence[str], seconds: float = 60.0) -> Answer:
        """Run a program to its end; never raises for its exit code. ClusterError on the limit."""
        started = time.monotonic()
        try:
            done = subprocess.run(
                self.argv(argv), env=self.environment(), stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace",
                timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{' '.join(argv)}: no end after {seconds:.0f} s") from None
        return Answer(-done.returncode, done.stdout, done.stderr, time.monotonic() - started)

    def check(self, argv: Sequence[str], seconds: float = 60.0) -> Answer:
        """Like run, and ClusterError when the program fails."""
        answer = self.run(argv, seconds)
        if answer.rc:
            raise ClusterError(f"{' '.join(argv)}: exit {-answer.rc}: {answer.err[-800:].strip()}")
        return answer

    def start(self, name: str, argv: Sequence[str]) -> None:
        """Start a daemon in the foreground of a session of its own, output to NAME.out."""
        with open(self.work / f"{name}.out", "ab") as out:
            self.running[name] = subprocess.Popen(
                self.argv(argv), env=self.environment(), stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True)

    def alive(self, name: str) -> bool:
        """Whether that child still runs."""
        return name in self.running and self.running[name].poll() is None

    def has_ended(self, name: str) -> bool:
        """Whether that child has ended, or was never started."""
        return not self.alive(name)

    def end(self, name: str, seconds: float = 10.0, hard: bool = False) -> None:
        """End one child: SIGTERM (or SIGKILL at once), SIGKILL after the limit."""
        process = self.running.pop(name, None)
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end_all(self) -> None:
        """End every child at once; the files of a test cluster need no orderly shutdown."""
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
        for process in self.running.values():
            process.wait()
        self.running.clear()


class Agent:
    """A connection to the cluster kept open: a command costs milliseconds, not a `ceph` start."""

    def __init__(self, processes: Processes, conf: Path) -> None:
        self.processes = processes
        self.argv = ["python3", str(processes.work / "agent.py"), str(conf)]
        self.child: Optional[subprocess.Popen[bytes]] = None
        self.rest = b""

    def ask(self, target: str, command: Dict[str, Any], data: str = "",
            seconds: float = 60.0) -> Answer:
        """Send one command to "mon" or "mgr". After the limit the connection is made again."""
        child = self._child()
        assert child.stdin is not None
        child.stdin.write((json.dumps([target, command, data]) + "\n").encode())
        child.stdin.flush()
        line = self._line(child, seconds)
        if line is None:
            self.close()
            raise ClusterError(f"{command.get('prefix')}: no answer within {seconds:.0f} s")
        return Answer(**json.loads(line))

    def close(self) -> None:
        """End the connection."""
        child, self.child, self.rest = self.child, None, b""
        if child is not None:
            child.kill()
            child.wait()

    def _child(self) -> subprocess.Popen[bytes]:
        if self.child is None or self.child.poll() is not None:
            with open(self.processes.work / "agent.out", "ab") as errors:
                self.child = subprocess.Popen(
                    self.processes.argv(self.argv), env=self.processes.environment(),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    start_new_session=True, bufsize=0)
            self.rest = b""
        return self.child

    def _line(self, child: subprocess.Popen[bytes], seconds: float) -> Optional[bytes]:
        assert child.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
                return None
            got = os.read(child.stdout.fileno(), 1 << 20)
            if not got:
                return None
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        return line
