"""OSDs on which shards take another size: bytes for people are those of the device."""
from __future__ import annotations

import pytest
from tests.report.explanations import looked_at
from tests.snapshot.test_osd_factors import SIZE, odd_cluster
from tests.snapshot.test_position_ratios import optimized_cluster
from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB

from equilibrium_mgr.planner.refusal_census import RefusalCount
from equilibrium_mgr.report.explain.advice import numbers_of
from equilibrium_mgr.report.explain.reasons import ExplainContext
from equilibrium_mgr.snapshot import reason_codes as codes
from equilibrium_mgr.what_if.failure import Failure, placement
from equilibrium_mgr.what_if.recovery import recover

ODD = 0


def weighed_down() -> Cluster:
    """The odd OSD has half its CRUSH weight."""
    cluster = odd_cluster()
    for bucket in cluster.crush["buckets"]:
        for item in bucket["items"]:
            if item["id"] == ODD:
                item["weight"] //= 2
    return cluster


def leave(cluster: Cluster, osd: int, free: int) -> None:
    """Makes an OSD so small that this is what it has below backfillfull."""
    cluster.osd(osd, size=int((cluster.used_bytes(osd) + free) / 0.9))


def test_the_weight_that_gives_an_osd_its_whole_size_again() -> None:
    harness = looked_at(weighed_down())
    status = harness.balancer.status
    assert status.view is not None
    snapshot = status.view.snapshot
    assert snapshot.osds[ODD].share == pytest.approx(0.5) and snapshot.osds[ODD].size_factor > 1.0
    found = RefusalCount(codes.REWEIGHT, 1, 1, ("1.0", 5, ODD), {1: 1}, (ODD,))
    numbers = numbers_of(codes.REWEIGHT, found, ExplainContext(
        status.view, status, harness.settings(), now=harness.now))
    assert (numbers["held_osd"], numbers["weight"]) == (ODD, f"{SIZE / (1 << 40):.5f}")


def test_what_a_failure_has_copied_and_what_fits() -> None:
    """A shard of pool 1 is four times as large on the odd OSD; it had fitted by its mean size."""
    cluster = odd_cluster()
    pgid, up = next((p, up) for p, up in sorted(cluster.up.items())
                    if p.startswith("1.") and 7 in up and ODD not in up)
    size = 4 * cluster.data_bytes(pgid)
    after = {pgid: tuple(ODD if osd == 7 else osd for osd in up)}
    for free, fits in ((size + GIB // 10, True), (size - GIB // 10, False)):
        leave(cluster, ODD, free)
        found = recover(placement(cluster.snapshot()), Failure("it", "host", frozenset((7,))),
                        after)
        assert found.copied_bytes == pytest.approx(size, rel=0.01)
        assert (pgid not in found.too_full) == fits


@pytest.mark.parametrize(("position", "fits"), [(0, False), (1, True)])
def test_a_shard_without_data_fits_anywhere(position: int, fits: bool) -> None:
    """In an EC-optimized pool of small objects."""
    cluster = optimized_cluster()
    pgid, up = next(iter(cluster.up.items()))
    target = next(osd for osd in cluster.osds if osd not in up)
    leave(cluster, target, GIB // 100)
    after = {pgid: tuple(target if i == position else osd for i, osd in enumerate(up))}
    found = recover(placement(cluster.snapshot()),
                    Failure("it", "host", frozenset((up[position],))), after)
    assert (pgid not in found.too_full) == fits
