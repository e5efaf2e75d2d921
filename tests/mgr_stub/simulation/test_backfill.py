"""Backfill in virtual time and its statistics."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.simulation import statistics
from mgr_stub.simulation.simulation import Simulation
from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import used
from tests.support.units import GIB

PG_BYTES = 256 * clusters.OBJECT


def two_pgs() -> Dict[str, Any]:
    return clusters.state([clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [1, 0, 3])])


def test_shards_of_a_pg_are_copied_together(make_session: Callable[..., Any]) -> None:
    """Each object is sent to all targets of its PG before the next one
    (PrimaryLogPG::recover_backfill): the slowest target sets the pace."""
    pgs = [clusters.pg("4.0", [0, 1, 2]), clusters.pg("4.1", [3, 2, 1])]
    session = make_session(clusters.state(pgs, pools=[clusters.ERASURE]))
    session.command("config set osd osd_max_backfills 4")
    session.command("osd pg-upmap-items 4.0 0 4 1 5")
    session.command("osd pg-upmap-items 4.1 3 4")     # osd.4 has two to take, osd.5 one
    session.command("sim run 5s")
    pg = session.cluster.pgs["4.0"]
    here = session.mgr.get("pg_progress")["pgs"][pg.pgid]
    one, other = (transfer.missing for transfer in pg.transfers.values())
    assert one == other and 0.0 < one < 1.0
    assert here["num_bytes_recovered"] == pytest.approx((1.0 - one) * PG_BYTES, rel=0.01)


def test_a_target_that_is_behind_gets_its_objects_first(make_session: Callable[..., Any]) -> None:
    """The others wait until it has as much (PrimaryLogPG::recover_backfill)."""
    session = make_session(two_pgs())
    session.command("osd pg-upmap-items 2.0 2 4")
    session.command("sim run 4s")
    session.command("osd pg-upmap-items 2.0 2 4 1 5")
    session.command("sim run 2s")
    one, other = (session.cluster.pgs["2.0"].transfers[0, target] for target in (4, 5))
    had = {transfer.target: transfer.copied for transfer in (one, other)}
    recovered = session.cluster.pgs["2.0"].recovered()
    assert 0.0 == had[4] - one.copied < had[5] < had[4]
    session.command("sim run 1s")
    assert one.copied == had[4] and had[5] < other.copied
    assert session.cluster.pgs["2.0"].recovered() - recovered == pytest.approx(
        other.copied - had[5], rel=0.01)
    session.command("sim run 5s")
    assert one.copied == pytest.approx(other.copied, abs=2) and one.copied > had[4]
    session.command("sim run idle")
    assert session.cluster.pgs["2.0"].held == (0, 5, 4)


def test_an_osd_with_a_rate_of_its_own_slows_its_transfers(make_session: Callable[..., Any]) -> None:
    session = make_session(two_pgs())
    for line in ("sim backfill rate 100M", "sim backfill rate 1M 4",
                 "osd pg-upmap-items 2.0 2 4", "osd pg-upmap-items 2.1 3 5", "sim run 20s"):
        assert session.command(line)[0] == 0, line
    slow, other = (session.cluster.pgs[pgid].remaining_bytes() for pgid in ("2.0", "2.1"))
    assert PG_BYTES - 20 * 2 ** 20 <= slow < PG_BYTES and other == 0
    session.command("sim backfill rate 100M")   # of every OSD, without exceptions
    session.command("sim run 20s")
    assert not session.cluster.pgs["2.0"].transfers
    assert session.command("sim backfill rate 1M 99")[0] == -2


def test_cancelled_move_leaves_no_bytes(make_session: Callable[..., Any]) -> None:
    session = make_session(two_pgs())
    before = used(session)
    session.command("osd pg-upmap-items 2.0 2 4")
    session.command("sim run 5s")
    assert used(session)[4] > before[4]
    session.command("osd rm-pg-upmap-items 2.0")
    assert used(session) == before
    session.command("sim run idle")
    assert used(session) == before
    assert session.cluster.map.pg_temp == {}
    assert statistics.osd_stats(session.cluster)[4]["num_pgs"] == 0


def test_backfill_of_a_state_file_continues() -> None:
    state = clusters.state([clusters.pg("2.0", [0, 1, 4], acting=[0, 1, 2], misplaced=64,
                                        state="active+remapped+backfilling")],
                           items=[("2.0", [(2, 4)])])
    cluster = build_cluster(state, 16)
    simulation = Simulation(cluster)
    before = cluster.usage[4].used
    assert statistics.pg_status(cluster)["misplaced_objects"] == 64
    simulation.advance(3600)
    # three quarters have arrived and are in the file's figures
    assert cluster.usage[4].used - before == pytest.approx(PG_BYTES / 4, rel=0.01)
    assert cluster.map.pg_temp == {}
    assert pg_reports.state_of(cluster, cluster.pgs["2.0"]) == "active+clean"


def test_pool_removed_in_the_middle_of_a_backfill(make_session: Callable[..., Any]) -> None:
    session = make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("3.0", [0, 2, 4])],
        pools=[clusters.REPLICATED, clusters.BY_HOST]))
    session.command("osd pg-upmap-items 2.0 2 4")
    session.command("sim run 5s")
    assert session.command("sim pool rm rep")[0] == 0
    assert session.command("sim pool rm rep")[0] == -2
    session.command("sim run idle")
    assert list(session.cluster.pgs) == ["3.0"]
    assert session.cluster.map.upmap_items == {}
    assert {osd: usage.used - GIB for osd, usage in session.cluster.usage.items()} == {
        0: PG_BYTES, 1: 0, 2: PG_BYTES, 3: 0, 4: PG_BYTES, 5: 0}
    with pytest.raises(SystemError):
        session.mgr.get_osdmap().map_pool_pgs_up(2)
