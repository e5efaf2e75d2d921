"""Options that match nothing or cannot be read: never a green state, and a warning that helps."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

from mgr_stub.console.session import Session

from .asking import ask, health, run, upmap_items

CODE = "MGR_EQUILIBRIUM_BAD_OPTION"


def set_option(session: Session, name: str, value: str) -> None:
    rc, _, err = session.command_words(
        ["config", "set", "mgr", "mgr/equilibrium/" + name, value])
    assert rc == 0, (name, value, err)


def warning(session: Session) -> List[str]:
    """The lines of the health check, which takes two rounds to come or go; [] for none."""
    run(session, "sim run 3m")
    check: Dict[str, Any] = session.mgr.health_checks.get(CODE, {})
    if not check:
        return []
    assert check["severity"] == "warning"
    assert CODE in health(session)
    assert all("\n" not in line for line in check["detail"])
    return list(check["detail"])


#: What each option reads otherwise is in tests/module/test_settings.py.
EXCLUDING = [("pool_ids", "4711"), ("from_buckets", "hots1"), ("not_buckets", ",")]


@pytest.mark.parametrize("name, value", EXCLUDING)
def test_never_green_while_everything_is_excluded(session: Session, name: str, value: str) -> None:
    set_option(session, name, value)
    run(session, "equilibrium on", "sim run 1h")
    status = ask(session, "status")
    assert status["state"] == "stuck", status["reason"]
    assert name in status["reason"], status["reason"]
    assert any(name in said for said in status["left_out"])
    assert upmap_items(session) == {}
    lines = warning(session)
    assert name in lines[0]
    assert value in lines[0]
    assert "ceph " in lines[-1]
    shown = run(session, "equilibrium status")
    assert f"options:     {name}={value}" in shown
    assert "left out: " in shown
    assert run(session, "equilibrium explain").startswith("stuck")


def test_what_helps_ends_it(session: Session) -> None:
    set_option(session, "pool_ids", "1,4711")
    set_option(session, "device_classes", "hdd,SSD")
    session.host.run_round()
    lines = warning(session)
    assert any("4711" in line for line in lines)
    assert any("SSD" in line for line in lines)
    run(session, "equilibrium pool rm 4711", "config set mgr mgr/equilibrium/device_classes hdd")
    session.host.run_round()
    assert warning(session) == []
    assert ask(session, "pool ls")["pools"] != []


def test_what_is_set_is_told(session: Session) -> None:
    set_option(session, "max_moves_per_round", "7")
    set_option(session, "min_gain", "0.002")   # the default, set
    shown = {option["name"]: option for option in ask(session, "status")["options"]}
    assert set(shown) == {"start_delay", "max_moves_per_round"}
    assert shown["max_moves_per_round"] == {
        "name": "max_moves_per_round", "value": "7", "default": "100", "bad": None}
    assert "options:     max_moves_per_round=7, start_delay=0" in run(session, "equilibrium status")
