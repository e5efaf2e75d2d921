"""Upmap items: applied as the monitor does, inverted, and written as short as possible."""
from __future__ import annotations

import random
from itertools import permutations
from typing import Dict, List, Tuple

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule
from equilibrium_mgr.snapshot.upmap_items import (
    apply_items, invert_items, items_for, keep_raw_positions)

Items = List[Tuple[int, int]]


def never_out(_osd: int) -> bool:
    return False


@pytest.mark.parametrize("items, up", [
    ([(3, 2)], (2, 1, 0)),
    ([(4, 2)], (3, 1, 0)),            # from is not there
    ([(3, 1)], (3, 1, 0)),            # to is there already: a dead entry
    ([(3, 2), (2, 4)], (4, 1, 0)),    # a chain
    ([(3, 1), (1, 3)], (3, 1, 0)),    # a swap does nothing
    ([(3, 2), (3, 4)], (2, 1, 0)),    # the first wins
    ([(0, 5), (1, 6)], (3, 6, 5)),
    ([(3, 0), (0, 7)], (3, 1, 7)),
    ([], (3, 1, 0)),
])
def test_items_apply_in_order(items: Items, up: Tuple[int, ...]) -> None:
    assert apply_items([3, 1, 0], items, never_out) == up


def test_out_target_is_skipped() -> None:
    assert apply_items([3, 1, 0], [(3, 2), (1, 4)], lambda osd: osd == 2) == (3, 4, 0)


def test_mapping_that_cannot_be_told_is_none() -> None:
    """The target is up without its source being gone for it: no raw mapping gives this."""
    assert invert_items((3, 2, 0), [(3, 2), (1, 3)], lambda osd: osd == 3) is None


def steps_to(raw: Tuple[int, ...], osds: int) -> Dict[Tuple[int, ...], int]:
    """Up set → the fewest pairs that lead there, by trying all that a monitor takes and keeps."""
    found, last = {raw: 0}, [raw]
    for _ in raw:
        last = [up for up in {(*one[:i], osd, *one[i + 1:]) for one in last
                              for i in range(len(raw)) if one[i] in raw
                              for osd in range(osds) if osd not in one} if up not in found]
        found.update(dict.fromkeys(last, max(found.values()) + 1))
    return found


def test_every_up_set_that_can_be_had_is_had_by_the_fewest_pairs_and_inverted() -> None:
    rng = random.Random(5)
    refused = 0
    for _ in range(20):
        raw = tuple(rng.sample(range(6), 4))
        fewest = steps_to(raw, 6)
        for wanted in permutations(range(6), 4):
            try:
                items = items_for(raw, wanted)
            except ValueError:
                refused += 1
                assert wanted not in fewest
                continue
            assert apply_items(raw, items, never_out) == wanted
            assert len(items) == fewest[wanted]
            assert {source for source, _ in items} <= set(raw)
            assert invert_items(wanted, items, never_out) == raw
    only_exchanged = 24 - 1   # the other orders of what CRUSH wants
    assert refused > 20 * only_exchanged   # and some take five pairs


def test_raw_mappings_of_any_items_are_told_for_certain() -> None:
    """Where a raw mapping with all sources is told, no other one leads to the same up set."""
    rng = random.Random(8)
    told = 0
    for _ in range(400):
        raw = tuple(rng.sample(range(6), 3))
        items = [(rng.choice(raw), rng.randrange(6)) for _ in range(rng.randint(2, 5))]
        up = apply_items(raw, items, never_out)
        found = invert_items(up, items, never_out)
        sources = {source for source, _ in items}
        others = [other for other in permutations(range(6), 3) if sources <= set(other)
                  and apply_items(other, items, never_out) == up]
        passes = len({s for s, t in items if t in up and s not in up}) < len(
            {(s, t) for s, t in items if t in up and s not in up})
        if passes:
            told += found is not None
            assert (found == raw) if len(others) == 1 else (found is None)
    assert told > 20


def host_rule(size: int) -> PlacementRule:
    dump = crush_map(hosts(8), {0: "take default; chooseleaf firstn 0 host; emit"})
    return PlacementRule(CrushHierarchy(dump), dump["rules"][0], size, False)


def test_settling_puts_members_back_where_crush_had_them() -> None:
    rule = host_rule(3)
    assert keep_raw_positions((3, 1, 0), (1, 5, 0), rule) == (5, 1, 0)
    assert keep_raw_positions((3, 1, 0), (0, 3, 1), rule) == (3, 1, 0)
    assert keep_raw_positions((3, 1, 0), (4, 5, 6), rule) == (4, 5, 6)


def test_settling_keeps_take_blocks_apart() -> None:
    dump = crush_map(hosts(6), {0: "take default~ssd; chooseleaf firstn 1 host; emit;"
                                   "take default~hdd; chooseleaf firstn 2 host; emit"},
                     classes={0: "ssd", 1: "ssd", 2: "ssd"})
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], 3, False)
    assert keep_raw_positions((0, 3, 4), (1, 4, 5), rule) == (1, 5, 4)
