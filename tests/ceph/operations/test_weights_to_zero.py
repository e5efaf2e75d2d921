"""A host's OSDs get CRUSH weight 0, as `ceph orch osd rm` does, and CRUSH overfills others."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List

import pytest

from ..cluster import DaemonCluster
from ..conftest import SLEEP_INTERVAL, new_cluster
from ..harness import workload
from ..harness.commands import AT_REST, run, status, wait_state
from ..harness.story import illegal_placements

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

HOSTS = {f"h{number}": (2.0, 2.0, 2.0) for number in range(4)}
REMOVED = (9, 10, 11)
PG_NUM, MEBIBYTES = 64, 2900
#: Nearfull and backfillfull above the mean that the other OSDs will have; clients go on writing.
ABOVE_MEAN = {"nearfull": 0.03, "backfillfull": 0.04}
FULL = 0.95
DEFAULTS = {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}
STANDSTILL_SECONDS = 600.0
LONGEST_SECONDS = 1500.0


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Four hosts of three OSDs, one pool; balanced."""
    with new_cluster(request, HOSTS, workload.SHORT_LOGS) as made:
        made.mgr("balancer off")
        workload.make_pool(made, "rep", pgs=PG_NUM)
        workload.wait_clean(made)
        workload.write(made, "rep", MEBIBYTES)
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.hurry()
        yield made
        failures = made.module_failures()
    assert not failures


class Standstill:
    """How long PGs have stood toofull without a byte copied."""

    def __init__(self) -> None:
        self.longest = self.toofull = 0.0
        self._since = self._last = time.monotonic()
        self._copied = -1

    def __str__(self) -> str:
        return (f"toofull for {self.toofull:.0f} s, without a byte copied meanwhile for"
                f" {self.longest:.0f} s")

    def observe(self, pgs: List[Dict[str, Any]]) -> None:
        """Takes in the `pg_stats` of one `pg dump`."""
        now = time.monotonic()
        copied = sum(pg["stat_sum"]["num_objects_recovered"] for pg in pgs)
        is_toofull = any("toofull" in pg["state"] for pg in pgs)
        if copied != self._copied or not is_toofull:
            self._since = now
        if is_toofull:
            self.toofull += now - self._last
        self.longest = max(self.longest, now - self._since)
        self._copied, self._last = copied, now


@pytest.mark.parametrize("limit", [0.05, 0.01])
def test_relief_goes_on_whatever_the_limit(cluster: DaemonCluster, limit: float,
                                           figure: Callable[[str], None]) -> None:
    cluster.set_option("max_misplaced_ratio", limit)
    workload.set_ratios(cluster, DEFAULTS)
    for osd in REMOVED:
        cluster.mon("osd crush reweight", name=f"osd.{osd}", weight=2.0)
    run(cluster, "on")
    wait_state(cluster, AT_REST, 900, pause=1.0)
    workload.wait_clean(cluster)
    usage = workload.settled_usage(cluster).utilization
    mean = sum(usage.values()) / (len(usage) - len(REMOVED))
    ratios = {name: mean + above for name, above in ABOVE_MEAN.items()}
    workload.set_ratios(cluster, {**ratios, "full": FULL})
    for osd in REMOVED:
        cluster.mon("osd crush reweight", name=f"osd.{osd}", weight=0.0)
    began, seen = time.monotonic(), Standstill()
    while time.monotonic() - began < LONGEST_SECONDS:
        pgs = cluster.pg_stats()
        seen.observe(pgs)
        is_late = time.monotonic() - began > 60
        if is_late and all(workload.is_clean(pg["state"]) for pg in pgs):
            break
        time.sleep(2.0)
    after = workload.usage_of(cluster)
    now, took = status(cluster), time.monotonic() - began
    end = f"backfillfull {ratios['backfillfull']:.3f}; {now['state']}: {now['reason']}"
    figure(f"weights of {REMOVED} to 0 at a limit of {limit}: clean after {took:.0f} s, {seen};"
           f" {after}; {end}")
    assert seen.longest < STANDSTILL_SECONDS
    assert took < LONGEST_SECONDS, now
    assert illegal_placements(cluster) == []
