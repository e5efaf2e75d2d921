"""`df`: Ceph's own figures, and free space that clients can really fill."""
from __future__ import annotations

import errno
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, optimize, refused, run

POOLS = [".mgr", "vms", "backup", "cephfs_data", "cephfs_metadata", "fast"]
_NEAR = 0.03


def _pools(session: Session, line: str = "df") -> Dict[str, Dict[str, Any]]:
    return {pool["name"]: pool for pool in ask(session, line)["pools"]}


def _pool_id(session: Session, name: str) -> int:
    return next(number for number, pool in session.cluster.map.pools.items()
                if pool["pool_name"] == name)


def _written(session: Session, pool: str, at_most: int) -> int:
    """Client bytes that go in before the first PG of the pool refuses any."""
    load, pool_id = session.simulation.client_load, _pool_id(session, pool)
    step, written = max(1, at_most // 400), 0
    while written < 2 * at_most:
        taken = load.write(pool_id, step)
        written += taken
        if taken < step:
            return written
    return written


@pytest.mark.parametrize("pool", POOLS)
def test_filling_a_pool_in_the_simulator_ends_at_free(session: Session, pool: str) -> None:
    """Of replicated and erasure-coded pools and two classes, as data lies now."""
    free = _pools(session)[pool]["free_bytes"]
    assert _written(session, pool, free) == pytest.approx(free, rel=_NEAR)


@pytest.mark.parametrize("pool", ["backup"])
def test_filling_a_pool_ends_at_free_while_data_moves(pool: str) -> None:
    """With devices of usual speed: data may not go far between a look and the next."""
    session = Session.from_state(None, release=18)
    run(session, "config set mgr mgr/equilibrium/start_delay 0", "equilibrium on",
        "sim run 8m", "equilibrium df", "sim run 1s")
    assert session.cluster.unclean
    free = _pools(session)[pool]["free_bytes"]
    assert _written(session, pool, free) == pytest.approx(free, rel=_NEAR)
    session.close()


@pytest.mark.parametrize("pool", ["vms"])
def test_filling_a_pool_once_the_plan_is_done_ends_at_planned(
        open_session: Callable[..., Session], pool: str) -> None:
    session = open_session(18)
    run(session, "sim run 1s")
    optimize(session)
    session.command("equilibrium df")
    run(session, "sim run 1s")
    planned = _pools(session, "df p")[pool]["planned_free_bytes"]
    run(session, "balancer off", "equilibrium execute p", "sim run idle", "equilibrium df")
    assert _written(session, pool, planned) == pytest.approx(planned, rel=_NEAR)


def test_figures_of_now_are_those_of_ceph(any_session: Session) -> None:
    ceph = {pool["name"]: pool["stats"] for pool in any_session.mgr.get("df")["pools"]}
    shown = _pools(any_session)
    assert shown.keys() == ceph.keys()
    for name, pool in shown.items():
        for key in ("stored", "percent_used", "max_avail"):
            assert pool[key] == ceph[name][key], (name, key)


def test_figures_of_now_follow_a_write_at_once(session: Session) -> None:
    before = _pools(session)["vms"]
    run(session, "sim write vms 100G", "sim run 6s")
    after = _pools(session)["vms"]
    assert after["stored"] - before["stored"] == 100 << 30
    assert after["percent_used"] > before["percent_used"]
    assert after["free_bytes"] < before["free_bytes"]


def test_no_placement_has_more_than_best(session: Session) -> None:
    optimize(session)
    for name, pool in _pools(session, "df p").items():
        assert pool["planned_free_bytes"] <= pool["best_free_bytes"], name
        assert pool["free_bytes"] <= pool["best_free_bytes"], name


def test_fullest_first_or_as_it_is_sorted(session: Session) -> None:
    used = [pool["percent_used"] for pool in ask(session, "df")["pools"]]
    assert used == sorted(used, reverse=True)
    ids: List[int] = [pool["id"] for pool in ask(session, "df --sort id --limit 3")["pools"]]
    assert ids == [1, 2, 3]
    assert "... 3 more pools" in run(session, "equilibrium df --limit 3")
    rc, sentence = refused(session, "equilibrium df --sort weight")
    assert rc == -errno.EINVAL and "used, stored" in sentence
