"""`off`, and automatic balancing to the end."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, count_commands, optimize, refused, run, up_sets, upmap_items


def test_the_rest_can_be_executed_later(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.02")
    plan = optimize(session)
    before = up_sets(session)
    run(session, "equilibrium execute p", "sim run 2m", "equilibrium off", "sim run idle",
        "equilibrium execute p", "sim run idle")
    assert up_sets(session) == {**before, **plan["predicted_up"]}
    last = ask(session, "status")["last_execution"]
    assert last["done_moves"] > 0
    assert last["done_moves"] + last["sent_moves"] == len(plan["moves"])


def test_one_execution_at_a_time(session: Session) -> None:
    optimize(session, "q")
    optimize(session)
    run(session, "equilibrium execute p")
    assert refused(session, "equilibrium execute q")[0] == -16
    assert refused(session, "equilibrium execute p")[0] == -16
    assert refused(session, "equilibrium optimize p")[0] == -16
    assert ask(session, "reset") == {"removed": ["q"], "stopped_plan": None}


def old_clients(demo_state: Dict[str, Any]) -> Dict[str, Any]:
    demo_state["osd_dump"]["require_min_compat_client"] = "jewel"
    return demo_state


@pytest.mark.parametrize("release, looked", [
    pytest.param(16, True, marks=pytest.mark.full), (18, False),
    pytest.param(20, True, marks=pytest.mark.full)])
def test_old_clients(open_session: Callable[..., Session], demo_state: Dict[str, Any],
                     release: int, looked: bool) -> None:
    cure = "osd set-require-min-compat-client luminous"
    session = open_session(release, old_clients(demo_state))
    if looked:
        run(session, "sim run 1s")
    plan = optimize(session, "p --max-moves 10")
    sent = count_commands(session)
    for line in ("equilibrium on", "equilibrium execute p"):
        rc, text = refused(session, line)
        assert rc == -1 and "ceph " + cure in text
    run(session, "sim run 10m")
    assert sent == [] and not ask(session, "status")["active"]
    run(session, cure, "equilibrium execute p", "sim run idle")
    assert upmap_items(session) == plan["upmap_items"]
    run(session, "equilibrium on")
