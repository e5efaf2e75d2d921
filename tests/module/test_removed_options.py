"""`ceph config rm` takes effect although the mgr is never told of it."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Optional

import pytest

import equilibrium_mgr
from equilibrium_mgr.settings import OptionValues
from mgr_stub.console.session import Session
from tests.commands.asking import run

OPTIONS: List[Dict[str, Any]] = [dict(name="limit", default=100), dict(name="ids", default="")]


class Mgr:
    """What the mgr holds, and what is set at the monitor."""

    def __init__(self) -> None:
        self.held: Dict[str, Any] = {"limit": 100, "ids": ""}
        self.stands: Optional[FrozenSet[str]] = frozenset()
        self.asked = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.options = OptionValues(self.held.get, self.held.get, "x", self.ask, OPTIONS)

    def ask(self) -> Optional[FrozenSet[str]]:
        self.asked += 1
        self.meanwhile()
        return self.stands

    def notified(self) -> None:
        self.options.is_check_due = True
        self.options.check_if_due()


def test_a_mgr_that_becomes_active_goes_on_with_nothing_removed() -> None:
    """A standby keeps what was removed while it stood by, and nothing notifies it afterwards."""
    mgr = Mgr()
    mgr.held["limit"] = 7
    mgr.options.check_if_due()
    assert mgr.options.value("limit") is None


def test_what_is_set_while_the_monitor_answers_holds() -> None:
    mgr = Mgr()
    mgr.held["ids"], mgr.stands = "3", frozenset(("ids",))
    mgr.meanwhile = lambda: mgr.held.update(limit=7)
    mgr.notified()
    assert mgr.options.value("limit") == 7


def test_without_an_answer_it_is_asked_again() -> None:
    mgr = Mgr()
    mgr.held["limit"], mgr.stands = 7, None
    mgr.notified()
    assert mgr.options.value("limit") == 7
    mgr.stands = frozenset()
    mgr.options.check_if_due()
    assert mgr.options.value("limit") is None


@pytest.mark.parametrize("release", [16, 20])
def test_in_a_running_mgr(release: int) -> None:
    session = Session.from_state(None, release)
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.31",
        "config set mgr mgr/equilibrium/device_classes SSD", "sim run 2m")
    said = "options:     device_classes=SSD, max_misplaced_ratio=0.31"
    assert said in run(session, "equilibrium status")
    run(session, "config rm mgr mgr/equilibrium/max_misplaced_ratio",
        "config rm mgr mgr/equilibrium/device_classes", "sim run 2m")
    settings = session.module.settings()
    assert settings.max_misplaced_ratio == 0.0
    assert settings.device_classes is None
    assert "options:" not in run(session, "equilibrium status")
    assert session.mgr.health_checks == {}
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.31", "sim run 2m")
    assert session.module.settings().max_misplaced_ratio == 0.31
    asked = session.mgr.calls["config get"]
    run(session, "sim run 2h")
    assert session.mgr.calls["config get"] == asked <= 6
    session.close()


def test_nobody_but_these_asks_the_mgr_for_options() -> None:
    """The mgr itself goes on with what was removed: only OptionValues may ask it."""
    package = Path(equilibrium_mgr.__file__).parent
    asking = {file.name for file in package.rglob("*.py")
              if re.search(r"get_module_option[()]", file.read_text())}
    assert asking <= {"module.py"}
