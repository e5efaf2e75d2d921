"""Where nothing is to be done: balanced or stuck, how far from the bound, and what ends it."""
from __future__ import annotations

import re
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rounds import idle, run_until_idle
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


def pinned(pool: int = 1, beside: Any = None, classes: Any = None) -> Cluster:
    """Pool 1: twelve PGs of 5 GiB on osd.0; pool 2: two on each OSD. One pool's cannot be moved."""
    cluster = Cluster({**hosts(1, 2), **(beside or {})}, {0: OSD_RULE}, classes)
    cluster.pool(1, size=1).pool(2, size=1)
    for ps in range(12):
        cluster.pg(f"1.{ps:x}", "0", num_bytes=5 * GIB, objects=10)
    for ps in range(4):
        cluster.pg(f"2.{ps:x}", [ps % 2], num_bytes=GIB, objects=10)
    cluster.extra["pg_upmap"] = [{"pgid": pgid, "osds": up} for pgid, up in cluster.up.items()
                                 if pgid.startswith(f"{pool}.")]
    return cluster


def test_pools_that_must_not_be_moved_make_nobody_stuck() -> None:
    """Pool 1 is in nobody's way where balancing is limited to pool 2."""
    cluster = pinned()
    cluster.extra["pg_upmap"] = []
    harness = idle(cluster, pool_ids="2")
    assert harness.state == "balanced"
    assert set(harness.sent) <= {"2.0", "2.2"}
    assert re.search("; osd.0, .* is [0-2][.][0-9] points above what moves of the pools in pool_ids"
                     " could reach, no more than one whole shard$", harness.reason)


@pytest.mark.parametrize("options, named", [
    ({"device_classes": "ssd"}, "device_classes"), ({"device_classes": "HDD"}, "device_classes"),
    ({"pool_ids": "3"}, "pool_ids"), ({"pool_ids": "abc"}, "pool_ids")])
def test_options_that_exclude_everything_make_nobody_balanced(options: Any, named: str) -> None:
    harness = idle(pinned(), **options)
    assert harness.state == "stuck"
    assert named in harness.reason
    assert harness.sent == []


def test_bound_that_cannot_be_computed_stops_nobody() -> None:
    harness = Harness(pinned(pool=2), active=True)
    broken = harness.balancer.observer.compute_bounds = Mock(side_effect=KeyError("osd.7"))
    run_until_idle(harness)
    assert broken.called
    assert harness.sent
    assert (harness.state, harness.reason) == (
        "balanced", "no move improves the placement")
    assert harness.balancer.status.view is not None
    assert harness.balancer.status.view.bounds == {}
