"""Reasons to wait as values: stable codes, kinds, options, and sentences made of their figures."""
from __future__ import annotations

import pytest
from tests.execution.limits import FREE, batch, limited, pgs, wanted, why
from tests.support.units import GIB

from equilibrium_mgr.execution.batch import Decision
from equilibrium_mgr.execution.guards import PoolGuard
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.snapshot import reason_codes as codes


def decided(limits: ThrottleLimits = FREE, trouble: str = "") -> Decision:
    """For two PGs that go from osd.0 to osd.2 of eight."""
    blocked = {1: PoolGuard(trouble, False)} if trouble else {}
    return batch(pgs(2, 5 * GIB), wanted(2, 2), limits, blocked)


CASES = [
    (limited(max_misplaced_ratio=0.2), codes.MISPLACED_ONE_PG, "max_misplaced_ratio",
     {"misplaced_copies": 10, "copies": 10, "limit_ratio": 0.2, "limit": "20.00", "fits_ratio": 0.0,
      "misplaced": "25.00", "own": "25.00", "option": "max_misplaced_ratio"}),
    (limited(max_transit_ratio=0.06), codes.MAX_TRANSIT, "max_transit_ratio",
     {"osd": 2, "max_ratio": 0.06}),
    (limited(cooling={"1.1": 9.5}), codes.COOLDOWN, "pg_cooldown",
     {"pgid": "1.1", "ends_at": 1009.5, "time": "1970-01-01 00:17 UTC"}),
    (limited(max_upmap_items=0.5), codes.UPMAP_ITEMS, "max_upmap_items",
     {"pairs": 1, "max_pairs": 1})]


@pytest.mark.parametrize("limits, code, option, numbers", CASES, ids=[case[1] for case in CASES])
def test_a_deferral_has_a_code_an_option_and_figures(
        limits: ThrottleLimits, code: str, option: str, numbers: object) -> None:
    (_, deferral), = decided(limits).waiting
    assert deferral.code == code
    assert deferral.option == option
    assert deferral.numbers == numbers


def test_names_with_braces_stand_in_a_sentence_as_they_are() -> None:
    decision = decided(trouble="pool '{x}' has 3 PGs degraded")
    assert why(decision) == "pool '{x}' has 3 PGs degraded"
