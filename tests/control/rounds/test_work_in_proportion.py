"""What an hour costs in each state: looks at the whole cluster, plans, writes, questions."""
from __future__ import annotations

from typing import Any

import pytest
from tests.support.clusters.unit_cluster import Cluster
from tests.support.fakes import Harness
from tests.support.loop_driver import Loop
from tests.support.rounds import idle, kept, small_plan, uneven
from tests.support.units import GIB

from equilibrium_mgr.runtime.job_thread import Counts


def epochs(cluster: Cluster) -> Any:
    """Somebody makes an epoch a minute: blocklists, snapshots, flags that stop nothing."""
    def each_minute(_minute: int) -> None:
        cluster.epoch += 1
    return each_minute


def spent(harness: Harness, before: Counts) -> Counts:
    return Counts(*(b - a for a, b in zip(before, harness.gateway.counts)))


def test_readers_get_one_look_each_and_nothing_goes_on_by_itself() -> None:
    harness = Harness(uneven())
    loop = Loop(harness).run(600)
    for hour in range(3):
        harness.balancer.request_observation()
        harness.balancer.request_observation()
        loop.run(3600, epochs(harness.gateway.cluster))
        assert harness.gateway.counts.full_readings == hour + 1
    assert harness.balancer.state == "off" and harness.balancer.status.view is not None


def test_reader_s_look_that_fails_is_not_tried_again_by_itself() -> None:
    harness = Harness(uneven())
    harness.gateway.not_ready = "the mgr has not received the statistics of all PGs yet"
    harness.balancer.request_observation()
    Loop(harness).run(600)
    assert harness.gateway.counts.full_readings == 1 and harness.balancer.state == "off"


def test_deep_scrub_that_tells_of_omap_ends_a_rest() -> None:
    """The PGs were left alone for it, and nothing else changes: neither epoch nor utilization."""
    cluster = uneven(num_bytes=0)
    cluster.osd(0, used=60 * GIB)
    harness = idle(cluster)
    assert harness.balancer.state == "stuck"
    before = harness.gateway.counts
    Loop(harness).run(3600)
    assert spent(harness, before).full_readings == 0
    for pgid, record in cluster.records.items():
        cluster.records[pgid] = record._replace(omap_bytes=5 * GIB)
    Loop(harness).run(660)
    assert spent(harness, before).full_readings >= 1 and harness.balancer.state == "planning"


def test_options_that_change_end_a_rest_at_once() -> None:
    harness = idle(uneven())
    full_readings = harness.gateway.full_readings
    harness.options["aim"] = "even"
    harness.wake()
    Loop(harness).run(61)
    assert harness.gateway.full_readings == full_readings + 1
    assert harness.balancer.state == "planning"


def test_walk_that_nothing_lets_go_is_looked_at_every_ten_minutes() -> None:
    """Its PGs are degraded for hours; that they still are stands in the summary."""
    cluster = uneven()
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "active+undersized+degraded", "count": 3}]}],
        "degraded_objects": 30, "degraded_total": 120}
    harness = Harness(cluster, max_wait=86_400)
    harness.balancer.execute("p", kept(harness, plan=small_plan(2)))
    loop = Loop(harness).run(3 * 3600, epochs(cluster))
    assert harness.balancer.state == "blocked" and harness.gateway.counts.full_readings <= 3 * 6 + 1
    cluster.pg_status = {}
    loop.run(61)
    assert harness.balancer.state == "moving"


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
    before = harness.gateway.counts
    loop.run(3 * 3600, epochs(cluster))
    assert harness.balancer.state == "waiting" and spent(harness, before).full_readings <= 3 * 6 + 1
    cluster.without_statistics, cluster.pools[1]["pg_num_target"] = [], 12
    loop.run(1300, lambda _minute: (harness.jobs.run(), None)[1])
    assert harness.gateway.sent
