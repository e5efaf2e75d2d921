"""Screens are as recorded, fit in 80 columns of ASCII, and cover every command."""
from __future__ import annotations

import difflib
import importlib
import json
import re
from pathlib import Path
from typing import List

import pytest

from .recorded import (
    GOLDEN, differences, plain_lines, record, recorded_names, session_in, text_of)
from .screens import NOT_SHOWN, SCREENS, STATES, TOO_WIDE, WRITES, Screen

_WIDTH = 80


def _screens(state: str) -> List[Screen]:
    return [*SCREENS, *(WRITES if state == "off" else ())]


@pytest.mark.parametrize("state", STATES)
def test_screens_of_a_state_are_as_recorded(state: str, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch,
                                            request: pytest.FixtureRequest) -> None:
    session = session_in(state, tmp_path, monkeypatch)
    try:
        answer = session.command("equilibrium status --format json")[1]
        assert json.loads(answer)["state"] == state
        found = {screen.name: text_of(session, screen) for screen in _screens(state)}
    finally:
        session.close()
    if request.config.option.rewrite_screens:
        record(found, state)
    changed = differences(found, state)
    shown = ""
    for name in changed[:3]:
        file = GOLDEN / state / f"{name}.txt"
        shown += "\n".join(["", *difflib.unified_diff(
            file.read_text().split("\n") if file.is_file() else [], found[name].split("\n"),
            f"recorded {state}/{name}", "now", lineterm="", n=1)])
    assert not changed, f"{changed} differ; --rewrite-screens records them anew{shown}"
    assert recorded_names(state) == set(found)


@pytest.mark.parametrize("state", STATES)
def test_screens_are_at_most_80_columns_of_ascii(state: str) -> None:
    for screen in _screens(state):
        lines = plain_lines((GOLDEN / state / f"{screen.name}.txt").read_text())
        for line in lines:
            assert line.isascii(), (screen.name, line)
            assert line == line.rstrip(), (screen.name, line)
            assert screen.name in TOO_WIDE or _is_one_line(line) or len(line) <= _WIDTH, (
                screen.name, line)


@pytest.mark.parametrize("state", STATES)
def test_no_command_is_broken(state: str) -> None:
    """Each can be pasted."""
    for screen in _screens(state):
        text = (GOLDEN / state / f"{screen.name}.txt").read_text()
        assert not re.search(r"'ceph\b[^'\n]*$", text, re.MULTILINE), screen.name


def _is_one_line(line: str) -> bool:
    """Commands to be run by hand and sentences of errors are not broken."""
    return line.startswith(("ceph osd ", "rc -"))


def test_every_command_has_a_screen() -> None:
    handlers = importlib.import_module("equilibrium_mgr").Module.handlers()
    lines = [screen.line for screen in [*SCREENS, *WRITES]]
    for prefix in handlers:
        name = prefix.partition(" ")[2]
        assert name in NOT_SHOWN or any(
            line == name or line.startswith(name + " ") for line in lines), (
            f"'{name}' has no screen: add one to SCREENS in tests/screens/screens.py")
