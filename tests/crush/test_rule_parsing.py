"""CRUSH rules as take blocks: which positions each take owns and how its shards fan out."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts

from equilibrium_mgr.crush.rule import TakeBlock, UnsupportedRule, parse_rule

def rule(text: str) -> Dict[str, Any]:
    dump: Dict[str, Any] = crush_map(hosts(4), {0: text}, {0: "ssd", 1: "hdd"})["rules"][0]
    return dump


def shape(block: TakeBlock) -> str:
    levels = [f"{level.num} {level.type_name}" for level in block.choose_steps]
    return f"{block.start}+{block.positions}: " + ", ".join(levels)


@pytest.mark.parametrize("text, size, expected", [
    ("take default; chooseleaf firstn 0 host; emit", 3, ["0+3: 3 host, 1 osd"]),
    ("take default; chooseleaf firstn -1 host; emit; take default~ssd; chooseleaf firstn 1 host;"
     "emit", 3, ["0+2: 2 host, 1 osd", "2+1: 1 host, 1 osd"]),
    ("take default; choose indep 0 osd; emit", 4, ["0+4: 4 osd"]),
    ("take default; chooseleaf firstn 0 osd; emit", 2, ["0+2: 2 osd"]),
    ("set_chooseleaf_tries 5; set_choose_tries 100; take default; choose indep 3 rack;"
     "chooseleaf indep 2 host; emit", 6, ["0+6: 3 rack, 2 host, 1 osd"]),
    ("take default~ssd; chooseleaf firstn 1 host; emit; take default~hdd;"
     "chooseleaf firstn -1 host; emit", 3, ["0+1: 1 host, 1 osd", "1+2: 2 host, 1 osd"]),
    ("take osd.0; emit; take osd.1; emit; take default; choose firstn 1 osd; emit", 3,
     ["0+1: 1 osd", "1+1: 1 osd", "2+1: 1 osd"]),
    # more places than shards are cut off
    ("take default; choose indep 3 rack; choose indep 2 osd; emit", 5, ["0+5: 3 rack, 2 osd"]),
    # a take behind the pool's size gets nothing
    ("take default; chooseleaf firstn 2 host; emit; take default~ssd; chooseleaf firstn 2 host;"
     "emit", 2, ["0+2: 2 host, 1 osd"]),
])
def test_blocks_of_rule(text: str, size: int, expected: List[str]) -> None:
    """First position, positions and levels of each."""
    assert [shape(block) for block in parse_rule(rule(text), size)] == expected


def test_take_blocks_know_their_bucket() -> None:
    crush = crush_map(hosts(2), {0: "take h1; choose firstn 0 osd; emit"})
    (host,) = [b["id"] for b in crush["buckets"] if b["name"] == "h1"]
    assert parse_rule(crush["rules"][0], 1)[0].take == host


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
    dump = rule("msr_indep; set_msr_descents 3; take default; choosemsr 3 host; choosemsr 2 osd;"
                "emit")
    (block,) = parse_rule(dump, 6)
    assert (block.positions, block.is_msr) == (6, True)
    with pytest.raises(UnsupportedRule, match="msr"):   # no rule of another type may have them
        parse_rule({**dump, "type": 3}, 6)


def test_unknown_step_is_named() -> None:
    with pytest.raises(UnsupportedRule, match="choosemsr_indep"):
        parse_rule(rule("take default; choosemsr indep 2 rack; emit"), 2)
