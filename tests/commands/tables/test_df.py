"""`df`: Ceph's own figures, and free space that clients can really fill."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask
from tests.support.few import few

POOLS = ["backup", "vms", "cephfs_data", "cephfs_metadata", "fast", ".mgr"]
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


@pytest.mark.parametrize("pool", few(POOLS, 1))
def test_filling_a_pool_in_the_simulator_ends_at_free(session: Session, pool: str) -> None:
    """Of replicated and erasure-coded pools and two classes, as data lies now."""
    free = _pools(session)[pool]["free_bytes"]
    assert _written(session, pool, free) == pytest.approx(free, rel=_NEAR)
