"""Plans whose PGs Ceph moves by log recovery: moves, not trouble."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, optimize, run, shards_in_flight, up_sets


def by_log(state: Dict[str, Any], writes: Tuple[int, ...]) -> Dict[str, Any]:
    """The logs of all PGs reach back to their first object; so many writes, in turn."""
    for number, pg in enumerate(state["pg_dump"]["pg_map"]["pg_stats"]):
        pg["ondisk_log_start"] = pg["log_start"] = "0'0"
        pg["version"] = f"0'{writes[number % len(writes)]}"
    return state


@pytest.mark.parametrize("writes", [(20,), (5000,), (20, 5000)],
                         ids=["in place", "apart", "both"])
def test_a_plan_carried_by_log_recovery_is_not_trouble(
        open_session: Callable[..., Session], demo_state: Dict[str, Any],
        writes: Tuple[int, ...]) -> None:
    session = open_session(18, by_log(demo_state, writes))
    run(session, "sim log-recovery on")
    plan = optimize(session)
    before = up_sets(session)
    run(session, "equilibrium execute p")
    lacking = 0
    for _ in range(400):
        run(session, "sim run 60s")
        status = ask(session, "status")
        states = [str(pg["state"]) for pg in session.mgr.get("pg_progress")["pgs"].values()]
        lacking += sum("degraded" in state or "undersized" in state for state in states)
        assert "degraded" not in status["reason"], status["reason"]
        # what we sent is in flight at least until Ceph calls it clean
        moving = sum("recover" in state or "backfill" in state for state in states)
        assert shards_in_flight(status) >= moving
        if status["state"] == "off":
            break
    assert lacking > 0
    assert status["last_execution"]["outcome"] == "completed"
    assert status["last_execution"]["dropped_moves"] == 0
    assert up_sets(session) == {**before, **plan["predicted_up"]}
