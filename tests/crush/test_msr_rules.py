"""MSR rules: legality against brute force, and the simulated CRUSH against crushtool."""
from __future__ import annotations

import json
import random
from itertools import permutations
from typing import Any, List, Tuple

import pytest
from tests.support.clusters import msr_maps
from tests.support.clusters.crush_maps import crush_map, hosts
from tests.support.few import few
from tests.support.tables import rows

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule
from equilibrium_mgr.crush.rule import UnsupportedRule, parse_rule
from mgr_stub.crush.hashes import NONE
from mgr_stub.crush.mapper import Mapper


def rule_of(made: msr_maps.MsrMap, positional: bool = False) -> PlacementRule:
    return PlacementRule(CrushHierarchy(made.dump), made.rule, made.size, positional)


def given(made: msr_maps.MsrMap, inputs: int = 60) -> List[Tuple[int, ...]]:
    """Whole up sets that CRUSH gives with these reweights."""
    return [up for up in mapped(made, inputs) if len(up) == made.size and NONE not in up]


def mapped(made: msr_maps.MsrMap, inputs: int) -> List[Tuple[int, ...]]:
    mapper = Mapper(made.dump)
    return [tuple(mapper.map(0, x, made.size, made.reweights)) for x in range(inputs)]


def test_crush_is_simulated_as_crushtool_maps() -> None:
    """As recorded with crushtool 20.2.4."""
    for seed, expected in zip(msr_maps.GOLDEN_SEEDS, json.loads(msr_maps.GOLDEN.read_text())):
        found = mapped(msr_maps.make(seed), msr_maps.GOLDEN_INPUTS)
        assert list(map(tuple, expected)) == found, seed


@pytest.mark.parametrize("positional", (False, True))
@pytest.mark.parametrize("seed", few(range(40), 6))
def test_legality_is_that_of_brute_force(seed: int, positional: bool) -> None:
    """By positions where neighboring ones belong together, else by places."""
    made = msr_maps.make(seed, msr_maps.LOOSE if seed % 4 == 3 else msr_maps.SHAPES)
    rng, positional = random.Random(seed), positional and made.in_order
    rule, known = rule_of(made, positional), given(made)
    assert {rule.violation(up) for up in known} <= {None}
    verdicts = set()
    for up in msr_maps.candidates(rng, made, known) if known else ():
        possible = made.is_possible(up, positional)
        assert (rule.violation(up) is None) == possible, up
        verdicts.add(possible)
    assert len(verdicts) == 2 or not known
    for up in known[:2]:
        for position in range(made.size):
            for osd in range(made.osds):
                wanted = up[:position] + (osd,) + up[position + 1:]
                expected = osd not in up and made.is_possible(wanted, positional)
                assert rule.allows(up, position, osd) == expected, (up, position, osd)


def test_all_that_is_legal_comes_of_crush_when_osds_are_out() -> None:
    """No more is allowed than CRUSH itself does: each legal up set of a small tree is found."""
    dump = crush_map(hosts(3, 2),
                     {0: "msr_indep; set_msr_descents 8; take default; choosemsr 2 host;"
                         " choosemsr 2 osd; emit"})
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], 3, True)
    legal = {up for up in permutations(range(6), 3) if rule.violation(up) is None}
    mapper = Mapper(dump)
    found = {mapper.map(0, x, 3, dict.fromkeys(range(6), 0x9000)) for x in range(1500)}
    assert {up for up in found if NONE not in up} == legal and len(legal) > 60


def test_the_monitor_counts_one_position_for_each_take() -> None:
    """As osdmaptool 20.2.4 cleans such upmaps."""
    made = msr_maps.two_takes()
    for up in given(made):
        assert "outside the part" in str(rule_of(made).upmap_rejection(up)), up
    dump = crush_map(hosts(3, 3),
                     {0: "msr_indep; take default; choosemsr 2 host; choosemsr 2 osd; emit"})
    rule, broken = PlacementRule(CrushHierarchy(dump), dump["rules"][0], 4, True), (0, 1, 2, 3)
    assert rule.violation(broken) is not None and rule.upmap_rejection(broken) is None


def parsed(text: str, size: int) -> Any:
    return parse_rule(crush_map({"root default": {"host a": [0, 1]}}, {0: text})["rules"][0], size)


def test_blocks_of_a_rule() -> None:
    (block,) = parsed("msr_indep; set_msr_descents 9; set_msr_collision_tries 9; take default;"
                      " choosemsr 0 host; choosemsr 2 osd; emit", 3)
    assert (block.positions, block.shards_below(0), block.is_msr) == (3, 2, True)
    first, last = parsed("msr_firstn; take default; choosemsr 1 host; choosemsr 2 osd; emit;"
                         "take default; choosemsr 2 osd; emit", 3)
    assert (first.start, first.positions, last.start, last.positions) == (0, 2, 2, 1)


@pytest.mark.parametrize("size, text", [*rows("""
3  msr_indep; take default; choosemsr 2 osd; emit
2  msr_indep; take default; choosemsr 2 host; emit
2  msr_indep; take default; choosemsr 2 osd; choosemsr 1 osd; emit
2  msr_indep; take default; choosemsr -1 osd; emit
2  msr_indep; take default; chooseleaf indep 2 host; emit
2  msr_indep; take default; set_msr_descents 9; choosemsr 2 osd; emit
1  msr_indep; take osd.0; emit
2  msr_indep; choosemsr 2 osd; emit
2  take default; choosemsr 2 osd; emit
""")])
def test_what_is_no_msr_rule_is_not_understood(size: str, text: str) -> None:
    with pytest.raises(UnsupportedRule):
        parsed(text, int(size))
