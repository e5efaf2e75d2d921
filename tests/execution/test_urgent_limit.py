"""The misplaced limit of moves off OSDs above backfillfull, and which limits leave it alone."""
from __future__ import annotations

from typing import Any, List

import pytest

from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.plan.model import PgChange
from tests.execution.limits import limited
from tests.execution.test_throttle import batch, pgs, sent, wanted
from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB


def limits(urgent_misplaced_ratio: float = 0.5, **fields: Any) -> ThrottleLimits:
    """Of 46 PGs on two OSDs one is misplaced already, and the usual limit is two."""
    return limited(max_misplaced_ratio=0.03, misplaced_copies=10,
                   urgent_misplaced_ratio=urgent_misplaced_ratio, **fields)


ALL = ["1.0", "1.1", "1.2", "1.3", "1.4"]


def changes() -> List[PgChange]:
    return wanted([2, 3, 4, 5, 6])


def full(used: int = 92) -> Cluster:
    """osd.0 at so many per cent, with PGs of 2 GiB."""
    return pgs(used // 2, num_bytes=2 * GIB)


@pytest.mark.parametrize("used", [86, 80])
def test_relief_below_backfillfull_has_the_usual_limit(used: int) -> None:
    assert sent(batch(full(used), changes(), limits())) == ["1.0"]


def test_the_larger_of_both_limits_holds() -> None:
    assert sent(batch(full(), changes(), limits(0.01))) == ["1.0"]


def test_the_other_limits_of_a_round_do_not_undo_it() -> None:
    tight: Any = dict(max_moves_per_round=1, max_backfills_per_osd=1, max_transit_ratio=0.02)
    assert sent(batch(full(), changes(), limits(**tight))) == ALL[:4]
    assert sent(batch(full(), changes(), limits(0.0, **tight))) == ["1.0"]
