"""`explain` of the cluster and of OSDs: the sentences say what the JSON says."""
from __future__ import annotations

from unittest.mock import Mock

from tests.report.explanations import answer_of, facts, giant
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness


def test_cluster_without_data() -> None:
    empty = facts(Cluster(hosts(2)))
    assert empty["sets"] == []
    assert "no pool has data" in empty["what"]


def test_cluster_whose_bound_cannot_be_computed() -> None:
    harness = Harness(giant())
    harness.balancer.observer.compute_bounds = Mock(side_effect=KeyError("x"))
    harness.look()
    for what in ("", "osd.0", "rbd", "1.0"):
        sentences = answer_of(harness, what).data["sentences"]
        assert not any("cannot be below" in s for s in sentences), what
    assert "not known" in answer_of(harness).data["what"]
    osd = answer_of(harness, "osd.0").data
    assert osd["reachable"] is None
    assert osd["set"] is None

