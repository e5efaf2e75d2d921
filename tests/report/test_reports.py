"""Reports are JSON-ready, and plain text carries the same figures."""
from __future__ import annotations

from typing import Any

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.observation.cluster_view import with_figures_of_now
from equilibrium_mgr.report.health import health_checks
from equilibrium_mgr.report.status import report_status


def uneven() -> Cluster:
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(4):
        cluster.pg(f"1.{ps:x}", [0], num_bytes=5 * GIB, objects=10)
    return cluster


def test_automatic_plan_that_cannot_be_made_is_told(mocker: Any) -> None:
    harness = Harness(uneven(), active=True)
    broken = mocker.patch.object(harness.planning, "planner", side_effect=KeyError("osd.7"))
    harness.round()
    harness.jobs.run()
    harness.round(60)
    assert "KeyError" in harness.balancer.status.reason
    failure = harness.planning.last_failure("")
    checks = health_checks(harness.balancer.status, harness.now, True, failure or "")
    assert "KeyError" in checks["MGR_EQUILIBRIUM_ERROR"]["detail"][0]
    mocker.stop(broken)
    harness.jobs.run()
    harness.round(60)
    assert health_checks(harness.balancer.status, harness.now, True) == {}


@pytest.mark.parametrize("misplaced", [12, 0])
def test_a_look_at_what_has_arrived_since_is_outdated(misplaced: int) -> None:
    """Its figures may count a shard twice: an OSD may have reported it, and its PG not. Of what has
    just arrived Ceph calls nothing misplaced, while its PG still peers."""
    harness = Harness(uneven())
    harness.gateway.cluster.pg_status["misplaced_objects"] = misplaced
    if not misplaced:
        harness.gateway.cluster.pg("1.0", [1], acting="0", state="active+remapped",
                                   num_bytes=5 * GIB, objects=10)
    harness.look()
    view = harness.balancer.status.view
    assert view is not None
    assert view.has_drifted == (not misplaced)
    harness.gateway.cluster.pg_status["misplaced_objects"] = 0
    view = with_figures_of_now(view, harness.gateway.summary())
    assert view.has_drifted
    answer = report_status(harness.balancer.status, harness.planning, harness.settings(),
                           harness.now + 300.0, view, look_started=True)
    assert answer.data["look_outdated"]
    assert "figures:     of 5m00s ago" in answer.plain
