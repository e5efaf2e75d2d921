"""Automatic balancing on a cluster that is thrashed under a client's writes.

OSDs are killed, lost, out, reweighted, pools come and go, pg_num changes, mgrs fail and die.
Copying is slow, so that the module can steer it. What the module did is judged from the monitor's
own history of maps. `--thrash-minutes` makes it longer.

A cluster is thrashed: one seeded random event after the other, each taken back after a while.

At most one OSD is down at a time, so that pools of three copies stay readable; what is out, down or
reweighted is put right at the end.
"""
from __future__ import annotations

import pytest
import random
import time
from typing import Callable, Dict, Iterator, List, Set, Tuple

from .cluster import DaemonCluster
from .conftest import MAX_MISPLACED
from .daemons import ClusterError, wait_for
from .harness import workload
from .harness.client_load import ClientLoad
from .harness.commands import equilibrium, quick_takeover, run, stop_and_reset, wait_state
from .harness.map_history import Batch, MapHistory, to_clean_at
from .harness.story import assert_legal
from .harness.watcher import Sample, Watcher


SMALL_POOL = "thrashed"
PG_NUMS = (8, 16)
LOST_SECONDS = 50.0


class Thrasher:
    """Plays events for a while; `events` is what was played, with the time of each."""

    def __init__(self, cluster: DaemonCluster, seed: int) -> None:
        self.cluster = cluster
        self.events: List[Tuple[float, str]] = []
        self._random = random.Random(seed)
        self._pool_exists = False

    def run(self, seconds: float) -> None:
        """Plays events until the time is over, then puts everything right."""
        ends = time.monotonic() + seconds
        kinds: Dict[str, Callable[[], str]] = {
            "kill": self._kill, "lose": self._lose, "out": self._out, "reweight": self._reweight,
            "pool": self._pool, "pg_num": self._pg_num, "mgr": self._mgr}
        order: List[str] = []
        while time.monotonic() < ends:
            if not order:   # every kind comes, whatever the seed
                order = self._random.sample(sorted(kinds), len(kinds))
            name = order.pop()
            began = time.time()
            self.events.append((began, f"{name}: {kinds[name]()}"))
            time.sleep(min(self._random.uniform(6.0, 18.0), max(0.0, ends - time.monotonic())))
        self.put_right()

    def put_right(self) -> None:
        """All OSDs up, in and of full weight, the small pool gone."""
        cluster = self.cluster
        for osd in range(len(cluster.osds)):
            if not cluster.processes.alive(f"osd.{osd}"):
                cluster.start_osd(osd)
        cluster.wait_osds()
        for osd in range(len(cluster.osds)):
            cluster.mon("osd in", ids=[str(osd)])
            cluster.mon("osd reweight", id=osd, weight=1.0)
        if self._pool_exists:
            self._delete_pool()

    # -- events --------------------------------------------------------------------------------

    def _osd(self) -> int:
        return self._random.randrange(len(self.cluster.osds))

    def _pause(self) -> None:
        time.sleep(self._random.uniform(3.0, 8.0))

    def _kill(self) -> str:
        osd = self._osd()
        self.cluster.processes.end(f"osd.{osd}", hard=True)
        self._pause()
        self.cluster.start_osd(osd)
        self.cluster.wait_osds()
        return f"osd.{osd} killed and started again"

    def _lose(self) -> str:
        """So long that shards are steered."""
        osd = self._osd()
        self.cluster.processes.end(f"osd.{osd}", hard=True)
        self.cluster.mon("osd down", ids=[str(osd)])
        self.cluster.mon("osd out", ids=[str(osd)])
        time.sleep(LOST_SECONDS)
        self.cluster.mon("osd in", ids=[str(osd)])
        self.cluster.start_osd(osd)
        self.cluster.wait_osds()
        return f"osd.{osd} lost and found"

    def _out(self) -> str:
        osd = self._osd()
        self.cluster.mon("osd out", ids=[str(osd)])
        self._pause()
        self.cluster.mon("osd in", ids=[str(osd)])
        return f"osd.{osd} out and in again"

    def _reweight(self) -> str:
        osd, weight = self._osd(), round(self._random.uniform(0.5, 1.0), 2)
        self.cluster.mon("osd reweight", id=osd, weight=weight)
        return f"osd.{osd} reweighted to {weight}"

    def _pool(self) -> str:
        if self._pool_exists:
            self._delete_pool()
            return "deleted"
        workload.make_pool(self.cluster, SMALL_POOL, pgs=PG_NUMS[0])
        self._pool_exists = True
        workload.write(self.cluster, SMALL_POOL, 20)
        return "created and written to"

    def _delete_pool(self) -> None:
        workload.delete_pool(self.cluster, SMALL_POOL)
        self._pool_exists = False

    def _pg_num(self) -> str:
        if not self._pool_exists:
            return "no pool to split"
        few, many = PG_NUMS
        now = self.cluster.mon_json("osd pool get", pool=SMALL_POOL, var="pg_num")["pg_num"]
        wanted = many if now <= few else few
        workload.set_pool(self.cluster, SMALL_POOL, "pg_num", wanted)
        return f"{now} to {wanted}"

    def _mgr(self) -> str:
        if self._random.random() < 0.5:
            return f"killed; {self.cluster.kill_mgr()} is active"
        return f"failed; {self.cluster.fail_mgr()} is active"


def resident_mib(cluster: DaemonCluster) -> float:
    """Resident memory of the active mgr in MiB."""
    process = cluster.processes.running[f"mgr.{cluster.active_mgr()}"]
    for pid in _family(process.pid):
        with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/status") as status:
            if comm.read().strip() == "ceph-mgr":
                return next(int(line.split()[1]) / 1024 for line in status
                            if line.startswith("VmRSS"))
    raise ClusterError("the active mgr has no process")


def _family(pid: int) -> List[int]:
    """A process and its children: the mgr of another release runs below chroot's wrapper."""
    family = [pid]
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        for child in children.read().split():
            family += _family(int(child))
    return family


def wait_settled(cluster: DaemonCluster, seconds: float) -> None:
    """Wait until every PG is clean, though upmaps may still come."""
    def clean() -> bool:
        for entry in cluster.mon_json("status")["pgmap"]["pgs_by_state"]:
            if not {"active", "clean"} <= set(entry["state_name"].split("+")):
                return False
        return True
    wait_for("all PGs clean", clean, seconds, pause=1.0)


pytestmark = pytest.mark.releases(16, 20)

SEED = 20
LIMIT = 0.05
LIMIT_TOLERANCE = 0.003
"""The client adds objects to PGs on their way, and a sample is up to a second old."""
NEARFULL = 0.85
STEERING = ("steer_recovery", "hold_placement")
RECOVERY_SLEEP = 0.5
WRITES_PER_SECOND = 10
AWARE_SECONDS = 8.0
"""So old a sample at most tells what the module could know when it sent."""
BALANCED_SECONDS = 240
#: After a series of changes of the OSDs longer than that, plans wait so long after its last one.
RESTLESS_SECONDS = 300


class Thrashed:
    """What a thrashed cluster was seen to do."""

    def __init__(self, cluster: DaemonCluster, seconds: float) -> None:
        self.cluster = cluster
        self.memory_before = resident_mib(cluster)
        self.history = MapHistory(cluster)
        self.watcher = Watcher(cluster)
        self.load = ClientLoad(cluster, [pool[0] for pool in workload.POOLS], WRITES_PER_SECOND)
        self.thrasher = Thrasher(cluster, SEED)
        try:
            run(cluster, "on")
            self.thrasher.run(seconds)
            self.batches = self.history.additions()
            self.writes = self.load.writes()
            workload.pace_recovery(cluster, 0.0)   # it has to end
            self.read = self.load.read_back()
        finally:
            self.load.end()
        self.ended = time.time()

    def before(self, batch: Batch) -> List[Sample]:
        """What the module could know when it sent a batch."""
        return self.watcher.between(batch.at - AWARE_SECONDS, batch.at)

    def is_steering(self, batch: Batch) -> bool:
        """Whether Ceph copied shards of all its PGs already, so that it misplaced no more."""
        copied: Set[str] = set()
        for sample in self.before(batch):
            copied.update(sample.moving, sample.troubled)
        return copied.issuperset(batch.pgids)


@pytest.fixture(scope="module")
def thrashed(cluster: DaemonCluster, request: pytest.FixtureRequest) -> Iterator[Thrashed]:
    """The whole run, which the tests look at from several sides."""
    stop_and_reset(cluster)
    cluster.wait_osds()
    workload.clear_upmaps(cluster)
    cluster.set_option("max_misplaced_ratio", LIMIT)
    for name in STEERING:
        cluster.set_option(name, "true")
    for name, value in workload.SHORT_LOGS.items():
        cluster.set_config("osd", name, value)
    workload.pace_recovery(cluster, RECOVERY_SLEEP)
    try:
        with quick_takeover(cluster):
            try:
                seen = Thrashed(cluster, 60.0 * request.config.getoption("--thrash-minutes"))
                yield seen
                seen.watcher.stop()
            finally:
                equilibrium(cluster, "off")
    finally:
        cluster.set_option("max_misplaced_ratio", MAX_MISPLACED)
        for name in STEERING:
            cluster.remove_option(name)
        for name in workload.SHORT_LOGS:
            cluster.remove_config("osd", name)
        workload.pace_recovery(cluster, 0.0)


def test_it_ends_balanced(thrashed: Thrashed, figure: Callable[[str], None]) -> None:
    cluster = thrashed.cluster
    wait_settled(cluster, BALANCED_SECONDS)
    wait_state(cluster, ["balanced"], RESTLESS_SECONDS + BALANCED_SECONDS, pause=1.0)
    usage = workload.settled_usage(cluster)
    memory = f"{thrashed.memory_before:.0f} MiB at first, {resident_mib(cluster):.0f} MiB at last"
    steering = sum(map(thrashed.is_steering, thrashed.batches))
    epochs = f"{len(thrashed.batches)} epochs with upmaps added, {steering} of them by steering"
    figure(f"thrashed by {len(thrashed.thrasher.events)} events under {thrashed.writes} writes, all"
           f" {thrashed.read} objects equal: {epochs}, then {usage}; memory of the active mgr"
           f" {memory}")
    assert_legal(cluster)


def test_no_upmap_was_illegal_when_it_was_set(thrashed: Thrashed) -> None:
    """What a monitor would cancel of the map in which upmaps were added."""
    wrong = []
    for batch in thrashed.batches:
        for line in to_clean_at(thrashed.cluster, batch.epoch):
            if any(pgid in line for pgid in batch.pgids):
                wrong.append(f"{batch}: {line}")
    assert not wrong, "\n".join(wrong)


def test_nothing_was_added_beyond_the_misplaced_limit(thrashed: Thrashed) -> None:
    """Where all that the module could know says that the limit was reached, nothing goes."""
    wrong = []
    for batch in thrashed.batches:
        if thrashed.is_steering(batch):
            continue
        known = [sample.misplaced_ratio for sample in thrashed.before(batch)]
        if len(known) >= 3 and min(known) > LIMIT + LIMIT_TOLERANCE:
            wrong.append(f"{batch}: {known}")
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
