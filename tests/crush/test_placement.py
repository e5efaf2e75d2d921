"""Which up sets and replacements are legal where the enumeration has no such tree."""
from __future__ import annotations

import itertools
from typing import Any, Dict, List, Sequence

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import NONE, hosts

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule


def tree_of_racks(count: int, hosts_each: int) -> Dict[str, Any]:
    """Hosts of one OSD, numbered rack by rack."""
    numbers = itertools.count()
    racks = {}
    for r in range(count):
        racks[f"rack r{r}"] = {f"host h{r}{h}": [next(numbers)] for h in range(hosts_each)}
    return {"root default": racks}


def placement(tree: Dict[str, Any], text: str, size: int, erasure: bool = False,
              **crush: Any) -> PlacementRule:
    dump = crush_map(tree, {0: text}, **crush)
    return PlacementRule(CrushHierarchy(dump), dump["rules"][0], size, erasure)


def allowed(rule: PlacementRule, up: Sequence[int], position: int, osds: int) -> List[int]:
    assert rule.violation(up) is None
    return [osd for osd in range(osds) if rule.allows(up, position, osd)]


def test_hosts_at_uneven_depth() -> None:
    tree = {"root default": {"rack r": {"host a": [0, 1], "host b": [2]}, "host lone": [3],
                             "osds": [4]}}
    rule = placement(tree, "take default; chooseleaf firstn 0 host; emit", 2)
    assert allowed(rule, [0, 2], 0, 5) == [1, 3]     # osd.4 is under no host at all
    assert rule.violation([0, 4])
    by_rack = placement(tree, "take default; choose firstn 1 rack; chooseleaf firstn 2 host;"
                        " emit", 2)
    assert by_rack.violation([0, 3])                    # host lone is in no rack


def test_osd_without_crush_weight_is_no_target() -> None:
    rule = placement(hosts(5), "take default~ssd; chooseleaf firstn 0 host; emit", 2,
                     classes=dict.fromkeys(range(4), "ssd"), weights={3: 0.0})
    assert allowed(rule, [0, 1], 0, 5) == [2]
    for up in ([0, NONE], [0, 3], [0, 4], [0, 99]):
        assert rule.violation(up) and rule.upmap_rejection(up)


@pytest.mark.parametrize("steps, buckets", [
    ("choose indep 0 rack; chooseleaf indep 2 host", [3, 2]),
    ("choose indep 6 rack; chooseleaf indep 2 host", [3, 2]),
    ("choose indep 3 rack; chooseleaf indep 2 host", [3, 2]),
    ("choose indep 2 rack; chooseleaf indep 3 host", [2, 3]),
    ("choose indep 4 rack; chooseleaf indep 4 host", [2, 4]),
    ("chooseleaf indep 0 rack", [6])])
def test_a_pg_uses_no_more_buckets_than_its_positions_fill(steps: str, buckets: List[int]) -> None:
    rule = placement(tree_of_racks(6, 4), f"take default; {steps}; emit", 6, erasure=True)
    assert [domain.buckets_per_parent for domain in rule.blocks[0].domains] == buckets
