"""An erasure-coded pool of an MSR rule on real daemons of Ceph 20."""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List

import pytest
from tests.oracle.strict_rule import StrictRules

from ..cluster import DaemonCluster
from ..harness import workload
from ..harness.commands import (
    equilibrium, equilibrium_json, execute, ready_plan, stop_and_reset)

pytestmark = pytest.mark.releases(20)

POOL, PROFILE = "msr", "msr42"
PGS, MEBIBYTES = 64, 240
PATIENCE_SECONDS = 240


@pytest.fixture(scope="module")
def msr(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """4+2, at most two shards on a host."""
    stop_and_reset(cluster)
    former = cluster.osd_dump()["require_min_compat_client"]
    cluster.mon("osd set-require-min-compat-client", version="squid")
    cluster.mon("osd erasure-code-profile set", name=PROFILE, profile=[
        "k=4", "m=2", "crush-failure-domain=host", "crush-osds-per-failure-domain=2",
        "crush-num-failure-domains=3"])
    workload.make_pool(cluster, POOL, "erasure", PGS, PROFILE)
    workload.wait_clean(cluster)
    workload.write(cluster, POOL, MEBIBYTES)
    workload.settled_usage(cluster)
    yield cluster
    equilibrium(cluster, "off")
    workload.delete_pool(cluster, POOL)
    cluster.mon("osd crush rule rm", name=POOL)
    cluster.mon("osd set-require-min-compat-client", version=former, yes_i_really_mean_it=True)
    workload.wait_clean(cluster)


def test_a_plan_is_carried_out_to_the_predicted_up_sets(
        msr: DaemonCluster, figure: Callable[[str], None]) -> None:
    spared = 1
    builtin = _builtin(msr)
    plan = ready_plan(msr, "msr", pools=[POOL], aim="even", **{"not": [f"osd.{spared}"]})
    assert plan["moves"], plan
    for move in plan["moves"]:
        assert spared not in (move["from"], move["to"])
    before = workload.usage_of(msr).highest
    predicted = plan["predicted_up"]
    _assert_legal(msr, predicted)
    ended = execute(msr, "msr", PATIENCE_SECONDS)
    workload.wait_clean(msr)
    up = workload.up_sets(msr)
    assert {pgid: up[pgid] for pgid in predicted} == predicted
    after = workload.settled_usage(msr).highest
    moved = f"{len(plan['moves'])} moves of {len(predicted)} PGs"
    figure(f"MSR rule, 4+2 on hosts of two shards: {moved}, all up sets as predicted; the fullest "
           f"OSD {before:.4f} -> {after:.4f}; the built-in balancer: {builtin}; {ended['outcome']}")
    assert after < before


def test_groups_may_share_a_host_by_places(
        msr: DaemonCluster, figure: Callable[[str], None]) -> None:
    """No host has more shards than the rule gives one: the monitor keeps that, nothing mends it."""
    pgid = f"{workload.pool_of(msr, POOL)['pool']}.0"
    raw = _crushed(msr, pgid)
    one, other = _free_host(msr, raw)
    msr.mon("osd pg-upmap-items", pgid=pgid, id=[raw[0], one, raw[2], other])
    workload.wait_clean(msr)
    shared = [one, raw[1], other, *raw[3:]]
    assert workload.up_set(msr, pgid) == shared, "the monitor has not kept it"
    assert ready_plan(msr, "mend", repair=True)["moves"] == []
    assert equilibrium_json(msr, "explain")["broken_pgs"] == []
    _assert_legal(msr, {pgid: shared})
    figure(f"MSR rule: pg {pgid} on {shared}, two groups on a host: nothing to mend")


def _crushed(cluster: DaemonCluster, pgid: str) -> List[int]:
    """What CRUSH alone gives: the up set once the PG's items are gone."""
    if pgid in workload.upmap_items(cluster):
        workload.clear_upmaps(cluster, [pgid])
        workload.wait_clean(cluster)
    return workload.up_set(cluster, pgid)


def _free_host(cluster: DaemonCluster, used: List[int]) -> List[int]:
    """The OSDs of a host of which none is used."""
    of_host: Dict[str, List[int]] = {}
    for osd, host in enumerate(cluster.osd_hosts):
        of_host.setdefault(host, []).append(osd)
    return next(osds for osds in of_host.values() if set(osds).isdisjoint(used))


def _assert_legal(cluster: DaemonCluster, ups: Dict[str, List[int]]) -> None:
    """By the tests' own reading of the rule that the cluster has."""
    dump = cluster.mon_json("osd crush dump")
    rule = workload.pool_of(cluster, POOL)["crush_rule"]
    found = next(entry for entry in dump["rules"] if entry["rule_id"] == rule)
    assert found["type"] == 5 and ups
    strict = StrictRules(dump)
    for pgid, up in ups.items():
        assert strict.fault(rule, 6, up, up) is None, (pgid, up)


def _builtin(cluster: DaemonCluster) -> str:
    """What the built-in balancer finds to do for the pool."""
    cluster.mgr("balancer mode", mode="upmap")
    answer = cluster.mgr("balancer optimize", plan="builtin", pools=[POOL])
    cluster.mgr("balancer rm", plan="builtin")
    said = answer.err or answer.out
    return f"rc {answer.rc}, {said.strip()[:120]}"
