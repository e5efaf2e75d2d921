"""What a plan has changed is taken back, while it waits and when it has arrived; upmap items
without effect are removed."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import (
    equilibrium, execute, quick_takeover, ready_plan, shards_in_flight, status)

#: By hand: what waits is counted by a look that on a busy machine is older than the PGs' reports.
pytestmark = pytest.mark.long

_SECONDS = 180
Items = Dict[str, List[List[int]]]


def answered(cluster: DaemonCluster, command: str, **arguments: Any) -> Dict[str, Any]:
    """The answer, asked for again while the cluster is being looked at."""
    def asked() -> Dict[str, Any]:
        answer = equilibrium(cluster, command, format="json", **arguments)
        assert answer.rc in (0, -11), answer
        found: Dict[str, Any] = answer.json() if answer.rc == 0 else {}
        return found
    return wait_for(f"an answer of {command}", asked, 30, pause=0.5)


def over(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """Waits until an execution has ended, whatever moves still; how it ended."""
    def is_over() -> Dict[str, Any]:
        now = status(cluster)
        last: Dict[str, Any] = now["last_execution"] or {}
        return last if last.get("plan") == plan and now["execution"] is None else {}
    return wait_for(f"the end of {plan}", is_over, _SECONDS)


def ended(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """As `over`, and waits until nothing moves."""
    last = over(cluster, plan)
    wait_for("nothing on its way", lambda: not shards_in_flight(status(cluster)), _SECONDS)
    return last


@pytest.fixture(scope="module", autouse=True)
def grace(cluster: DaemonCluster) -> Iterator[None]:
    """A dead mgr is soon followed by another."""
    with quick_takeover(cluster):
        yield


@pytest.fixture(scope="module")
def before(cluster: DaemonCluster) -> Items:
    """A clean cluster in which somebody has set pairs by hand; these."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    up = workload.up_sets(cluster)
    hosts = {osd: host["name"] for host in cluster.mon_json("osd tree")["nodes"]
             if host["type"] == "host" for osd in host["children"]}
    for pgid in sorted(up)[:2]:
        used = {hosts[osd] for osd in up[pgid]}
        target = next((osd for osd in sorted(hosts) if osd not in up[pgid]
                       and hosts[osd] not in used - {hosts[up[pgid][0]]}), None)
        if target is not None:
            cluster.mon("osd pg-upmap-items", pgid=pgid, id=[up[pgid][0], target])
    workload.wait_clean(cluster)
    workload.settled_usage(cluster)
    found = workload.upmap_items(cluster)
    assert found
    return found


def span(began: float) -> str:
    """From a moment until now."""
    return f"{int(time.time() - began) + 5}s"


@pytest.fixture(scope="module")
def began(before: Items) -> float:
    return time.time()


def test_undo_gives_each_pg_the_pairs_that_it_had(
        cluster: DaemonCluster, before: Items, began: float,
        figure: Callable[[str], None]) -> None:
    ready_plan(cluster, "q")
    assert execute(cluster, "q", _SECONDS)["outcome"] == "completed"
    usage = workload.settled_usage(cluster)
    assert workload.upmap_items(cluster) != before
    shown = answered(cluster, "undo", since=span(began), dry_run=True)
    answer = answered(cluster, "undo", since=span(began))
    assert answer["pgs"] == shown["pgs"] > 0 and answer["not_restored"] == []
    wait_for("its first batch", lambda: status(cluster)["execution"] is None
             or status(cluster)["execution"]["sent_moves"], 60, pause=0.2)
    cluster.kill_mgr()
    cluster.wait_module()
    last = ended(cluster, answer["plan"])
    workload.wait_clean(cluster)
    figure(f"undo of {answer['pgs']} PGs, {answer['shards']} shards, through a kill of the mgr:"
           f" {last['outcome']}; {usage} -> {workload.settled_usage(cluster)}")
    assert last["outcome"] == "completed"
    assert workload.upmap_items(cluster) == before
    again = answered(cluster, "undo", since=span(began), dry_run=True)
    assert again["pgs"] == 0 and again["not_restored"] == []
