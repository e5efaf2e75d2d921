"""Backfill that a state file has begun; other backfills are in stories."""

from __future__ import annotations

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.simulation import statistics
from mgr_stub.simulation.simulation import Simulation
from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters

PG_BYTES = 256 * clusters.OBJECT


def test_backfill_of_a_state_file_continues() -> None:
    pg = clusters.pg("2.0", [0, 1, 4], acting=[0, 1, 2], misplaced=64,
                     state="active+remapped+backfilling")
    cluster = build_cluster(clusters.state([pg], items=[("2.0", [(2, 4)])]), 16)
    simulation = Simulation(cluster)
    before = cluster.usage[4].used
    assert statistics.pg_status(cluster)["misplaced_objects"] == 64
    simulation.advance(3600)
    # three quarters have arrived and are in the file's figures
    assert cluster.usage[4].used - before == pytest.approx(PG_BYTES / 4, rel=0.01)
    assert cluster.map.pg_temp == {}
    assert pg_reports.state_of(cluster, cluster.pgs["2.0"]) == "active+clean"
