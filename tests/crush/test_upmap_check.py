"""What a monitor keeps and cancels, by the table of its own check."""
from __future__ import annotations

from typing import Any, Dict

from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import NONE, hosts
from tests.support.strict_crush import monitor_keeps

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule
from mgr_stub.osdmap.crush_map import CrushMap

ZONES = {"root default": {f"zone z{z}": {f"host h{z}{h}": [8 * z + 4 * h + i
                                                                   for i in range(4)]
                                           for h in range(2)} for z in range(3)}}
HALF_SSD = {osd: "ssd" if osd % 4 < 2 else "hdd" for osd in range(24)}


def pool_rule(tree: Dict[str, Any], text: str, size: int, erasure: bool = False,
              **crush: Any) -> PlacementRule:
    dump = crush_map(tree, {0: text}, **crush)
    return PlacementRule(CrushHierarchy(dump), dump["rules"][0], size, erasure)


def test_hybrid_choose_of_zones_is_always_refused() -> None:
    rule = pool_rule(ZONES, "take default~ssd; choose firstn 2 zone; choose firstn 1 osd; emit;"
                     "take default~hdd; choose firstn 2 zone; choose firstn 1 osd; emit", 4,
                     classes=HALF_SSD)
    natural = [0, 8, 2, 10]                          # 2 shadow zones of ssd and 2 of hdd
    assert rule.violation(natural) is None
    assert "4 buckets" in str(rule.upmap_rejection(natural))
    assert not rule.allows(natural, 0, 1)


def test_nested_choose_with_inner_count_is_refused() -> None:
    rule = pool_rule(ZONES, "take default; choose firstn 2 zone; choose firstn 2 host;"
                     "choose firstn 1 osd; emit", 4)
    natural = [0, 4, 8, 12]
    assert rule.violation(natural) is None
    assert "4 buckets of type host, the monitor allows 2" in str(rule.upmap_rejection(natural))
    assert not rule.allows(natural, 0, 1)


def test_hole_outsider_and_weightless_are_refused() -> None:
    rule = pool_rule(hosts(4), "take default~ssd; choose firstn 0 osd; emit", 2,
                     classes={0: "ssd", 1: "ssd", 2: "ssd"}, weights={2: 0.0})
    assert rule.upmap_rejection([0, 1]) is None
    for up in ([0, NONE], [0, 3], [0, 2], [0, 99]):
        assert rule.upmap_rejection(up)


def test_two_choose_steps_of_one_type_count_once() -> None:
    """The first count of a type wins when the monitor works out how many shards a take owns."""
    text = ("take default; choose firstn 1 zone; choose firstn 2 osd; emit;"
            "take default; choose firstn 1 zone; choose firstn 1 osd; emit")
    dump = crush_map(ZONES, {0: text})
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], 3, False)
    for up in ([0, 1, 4], [0, 1, 8]):
        assert (rule.upmap_rejection(up) is None) == monitor_keeps(CrushMap(dump), 0, 3, up)


def test_take_of_an_osd_is_not_subtree_checked() -> None:
    rule = pool_rule(hosts(3), "take osd.0; emit; take osd.1; emit", 2)
    assert rule.upmap_rejection([1, 0]) is None
    assert rule.violation([1, 0])
    assert rule.upmap_rejection([0, 2])              # outside both takes: no weight
