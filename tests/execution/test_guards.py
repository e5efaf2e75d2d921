"""What keeps everything, or single pools, from being moved; each as one sentence."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from equilibrium_mgr.execution.guards import (
    blocked_pool_reasons,
    blocked_pools,
    cluster_guard,
    full_osds,
    upmap_refused,
)
from equilibrium_mgr.snapshot import reason_codes as codes
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB


def cluster(**extra: Any) -> Cluster:
    small = Cluster(hosts(4)).pool(1, size=2).pg("1.0", "0 1")
    small.extra.update(extra)
    return small


@pytest.mark.parametrize("release", ["jewel", "", "unknown"])
def test_old_clients(release: str) -> None:
    said = upmap_refused(release)
    assert said
    assert "run 'ceph osd set-require-min-compat-client luminous'" in said
    found = cluster_guard(cluster(require_min_compat_client=release).snapshot(), True, False)
    assert found is not None
    assert found[:2] == (codes.OLD_CLIENTS, said)


def states(pool: int, **counts: int) -> Dict[str, Any]:
    return {"pool_id": pool, "pg_state_counts": [
        {"state_name": name.replace("_", "+"), "count": count}
        for name, count in counts.items()]}


def two_classes() -> Cluster:
    """Pools 1 and 3 share the HDDs, pool 2 is alone on the SSDs."""
    rules = {0: "take default~hdd; chooseleaf firstn 0 host; emit",
             1: "take default~ssd; chooseleaf firstn 0 host; emit"}
    small = Cluster(hosts(4), rules, classes={2: "ssd", 3: "ssd"})
    small.pool(1, size=2, name="data").pool(2, size=2, rule=1).pool(3, size=2)
    return small.pg("1.0", "0 1").pg("2.0", "2 3").pg("3.0", "0 1")


def test_own_trouble_is_told_though_another_s_is_worse() -> None:
    small = two_classes()
    small.pg_status = {"pgs_by_pool_state": [states(1, active_degraded=1), states(3, down=2)]}
    trouble = blocked_pools(small.snapshot())[1]
    assert trouble.reason == "pool 'data' has 1 PG degraded"
    assert trouble.inactive


def test_trouble_of_a_pool_whose_rule_is_not_understood() -> None:
    """It is where its PGs are."""
    small = two_classes()
    small.pools[3]["crush_rule"] = 77
    small.pg_status = {"pgs_by_pool_state": [states(3, active_degraded=2)]}
    assert set(blocked_pool_reasons(small.snapshot())) == {1, 3}


def test_inactive_for_a_moment_is_told_from_trouble() -> None:
    small = two_classes()
    small.pg_status = {"pgs_by_pool_state": [states(1, peering=1), states(3, down=2)]}
    troubles = blocked_pools(small.snapshot(), frozenset((1,)))
    assert not troubles[3].transient
    assert not troubles[1].transient   # pool 3 is in its way
    assert troubles[1].reason == "pool 'data' has 1 PG inactive"
    passing = blocked_pools(small.snapshot(), frozenset((1, 3)))
    assert passing[1].transient
    assert passing[3].transient
    assert passing[1].inactive


def test_pgs_that_merge_do_not_block_their_pool() -> None:
    """They serve no clients for some seconds, and lack nothing."""
    small = two_classes()
    small.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "clean+premerge+peered", "count": 2}]}]}
    assert blocked_pools(small.snapshot()) == {}


def test_of_several_targets_those_with_room_are_not_full() -> None:
    small = cluster().osd(2, used=89 * GIB)
    small.pg("1.1", "2 3", 2 * GIB, acting="0 1", state="active+remapped+backfill_toofull")
    assert full_osds(small.snapshot()) == {2}
