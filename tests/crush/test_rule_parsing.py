"""CRUSH rules that no tree can serve, or that an enumeration of up sets tells nothing of."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts
from tests.support.tables import rows

from equilibrium_mgr.crush.rule import UnsupportedRule, parse_rule


def rule(text: str) -> Dict[str, Any]:
    dump: Dict[str, Any] = crush_map(hosts(4), {0: text}, {0: "ssd", 1: "hdd"})["rules"][0]
    return dump


@pytest.mark.parametrize("text, size, expected", [
    ("take default; chooseleaf firstn 0 osd; emit", 2, ["0+2: 2 osd"]),
    # a take behind the pool's size gets nothing
    ("take default; chooseleaf firstn 2 host; emit; take default~ssd; chooseleaf firstn 2 host;"
     "emit", 2, ["0+2: 2 host, 1 osd"]),
])
def test_what_no_enumeration_shows(text: str, size: int, expected: List[str]) -> None:
    """First position, positions and levels of each block."""
    found = []
    for block in parse_rule(rule(text), size):
        levels = [f"{level.num} {level.type_name}" for level in block.choose_steps]
        found.append(f"{block.start}+{block.positions}: " + ", ".join(levels))
    assert found == expected


@pytest.mark.parametrize("size, text", [("3", ""), *rows("""
4  take default; choosemsr indep 2 rack; emit
3  set_msr_descents 3; take default; choosemsr firstn 0 host; emit
2  take default; choose firstn 2 rack; emit
1  take default; emit
2  choose firstn 0 osd; emit
3  take default; chooseleaf firstn 2 host; emit
3  take default; chooseleaf firstn 0 host; choose firstn 2 osd; emit
3  take default; chooseleaf firstn -3 host; emit
""")])
def test_rules_out_of_reach_are_named(size: str, text: str) -> None:
    with pytest.raises(UnsupportedRule) as refused:
        parse_rule(rule(text), int(size))
    assert str(refused.value).startswith("the rule ")


def test_unknown_step_is_named() -> None:
    with pytest.raises(UnsupportedRule, match="choosemsr_indep"):
        parse_rule(rule("take default; choosemsr indep 2 rack; emit"), 2)
