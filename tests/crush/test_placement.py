"""Which up sets and which replacements are legal, for every rule shape that must be known."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule


def racks(count: int, hosts_each: int, osds_each: int = 1) -> Dict[str, Any]:
    """OSDs are numbered rack by rack, host by host."""
    numbers = iter(range(count * hosts_each * osds_each))
    return {"root default": {
        f"rack r{r}": {f"host h{r}{h}": [next(numbers) for _ in range(osds_each)]
                         for h in range(hosts_each)} for r in range(count)}}


def placement(tree: Dict[str, Any], text: str, size: int, erasure: bool = False,
              **crush: Any) -> PlacementRule:
    dump = crush_map(tree, {0: text}, **crush)
    return PlacementRule(CrushHierarchy(dump), dump["rules"][0], size, erasure)


def allowed(rule: PlacementRule, up: Sequence[int], position: int, osds: int) -> List[int]:
    assert rule.violation(up) is None
    return [osd for osd in range(osds) if rule.allows(up, position, osd)]


def test_three_by_two_over_five_racks_erasure_coded() -> None:
    rule = placement(racks(5, 3), "take default; choose indep 3 rack; chooseleaf indep 2 host;"
                     " emit", 6, erasure=True)
    up = [0, 1, 3, 4, 6, 7]
    assert allowed(rule, up, 0, 15) == [2]           # its neighbor keeps it in the rack
    assert rule.violation([0, 3, 1, 4, 6, 7])           # the same OSDs, groups torn apart
    assert rule.violation([0, 1, 3, 4, 6, 9])           # four racks
    assert rule.violation([0, 1, 2, 3, 4, 6])           # 3 + 2 + 1
    assert rule.violation([12, 13, 9, 10, 6, 8]) is None


def test_last_group_of_one_may_leave_its_rack() -> None:
    rule = placement(racks(4, 3), "take default; choose indep 3 rack; chooseleaf indep 2 host;"
                     " emit", 5, erasure=True)
    assert allowed(rule, [0, 1, 3, 4, 6], 4, 12) == [7, 8, 9, 10, 11]


def test_both_zero_fill_the_first_site() -> None:
    """Inner count = pool size: CRUSH takes all shards from the first bucket that it chooses."""
    rule = placement(racks(2, 4), "take default; choose firstn 0 rack; chooseleaf firstn 0 host;"
                     " emit", 3)
    assert rule.violation([0, 1, 2]) is None
    assert rule.violation([0, 1, 4])


def test_hosts_at_uneven_depth() -> None:
    tree = {"root default": {"rack r": {"host a": [0, 1], "host b": [2]}, "host lone": [3],
                             "osds": [4]}}
    rule = placement(tree, "take default; chooseleaf firstn 0 host; emit", 2)
    assert allowed(rule, [0, 2], 0, 5) == [1, 3]     # osd.4 is under no host at all
    assert rule.violation([0, 4])
    by_rack = placement(tree, "take default; choose firstn 1 rack; chooseleaf firstn 2 host;"
                        " emit", 2)
    assert by_rack.violation([0, 3])                    # host lone is in no rack


def test_take_of_a_rack_of_a_host_and_of_an_osd() -> None:
    by_rack = placement(racks(2, 3), "take r1; chooseleaf firstn 0 host; emit", 2)
    assert allowed(by_rack, [3, 4], 0, 6) == [5]
    by_host = placement(hosts(2, 3), "take h1; choose firstn 0 osd; emit", 2)
    assert allowed(by_host, [3, 4], 0, 6) == [5]
    pinned = placement(hosts(3), "take osd.0; emit; take default; choose firstn 1 osd; emit", 2)
    assert allowed(pinned, [0, 1], 0, 3) == []
    assert allowed(pinned, [0, 1], 1, 3) == [2]
    assert pinned.violation([1, 2])


def test_osd_without_crush_weight_is_no_target() -> None:
    rule = placement(hosts(4), "take default; chooseleaf firstn 0 host; emit", 2,
                     weights={3: 0.0})
    assert allowed(rule, [0, 1], 0, 4) == [2]


def test_third_rack_is_no_way_out() -> None:
    """Two racks of two OSDs: a shard that left for another rack would make three racks."""
    rule = placement(racks(3, 2, 2), "take default; choose firstn 2 rack; choose firstn 2 osd;"
                     " emit", 4)
    assert allowed(rule, [0, 1, 4, 5], 0, 12) == [2, 3]


@pytest.mark.parametrize("steps, buckets", [
    ("choose indep 0 rack; chooseleaf indep 2 host", [3, 2]),
    ("choose indep 6 rack; chooseleaf indep 2 host", [3, 2]),
    ("choose indep 3 rack; chooseleaf indep 2 host", [3, 2]),
    ("choose indep 2 rack; chooseleaf indep 3 host", [2, 3]),
    ("choose indep 4 rack; chooseleaf indep 4 host", [2, 4]),
    ("chooseleaf indep 0 rack", [6])])
def test_a_pg_uses_no_more_buckets_than_its_positions_fill(steps: str, buckets: List[int]) -> None:
    rule = placement(racks(6, 4), f"take default; {steps}; emit", 6, erasure=True)
    assert [domain.buckets_per_parent for domain in rule.blocks[0].domains] == buckets
