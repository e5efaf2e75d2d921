"""One large made cluster: 10,000 OSDs, 1,000,000 shards, 100 pools, as a reading of the mgr API."""
from __future__ import annotations

import random
import resource
import sys
import time
from bisect import bisect
from itertools import accumulate
from typing import Any, Dict, List, Optional

from tests.support.units import GIB, TIB

from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.reading import PgRecord, Reading

from ..options import plan_options

OSDS = 10_000
POOLS = 100
SHARDS_PER_OSD = 100
FIRST_MOVES = 100        # as many as a round sends at most
_SIZE = 3                # replicas
_PER_HOST = 20
_PG_GIB = 70             # mean bytes of a PG; the devices are 57 % full on average then
_DEVICE_TIB = (8, 12, 16)


def large_reading(osds: int = OSDS, pools: int = POOLS, seed: int = 1) -> Reading:
    """A cluster of replicated pools on hosts of 20 OSDs, placed by device size."""
    rng = random.Random(seed)
    hosts = -(-osds // _PER_HOST)
    sizes = [rng.choice(_DEVICE_TIB) * TIB for _ in range(osds)]
    up, records = _place(rng, sizes, pools)
    used = [10 * GIB] * osds
    for pgid, members in up.items():
        for osd in members:
            used[osd] += records[pgid].num_bytes
    buckets = [_host(number, sizes) for number in range(hosts)]
    buckets.append({"id": -1, "name": "default", "type_id": 11, "type_name": "root", "items": [
        {"id": bucket["id"], "weight": sum(item["weight"] for item in bucket["items"])}
        for bucket in buckets]})
    crush = {
        "devices": [{"id": osd, "name": f"osd.{osd}", "class": "hdd"} for osd in range(osds)],
        "types": [{"type_id": 0, "name": "osd"}, {"type_id": 1, "name": "host"},
                  {"type_id": 11, "name": "root"}],
        "buckets": buckets, "choose_args": {},
        "rules": [{"rule_id": 0, "rule_name": "replicated", "type": 1, "steps": [
            {"op": "take", "item": -1, "item_name": "default"},
            {"op": "chooseleaf_firstn", "num": 0, "type": "host"}, {"op": "emit"}]}]}
    pg_num = len(up) // pools
    osd_map = {
        "epoch": 5, "crush_version": 1, "require_min_compat_client": "luminous",
        "osds": [{"osd": osd, "up": 1, "in": 1, "weight": 1.0, "state": ["exists", "up"]}
                 for osd in range(osds)],
        "pools": [{"pool": pool, "pool_name": f"pool{pool}", "type": 1, "size": _SIZE,
                   "crush_rule": 0, "pg_num": pg_num} for pool in range(1, pools + 1)],
        "pg_upmap_items": []}
    stats = [{"osd": osd, "statfs": {"total": sizes[osd], "available": sizes[osd] - used[osd]}}
             for osd in range(osds)]
    return Reading(taken_at=0.0, osd_map=osd_map, crush=crush, up=up, records=records,
                   osd_stats=stats, pool_stats=[], pg_status={}, max_avail={})


def _host(number: int, sizes: List[int]) -> Dict[str, Any]:
    osds = range(number * _PER_HOST, min((number + 1) * _PER_HOST, len(sizes)))
    return {"id": -2 - number, "name": f"h{number}", "type_id": 1, "type_name": "host",
            "items": [{"id": osd, "weight": sizes[osd] // TIB * 0x10000} for osd in osds]}


def _place(rng: random.Random, sizes: List[int], pools: int) -> Any:
    """(pgid → up set, pgid → statistics); hosts of a PG differ."""
    summed = list(accumulate(sizes))
    pg_num = max(1, -(-len(sizes) * SHARDS_PER_OSD // (_SIZE * pools)))
    up: Dict[str, List[int]] = {}
    records: Dict[str, PgRecord] = {}
    for pool in range(1, pools + 1):
        for ps in range(pg_num):
            members: List[int] = []
            while len(members) < _SIZE:
                osd = bisect(summed, rng.random() * summed[-1])
                if all(osd // _PER_HOST != other // _PER_HOST for other in members):
                    members.append(osd)
            pgid = f"{pool}.{ps:x}"
            up[pgid] = members
            records[pgid] = PgRecord(int(rng.gauss(_PG_GIB, 2) * GIB), 50_000, 0, "active+clean",
                                     1.0, 5)
    return up, records


class Pace:
    """A planner's checkpoint that notes when moves are there; `limit` in seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._start = self._last = time.perf_counter()
        self.first_seconds: Optional[float] = None
        self.longest_seconds = 0.0   # between two calls: how long a mgr's thread is kept busy
        self.ended = False           # by the limit

    def __call__(self, moves: Optional[int] = None) -> bool:
        now = self.note()
        if (moves or 0) >= FIRST_MOVES and self.first_seconds is None:
            self.first_seconds = now - self._start
        self.ended = now - self._start >= self._limit
        return not self.ended

    def note(self) -> float:
        """The present moment; the time since the last one counts."""
        now = time.perf_counter()
        self.longest_seconds = max(self.longest_seconds, now - self._last)
        self._last = now
        return now


def measure_scale(osds: int, limit: float, aim: str) -> Dict[str, Any]:
    """Seconds of every stage, moves and peak memory in bytes (that of the reading included)."""
    reading = large_reading(osds)
    builder = SnapshotBuilder()
    start = time.perf_counter()
    builder.build(reading)
    first = time.perf_counter()
    snapshot = builder.build(reading)   # as in every later round: it keeps what cannot change
    built = time.perf_counter()
    reading_bytes = peak_bytes()
    pace = Pace(limit)
    started = time.perf_counter()
    plan = make_plan(snapshot, plan_options(aim), pace)
    seconds = pace.note() - started
    return {
        "osds": osds, "pools": len(snapshot.pools), "pgs": len(snapshot.pgs),
        "shards": sum(len(pg.up) for pg in snapshot.pgs.values()),
        "first_snapshot_seconds": first - start, "next_snapshot_seconds": built - first,
        "first_moves": FIRST_MOVES, "first_moves_seconds": pace.first_seconds,
        "plan_seconds": seconds, "limit_seconds": limit, "ended_by_limit": pace.ended,
        "longest_between_checkpoints_seconds": pace.longest_seconds,
        "moves": len(plan.moves), "bytes": plan.bytes, "stop_reason": plan.stop_reason,
        "before": {name: usage.max for name, usage in plan.before.classes.items()},
        "after": {name: usage.max for name, usage in plan.after.classes.items()},
        "bounds": dict(getattr(plan, "bounds", {})),
        "peak_before_plan_bytes": reading_bytes, "peak_bytes": peak_bytes()}


def peak_bytes() -> int:
    """The most memory that this process has ever had resident."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
