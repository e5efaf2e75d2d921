"""What a batch did is measured: a pool whose shards take more than was predicted is stopped."""
from __future__ import annotations

import json
from typing import Any

import pytest

from equilibrium_mgr.report.health import health_checks
from equilibrium_mgr.report.status import report_status
from tests.support.fakes import Harness
from tests.support.rounds import successor, uneven
from tests.support.units import GIB

CODE = "MGR_EQUILIBRIUM_MISPREDICTED"


def begun(**options: Any) -> Harness:
    """Two of the PGs of 5 GiB are on their way, to OSDs that get them by and by."""
    harness = Harness(uneven(), active=True, max_moves_per_round=2, **options)
    for osd, used in enumerate((70, 10, 10)):
        harness.gateway.cluster.osd(osd, used=used * GIB)
    harness.round()
    harness.jobs.run()
    harness.round(60)
    assert len(harness.gateway.sent) == 2
    return harness


def arrive(harness: Harness, bytes_each: int) -> None:
    """What was sent is there; its targets have grown by so much a shard."""
    cluster = harness.gateway.cluster
    for change in harness.gateway.batches[-1]:
        for osd in set(change.up_after) - set(change.up_before):
            cluster.osd(osd, used=cluster.used[osd] + bytes_each)
    harness.gateway.arrive()


def stopped(**options: Any) -> Harness:
    """After the shards of the first batch took twice what was predicted."""
    harness = begun(**options)
    arrive(harness, 10 * GIB)
    for _ in range(3):
        harness.round(60)
        harness.jobs.run()
    return harness


def status(harness: Harness) -> Any:
    answer = report_status(harness.balancer.status, harness.planning, harness.settings(),
                           harness.now)
    return json.loads(json.dumps(answer.data))


def test_status_and_health_tell_by_how_much_and_what_helps() -> None:
    harness = stopped()
    told = status(harness)
    assert told["state"] != "balanced"
    assert "pool 'pool1' took 11 GiB" in told["reason"] and "predicted" in told["reason"]
    assert told["mispredicted"][0]["measured_bytes"] == pytest.approx(10 * GIB, rel=0.1)
    check = health_checks(harness.balancer.status, harness.now, True)[CODE]
    assert check["severity"] == "warning" and "ceph equilibrium on" in check["detail"][-1]


def test_another_mgr_keeps_to_it() -> None:
    harness = stopped()
    other = successor(harness)
    for _ in range(5):
        other.round(600)
        other.jobs.run()
    assert set(other.balancer.status.mispredicted) == {1}
    assert other.gateway.sent == []
    assert other.gateway.snapshot().pgs["1.0"].shard_bytes > 9 * GIB
