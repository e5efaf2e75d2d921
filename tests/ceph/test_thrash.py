"""Automatic balancing on a cluster that is thrashed under a client's writes.

OSDs are killed, out, reweighted, pools come and go, pg_num changes, mgrs fail and die. What the
module did is judged from the monitor's own history of maps. `--thrash-minutes` makes it longer.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterator, List

import pytest

from .cluster import HOSTS, DaemonCluster
from .conftest import MAX_MISPLACED
from .daemons import ClusterError, wait_for
from .harness import workload
from .harness.client_load import ClientLoad
from .harness.commands import equilibrium, status
from .harness.map_history import Batch, MapHistory, to_clean, to_clean_at
from .harness.story import illegal_placements
from .harness.thrash import Thrasher, resident_kib, wait_settled
from .harness.watcher import Sample, Watcher

pytestmark = pytest.mark.releases(16, 20)

SEED = 20
LIMIT = 0.05
LIMIT_TOLERANCE = 0.003
"""The client adds objects to PGs on their way, and a sample is up to a second old."""
NEARFULL = 0.85
WRITES_PER_SECOND = 10
AWARE_SECONDS = 8.0
"""So old a sample at most tells what the module could know when it sent."""
BALANCED_SECONDS = 240


class Thrashed:
    """What a thrashed cluster was seen to do."""

    def __init__(self, cluster: DaemonCluster, seconds: float) -> None:
        self.cluster = cluster
        self.memory_before = resident_kib(cluster)
        self.history = MapHistory(cluster)
        self.watcher = Watcher(cluster)
        self.load = ClientLoad(cluster, [pool[0] for pool in workload.POOLS], WRITES_PER_SECOND)
        self.thrasher = Thrasher(cluster, SEED)
        try:
            assert equilibrium(cluster, "on").rc == 0
            self.thrasher.run(seconds)
            self.batches = self.history.additions()
            self.writes = self.load.writes()
        finally:
            self.load.end()
        self.ended = time.time()

    def before(self, batch: Batch) -> List[Sample]:
        """What the module could know when it sent a batch."""
        return self.watcher.between(batch.at - AWARE_SECONDS, batch.at)


@pytest.fixture(scope="module")
def thrashed(cluster: DaemonCluster, request: pytest.FixtureRequest) -> Iterator[Thrashed]:
    """The whole run, which the tests look at from several sides."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    cluster.wait_osds()
    workload.clear_upmaps(cluster)
    cluster.set_option("max_misplaced_ratio", LIMIT)
    cluster.mon("config set", who="mon", name="mon_mgr_beacon_grace", value="10")
    run = None
    try:
        run = Thrashed(cluster, 60.0 * request.config.getoption("--thrash-minutes"))
        yield run
    finally:
        if run is not None:
            run.watcher.stop()
        equilibrium(cluster, "off")
        cluster.mon("config rm", who="mon", name="mon_mgr_beacon_grace")
        cluster.set_option("max_misplaced_ratio", MAX_MISPLACED)


def test_it_ends_balanced(thrashed: Thrashed, figure: Callable[[str], None]) -> None:
    cluster = thrashed.cluster
    wait_settled(cluster, BALANCED_SECONDS)
    try:
        wait_for("state balanced", lambda: status(cluster)["state"] == "balanced",
                 BALANCED_SECONDS, pause=1.0)
    except ClusterError:
        pytest.fail(f"not balanced: {status(cluster)}")
    usage = workload.settled_usage(cluster)
    memory = resident_kib(cluster)
    figure(f"thrashed by {len(thrashed.thrasher.events)} events under {thrashed.writes} writes: "
           f"{len(thrashed.batches)} epochs with upmaps added, then {usage}; memory of the active "
           f"mgr {thrashed.memory_before / 1024:.0f} MiB at first, {memory / 1024:.0f} MiB at last")
    assert to_clean(cluster) == [] and illegal_placements(cluster) == []


def test_no_traceback(thrashed: Thrashed) -> None:
    assert thrashed.cluster.module_failures() == ""


def test_no_upmap_was_illegal_when_it_was_set(thrashed: Thrashed) -> None:
    """What a monitor would cancel of the map in which upmaps were added."""
    wrong = [f"{batch}: {line}" for batch in thrashed.batches
             for line in to_clean_at(thrashed.cluster, batch.epoch)
             if any(pgid in line for pgid in batch.pgids)]
    assert not wrong, "\n".join(wrong)


def test_nothing_was_added_beyond_the_misplaced_limit(thrashed: Thrashed) -> None:
    """Where all that the module could know says that the limit was reached, nothing goes."""
    wrong = []
    for batch in thrashed.batches:
        known = thrashed.before(batch)
        if len(known) >= 3 and all(sample.misplaced_ratio > LIMIT + LIMIT_TOLERANCE
                                   for sample in known):
            wrong.append(f"{batch}: {[round(sample.misplaced_ratio, 4) for sample in known]}")
    assert not wrong, "\n".join(wrong)


def test_no_osd_was_filled_beyond_its_limit(thrashed: Thrashed) -> None:
    """Nothing was sent to an OSD that all samples before it show above nearfull."""
    wrong = []
    for batch in thrashed.batches:
        known = thrashed.before(batch)
        for osd in sorted(batch.targets):
            levels = [sample.utilization[osd] for sample in known if osd in sample.utilization]
            if levels and min(levels) > NEARFULL:
                wrong.append(f"{batch}: osd.{osd} at {levels}")
    assert not wrong, "\n".join(wrong)


def test_hosts_are_told_apart(thrashed: Thrashed) -> None:
    """Each upmap of the end keeps a PG's shards on different hosts."""
    host_of: Dict[int, str] = {}
    for host, sizes in HOSTS.items():
        for _ in sizes:
            host_of[len(host_of)] = host
    up = workload.up_sets(thrashed.cluster)
    wrong = {pgid: osds for pgid, osds in up.items()
             if len({host_of.get(osd, "") for osd in osds}) < len(osds)}
    assert not wrong
