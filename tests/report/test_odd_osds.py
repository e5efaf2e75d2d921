"""OSDs on which shards take another size: bytes for people are those of the device."""
from __future__ import annotations

import pytest
from tests.snapshot.test_osd_factors import odd_cluster
from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB

from equilibrium_mgr.plan.placement import placement
from equilibrium_mgr.what_if.failure import Failure, recover

ODD = 0


def leave(cluster: Cluster, osd: int, free: int) -> None:
    """Makes an OSD so small that this is what it has below backfillfull."""
    cluster.osd(osd, size=int((cluster.used_bytes(osd) + free) / 0.9))


def test_what_a_failure_has_copied_and_what_fits() -> None:
    """A shard of pool 1 is four times as large on the odd OSD; it had fitted by its mean size."""
    cluster = odd_cluster()
    pgid = min(pgid for pgid, up in cluster.up.items() if pgid[:2] == "1." and {7, ODD} & {
        *up} == {7})
    up = cluster.up[pgid]
    size = 4 * cluster.data_bytes(pgid)
    after = {pgid: tuple(ODD if osd == 7 else osd for osd in up)}
    for free, fits in ((size + GIB // 10, True), (size - GIB // 10, False)):
        leave(cluster, ODD, free)
        found = recover(placement(cluster.snapshot()), Failure("it", "host", frozenset((7,))),
                        after)
        assert found.copied_bytes == pytest.approx(size, rel=0.01)
        assert (pgid not in found.too_full) == fits
