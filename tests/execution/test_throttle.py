"""Per-OSD limits, the share in transit, busy PGs, nearfull targets, and relief."""
from __future__ import annotations

from typing import Any, List

import pytest

from equilibrium_mgr.execution.guards import PoolGuard
from equilibrium_mgr.execution.traffic import osd_traffic
from tests.execution.limits import batch, limited, pgs, sent, wanted
from tests.support.units import GIB


# -- bytes in transit ------------------------------------------------------------------------------


def test_one_big_shard_may_go_alone_and_that_is_told() -> None:
    limits = limited(max_transit_ratio=0.1)
    decision = batch(pgs(3, num_bytes=20 * GIB), wanted(2, 3, 4), limits)
    assert sent(decision) == ["1.0"]
    busy = pgs(3, num_bytes=20 * GIB).pg("1.a", "5 2", num_bytes=GIB, acting="6 2")
    assert sent(batch(busy, wanted(5), limits)) == []      # something else comes to osd.5
    leaving = pgs(3, num_bytes=20 * GIB).pg("1.a", "5 2", num_bytes=GIB, acting="6 2")
    assert sent(batch(leaving, wanted(6), limits)) == []   # or leaves osd.6


@pytest.mark.parametrize("up, acting, limit", [
    ([0, 5], [2, 5], "max_transit_ratio"), ([0, 2], [6, 5], "max_backfills_per_osd")])
@pytest.mark.parametrize("state, relief", [("backfill_toofull", ["1.0"]), ("backfilling", [])])
def test_what_waits_for_a_full_osd_does_not_count_against_its_relief(
        state: str, relief: List[str], up: List[int], acting: List[int], limit: str) -> None:
    """1.a is to come to osd.0, which has no room for it before 1.0 is gone, and holds a slot or
    bytes in transit of osd.2 until then."""
    limits: Any = {limit: 0.02 if limit == "max_transit_ratio" else 1}
    cluster = pgs(1, num_bytes=8 * GIB).osd(0, used=86 * GIB).pg(
        "1.a", up, num_bytes=8 * GIB, acting=acting, state=f"active+remapped+{state}")
    assert sent(batch(cluster, wanted(2), limited(**limits))) == relief


def test_of_a_mispredicted_pool_a_shard_counts_whole_until_it_has_arrived() -> None:
    cluster = pgs(0).pg("1.a", "5 2", num_bytes=8 * GIB, acting="6 2", uncopied_ratio=0.25)
    loads = [osd_traffic(cluster.snapshot(), {}, mispredicted=pools).of(5) for pools in ((), (1,))]
    assert 4 * loads[0].bytes_in == loads[1].bytes_in > 0


# -- PGs that have to wait -------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["active+clean+snaptrim_wait", "active+clean+snaptrim_error",
                                   "active+clean+laggy"])
def test_pgs_that_may_stay_so_for_long_do_not(state: str) -> None:
    assert sent(batch(pgs(1, state=state), wanted(2))) == ["1.0"]


@pytest.mark.parametrize("state", ["active+undersized+degraded", "active+recovering+degraded",
                                   "peering"])
def test_degraded_pgs_themselves_are_left_alone(state: str) -> None:
    """Be it for relief."""
    degraded = {1: PoolGuard("pool 'pool1' has 3 PGs degraded", False)}
    assert not batch(pgs(state=state).osd(0, used=91 * GIB), wanted(2), troubled=degraded).send
