"""What an hour costs in each state: looks at the whole cluster, plans, writes, questions."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from tests.support.clusters.unit_cluster import Cluster
from tests.support.fakes import Harness
from tests.support.loop_driver import Loop
from tests.support.rounds import idle, uneven
from tests.support.units import GIB


def epochs(cluster: Cluster) -> Any:
    """Somebody makes an epoch a minute: blocklists, snapshots, flags that stop nothing."""
    def each_minute(_minute: int) -> None:
        cluster.epoch += 1
    return each_minute


@pytest.mark.parametrize("period", [1, 3, 7])
def test_osd_that_flaps_for_hours(period: int) -> None:
    """Out for as long as in: the cluster is looked at where that lasts, never more often than
    six times an hour."""
    harness = idle(uneven())
    cluster = harness.cluster
    before = harness.looks

    def flap(minute: int) -> None:
        out = minute // period % 2 == 0
        fields: Dict[str, Any] = {"in": 0, "weight": 0.0} if out else {"in": 1, "weight": 1.0}
        cluster.osd(2, **fields)
        cluster.epoch += 1
    loop = Loop(harness)
    for _ in range(4):
        loop.run(3600, flap)
        harness.jobs.run()
    assert harness.looks - before <= 4 * 12


def test_deep_scrub_that_tells_of_omap_ends_a_rest() -> None:
    """The PGs were left alone for it, and nothing else changes: neither epoch nor utilization."""
    cluster = uneven(num_bytes=0)
    cluster.osd(0, used=60 * GIB)
    harness = idle(cluster)
    assert harness.state == "stuck"
    before = harness.looks
    Loop(harness).run(3600)
    assert harness.looks - before == 0
    harness.report(*cluster.records, omap_bytes=5 * GIB)
    Loop(harness).run(660)
    assert harness.looks - before >= 1
    assert harness.state == "planning"


@pytest.mark.parametrize("why", ["pg_num", "no reports"])
def test_wait_for_the_cluster_is_looked_at_every_ten_minutes(why: str) -> None:
    """A change of pg_num takes days; OSDs may not report for as long."""
    cluster = uneven()
    if why == "pg_num":
        cluster.pools[1]["pg_num_target"] = 32
    else:
        cluster.without_statistics = list(cluster.osds)
    harness = Harness(cluster, active=True)
    loop = Loop(harness).run(1800, lambda _minute: (harness.jobs.run(), None)[1])
    before = harness.looks
    loop.run(3 * 3600, epochs(cluster))
    assert harness.state == "waiting"
    assert harness.looks - before <= 3 * 6 + 1
    cluster.without_statistics, cluster.pools[1]["pg_num_target"] = [], 12
    loop.run(1300, lambda _minute: (harness.jobs.run(), None)[1])
    assert harness.sent
