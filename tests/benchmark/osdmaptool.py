"""The built-in balancer on the same map: Ceph's own osdmaptool, timed."""
from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from tests.oracle.ceph_tools import read_commands, version

Pairs = Dict[str, List[Tuple[int, int]]]  # pgid → (from, to); an empty list takes the entry away

MAX_CHANGES = 100_000
DEVIATION = 1   # PGs by which an OSD may differ from its share; Ceph's default of 5 does far less


class Run(NamedTuple):
    """One run. `changes` is None where it was killed or failed; `seconds` are those it took."""

    seconds: float
    changes: Optional[Pairs]
    problem: str   # empty, or why there are no changes
    killed: bool = False   # by the time limit


def available() -> bool:
    """Whether osdmaptool is on the PATH."""
    return shutil.which("osdmaptool") is not None


def release() -> Optional[str]:
    """The version of osdmaptool, or None without one."""
    return version() if available() else None


def balance(osdmap: Path, limit: float) -> Run:
    """Lets the built-in balancer optimize all pools; it is killed after `limit` seconds.

    The tool draws lots among equals, so that another run may end differently.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # the tool opens its map for writing
        copy = Path(shutil.copyfile(osdmap, folder / "osdmap"))
        commands = folder / "upmaps"
        words = ["osdmaptool", str(copy), "--upmap", str(commands), "--upmap-max",
                 str(MAX_CHANGES), "--upmap-deviation", str(DEVIATION)]
        start = time.perf_counter()
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return Run(time.perf_counter() - start, None, f"killed after {limit:g} s", True)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            return Run(seconds, None,
                       f"failed with code {done.returncode}: {done.stdout.strip()[-300:]}")
        return Run(seconds, read_commands(commands), "")
