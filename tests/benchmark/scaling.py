"""Planning on large made clusters: processor seconds and memory, in a process of its own each."""
from __future__ import annotations

import time
from typing import Any, Dict, NamedTuple, Optional, Tuple

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot.builder import SnapshotBuilder

from .made.scale import SHARDS_PER_OSD, large_reading
from .measure import peak_bytes

FIRST_MOVES = 100   # as many as a round sends at most
_PGS_PER_OSD, _FEW_POOLS, _MANY_POOLS, _SIZE = 16, 4, 100, 3


class Form(NamedTuple):
    """How large a cluster is to be."""

    osds: int
    pgs: int     # of 3 replicas
    pools: int


def few_pools(osds: int) -> Form:
    """48 shards per OSD in 4 pools; on 10,000 OSDs 160,000 PGs."""
    return Form(osds, osds * _PGS_PER_OSD, _FEW_POOLS)


def many_pools(osds: int) -> Form:
    """100 shards per OSD in 100 pools; on 10,000 OSDs 1,000,000 shards."""
    return Form(osds, -(-osds * SHARDS_PER_OSD // _SIZE), _MANY_POOLS)


def both_forms(osds: int) -> Tuple[Form, Form]:
    return few_pools(osds), many_pools(osds)


class Pace:
    """How a planner gives way: notes when moves are there; `limit` in processor seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._start = self._last = time.process_time()
        self.first_seconds: Optional[float] = None
        self.longest_seconds = 0.0   # between two calls: how long a mgr's thread is kept busy
        self.ended = False           # by the limit

    def __call__(self, moves: int) -> bool:
        now = self.note()
        if moves >= FIRST_MOVES and self.first_seconds is None:
            self.first_seconds = now - self._start
        self.ended = now - self._start >= self._limit
        return not self.ended

    def note(self) -> float:
        """The present moment; the time since the last one counts."""
        now = time.process_time()
        self.longest_seconds = max(self.longest_seconds, now - self._last)
        self._last = now
        return now


def measure_scale(form: Form, limit: float, aim: str) -> Dict[str, Any]:
    """Processor seconds of every stage, moves, and bytes of memory.

    No simulator runs in the process. Up sets and statistics of the reading are made data, which
    the module would have built itself; the rest of the reading is a few dicts for each OSD. So
    memory is that of the whole process, but for `start_peak_bytes`: the interpreter with the code.
    """
    start_peak = peak_bytes()
    reading = large_reading(form.osds, form.pools, pgs=form.pgs)
    reading_peak = peak_bytes()
    builder = SnapshotBuilder()
    start = time.process_time()
    builder.build(reading)
    first = time.process_time()
    snapshot = builder.build(reading)   # as in every later round: it keeps what cannot change
    built = time.process_time()
    snapshot_peak = peak_bytes()
    pace = Pace(limit)
    started = time.process_time()
    with giving_way(pace):
        plan = make_plan(snapshot, PlanOptions(aim=aim))
    seconds = pace.note() - started
    return {
        "osds": form.osds, "pools": len(snapshot.pools), "pgs": len(snapshot.pgs),
        "shards": sum(len(pg.up) for pg in snapshot.pgs.values()),
        "first_snapshot_seconds": first - start, "next_snapshot_seconds": built - first,
        "first_moves": FIRST_MOVES, "first_moves_seconds": pace.first_seconds,
        "plan_seconds": seconds, "limit_seconds": limit, "ended_by_limit": pace.ended,
        "longest_busy_seconds": pace.longest_seconds,
        "moves": len(plan.moves), "bytes": plan.bytes, "stop_reason": plan.stop_reason,
        "before": {name: usage.max for name, usage in plan.before.classes.items()},
        "after": {name: usage.max for name, usage in plan.after.classes.items()},
        "bounds": dict(getattr(plan, "bounds", {})),
        "start_peak_bytes": start_peak, "reading_peak_bytes": reading_peak,
        "snapshot_peak_bytes": snapshot_peak, "peak_bytes": peak_bytes()}
