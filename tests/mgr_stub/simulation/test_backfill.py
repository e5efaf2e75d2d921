"""Backfill in virtual time and its statistics."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.simulation import statistics
from mgr_stub.simulation.simulation import Simulation
from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run, used
from tests.support.units import GIB

PG_BYTES = 256 * clusters.OBJECT


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [1, 0, 3])]))


def test_shards_of_a_pg_are_copied_together(make_session: Callable[..., Any]) -> None:
    """Each object is sent to all targets of its PG before the next one
    (PrimaryLogPG::recover_backfill): the slowest target sets the pace."""
    pgs = [clusters.pg("4.0", [0, 1, 2]), clusters.pg("4.1", [3, 2, 1])]
    session = make_session(clusters.state(pgs, pools=[clusters.ERASURE]))
    run(session, "config set osd osd_max_backfills 4", "osd pg-upmap-items 4.0 0 4 1 5",
        "osd pg-upmap-items 4.1 3 4", "sim run 5s")     # osd.4 has two to take, osd.5 one
    here = session.mgr.get("pg_progress")["pgs"]["4.0"]
    one, other = session.cluster.pgs["4.0"].transfers.values()
    assert 0.0 < one.missing == other.missing < 1.0
    assert here["num_bytes_recovered"] == pytest.approx((1.0 - one.missing) * PG_BYTES, rel=0.01)


def test_a_target_that_is_behind_gets_its_objects_first(session: Any) -> None:
    """The others wait until it has as much (PrimaryLogPG::recover_backfill)."""
    pg = session.cluster.pgs["2.0"]
    run(session, "osd pg-upmap-items 2.0 2 4", "sim run 4s", "osd pg-upmap-items 2.0 2 4 1 5",
        "sim run 2s")
    first, late = pg.transfers[0, 4], pg.transfers[0, 5]
    had, begun, recovered = first.copied, late.copied, pg.recovered()
    assert 0.0 < begun < had
    run(session, "sim run 1s")
    assert first.copied == had and begun < late.copied
    assert pg.recovered() - recovered == pytest.approx(late.copied - begun, rel=0.01)
    run(session, "sim run 5s")
    assert had < first.copied == pytest.approx(late.copied, abs=2)
    run(session, "sim run idle")
    assert pg.held == (0, 5, 4)


def test_an_osd_with_a_rate_of_its_own_slows_its_transfers(session: Any) -> None:
    run(session, "sim backfill rate 100M", "sim backfill rate 1M 4",
        "osd pg-upmap-items 2.0 2 4", "osd pg-upmap-items 2.1 3 5", "sim run 20s")
    slow, other = session.cluster.pgs["2.0"], session.cluster.pgs["2.1"]
    assert PG_BYTES - 20 * 2 ** 20 <= slow.remaining_bytes() < PG_BYTES
    assert other.remaining_bytes() == 0
    run(session, "sim backfill rate 100M", "sim run 20s")   # of every OSD, without exceptions
    assert not slow.transfers
    assert session.command("sim backfill rate 1M 99")[0] == -2


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


def test_pool_removed_in_the_middle_of_a_backfill(make_session: Callable[..., Any]) -> None:
    pgs = [clusters.pg("2.0", [0, 1, 2]), clusters.pg("3.0", [0, 2, 4])]
    session = make_session(clusters.state(pgs, pools=[clusters.REPLICATED, clusters.BY_HOST]))
    run(session, "osd pg-upmap-items 2.0 2 4", "sim run 5s", "sim pool rm rep")
    assert session.command("sim pool rm rep")[0] == -2
    run(session, "sim run idle")
    assert list(session.cluster.pgs) == ["3.0"]
    assert session.cluster.map.upmap_items == {}
    empty, full = GIB, GIB + PG_BYTES
    assert list(used(session).values()) == [full, empty, full, empty, full, empty]
    with pytest.raises(SystemError):
        session.mgr.get_osdmap().map_pool_pgs_up(2)
