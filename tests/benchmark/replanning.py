"""What a plan after one event costs that starts from the wanted placement, beside one from scratch.

    python3 -m tests.benchmark.replanning FOLDER [FOLDER ...] [--repeat N]

Each folder has a state file. The cluster is planned, 30 % of the bytes are sent, one event happens,
and both plans are made of what it leaves:

seconds        processor time of the plan from the wanted placement ÷ that from scratch (medians)
points         highest utilization of the class that comes off worst, less that from scratch (%)
free space     of the pools with at least 1 % of the data, summed, ÷ that from scratch; the worst
bytes          that the plan moves ÷ those from scratch
in flight      the same of all bytes that are not where they are wanted, from where the data is now

"none" says that there was no such plan, and what finding that out took.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

from mgr_stub.mgr.install import install

install(18)

from mgr_stub.console.session import Session  # noqa: E402
from mgr_stub.garbage_collection import collect_less_often  # noqa: E402
from tests.benchmark.clusters import STATE_NAME  # noqa: E402
from tests.benchmark.costs.replans import both_plans  # noqa: E402
from tests.support.clusters.plans_under_way import EVENTS  # noqa: E402

from equilibrium_mgr.plan.model import Plan  # noqa: E402
from equilibrium_mgr.plan.options import PlanOptions  # noqa: E402
from equilibrium_mgr.snapshot.model import Snapshot, shard_changes  # noqa: E402

_DATA_SHARE = 0.01


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    options = parser.parse_args(arguments)
    collect_less_often()
    print("| cluster | event | seconds | of | points | free space | worst pool | bytes"
          " | in flight |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for folder in options.folders:
        for event in EVENTS:
            print(row(Path(folder), event, options.repeat), flush=True)
    return 0


def row(folder: Path, event: str, repeat: int) -> str:
    """One line of the table."""
    session = Session.from_state(str(folder / STATE_NAME), release=18)
    both = both_plans(session, event, PlanOptions(), repeat)
    snapshot, plan, scratch = both.snapshot, both.again, both.scratch
    begin = (f"| {folder.name} | {event} | {both.seconds / both.scratch_seconds:.2f} |"
             f" {both.scratch_seconds:.2f} |")
    if plan is None:
        return f"{begin} none | | | | |"
    points = max(100.0 * (usage.max - scratch.after.classes[name].max)
                 for name, usage in plan.after.classes.items())
    free, worst = free_space(snapshot, plan, scratch)
    return (f"{begin} {points:+.2f} | {free:.3f} | {worst:.3f} |"
            f" {plan.bytes / max(1, scratch.bytes):.3f} |"
            f" {to_move(snapshot, plan) / max(1, to_move(snapshot, scratch)):.3f} |")


def free_space(snapshot: Snapshot, plan: Plan, scratch: Plan) -> Tuple[float, float]:
    """Free space of the pools with data as a ratio of that from scratch: of all, of the worst."""
    raw: Dict[str, float] = {pool.name: pool.stored_bytes * pool.size / pool.data_shards
                             for pool in snapshot.pools.values()}
    names = [name for name in raw if raw[name] >= _DATA_SHARE * sum(raw.values())]
    mine = {name: plan.after.pools[name].free_bytes for name in names}
    other = {name: max(1, scratch.after.pools[name].free_bytes) for name in names}
    return (sum(mine.values()) / sum(other.values()),
            min(mine[name] / other[name] for name in names))


def to_move(snapshot: Snapshot, plan: Plan) -> int:
    """Bytes between where the data is now and where it is wanted in the end."""
    wanted = {change.pgid: change.up_after for change in plan.changes}
    return sum(pg.shard_bytes * len(shard_changes(
        pg.holders, wanted.get(pg.pgid, pg.up), snapshot.pools[pg.pool].erasure)[0])
        for pg in snapshot.pgs.values())


if __name__ == "__main__":
    sys.exit(main())
