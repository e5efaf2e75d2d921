"""A host is lost: shards that Ceph rebuilds go to OSDs with room, and no object is lost by it."""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterator, List, NamedTuple

import pytest

from ..cluster import DaemonCluster
from ..conftest import FIGURES, PACKAGE, SLEEP_INTERVAL
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, status
from ..harness.story import illegal_placements
from ..release import RELEASES

pytestmark = [pytest.mark.releases(16, 18, 20), pytest.mark.long]

HOSTS = {f"h{number}": (2.0, 2.0) for number in range(6)}
LOST = (4, 5)
PG_NUM = {"rep": 64, "ec": 32}
MEBIBYTES = {"rep": 1700, "ec": 1300}
SLOW = {
    # else PGs of so few objects are recovered by their log
    "osd_min_pg_log_entries": "10", "osd_max_pg_log_entries": "20", "osd_pg_log_trim_min": "1",
    # half a second between two objects: a shard takes as long as on large disks
    "osd_op_queue": "wpq", "osd_recovery_sleep": "0.5", "osd_max_backfills": "1"}
LONGEST_SECONDS = 1200.0
POLL_SECONDS = 2.0
#: Of a shard: the peak may be so much above CRUSH's.
SHARD = 0.02


class Seen(NamedTuple):
    """The course until all PGs were clean again."""

    seconds: float
    peak: float            # highest utilization of an OSD
    recovered: int         # objects that Ceph says it has copied
    unfound: int


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Six hosts of two OSDs, a replicated and an erasure-coded pool; copying is slow."""
    release = RELEASES[request.param]
    keep = request.config.getoption("--ceph-keep")
    with DaemonCluster(release, PACKAGE, keep, HOSTS, SLOW) as made:
        made.mgr("balancer off")
        made.mon("osd erasure-code-profile set", name=workload.EC_PROFILE,
                 profile=["k=2", "m=1", "crush-failure-domain=host"])
        for name, kind in (("rep", "replicated"), ("ec", "erasure")):
            workload.make_pool(made, name, kind, PG_NUM[name])
        workload.wait_clean(made)
        for name, mebibytes in MEBIBYTES.items():
            workload.write(made, name, mebibytes)
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", 0.3)
        made.hurry()
        yield made
        failures = made.module_failures()
    request.config.stash[FIGURES].append(f"Ceph {release.version}: a host is lost")
    assert not failures


def balanced(cluster: DaemonCluster) -> Dict[str, List[int]]:
    """Waits until nothing is to be moved; the up sets then."""
    assert equilibrium(cluster, "on").rc == 0
    wait_for("balanced", lambda: status(cluster)["state"] in ("balanced", "stuck"), 900, pause=1.0)
    workload.wait_clean(cluster, 600)
    return workload.up_sets(cluster)


def until_clean(cluster: DaemonCluster) -> Seen:
    """Watches until all PGs are clean."""
    began = time.monotonic()
    peak = 0.0
    first = recovered = -1
    unfound = 0
    while time.monotonic() - began < LONGEST_SECONDS:
        dump = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
        recovered = sum(pg["stat_sum"]["num_objects_recovered"] for pg in dump)
        unfound = max(unfound, sum(pg["stat_sum"]["num_objects_unfound"] for pg in dump))
        if first < 0:
            first = recovered
        peak = max(peak, workload.usage_of(cluster).highest)
        busy = [pg for pg in dump
                if not set(pg["state"].split("+")) <= {"active", "clean", "scrubbing", "deep"}]
        if not busy and time.monotonic() - began > 30.0:
            break
        time.sleep(POLL_SECONDS)
    workload.wait_clean(cluster, 300)
    return Seen(time.monotonic() - began, peak, recovered - first, unfound)


def lose(cluster: DaemonCluster) -> None:
    """Ends the OSDs of one host, and marks them out."""
    for osd in LOST:
        cluster.processes.end(f"osd.{osd}", hard=True)
    cluster.mon("osd down", ids=[str(osd) for osd in LOST])
    cluster.mon("osd out", ids=[str(osd) for osd in LOST])


def bring_back(cluster: DaemonCluster) -> None:
    """Starts them again, and marks them in."""
    for osd in LOST:
        cluster.start_osd(osd)
    cluster.wait_osds()
    cluster.mon("osd in", ids=[str(osd) for osd in LOST])


def test_what_is_rebuilt_goes_where_there_is_room(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    found: Dict[bool, Seen] = {}
    chosen = {}
    for steers in (False, True):
        before = balanced(cluster)
        for name in ("steer_recovery", "hold_placement"):
            cluster.set_option(name, str(steers).lower())
        lose(cluster)
        if steers:
            chosen = wait_for("targets", lambda: status(cluster)["steered"], 120)
            items = workload.upmap_items(cluster)
            foretold = chosen["max_utilization"]
        found[steers] = until_clean(cluster)
        end = workload.settled_usage(cluster)
        if steers:
            kept = sum(items[pgid] == workload.upmap_items(cluster).get(pgid) for pgid in items)
            figure(f"a host is lost, steered: {chosen}; {kept} of {len(items)} upmap items kept to"
                   f" the end; foretold {foretold:.4f}, then {end}")
        assert illegal_placements(cluster) == []
        bring_back(cluster)
        back = until_clean(cluster)
        figure(f"a host is lost, steering {steers}: {found[steers]}; it comes back: {back}")
        assert back.unfound == 0
        after = workload.up_sets(cluster)
        same = sum(after[pgid] == before[pgid] for pgid in before)
        figure(f"of {len(before)} PGs {same} have their up set of before")
    crush, steered = found[False], found[True]
    assert steered.unfound == 0
    assert steered.peak <= crush.peak + SHARD
    assert steered.recovered <= 1.15 * crush.recovered
    for pool, mebibytes in MEBIBYTES.items():   # compares what it reads with what was written
        cluster.processes.check(
            ["rados", "-c", str(cluster.conf), "-p", pool, "bench", "240", "seq", "-t", "8",
             "--run-name", f"{pool}-{mebibytes}"], 300)
