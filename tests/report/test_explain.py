"""`explain` of the cluster and of OSDs: the sentences say what the JSON says."""
from __future__ import annotations

from unittest.mock import Mock

from tests.report.explanations import answer_of, facts, giant, looked_at, said
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness

from equilibrium_mgr.execution.outcomes import Rejection


def test_counters_by_reason() -> None:
    cluster = giant().mark_out(1).osd(2, up=0)
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [0, 3]}, {"pgid": "1.1", "osds": [0, 3]}]
    data = facts(cluster)
    assert data["skipped_pgs"] == {"placed by a full pg-upmap": 2}
    assert {"1 OSD can take no shards: out",
            "1 OSD can take no shards: down"} <= set(data["sentences"])
    for sentence in ("2 PGs cannot be moved: placed by a full pg-upmap",
                     "1 OSD can take no shards: down", "1 OSD can take no shards: out"):
        assert sentence in data["sentences"]
    assert facts(giant())["skipped_pgs"] == {}


def test_pools_in_trouble_rejected_pgs_and_moves_under_way() -> None:
    cluster = giant()
    cluster.pg_status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "active+degraded", "count": 2}]}]}
    cluster.acting["1.0"] = [1, 3]
    harness = looked_at(cluster)
    rejected = {"1.4": Rejection("the monitor dropped its upmap items", "m", 0.0)}
    data = answer_of(harness, rejected=rejected).data
    assert "pools wait: pool 'rbd' has 2 PGs degraded" in data["sentences"]
    assert not any("wait" in s for s in said(giant()))


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


# -- an OSD ----------------------------------------------------------------------------------------


def test_osd_without_statistics() -> None:
    cluster = giant()
    cluster.without_statistics.append(2)
    data = facts(cluster, "osd.2")
    assert data["utilization"] is None is data["target_utilization"]
    assert "osd.2 has no statistics" in data["what"]


# -- a pool ----------------------------------------------------------------------------------------
