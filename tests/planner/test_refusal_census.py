"""The census of refusals: complete, of the planner's own answers, and the reason is what counts."""
from __future__ import annotations

from typing import Any, Dict, Mapping

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.refusal_census import Census, RefusalCensus
from equilibrium_mgr.snapshot import reason_codes as codes

MOST = 100_000


def uneven() -> Cluster:
    """Five hosts of one OSD of 100 GiB; two copies, one of each PG on osd.0."""
    cluster = Cluster(hosts(5)).pool(1, size=2)
    for ps in range(20):
        cluster.pg(f"1.{ps:x}", [0, 1 + ps % 2])
    return cluster


def census(cluster: Cluster, osd: int = 0, most: int = MOST,
           code_of: Mapping[str, str] = {}, **options: Any) -> Census:
    snapshot = cluster.snapshot()
    asked = RefusalCensus(snapshot, PlanOptions(**options), utilization_bounds(snapshot), code_of)
    return asked.of_osd(osd, most)


def counts(found: Census) -> Dict[str, int]:
    assert sum(count.pairs for count in found.counts) == found.pairs
    return {count.code: count.pairs for count in found.counts}


def test_every_shard_and_every_target_is_counted_once() -> None:
    found = census(uneven())
    assert (found.shards, found.counted, found.pairs) == (20, 20, 80)
    assert counts(found) == {codes.MIN_GAIN: 60, codes.HOLDS_SHARD: 20}
    assert found.reason_code == codes.MIN_GAIN


@pytest.mark.parametrize("code, options", [
    (codes.FILL_LIMIT, {"fill_limit": 0.001}),
    (codes.UPMAP_ITEMS, {"max_upmap_items": 1e-9}),
    (codes.PG_COUNT, {"max_pg_shards_per_osd": 1}),
    (codes.POOL_EXCLUDED, {"pool_ids": frozenset([7])}),
    (codes.POOL_EXCLUDED, {"device_classes": frozenset(["ssd"])}),
    (codes.OSD_EXCLUDED, {"sources": frozenset([1, 2])}),
    (codes.OSD_EXCLUDED, {"targets": frozenset([0])}),
    (codes.REJECTED, {"rejected_pgs": frozenset(uneven().up)})])
def test_the_reason_is_the_limit_and_the_planner_plans_nothing(
        code: str, options: Dict[str, Any]) -> None:
    cluster = uneven()
    if code == codes.PG_COUNT:   # the others have one shard of a pool that is not to be balanced
        cluster.pool(2, size=1).pg("2.0", [3], 1).pg("2.1", [4], 1)
    found = census(cluster, **options)
    assert found.reason_code == code and counts(found)[code] >= 40
    plan = make_plan(cluster.snapshot(), PlanOptions(**options))
    assert 0 not in {move.source for move in plan.moves}


def test_a_last_pair_of_upmap_items_is_not_enough() -> None:
    """Moves are allowed one by one, and all together need more pairs."""
    cluster = uneven().pool(2, size=1)
    for ps in range(400):
        cluster.pg(f"2.{ps:x}", [3], 1)
    assert census(cluster, max_upmap_items=6).reason_code == codes.MIN_GAIN
    assert census(cluster, max_upmap_items=4).reason_code == codes.UPMAP_ITEMS


def test_reasons_that_plan_options_do_not_know() -> None:
    cooling = dict.fromkeys(uneven().up, codes.COOLDOWN)
    assert census(uneven(), code_of=cooling).reason_code == codes.COOLDOWN


def test_shards_that_are_too_large() -> None:
    cluster = single_copies([30, 30], [30], [30])
    found = census(cluster)
    assert found.reason_code == codes.GRANULARITY and counts(found) == {codes.GRANULARITY: 4}
    assert found.counts[0].pools == {1: 4} and found.counts[0].targets == (1, 2)
    assert census(cluster, 1).reason_code == codes.BALANCED


def test_too_many_pairs_are_counted_in_part() -> None:
    found = census(uneven(), most=10)
    assert (found.shards, found.counted, found.pairs) == (20, 3, 12)


def test_pinned_moving_and_unknown_rule() -> None:
    cluster = uneven()
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [0, 1]}]
    cluster.acting["1.1"] = [3, 1]
    found = census(cluster)
    assert counts(found)[codes.IMMOVABLE] == 4 == counts(found)[codes.IN_FLIGHT]
