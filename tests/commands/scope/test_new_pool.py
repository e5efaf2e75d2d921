"""A pool that is newer than the last look."""

from __future__ import annotations

import errno

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, refused, run


@pytest.mark.parametrize("line, key", [("explain fresh", "pool"), ("eval fresh", "pools")])
def test_it_is_not_denied_and_a_look_is_started(session: Session, line: str, key: str) -> None:
    run(session, "sim pool create fresh pg_num=8 size=3")
    code, said = refused(session, f"equilibrium {line}")
    assert code == -errno.EAGAIN and said.startswith("pool 'fresh' is newer than the last look")
    run(session, "sim run 1s")
    assert key in ask(session, line)


@pytest.mark.parametrize("line", ["explain nosuch", "eval nosuch"])
def test_what_is_nothing_is_denied(session: Session, line: str) -> None:
    assert refused(session, f"equilibrium {line}")[0] == -errno.ENOENT
