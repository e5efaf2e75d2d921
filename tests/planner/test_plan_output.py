"""The plan that comes out: its upmap items, its figures, its way through JSON."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.plan_legality import assert_legal_change
from tests.support.units import GIB

from equilibrium_mgr.plan.model import BadPlan, plan_from_dict
from equilibrium_mgr.planner.planner import make_plan


def test_odd_items_of_one_pg_do_not_spoil_the_plan() -> None:
    """By hand, osd.0 of the first take went to the second, which takes the same tree."""
    rules = {0: "take default; choose firstn 1 osd; emit; take default; choose firstn 2 osd; emit"}
    cluster = Cluster(hosts(1, 8), rules).pool(1, size=3)
    cluster.pg("1.0", [5, 0, 2], num_bytes=9 * GIB, items=[(0, 5), (1, 0)])
    for ps in range(1, 6):
        cluster.pg(f"1.{ps:x}", [3 + ps % 2, 6 + ps % 2, 2], num_bytes=8 * GIB)
    snapshot = cluster.snapshot()
    changes = make_plan(snapshot).changes
    assert changes
    for change in changes:
        assert_legal_change(snapshot, change)


def test_round_trip_through_json() -> None:
    original = plan_of_cluster("random")
    assert original.changes and original.skipped is not None
    assert plan_from_dict(json.loads(json.dumps(original.to_dict()))) == original


def without(key: str) -> Callable[[Dict[str, Any]], Any]:
    return lambda dump: {k: v for k, v in dump.items() if k != key}


@pytest.mark.parametrize("damage", [
    without("moves"), without("version"), without("before"), without("changes"),
    without("osdmap_epoch"), without("aim"), without("bounds"), without("kind"),
    without("topology"),
    lambda dump: dict(dump, version=99), lambda dump: dict(dump, version=1),
    lambda dump: dict(dump, moves=[[1, 2]]),
    lambda dump: dict(dump, moves=None), lambda dump: dict(dump, changes=[["1.0", [0]]]),
    lambda dump: dict(dump, changes=7), lambda dump: dict(dump, before={"classes": {}}),
    lambda dump: dict(dump, before={"classes": {"hdd": {}}, "pools": {}}),
    *[lambda dump, row=row: dict(dump, changes=[row]) for row in (
        ["1.0", [0], [0], [1], [[0]], 1, 1, 1], [5], ["1.0", 0, 0, 1, 2, 3, 4, 5],
        ["1.0", [0], [0], [1], [[0, 1]], "1", 1, 1], ["1.0", ["0"], [0], [1], [[0, 1]], 1, 1, 1],
        ["1.0", [0], [0], [1], [["a", "b"]], 1, 1, 1], [7, [0], [0], [1], [[0, 1]], 1, 1, 1],
        ["no PG", [0], [0], [1], [[0, 1]], 1, 1, 1], ["1.0; rm", [0], [0], [1], [[0, 1]], 1, 1, 1],
        ["1.0", [0], [0], [1], [[0, 1]], 1, float("inf"), 1])],
    lambda dump: dict(dump, after=[]), lambda dump: dict(dump, skipped=5),
    lambda dump: [], lambda dump: None, lambda dump: "plan", lambda dump: 7])
def test_damaged_plan_is_a_bad_plan(damage: Callable[[Dict[str, Any]], Any]) -> None:
    with pytest.raises(BadPlan) as bad:
        plan_from_dict(damage(json.loads(json.dumps(plan_of_cluster("random").to_dict()))))
    assert "\n" not in str(bad.value) and str(bad.value)
