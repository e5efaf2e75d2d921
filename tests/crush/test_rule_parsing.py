"""CRUSH rules as take blocks: which positions each take owns and how its shards fan out."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts

from equilibrium_mgr.crush.rule import TakeBlock, UnsupportedRule, parse_rule

Shape = List[Tuple[Tuple[Tuple[str, int], ...], int, int]]


def rule(text: str) -> Dict[str, Any]:
    classes = {0: "ssd", 1: "hdd"}
    dump: Dict[str, Any] = crush_map(hosts(4), {0: text}, classes)["rules"][0]
    return dump


def shape(blocks: List[TakeBlock]) -> Shape:
    return [(tuple((level.type_name, level.num) for level in block.choose_steps), block.start,
             block.positions) for block in blocks]


@pytest.mark.parametrize("text, size, expected", [
    ("take default; chooseleaf firstn 0 host; emit", 3, [((("host", 3), ("osd", 1)), 0, 3)]),
    ("take default; chooseleaf firstn -1 host; emit; take default~ssd; chooseleaf firstn 1 host;"
     "emit", 3, [((("host", 2), ("osd", 1)), 0, 2), ((("host", 1), ("osd", 1)), 2, 1)]),
    ("take default; choose indep 0 osd; emit", 4, [((("osd", 4),), 0, 4)]),
    ("take default; chooseleaf firstn 0 osd; emit", 2, [((("osd", 2),), 0, 2)]),
    ("set_chooseleaf_tries 5; set_choose_tries 100; take default; choose indep 3 rack;"
     "chooseleaf indep 2 host; emit", 6, [((("rack", 3), ("host", 2), ("osd", 1)), 0, 6)]),
    ("take default~ssd; chooseleaf firstn 1 host; emit; take default~hdd;"
     "chooseleaf firstn -1 host; emit", 3,
     [((("host", 1), ("osd", 1)), 0, 1), ((("host", 2), ("osd", 1)), 1, 2)]),
    ("take osd.0; emit; take osd.1; emit; take default; choose firstn 1 osd; emit", 3,
     [((("osd", 1),), 0, 1), ((("osd", 1),), 1, 1), ((("osd", 1),), 2, 1)]),
])
def test_blocks_of_rule(text: str, size: int, expected: Shape) -> None:
    assert shape(parse_rule(rule(text), size)) == expected


def test_take_blocks_know_their_bucket() -> None:
    crush = crush_map(hosts(2), {0: "take h1; choose firstn 0 osd; emit"})
    host = next(b["id"] for b in crush["buckets"] if b["name"] == "h1")
    assert parse_rule(crush["rules"][0], 1)[0].take == host


def test_more_places_than_shards_are_cut_off() -> None:
    blocks = parse_rule(rule("take default; choose indep 3 rack; choose indep 2 osd; emit"), 5)
    assert [(block.start, block.positions) for block in blocks] == [(0, 5)]


def test_take_behind_the_pool_size_gets_nothing() -> None:
    blocks = parse_rule(rule("take default; chooseleaf firstn 2 host; emit;"
                             "take default~ssd; chooseleaf firstn 2 host; emit"), 2)
    assert [(block.start, block.positions) for block in blocks] == [(0, 2)]


@pytest.mark.parametrize("text, size", [
    ("take default; choosemsr indep 2 rack; emit", 4),
    ("set_msr_descents 3; take default; choosemsr firstn 0 host; emit", 3),
    ("take default; choose firstn 2 rack; emit", 2),
    ("take default; emit", 1),
    ("choose firstn 0 osd; emit", 2),
    ("take default; chooseleaf firstn 2 host; emit", 3),
    ("take default; chooseleaf firstn 0 host; choose firstn 2 osd; emit", 3),
    ("take default; chooseleaf firstn -3 host; emit", 3),
    ("", 3),
])
def test_rules_out_of_reach_are_named(text: str, size: int) -> None:
    with pytest.raises(UnsupportedRule) as refused:
        parse_rule(rule(text), size)
    assert str(refused.value).startswith("the rule ")


def test_msr_step_as_ceph_dumps_it() -> None:
    steps = [{"op": "set_msr_descents", "num": 3}, {"op": "take", "item": -1},
             {"op": "choosemsr", "num": 3, "type": "host"},
             {"op": "choosemsr", "num": 2, "type": "osd"}, {"op": "emit"}]
    (block,) = parse_rule({"rule_id": 0, "type": 5, "steps": steps}, 6)
    assert (block.positions, block.is_msr) == (6, True)
    with pytest.raises(UnsupportedRule, match="msr"):   # no rule of another type may have them
        parse_rule({"rule_id": 0, "type": 3, "steps": steps}, 6)


def test_unknown_step_is_named() -> None:
    with pytest.raises(UnsupportedRule, match="choosemsr_indep"):
        parse_rule(rule("take default; choosemsr indep 2 rack; emit"), 2)
