"""Plans that only some OSDs may give to, or get from: by whichever part of the planner."""
from __future__ import annotations

import random

import pytest
from tests.support.clusters.rule_shapes import RULE_SHAPES, make
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.plan_legality import assert_legal, ended_plan

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot

KINDS = ("not", "from", "to")


def scope(snapshot: Snapshot, kind: str, seed: str) -> PlanOptions:
    """Half of the OSDs give, or get, or do both."""
    some = frozenset(random.Random(seed).sample(sorted(snapshot.osds), len(snapshot.osds) // 2))
    return PlanOptions(sources=None if kind == "to" else some,
                       targets=None if kind == "from" else some)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", few(sorted(RULE_SHAPES), 3))
def test_rules_of_all_shapes(shape: str, kind: str) -> None:
    snapshot = make(shape, "items").snapshot()
    options = scope(snapshot, kind, shape)
    assert_legal(snapshot, ended_plan(snapshot, options), options)


def test_a_swap_gives_and_gets_on_both_sides() -> None:
    """osd.0 has no room but for what it gives back: both OSDs have to be sources and targets."""
    cluster = Cluster(hosts(2)).pool(1, size=1)
    gib = 1 << 30
    for ps, (osd, size) in enumerate([(0, 40), (0, 30), (1, 25), (1, 5)]):
        cluster.pg(f"1.{ps:x}", [osd], size * gib)
    snapshot = cluster.snapshot()
    free = make_plan(snapshot, PlanOptions(aim="even"))
    assert {move.source for move in free.moves} <= {0, 1} and free.moves
    for osd in (0, 1):
        one = PlanOptions(aim="even", sources=frozenset((osd,)))
        assert {move.source for move in make_plan(snapshot, one).moves} <= {osd}
