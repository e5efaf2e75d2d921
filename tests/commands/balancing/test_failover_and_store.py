"""Plans and executions outlive the mgr; damaged ones harm nobody else."""

from __future__ import annotations

import errno
from typing import Any, List, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr.mgr import Mgr

from ..asking import ask, optimize, refuses, run

PREFIX = "mgr/equilibrium/plan/"


def keys(session: Session, name: str = "") -> List[str]:
    """What the monitor itself holds of the plans."""
    return sorted(k for k in session.simulation.store.keys if k.startswith(PREFIX + name))


def test_a_damaged_plan_can_be_removed(session: Session) -> None:
    """What else may be damaged is in tests/properties/test_garbled_store.py."""
    optimize(session, "bad")
    store = session.simulation.store.keys
    part = next(key for key in keys(session, "bad/") if not key.endswith("/head"))
    store[part] = store[part][:len(store[part]) // 2]
    run(session, "sim failover")
    for verb in ("show", "eval", "dump", "execute"):
        refuses(session, f"{verb} bad", errno.EIO, "rm bad")
    assert ask(session, "rm bad") == {"removed": ["bad"], "stopped_plan": None}


@pytest.mark.parametrize("line, sentence", [
    ("execute q", "plan 'p' is being executed")])
def test_the_plan_that_is_executed_is_safe_in_a_new_mgrs_first_round(
        session: Session, mocker: Any, line: str, sentence: str) -> None:
    """Commands come while the new mgr reads the cluster for the first time."""
    optimize(session, "p")
    optimize(session, "q")
    run(session, "equilibrium execute p", "sim run 5m")
    answers = _in_the_first_round(session, mocker, f"equilibrium {line}")
    assert [(rc, sentence in err) for rc, _, err in answers] == [(-errno.EBUSY, True)]
    assert keys(session, "p")


def _in_the_first_round(session: Session, mocker: Any,
                        line: str) -> List[Tuple[int, str, str]]:
    """Lets the mgr die; the answers to a command that comes while the next one reads the map."""
    answers: List[Tuple[int, str, str]] = []
    get = Mgr.get

    def get_and_ask(mgr: Mgr, name: str) -> Any:
        if name == "osd_map_tree" and not answers:
            answers.append((0, "", ""))   # the command itself reads, too
            answers[0] = session.dispatch(line.split())
        return get(mgr, name)
    mocker.patch.object(Mgr, "get", get_and_ask)
    session.host.kill_mgr(takeover=5.0)
    run(session, "sim run 1m")
    return answers
