"""OSDs on which shards take more or less, and pools whose shards differ by position."""
from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

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


def test_ratios_of_the_formula() -> None:
    """20.2.4 stored 12,288 B at positions 0, 4 and 5 of objects of 10,000 B; 4,096 B at 0, 1, 2, 4
    and 5 with chunks of 4 KiB."""
    kept = [round(ratio * 10_000 / 4) for ratio in position_ratios(6, 4, 16384, 10_000)]
    assert kept == [12288, 0, 0, 0, 12288, 12288]
    kept = [round(ratio * 10_000 / 4) for ratio in position_ratios(6, 4, 4096, 10_000)]
    assert kept == [4096, 4096, 4096, 0, 4096, 4096]


def test_an_osd_that_allocates_more(session: Any) -> None:
    before = used(session)
    run(session, "sim osd allocation 1.5 0 3")
    run(session, "sim osd allocation 2 0 pool=rbd")
    shown, after = rows(session), used(session)
    assert shown[RGW, 0][0] == pytest.approx(1.5 * shown[RGW, 0][1], rel=1e-6)
    assert shown[RBD, 0][0] == pytest.approx(2.0 * shown[RBD, 0][1], rel=1e-6)
    assert shown[RBD, 3][0] == pytest.approx(1.5 * shown[RBD, 3][1], rel=1e-6)
    assert shown[RGW, 1][0] == shown[RGW, 1][1]
    more = shown[RGW, 0][0] - shown[RGW, 0][1] + shown[RBD, 0][0] - shown[RBD, 0][1]
    assert after[0] - before[0] == pytest.approx(more, abs=4)
    assert {osd for osd in after if after[osd] != before[osd]} == {0, 3}
    statfs = session.cluster.usage[0].statfs()
    assert statfs["allocated"] - statfs["data_stored"] == pytest.approx(more, abs=4)


def test_an_optimized_pool(session: Any) -> None:
    run(session, "sim pool optimize rgw 16K")
    pool = session.cluster.map.pools[RGW]
    assert "ec_optimizations" in pool["flags_names"] and pool["nonprimary_shards"] == "{1,2,3}"
    ratios = session.cluster.shard_ratios.positions[RGW]
    assert ratios[0] == ratios[4] == ratios[5] == ratios[1] > ratios[2] > ratios[3] == 0.0
    stored: Dict[int, int] = {}
    for pg in session.cluster.pgs_of(RGW):
        for position, osd in enumerate(pg.held):
            stored[osd] = stored.get(osd, 0) + int(pg.shard.data * ratios[position])
    assert {osd: rows(session)[RGW, osd][1] for osd in stored} == stored
