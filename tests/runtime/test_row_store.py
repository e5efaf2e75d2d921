"""One row for each PG: as a dict of named tuples to its users, nothing to the garbage collector."""
from __future__ import annotations

import gc
from typing import Iterator

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.shard_index import ShardIndex
from equilibrium_mgr.runtime.row_store import Rows, RowsByNumber
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import PgStateCounts
from equilibrium_mgr.snapshot.statistics.pg_statistics import PgStatistics

PGS = 3000


def made() -> Rows[PgStateCounts]:
    rows: Rows[PgStateCounts] = Rows(PgStateCounts)
    rows["1.0"] = PgStateCounts(1, 2)
    rows["1.1"] = PgStateCounts(3, 4)
    return rows


def test_rows_are_a_dict_of_named_tuples() -> None:
    rows = made()
    assert rows["1.1"].degraded == 4 and isinstance(rows["1.1"], PgStateCounts)
    assert rows.get("1.0") == (1, 2) and rows.get("9.9") is None and "9.9" not in rows
    assert list(rows) == ["1.0", "1.1"] and len(rows) == len(rows.values()) == 2
    assert [row.inactive for row in rows.values()] == [1, 3]
    assert {pgid: row.degraded for pgid, row in rows.items()} == {"1.0": 2, "1.1": 4}
    assert list(rows.items()) == list(rows.items()) and ("1.0", (1, 2)) in rows.items()
    assert rows == {"1.0": PgStateCounts(1, 2), "1.1": PgStateCounts(3, 4)} == dict(rows)
    del rows["1.0"]
    assert len(rows) == 1
    with pytest.raises(KeyError):
        rows["1.0"]


def test_rows_by_number() -> None:
    rows = RowsByNumber({"1.0": PgStateCounts(3, 4), "1.1": PgStateCounts(1, 2)})
    rows.append("1.1")
    assert rows[0].degraded == 2 and [row.inactive for row in rows] == [1] and len(rows) == 1
    with pytest.raises(IndexError):
        rows[1]


@pytest.fixture
def grown() -> Iterator[object]:
    """Tracked objects more than at the start, after collections have looked at all."""
    def tracked() -> int:
        for _ in range(3):
            gc.collect()
        return len(gc.get_objects())
    start = tracked()
    yield lambda: tracked() - start


def large() -> Cluster:
    cluster = Cluster(hosts(12)).pool(1, size=3)
    for ps in range(PGS):
        cluster.pg(f"1.{ps:x}", [ps % 12, (ps + 1) % 12, (ps + 5) % 12], objects=9)
    return cluster


READING = large().reading()


def test_a_snapshot_leaves_the_collector_little(grown: object) -> None:
    builder = SnapshotBuilder()
    snapshots = [builder.build(READING) for _ in range(2)]
    assert grown() < PGS / 10 and len(snapshots[1].pgs) == PGS  # type: ignore[operator]


@pytest.mark.full
def test_so_do_statistics(grown: object) -> None:
    progress = {f"1.{ps:x}": {"num_bytes": ps, "state": "active+clean"} for ps in range(PGS)}
    before = grown()  # type: ignore[operator]
    statistics = PgStatistics()
    statistics.read_full([{"pgid": pgid, "stat_sum": {"num_objects": 3}} for pgid in progress], [])
    records = statistics.records(progress, [], {})
    assert grown() - before < PGS / 10 and len(records) == PGS  # type: ignore[operator]


@pytest.mark.full
def test_and_the_board_of_a_plan(grown: object) -> None:
    snapshot = SnapshotBuilder().build(READING)
    before = grown()  # type: ignore[operator]
    placement = PlacementState(snapshot, PlanOptions())
    shard_index = ShardIndex(placement)
    for osd in range(12):
        shard_index.by_group(osd)
    assert grown() - before < PGS / 10 and len(placement.pgs) == PGS  # type: ignore[operator]
