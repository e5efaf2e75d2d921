"""A cluster is thrashed: one seeded random event after the other, each taken back after a while.

At most one OSD is down at a time, so that pools of three copies stay readable; what is out, down or
reweighted is put right at the end.
"""

from __future__ import annotations

import random
import time
from typing import Callable, Dict, List, Tuple

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for
from . import workload

SMALL_POOL = "thrashed"
PG_NUMS = (8, 16)


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
            "kill": self._kill, "out": self._out, "reweight": self._reweight,
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
        for osd in range(len(self.cluster.osds)):
            if not self.cluster.processes.alive(f"osd.{osd}"):
                self.cluster.start_osd(osd)
        self.cluster.wait_osds()
        for osd in range(len(self.cluster.osds)):
            self.cluster.mon("osd in", ids=[str(osd)])
            self.cluster.mon("osd reweight", id=osd, weight=1.0)
        if self._pool_exists:
            self._delete_pool()

    # -- events --------------------------------------------------------------------------------

    def _osd(self) -> int:
        return self._random.randrange(len(self.cluster.osds))

    def _kill(self) -> str:
        osd = self._osd()
        self.cluster.processes.end(f"osd.{osd}", hard=True)
        time.sleep(self._random.uniform(3.0, 8.0))
        self.cluster.start_osd(osd)
        self.cluster.wait_osds()
        return f"osd.{osd} killed and started again"

    def _out(self) -> str:
        osd = self._osd()
        self.cluster.mon("osd out", ids=[str(osd)])
        time.sleep(self._random.uniform(3.0, 8.0))
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
        self.cluster.mon("config set", who="mon", name="mon_allow_pool_delete", value="true")
        self.cluster.mon("osd pool delete", pool=SMALL_POOL, pool2=SMALL_POOL,
                         yes_i_really_really_mean_it=True)
        self._pool_exists = False

    def _pg_num(self) -> str:
        if not self._pool_exists:
            return "no pool to split"
        now = self.cluster.mon_json("osd pool get", pool=SMALL_POOL, var="pg_num")["pg_num"]
        wanted = PG_NUMS[1] if now <= PG_NUMS[0] else PG_NUMS[0]
        self.cluster.mon("osd pool set", pool=SMALL_POOL, var="pg_num", val=str(wanted))
        return f"{now} to {wanted}"

    def _mgr(self) -> str:
        hard = self._random.random() < 0.5
        name = self.cluster.kill_mgr() if hard else self.cluster.fail_mgr()
        return f"{'killed' if hard else 'failed'}; {name} is active"


def resident_kib(cluster: DaemonCluster) -> int:
    """Resident memory of the active mgr in KiB."""
    process = cluster.processes.running[f"mgr.{cluster.active_mgr()}"]
    for pid in _family(process.pid):
        with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/status") as status:
            if comm.read().strip() == "ceph-mgr":
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    raise ClusterError("the active mgr has no process")


def _family(pid: int) -> List[int]:
    """A process and its children: the mgr of another release runs below chroot's wrapper."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid, *(other for child in children.read().split() for other in _family(int(child)))]


def wait_settled(cluster: DaemonCluster, seconds: float) -> None:
    """Wait until every PG is clean, though upmaps may still come."""
    def clean() -> bool:
        states = cluster.mon_json("status")["pgmap"]["pgs_by_state"]
        return all("clean" in entry["state_name"] and "active" in entry["state_name"]
                   for entry in states)
    wait_for("all PGs clean", clean, seconds, pause=1.0)
