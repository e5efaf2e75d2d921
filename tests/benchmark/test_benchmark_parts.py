"""The benchmark's own parts: its scorer on placements worked out by hand, and its made clusters."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import HIGHEST_FILL, make_cluster
from tests.benchmark.measure import Job, measure
from tests.benchmark.report import cluster_table
from tests.benchmark.scoring import (
    changed_items, current_up, fill, least_moved_bytes, score)
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB, MIB

from mgr_stub.console.session import Session


def two_pools() -> Cluster:
    """OSDs 0 to 3 of 100 GiB use 60, 40, 20 and (nearly) 0; pool 2 is next to nothing."""
    return (Cluster(hosts(4)).pool(1, size=2).pool(2, size=2)
            .pg("1.0", [0, 1], num_bytes=40 * GIB).pg("1.1", [0, 2], num_bytes=20 * GIB)
            .pg("2.0", [1, 3], num_bytes=MIB))


def test_a_move_is_scored_as_worked_out_by_hand() -> None:
    result = score(two_pools().snapshot(), {"1.0": ((0, 3),)})
    assert result.highest["hdd"] == pytest.approx((40 * GIB + MIB) / (100 * GIB))
    # before, OSD 0 holds two of four shards and has 35 GiB to full_ratio, which end after 35 GiB of
    # new data (half a shard each); afterwards OSDs 1 and 3, with one shard and 55 GiB less a MiB
    assert result.gained_data_bytes == pytest.approx((110 - 35) * GIB - 2 * MIB)
    assert result.worst_data_pool_bytes == result.gained_data_bytes
    assert result.gained_all_bytes == pytest.approx(result.gained_data_bytes)  # OSD 1 limits pool 2
    assert (result.moved_bytes, result.shard_moves) == (40 * GIB, 1)
    assert (result.item_pairs, result.item_pgs, result.broken_pgs) == (1, 1, 0)
    assert result.free_data_bytes == pytest.approx(110 * GIB, rel=1e-3)
    # pool 2 is next to nothing: the room is what fits into pool 1
    assert result.room_bytes == pytest.approx(110 * GIB, rel=1e-3)
    before = fill(two_pools().snapshot(), current_up(two_pools().snapshot())).room
    assert before == pytest.approx(35 * GIB, rel=1e-3)


def test_the_least_bytes_are_those_above_the_highest_utilization_reached() -> None:
    snapshot = two_pools().snapshot()
    assert least_moved_bytes(snapshot, {"hdd": 0.35}) == pytest.approx((25 + 5) * GIB, abs=2 * MIB)
    assert least_moved_bytes(snapshot, {"hdd": 0.6}) == least_moved_bytes(snapshot, {}) == 0.0
    result = score(snapshot, {"1.0": ((0, 3),)})
    assert least_moved_bytes(snapshot, result.highest) <= result.moved_bytes


def test_an_item_taken_away_sends_the_shard_home() -> None:
    cluster = (Cluster(hosts(3)).pool(1, size=2)
               .pg("1.0", [0, 1], num_bytes=GIB, items=[(2, 1)]))
    snapshot = cluster.snapshot()
    items = changed_items(snapshot, [("1.0", ())])
    result = score(snapshot, items)
    assert items == {} and result.item_pairs == 0
    assert (result.moved_bytes, result.shard_moves) == (GIB, 1)


def test_shards_of_an_erasure_coded_pool_weigh_a_part_and_hold_more() -> None:
    cluster = (Cluster(hosts(4), {0: "take default; chooseleaf indep 0 host; emit"})
               .pool(1, size=3, k=2).pg("1.0", [0, 1, 2], num_bytes=40 * GIB)
               .osd(0, used=50 * GIB))
    result = score(cluster.snapshot(), {"1.0": ((0, 3),)})
    assert result.moved_bytes == 20 * GIB
    assert result.gained_all_bytes == pytest.approx(2 * (75 - 45) * GIB)


def test_a_placement_that_the_rule_forbids_is_counted() -> None:
    cluster = Cluster(hosts(3, 2)).pool(1, size=2).pg("1.0", [0, 2], num_bytes=GIB)
    assert score(cluster.snapshot(), {"1.0": ((2, 1),)}).broken_pgs == 1


@pytest.mark.parametrize("name", ["hybrid", "racks", "grown"])
def test_made_clusters_keep_their_rules_and_are_filled(name: str) -> None:
    snapshot = make_cluster(name).snapshot()
    assert not snapshot.skipped
    fullest = max(osd.used_bytes / osd.size_bytes for osd in snapshot.osds.values())
    assert fullest == pytest.approx(HIGHEST_FILL, abs=0.005)


def test_a_made_cluster_as_a_state_file_is_the_same_cluster(tmp_path: Path) -> None:
    cluster = make_cluster("giant")
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state_of(cluster)))
    read, made = Session.from_state(str(path)).module.gateway.snapshot(), cluster.snapshot()
    assert {o.id: (o.size_bytes, o.used_bytes) for o in read.osds.values()} == {
        o.id: (o.size_bytes, o.used_bytes) for o in made.osds.values()}
    assert all((pg.raw, pg.up) == (made.pgs[pgid].raw, made.pgs[pgid].up)
               and pg.shard_bytes == pytest.approx(made.pgs[pgid].shard_bytes, rel=1e-6)
               for pgid, pg in read.pgs.items())


def test_a_cluster_is_measured_with_its_bounds() -> None:
    found = measure(Job("demo", "demo", ""))
    assert found["equilibrium"]["free_data_bytes"] <= found["free_data_bound_bytes"]
    assert found["equilibrium"]["wrong_predictions"] == {}
    assert "upmap items in the end" in cluster_table(found)
