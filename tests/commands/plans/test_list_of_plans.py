"""A plan that is removed while somebody reads it; what `ls` and `rm` tell is in the stories of the
golden screens."""
from __future__ import annotations

import errno
from typing import Any

import pytest

from mgr_stub.console.session import Session

from ..asking import optimize, refused


def test_a_plan_that_goes_while_it_is_evaluated(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job removes it if it was cancelled while the job wrote it."""
    optimize(session)
    module = session.module
    pool_space = module.gateway.pool_space

    def removing() -> Any:
        module.plan_store.remove("p")
        return pool_space()
    monkeypatch.setattr(module.gateway, "pool_space", removing)
    assert refused(session, "equilibrium eval p") == (-errno.ENOENT, "no plan is named 'p'")


def test_dump_tells_what_each_move_makes_of_its_osds(session: Session) -> None:
    """Checkers of plans compare that with what they compute."""
    for move in optimize(session)["moves"]:
        assert move["from_utilization_after"] < move["from_utilization_before"]
        assert move["to_utilization_after"] > move["to_utilization_before"]
