"""Measures one cluster; runs in a process of its own, so that its memory is its own."""
from __future__ import annotations

import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Mapping

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot, UpmapItems

from . import osdmaptool
from .clusters import Source
from .scoring import Score, changed_items, data_pools, least_moved_bytes, score
#: Utilization by which a plan's own prediction may differ from its score, a ratio.
_SAME = 1e-6


@dataclass
class Job:
    """What to measure of one cluster."""

    name: str
    kind: str
    folder: str
    aim: str = PlanOptions().aim
    osdmaptool_seconds: float = 120.0  # time limit of the built-in balancer; 0: it does not run

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)


def peak_bytes() -> int:
    """The most memory that this process has ever had resident; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(job: Job) -> Dict[str, Any]:
    """Everything about one cluster, ready for JSON. Bytes, ratios and seconds of wall time."""
    source = Source(job.name, job.kind, job.folder)
    start = time.perf_counter()
    snapshot = source.snapshot()
    load_seconds = time.perf_counter() - start
    start = time.perf_counter()
    plan = make_plan(snapshot, PlanOptions(aim=job.aim))
    seconds = time.perf_counter() - start
    peak = peak_bytes()   # before anything else is done here
    nothing = score(snapshot, snapshot.upmap_items)
    found: Dict[str, Any] = {
        "name": job.name, "kind": job.kind, "description": source.description, "aim": job.aim,
        "osds": len(snapshot.osds), "pools": len(snapshot.pools), "pgs": len(snapshot.pgs),
        "shards": sum(len(pg.up) for pg in snapshot.pgs.values()),
        "data_pools": [snapshot.pools[pool].name for pool in data_pools(snapshot)],
        "load_seconds": load_seconds, "start": _as_dict(nothing),
        "equilibrium": dict(_own(snapshot, plan), seconds=seconds, peak_bytes=peak),
        **_bounds(snapshot)}
    osdmap = source.osdmap()
    if osdmap is not None and job.osdmaptool_seconds > 0 and osdmaptool.available():
        tool = found["osdmaptool"] = _built_in(snapshot, osdmap, job.osdmaptool_seconds)
        if tool["killed"] or not tool["problem"]:   # an upper limit where it was killed
            found["seconds_ratio"] = found["equilibrium"]["seconds"] / max(1e-9, tool["seconds"])
    return found


def _own(snapshot: Snapshot, plan: Plan) -> Dict[str, Any]:
    result = score(snapshot, changed_items(
        snapshot, [(change.pgid, change.items) for change in plan.changes]))
    wrong = {name: usage.max for name, usage in plan.after.classes.items()
             if abs(usage.max - result.highest.get(name, 0.0)) > _SAME}
    return dict(_as_dict(result), moves=len(plan.moves), changes=len(plan.changes),
                least_moved_bytes=least_moved_bytes(snapshot, result.highest),
                stop_reason=plan.stop_reason, wrong_predictions=wrong)


def _bounds(snapshot: Snapshot) -> Dict[str, Any]:
    """The bounds of the utilization and of the data pools' free space, which is summed."""
    bounds = cluster_bounds(snapshot)
    space = [bounds.pool_space.get(pool) for pool in data_pools(snapshot)]
    return {"bounds": bounds.classes,
            "free_data_bound_bytes": None if None in space else sum(
                bound.free_bytes for bound in space if bound is not None)}


def _built_in(snapshot: Snapshot, osdmap: Path, limit: float) -> Dict[str, Any]:
    run = osdmaptool.balance(osdmap, limit)
    found: Dict[str, Any] = {"seconds": run.seconds, "problem": run.problem,
                             "killed": run.killed, "limit_seconds": limit}
    if run.changes is not None:
        pairs: Mapping[str, UpmapItems] = {
            pgid: tuple(items) for pgid, items in run.changes.items()}
        found.update(_as_dict(score(snapshot, changed_items(snapshot, pairs.items()))))
    return found


def _as_dict(result: Score) -> Dict[str, Any]:
    return dict(result._asdict())
