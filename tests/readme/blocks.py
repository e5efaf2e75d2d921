"""Blocks of output in the README, and what the program prints for them today.

A comment before a block names the command line that the block shows, run on the simulated cluster
of the demo; the lines of the whole README are run one after the other in one session:

    <!-- show: equilibrium status -->       the block shows the command and all of its output
    <!-- show 12: equilibrium show p -->    ... and the first 12 lines of its output
    <!-- run: sim run 20m -->               run, not shown; there is no block
    <!-- new cluster -->                    the next lines run on a fresh cluster
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

from mgr_stub.console.session import Session

README = Path(__file__).resolve().parents[2] / "README.md"
_PART = re.compile(
    r"<!-- (?:(?P<new>new cluster)|run: (?P<run>[^\n]*)|show ?(?P<lines>\d+)?: (?P<show>[^\n]*))"
    r" -->\n(?P<block>```\n.*?^```\n)?", re.MULTILINE | re.DOTALL)
RELEASE = 18


class BlockError(Exception):
    """A command line in the README fails, or stands where it cannot."""


def rendered(text: str) -> str:
    """The README with each block as the program prints it now. Raises BlockError."""
    session: Optional[Session] = None
    parts = []
    end = 0
    try:
        for part in _PART.finditer(text):
            if session is None or part["new"]:
                session = _fresh(session)
            parts += [text[end:part.start()], _render(session, part)]
            end = part.end()
    finally:
        if session is not None:
            session.close()
    return "".join(parts) + text[end:]


def _fresh(session: Optional[Session]) -> Session:
    if session is not None:
        session.close()
    made = Session.from_state(None, release=RELEASE, frozen=False)
    made.command("equilibrium status")  # an inactive module looks at the cluster for a command only
    return made


def _render(session: Session, part: re.Match[str]) -> str:
    comment = part[0][:part[0].index("\n") + 1]
    line = part["run"] or part["show"]
    if line is None:
        return comment + (part["block"] or "")
    rc, out, err = session.command(line)
    if rc:
        raise BlockError(f"'{line}' in the README fails: {err}")
    if part["run"]:
        return comment
    lines = [text.rstrip() for text in (out or err).rstrip("\n").splitlines()]
    limit = int(part["lines"] or len(lines))
    if len(lines) > limit:
        lines[limit:] = ["..."]
    return comment + "\n".join(["```", f"# ceph {line}", *lines, "```"]) + "\n"
