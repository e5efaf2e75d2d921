"""What commands and other modules do while a round runs or between two rounds."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster, change_of, hosts, plan_of
from tests.support.fakes import Harness
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


def uneven() -> Cluster:
    """Four PGs of 5 GiB on osd.0, none on osd.1 and osd.2."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(4):
        cluster.pg(f"1.{ps:x}", "0", num_bytes=5 * GIB, objects=10)
    return cluster


def test_execute_is_not_lost_to_an_automatic_plan() -> None:
    """`execute` comes from the commands' thread while the round takes up its own plan."""
    harness = Harness(uneven(), active=True)
    harness.plan()
    plan = plan_of([change_of("1.3", "0", "2", shard_bytes=5 * GIB)])
    harness.plan_store.put("p", plan, harness.now)

    def execute_meanwhile() -> None:   # the round has found no execution already
        harness.gateway.before_send_check = lambda: None
        assert harness.balancer.execute("p", plan)
    harness.gateway.before_send_check = execute_meanwhile
    harness.round()
    execution = harness.execution
    assert execution is not None
    assert execution.name == "p"
    assert harness.sent == []
    harness.round()
    assert harness.sent == ["1.3"]
