"""What `eval PLAN` says of a plan's distance from the bounds: no two sentences contradict."""
from __future__ import annotations

from typing import Any, Dict, Tuple

from tests.report.looks import evaluated, look_at
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.unit_cluster import Cluster, hosts, plan_of

from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds


def evaluation(cluster: Cluster) -> Tuple[Dict[str, Any], str]:
    """JSON and text of a plan without moves, the text in one line."""
    snapshot = cluster.snapshot()
    look = look_at(snapshot)
    view = look.view._replace(utilization_bounds=cluster_bounds(snapshot))
    answer = evaluated(plan_of(), look._replace(view=view))
    return answer.data, " ".join(answer.plain.split())


def drained() -> Cluster:
    """Two OSDs of six are drained to a fifth of their weight, and hold that much."""
    cluster = Cluster(hosts(6)).pool(1, size=1, name="rbd")
    for osd in (0, 1):
        cluster.osd(osd, weight=0.2)
    return fill(cluster, 1, [[0], [1]] * 8 + [[2], [3], [4], [5]] * 40)


def test_with_lowered_weights_it_is_told_what_the_bound_means() -> None:
    data, text = evaluation(drained())
    entry = data["distance"]["classes"][0]
    assert entry["held_osds"] == 2
    assert entry["is_near"]
    assert entry["proven_utilization"] < entry["bound_utilization"] - 0.05
    assert ("from the best possible by sizes alone (29.33); the bound keeps the lowered weights of"
            " 2 OSDs") in text
    assert "not near the bound" not in text
