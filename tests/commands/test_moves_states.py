"""`moves` shows each shard in a state that its PG has at that moment."""
from __future__ import annotations

from typing import Set

from mgr_stub.cluster.pg_reports import state_of
from mgr_stub.console.session import Session

from .asking import ask, run


def test_no_pg_that_has_been_undersized_for_long_is_peering(session: Session) -> None:
    run(session, "sim backfill rate 1M", "osd set nobackfill", "sim host down host5",
        "sim osd out 20 21 22 23")
    seen: Set[str] = set()
    for _ in range(4):
        run(session, "sim run 10m")
        ask(session, "moves")
        run(session, "sim run 1m")   # a look has been started
        for move in ask(session, "moves")["moves"]:
            state = state_of(session.cluster, session.cluster.pgs[move["pgid"]])
            assert move["state"] in state.split("+"), (move, state)
            seen.add(state)
    assert any("undersized" in state for state in seen), seen
