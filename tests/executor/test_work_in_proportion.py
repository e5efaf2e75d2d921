"""What an hour costs in each state: looks at the whole cluster, plans, writes, questions."""
from __future__ import annotations

import random
from typing import Any

import pytest
from builders import GIB, Cluster
from fakes import Desk
from loop_driver import Loop
from rounds import at_rest, kept, small_plan, uneven

from equilibrium_mgr.counts import Counts


def epochs(cluster: Cluster) -> Any:
    """Somebody makes an epoch a minute: blocklists, snapshots, flags that stop nothing."""
    def each_minute(_minute: int) -> None:
        cluster.epoch += 1
    return each_minute


def spent(desk: Desk, before: Counts) -> Counts:
    return Counts(*(b - a for a, b in zip(before, desk.gateway.counts)))


def test_off_costs_nothing_whatever_the_epoch_does() -> None:
    desk = Desk(uneven())
    Loop(desk).run(86_400, epochs(desk.gateway.cluster))
    assert desk.gateway.counts == Counts() and desk.kv.writes == []


def test_readers_get_one_look_each_and_nothing_goes_on_by_itself() -> None:
    desk = Desk(uneven())
    loop = Loop(desk).run(600)
    for hour in range(3):
        desk.balancer.refresh_view()
        desk.balancer.refresh_view()
        loop.run(3600, epochs(desk.gateway.cluster))
        assert desk.gateway.counts.looks == hour + 1
    assert desk.balancer.state == "off" and desk.balancer.view is not None


def test_reader_s_look_that_fails_is_not_tried_again_by_itself() -> None:
    desk = Desk(uneven())
    desk.gateway.not_ready = "the mgr has not received the statistics of all PGs yet"
    desk.balancer.refresh_view()
    Loop(desk).run(600)
    assert desk.gateway.counts.looks == 1 and desk.balancer.state == "off"


@pytest.mark.parametrize("name", ["", "p"])
@pytest.mark.parametrize("guard", ["norebalance", "builtin", "no monitor", "start_delay"])
def test_standing_guard_is_all_that_is_looked_at(guard: str, name: str) -> None:
    desk = Desk(uneven(), active=not name,
                start_delay=86_400 if guard == "start_delay" else 0)
    if guard == "norebalance":
        desk.gateway.cluster.extra["flags"] = "norebalance"
    desk.gateway.builtin, desk.gateway.connected = guard == "builtin", guard != "no monitor"
    if name:
        desk.balancer.execute(name, kept(desk))
    loop = Loop(desk).run(4 * 3600, epochs(desk.gateway.cluster))
    assert desk.gateway.counts.looks == 0 and desk.gateway.counts.plans == 0
    assert desk.gateway.counts.summaries <= 245 and len(loop.delays) <= 245
    desk.options["start_delay"] = 0
    desk.gateway.cluster.extra.clear()
    desk.gateway.builtin, desk.gateway.connected = False, True
    desk.gateway.cluster.epoch += 1
    loop.run(121)
    assert desk.gateway.looks >= 1 and desk.balancer.state in ("planning", "moving")


def test_balanced_cluster_with_epochs_and_noise() -> None:
    desk = at_rest(uneven())
    cluster, rng = desk.gateway.cluster, random.Random(7)
    used = {osd: cluster.used_bytes(osd) for osd in cluster.osds}
    before, writes = desk.gateway.counts, len(desk.kv.writes)

    def busy(_minute: int) -> None:
        cluster.epoch += 1
        for osd, whole in used.items():
            cluster.osd(osd, used=int(whole * rng.uniform(0.99, 1.01)))
    Loop(desk).run(6 * 3600, busy)
    assert spent(desk, before).looks <= 6      # one an hour: the map is another one
    assert spent(desk, before).plans == 0 and len(desk.kv.writes) == writes
    assert desk.balancer.state == "balanced"


@pytest.mark.parametrize("period", [1, 3, 7])
def test_osd_that_flaps_for_hours(period: int) -> None:
    """Out for as long as in: the cluster is looked at where that lasts, never more often than
    six times an hour."""
    desk = at_rest(uneven())
    cluster = desk.gateway.cluster
    before = desk.gateway.counts

    def flap(minute: int) -> None:
        out = minute // period % 2 == 0
        cluster.osd(2, **({"in": 0, "weight": 0.0} if out else {"in": 1, "weight": 1.0}))
        cluster.epoch += 1
    loop = Loop(desk)
    for _ in range(4):
        loop.run(3600, flap)
        desk.jobs.run()
    assert spent(desk, before).looks <= 4 * 12


def test_osd_that_fills_up_ends_a_rest() -> None:
    desk = at_rest(uneven())
    cluster = desk.gateway.cluster
    before = desk.gateway.counts
    cluster.osd(1, used=cluster.used_bytes(1) + 10 * GIB)
    Loop(desk).run(660)
    assert spent(desk, before).looks >= 1 and desk.balancer.state == "planning"


def test_deep_scrub_that_tells_of_omap_ends_a_rest() -> None:
    """The PGs were left alone for it, and nothing else changes: neither epoch nor utilization."""
    cluster = uneven(num_bytes=0)
    cluster.osd(0, used=60 * GIB)
    desk = at_rest(cluster)
    assert desk.balancer.state == "stuck"
    before = desk.gateway.counts
    Loop(desk).run(3600)
    assert spent(desk, before).looks == 0
    for pgid, record in cluster.records.items():
        cluster.records[pgid] = record._replace(omap_bytes=5 * GIB)
    Loop(desk).run(660)
    assert spent(desk, before).looks >= 1 and desk.balancer.state == "planning"


def test_osd_that_is_out_for_good_ends_a_rest() -> None:
    desk = at_rest(uneven())
    desk.gateway.cluster.osd(2, **{"in": 0, "weight": 0.0})
    desk.gateway.cluster.epoch += 1
    Loop(desk).run(900)
    assert desk.balancer.state == "planning"


def test_options_that_change_end_a_rest_at_once() -> None:
    desk = at_rest(uneven())
    looks = desk.gateway.looks
    desk.options["aim"] = "even"
    desk.wake()
    Loop(desk).run(61)
    assert desk.gateway.looks == looks + 1 and desk.balancer.state == "planning"


def test_walk_that_nothing_lets_go_is_looked_at_every_ten_minutes() -> None:
    """Its PGs are degraded for hours; that they still are stands in the summary."""
    cluster = uneven()
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "active+undersized+degraded", "count": 3}]}],
        "degraded_objects": 30, "degraded_total": 120}
    desk = Desk(cluster, max_wait=86_400)
    desk.balancer.execute("p", kept(desk, plan=small_plan(2)))
    loop = Loop(desk).run(3 * 3600, epochs(cluster))
    assert desk.balancer.state == "blocked" and desk.gateway.counts.looks <= 3 * 6 + 1
    cluster.pg_status = {}
    loop.run(61)
    assert desk.balancer.state == "moving"


def test_moving_costs_one_look_a_round_at_most() -> None:
    desk = Desk(uneven(), max_moves_per_round=1, sleep_interval=60)
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    desk.gateway.cluster.pg_status = {"misplaced_objects": 1, "misplaced_total": 120}
    Loop(desk).run(3600, epochs(desk.gateway.cluster), wake_every=13)
    batches = len(desk.gateway.batches)
    assert batches == 6 and desk.gateway.counts.looks <= 60 + batches
    assert desk.gateway.counts.plans == 0


@pytest.mark.parametrize("why", ["pg_num", "no reports"])
def test_wait_for_the_cluster_is_looked_at_every_ten_minutes(why: str) -> None:
    """A change of pg_num takes days; OSDs may not report for as long."""
    cluster = uneven()
    if why == "pg_num":
        cluster.pools[1]["pg_num_target"] = 32
    else:
        cluster.without_statistics = list(cluster.osds)
    desk = Desk(cluster, active=True)
    loop = Loop(desk).run(1800, lambda _minute: (desk.jobs.run(), None)[1])
    before = desk.gateway.counts
    loop.run(3 * 3600, epochs(cluster))
    assert desk.balancer.state == "waiting" and spent(desk, before).looks <= 3 * 6 + 1
    cluster.without_statistics, cluster.pools[1]["pg_num_target"] = [], 12
    loop.run(1300, lambda _minute: (desk.jobs.run(), None)[1])
    assert desk.gateway.sent
