"""What commands and other modules do while a round runs or between two rounds."""
from __future__ import annotations

from typing import Any

import pytest
from builders import GIB, OSD_RULE, Cluster, change_of, hosts, plan_of
from fakes import Desk

from equilibrium_mgr.executor.walk import Walk


def uneven() -> Cluster:
    """Four PGs of 5 GiB on osd.0, none on osd.1 and osd.2."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(4):
        cluster.pg("1.%x" % ps, [0], num_bytes=5 * GIB, objects=10)
    return cluster


def test_execute_is_not_lost_to_an_automatic_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """`execute` comes from the commands' thread while the round takes up its own plan."""
    desk = Desk(uneven(), active=True)
    desk.round()
    desk.jobs.run()
    plan = plan_of([change_of("1.3", [0], [2], shard_bytes=5 * GIB)])
    desk.shelf.put("p", plan, desk.now)

    def begin_meanwhile(name: str, *args: Any) -> Walk:
        if not name:
            assert desk.balancer.execute("p", plan)
        return Walk(name, *args)
    monkeypatch.setattr("equilibrium_mgr.executor.balancer.Walk", begin_meanwhile)
    desk.round()
    walk = desk.balancer.walk
    assert walk is not None and walk.name == "p" and desk.gateway.sent == []
    desk.round()
    assert desk.gateway.sent == ["1.3"]


@pytest.mark.parametrize("switched_on", [True, False])
def test_builtin_balancer_is_noticed_in_the_next_round(switched_on: bool) -> None:
    """Switching it makes no osdmap epoch, so a glance at the epoch alone would miss it."""
    desk = Desk(uneven(), active=True)
    desk.gateway.builtin = not switched_on
    desk.balancer.refresh_view()
    desk.round()
    desk.gateway.builtin = switched_on
    desk.balancer.round()          # no wake-up, nothing else has changed
    assert desk.balancer.builtin_active is switched_on
