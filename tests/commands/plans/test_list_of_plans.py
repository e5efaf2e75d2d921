"""`ls` tells what has become of each plan, `rm` stops one that is executed, and each answer what
comes next."""
from __future__ import annotations

import errno
from typing import Any, Dict

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, count_commands, mark_out, optimize, refused, refuses, run, state, words


def listed(session: Session) -> Dict[str, Dict[str, Any]]:
    return {plan["plan"]: plan for plan in ask(session, "ls")["plans"]}


def test_from_ready_to_completed(session: Session) -> None:
    plan = optimize(session)
    assert listed(session)["p"]["state"] == "ready"
    assert listed(session)["p"]["shards"] == len(plan["moves"])
    before, after = (plan[when]["room"]["bytes"] for when in ("before", "after"))
    assert listed(session)["p"]["room_gained_bytes"] == after - before
    run(session, "equilibrium execute p", "sim run 2m")
    assert listed(session)["p"]["state"] == "executing"
    run(session, "sim run idle")
    assert listed(session)["p"]["state"] == "completed"
    run(session, "sim failover", "sim run 5m")
    assert listed(session)["p"]["state"] == "completed"
    optimize(session)   # another one of this name
    assert listed(session)["p"]["state"] == "ready"


@pytest.mark.parametrize("change, reason", [
    ("osd", "the CRUSH map or the weight of an OSD has changed"),
    ("sim pool rm vms", "pool 2 is gone")])
def test_outdated(session: Session, change: str, reason: str) -> None:
    optimize(session)
    if change == "osd":
        mark_out(session, 3)
    else:
        run(session, change)
    plan = listed(session)["p"]
    assert plan["state"] == "outdated"
    assert reason.split(" is ")[-1] in plan["outdated_reason"]
    assert "'ceph equilibrium optimize p --replace' makes it anew" in words(session, "ls")
    if change == "osd":
        said = words(session, "execute p")
        assert f"it is outdated ({reason})" in said
        assert "is left out" in said
    else:   # a plan that moves PGs of a pool that is gone is refused
        assert "pool 2, which is gone" in refused(session, "equilibrium execute p")[1]


def test_rm_stops_a_plan_that_is_executed(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/max_moves_per_round 3")
    optimize(session)
    run(session, "equilibrium execute p", "sim run 2m")
    moving = ask(session, "history")["episodes"][-1]["shards"]
    answer = ask(session, "rm p")
    assert answer == {"removed": ["p"], "stopped_plan": "p"}
    assert state(session) == "off"
    assert listed(session) == {}
    sent = count_commands(session)
    run(session, "sim run 10m", "sim failover", "sim run 10m")
    assert [command for command in sent if "upmap" in command] == []
    episode = ask(session, "history")["episodes"][-1]
    assert (episode["outcome"], episode["outcome_reason"]) == (
        "stopped", "by 'ceph equilibrium rm'")
    assert episode["shards"] == moving > 0
    refuses(session, "rm p", errno.ENOENT)
    refuses(session, "rm ''", errno.EINVAL)


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


def test_automatic_balancing_goes_on_after_rm(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/max_moves_per_round 3")
    optimize(session)
    run(session, "equilibrium on", "equilibrium execute p", "sim run 2m", "equilibrium rm p")
    assert state(session) != "off"
    run(session, "sim run 5m")
    assert ask(session, "history")["episodes"][-1]["plan"] == "automatic"


def test_dump_tells_what_each_move_makes_of_its_osds(session: Session) -> None:
    """Checkers of plans compare that with what they compute."""
    for move in optimize(session)["moves"]:
        assert move["from_utilization_after"] < move["from_utilization_before"]
        assert move["to_utilization_after"] > move["to_utilization_before"]


def test_execute_tells_what_of_a_plan_still_applies(session: Session) -> None:
    """PGs that are elsewhere by now are not moved, and not counted."""
    optimize(session)
    commands = ask(session, "show p")["commands"]
    half, moves = len(commands) // 2, ask(session, "dump p")["moves"]
    run(session, *[command.partition(" ")[2] for command in commands[:half]], "sim run idle")
    answer, left = ask(session, "execute p"), [line.split()[3] for line in commands[half:]]
    assert answer["shards"] == len([move for move in moves if move["pgid"] in left])
    run(session, "sim run 1m", "sim run idle")
    assert ask(session, "history")["episodes"][-1]["shards"] == answer["shards"]
    number, message = refused(session, "equilibrium execute p")
    assert (number, message) == (-errno.ENOENT, "nothing is left to do of plan 'p': its"
                                 f" {len(commands)} PGs are elsewhere by now; make a new plan")
    assert state(session) == "off"
    run(session, f"osd rm-pg-upmap-items {commands[0].split()[3]}")   # it is where it was found
    said = words(session, "execute p")
    assert said.startswith("p: executing 1 shard,")
    assert f"{len(commands) - 1} of its {len(commands)} PGs are elsewhere by now" in said


def test_pgs_that_only_lack_osds_still_apply(session: Session) -> None:
    """They wait, and go once their OSDs are back."""
    optimize(session)
    shards = len(ask(session, "dump p")["moves"])
    run(session, "sim flag set noout", "sim host down host5", "sim run 30s")
    assert ask(session, "execute p")["shards"] == shards
    run(session, "sim host up host5", "sim run idle")
    assert ask(session, "history")["episodes"][-1]["shards"] == shards
