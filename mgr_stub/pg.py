"""One placement group of the simulated cluster."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from .upmap import NONE, Mapping
from .usage import NOTHING, ShardBytes

#: States that a PG may be in and still be moved by the simulation; others are reported as in the
#: state file and stay as they are.
_MOVABLE_STATES = {"active", "clean", "remapped", "backfilling", "backfill_wait",
                   "backfill_toofull", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}


def pg_order(pgid: str) -> Tuple[int, int]:
    """(pool, position) of a PG id, e.g. (2, 31) of `2.1f`; ValueError if it is none."""
    pool, _, position = pgid.partition(".")
    return int(pool), int(position, 16)


class Flow:
    """A shard on its way: copied bytes from `source` to `target`."""

    __slots__ = ("source", "target", "shard", "copied", "landed", "rate")

    def __init__(self, source: int, target: int, shard: ShardBytes, copied: float = 0.0) -> None:
        self.source = source
        self.target = target
        self.shard = shard
        self.copied = copied
        #: What the target's statistics already show of it.
        self.landed = shard.part(copied) if copied else NOTHING
        self.rate = 0.0

    @property
    def remaining(self) -> float:
        return max(0.0, self.shard.total - self.copied)


class Pg:
    """A PG: its raw mapping, where its data is, and what is being copied.

    `raw` is None for a PG whose raw mapping cannot be told; such a PG keeps its up set for good.
    `held` lists the OSDs with complete data, by position; it is the acting set once peered.
    """

    __slots__ = ("pgid", "pool_id", "erasure", "raw", "held", "shard", "stats", "file_state",
                 "flows", "queued", "backfilling", "toofull", "recovered_bytes", "reported_epoch",
                 "num_bytes", "num_objects", "num_copies", "order")

    def __init__(self, pgid: str, pool_id: int, erasure: bool, stats: Dict[str, Any]) -> None:
        self.pgid = pgid
        self.pool_id = pool_id
        #: Sorts PGs by pool and position.
        self.order = pg_order(pgid)
        self.erasure = erasure
        self.stats = stats
        self.file_state = str(stats.get("state", "unknown"))
        self.raw: Optional[Mapping] = None
        self.held: Mapping = tuple(stats.get("acting", ()))
        self.shard = NOTHING
        #: (position for erasure-coded, 0 for replicated; target) -> the copy under way
        self.flows: Dict[Tuple[int, int], Flow] = {}
        self.queued = 0.0
        self.backfilling = False
        self.toofull = False
        self.recovered_bytes = int(self.stat("num_bytes_recovered"))
        self.reported_epoch = int(stats.get("reported_epoch", 0))
        self.num_bytes = self.stat("num_bytes")
        self.num_objects = self.stat("num_objects")
        #: num_object_copies: objects times the pool's size; filled in where the file has none.
        self.num_copies = self.stat("num_object_copies")

    def stat(self, name: str) -> int:
        """A figure of the PG's stat_sum; 0 when the file has none."""
        return int(self.stats.get("stat_sum", {}).get(name, 0))

    @property
    def movable(self) -> bool:
        """Whether the simulation may move its data: raw known and nothing wrong with it."""
        return self.raw is not None

    def state_is_movable(self, size: int) -> bool:
        """Whether the file shows a healthy PG with all of its members in up and acting."""
        words = set(self.file_state.split("+"))
        if "active" not in words or not words <= _MOVABLE_STATES:
            return False
        return all(len(osds) == size and NONE not in osds and min(osds) >= 0
                   for osds in (self.stats["up"], self.stats["acting"]))

    def wanted_flows(self, up: Mapping) -> List[Tuple[Tuple[int, int], int]]:
        """((position, target), source) of every shard that `up` needs and `held` has not."""
        if self.erasure:
            return [((position, new), old)
                    for position, (old, new) in enumerate(zip(self.held, up)) if old != new]
        # a replica is read from the acting primary, whoever it replaces
        return [((0, osd), self.held[0]) for osd in up if osd not in self.held]

    def misplaced_objects(self) -> int:
        """num_objects_misplaced: object copies that are not yet where `up` wants them."""
        count = 0
        for flow in self.flows.values():
            total = flow.shard.total
            share = flow.remaining / total if total else 0.0
            count += int(round(self.num_objects * share))
        return count

    def recovered(self) -> int:
        """num_bytes_recovered: an object counts once, when all its moving shards have arrived."""
        if not self.flows:
            return self.recovered_bytes
        shares = [flow.landed.total / flow.shard.total if flow.shard.total else 0.0
                  for flow in self.flows.values()]
        return self.recovered_bytes + int(self.num_bytes * sum(shares) / len(shares))

    def remaining_bytes(self) -> int:
        return int(sum(flow.remaining for flow in self.flows.values()))
