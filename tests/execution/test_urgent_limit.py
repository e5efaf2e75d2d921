"""The misplaced limit of moves off OSDs above backfillfull, and which limits leave it alone."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from tests.execution.limits import batch, limited, pgs, sent, wanted
from tests.support.units import GIB

ALL = ["1.0", "1.1", "1.2", "1.3", "1.4"]
TIGHT: Dict[str, Any] = {
    "max_moves_per_round": 1, "max_backfills_per_osd": 1, "max_transit_ratio": 0.02}


@pytest.mark.parametrize("others", [{}, TIGHT], ids=["free", "tight"])
@pytest.mark.parametrize("used, ratio, count", [
    (92, 0.5, 4),    # four of 2 GiB bring it below 85 %; the fifth is no relief any more
    (92, 0.01, 1),   # the larger of both limits holds
    (92, 0.0, 1),
    (86, 0.5, 1),    # below backfillfull
    (80, 0.5, 1)])
def test_relief_of_an_osd_above_backfillfull_has_a_limit_of_its_own(
        used: int, ratio: float, count: int, others: Dict[str, Any]) -> None:
    """Of PGs on two OSDs one is misplaced already, and the usual limit is two."""
    limits = limited(max_misplaced_ratio=0.03, misplaced_copies=10, urgent_misplaced_ratio=ratio,
                     **others)
    decision = batch(pgs(used // 2, 2 * GIB), wanted(2, 3, 4, 5, 6), limits)
    assert sent(decision) == ALL[:count]
