"""`explain` of pools and PGs: the sentences say what the JSON says."""
from __future__ import annotations

from typing import Any, List

from tests.report.explanations import RACK_RULE, facts, giant, said
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE, SSD_FIRST
from tests.support.units import GIB


def test_failure_domains_in_words() -> None:
    def words(rule: str, size: int, tree: Any = None, **classes: Any) -> List[str]:
        cluster = Cluster(tree or hosts(4), {0: rule}, **classes).pool(1, size=size, name="p")
        return [s for s in said(cluster.pg("1.0", list(range(size)), GIB), "p") if "each PG" in s]
    assert words(OSD_RULE, 1) == ["1 shard of each PG under default, at most 1 per OSD"]
    assert words(SSD_FIRST, 3, classes={0: "ssd"}) == [
        "1 shard of each PG under default~ssd, at most 1 per host",
        "2 shards of each PG under default~hdd, at most 1 per host"]
    racks = {"root default": {"rack a": {"host a0": [0], "host a1": [1]},
                              "rack b": {"host b0": [2], "host b1": [3]}}}
    assert words(RACK_RULE, 4, racks) == [
        "4 shards of each PG under default, at most 2 per rack and 1 per host"]


def test_pool_that_waits_and_one_that_is_left_alone() -> None:
    cluster = giant().pool(2, size=1, name="other").pg("2.0", [1], GIB)
    cluster.pg_status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "peering", "count": 2}]}]}
    data = facts(cluster, "other", pool_ids="1")
    assert data["reason_text"] == "pool 'rbd' has 2 PGs inactive"
    assert data["excluded"] is True
    assert "limited to other pools" in data["sentences"][-1]
    assert facts(cluster, "rbd", pool_ids="1")["excluded"] is False


# -- a PG ------------------------------------------------------------------------------------------


def test_pg_whose_primary_is_set() -> None:
    """What CRUSH puts first is not known."""
    cluster = giant()
    cluster.extra["pg_upmap_primaries"] = [{"pgid": "1.0", "primary_osd": 3}]
    data = facts(cluster, "1.0")
    assert (data["immovable"], data["upmap_primary"], data["raw"]) == (None, 3, None)
    assert "its primary is set to osd.3 (pg-upmap-primary)" in data["sentences"]
    assert facts(giant(), "1.0")["upmap_primary"] is None


def test_pg_whose_raw_mapping_is_not_known() -> None:
    """No mapping and this item together give that up set."""
    cluster = giant().pg("1.0", "2 3", GIB, items="2>0")
    data = facts(cluster, "1.0")
    assert data["raw"] is None
    assert "recovered" in data["immovable"]
    assert data["sentences"] == ["it has upmap items: osd.2 to osd.0"]
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [2, 3]}]
    data = facts(cluster, "1.0")
    assert data["raw"] is None
    assert data["immovable"] == "placed by a full pg-upmap"
