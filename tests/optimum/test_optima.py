"""The optima against plain enumeration, and that legal up sets reach them."""
from __future__ import annotations

import pytest
from tests.optimum.clusters import optimum_cluster
from tests.optimum.comparison import Figures, figures_of
from tests.optimum.optima import Optima
from tests.optimum.problem import Part, parts_of, sets_that_fit, up_sets
from tests.optimum.reachable import Limits, up_sets_of
from tests.optimum.tiny import TINY, Allowed, enumerated

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
    assert optima.least_max_at_space(space.total, optima.least_max(space.free_bytes))[0] == min(
        one.max_utilization for one in placements if one.space >= best_space * (1 - 1e-9))
    for one in placements[:10]:
        assert optima.least_max(one.free_bytes) == min(
            other.max_utilization for other in placements
            if all(a >= b for a, b in zip(other.free_bytes, one.free_bytes)))


@pytest.mark.parametrize("seed", range(24))
def test_legal_up_sets_reach_the_optima(seed: int) -> None:
    """The limits on counts allow what the rule and the monitor allow, and nothing else."""
    _, cluster = optimum_cluster(seed)
    snapshot = cluster.snapshot()
    allowed = {pool.id: up_sets(cluster.crush, pool) for pool in snapshot.pools.values()}
    for part in parts_of(snapshot, cluster.crush):
        for one in part.classes:
            assert sets_that_fit(part, one) == allowed[one.pool]
        optima = Optima(part)
        best_max, space = optima.least_max(), optima.most_space()
        assert _witnessed(part, optima, Limits(best_max, optima.no_space),
                          allowed).max_utilization == best_max
        assert _witnessed(part, optima, Limits(float("inf"), space.free_bytes),
                          allowed).space == pytest.approx(space.total, rel=1e-9)


def _witnessed(part: Part, optima: Optima, limits: Limits, allowed: Allowed) -> Figures:
    """The figures of up sets that keep the limits."""
    counts = optima.reachable.witness(limits)
    assert counts is not None
    ups = {pgid: sorted(up) for number, one in enumerate(part.classes) for pgid, up in zip(
        one.pgs, up_sets_of(part, counts, number, allowed[one.pool]))}
    return figures_of(part, ups)
