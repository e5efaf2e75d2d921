"""How long commands of others wait in an mgr in which equilibrium works on a large cluster.

    python3 -m tests.ceph.measure.stall [--ceph 16|18|20] [--osds 1000] [--seconds 30]

Starts a monitor and an mgr, no OSDs, on the map of a large cluster (lone_monitor.py), with
equilibrium and a test-only module beside it (planner_load). Then asks `ceph balancer status`,
which a Python module answers, and `ceph osd df`, which the mgr itself answers, over and over
through one connection of the rados bindings (a `ceph` of one's own would cost 0.3 s a time):

idle      equilibrium is loaded and off
planning  planner_load makes plans of the made cluster, in equilibrium's own plan service
looking   planner_load makes snapshots, bounds and reports of the made cluster, without a break
polling   planner_load has equilibrium's gateway read this cluster, a second after it has read it,
          while the map gets a new epoch every second. The first time, with the statistics of every
          PG and a dump, is over by then. PGs' states are unknown, so there is nothing to plan.

Idle is measured before and after each of the others, and each is compared with its own two, so
that what else runs on the machine counts on both sides; beside polling with an epoch every second
as well, for other modules of the mgr dump each osdmap, which from Ceph 18 on takes more than half a
second of the interpreter's lock at 1,000 OSDs. Prints a Markdown table in milliseconds.
Needs root and the release's programs, as `pytest tests/ceph --ceph=16` does. Exit code 1 where a
99th percentile is more than GOAL times that at idle.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

from mgr_stub.mgr.install import install  # noqa: E402

install(18)

from tests.benchmark.made.scale import large_reading  # noqa: E402
from tests.ceph.cluster import DaemonCluster  # noqa: E402
from tests.ceph.daemons import Agent, ClusterError, wait_for  # noqa: E402
from tests.ceph.measure.lone_monitor import LoneMonitor  # noqa: E402
from tests.ceph.release import EXIT_UNAVAILABLE, RELEASES, ReleaseUnavailable  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "equilibrium_mgr"
PLANNER_LOAD = HERE.parent / "planner_load"
COMMANDS = ("balancer status", "osd df")
PAUSE_SECONDS = 0.02
"""Between two commands, so that they are no load of their own."""
SETTLE_SECONDS = 10.0
"""Before work is measured: the made cluster is read."""
_DAY_SECONDS = 86400
CALM_SECONDS = 3.0
"""Before idle is measured."""
IDLE = "idle"
GOAL = 2.0
"""The 99th percentile shall not be longer than so many times that at idle."""


class Row(NamedTuple):
    """How long one command took in one situation, in seconds; `turn` counts the situations."""

    turn: int
    situation: str
    command: str
    seconds: List[float]

    @property
    def p99(self) -> float:
        """The 99th percentile."""
        return sorted(self.seconds)[int(0.99 * (len(self.seconds) - 1))]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures and prints; 1 where a ratio is above GOAL, EXIT_UNAVAILABLE without the release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ceph", type=int, default=16, choices=sorted(RELEASES))
    parser.add_argument("--osds", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S",
                        help="how long each situation is measured (default: 30)")
    options = parser.parse_args(arguments)
    release = RELEASES[options.ceph]
    try:
        release.prepare()
    except ReleaseUnavailable as error:
        print(error, file=sys.stderr)
        return EXIT_UNAVAILABLE
    with LoneMonitor(release, PACKAGE, options.osds, [PLANNER_LOAD]) as cluster:
        write_reading(cluster, options.osds)
        # rounds of these dump the osdmap and would stall others in whatever row they fall into; the
        # mgr that is started anew for each module enabled waits a day after its first
        cluster.mon("config set", who="mgr", name="mgr/pg_autoscaler/sleep_interval",
                    value=str(_DAY_SECONDS))
        cluster.enable("equilibrium")
        cluster.enable(PLANNER_LOAD.name)
        cluster.mgr("balancer off")   # as in service
        rows, notes = measure(cluster, options.seconds)
        failures = cluster.module_failures()
    print(f"Ceph {release.version}, {options.osds} OSDs, milliseconds\n\n{table(rows)}\n")
    print("\n".join(notes + ([failures] if failures else [])))
    return int(bool(failures) or worst_ratio(rows) > GOAL)


def write_reading(cluster: DaemonCluster, osds: int) -> None:
    """The made cluster, where planner_load looks for it."""
    reading = large_reading(osds)._asdict()
    path = cluster.work / "modules" / PLANNER_LOAD.name / "reading.json"
    path.write_text(json.dumps(reading, default=list))


def measure(cluster: DaemonCluster, seconds: float) -> Any:
    """(rows of every situation, notes on what was done meanwhile)."""
    rows: List[Row] = []
    notes: List[str] = []

    def ask(situation: str) -> None:
        epoch = _epoch(cluster)
        rows.extend(timed(cluster, len(rows), situation, seconds))
        notes.append(f"{situation}: {_epoch(cluster) - epoch} epochs of the osdmap, "
                     f"load average {os.getloadavg()[0]:.1f}")

    def idle() -> None:
        time.sleep(CALM_SECONDS)
        ask(IDLE)
    time.sleep(SETTLE_SECONDS)
    idle()
    for name, work in (("planning", "plan"), ("looking", "look")):
        with _made_work(cluster, work) as done:
            ask(name)
            notes.append(f"{name}: {done()}")
        idle()
    with _new_epochs(cluster):   # of each, other modules make work of their own
        time.sleep(SETTLE_SECONDS)
        idle()
        with _made_work(cluster, "poll") as done:
            ask("polling")
            notes.append(f"polling: {done()}")
        idle()
    return rows, notes


def _epoch(cluster: DaemonCluster) -> int:
    return int(cluster.mon_json("osd stat")["epoch"])


def timed(cluster: DaemonCluster, turn: int, situation: str, seconds: float) -> List[Row]:
    """The commands in turn over one connection, for so long."""
    rows = [Row(turn, situation, command, []) for command in COMMANDS]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for row in rows:
            answer = cluster.mgr(row.command, format="json")
            if answer.rc:
                raise ClusterError(f"{row.command}: rc {answer.rc}: {answer.err}")
            row.seconds.append(answer.seconds)
            time.sleep(PAUSE_SECONDS)
    return rows


@contextmanager
def _made_work(cluster: DaemonCluster, work: str) -> Iterator[Callable[[], str]]:
    """planner_load at work, once it has read the made cluster."""
    assert cluster.mgr("planner_load begin", work=work).rc == 0
    time.sleep(SETTLE_SECONDS)
    wait_for("a first round", lambda: work != "poll"
             or cluster.mgr_json("planner_load status")["rounds"], 240)

    def done() -> str:
        said = cluster.mgr_json("planner_load status")
        if said["failure"]:
            raise ClusterError(said["failure"])
        return f"{said['rounds']} rounds done"
    try:
        yield done
    finally:
        cluster.mgr("planner_load end")


@contextmanager
def _new_epochs(cluster: DaemonCluster) -> Iterator[None]:
    """A new epoch of the osdmap every second, by a connection of its own."""
    over = threading.Event()

    def make() -> None:
        agent = Agent(cluster.processes, cluster.conf)
        flag = "set"
        while not over.wait(1.0):
            agent.ask("mon", {"prefix": f"osd {flag}", "key": "noout"})
            flag = "unset" if flag == "set" else "set"
        agent.close()
    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


def worst_ratio(rows: Sequence[Row]) -> float:
    """The largest 99th percentile as a multiple of the command's own at idle."""
    return max(row.p99 / at_idle(rows, row).p99 for row in rows if row.situation != IDLE)


def at_idle(rows: Sequence[Row], beside: Row) -> Row:
    """What the same command took at idle right before and after."""
    idle = sorted((row for row in rows if row.situation == IDLE and row.command == beside.command),
                  key=lambda row: abs(row.turn - beside.turn))[:2]
    return Row(beside.turn, IDLE, beside.command, [s for row in idle for s in row.seconds])


def table(rows: Sequence[Row]) -> str:
    """Markdown: each kind of work beside idle (before and after), with ratios to both together."""
    lines = ["| command | while | asked | median | idle | ratio | 99th percentile "
             "| idle | ratio | longest | idle |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for row in sorted(rows, key=lambda row: COMMANDS.index(row.command)):
        if row.situation == IDLE:
            continue
        idle = at_idle(rows, row)
        middle, calm = median(row.seconds), median(idle.seconds)
        lines.append(
            f"| `ceph {row.command}` | {row.situation} | {len(row.seconds)} "
            f"| {middle * 1e3:.1f} | {calm * 1e3:.1f} | {middle / calm:.1f} "
            f"| {row.p99 * 1e3:.1f} | {idle.p99 * 1e3:.1f} | {row.p99 / idle.p99:.1f} "
            f"| {max(row.seconds) * 1e3:.0f} | {max(idle.seconds) * 1e3:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
