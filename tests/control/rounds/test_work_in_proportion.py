"""What an hour costs in each state: looks at the whole cluster, plans, writes, questions."""
from __future__ import annotations

import random
from typing import Any, Dict

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


def test_off_costs_nothing_whatever_the_epoch_does() -> None:
    harness = Harness(uneven())
    Loop(harness).run(86_400, epochs(harness.gateway.cluster))
    assert harness.gateway.counts == Counts() and harness.kv.writes == []


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


@pytest.mark.parametrize("name", ["", "p"])
@pytest.mark.parametrize("guard", ["norebalance", "builtin", "no monitor", "start_delay"])
def test_standing_guard_is_all_that_is_looked_at(guard: str, name: str) -> None:
    harness = Harness(uneven(), active=not name,
                start_delay=86_400 if guard == "start_delay" else 0)
    if guard == "norebalance":
        harness.gateway.cluster.extra["flags"] = "norebalance"
    harness.gateway.builtin, harness.gateway.connected = guard == "builtin", guard != "no monitor"
    if name:
        harness.balancer.execute(name, kept(harness))
    loop = Loop(harness).run(4 * 3600, epochs(harness.gateway.cluster))
    assert harness.gateway.counts.full_readings == 0 and harness.gateway.counts.plans == 0
    assert harness.gateway.counts.summaries <= 245 and len(loop.delays) <= 245
    harness.options["start_delay"] = 0
    harness.gateway.cluster.extra.clear()
    harness.gateway.builtin, harness.gateway.connected = False, True
    harness.gateway.cluster.epoch += 1
    loop.run(121)
    assert harness.gateway.full_readings >= 1 and harness.balancer.state in ("planning", "moving")


def test_balanced_cluster_with_epochs_and_noise() -> None:
    harness = idle(uneven())
    cluster, rng = harness.gateway.cluster, random.Random(7)
    used = {osd: cluster.used_bytes(osd) for osd in cluster.osds}
    before, writes = harness.gateway.counts, len(harness.kv.writes)

    def busy(_minute: int) -> None:
        cluster.epoch += 1
        for osd, whole in used.items():
            cluster.osd(osd, used=int(whole * rng.uniform(0.99, 1.01)))
    Loop(harness).run(6 * 3600, busy)
    assert spent(harness, before).full_readings <= 6 * 6
    assert spent(harness, before).plans == 0 and len(harness.kv.writes) == writes
    assert harness.balancer.state == "balanced"


@pytest.mark.parametrize("period", [1, 3, 7])
def test_osd_that_flaps_for_hours(period: int) -> None:
    """Out for as long as in: the cluster is looked at where that lasts, never more often than
    six times an hour."""
    harness = idle(uneven())
    cluster = harness.gateway.cluster
    before = harness.gateway.counts

    def flap(minute: int) -> None:
        out = minute // period % 2 == 0
        fields: Dict[str, Any] = {"in": 0, "weight": 0.0} if out else {"in": 1, "weight": 1.0}
        cluster.osd(2, **fields)
        cluster.epoch += 1
    loop = Loop(harness)
    for _ in range(4):
        loop.run(3600, flap)
        harness.jobs.run()
    assert spent(harness, before).full_readings <= 4 * 12


def test_osd_that_fills_up_ends_a_rest() -> None:
    harness = idle(uneven())
    cluster = harness.gateway.cluster
    before = harness.gateway.counts
    cluster.osd(1, used=cluster.used_bytes(1) + 10 * GIB)
    Loop(harness).run(660)
    assert spent(harness, before).full_readings >= 1 and harness.balancer.state == "planning"


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


def test_osd_that_is_out_for_good_ends_a_rest() -> None:
    harness = idle(uneven())
    harness.gateway.cluster.mark_out(2)
    harness.gateway.cluster.epoch += 1
    Loop(harness).run(900)
    assert harness.balancer.state == "planning"


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


def test_moving_costs_one_look_a_round_at_most() -> None:
    harness = Harness(uneven(), max_moves_per_round=1, sleep_interval=60)
    harness.balancer.execute("p", kept(harness, plan=small_plan(6)))
    harness.gateway.cluster.pg_status = {"misplaced_objects": 1, "misplaced_total": 120}
    Loop(harness).run(3600, epochs(harness.gateway.cluster), wake_every=13)
    batches = len(harness.gateway.batches)
    assert batches == 6 and harness.gateway.counts.full_readings <= 60 + batches
    assert harness.gateway.counts.plans == 0


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
