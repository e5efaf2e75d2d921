"""What is refused beside the unknown names and senseless values of the story `refused` in
tests/screens: too many plans, names that are taken, and a name of two lines."""

from __future__ import annotations

import errno

from mgr_stub.console.session import Session

from .asking import ask, optimize, refused, refuses, run


def test_a_name_with_a_new_line_is_refused(session: Session) -> None:
    refuses(session, "optimize 'p\n'", errno.EINVAL, "name")
    assert ask(session, "ls")["plans"] == []


def test_too_many_plans(session: Session) -> None:
    optimize(session, "p0")
    plan = session.module.plan_store.get("p0")
    for number in range(1, 100):
        session.module.plan_store.put(f"p{number}", plan, session.clock())
    refuses(session, "optimize one-more", errno.ENOSPC, "rm")
    optimize(session, "p7")                     # a name that is there may be made again
    run(session, "equilibrium rm p8")
    optimize(session, "one-more")


def test_a_name_that_is_taken(session: Session) -> None:
    plan = optimize(session, "p --max-moves 3")
    rc, text = refused(session, "equilibrium optimize p vms")
    assert rc == -errno.EEXIST
    assert "'p' is kept already" in text
    assert "'--replace'" in text
    assert ask(session, "dump p") == plan
    assert len(optimize(session, "p --max-moves 4")["moves"]) == 4
