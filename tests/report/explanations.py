"""Explanations of clusters made by hand, for tests."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.units import GIB

from equilibrium_mgr.execution.rejections import Items
from equilibrium_mgr.report.command_answer import CommandAnswer
from equilibrium_mgr.report.explain.explain import explain


RACK_RULE = "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit"


def giant() -> Cluster:
    """Three hosts of 100 GiB, one of 900; two copies of 60 GiB, 50 of them on osd.0."""
    cluster = Cluster(hosts(4)).osd(3, size=900 * GIB).pool(1, size=2, name="rbd")
    for ps in range(60):
        cluster.pg(f"1.{ps:x}", [0, 3] if ps < 50 else [1, 3], GIB)
    return cluster


def looked_at(cluster: Cluster, **options: Any) -> Harness:
    harness = Harness(cluster, **options)
    harness.look()
    return harness


def answer_of(harness: Harness, what: str = "",
              rejected: Optional[Items] = None) -> CommandAnswer:
    status = harness.balancer.status._replace(rejected=rejected or {})
    assert status.view is not None
    answer = explain(what or None, status.view, status, harness.settings(), 3.0)
    assert answer is not None
    data = json.loads(json.dumps(answer.data))
    assert data["sentences"] == answer.plain.split("\n") and data["osdmap_epoch"] == 100
    assert data["snapshot_age_seconds"] == 3.0
    return answer


def facts(cluster: Cluster, what: str = "", **options: Any) -> Dict[str, Any]:
    data: Dict[str, Any] = answer_of(looked_at(cluster, **options), what).data
    return data


def said(cluster: Cluster, what: str = "", **options: Any) -> List[str]:
    sentences: List[str] = facts(cluster, what, **options)["sentences"]
    return sentences


# -- the cluster -----------------------------------------------------------------------------------
