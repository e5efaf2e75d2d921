"""`--console`: lines of stdin on one session, at a terminal or not, and what the tab key finds."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
from typing import Any, Tuple

import pytest

from mgr_stub.__main__ import _print_answer
from mgr_stub.console.prompt import Prompt
from tests.support.tables import rows

from .test_session import ROOT

PROGRAM = [sys.executable, "-m", "mgr_stub", "--console"]


@pytest.fixture
def typed(session: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """A function of lines: (exit code, stdout, stderr)."""
    def typed(text: str) -> Tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        code = Prompt(session, _print_answer).run()
        return (code, *capsys.readouterr())
    return typed


def test_lines_share_a_session(session: Any, typed: Any) -> None:
    code, out, err = typed("sim run 1m\nceph equilibrium echo a\n\n  \nsim run 30s\n")
    assert (code, out, err) == (0, '["a", 7, "plain"]\n', "")
    assert session.clock.elapsed() == 90


@pytest.mark.parametrize("last", ["exit", " quit ", "EOF"])
def test_the_end(typed: Any, last: str) -> None:
    code, out, _ = typed(f"equilibrium echo a\n{last}\nequilibrium echo b\n")
    assert (code, out) == (0, '["a", 7, "plain"]\n')


def test_wrong_lines_give_their_message_and_the_first_the_exit_code(typed: Any) -> None:
    code, out, err = typed(
        "equilibrium fail\nsim dance\nno 'such\nhelp me\n?\n!ls\nequilibrium echo b")
    assert code == 2 and out.endswith('["b", 7, "plain"]\n')
    assert re.findall(r"^\w+ \w+", err, re.M) == ["Error ENOENT"] + 5 * ["Error EINVAL"]
    assert err.count("\n") == 6 and "Traceback" not in err


@pytest.mark.parametrize("text", [
    "\nequilibrium fail ", "\nosd tree\n", "sim help  ", "\nequilibrium echo: ",
    "\n    --format(", "\nsim osd out|in|down|up N..."])
def test_help(typed: Any, text: str) -> None:
    assert text in typed("help\nhelp equilibrium echo\nhelp sim")[1]


def test_interrupted_in_a_command(session: Any, typed: Any,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(session, "command", interrupt)
    code, out, err = typed("sim run 2h\nequilibrium status\n")
    assert (code, err) == (4, "Error EINTR: interrupted in a command: begin anew\n")


@pytest.mark.parametrize("line, wanted", rows("""
|eq                      equilibrium
|e                       equilibrium exit
ceph |equ                equilibrium
help |equ                equilibrium
equilibrium |ech         echo
equilibrium echo |--f    --format
equilibrium echo a |x
sim |ru                  run
sim osd |re              reweight
sim clock |              jump
osd |set-n               set-nearfull-ratio
nonsense |
"""))
def test_completion(session: Any, line: str, wanted: str) -> None:
    """The text after | is completed."""
    before, _, text = line.partition("|")
    assert Prompt(session, _print_answer).candidates(before, text) == wanted.split()


def test_without_a_terminal() -> None:
    """The real module, after the lines of -c."""
    result = subprocess.run(
        [*PROGRAM, "-c", "equilibrium optimize p"], cwd=ROOT,
        input="equilibrium show p\n", text=True, capture_output=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("p: planning") and "\nceph osd pg-upmap-items" in result.stdout


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self) -> None:
        self.ours, its = pty.openpty()
        self.child = subprocess.Popen(
            PROGRAM, cwd=ROOT, stdin=its, stdout=its, stderr=its,
            # a shell has its background jobs ignore it
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={**os.environ, "TERM": "xterm", "INPUTRC": "/dev/null"})
        os.close(its)
        self.seen = b""

    def has_more(self, seconds: float) -> bool:
        return bool(select.select([self.ours], [], [], seconds)[0])

    def until(self, text: bytes) -> None:
        """Reads the output up to these words."""
        while text not in self.seen:
            assert self.has_more(90), self.seen
            self.seen += os.read(self.ours, 4096)
        self.seen = self.seen.partition(text)[2]

    def types(self, keys: bytes, shown: bytes) -> None:
        """Types at the prompt, and waits for an output."""
        self.until(b"equilibrium> ")
        os.write(self.ours, keys)
        self.until(shown)

    def interrupt(self) -> None:
        for _ in range(90):   # one that comes while readline shows a character waits for the next
            self.child.send_signal(signal.SIGINT)
            if self.has_more(1.0):
                return


def test_at_a_terminal() -> None:
    """With a prompt; the tab key completes, the arrow brings lines back, ^C drops one, ^D ends."""
    terminal = Terminal()
    try:
        terminal.types(b"equilibrium sta\t\n", b"automatic:")
        terminal.types(b"nonsense\n", b"Error EINVAL")
        terminal.types(b"\x1b[A\x1b[A\n", b"automatic:")
        terminal.types(b"half a li", b"half a li")
        terminal.interrupt()
        terminal.until(b"^C")
        terminal.until(b"equilibrium> ")
        os.write(terminal.ours, b"\x04")
        assert terminal.child.wait(90) == 0
    finally:
        terminal.child.kill()
        os.close(terminal.ours)
