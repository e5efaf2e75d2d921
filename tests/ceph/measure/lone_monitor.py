"""A monitor and an mgr alone with the map of a large cluster, whose OSDs never run.

The monitor begins with that map (large_osdmap.py). No OSD reports, so every PG's state stays
unknown and no OSD has statistics.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import List, Sequence

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..release import Release
from .large_osdmap import make_osdmap

NAMES = {16: "pacific", 18: "reef", 20: "tentacle"}

PATIENCE = """
[global]
mon osd report timeout = 1000000
mon mgr beacon grace = 300
paxos propose interval = 0.05
"""


class LoneMonitor(DaemonCluster):
    """No OSDs of its own; `modules` are folders that become mgr modules beside equilibrium."""

    def __init__(self, release: Release, package: Path, osds: int,
                 modules: Sequence[Path] = ()) -> None:
        super().__init__(release, package)
        self.osd_count = osds
        self.modules = modules

    def wait_mgr(self, seconds: float = 120.0) -> str:
        """Wait until the active mgr answers and no longer waits for OSDs to report."""
        def answers() -> str:
            name = self.active_mgr()
            if not name:
                return ""
            answer = self.mgr("pg dump", dumpcontents=["delta"], format="json", seconds=60)
            return name if answer.rc == 0 and answer.json().get("pg_ready", True) else ""
        return wait_for("an active mgr that is ready", answers, seconds)

    def _write_files(self) -> None:
        super()._write_files()
        with open(self.conf, "a") as conf:
            conf.write(PATIENCE)

    def _fill_module_folder(self, folder: Path) -> None:
        super()._fill_module_folder(folder)
        for module in self.modules:
            shutil.copytree(module, folder / module.name,
                            ignore=shutil.ignore_patterns("__pycache__"))

    def _mkfs_arguments(self) -> List[str]:
        return ["--osdmap", str(make_osdmap(self.work, self.osd_count))]

    def _start_mon(self) -> None:
        super()._start_mon()
        self.mon("osd require-osd-release", release=NAMES[self.release.major],
                 yes_i_really_mean_it=True)
        for pool in self.mon_json("osd dump")["pools"]:  # the autoscaler finds empty pools too big
            self.mon("osd pool set", pool=pool["pool_name"], var="pg_autoscale_mode", val="off")

    def _start_osds(self) -> None:
        """There are none."""
