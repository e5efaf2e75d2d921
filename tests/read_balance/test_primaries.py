"""Primaries by shares: no choice is more even, and few PGs change."""
from __future__ import annotations

import random
from collections import Counter
from itertools import product
from math import ceil, floor
from typing import Dict, List, Mapping, Tuple

import pytest

from equilibrium_mgr.read_balance.primaries import Choice, choose_primaries


def counts_of(choices: List[Choice], changes: Mapping[str, int]) -> Counter[int]:
    return Counter(changes.get(choice.pgid, choice.primary) for choice in choices)


def unevenness(counts: Mapping[int, int], shares: Mapping[int, float]) -> Tuple[int, int]:
    """(Primaries above the shares, primaries that are missing below them)."""
    return (sum(max(0, counts.get(osd, 0) - ceil(share - 1e-9)) for osd, share in shares.items()),
            sum(max(0, floor(share + 1e-9) - counts.get(osd, 0)) for osd, share in shares.items()))


def fair(sets: List[Tuple[int, ...]], size: int) -> Dict[int, float]:
    return {osd: count / size for osd, count in Counter(
        osd for osds in sets for osd in osds).items()}


def test_one_path_is_turned_round() -> None:
    """osd.0 leads all three PGs and shares none with osd.2: osd.1 passes one on."""
    choices = [Choice("1.0", 0, (1,)), Choice("1.1", 0, (1,)), Choice("1.2", 1, (2,))]
    changes = choose_primaries(choices, {0: 2, 1: 1}, {0: 1.0, 1: 1.0, 2: 1.0})
    assert counts_of(choices, changes) == {0: 1, 1: 1, 2: 1} and len(changes) == 2


def test_nothing_changes_where_shares_are_met() -> None:
    choices = [Choice("1.0", 0, (1,)), Choice("1.1", 1, (0,))]
    assert choose_primaries(choices, {0: 1, 1: 1}, {0: 1.0, 1: 1.0}) == {}
    assert choose_primaries([], {}, {}) == {}


def test_pgs_without_choice_count() -> None:
    """osd.0 leads two PGs that cannot be changed: it gives up the third."""
    choices = [Choice("1.2", 0, (1,))]
    assert choose_primaries(choices, {0: 3}, {0: 1.5, 1: 1.5}) == {"1.2": 1}


def test_an_osd_without_share_leads_nothing() -> None:
    choices = [Choice(f"1.{n}", 0, (1, 2)) for n in range(4)]
    changes = choose_primaries(choices, {0: 4}, {0: 0.0, 1: 2.0, 2: 2.0})
    assert counts_of(choices, changes) == {1: 2, 2: 2}


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_is_more_even(seed: int) -> None:
    """Held against all choices of small pools; about as few changes do."""
    rng = random.Random(seed)
    size = rng.choice((2, 3))
    sets = [tuple(rng.sample(range(5), size)) for _ in range(rng.randint(3, 7 if size > 2 else 9))]
    choices = [Choice(f"1.{n:x}", osds[0], osds[1:]) for n, osds in enumerate(sets)]
    shares = fair(sets, size)
    changes = choose_primaries(choices, counts_of(choices, {}), shares)
    found = unevenness(counts_of(choices, changes), shares)
    best, fewest = min((unevenness(Counter(one), shares),
                        sum(osd != osds[0] for osd, osds in zip(one, sets)))
                       for one in product(*sets))
    assert found == best
    assert len(changes) <= fewest + 2


def test_large_pools_are_even() -> None:
    rng = random.Random(1)
    sets = [tuple(rng.sample(range(40), 3)) for _ in range(2000)]
    choices = [Choice(f"1.{n:x}", osds[0], osds[1:]) for n, osds in enumerate(sets)]
    shares = fair(sets, 3)
    before = counts_of(choices, {})
    changes = choose_primaries(choices, before, shares)
    assert unevenness(counts_of(choices, changes), shares) == (0, 0)
    assert changes == choose_primaries(choices, before, shares)
    assert len(changes) <= 1.1 * unevenness(before, shares)[0]
