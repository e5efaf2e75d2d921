"""Which replacements are legal where an OSD has no weight: the enumeration has no such tree."""
from __future__ import annotations

from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import NONE, hosts
from tests.support.rules import SSD_HOSTS

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule


def test_osd_without_crush_weight_is_no_target() -> None:
    dump = crush_map(hosts(5), {0: SSD_HOSTS}, dict.fromkeys(range(4), "ssd"), {3: 0.0})
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], 2, False)
    assert rule.violation([0, 1]) is None
    assert [osd for osd in range(5) if rule.allows([0, 1], 0, osd)] == [2]
    for up in ([0, NONE], [0, 3], [0, 4], [0, 99]):
        assert rule.violation(up) and rule.upmap_rejection(up)
