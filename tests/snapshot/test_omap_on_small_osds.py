"""PGs of omap stay where OSDs are so small that RocksDB's own files come and go by more."""
from __future__ import annotations

from typing import Dict, Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB, MIB

from equilibrium_mgr.snapshot import immovable_reasons as reasons
from equilibrium_mgr.snapshot.builder import build_snapshot

SMALL = reasons.OMAP_ON_SMALL_OSD


def immovable(cluster: Cluster, least: int = 50 * GIB) -> Dict[str, Optional[str]]:
    snapshot = build_snapshot(cluster.reading()._replace(min_omap_osd_bytes=least))
    return {pgid: pg.immovable for pgid, pg in snapshot.pgs.items()}


def mixed() -> Cluster:
    """OSD 0 has 2 GiB, the others 100."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.osd(0, size=2 * GIB)
    cluster.pg("1.0", [0, 1], num_bytes=0, objects=60, omap=25 * MIB)
    cluster.pg("1.1", [1, 2], num_bytes=0, objects=60, omap=25 * MIB)
    cluster.pg("1.2", [0, 3], num_bytes=500 * MIB, objects=60, omap=25 * MIB)
    cluster.pg("1.3", [0, 2], num_bytes=0, objects=0)
    return cluster


def test_omap_on_small_osds_stays() -> None:
    assert immovable(mixed()) == {"1.0": SMALL, "1.1": None, "1.2": None, "1.3": None}


@pytest.mark.parametrize("least", [0, GIB])
def test_an_operator_who_knows_better_may_have_it_moved(least: int) -> None:
    assert set(immovable(mixed(), least).values()) == {None}


@pytest.mark.parametrize("full", [0, 1])
def test_full_osds_are_relieved_all_the_same(full: int) -> None:
    cluster = mixed()
    cluster.osd(full, used=int(0.88 * cluster.sizes[full]))
    assert immovable(cluster)["1.0"] is None
