"""OSDs on which shards take more or less, and pools whose shards differ by position."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import pytest

from mgr_stub.cluster.usage import position_ratios
from tests.benchmark.clusters import state_of
from tests.scenarios import clusters
from tests.support.clusters.crush_cluster import run, used

RGW, RBD = 1, 2


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(state_of(clusters.make("small_objects", 1)))


def rows(session: Any) -> Dict[Tuple[int, int], Tuple[int, int]]:
    """(pool, OSD) → allocated and stored bytes as the mgr has them."""
    return {(row["poolid"], row["osd"]): (row["allocated"], row["data_stored"])
            for row in session.mgr.get("osd_stats")["pool_statfs"]}


def ratio(session: Any, pool: int, osd: int) -> float:
    """The ratio of allocated to stored bytes in the mgr."""
    allocated, data_stored = rows(session)[pool, osd]
    return allocated / data_stored


@pytest.mark.parametrize("chunk, kept", [
    (16384, [12288, 0, 0, 0, 12288, 12288]), (4096, [4096, 4096, 4096, 0, 4096, 4096])])
def test_ratios_of_the_formula(chunk: int, kept: List[int]) -> None:
    """As 20.2.4 stored objects of 10,000 B by position."""
    ratios = position_ratios(6, 4, chunk, 10_000)
    assert [round(one * 10_000 / 4) for one in ratios] == kept


def test_an_osd_that_allocates_more(session: Any) -> None:
    before = used(session)
    run(session, "sim osd allocation 1.5 0 3", "sim osd allocation 2 0 pool=rbd")
    after = used(session)
    assert ratio(session, RGW, 0) == pytest.approx(1.5, rel=1e-6)
    assert ratio(session, RBD, 0) == pytest.approx(2.0, rel=1e-6)
    assert ratio(session, RBD, 3) == pytest.approx(1.5, rel=1e-6)
    assert ratio(session, RGW, 1) == 1.0
    more = 0
    for pool in (RGW, RBD):
        allocated, data_stored = rows(session)[pool, 0]
        more += allocated - data_stored
    assert after[0] - before[0] == pytest.approx(more, abs=4)
    assert {osd for osd in after if after[osd] != before[osd]} == {0, 3}
    statfs = session.cluster.usage[0].statfs()
    assert statfs["allocated"] - statfs["data_stored"] == pytest.approx(more, abs=4)


def test_an_optimized_pool(session: Any) -> None:
    run(session, "sim pool optimize rgw 16K")
    cluster = session.cluster
    pool = cluster.map.pools[RGW]
    assert "ec_optimizations" in pool["flags_names"] and pool["nonprimary_shards"] == "{1,2,3}"
    ratios = cluster.shard_ratios.positions[RGW]
    first, second, third, least, *parity = ratios
    assert parity == [first, first] and first == second > third > least == 0.0
    stored: Dict[int, int] = {}
    for pg in cluster.pgs_of(RGW):
        for position, osd in enumerate(pg.held):
            stored[osd] = stored.get(osd, 0) + int(pg.shard.data * ratios[position])
    found = rows(session)
    for osd, count in stored.items():
        assert found[RGW, osd][1] == count
