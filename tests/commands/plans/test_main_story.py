"""A plan that is carried out by hand leads where `execute` leads."""

from __future__ import annotations

from mgr_stub.console.session import Session

from ..asking import ask, optimize, run, up_sets, upmap_items


def test_show_can_be_run_by_hand(session: Session) -> None:
    plan = optimize(session)
    before = up_sets(session)
    lines = run(session, "equilibrium show p").splitlines()
    comments = [line for line in lines if line.startswith("#")]
    commands = lines[len(comments):]
    assert comments
    assert "epoch 42" in comments[0]
    assert commands == ask(session, "show p")["commands"]
    assert commands
    assert all(line.startswith("ceph osd pg-upmap-items ") for line in commands)
    run(session, *commands)
    assert up_sets(session) == {**before, **plan["predicted_up"]}
    assert upmap_items(session) == plan["upmap_items"]
