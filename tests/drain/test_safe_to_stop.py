"""When an OSD is called safe to stop: never while it is down, by an old look, or while paused."""
from __future__ import annotations

from typing import Any

import pytest
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rounds import uneven

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.drain.drain_list import DrainList
from equilibrium_mgr.drain.status import DrainStatus, Remaining, StopCheck, may_lack_copies
from equilibrium_mgr.report.answer import CommandAnswer
from equilibrium_mgr.report.operations import drain_list, drain_sentence, drains_json
from equilibrium_mgr.settings import default_settings

EMPTY = DrainStatus(DrainList().with_osds({3: "osd.3"}), {3: Remaining()}, (),
                    StopCheck(True, ""), epoch=100)


def listed(status: DrainStatus) -> CommandAnswer:
    return drain_list(BalancerStatus(drains=status), default_settings(), 0.0)


def row(status: DrainStatus) -> Any:
    return listed(status).data["osds"][0]


def test_an_osd_that_is_down_is_neither_empty_nor_safe() -> None:
    down = EMPTY._replace(down=frozenset((3,)))
    data = listed(down).data
    assert row(down)["safe_to_stop"] is False
    assert data["safe_to_stop"] is False
    assert (row(down)["shards"], row(down)["bytes"]) == (None, None)
    assert data["not_safe_reason"].startswith("osd.3 is down: PGs that it held may lack a copy")
    assert not drains_json(down)["safe_to_stop"]
    assert "osd.3 is down" in drain_sentence(down)
    assert not down.empty_osds
    assert "osd.3 is down" in down.result_sentence
    whole = listed(down._replace(is_lacking=False)).data
    assert whole["not_safe_reason"] == "osd.3 is down, and no PG lacks a copy"
    assert not whole["safe_to_stop"]


@pytest.mark.parametrize("status, reason", [
    (EMPTY.as_of(101), "the osdmap has changed"),
    (EMPTY._replace(drains=EMPTY.drains.paused(True)), "paused"),
    (EMPTY._replace(stop_check=None), "Ceph is asked")])
def test_what_may_be_out_of_date_is_unknown(status: DrainStatus, reason: str) -> None:
    data = listed(status).data
    assert row(status)["safe_to_stop"] is None
    assert data["safe_to_stop"] is False
    assert reason in data["not_safe_reason"]
    assert not drains_json(status)["safe_to_stop"]
    assert listed(EMPTY.as_of(100)).data["safe_to_stop"] is True


def test_the_loop_asks_ceph_for_no_osd_that_is_down() -> None:
    harness = Harness(uneven())
    harness.drain({0: "osd.0", 1: "osd.1"})
    harness.cluster.osds[1].update(up=0, state=["exists"])
    harness.round(60)
    found = harness.drains
    assert found.down == {1}
    assert not found.empty_osds
    assert harness.gateway.asked_to_stop == []


@pytest.mark.parametrize("up, fields, lacks", [
    ([0, 1], {}, False), ([0, NONE], {}, True), ([0], {}, True),
    ([0, 1], {"state": "active+clean+scrubbing"}, False),
    ([0, 1], {"state": "active+undersized+degraded"}, True),
    ([0, 1], {"state": "stale+active+clean"}, True),
    ([0, 1], {"state": "active+clean", "acting": [0, 2]}, True)])
def test_copies_are_whole_where_every_pg_says_so(up: Any, fields: Any, lacks: bool) -> None:
    cluster = Cluster(hosts(4)).pool(1, size=2).pg("1.0", "2 3").pg("1.1", up, **fields)
    assert may_lack_copies(cluster.snapshot()) is lacks
    assert may_lack_copies(cluster.snapshot()._replace(unsettled_seconds=5.0))
