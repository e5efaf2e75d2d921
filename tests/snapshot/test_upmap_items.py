"""Upmap items: applied as the monitor does, inverted, and written as short as possible."""
from __future__ import annotations

import random
from itertools import permutations
from typing import Dict, List, Sequence, Tuple

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import hosts
from tests.support import placed
from tests.support.rules import HOST_RULE, SSD_FIRST
from tests.support.tables import rows

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule
from equilibrium_mgr.snapshot.upmap_items import (
    apply_items, changed_pairs, invert_items, items_for, keep_raw_positions)


def never_out(_osd: int) -> bool:
    return False


@pytest.mark.parametrize("items, up, what", [("", "310", "none"), *rows("""
32     210  one
42     310  from is not there
31     310  to is there already: a dead entry
32 24  410  a chain
31 13  310  a swap does nothing
32 34  210  the first wins
05 16  365  two
30 07  317  to the place of one that has gone
""")])
def test_items_apply_in_order(items: str, up: str, what: str) -> None:
    """To an OSD each digit."""
    pairs = [(int(pair[0]), int(pair[1])) for pair in items.split()]
    assert apply_items([3, 1, 0], pairs, never_out) == tuple(map(int, up))


def test_out_target_is_skipped() -> None:
    assert apply_items([3, 1, 0], [(3, 2), (1, 4)], lambda osd: osd == 2) == (3, 4, 0)


def test_mapping_that_cannot_be_told_is_none() -> None:
    """The target is up without its source being gone for it: no raw mapping gives this."""
    assert invert_items((3, 2, 0), [(3, 2), (1, 3)], lambda osd: osd == 3) is None


def steps_to(raw: Tuple[int, ...], osds: int) -> Dict[Tuple[int, ...], int]:
    """Up set → the fewest pairs that lead there, by trying all that a monitor takes and keeps."""
    found, last = {raw: 0}, {raw}
    for pairs in range(1, len(raw) + 1):
        reached = set()
        for one in last:
            for position in range(len(raw)):
                if one[position] in raw:
                    reached.update(replaced(one, position, osds))
        last = reached - found.keys()
        found.update(dict.fromkeys(last, pairs))
    return found


def replaced(up: Tuple[int, ...], position: int, osds: int) -> List[Tuple[int, ...]]:
    """With each other OSD there."""
    free = set(range(osds)).difference(up)
    return [(*up[:position], osd, *up[position + 1:]) for osd in free]


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
        others = [other for other in permutations(range(6), 3) if sources <= set(other)]
        alike = [other for other in others if apply_items(other, items, never_out) == up]
        effective = {(s, t) for s, t in items if t in up and s not in up}
        if len(dict(effective)) < len(effective):
            told += found is not None
            assert found == (raw if len(alike) == 1 else None)
    assert told > 20


@pytest.mark.parametrize("rule, raw, wanted, settled", [
    (HOST_RULE, (3, 1, 0), (1, 5, 0), (5, 1, 0)),
    (HOST_RULE, (3, 1, 0), (0, 3, 1), (3, 1, 0)),
    (HOST_RULE, (3, 1, 0), (4, 5, 6), (4, 5, 6)),
    (SSD_FIRST, (0, 3, 4), (1, 4, 5), (1, 5, 4))])   # takes keep apart
def test_settling_puts_members_back_where_crush_had_them(
        rule: str, raw: Sequence[int], wanted: Sequence[int], settled: Sequence[int]) -> None:
    dump = crush_map(hosts(8), {0: rule}, dict.fromkeys((0, 1, 2), "ssd"))
    placement = PlacementRule(CrushHierarchy(dump), dump["rules"][0], 3, False)
    assert keep_raw_positions(raw, wanted, placement) == settled


def test_items_that_are_new_gone_or_altered_show_where_shards_move() -> None:
    before = placed.pairs("1>2 3>4 5>6")
    assert set(changed_pairs(before, placed.pairs("1>2 3>7 8>9"))) == {(4, 7), (6, 5), (8, 9)}
