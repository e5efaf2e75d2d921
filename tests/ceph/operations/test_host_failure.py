"""What `eval --fail` says of a host is what the cluster ends with once that host is out."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for
from ..harness import workload
from ..harness.commands import (
    equilibrium, equilibrium_json, execute, is_of_now, ready_plan, status)

#: Two minutes beside the cluster: by hand, with --ceph-long.
pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

HALF_A_POINT = 0.005
ANSWER_SECONDS = 60
EXECUTE_SECONDS = 240


def test_a_host_fails_as_predicted_before_and_after_a_plan(
        cluster: DaemonCluster, unbalanced: workload.Usage,
        figure: Callable[[str], None]) -> None:
    ready_plan(cluster, "f")
    host = mildest_host(cluster)
    planned = answered(cluster, option="f", fail=host)
    execute(cluster, "f", EXECUTE_SECONDS)
    workload.wait_clean(cluster)
    workload.settled_usage(cluster)
    assert workload.upmap_items(cluster)
    wait_for("a look at what it is now", lambda: is_of_now(status(cluster)), ANSWER_SECONDS)
    predicted = answered(cluster, fail=host)
    osds = [str(osd) for osd in predicted["failure"]["osds"]]
    cluster.mon("osd out", ids=osds)
    try:
        workload.wait_clean(cluster)
        ended = workload.settled_usage(cluster)
    finally:
        cluster.mon("osd in", ids=osds)
    workload.wait_clean(cluster)
    errors = differences(predicted, ended)
    of_plan = differences(planned, ended)
    figure(f"{host} with {len(osds)} OSDs out: highest predicted "
           f"{predicted['max_utilization']:.4f}, {planned['max_utilization']:.4f} before the plan "
           f"was executed; largest error of an OSD {100 * max(errors.values()):.2f} and "
           f"{100 * max(of_plan.values()):.2f} points, {predicted['copied_bytes'] >> 20} MiB"
           " copied")
    assert max(errors.values()) < HALF_A_POINT, errors
    assert max(of_plan.values()) < HALF_A_POINT, of_plan


def mildest_host(cluster: DaemonCluster) -> str:
    """Of the worst failures of a host the least bad: all of its PGs find a place."""
    types: List[Dict[str, Any]] = answered(cluster, option="f", worst_failure=True)["types"]
    found = next(entry for entry in types if entry["type"] == "host")["worst"][-1]
    assert found["backfill_toofull_pgs"] == found["undersized_pgs"] == found["lost_pgs"] == 0, types
    return str(found["name"])


def answered(cluster: DaemonCluster, **arguments: Any) -> Dict[str, Any]:
    """The answer of `eval`, once the job has computed it."""
    def there() -> Dict[str, Any]:
        answer = equilibrium(cluster, "eval", format="json", **arguments)
        assert answer.rc in (0, -11), answer
        found: Dict[str, Any] = equilibrium_json(cluster, "eval", **arguments) if (
            answer.rc == 0) else {}
        return found
    try:
        return wait_for(f"eval {arguments}", there, ANSWER_SECONDS)
    except ClusterError:
        pytest.fail(str(equilibrium(cluster, "eval", **arguments)))


def differences(predicted: Dict[str, Any], ended: workload.Usage) -> Dict[int, float]:
    """OSD id → how far the prediction is off, a ratio of its size."""
    return {row["osd"]: abs(row["utilization"] - ended.utilization[row["osd"]])
            for row in predicted["osds"]}
