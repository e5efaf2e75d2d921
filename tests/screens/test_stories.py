"""What is answered while things happen is as recorded; `--rewrite-screens` records it again."""
from __future__ import annotations

from typing import List

import pytest

from mgr_stub.console.session import Session
from tests.support.remembered_plans import plans_are_made_once  # noqa: F401

from .recorded import GOLDEN, plain_text
from .stories import STORIES

_FOLDER = GOLDEN / "stories"
_BEGIN = ("config set mgr mgr/equilibrium/start_delay 0", "sim run 1s", "equilibrium eval",
          "sim run 1s")


def played(name: str) -> str:
    """The lines, and below each what equilibrium answers, and `health` and `config`."""
    session = Session.from_state(release=18)
    told: List[str] = []
    for line in (*_BEGIN, *STORIES[name]):
        rc, out, err = session.command(line)
        told.append(f"$ {line}")
        if not line.startswith(("sim ", "osd ")):
            told.append(plain_text(out))
        if rc:
            told.append(f"rc {rc}: {err}")
    session.close()
    return "\n".join([text.rstrip() for text in told]) + "\n"


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_as_recorded(name: str, request: pytest.FixtureRequest) -> None:
    told, file = played(name), _FOLDER / f"{name}.txt"
    if request.config.option.rewrite_screens:
        _FOLDER.mkdir(exist_ok=True)
        file.write_text(told)
    assert told == file.read_text()


def test_each_record_is_of_a_story() -> None:
    assert {file.stem for file in _FOLDER.glob("*.txt")} == set(STORIES)
