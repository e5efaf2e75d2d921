"""Screens are as recorded, fit in 80 columns of ASCII, and cover every command."""
from __future__ import annotations

import difflib
import importlib
import json
import re
from pathlib import Path
from typing import List

import pytest
from tests.support.remembered_plans import questions_are_answered_whole  # noqa: F401

from .recorded import (
    differences, plain_lines, record, recorded, recorded_names, session_in, text_of)
from .screens import NOT_SHOWN, QUESTIONS, SCREENS, STATES, TOO_WIDE, WRITES, Screen

_WIDTH = 80


def _screens(state: str) -> List[Screen]:
    asked = [*SCREENS, *QUESTIONS.get(state, ())]
    return asked + [*WRITES] if state == "off" else asked


@pytest.mark.parametrize("state", STATES)
def test_screens_of_a_state_are_as_recorded(state: str, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch,
                                            request: pytest.FixtureRequest) -> None:
    session = session_in(state, tmp_path, monkeypatch)
    try:
        answer = session.command("equilibrium status --format json")[1]
        assert json.loads(answer)["state"] == state.rpartition("-")[2]
        found = {screen.name: text_of(session, screen) for screen in _screens(state)}
    finally:
        session.close()
    if request.config.option.rewrite_screens:
        record(found, state)
    changed = differences(found, state)
    shown = ""
    for name in changed[:3]:
        before = recorded(state, name).split("\n")
        lines = difflib.unified_diff(
            before, found[name].split("\n"), f"recorded {state}/{name}", "now", "", "", 1, "")
        shown += "\n".join(["", *lines])
    assert not changed, f"{changed} differ; --rewrite-screens records them anew{shown}"
    assert recorded_names(state) == set(found)


@pytest.mark.parametrize("state", STATES)
def test_screens_are_at_most_80_columns_of_ascii(state: str) -> None:
    for screen in _screens(state):
        for line in plain_lines(recorded(state, screen.name)):
            assert line.isascii(), (screen.name, line)
            assert line == line.rstrip(), (screen.name, line)
            assert screen.name in TOO_WIDE or _is_one_line(line) or len(line) <= _WIDTH, (
                screen.name, line)


@pytest.mark.parametrize("state", STATES)
def test_no_command_is_broken(state: str) -> None:
    """Each can be pasted."""
    for screen in _screens(state):
        assert not re.search(r"'ceph\b[^'\n]*$", recorded(state, screen.name), re.MULTILINE)


def _is_one_line(line: str) -> bool:
    """Commands to be run by hand and sentences of errors are not broken."""
    return line.startswith(("ceph osd ", "rc -"))


def test_every_command_has_a_screen() -> None:
    handlers = importlib.import_module("equilibrium_mgr").Module.handlers()
    lines = "\n".join(["", *[f"{screen.line} " for screen in _screens("off")]])
    for prefix in handlers:
        name = prefix.partition(" ")[2]
        assert name in NOT_SHOWN or f"\n{name} " in lines, (
            f"'{name}' has no screen: add one to SCREENS in tests/screens/screens.py")
