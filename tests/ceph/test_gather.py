"""`gather` with a key that may only read: what it plans from is what the mgr's module plans from.

What a module has learnt while it watched data move is in no command, nor in `dump-state`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple

import pytest

from tests.oracle.ceph_tools import read_mappings

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.client_load import ClientLoad
from .harness.commands import equilibrium, ready_plan, run, shards_in_flight, status
from .harness.map_history import osdmaptool
from .operations.test_freeze import misplaced, shorten_logs

pytestmark = pytest.mark.releases(16)   # passed on 18 and 20 too, at rest: --ceph-every

ROOT = Path(__file__).resolve().parents[2]
SLOW = {"osd_recovery_sleep": "1", "osd_max_backfills": "2", "osd_recovery_max_active": "1"}
HOLDS = ("nobackfill", "norebalance")
TRIES = 5
QUIET = 10
STILL = 0.05
"""Points of 2 GiB that RocksDB makes while nothing moves: 1 MiB."""
LEARNT = 0.5
"""Points by which a plan ends otherwise for what the module has learnt of sizes in mid-move."""


class Reader(NamedTuple):
    """A host with `ceph` and a key that may only read."""

    cluster: DaemonCluster
    folder: Path
    environment: Dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python3 -m mgr_stub` there."""
        return subprocess.run([sys.executable, "-m", "mgr_stub", *arguments], cwd=ROOT, text=True,
                              env=self.environment, capture_output=True, timeout=120)

    def gather(self, *options: str) -> Path:
        file = self.folder / "state.json"
        file.unlink(missing_ok=True)
        done = self.run("gather", str(file), *options)
        assert done.returncode == 0 and not done.stderr, done
        return file

    def plan(self, file: Path) -> List[str]:
        """What the file's plan shows."""
        done = self.run("--state", str(file), "-c", "equilibrium optimize p", "-c",
                        "equilibrium show p")
        assert done.returncode == 0, done
        return done.stdout.splitlines()[1:]

    def module_plan(self) -> List[str]:
        """What the module's own plan shows."""
        ready_plan(self.cluster, "p")
        return equilibrium(self.cluster, "show", plan="p").out.splitlines()

    def reading_plan(self) -> List[str]:
        """What a plan from a new reading of the module shows, without what it has learnt before.

        At rest the cluster is not read for each command: a plan is."""
        ready_plan(self.cluster, "p")
        reading = self.folder / "reading.json"
        reading.write_text(equilibrium(self.cluster, "dump-state").out)
        return self.plan(reading)

    def same_plan(self, wanted_plan: Callable[[], List[str]], points: float = 0.0) -> List[str]:
        """Both plans at one osdmap; the statistics may have moved on between the two. `points`: by
        which figures may differ, not commands."""
        for _ in range(TRIES):
            file = self.gather()
            wanted, found = wanted_plan(), self.plan(file)
            is_same = found == wanted
            if points and commands(found) == commands(wanted):
                is_same = is_same or differ(found, wanted) < points
            if is_same and self.plan(self.gather("--anonymous"))[0] == wanted[0]:
                return found
        pytest.fail("\n".join(["the module:", *wanted, "the file:", *found]))


@pytest.fixture(scope="module")
def reader(cluster: DaemonCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("reader")
    key = cluster.ceph("auth get-or-create client.reader mon 'allow r' mgr 'allow r'")
    keyring = cluster.work / "reader.keyring"
    keyring.write_text(key.out)
    ceph = "ceph"
    if cluster.release.root is None:   # `ceph` alone would be the script below
        ceph = shutil.which("ceph") or ceph
    command = shlex.join(cluster.processes.argv([
        ceph, "-c", str(cluster.conf), "--id", "reader", "--keyring", str(keyring)]))
    script = folder / "ceph"
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.chmod(0o755)
    yield Reader(cluster, folder, {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    cluster.mon("auth rm", entity="client.reader")


def test_the_key_may_only_read(reader: Reader) -> None:
    for command in ("osd set noout", "equilibrium on", "osd pool create other 1"):
        done = subprocess.run(["ceph", *command.split()], env=reader.environment, text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == 13 and "EACCES" in done.stderr, done


def test_at_rest_and_under_writes(reader: Reader, cluster: DaemonCluster,
                                  unbalanced: workload.Usage,
                                  figure: Callable[[str], None]) -> None:
    resting = reader.same_plan(reader.module_plan)
    load = ClientLoad(cluster, ["rep"], 20)
    try:
        wait_for("writes", lambda: (cluster.work / "writer.out").stat().st_size > 400, 60)
        written = reader.same_plan(reader.module_plan)
        assert load.writes()   # the client has not stopped
    finally:
        load.end()
    figure(f"gather: the module's plans from it, {len(resting)} lines at rest,"
           f" {len(written)} under writes")


def test_in_mid_move(reader: Reader, cluster: DaemonCluster, unbalanced: workload.Usage,
                     figure: Callable[[str], None]) -> None:
    """While PGs move the up sets are those of the osdmap. Held in the middle, the plan is that of
    the module's reading; the module's own plan rests on what it has learnt of sizes, too: 100 KiB
    of an OSD of 2 GiB, seen in three of six runs on a busy machine."""
    shorten_logs(cluster)
    for name, value in SLOW.items():
        cluster.set_config("osd", name, value)
    ready_plan(cluster, "moves")
    try:
        run(cluster, "execute", plan="moves")
        wait_for("moves", lambda: shards_in_flight(status(cluster)), 60)
        moving = [moving_in_file(reader) for _ in range(2)]
        for flag in HOLDS:
            cluster.mon("osd set", key=flag)
        equilibrium(cluster, "off")
        counts: List[float] = []   # of misplaced copies, once a second

        def stands_still() -> bool:
            counts.append(misplaced(cluster))
            return len(counts) >= QUIET and len(set(counts[-QUIET:])) == 1
        wait_for("copies that have come to rest", stands_still, 90, pause=1.0)
        held = reader.same_plan(reader.reading_plan, STILL)
        learnt = differ(reader.module_plan(), held)
        assert learnt < LEARNT
        left = shards_in_flight(status(cluster))
        assert all(moving) and left
        figure(f"gather: {moving} PGs on their way in files made meanwhile; with {left} shards"
               f" held in mid-move the plan of the module's reading from it, {len(held)} lines;"
               f" the module's own differs by {learnt:.2f} points")
    finally:
        for flag in HOLDS:
            cluster.mon("osd unset", key=flag)
        for name in SLOW:
            cluster.remove_config("osd", name)
        workload.clear_upmaps(cluster)


def commands(plan: List[str]) -> List[str]:
    return [line for line in plan if not line.startswith("#")]


def differ(plan: List[str], other: List[str]) -> float:
    """Points by which the highest utilizations before and after two plans differ at most."""
    return max(abs(a - b) for a, b in zip(highest(plan), highest(other)))


def highest(plan: List[str]) -> List[float]:
    """In per cent, before and after."""
    line = next(line for line in plan if "max %USE" in line)
    return [float(text) for text in re.findall(r"\d+\.\d+", line)[:2]]


def moving_in_file(reader: Reader) -> int:
    """PGs whose acting set is not their up set in a file made now; osdmaptool maps all PGs of its
    epoch as the file has them."""
    state = json.loads(reader.gather().read_text())
    mapped = read_mappings(osdmaptool(
        reader.cluster, state["osd_dump"]["epoch"], "--test-map-pgs-dump-all"))
    count = 0
    for pg in state["pg_dump"]["pg_map"]["pg_stats"]:
        one = mapped.pop(pg["pgid"])
        assert (one.up, one.acting) == (tuple(pg["up"]), tuple(pg["acting"])), pg
        count += one.up != one.acting
    assert not mapped
    return count
