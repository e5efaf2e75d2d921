"""How long commands of others wait in an mgr in which equilibrium works on a large cluster.

    python3 tests/ceph/measure_stall.py [--osds 1000] [--seconds 30]

Starts a monitor and an mgr, no OSDs, on the map of a large cluster (lone_monitor.py), with
equilibrium and a test-only module beside it (planner_load). Then asks `ceph balancer status`,
which a Python module answers, and `ceph osd df`, which the mgr itself answers, over and over
through one connection of the rados bindings (a `ceph` of one's own would cost 0.3 s a time):

idle      equilibrium is loaded and off
planning  planner_load makes plans of the made cluster, in equilibrium's own planning desk
looking   planner_load makes snapshots, bounds and reports of the made cluster, without a break
polling   equilibrium reads the monitor's map and the PG statistics, and builds its snapshot, as
          often as it can: whenever `ceph equilibrium eval` asks for a new look. The PGs' states
          are unknown, so there is nothing to be planned.

Prints a Markdown table, milliseconds and ratios to idle (before and after, taken together). Needs
root and Ceph 16's packages, as `pytest tests/ceph --ceph=16` does. Exit code 1 where a 99th
percentile is more than GOAL times that at idle.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

from mgr_stub.install import install  # noqa: E402

install(18)

from benchmark.scale import large_reading  # noqa: E402
from ceph.cluster import Cluster  # noqa: E402
from ceph.daemons import Agent, ClusterError, wait_for  # noqa: E402
from ceph.lone_monitor import LoneMonitor  # noqa: E402
from ceph.release import EXIT_UNAVAILABLE, RELEASES, ReleaseUnavailable  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "equilibrium_mgr"
PLANNER_LOAD = HERE / "planner_load"
COMMANDS = ("balancer status", "osd df")
PAUSE_SECONDS = 0.02
"""Between two commands, so that they are no load of their own."""
SETTLE_SECONDS = 10.0
"""Before each situation is measured: the mgr starts, or the made cluster is read."""
IDLE = ("idle", "idle again")
GOAL = 2.0
"""The 99th percentile shall not be longer than so many times that at idle."""


class Row(NamedTuple):
    """How long one command took in one situation, in seconds."""

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
    parser.add_argument("--osds", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S",
                        help="how long each situation is measured (default: 30)")
    options = parser.parse_args(arguments)
    release = RELEASES[16]
    try:
        release.prepare()
    except ReleaseUnavailable as error:
        print(error, file=sys.stderr)
        return EXIT_UNAVAILABLE
    with LoneMonitor(release, PACKAGE, options.osds, [PLANNER_LOAD]) as cluster:
        write_reading(cluster, options.osds)
        cluster.enable("equilibrium")
        cluster.enable(PLANNER_LOAD.name)
        rows, notes = measure(cluster, options.seconds)
        failures = cluster.module_failures()
    print(f"Ceph {release.version}, {options.osds} OSDs, milliseconds\n\n{table(rows)}\n")
    print("\n".join(notes + ([failures] if failures else [])))
    return int(bool(failures) or worst_ratio(rows) > GOAL)


def write_reading(cluster: Cluster, osds: int) -> None:
    """The made cluster, where planner_load looks for it."""
    reading = large_reading(osds)._asdict()
    path = cluster.work / "modules" / PLANNER_LOAD.name / "reading.json"
    path.write_text(json.dumps(reading, default=list))


def measure(cluster: Cluster, seconds: float) -> Any:
    """(rows of every situation, notes on what was done meanwhile)."""
    situations: Dict[str, Callable[[], Any]] = {
        IDLE[0]: lambda: _idle(cluster), "planning": lambda: _made_work(cluster, "plan"),
        "looking": lambda: _made_work(cluster, "look"), "polling": lambda: _polling(cluster),
        IDLE[1]: lambda: _idle(cluster)}
    rows: List[Row] = []
    notes: List[str] = []
    for name, situation in situations.items():
        with situation() as done:
            rows += timed(cluster, name, seconds)
            notes.append(f"{name}: {done()}")
    return rows, notes


def timed(cluster: Cluster, situation: str, seconds: float) -> List[Row]:
    """The commands in turn over one connection, for so long."""
    rows = [Row(situation, command, []) for command in COMMANDS]
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
def _idle(cluster: Cluster) -> Iterator[Callable[[], str]]:
    time.sleep(SETTLE_SECONDS)
    yield lambda: "nothing was done"


@contextmanager
def _made_work(cluster: Cluster, work: str) -> Iterator[Callable[[], str]]:
    """planner_load at work, once it has read the made cluster."""
    assert cluster.mgr("planner_load begin", work=work).rc == 0
    time.sleep(SETTLE_SECONDS)

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
def _polling(cluster: Cluster) -> Iterator[Callable[[], str]]:
    """`equilibrium eval` over and over, by a connection of its own."""
    cluster.set_option("sleep_interval", 1)
    wait_for("a first look", lambda: cluster.mgr("equilibrium eval").rc == 0, 120)
    ages: List[float] = []
    over = threading.Event()

    def ask() -> None:
        agent = Agent(cluster.processes, cluster.conf)
        while not over.wait(0.2):
            agent.ask("mgr", {"prefix": "equilibrium eval", "format": "json"})
            said = agent.ask("mgr", {"prefix": "equilibrium status", "format": "json"})
            ages.append(said.json()["snapshot_age_seconds"])
        agent.close()
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield lambda: "%d looks" % sum(1 for a, b in zip(ages, ages[1:]) if b < a)
    finally:
        over.set()
        thread.join(60)
        cluster.set_option("sleep_interval", 60)


def worst_ratio(rows: Sequence[Row]) -> float:
    """The largest 99th percentile as a multiple of the command's own at idle."""
    return max(row.p99 / at_idle(rows, row.command).p99 for row in rows)


def at_idle(rows: Sequence[Row], command: str) -> Row:
    """What the command took at idle, before and after the rest: what else ran here shows there."""
    return Row("idle", command, [
        second for row in rows if row.command == command and row.situation in IDLE
        for second in row.seconds])


def table(rows: Sequence[Row]) -> str:
    """Median, 99th percentile and longest of every row as Markdown, with their ratios to idle."""
    lines = ["| command | while | asked | median | ratio | 99th percentile | ratio | longest |",
             "|---|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: COMMANDS.index(row.command)):
        idle = at_idle(rows, row.command)
        middle = median(row.seconds)
        lines.append(
            f"| `ceph {row.command}` | {row.situation} | {len(row.seconds)} "
            f"| {middle * 1e3:.1f} | {middle / median(idle.seconds):.1f} "
            f"| {row.p99 * 1e3:.1f} | {row.p99 / idle.p99:.1f} "
            f"| {max(row.seconds) * 1e3:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
