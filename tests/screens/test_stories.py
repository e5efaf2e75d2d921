"""What is answered while things happen is as recorded; `--rewrite-screens` records it again.

A file of `golden/stories` is both the story and its record: each line of the story stands behind
`$`, and below it the answer of equilibrium, `health` or `config`. A new story is a file with such
lines alone, which is then recorded.
"""
from __future__ import annotations

from pathlib import Path
from typing import List

import pytest

from mgr_stub.console.session import Session
from tests.support.remembered_plans import (  # noqa: F401
    plans_are_made_once, questions_are_answered_whole)

from .recorded import GOLDEN, plain_text

_FILES = sorted((GOLDEN / "stories").glob("*.txt"))
_PROMPT = "$ "


def played(recorded: str) -> str:
    """Runs the lines of a story on the demo cluster, and returns it with their answers."""
    session = Session.from_state(release=18)
    told: List[str] = []
    for prompted in recorded.splitlines():
        if not prompted.startswith(_PROMPT):
            continue
        told.append(prompted)
        line = prompted[len(_PROMPT):]
        rc, out, err = session.command(line)
        if not line.startswith(("sim ", "osd ")):
            told.append(plain_text(out))
        if rc:
            told.append(f"rc {rc}: {err}")
    session.close()
    return "\n".join([text.rstrip() for text in told]) + "\n"


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_a_story_is_as_recorded(file: Path, request: pytest.FixtureRequest) -> None:
    told = played(file.read_text())
    if request.config.option.rewrite_screens:
        file.write_text(told)
    assert told == file.read_text()
