"""What README and handbook show of the program, and what the program prints for it today.

A comment before a block names the command line that the block shows, run on the simulated cluster
of the demo; the lines of a whole page are run one after the other in one session:

    <!-- show: equilibrium status -->       the block shows the command and all of its output
    <!-- show 12: equilibrium show p -->    ... and the first 12 lines of its output
    <!-- run: sim run 20m -->               run, not shown; there is no block
    <!-- new cluster -->                    the next lines run on a fresh cluster
    <!-- commands -->, <!-- options -->     all that follows on the page is made of the code's own
                                            help, or its table of options
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

from mgr_stub.console.session import Session

from .generated import commands, options

README = Path(__file__).resolve().parents[2] / "README.md"
HANDBOOK = README.parent / "equilibrium_mgr" / "doc"
PAGES = (README, *sorted(HANDBOOK.glob("*.md")))
_PART = re.compile(
    r"<!-- (?:(?P<list>commands|options) -->\n.*\Z"
    r"|(?:(?P<new>new cluster)|run: (?P<run>[^\n]*)|show ?(?P<lines>\d+)?: (?P<show>[^\n]*))"
    r" -->\n(?P<block>```\n.*?^```\n)?)", re.MULTILINE | re.DOTALL)
RELEASE = 18


class BlockError(Exception):
    """A command line on a page fails, or stands where it cannot."""


def rendered(text: str) -> str:
    """The page with each block as the program prints it now. Raises BlockError."""
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
    if part["list"]:
        made = commands if part["list"] == "commands" else options
        return comment + "\n" + "\n".join(made(session))
    line = part["run"] or part["show"]
    if line is None:
        return comment + (part["block"] or "")
    rc, out, err = session.command(line)
    if rc:
        raise BlockError(f"'{line}' fails: {err}")
    if part["run"]:
        return comment
    lines = [text.rstrip() for text in (out or err).rstrip("\n").splitlines()]
    limit = int(part["lines"] or len(lines))
    if len(lines) > limit:
        lines[limit:] = ["..."]
    return comment + "\n".join(["```", f"# ceph {line}", *lines, "```"]) + "\n"
