"""Reasons to wait as values: stable codes, kinds, options, and sentences made of their figures."""
from __future__ import annotations

from typing import List

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

from equilibrium_mgr.execution.batch_selection import Decision, next_batch
from equilibrium_mgr.execution.osd_traffic import osd_traffic
from equilibrium_mgr.execution.throttle import CHECKS
from equilibrium_mgr.execution.throttle_state import ThrottleLimits
from equilibrium_mgr.execution.verdict import Verdict
from equilibrium_mgr.settings import OPTIONS
from equilibrium_mgr.snapshot import reason_codes as codes

FREE = ThrottleLimits(max_misplaced_ratio=1.0, max_moves=1000, fill_limit=0.0,
                      misplaced_copies=0, in_flight=())
#: Options of Ceph, and ratios of its osdmap, that a deferral may name.
OF_CEPH = {"mon_max_pg_per_osd", "osd_max_pg_per_osd_hard_ratio", "nearfull_ratio"}


def decided(limits: ThrottleLimits = FREE, moves: int = 2, trouble: str = "") -> Decision:
    """For PGs that all go from osd.0 to osd.2 of eight."""
    cluster = Cluster(hosts(8)).pool(1, size=2)
    for ps in range(moves):
        cluster.pg(f"1.{ps:x}", [0, 1], num_bytes=5 * GIB, objects=10)
    blocked = {1: trouble} if trouble else {}
    snapshot = cluster.snapshot()
    return next_batch(snapshot, [change_of(f"1.{ps:x}", [0, 1], [2, 1]) for ps in range(moves)],
                      limits, blocked, osd_traffic(snapshot, {}))


CASES = [
    (FREE._replace(max_moves=1), codes.MAX_MOVES, "max_moves_per_round", {"max_moves": 1}),
    (FREE._replace(max_misplaced_ratio=0.3), codes.MISPLACED_LIMIT, "max_misplaced_ratio",
     {"misplaced_copies": 10, "copies": 10, "limit_ratio": 0.3, "limit": "30.00",
      "misplaced": "25.00", "own": "25.00", "option": "max_misplaced_ratio"}),
    (FREE._replace(max_misplaced_ratio=0.2), codes.MISPLACED_ONE_PG, "max_misplaced_ratio",
     {"misplaced_copies": 10, "copies": 10, "limit_ratio": 0.2, "limit": "20.00",
      "misplaced": "25.00", "own": "25.00", "option": "max_misplaced_ratio"}),
    (FREE._replace(max_backfills=1), codes.MAX_BACKFILLS, "max_backfills_per_osd",
     {"osd": 2, "shards": 1, "max_shards": 1, "direction": "coming"}),
    (FREE._replace(max_transit_ratio=0.06), codes.MAX_TRANSIT, "max_transit_ratio",
     {"osd": 2, "max_ratio": 0.06}),
    (FREE._replace(cooling={"1.1": 9.5}), codes.COOLDOWN, "pg_cooldown",
     {"pgid": "1.1", "ends_at": 1009.5, "time": "1970-01-01 00:17 UTC"}),
    (FREE._replace(in_flight=("1.1",)), codes.IN_FLIGHT, "", {"pgid": "1.1"}),
    (FREE._replace(max_upmap_pairs=1), codes.UPMAP_ITEMS, "max_upmap_items",
     {"pairs": 1, "max_pairs": 1})]


@pytest.mark.parametrize("limits, code, option, numbers", CASES, ids=[case[1] for case in CASES])
def test_a_deferral_has_a_code_an_option_and_figures(
        limits: ThrottleLimits, code: str, option: str, numbers: object) -> None:
    (_, deferral), = decided(limits).waiting
    assert deferral.code == code
    assert deferral.option == option
    assert deferral.numbers == numbers


@pytest.mark.parametrize("limits, code, option, numbers", CASES, ids=[case[1] for case in CASES])
def test_the_option_of_a_deferral_exists(
        limits: ThrottleLimits, code: str, option: str, numbers: object) -> None:
    (_, deferral), = decided(limits).waiting
    assert not option or option in OF_CEPH.union(str(known["name"]) for known in OPTIONS)
    assert deferral.code in vars(codes).values()


def test_a_sentence_has_its_figures() -> None:
    deferral = Verdict(codes.MAX_MOVES, numbers={"max_moves": 3})
    assert deferral.reason == "max_moves_per_round (3) is reached"


def test_names_with_braces_stand_in_a_sentence_as_they_are() -> None:
    decision = decided(trouble="pool '{x}' has 3 PGs degraded")
    assert decision.waiting_for == "pool '{x}' has 3 PGs degraded"


@pytest.mark.parametrize("code, is_throttle", [
    (codes.MAX_MOVES, True), (codes.COOLDOWN, True), (codes.FILL_LIMIT, True),
    (codes.UPMAP_ITEMS, False), (codes.DEGRADED, False)])
def test_what_counts_as_throttled(code: str, is_throttle: bool) -> None:
    assert Verdict(code).is_throttle is is_throttle


def test_a_pool_that_is_only_peering_is_transient() -> None:
    transient: List[bool] = []
    for pools in ((), (1,)):
        decision = decided(FREE._replace(transient_pools=pools), trouble="peering")
        transient.append(decision.waiting[0][1].is_transient)
    assert transient == [False, True]


def test_every_check_says_what_sets_its_limit() -> None:
    for check in CHECKS:
        assert check.__doc__, check
