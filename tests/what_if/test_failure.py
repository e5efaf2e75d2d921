"""What fails together: OSDs and buckets by name, and the failure domains of a cluster."""
from __future__ import annotations

from typing import Set

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import HOST_RULE, OSD_RULE

from equilibrium_mgr.what_if.failure import Failure, failure_domains, find_failure

RACKS = {"root default": {
    "rack r0": {"host h0": [0, 1], "host h1": [2, 3]},
    "rack r1": {"host h2": [4, 5], "host h3": [6, 7]}}}


@pytest.mark.parametrize("text, name, type_name, osds", [
    ("3", "osd.3", "osd", {3}), ("osd.3", "osd.3", "osd", {3}), ("h1", "h1", "host", {2, 3}),
    ("r1", "r1", "rack", {4, 5, 6, 7}), ("h0, osd.5", "h0,osd.5", "", {0, 1, 5})])
def test_an_osd_a_bucket_and_several(text: str, name: str, type_name: str,
                                     osds: Set[int]) -> None:
    snapshot = Cluster(RACKS).snapshot()
    assert find_failure(snapshot, text) == Failure(name, type_name, frozenset(osds))


def test_a_number_is_an_osd_even_where_a_bucket_has_that_name() -> None:
    snapshot = Cluster({"root default": {"host 1": [0, 1], "host 4": [2, 3]}}).snapshot()
    assert find_failure(snapshot, "1") == Failure("osd.1", "osd", frozenset({1}))
    assert find_failure(snapshot, "4") is None


@pytest.mark.parametrize("text", ["", "h9", "osd.99", "osd.", "-1", "h0,h9", "99", "9" * 5000])
def test_what_is_not_in_the_map(text: str) -> None:
    assert find_failure(Cluster(RACKS).snapshot(), text) is None


def test_osds_that_are_out_do_not_fail() -> None:
    found = find_failure(Cluster(RACKS).mark_out(2).snapshot(), "h1")
    assert found is not None
    assert found.osds == {3}


def test_hosts_and_what_the_rules_keep_apart() -> None:
    rack_rule = "take default; chooseleaf firstn 0 rack; emit"
    cluster = Cluster(RACKS, {0: HOST_RULE, 1: rack_rule, 2: OSD_RULE})
    cluster.pool(1).pool(2, size=2, rule=1)
    names = {kind: [failure.name for failure in failures]
             for kind, failures in failure_domains(cluster.snapshot()).items()}
    assert names == {"host": ["h0", "h1", "h2", "h3"], "rack": ["r0", "r1"]}
    cluster.pool(3, size=2, rule=2)
    assert [failure.name for failure in failure_domains(cluster.snapshot())["osd"]] == [
        f"osd.{osd}" for osd in range(8)]


def test_buckets_without_osds_that_are_in_are_left_out() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=2).mark_out(1)
    assert [failure.name for failure in failure_domains(cluster.snapshot())["host"]] == ["h0", "h2"]
