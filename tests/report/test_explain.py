"""`explain`: the sentences say what the JSON says, and both say what is."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional
from unittest.mock import Mock

import pytest
from tests.support.fakes import Harness
from tests.support.rules import HDD_HOSTS, OSD_RULE, SSD_FIRST, SSD_HOSTS
from tests.support.unit_cluster import NONE, Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.execution.rejections import Items, Rejection
from equilibrium_mgr.report.command_answer import CommandAnswer
from equilibrium_mgr.report.explain import explain

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

def test_bound_of_each_set_and_the_distance_from_it() -> None:
    data = facts(giant())
    assert data["sentences"][:2] == [
        "class hdd under default cannot be below 0.2000: pool rbd may have at most 1 shard of a PG"
        " per host, so hosts h0, h1, h2 must hold what host h3 cannot take",
        "osd.0, the fullest there, is at 0.5000, 30.0 points above that"]
    (found,) = data["sets"]
    assert found["fullest_osd"] == 0 and found["max"] == 0.5
    assert found["bound"] == pytest.approx(0.2) and found["above_bound"] == pytest.approx(0.3)
    assert found["binding"] == {"kind": "failure domain", "osds": [0, 1, 2], "buckets": ["h3"],
                                "pools": ["rbd"]}
    assert found["takes"] == ["default"] and found["osds"] == [0, 1, 2, 3]


def test_cluster_at_its_bound() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=2).pg("1.0", [0, 1], 10 * GIB)
    assert "osd.0, the fullest there, is at 0.1000, as low as can be" in said(cluster)


def test_two_sets_of_osds() -> None:
    cluster = Cluster(hosts(4), {0: HDD_HOSTS, 1: SSD_HOSTS},
                      classes={2: "ssd", 3: "ssd"}).pool(1, size=1).pool(2, size=1, rule=1)
    cluster.pg("1.0", [0], GIB).pg("1.1", [0], GIB).pg("2.0", [3], 4 * GIB)
    data = facts(cluster)
    assert [(s["device_class"], s["fullest_osd"]) for s in data["sets"]] == [
        ("hdd", 0), ("ssd", 3)]
    assert sum("the fullest there" in sentence for sentence in data["sentences"]) == 2


def test_what_blocks_now() -> None:
    harness = looked_at(giant(), active=True)
    harness.gateway.builtin = True
    harness.look()
    data = answer_of(harness).data
    assert data["state"] == "blocked" and "built-in" in data["reason"]
    assert f"equilibrium is blocked: {data['reason']}" in data["sentences"]


def test_counters_by_reason() -> None:
    cluster = giant().mark_out(1).osd(2, up=0)
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [0, 3]}, {"pgid": "1.1", "osds": [0, 3]}]
    data = facts(cluster)
    assert data["skipped_pgs"] == {"placed by a full pg-upmap": 2}
    assert data["unusable_osds"] == {"out": 1, "down": 1}
    for sentence in ("2 PGs cannot be moved: placed by a full pg-upmap",
                     "1 OSDs can take no shards: down", "1 OSDs can take no shards: out"):
        assert sentence in data["sentences"]
    assert facts(giant())["skipped_pgs"] == {} == facts(giant())["unusable_osds"]


def test_pools_in_trouble_rejected_pgs_and_moves_under_way() -> None:
    cluster = giant()
    cluster.pg_status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "active+degraded", "count": 2}]}]}
    cluster.acting["1.0"] = [1, 3]
    harness = looked_at(cluster)
    rejected = {"1.4": Rejection("the monitor dropped its upmap items", 5)}
    data = answer_of(harness, rejected=rejected).data
    assert (data["troubled"], data["rejected_upmaps"], data["in_flight_moves"]) == (
        ["pool 'rbd' has 2 PGs degraded"], 1, 1)
    assert "pools wait: pool 'rbd' has 2 PGs degraded" in data["sentences"]
    assert any(s.startswith("1 PGs stay where they are") for s in data["sentences"])
    assert any(s.startswith("1 moves are under way") for s in data["sentences"])
    quiet = said(giant())
    assert not any("wait" in s or "stay where" in s or "under way" in s for s in quiet)


def test_limits_that_the_operator_has_set() -> None:
    sentences = said(giant(), pool_ids="1,9", device_classes="ssd,hdd")
    assert "balancing is limited to pools: rbd" in sentences
    assert "balancing is limited to device classes: hdd, ssd" in sentences
    assert "balancing is limited to pools: none that is there" in said(giant(), pool_ids="x")
    assert not any("limited" in sentence for sentence in said(giant()))


def test_long_lists_of_names_are_cut_short() -> None:
    cluster = Cluster(hosts(1))
    for number in range(12):
        cluster.pool(number, size=1, name=f"p{number:02}")
    limited = next(s for s in said(cluster, pool_ids=",".join(map(str, range(12))))
                   if "limited to pools" in s)
    assert limited.endswith("p08, p09 and 2 more")


def test_cluster_without_data() -> None:
    empty = facts(Cluster(hosts(2)))
    assert empty["sets"] == []
    assert "no pool has data" in empty["sentences"][0]


def test_cluster_whose_bound_cannot_be_computed() -> None:
    harness = Harness(giant())
    harness.balancer.observer.compute_bounds = Mock(side_effect=KeyError("x"))
    harness.look()
    for what in ("", "osd.0", "rbd", "1.0"):
        sentences = answer_of(harness, what).data["sentences"]
        assert not any("cannot be below" in s for s in sentences), what
    assert "not known" in answer_of(harness).data["sentences"][0]
    osd = answer_of(harness, "osd.0").data
    assert osd["reachable"] is None
    assert osd["bound"] is None


# -- an OSD ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("what", ["osd.0", "0"])
def test_osd(what: str) -> None:
    data = facts(giant(), what)
    assert (data["osd"], data["device_class"], data["host"]) == (0, "hdd", "h0")
    assert data["size_bytes"] == 100 * GIB and data["used_bytes"] == 50 * GIB
    assert data["utilization"] == data["target_utilization"] == 0.5
    assert data["reachable"] == data["bound"] == pytest.approx(0.2)
    assert data["cannot_take"] is None and data["limited_pools"] == ["rbd"]
    assert data["sentences"] == [
        "osd.0 (class hdd, host h0) has 50.0 GiB of 100 GiB in use: 0.5000",
        "in the most even placement that the rules allow it would be at 0.2000, 30.0 points lower",
        data["set"]["description"], "it is one of the OSDs that stand at this bound",
        "it limits the free space of pools: rbd"]


def test_osd_that_could_be_fuller_and_limits_nobody() -> None:
    data = facts(giant(), "osd.2")
    assert data["limited_pools"] == [] and data["utilization"] == 0.0
    assert data["sentences"][1].endswith("at 0.2000, 20.0 points higher")
    assert data["sentences"][-1] == "it limits the free space of no pool that holds data"
    giant_host = facts(giant(), "osd.3")
    assert giant_host["reachable"] == pytest.approx(60 / 900)
    assert giant_host["sentences"][1].endswith("it would be at 0.0667")
    assert not any("stand at this bound" in s for s in giant_host["sentences"])


def test_all_osds_at_the_bound_is_worth_no_sentence() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=2).pg("1.0", [0, 1], 10 * GIB)
    data = facts(cluster, "osd.0")
    assert data["set"]["binding"]["osds"] == [0, 1]
    assert not any("stand at this bound" in sentence for sentence in data["sentences"])


def test_osd_with_transfers() -> None:
    cluster = giant()
    cluster.acting["1.0"] = [1, 3]                 # its first copy is to come to osd.0
    data = facts(cluster, "osd.0")
    assert data["inbound_bytes"] == GIB and data["outbound_bytes"] == 0
    assert (data["utilization"], data["target_utilization"]) == (0.49, 0.5)
    assert data["sentences"][0].endswith("0.4900; 0.5000 when 1.00 GiB in and 0 B out have moved")


@pytest.mark.parametrize("fields, reason", [
    ({"up": 0}, "down"), ({"in": 0, "weight": 0.0}, "out"),
    ({"state": ["exists", "destroyed"]}, "destroyed")])
def test_osd_that_can_take_no_shards(fields: Dict[str, Any], reason: str) -> None:
    data = facts(giant().osd(2, **fields), "osd.2")
    assert data["cannot_take"] == reason and data["set"] is None
    assert f"no shard may go to it: it is {reason}" in data["sentences"]
    assert not any("may use it" in sentence for sentence in data["sentences"])


def test_osd_without_statistics() -> None:
    cluster = giant()
    cluster.without_statistics.append(2)
    data = facts(cluster, "osd.2")
    assert data["utilization"] is None is data["target_utilization"]
    assert data["sentences"][0] == "osd.2 (class hdd, host h2) has no statistics"


def test_osd_that_no_pool_may_use() -> None:
    cluster = Cluster(hosts(2), {0: HDD_HOSTS}, classes={1: "ssd"}).pool(1, size=1)
    assert "no pool that holds data may use it" in said(cluster.pg("1.0", [0], GIB), "1")


def test_empty_pools_are_limited_by_nobody() -> None:
    cluster = giant().pool(2, size=1, name="empty").pg("2.0", [0], 0)
    assert facts(cluster, "empty")["limiting_osd"] == 0
    assert facts(cluster, "osd.0")["limited_pools"] == ["rbd"]


# -- a pool ----------------------------------------------------------------------------------------

def test_pool() -> None:
    data = facts(giant(), "rbd")
    assert (data["pool"], data["pool_id"], data["pgs"], data["limiting_osd"]) == ("rbd", 1, 60, 0)
    assert data["free_bytes"] == 45 * GIB * 60 // 50 and data["stored_bytes"] == 60 * GIB
    assert data["failure_domains"] == [
        {"take": "default", "shards": 2, "domains": [{"type": "host", "most_shards": 1}]}]
    assert (data["immovable"], data["immovable_pgs"], data["waits_for"], data["excluded"]) == (
        None, {}, None, False)
    assert data["sentences"] == [
        "pool rbd can take 54.0 GiB more",
        "osd.0 (class hdd) is the OSD that is full first; it will be at 0.5000",
        "class hdd under default cannot be below 0.2000: pool rbd may have at most 1 shard of a PG"
        " per host, so hosts h0, h1, h2 must hold what host h3 cannot take",
        "2 shards of each PG under default, at most 1 per host", "all of its 60 PGs can be moved"]


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


def test_pool_with_some_immovable_pgs() -> None:
    cluster = giant()
    cluster.extra["pg_upmap"] = [{"pgid": f"1.{ps:x}", "osds": [0, 3]} for ps in range(3)]
    data = facts(cluster, "rbd")
    assert data["immovable_pgs"] == {"placed by a full pg-upmap": 3} and data["immovable"] is None
    assert "3 of its 60 PGs cannot be moved: placed by a full pg-upmap" in data["sentences"]
    assert not any("all of its" in sentence for sentence in data["sentences"])


def test_pool_with_ec_optimizations() -> None:
    cluster = Cluster(hosts(4)).pool(1, size=3, k=2, flags_names="hashpspool,ec_optimizations",
                                     nonprimary_shards="{1}").pg("1.0", [0, 1, 2])
    sentence = ("with allow_ec_optimizations its shards differ in size by their position;"
                " they are estimated alike")
    assert sentence in said(cluster, "pool1")
    cluster.pools[1].update(flags_names="hashpspool", nonprimary_shards="{}")
    assert sentence not in said(cluster, "pool1")


def test_pool_whose_omap_nobody_has_measured() -> None:
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", [0, 1], objects=9).pg("1.1", [0, 1], num_bytes=0, objects=9)
    assert ("1 of its 2 PGs cannot be moved: its omap has not been measured; a deep scrub tells"
            in said(cluster, "pool1"))


def test_pool_that_cannot_be_moved_at_all() -> None:
    cluster = giant().pool(1, size=2, name="rbd", pg_num_target=64, pg_num=60)
    data = facts(cluster, "rbd")
    assert data["immovable"] == "pg_num of the pool is changing"
    assert "none of its PGs can be moved: pg_num of the pool is changing" in data["sentences"]
    assert sum("moved" in sentence for sentence in data["sentences"]) == 1


def test_pool_whose_rule_is_not_there() -> None:
    data = facts(giant().pool(1, size=2, name="rbd", rule=7), "rbd")
    assert data["failure_domains"] == [] and "rule" in data["immovable"]


def test_pool_that_waits_and_one_that_is_left_alone() -> None:
    cluster = giant().pool(2, size=1, name="other").pg("2.0", [1], GIB)
    cluster.pg_status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "peering", "count": 2}]}]}
    data = facts(cluster, "other", pool_ids="1")
    assert data["waits_for"] == "pool 'rbd' has 2 PGs inactive" and data["excluded"] is True
    assert "nothing of it is moved for now: pool 'rbd' has 2 PGs inactive" in data["sentences"]
    assert "limited to other pools" in data["sentences"][-1]
    assert facts(cluster, "rbd", pool_ids="1")["excluded"] is False


def test_pool_without_pgs_on_osds_with_statistics() -> None:
    cluster = giant()
    cluster.without_statistics += [0, 1, 2, 3]
    data = facts(cluster, "rbd")
    assert data["limiting_osd"] is None
    assert "no OSD with statistics holds any of it" in data["sentences"]


# -- a PG ------------------------------------------------------------------------------------------

def test_pg() -> None:
    data = facts(giant(), "1.a")
    assert (data["pgid"], data["pool"], data["up"], data["acting"], data["raw"]) == (
        "1.a", "rbd", [0, 3], [0, 3], [0, 3])
    assert data["upmap_items"] == [] and data["immovable"] is None and data["rejected"] is None
    assert data["shards"] == [
        {"osd": 0, "utilization": 0.5, "target_utilization": 0.5},
        {"osd": 3, "utilization": 60 / 900, "target_utilization": 60 / 900}]
    assert data["sentences"] == [
        "pg 1.a of pool rbd, 1.00 GiB a shard, belongs on osd.0, osd.3", "its data is there",
        "CRUSH itself places it so; it has no upmap items", "nothing about it forbids moving it",
        "osd.0: 0.5000", "osd.3: 0.0667"]
    assert facts(giant(), "1.A") == data


def test_pg_with_upmap_items_on_its_way() -> None:
    cluster = giant().pg("1.0", [2, 3], GIB, items=[(0, 2)], acting=[0, 3])
    data = facts(cluster, "1.0")
    assert (data["up"], data["acting"], data["raw"]) == ([2, 3], [0, 3], [0, 3])
    assert data["upmap_items"] == [[0, 2]]
    assert data["shards"][0] == {"osd": 2, "utilization": 0.0, "target_utilization": 0.01}
    assert data["sentences"][1:3] == [
        "its data is on osd.0, osd.3 and on its way",
        "upmap items place it so: osd.0 to osd.2; CRUSH alone would have it on osd.0, osd.3"]
    assert "osd.2: 0.0100" in data["sentences"]


def test_pg_with_upmap_items_that_have_no_effect() -> None:
    data = facts(giant().pg("1.0", [0, 3], GIB, items=[(2, 1)]), "1.0")
    assert data["raw"] == data["up"] == [0, 3] and data["immovable"] is None
    assert data["sentences"][2] == (
        "CRUSH itself places it so; its upmap items have no effect: osd.2 to osd.1")


def test_pg_that_cannot_be_moved() -> None:
    cluster = giant()
    cluster.extra["pg_upmap_primaries"] = [{"pgid": "1.0", "primary_osd": 3}]
    data = facts(cluster, "1.0")
    assert data["immovable"] == "its primary is set by pg-upmap-primary"
    assert "it cannot be moved: its primary is set by pg-upmap-primary" in data["sentences"]
    assert not any("forbids" in sentence for sentence in data["sentences"])


def test_pg_without_an_osd_for_a_shard() -> None:
    data = facts(giant().pg("1.0", [0, NONE], GIB), "1.0")
    assert data["up"] == [0, None] and data["shards"][1] == {
        "osd": None, "utilization": None, "target_utilization": None}
    assert data["immovable"] == "a shard has no OSD"
    assert "no OSD: utilization not known" in data["sentences"]


def test_pg_whose_raw_mapping_is_not_known() -> None:
    """No mapping and this item together give that up set."""
    cluster = giant().pg("1.0", [2, 3], GIB, items=[(2, 0)])
    data = facts(cluster, "1.0")
    assert data["raw"] is None and "recovered" in data["immovable"]
    assert data["sentences"][2] == ("it has upmap items: osd.2 to osd.0; what CRUSH alone would"
                                    " give is not known")
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [2, 3]}]
    data = facts(cluster, "1.0")
    assert data["raw"] is None and data["immovable"] == "placed by a full pg-upmap"


def test_pg_that_the_monitor_would_not_have_moved_and_one_that_waits() -> None:
    cluster = giant()
    cluster.pg_status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "active+degraded", "count": 2}]}]}
    harness = looked_at(cluster)
    rejected = {"1.4": Rejection("the monitor dropped its upmap items", 5)}
    data = answer_of(harness, "1.4", rejected).data
    assert data["rejected"] == "the monitor dropped its upmap items"
    assert any("until CRUSH changes: the monitor dropped" in s for s in data["sentences"])
    assert "it is not moved for now: pool 'rbd' has 2 PGs degraded" in data["sentences"]
    assert answer_of(harness, "1.5").data["rejected"] is None


# -- names -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("what", ["osd.4", "4", "osd.", "osd.x", "-1", "\u0662", "1.ff", "1.",
                                  "RBD", "h0", "1.0 "])
def test_unknown_names(what: str) -> None:
    harness = looked_at(giant())
    status = harness.balancer.status
    assert status.view is not None
    assert explain(what, status.view, status, harness.settings(), 0.0) is None


def test_pool_named_as_a_number() -> None:
    cluster = giant().pool(2, size=1, name="3").pg("2.0", [1], GIB)
    assert facts(cluster, "3")["pool"] == "3" and facts(cluster, "osd.3")["osd"] == 3
    assert facts(cluster, "2")["osd"] == 2
