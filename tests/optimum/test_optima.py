"""The optima against plain enumeration."""
from __future__ import annotations

import pytest
from tests.optimum.optima import Optima
from tests.optimum.problem import parts_of, up_sets
from tests.optimum.tiny import TINY, enumerated

pytestmark = pytest.mark.full

@pytest.mark.parametrize("name", sorted(TINY))
def test_enumeration_finds_nothing_better_and_nothing_worse(name: str) -> None:
    cluster = TINY[name]()
    snapshot = cluster.snapshot()
    part, = parts_of(snapshot, cluster.crush)
    placements = enumerated(part, {pool.id: up_sets(cluster.crush, pool)
                                   for pool in snapshot.pools.values()})
    assert len(placements) >= 10
    optima = Optima(part)
    best_max = min(one.max_utilization for one in placements)
    best_space = max(one.space for one in placements)
    assert optima.least_max() == best_max
    space = optima.most_space()
    assert space.proven and space.total == pytest.approx(best_space, rel=1e-9)
    assert optima.most_space(best_max).total == pytest.approx(max(
        one.space for one in placements if one.max_utilization == best_max), rel=1e-9)
    for one in placements[:10]:
        assert optima.least_max(one.free_bytes) == min(
            other.max_utilization for other in placements
            if all(a >= b for a, b in zip(other.free_bytes, one.free_bytes)))
