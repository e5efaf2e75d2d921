"""Plans and executions outlive the mgr; damaged ones harm nobody else."""

from __future__ import annotations

import errno
from typing import List

from mgr_stub.console.session import Session

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


def test_another_plan_is_refused_while_one_is_executed(session: Session) -> None:
    """By a new mgr too: tests/control/rounds/test_balancer_failover.py."""
    optimize(session, "p")
    optimize(session, "q")
    run(session, "equilibrium execute p", "sim run 5m")
    refuses(session, "execute q", errno.EBUSY, "plan 'p' is being executed")
