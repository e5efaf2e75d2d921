"""`python3 -m mgr_stub`: the demo, command lines on a saved cluster state, or `gather` of one."""

from __future__ import annotations

import argparse
import os
import sys
from typing import List, Optional

from .console.demo_run import run_demo
from .console.prompt import Prompt
from .console.session import Session
from .errors import StubError, error_name
from .frozen import collect_less_often
from .gather import main as gather
from .mgr.install import SIMULATED_RELEASES


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m mgr_stub",
        description="Runs equilibrium on a simulated cluster. Without a command: the demo."
                    " 'gather FILE' writes the state of a real one ('gather --help').")
    parser.add_argument("--state", metavar="FILE",
                        help="cluster state (JSON, plain, xz or gz); default: the demo cluster")
    parser.add_argument("--release", type=int, choices=sorted(SIMULATED_RELEASES),
                        help="the Ceph release to play (default: that of the state, or 18)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (default: 0)")
    parser.add_argument("-c", metavar="LINE", dest="lines", action="append", default=[],
                        help="a command line, e.g. 'equilibrium eval' or 'sim run 2h'; repeatable")
    parser.add_argument("--console", action="store_true",
                        help="then read command lines from stdin, with history and completion")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="WORDS",
                        help="one command line as words")
    return parser


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command lines in order; the exit code is the errno of the first that fails."""
    if arguments is None:
        arguments = sys.argv[1:]
    if arguments[:1] == ["gather"]:
        return gather(arguments[1:])
    options = _parser().parse_args(arguments)
    collect_less_often()
    try:
        session = Session.from_state(options.state, release=options.release, seed=options.seed,
                                     frozen=False)
    except StubError as error:
        return _print_answer(error.code, "", error.message)
    try:
        # an inactive module observes the cluster only for a command
        session.command("equilibrium status")
        if not (options.lines or options.words or options.console):
            return run_demo(session)
        # a page is redirected into a file: nothing else may stand there
        has_page = any(_is_page(line.split()) for line in options.lines)
        # lines after a failing one run as well
        codes = [_print_answer(*session.command(line),
                               aside=has_page and not _is_page(line.split()))
                 for line in options.lines]
        if options.words:
            codes.append(_print_answer(*session.command_words(options.words), aside=has_page))
        if options.console:
            codes.append(Prompt(session, _print_answer).run())
        return next((code for code in codes if code), 0)
    finally:
        session.close()


def _is_page(words: List[str]) -> bool:
    """Returns True for the command that writes an HTML page."""
    return words[words[:1] == ["ceph"]:][:2] == ["equilibrium", "report"]


def _print_answer(rc: int, out: str, err: str, aside: bool = False) -> int:
    """Prints an answer like the `ceph` command, on stderr if `aside`; returns the exit code for
    it."""
    if out:
        stream = sys.stdout
        if aside:
            stream = sys.stderr
        if out.endswith("\n"):
            out = out[:-1]
        print(out, file=stream, flush=True)
    if rc:
        print(f"Error {error_name(rc)}: {err}", file=sys.stderr, flush=True)
    elif err:
        print(err, file=sys.stderr, flush=True)
    return abs(rc)


if __name__ == "__main__":
    try:
        status = main()
    except BrokenPipeError:
        # the reader closed the pipe; without this Python fails again when it flushes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
