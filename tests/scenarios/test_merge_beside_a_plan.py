"""A merge goes first where backfill slots are full: a plan that has begun before delays it little,
and is carried through all the same.

Real daemons (10 OSDs, osd_max_backfills 1): with all that had been sent left in the queue, the
merge took 1.4 times as long as alone, of which it stood for half a minute behind moves that had
waited for a slot before its own PGs did.
"""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from equilibrium_mgr.plan.model import UNDO
from mgr_stub.console.session import Session
from tests.commands.asking import run
from tests.support.few import few

from . import clusters
from .drive import watched
from .rules.under_way import is_ours
from .watch.watch import Watch

POOL, LEAST = "steps", 48
_MERGE = f"sim pool pg_num {POOL} {LEAST}"
_LONGEST_RATIO = 1.25
#: A shard of average size is copied in so many seconds: a merge of two PGs takes ten.
_SHARD_SECONDS = 13
_OPTION = "config set mgr mgr/equilibrium/"
#: More waits for slots than these let in.
_MANY = (f"{_OPTION}max_misplaced_ratio 0.3", f"{_OPTION}max_backfills_per_osd 0",
         f"{_OPTION}max_transit_ratio 0")
_FOUR_SEEDS = pytest.mark.parametrize("seed", few(range(4), 1))
_EIGHT_SEEDS = pytest.mark.parametrize("seed", few(range(8), 2))


def _opened(seed: int, folder: Path) -> Session:
    session = clusters.session_of("steps", seed, folder)
    pgs = session.cluster.pgs.values()
    rate = sum(pg.shard.total for pg in pgs) / len(pgs) / _SHARD_SECONDS
    run(session, f"{_OPTION}sleep_interval 20", f"{_OPTION}max_misplaced_ratio 0",
        "config set osd osd_max_backfills 1", f"sim backfill rate {int(rate)}")
    return session


def _seconds_to_merge(session: Session) -> float:
    begun = session.simulation.clock.now
    run(session, _MERGE)
    while True:
        run(session, "sim run 1s")
        pool = session.cluster.map.pools[session.cluster.map.pool_named(POOL)]
        seconds = session.simulation.clock.now - begun
        if {pool[key] for key in ("pg_num", "pg_num_pending", "pg_placement_num")} == {LEAST}:
            return seconds
        assert seconds < 1800.0


def _seconds_alone(seed: int, folder: Path) -> float:
    session = _opened(seed, folder)
    seconds = _seconds_to_merge(session)
    session.close()
    return seconds


def _wait_for_moves(session: Session) -> None:
    """The first have been sent."""
    while not session.cluster.map.upmap_items:
        run(session, "sim run 1s")


def _rows(session: Session) -> List[Any]:
    """What was sent, as it is noted."""
    found: List[Any] = session.module.balancer.changes().rows()
    return found


def _completed(session: Session) -> Dict[str, Any]:
    """The last execution, which has been carried through."""
    last: Dict[str, Any] = session.module.balancer.status.last_execution
    assert last["outcome"].startswith("completed") and not last["remaining_pgs"], last
    return last


def _executing(seed: int, tmp_path: Path, *lines: str) -> Tuple[Session, Watch]:
    """A session under watch whose plan has just sent its first moves, after these lines."""
    session = _opened(seed, tmp_path)
    watch = watched(session)
    run(session, *lines, "equilibrium optimize p", "sim run 30s", "equilibrium execute p")
    _wait_for_moves(session)
    run(session, "sim run 5s")   # they have got the slots
    return session, watch


@_EIGHT_SEEDS
def test_a_merge_takes_little_longer_and_the_plan_is_carried_through(
        seed: int, tmp_path: Path) -> None:
    seconds_alone = _seconds_alone(seed, tmp_path)
    session, watch = _executing(seed, tmp_path)
    seconds = _seconds_to_merge(session)
    assert seconds <= _LONGEST_RATIO * seconds_alone, (seconds, seconds_alone)
    run(session, "sim run 1h")
    last = _completed(session)
    assert {entry["reason"] for entry in last["dropped"]} <= {"its pool or PG is gone"}, last
    assert last["sent_moves"] + last["dropped_moves"] == last["planned_moves"], last
    entry = session.module.balancer.status.history[-1]
    assert (entry["moves"], entry["bytes"]) == (last["sent_moves"], last["sent_bytes"])
    assert not watch.broken
    session.close()


@_EIGHT_SEEDS
def test_an_undo_makes_way_once_and_goes_on(seed: int, tmp_path: Path) -> None:
    """It takes upmap items away, and no cooldown binds it."""
    session = _opened(seed, tmp_path)
    run(session, "equilibrium optimize p", "sim run 30s", "equilibrium execute p", "sim run 2h")
    session.command("equilibrium undo p")   # which asks for a look
    planned = dict(session.cluster.map.upmap_items)
    run(session, "sim run 10s", "equilibrium undo p")
    while session.cluster.map.upmap_items == planned:
        run(session, "sim run 1s")
    run(session, "sim run 5s")
    end = session.cluster.clock() + _seconds_to_merge(session)
    sent = Counter(row.pgid for row in _rows(session) if row.plan == "undo-1" and row.at < end)
    assert 2 in sent.values() and max(sent.values()) == 2, sent   # sent and taken back
    run(session, "sim run 1h")
    _completed(session)
    session.close()


@_FOUR_SEEDS
@pytest.mark.parametrize("delay", [0, 60])
def test_only_what_the_execution_itself_has_sent_makes_way(
        delay: int, seed: int, tmp_path: Path) -> None:
    """The next mgr counts none of what the last one has sent as sent."""
    session = _opened(seed, tmp_path)
    run(session, f"{_OPTION}start_delay {delay}", "sim peering 15s", "equilibrium optimize p",
        "sim run 30s", "equilibrium execute p")
    _wait_for_moves(session)
    run(session, _MERGE, "sim mgr fail takeover=1s", "sim run 2s")
    while session.module.balancer.execution is not None:
        execution = session.module.balancer.execution
        assert execution.sent_moves >= 0, execution.summary()
        assert len({change.pgid for change in execution.wanted}) == len(execution.wanted)
        run(session, "sim run 5s")
    last = session.module.balancer.status.last_execution
    assert sum(last[key] for key in ("sent_moves", "done_moves", "dropped_moves")) == last[
        "planned_moves"], last
    session.close()


@_FOUR_SEEDS
def test_what_the_monitor_refuses_to_take_back_goes_on(seed: int, tmp_path: Path) -> None:
    session, watch = _executing(seed, tmp_path)
    sent = dict(session.cluster.map.upmap_items)
    run(session, "sim mon reject 0.7", _MERGE,
        "sim run 2m")
    refused = {entry.command["pgid"] for entry in session.command_log
               if is_ours(entry) and entry.returncode}
    assert refused and not watch.broken, watch.broken
    assert not refused & session.module.balancer.dispatcher.made_way.moved.keys()
    assert refused <= sent.keys()
    session.close()


@_FOUR_SEEDS
@pytest.mark.parametrize("seconds", [35, 45])
def test_what_is_taken_back_without_an_answer_in_time_stays_wanted(
        seconds: int, seed: int, tmp_path: Path) -> None:
    session, watch = _executing(seed, tmp_path, *_MANY)
    # else each answer of a batch is waited for as long as all of them are
    session.module.balancer._gateway._monotonic = session.cluster.clock
    run(session, f"sim mon delay {seconds}s", "sim mon lose 1",
        _MERGE, "sim run 3m", "sim mon delay 0s", "sim mon lose 0",
        "sim run 2h")
    kinds = {row.pgid: row.kind for row in _rows(session) if row.plan == "p"}
    left = [pgid for pgid in kinds if kinds[pgid] == UNDO and pgid in session.cluster.pgs]
    assert not left and _completed(session)
    assert not watch.broken, watch.broken
    session.close()


@_FOUR_SEEDS
@pytest.mark.parametrize("cooldown, fails", [(0, False), (0, True), (3600, True)])
def test_a_pg_makes_way_once_and_goes_when_pg_num_has_its_value(
        cooldown: int, fails: bool, seed: int, tmp_path: Path) -> None:
    """Whatever pg_cooldown, and from the next mgr, too. Steps need other OSDs from one pair to the
    next: those of a PG are free in between."""
    session, watch = _executing(
        seed, tmp_path, *_MANY, f"{_OPTION}pg_cooldown {cooldown}", f"{_OPTION}start_delay 0",
        f"{_OPTION}sleep_interval 10", "config set mgr target_max_misplaced_ratio 0.5")
    begun = session.cluster.clock()
    if fails:
        run(session, _MERGE, "sim run 40s", "sim mgr fail takeover=1s")
    _seconds_to_merge(session)
    back = Counter(row.pgid for row in _rows(session) if row.at >= begun and not row.shards)
    assert back and max(back.values()) == 1, back
    run(session, "sim run 20m")
    execution = session.module.balancer.execution   # of PGs whose items the merge took away
    assert execution is None or back.keys().isdisjoint(change.pgid for change in execution.wanted)
    assert not watch.broken, watch.broken
    session.close()


@pytest.mark.parametrize("seed", few(range(6), 1))
def test_a_drain_makes_way(seed: int, tmp_path: Path) -> None:
    """Its shards return to the OSDs that are drained, for a while."""
    seconds_alone = _seconds_alone(seed, tmp_path)
    session = _opened(seed, tmp_path)
    run(session, *_MANY, "equilibrium drain add 1 4")
    _wait_for_moves(session)
    run(session, "sim run 5s")
    seconds = _seconds_to_merge(session)
    assert seconds <= _LONGEST_RATIO * seconds_alone, (seconds, seconds_alone)
    run(session, "sim run 2h")
    left = session.module.balancer.drains.status.remaining
    assert not any(one.shards for one in left.values()), left
    session.close()


@pytest.mark.parametrize("guard", [f"{_OPTION}end_time 0001", "osd set norebalance"])
def test_nothing_makes_way_while_nothing_may_be_sent(guard: str, tmp_path: Path) -> None:
    session = _opened(0, tmp_path)
    run(session, "equilibrium on")
    _wait_for_moves(session)
    run(session, "sim run 5s", guard, _MERGE)
    rows = _rows(session)
    for _ in range(6):
        run(session, "sim run 20s")
        session.command("equilibrium explain 1.0")   # asks for looks
        session.module.balancer.request_observation()
    assert _rows(session) == rows
    session.close()
