"""What equilibrium leaves of the garbage collector of its neighbours, and of the mgr's memory.

    python3 tests/ceph/measure_collector.py [--ceph 20] [--minutes 30] [--idle-minutes 5]

Ten real OSDs, and an mgr with the test-only module planner_load, which from Ceph 20 on shares the
interpreter, and so the collector, with all others. First the mgr without equilibrium, then, after
the restart that enabling a module is, with it switched on while an OSD's reweight changes every
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

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

from mgr_stub.install import install  # noqa: E402

install(18)

from ceph import workload  # noqa: E402
from ceph.cluster import Cluster, copy_package  # noqa: E402
from ceph.release import EXIT_UNAVAILABLE, RELEASES, ReleaseUnavailable  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "equilibrium_mgr"
PLANNER_LOAD = HERE / "planner_load"
GOAL = 1.05
"""The mgr's memory with equilibrium shall not be more than so many times that without."""
SAMPLE_SECONDS = 30.0
MIB = 1 << 20

Sample = Dict[str, Any]


class Neighbors(Cluster):
    """A cluster whose mgr has planner_load, too."""

    def _fill_module_folder(self, folder: Path) -> None:
        super()._fill_module_folder(folder)
        copy_package(PLANNER_LOAD, folder / PLANNER_LOAD.name)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures and prints; 1 where something is not as it shall be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ceph", type=int, default=20, choices=sorted(RELEASES))
    parser.add_argument("--minutes", type=float, default=30.0, help="with equilibrium")
    parser.add_argument("--idle-minutes", type=float, default=5.0, help="without")
    options = parser.parse_args(arguments)
    release = RELEASES[options.ceph]
    try:
        release.prepare()
    except ReleaseUnavailable as error:
        print(error, file=sys.stderr)
        return EXIT_UNAVAILABLE
    with Neighbors(release, PACKAGE) as cluster:
        workload.make_pools(cluster)
        for pool, mebibytes in (("rep", 400), ("ec", 300)):
            workload.write(cluster, pool, mebibytes)
        cluster.enable(PLANNER_LOAD.name)
        without = samples(cluster, options.idle_minutes, working=False)
        cluster.enable("equilibrium")
        cluster.hurry()
        cluster.set_option("sleep_interval", 5)
        cluster.mgr("equilibrium on")
        working = samples(cluster, options.minutes, working=True)
        status = cluster.mgr_json("equilibrium status")
        failures = cluster.module_failures()
    print(f"Ceph {release.version}, Python {working[0]['python']}")
    print(f"without equilibrium, {options.idle_minutes:g} min: {told(without)}")
    print(f"with equilibrium on, {options.minutes:g} min: {told(working)}")
    print(f"at the end: {status['state']}, {status['reason']}; last plan {status['last_plan']}")
    ratio = settled(working) / settled(without)
    print(f"memory with ÷ without: {ratio:.3f}\n{failures}")
    return int(bool(failures) or ratio > GOAL or not left_alone(working))


def samples(cluster: Cluster, minutes: float, working: bool) -> List[Sample]:
    """What planner_load says every half minute, for so long."""
    found = [cluster.mgr_json("planner_load collector")]
    until = time.monotonic() + 60.0 * minutes
    while time.monotonic() < until:
        if working and len(found) % 2:
            weight = "0.7" if len(found) % 4 == 1 else "1.0"
            cluster.mon("osd reweight", id=3, weight=float(weight))
        time.sleep(SAMPLE_SECONDS)
        found.append(cluster.mgr_json("planner_load collector"))
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
