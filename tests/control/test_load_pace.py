"""When the load of OSDs is acted on: seldom, and never beside anything that comes first."""
from __future__ import annotations

from typing import Any

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rules import OSD_RULE
from tests.support.units import GIB, MIB

from equilibrium_mgr.snapshot.model import PoolLoad, Snapshot

_DAY = 86_400.0
_ON = {"active": True, "balance_load": True}


def balanced(**options: Any) -> Harness:
    """Three OSDs, equally full; all PGs of the pool that clients use are on osd.0."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1).pool(2, size=1)
    for ps in range(12):
        cluster.pg(f"1.{ps:x}", [ps % 3], num_bytes=5 * GIB, objects=10)
    for ps in range(8):
        cluster.pg(f"2.{ps:x}", [0], num_bytes=MIB, objects=10)
    harness = Harness(cluster, **{**_ON, **options})
    gateway = harness.gateway
    read = gateway.snapshot

    def snapshot() -> Snapshot:
        return read()._replace(loads={2: PoolLoad(0.0, 0.01)})
    gateway.snapshot = snapshot   # type: ignore[method-assign]
    harness.plan()
    assert harness.round(60.0) == "balanced"
    return harness


def sent_after(harness: Harness, seconds: float) -> int:
    """PGs that were sent by then, and in the round after a plan."""
    harness.plan(seconds)
    harness.round(60.0)
    return len(harness.sent)


def test_the_busiest_osd_gives_once_a_day() -> None:
    harness = balanced()
    assert sent_after(harness, _DAY / 2.0) == 0
    sent = sent_after(harness, _DAY / 2.0)
    assert 4 <= sent <= 6
    assert all(pgid.startswith("2.") for pgid in harness.sent)
    harness.arrive()
    assert sent_after(harness, _DAY / 2.0) == sent


def test_data_that_has_changed_meanwhile_hides_no_load() -> None:
    """As on every cluster in use: plans for drift alone move few bytes."""
    harness = balanced()
    sent_after(harness, _DAY / 2.0)
    harness.gateway.cluster.pg("1.1", [1], num_bytes=6 * GIB, objects=10)
    assert sent_after(harness, _DAY / 2.0) >= 4


@pytest.mark.parametrize("options", [
    {"balance_load": False}, {"min_load_gain": 1.9}], ids=["off", "gains too little"])
def test_options_say_so(options: Any) -> None:
    assert sent_after(balanced(**options), 2.0 * _DAY) == 0
