"""The CRUSH tree: weights, ancestors, uneven depth."""
from __future__ import annotations

from typing import Any, Dict, List

from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts

from equilibrium_mgr.crush.hierarchy import CrushHierarchy

UNEVEN = {"root default": {"rack r1": {"host a": [0, 1], "chassis c": {"host b": [2]}},
                           "host lone": [3], "osds": [4]}}


def ids(crush: Dict[str, List[Dict[str, Any]]]) -> Dict[str, int]:
    return {b["name"]: b["id"] for b in crush["buckets"]}


def test_ancestors_at_uneven_depth() -> None:
    dump = crush_map(UNEVEN, {})
    names = ids(dump)
    tree = CrushHierarchy(dump).subtree(names["default"])
    a, b, lone, rack = [names[name] for name in ("a", "b", "lone", "r1")]
    assert tree.bucket_of("host") == {0: a, 1: a, 2: b, 3: lone}
    assert tree.bucket_of("rack") == dict.fromkeys((0, 1, 2), rack)
    assert tree.bucket_of("osd") == {osd: osd for osd in range(5)}
    assert tree.bucket_of("datacenter") == {}
    found = CrushHierarchy(dump).buckets_of_type(names["default"], "host")
    assert list(found) == [a, b, lone]   # in the tree's order


def test_below_a_bucket_without_weight_nothing_has_weight() -> None:
    """Ceph's own CRUSH places nothing there (crushtool --test, Ceph 16)."""
    dump = crush_map(hosts(3, 2), {})
    root = dump["buckets"][0]
    root["items"][1]["weight"] = 0
    tree = CrushHierarchy(dump).subtree(root["id"])
    assert tree.weights == {0: 1.0, 1: 1.0, 2: 0.0, 3: 0.0, 4: 1.0, 5: 1.0}
