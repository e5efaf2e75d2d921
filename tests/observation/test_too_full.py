"""PGs that stand still for a full OSD are told with the OSD and the command that helps."""
from __future__ import annotations

from typing import Any

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.observation.cluster_view import find_too_full


def moving(state: str) -> Cluster:
    """1.0 moves from osd.0 to osd.2."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    return cluster.pg("1.0", "2 1", 2 * GIB, objects=10, acting="0 1", state=state)


def told(cluster: Cluster) -> Any:
    snapshot = cluster.snapshot()
    return [(entry.sentence(), entry.command(snapshot.full_ratio))
            for entry in find_too_full(snapshot)]


def test_source_above_full_ratio_keeps_our_own_move_from_going_on() -> None:
    cluster = moving("active+recovery_toofull+undersized+remapped").osd(0, used=96 * GIB)
    assert told(cluster) == [(
        "pg 1.0 in recovery_toofull: osd.0 is too full, at 96.00% with full_ratio 95.00%",
        "ceph osd set-full-ratio 0.97")]


def test_target_that_would_pass_backfillfull() -> None:
    cluster = moving("active+remapped+backfill_toofull").osd(2, used=int(88.5 * GIB))
    entry, = find_too_full(cluster.snapshot())
    assert (entry.osd, entry.ratio_name) == (2, "backfillfull_ratio")
    assert entry.command(0.95) == "ceph osd set-backfillfull-ratio 0.91"
    assert entry.command(0.92) is None   # too near to full


def test_statistics_that_show_no_full_osd() -> None:
    """Those of the OSD may be older than the PG's: the fullest is named."""
    entry, = find_too_full(moving("active+recovery_toofull+remapped").osd(
        1, used=94 * GIB).snapshot())
    assert (entry.osd, entry.command(0.95)) == (1, "ceph osd set-full-ratio 0.96")


def test_nothing_is_told_of_what_goes_on() -> None:
    assert told(moving("active+remapped+backfilling").osd(0, used=96 * GIB)) == []
