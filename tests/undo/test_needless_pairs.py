"""Pairs of upmap items without effect: found for what they are, and removed without any motion."""
from __future__ import annotations

import random
from typing import Iterator, List, Sequence, Tuple

import pytest
from tests.execution.limits import limited
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few

from equilibrium_mgr.execution.throttle import next_batch
from equilibrium_mgr.execution.guards import PoolGuard
from equilibrium_mgr.snapshot.upmap_items import apply_items
from equilibrium_mgr.upmap_cleanup import upmap_cleanup as why
from equilibrium_mgr.upmap_cleanup.upmap_cleanup import cleanup_plan, find_needless

Items = Tuple[Tuple[int, int], ...]
RAW = (0, 1, 2)
SHUT = limited(max_misplaced_ratio=0.0, misplaced_copies=99, max_moves_per_round=1,
               max_upmap_items=0.1)


def made(items: Items, raw: Sequence[int] = RAW, erasure: bool = False) -> Cluster:
    """A PG with these items, as Ceph applies them, on hosts of one OSD."""
    cluster = Cluster(hosts(12)).pool(1, size=len(raw), k=len(raw) - 1 if erasure else 0)
    return cluster.pg("1.0", apply_items(raw, items, lambda osd: False), items=items, objects=10)


@pytest.mark.parametrize("items, keeps, reasons", [
    (((0, 1),), (), [why.TARGET_CHOSEN]),
    (((0, 5), (1, 5)), ((0, 5),), [why.TARGET_TAKEN]),
    (((0, 5), (0, 6)), ((0, 5),), [why.SOURCE_MOVED]),
    (((0, 5), (1, 6), (2, 0)), None, []),
    (((0, 0), (1, 6)), ((1, 6),), [why.TARGET_CHOSEN]),
    (((0, 5), (5, 6)), ((0, 6),), [why.CHAINED, why.CHAINED]),
    (((0, 5), (5, 0)), (), [why.CANCELS, why.CANCELS]),
    (((0, 5), (1, 6)), None, []), ((), None, [])])
def test_each_kind_is_told(items: Items, keeps: Items, reasons: List[str]) -> None:
    found = find_needless(made(items).snapshot())
    if keeps is None:
        assert found.needless == []
        return
    needless, = found.needless
    assert needless.keeps == keeps
    if items != ((0, 0), (1, 6)):
        assert list(needless.reasons) == reasons
    assert found.needless_pairs == len(items) - len(keeps) and found.pairs == len(items)


def test_a_target_that_is_out_has_no_effect() -> None:
    cluster = made(((1, 6),))
    cluster.items["1.0"] = [(0, 9), (1, 6)]
    needless, = find_needless(cluster.mark_out(9).snapshot()).needless
    assert needless.reasons == (why.TARGET_GONE,) and needless.keeps == ((1, 6),)


def test_what_cannot_be_told_is_left_alone() -> None:
    """Which of the two replaced osd.0, and whether CRUSH chose the other, nobody knows."""
    cluster = made(())
    cluster.up["1.0"], cluster.items["1.0"] = [5, 6, 2], [(0, 5), (0, 6)]
    plan, not_cleaned, _ = cleanup_plan(cluster.snapshot())
    assert not plan.changes
    assert not_cleaned == [("1.0", "its CRUSH mapping cannot be recovered from its upmap items")]


def test_a_placement_that_breaks_its_rule_keeps_its_pairs() -> None:
    """The monitor would take them all away."""
    cluster = Cluster(hosts(3, 2)).pool(1, size=2)
    cluster.pg("1.0", [1, 0], items=[(2, 0), (3, 0)], objects=10)
    plan, not_cleaned, _ = cleanup_plan(cluster.snapshot())
    assert not plan.changes and len(not_cleaned) == 1


def all_items(size: int, rng: random.Random, osds: int) -> Iterator[Items]:
    for _ in range(1200):
        count = rng.randint(1, size)
        yield tuple((rng.randrange(osds), rng.randrange(osds)) for _ in range(count))


@pytest.mark.parametrize("erasure", [False, True])
@pytest.mark.parametrize("seed", few(range(4), 1))
def test_no_clean_up_changes_an_up_set(seed: int, erasure: bool) -> None:
    """And each can be sent whatever the limits, leaves no needless pair, and adds none."""
    rng = random.Random(seed)
    cleaned = 0
    for items in all_items(3, rng, 8):
        if any(source not in RAW for source, _ in items):
            continue   # no monitor keeps these, and the raw mapping would be another one
        cluster = made(items, erasure=erasure)
        snapshot = cluster.snapshot()
        plan, _, _ = cleanup_plan(snapshot)
        for change in plan.changes:
            cleaned += 1
            after = apply_items(change.raw, change.items, lambda osd: False)
            assert after == snapshot.pgs["1.0"].up == change.up_after == change.up_before
            assert len(change.items) < len(items) and change.shards == 0
            decision = next_batch(snapshot, plan.changes, SHUT, {1: PoolGuard("trouble", False)},
                                  kind=plan.kind)
            assert decision.send == [change]
            cluster.items["1.0"] = list(change.items)
            assert find_needless(cluster.snapshot()).needless == []
    assert cleaned >= 50


def test_a_raw_mapping_behind_another_reason_is_not_relied_on() -> None:
    """Of a PG of a cache tier it is not told, and all of its pairs would seem needless."""
    cluster = made(((0, 5), (0, 6)))
    cluster.pools[1]["tier_of"] = 3
    cluster.up["1.0"] = [5, 6, 2]
    assert not cleanup_plan(cluster.snapshot())[0].changes
