"""Plans that start from what the former plan wanted: legal, no worse, and nothing is undone."""
from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict, Tuple

import pytest
from tests.scenarios.clusters import session_of
from tests.support.few import few
from tests.support.plan_legality import assert_legal
from tests.support.clusters.plans_under_way import EVENTS, SENT, PlanUnderWay, under_way
from tests.support.replay import (
    Replay, changed_bytes, first_part, follow_up, median_size, typical_shard)

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.replanning import replan

_CASES = [("random", seed) for seed in range(1, 5)] + [("erasure", 1)] + [
    (name, seed) for seed in range(1, 4) for name in ("small", "hybrid", "racks", "giant")] + [
    ("random", seed) for seed in range(5, 30)]
_EACH_SHAPE = _CASES[:9]
CLUSTERS = few(_CASES, 1)


@cache
def case(cluster: Tuple[str, int], event: str) -> PlanUnderWay:
    """Made once; do not change it."""
    with TemporaryDirectory() as folder:
        session = session_of(cluster[0], cluster[1], Path(folder))
        try:
            return under_way(session, event)
        finally:
            session.close()


@cache
def again(cluster: Tuple[str, int], event: str) -> Tuple[Plan, bool]:
    """The plan after the event, and True where it started from what was wanted."""
    found = case(cluster, event)
    made = replan(found.after, PlanOptions(), found.former())
    return (made.plan, True) if made is not None else (make_plan(found.after), False)


@cache
def from_scratch(cluster: Tuple[str, int], event: str) -> Plan:
    return make_plan(case(cluster, event).after)


def highest(plan: Plan) -> Dict[str, float]:
    return {name: usage.max for name, usage in plan.after.classes.items()}


def led_to(cluster: Tuple[str, int], event: str, plan: Plan) -> Dict[str, float]:
    """Highest utilization of each class once a plan after the event is done.

    Where nothing has happened, by the figures before anything moved: an OSD's report that is newer
    than that of a PG which has just arrived counts the PG twice, or not at all.
    """
    if event != "nothing":
        return highest(plan)
    found = case(cluster, event)
    sent = follow_up(found.before, first_part(found.plan, SENT))
    done = Replay(follow_up(sent, plan.changes))
    return {name: done.highest(name) for name in plan.after.classes}


@pytest.mark.parametrize("event", list(EVENTS))
@pytest.mark.parametrize("cluster", CLUSTERS)
class TestEachEvent:
    """One event each, when 30 % of the bytes were sent."""

    def test_the_plan_is_legal(self, cluster: Tuple[str, int], event: str) -> None:
        assert_legal(case(cluster, event).after, again(cluster, event)[0])

    def test_it_is_the_same_again(self, cluster: Tuple[str, int], event: str) -> None:
        found = case(cluster, event)
        one = replan(found.after, PlanOptions(), found.former())
        assert one == replan(found.after, PlanOptions(), found.former())

    def test_it_is_no_worse_than_from_scratch(self, cluster: Tuple[str, int],
                                              event: str) -> None:
        plan, scratch = again(cluster, event)[0], from_scratch(cluster, event)
        for name, most in led_to(cluster, event, scratch).items():
            after = case(cluster, event).after
            shard = typical_shard(after, name) / median_size(after, name)
            assert led_to(cluster, event, plan)[name] <= most + max(0.002, shard / 2.0), name

    def test_it_is_never_worse_than_nothing(self, cluster: Tuple[str, int], event: str) -> None:
        plan = again(cluster, event)[0]
        for name, usage in plan.before.classes.items():
            assert highest(plan)[name] <= usage.max + 1e-9


@pytest.mark.full
@pytest.mark.parametrize("event", list(EVENTS))
def test_bytes_are_those_of_plans_from_scratch(event: str) -> None:
    """In the mean: on clusters so small, one shard more or less is many percent of a plan."""
    ratios = [again(cluster, event)[0].bytes / from_scratch(cluster, event).bytes
              for cluster in _EACH_SHAPE]
    assert sum(ratios) <= 1.1 * len(ratios)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_what_was_wanted_stays_wanted_where_nothing_happens(cluster: Tuple[str, int]) -> None:
    found = case(cluster, "nothing")
    plan, is_from_wanted = again(cluster, "nothing")
    assert is_from_wanted
    wanted = {change.pgid: change.up_after for change in found.wanted}
    others = [change for change in plan.changes if wanted.get(change.pgid) != change.up_after]
    assert changed_bytes(others) <= 0.02 * plan.bytes
    assert plan.bytes <= 1.05 * changed_bytes(found.wanted)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_poor_plan_is_no_measure_for_the_next(cluster: Tuple[str, int]) -> None:
    """As one that was made while PGs cooled down: the next could end 7 points above what is
    possible."""
    former = case(cluster, "OSD out").former()
    poor = former.result._replace(shards_above_bound=dict.fromkeys(
        former.result.shards_above_bound, 7.0), pressures={})
    assert replan(case(cluster, "OSD out").after, PlanOptions(),
                  former._replace(result=poor)) is None
