"""The fewest moves, against all ways of one and two moves."""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List

import pytest
from tests.optimum.comparison import figures_of
from tests.optimum.explain import explained
from tests.optimum.nearest import Nearest
from tests.optimum.problem import Part, parts_of, up_sets
from tests.optimum.reachable import Limits
from tests.optimum.tiny import TINY, Allowed

pytestmark = pytest.mark.full

_Ups = Dict[str, FrozenSet[int]]


def one_move_on(part: Part, ups: _Ups, allowed: Allowed) -> Iterator[_Ups]:
    for one in part.classes:
        for pgid in one.pgs:
            for up in allowed[one.pool]:
                if len(up - ups[pgid]) == 1:
                    yield {**ups, pgid: up}


def maximum(part: Part, ups: _Ups) -> float:
    return figures_of(part, {pgid: sorted(up) for pgid, up in ups.items()}).max_utilization


@pytest.mark.parametrize("name", ["split_in_part", "unequal", "with_foreign_bytes"])
def test_no_way_is_shorter_and_the_moves_lead_there(name: str) -> None:
    cluster = TINY[name]()
    snapshot = cluster.snapshot()
    part, = parts_of(snapshot, cluster.crush)
    allowed = {pool.id: up_sets(cluster.crush, pool) for pool in snapshot.pools.values()}
    initial = {pgid: frozenset(pg.up) for pgid, pg in snapshot.pgs.items()}
    nearest = Nearest(part, {pgid: sorted(up) for pgid, up in initial.items()}, 3)
    reached: List[_Ups] = [initial]
    for moves in range(3):
        if moves:
            reached += [ups for before in reached for ups in one_move_on(part, before, allowed)]
        lowest = min(maximum(part, ups) for ups in reached)
        counts = nearest.counts(Limits(lowest, tuple(0.0 for _ in part.pools)))
        assert counts is not None and nearest.move_count(counts) <= moves
        made = nearest.moves(counts, allowed)
        assert made is not None and len(made) == nearest.move_count(counts)
        ups = dict(initial)
        for move in made:
            assert move.source in ups[move.pgid]
            ups[move.pgid] = ups[move.pgid] - {move.source} | {move.target}
            assert ups[move.pgid] in allowed[part.classes[0].pool]
        assert maximum(part, ups) <= lowest


def test_an_explanation_names_the_optima() -> None:
    lines = explained(10, "even")
    assert "least maximum 0.5326, greatest space 440.5 GiB" in lines[1]
