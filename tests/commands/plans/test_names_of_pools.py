"""Pools by name and id wherever one is taken, and told apart from plans and OSDs."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, by, optimize, pools_of, run
from ..conftest import look


@pytest.fixture
def odd(open_session: Callable[..., Session], demo_state: Dict[str, Any]) -> Session:
    """The demo where pool 2 is called `r two ü`, and pool 6 is called `3`."""
    names = {2: "r two \u00fc", 6: "3"}
    for pool in demo_state["osd_dump"]["pools"]:
        pool["pool_name"] = names.get(pool["pool"], pool["pool_name"])
    session = open_session(18, demo_state)
    look(session)
    return session


def test_a_name_that_nobody_can_type(odd: Session) -> None:
    assert ask(odd, "pool add 2") == {"pools": ["r two \u00fc"]}
    assert pools_of(odd, optimize(odd, "p 2")) == {"r two \u00fc"}
    for line in ("eval 2", "eval pool/2"):
        assert set(by("name", ask(odd, line)["pools"])) == {"r two \u00fc"}
    assert "r two" in run(odd, "equilibrium explain pool/2")


def test_a_name_goes_before_an_id(odd: Session) -> None:
    assert ask(odd, "pool add 3") == {"pools": ["3"]}
    assert run(odd, "config get mgr mgr/equilibrium/pool_ids") == "6"
    assert set(by("name", ask(odd, "eval 3")["pools"])) == {"3"}


def test_help_names_what_can_be_given(session: Session) -> None:
    handlers = session.host.handlers
    said = handlers["equilibrium optimize"].description
    for option in ("--max-moves", "--max-bytes", "--device-class", "--aim", "id"):
        assert option in said
    for handler in handlers.values():
        assert "  " not in handler.description
        assert len(handler.description) < 260


def test_off_names_no_command_that_is_not_there(open_session: Callable[..., Session]) -> None:
    session = open_session(20)
    assert "ceph balancer on" in run(session, "equilibrium off")
    session.simulation.disabled_modules.add("balancer")
    assert "ceph balancer" not in run(session, "equilibrium off")
