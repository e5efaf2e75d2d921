"""What the handlers' signatures tell Ceph."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

READ = set((
    "df, drain ls, dump, dump-state, eval, explain, history, ls, metrics, moves, osds, pool ls, "
    "report, show, status").split(", "))
WRITE = set((
    "cancel, drain add, drain rm, execute, freeze, off, on, optimize, pool add, pool rm, reset, "
    "rm, undo").split(", "))


@pytest.fixture(params=few([18, 16, 20], 1))
def handlers(request: Any, open_session: Callable[..., Session]) -> Any:
    return open_session(request.param).host.handlers


def test_all_commands_are_there(handlers: Any) -> None:
    assert set(handlers) == {"equilibrium " + name for name in READ | WRITE}


def test_permissions(handlers: Any) -> None:
    for name in READ:
        assert handlers["equilibrium " + name].perm == "r"
    for name in WRITE:
        assert handlers["equilibrium " + name].perm in ("w", "rw")


def test_signatures(handlers: Any) -> None:
    for prefix, handler in handlers.items():
        hints = handler.function.__annotations__
        assert "return" in hints, prefix
        assert not any(isinstance(hint, str) for hint in hints.values()), prefix
        parameters = inspect.signature(handler.function).parameters
        assert parameters["format"].default == "plain", prefix
        assert "inbuf" not in parameters, prefix
        assert inspect.getdoc(handler.function), prefix
