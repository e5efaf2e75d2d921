"""Load on real daemons: what `osds` tells of it, and what a plan does to the devices.

The build under test counts days of a minute, so that three of them pass while a test can wait.
Clients do operations of 4 KiB at the same rate all the time, in a pool of few bytes beside a cold
one, on OSDs of two sizes.
"""

from __future__ import annotations

import time
from statistics import mean, quantiles
from typing import Callable, Dict, Iterator, NamedTuple

import pytest

from ..cluster import DaemonCluster, copy_package
from ..conftest import PACKAGE
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium_json, run, wait_state
from ..release import RELEASES

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

HOSTS = {f"h{host}": (3.0, 1.5) for host in range(4)}
DAY_SECONDS, READ_SECONDS = 60, 4
#: File of the module → its constants in seconds, and what they are here.
TIMES = {
    "observation/load_ledger.py": {"_DAY_SECONDS = 86_400.0": DAY_SECONDS},
    "control/auto_planner.py": {"_LOAD_SECONDS = 86_400.0": DAY_SECONDS},
    "observation/observer.py": {"_LONGEST_REST_SECONDS = 86_400.0": READ_SECONDS,
                                "\nLONGEST_SECONDS = 600.0": READ_SECONDS},
    "gateway/gateway.py": {"_LONGEST_STATISTICS_SECONDS = 86_400.0": READ_SECONDS,
                           "_FULL_STATISTICS_SECONDS = 3600.0": READ_SECONDS}}
#: Kind of operation, and how many a second.
RATES = {"write": 90, "read": 90, "compound": 20}
#: So many objects of each kind: each PG has about as many.
OBJECTS = {"write": 3200, "read": 3200, "compound": 800}
#: The pool that each kind of operation goes to.
POOLS = {"write": "hot", "read": "hot", "compound": "index"}
MEASURED_SECONDS = 60.0
ALL_WRITTEN_SECONDS, SCRUBBED_SECONDS = 80.0, 20.0
SETTLED = ("balanced", "stuck")
NEAR = 0.1
"""Points by which LOAD may differ from what the devices did."""

CLIENT = """
import rados, sys, time
cluster = rados.Rados(conffile=sys.argv[1], name='client.admin')
cluster.connect()
kind, io, rate = sys.argv[2], cluster.open_ioctx(sys.argv[3]), float(sys.argv[4])
names = ['%s-%d' % (kind, number) for number in range(int(sys.argv[5]))]
for name in names:
    io.write_full(name, b'x' * 4096)
done, began = 0, time.time()
while True:
    name, started = names[done % len(names)], time.time()
    if kind == 'write':
        io.write_full(name, b'y' * 4096)
    elif kind == 'read':
        io.read(name, 4096)
    else:
        with rados.WriteOpCtx() as parts:
            parts.write(b'y' * 2048, 0)
            for key in 'abc':
                io.set_omap(parts, (key,), (b'v' * 512,))
            parts.set_xattr('q', b'1')
            io.operate_write_op(parts, name)
    now = time.time()
    print(now, now - started, flush=True)
    done += 1
    time.sleep(max(0.0, began + done / rate - now))
"""


class Done(NamedTuple):
    """What OSDs did in a while, by OSD id, and what a client waited, by kind of operation."""

    writes: Dict[int, int]
    reads: Dict[int, int]
    waited: Dict[str, str]

    def load(self, osd: int) -> float:
        """Operations of the OSD ÷ the mean, of 4 KiB each: they cost the same."""
        both = {one: self.writes[one] + self.reads[one] for one in self.writes}
        return both[osd] / mean(both.values())

    def __str__(self) -> str:
        both = max(map(self.load, self.writes))
        return (f"busiest ÷ mean: {both:.2f}, writes {busiest(self.writes):.2f}, reads"
                f" {busiest(self.reads):.2f}; {self.waited}")


def busiest(counts: Dict[int, int]) -> float:
    return max(counts.values()) / mean(counts.values())


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
            ) -> Iterator[DaemonCluster]:
    """Eight OSDs of two sizes, three pools, and clients that do not stop."""
    package = tmp_path_factory.mktemp("build") / "equilibrium"
    copy_package(PACKAGE, package)
    for name, constants in TIMES.items():
        text = (package / name).read_text()
        for line, seconds in constants.items():
            assert line in text
            text = text.replace(line, f"{line.partition('=')[0]}= {seconds}.0")
        (package / name).write_text(text)
    with DaemonCluster(RELEASES[request.param], package, hosts=HOSTS) as made:
        made.mgr("balancer off")
        workload.make_pool(made, "cold", pgs=32)
        workload.make_pool(made, "hot", pgs=32)
        workload.make_pool(made, "index", pgs=16)
        workload.write(made, "cold", 2000)
        made.enable("equilibrium")
        made.set_option("sleep_interval", 5)
        made.hurry()
        client = made.work / "client.py"
        client.write_text(CLIENT)
        for kind, rate in RATES.items():
            made.processes.start(f"client-{kind}", [
                "python3", str(client), str(made.conf), kind, POOLS[kind], str(rate),
                str(OBJECTS[kind])])
        time.sleep(ALL_WRITTEN_SECONDS)
        made.ceph("osd deep-scrub all")   # else nobody knows how much omap there is to move
        time.sleep(SCRUBBED_SECONDS)
        yield made


def counters(cluster: DaemonCluster) -> Dict[int, Dict[str, int]]:
    found: Dict[int, Dict[str, int]] = {}
    for osd in range(len(cluster.osds)):
        found[osd] = cluster.ceph(f"tell osd.{osd} perf dump osd").json()["osd"]
    return found


def measure(cluster: DaemonCluster) -> Done:
    """What OSDs do in a minute, by their own counters."""
    began = time.time()
    before = counters(cluster)
    time.sleep(MEASURED_SECONDS)
    after = counters(cluster)

    def gained(*names: str) -> Dict[int, int]:
        return {osd: sum(after[osd][name] - before[osd][name] for name in names) for osd in after}
    waited = {kind: waits(cluster, kind, began) for kind in RATES}
    return Done(gained("op_w", "op_rw", "subop_w"), gained("op_r"), waited)


def waits(cluster: DaemonCluster, kind: str, since: float) -> str:
    lines = (cluster.work / f"client-{kind}.out").read_text().splitlines()[:-1]
    rows = [tuple(map(float, line.split())) for line in lines]
    recent = [1000 * took for ended, took in rows if ended > since]
    cuts = quantiles(recent, n=100)
    a_second = len(recent) / (time.time() - since)
    return f"{a_second:.0f}/s, p50 {cuts[49]:.1f}, p99 {cuts[98]:.1f} ms"


def told(cluster: DaemonCluster) -> Dict[int, float]:
    """LOAD by OSD; empty while it is not known."""
    rows = equilibrium_json(cluster, "osds")["osds"]
    return {row["id"]: row["load"] for row in rows if row["load"] is not None}


def largest_error(cluster: DaemonCluster, done: Done) -> float:
    return max(abs(ratio - done.load(osd)) for osd, ratio in told(cluster).items())


def test_a_plan_for_load(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    run(cluster, "on")
    wait_state(cluster, SETTLED, 300)
    wait_for("rates of three days", lambda: len(told(cluster)) == len(cluster.osds),
             10 * DAY_SECONDS, pause=5.0)
    before = measure(cluster)
    wrong = largest_error(cluster, before)
    figure(f"before: {before}; LOAD is off by {wrong:.2f} at most")
    began = time.time()
    cluster.set_option("balance_load", "true")
    wait_for("a plan for load", lambda: has_moved(cluster, began), 360, pause=2.0)
    wait_state(cluster, SETTLED, 300)
    workload.wait_clean(cluster, 300)
    after = measure(cluster)
    wrong_after = largest_error(cluster, after)
    figure(f"after: {after}; LOAD is off by {wrong_after:.2f} at most")
    figure(f"LOAD at the end: {sorted(told(cluster).values())}")
    if cluster.release.major >= 20:
        cluster.ceph("osd set-require-min-compat-client reef --yes-i-really-mean-it")
        cluster.ceph("balancer mode read")
        cluster.ceph("balancer on")
        time.sleep(90.0)
        figure(f"with Ceph's balancer in mode read: {measure(cluster)};"
               f" {len(cluster.osd_dump().get('pg_upmap_primaries', ()))} primaries")
    assert max(wrong, wrong_after) < NEAR
    assert busiest(after.reads) <= busiest(before.reads)
    assert max(map(after.load, after.reads)) < max(map(before.load, before.reads))


def has_moved(cluster: DaemonCluster, since: float) -> bool:
    rows = equilibrium_json(cluster, "history")["episodes"]
    return any(row["started_at"] > since for row in rows)
