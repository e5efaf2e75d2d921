"""`--console`: lines of stdin on one session, at a terminal or not, and what the tab key finds."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
from typing import Any, List, Tuple

import pytest

from mgr_stub.__main__ import _print_answer
from mgr_stub.console.prompt import Prompt

from .test_session import ROOT


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
    lines = err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Error ENOENT"] + 5 * ["Error EINVAL"]
    assert "Traceback" not in err


def test_help(typed: Any) -> None:
    out = typed("help\nhelp equilibrium echo\nhelp sim")[1]
    for text in ("\nequilibrium fail ", "\nosd tree\n", "sim help  ", "\nequilibrium echo: ",
                 "\n    --format(", "\nsim osd out|in|down|up N..."):
        assert text in out


def test_interrupted_in_a_command(session: Any, typed: Any,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(session, "command", interrupt)
    code, out, err = typed("sim run 2h\nequilibrium status\n")
    assert (code, err) == (4, "Error EINTR: interrupted in a command: begin anew\n")


@pytest.mark.parametrize("before, text, wanted", [
    ("", "eq", ["equilibrium"]), ("", "e", ["equilibrium", "exit"]),
    ("ceph ", "equ", ["equilibrium"]), ("help ", "equ", ["equilibrium"]),
    ("equilibrium ", "ech", ["echo"]), ("equilibrium echo ", "--f", ["--format"]),
    ("equilibrium echo a ", "x", []), ("sim ", "ru", ["run"]), ("sim osd ", "re", ["reweight"]),
    ("sim clock ", "", ["jump"]), ("osd ", "set-n", ["set-nearfull-ratio"]), ("nonsense ", "", [])])
def test_completion(session: Any, before: str, text: str, wanted: List[str]) -> None:
    assert Prompt(session, _print_answer).candidates(before, text) == wanted


def test_without_a_terminal() -> None:
    """The real module, after the lines of -c."""
    result = subprocess.run(
        [sys.executable, "-m", "mgr_stub", "-c", "equilibrium optimize p", "--console"], cwd=ROOT,
        input="equilibrium show p\n", text=True, capture_output=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("p: planning") and "\nceph osd pg-upmap-items" in result.stdout


def test_at_a_terminal() -> None:
    """With a prompt; the tab key completes, the arrow brings lines back, ^C drops one, ^D ends."""
    ours, its = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "mgr_stub", "--console"], cwd=ROOT, stdin=its,
                             stdout=its, stderr=its,
                             # a shell has its background jobs ignore it
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                             env={**os.environ, "TERM": "xterm", "INPUTRC": "/dev/null"})
    os.close(its)
    seen = b""

    def until(text: bytes) -> None:
        nonlocal seen
        while text not in seen:
            assert select.select([ours], [], [], 90)[0], seen
            seen += os.read(ours, 4096)
        seen = seen.partition(text)[2]
    try:
        for keys, shown in ((b"equilibrium sta\t\n", b"automatic:"),
                            (b"nonsense\n", b"Error EINVAL"),
                            (b"\x1b[A\x1b[A\n", b"automatic:")):
            until(b"equilibrium> ")
            os.write(ours, keys)
            until(shown)
        until(b"equilibrium> ")
        os.write(ours, b"half a li")
        until(b"half a li")
        for _ in range(90):   # one that comes while readline shows a character waits for the next
            child.send_signal(signal.SIGINT)
            if select.select([ours], [], [], 1.0)[0]:
                break
        until(b"^C")
        until(b"equilibrium> ")
        os.write(ours, b"\x04")
        assert child.wait(90) == 0
    finally:
        child.kill()
        os.close(ours)
