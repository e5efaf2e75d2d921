"""What equilibrium leaves of the garbage collector of its neighbors, and of the mgr's memory.

    python3 -m tests.ceph.measure.collector [--ceph 20] [--minutes 30]

Two clusters of ten real OSDs beside each other, the same data in both, and in both an mgr with the
test-only module planner_load, which from Ceph 20 on shares the interpreter, and so the collector,
with all others. In the second equilibrium is switched on. In both an OSD's reweight changes every
minute, so that there is always something to plan and to move. planner_load tells each half minute
what the collector has done, how many objects it leaves out (`gc.get_freeze_count()`) and how much
memory the mgr has. Exit code 1 where anything is frozen, the collector is off, its counts stand
still, or the memory is more than GOAL times that without. By hand; no part of any test run.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, Optional, Sequence

from mgr_stub.mgr.install import install  # noqa: E402

install(18)

from tests.ceph.cluster import DaemonCluster, copy_package  # noqa: E402
from tests.ceph.harness import workload  # noqa: E402
from tests.ceph.release import EXIT_UNAVAILABLE, RELEASES, ReleaseUnavailable  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "equilibrium_mgr"
PLANNER_LOAD = HERE.parent / "planner_load"
GOAL = 1.05
"""The mgr's memory with equilibrium shall not be more than so many times that without."""
SAMPLE_SECONDS = 30.0
MIB = 1 << 20

Sample = Dict[str, Any]


class Neighbors(DaemonCluster):
    """A cluster whose mgr has planner_load, too."""

    def _fill_module_folder(self, folder: Path) -> None:
        super()._fill_module_folder(folder)
        copy_package(PLANNER_LOAD, folder / PLANNER_LOAD.name)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures and prints; 1 where something is not as it shall be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ceph", type=int, default=20, choices=sorted(RELEASES))
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args(arguments)
    release = RELEASES[options.ceph]
    try:
        release.prepare()
    except ReleaseUnavailable as error:
        print(error, file=sys.stderr)
        return EXIT_UNAVAILABLE
    with Neighbors(release, PACKAGE) as plain, Neighbors(release, PACKAGE) as balanced:
        for cluster in (plain, balanced):
            fill(cluster)
        switch_on(balanced)
        without, working = samples((plain, balanced), options.minutes)
        status = balanced.mgr_json("equilibrium status")
        failures = balanced.module_failures()
    print(f"Ceph {release.version}, Python {working[0]['python']}, {options.minutes:g} minutes")
    print(f"without equilibrium: {told(without)}")
    print(f"with equilibrium on: {told(working)}")
    print(f"at the end: {status['state']}, {status['reason']}; last plan {status['last_plan']}")
    ratio = settled(working) / settled(without)
    print(f"memory with ÷ without: {ratio:.3f}\n{failures}")
    return int(bool(failures) or ratio > GOAL or not left_alone(working))


def fill(cluster: DaemonCluster) -> None:
    """Pools, some data, and planner_load."""
    workload.make_pools(cluster)
    for pool, mebibytes in (("rep", 400), ("ec", 300)):
        workload.write(cluster, pool, mebibytes)
    cluster.enable(PLANNER_LOAD.name)


def switch_on(cluster: DaemonCluster) -> None:
    """Equilibrium, in a hurry."""
    cluster.enable("equilibrium")
    cluster.hurry()
    cluster.set_option("sleep_interval", 5)
    cluster.mgr("equilibrium on")


def samples(clusters: Sequence[DaemonCluster], minutes: float) -> List[List[Sample]]:
    """What planner_load says of each cluster every half minute, for so long."""
    found = [[cluster.mgr_json("planner_load collector")] for cluster in clusters]
    until = time.monotonic() + 60.0 * minutes
    turn = 0
    while time.monotonic() < until:
        turn += 1
        for cluster, told_so_far in zip(clusters, found):
            if turn % 2:
                cluster.mon("osd reweight", id=3, weight=0.7 if turn % 4 == 1 else 1.0)
            told_so_far.append(cluster.mgr_json("planner_load collector"))
        time.sleep(SAMPLE_SECONDS)
    return found


def left_alone(found: Sequence[Sample]) -> bool:
    """Nothing frozen, the collector on, and its counts advance from one sample to the last."""
    first, last = found[0]["collections"], found[-1]["collections"]
    return (all(sample["enabled"] and not sample["frozen"] for sample in found)
            and last[0] > first[0] and last[1] > first[1])


def settled(found: Sequence[Sample]) -> float:
    """Bytes resident: the median of the second half, when the mgr has started up."""
    return median(sample["rss_bytes"] for sample in found[len(found) // 2:])


def told(found: Sequence[Sample]) -> str:
    """One line of figures."""
    first, last = found[0], found[-1]
    return (f"frozen at most {max(sample['frozen'] for sample in found)}, collector "
            f"{'on' if all(sample['enabled'] for sample in found) else 'OFF'}, collections "
            f"{first['collections']} -> {last['collections']}, counts {last['counts']}, objects "
            f"{first['objects']} -> {last['objects']}, resident {first['rss_bytes'] / MIB:.1f} -> "
            f"{last['rss_bytes'] / MIB:.1f} MiB, settled at {settled(found) / MIB:.1f} MiB")


if __name__ == "__main__":
    sys.exit(main())
