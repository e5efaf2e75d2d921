"""`python3 -m tests.benchmark`, from the top of the repository.

Every cluster is planned in a process of its own, one after the other, so that neither time nor
memory of one shows in another.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from mgr_stub.console.session import Session
from mgr_stub.frozen import collect_less_often
from mgr_stub.mgr.install import install

install(18)

from tests.benchmark.made.scale import SHARDS_PER_OSD, large_reading  # noqa: E402
from tests.benchmark.made.shapes import SHAPES  # noqa: E402
from tests.benchmark.published import publish  # noqa: E402
from tests.benchmark.scoring import changed_items, data_pools, score  # noqa: E402
from tests.oracle.ceph_tools import read_commands  # noqa: E402
from tests.support.clusters.made_clusters import snapshot_of  # noqa: E402
from tests.support.units import MIB, TIB  # noqa: E402

from equilibrium_mgr.plan.options import AIMS, PlanOptions  # noqa: E402
from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds  # noqa: E402
from equilibrium_mgr.planner.planner import make_plan  # noqa: E402
from equilibrium_mgr.runtime.time_slice import giving_way  # noqa: E402
from equilibrium_mgr.snapshot.builder import SnapshotBuilder  # noqa: E402
from equilibrium_mgr.snapshot.model import Snapshot  # noqa: E402

Result = Dict[str, Any]
STATE_NAME = "state.json.xz"
FIRST_MOVES = 100   # as many as a round sends at most
#: (PGs per OSD, pools) of three replicas; on 10,000 OSDs 160,000 PGs, and 1,000,000 shards.
SCALES = ((16.0, 4), (SHARDS_PER_OSD / 3.0, 100))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.benchmark",
        description="Plans on clusters of many shapes and judges the plans: the demo cluster, "
                    "made ones, and those in given folders. Beside it, where osdmaptool is "
                    "installed and a folder has an osdmap, the built-in balancer.")
    parser.add_argument("--clusters", metavar="DIR", nargs="+", default=[],
                        help=f"folders with {STATE_NAME}, and osdmap if there is one")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=["*"],
                        help="only these clusters; * and ? allowed, also: given")
    parser.add_argument("--aim", default=PlanOptions().aim, choices=AIMS, help="the plan's aim")
    parser.add_argument("--osdmaptool-seconds", type=float, default=120.0, metavar="S",
                        help="kill osdmaptool after this long (default: 120; 0: do not run it)")
    parser.add_argument("--scale", nargs="?", type=int, const=10_000, metavar="N",
                        help="only two made clusters of N (10,000) OSDs with 16 PGs each in 4 "
                             "pools, and with 100 shards each in 100 pools")
    parser.add_argument("--scale-seconds", type=float, default=600.0, metavar="S",
                        help="end a plan of these after so many processor seconds (default: 600)")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to a file")
    parser.add_argument("--publish", action="store_true",
                        help="write the figures of published clusters into README.md and "
                             "measurements.md, and record them")
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the benchmark; 1 where a cluster could not be measured, 2 for wrong arguments."""
    parser = _parser()
    options = parser.parse_args(arguments)
    jobs: List[Tuple[Callable[..., Result], Tuple[Any, ...]]] = []
    if options.scale:
        jobs = [(measure_scale, (options.scale, int(options.scale * pgs), pools,
                                 options.scale_seconds, options.aim)) for pgs, pools in SCALES]
    else:
        names = dict.fromkeys(("demo", *SHAPES), "")
        names.update((Path(folder).resolve().name, folder) for folder in options.clusters)
        jobs = [(measure_cluster, (name, folder, options.aim, options.osdmaptool_seconds))
                for name, folder in names.items() if _is_asked_for(name, folder, options.only)]
    if not jobs:
        parser.error(f"no cluster is called {' or '.join(options.only)}")
    results: List[Result] = []
    for function, given in jobs:
        with multiprocessing.get_context("fork").Pool(1) as process:
            try:
                results.append(process.apply(function, given))
            except Exception as error:
                print(f"\n{given[0]}: FAILED: {error!r}", file=sys.stderr, flush=True)
            else:
                print("\n" + table(results[-1]), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    if options.publish:
        publish(results)
    return int(len(results) < len(jobs))


def _is_asked_for(name: str, folder: str, words: Sequence[str]) -> bool:
    if folder and "given" in words:
        return True
    return any(fnmatch(name, word) for word in words)


def measure_cluster(name: str, folder: str, aim: str, limit: float) -> Result:
    """A plan of one cluster, judged. Bytes, ratios and seconds of wall time."""
    snapshot = snapshot_of(name)
    if folder:
        session = Session.from_state(str(Path(folder, STATE_NAME)), release=18)
        snapshot = session.module.gateway.snapshot()
    start = time.perf_counter()
    plan = make_plan(snapshot, PlanOptions(aim=aim))
    cost = {"seconds": time.perf_counter() - start, "peak_bytes": peak_bytes()}
    items = changed_items(snapshot, [(change.pgid, change.items) for change in plan.changes])
    columns: Dict[str, Result] = {
        "start": score(snapshot, snapshot.upmap_items)._asdict(),
        "equilibrium": {**score(snapshot, items)._asdict(), **cost}}
    osdmap = Path(folder, "osdmap")
    is_given = folder and osdmap.exists()
    if is_given and limit and shutil.which("osdmaptool"):
        columns["osdmaptool"] = built_in(snapshot, osdmap, limit)
    bounds = cluster_bounds(snapshot)
    pools, space = data_pools(snapshot), bounds.pool_space
    columns["bound"] = {"highest": bounds.highest, "free_data_bytes": None}
    if space.keys() >= set(pools):
        columns["bound"]["free_data_bytes"] = sum(space[pool].free_bytes for pool in pools)
    return {"name": name, **_counts(snapshot), "stopped": plan.stop_reason, "columns": columns}


def built_in(snapshot: Snapshot, osdmap: Path, limit: float) -> Result:
    """What the built-in balancer makes of all pools; it is killed after `limit` seconds.

    The tool draws lots among equals, so that another run may end differently. An OSD may differ by
    one PG from its share; Ceph's default of 5 does far less.
    """
    with tempfile.TemporaryDirectory() as name:
        # the tool opens its map for writing
        copy, commands = shutil.copyfile(osdmap, Path(name, "osdmap")), Path(name, "upmaps")
        start = time.perf_counter()
        try:
            subprocess.run(["osdmaptool", str(copy), "--upmap", str(commands), "--upmap-max",
                            "100000", "--upmap-deviation", "1"], check=True, timeout=limit,
                           stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return {"seconds": limit, "killed": True}
        seconds = time.perf_counter() - start
        items = changed_items(snapshot, read_commands(commands).items())
        return {**score(snapshot, items)._asdict(), "seconds": seconds}


class Pace:
    """How a planner gives way: notes when moves are there; `limit` in processor seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._start = self._last = time.process_time()
        self.first_seconds: Optional[float] = None   # until FIRST_MOVES are there
        self.longest_seconds = 0.0   # between two calls: how long a mgr's thread is kept busy

    def __call__(self, moves: int) -> bool:
        now = time.process_time()
        self.longest_seconds = max(self.longest_seconds, now - self._last)
        self._last = now
        if moves >= FIRST_MOVES and self.first_seconds is None:
            self.first_seconds = now - self._start
        return now - self._start < self._limit


def measure_scale(osds: int, pgs: int, pools: int, limit: float, aim: str) -> Result:
    """Processor seconds of two looks and a plan, and bytes of memory.

    No simulator runs in the process. Up sets and statistics of the reading are made data, which
    the module would have built itself; the rest of the reading is a few dicts for each OSD.
    """
    reading = large_reading(osds, pools, pgs=pgs)
    builder, moments, peak = SnapshotBuilder(), [time.process_time()], peak_bytes()
    for _ in range(2):   # the second as in every later round: it keeps what cannot change
        snapshot = builder.build(reading)
        moments.append(time.process_time())
    pace = Pace(limit)
    with giving_way(pace):
        plan = make_plan(snapshot, PlanOptions(aim=aim))
    moments.append(time.process_time())
    first, following, seconds = (later - before for before, later in zip(moments, moments[1:]))
    columns: Dict[str, Result] = {
        title: {"highest": {name: usage.max for name, usage in figures.classes.items()}}
        for title, figures in (("start", plan.before), ("equilibrium", plan.after))}
    columns["equilibrium"].update(
        shard_moves=len(plan.moves), moved_bytes=plan.bytes, look_seconds=first,
        next_look_seconds=following, first_moves_seconds=pace.first_seconds, seconds=seconds,
        longest_seconds=pace.longest_seconds, reading_peak_bytes=peak, peak_bytes=peak_bytes())
    columns["bound"] = {"highest": dict(plan.bounds)}
    return {"name": f"scale, {limit:g} s at most", **_counts(snapshot),
            "stopped": plan.stop_reason, "columns": columns}


def peak_bytes() -> int:
    """The most memory that this process has ever had resident; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _counts(snapshot: Snapshot) -> Result:
    return {"osds": len(snapshot.osds), "pools": len(snapshot.pools), "pgs": len(snapshot.pgs),
            "shards": sum(len(pg.up) for pg in snapshot.pgs.values())}


def _tib(count: float) -> str:
    return f"{count / TIB:.2f}"


def _percent(ratio: float) -> str:
    return f"{100.0 * ratio:.2f}"


def _mib(count: float) -> str:
    return f"{count / MIB:.0f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}"


#: Row of the table → the figure of a column, and how it is shown.
ROWS: Dict[str, Tuple[str, Callable[[Any], str]]] = {
    "free space of data pools, summed (TiB)": ("free_data_bytes", _tib),
    "sum of data pools' gains (TiB)": ("gained_data_bytes", _tib),
    "moved (TiB)": ("moved_bytes", _tib),
    "shard moves": ("shard_moves", str),
    "upmap items in the end": ("item_pairs", str),
    "PGs that break a rule": ("broken_pgs", str),
    "first look (s)": ("look_seconds", _seconds),
    "next look (s)": ("next_look_seconds", _seconds),
    f"first {FIRST_MOVES} moves after (s)": ("first_moves_seconds", _seconds),
    "longest without giving way (s)": ("longest_seconds", "{:.3f}".format),
    "seconds to plan": ("seconds", _seconds),
    "killed": ("killed", str),
    "peak memory with the maps and statistics alone (MiB)": ("reading_peak_bytes", _mib),
    "peak memory (MiB)": ("peak_bytes", _mib)}


def _cells(figures: Sequence[Any], text: Callable[[Any], str]) -> List[str]:
    return ["-" if figure is None else text(figure) for figure in figures]


def table(result: Result) -> str:
    """Everything about one cluster, in lines; a figure that a column does not have is `-`."""
    columns: Mapping[str, Mapping[str, Any]] = result["columns"]
    rows = [["", *columns]]
    for name in columns["start"]["highest"]:
        levels = [column.get("highest", {}).get(name) for column in columns.values()]
        rows.append([f"highest utilization, {name} (%)", *_cells(levels, _percent)])
    for title, (key, text) in ROWS.items():
        figures = [column.get(key) for column in columns.values()]
        if set(figures) != {None}:
            rows.append([title, *_cells(figures, text)])
    first, *others = [max(map(len, column)) for column in zip(*rows)]
    head = "{name}: {osds} OSDs, {pools} pools, {pgs} PGs, {shards} shards; {stopped}"
    lines = [head.format(**result)]
    for title, *cells in rows:
        shown = [cell.rjust(width) for cell, width in zip(cells, others)]
        lines.append("  ".join(["  " + title.ljust(first), *shown]))
    return "\n".join(lines)


if __name__ == "__main__":
    collect_less_often()
    sys.exit(main())
