"""`optimize --rule`: a pool is prepared for another CRUSH rule, gets it, and nothing moves then."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from tests.scenarios.clusters import session_of

from ..asking import ask, misplaced_ratio, optimize, refuses, run, up_sets

NEW_RULE = "osd crush rule create-replicated by-rack default rack hdd"


@pytest.fixture
def racks(tmp_path: Path) -> Session:
    """Five racks of three hosts; pool rbd is placed by hosts. Nothing is balanced."""
    session = session_of("racks", 1, tmp_path, 18)
    run(session, "config set mgr mgr/equilibrium/max_upmap_items 0",
        "config set mgr mgr/equilibrium/start_delay 0", "sim backfill rate 2G", NEW_RULE)
    return looked_at(session)


def looked_at(session: Session) -> Session:
    session.command("equilibrium eval")   # asks for a look
    run(session, "sim run 20s")
    return session


def of_rbd(session: Session) -> Dict[str, List[int]]:
    pool = next(number for number, entry in session.cluster.map.pools.items()
                if entry["pool_name"] == "rbd")
    return {pgid: up for pgid, up in up_sets(session).items() if pgid.startswith(f"{pool}.")}


def racks_of(session: Session, up: List[int]) -> int:
    rule = next(number for number, rule in session.cluster.crush.rules.items()
                if rule["rule_name"] == "by-rack")
    return len({session.cluster.crush.parent_of_type(osd, "rack", rule) for osd in up})


def test_prepared_within_the_misplaced_limit_and_nothing_moves_at_the_change(
        racks: Session) -> None:
    before = of_rbd(racks)
    least = sum(3 - racks_of(racks, up) for up in before.values())
    plan = optimize(racks, "prepare rbd --rule by-rack")
    assert len(plan["moves"]) == least > 50
    run(racks, "equilibrium execute prepare")
    highest = 0.0
    while ask(racks, "status")["last_execution"] is None:
        run(racks, "sim run 20s")
        highest = max(highest, misplaced_ratio(racks))
    assert 0.0 < highest <= 0.05
    run(racks, "sim run 5m")
    assert ask(racks, "status")["last_execution"]["outcome"] == "completed"
    prepared = of_rbd(racks)
    assert {racks_of(racks, up) for up in prepared.values()} == {3}
    assert optimize(racks, "again rbd --rule by-rack")["moves"] == []
    run(racks, "osd set norebalance", "osd pool set rbd crush_rule by-rack", "sim run 1m")
    remapped = sum(set(up) != set(prepared[pgid]) for pgid, up in of_rbd(racks).items())
    assert remapped > len(prepared) // 3   # so many CRUSH alone would move
    racks.command("equilibrium freeze")    # asks for a look
    run(racks, "sim run 20s")
    assert ask(racks, "freeze")["unpinned"] == []
    run(racks, "sim run 1m", "osd unset norebalance", "sim run 10m")
    assert misplaced_ratio(racks) == 0.0
    assert {pgid: set(up) for pgid, up in of_rbd(racks).items()} == {
        pgid: set(up) for pgid, up in prepared.items()}


def test_freeze_does_not_act_on_a_look_from_before_the_change(
        open_session: Callable[..., Session]) -> None:
    """It would find nothing to pin, and the operator would let everything go."""
    session = looked_at(open_session(18))
    run(session, "osd crush rule create-replicated by-osd default osd hdd", "sim run 30s")
    assert looked_at(session).command("equilibrium freeze --dry-run")[0] == 0
    run(session, "osd set norebalance", "osd pool set vms crush_rule by-osd")
    refuses(session, "freeze", errno.EAGAIN)
    while session.command("equilibrium freeze --dry-run")[0] == -errno.EAGAIN:
        run(session, "sim run 5s")
    assert ask(session, "freeze")["shards"] > 100
