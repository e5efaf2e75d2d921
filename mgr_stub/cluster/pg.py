"""One placement group of the simulated cluster."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional, Set, Tuple

from ..osdmap.upmap import NONE, Mapping
from .usage import NOTHING, ShardBytes

#: States that a PG may be in and still be moved by the simulation; others are reported as in the
#: state file and stay as they are.
_MOVABLE_STATES = {"active", "clean", "remapped", "backfilling", "backfill_wait",
                   "backfill_toofull", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}

#: States of a PG that an OSD is missing from, which heals once CRUSH has been computed for it.
_HEALABLE_STATES = _MOVABLE_STATES | {"undersized", "degraded", "peered", "recovering",
                                      "recovery_wait"}

#: A shard by its place: position (0 for replicated pools) and OSD.
Place = Tuple[int, int]


def pg_order(pgid: str) -> Tuple[int, int]:
    """(pool, position) of a PG id, e.g. (2, 31) of `2.1f`; ValueError if it is none."""
    pool, _, position = pgid.partition(".")
    return int(pool), int(position, 16)


class Flow:
    """A shard on its way: copied bytes from `source` to `target`.

    With `by_log` the target has the shard but for what was written while it was down. With
    `whole_log` it is new and gets all of it by the PG's log; if it is `apart`, it does not serve
    before it has all.
    """

    __slots__ = ("source", "target", "shard", "copied", "landed", "rate", "by_log", "whole_log",
                 "apart", "fresh")

    def __init__(self, source: int, target: int, shard: ShardBytes, copied: float = 0.0) -> None:
        self.source = source
        self.target = target
        self.shard = shard
        self.copied = copied
        #: What the target's statistics already show of it.
        self.landed = shard.part(copied) if copied else NOTHING
        self.rate = 0.0
        self.by_log = False
        self.whole_log = False
        self.apart = False
        #: Whether the target has had nothing of the PG until its up set changed last.
        self.fresh = False

    @property
    def serves(self) -> bool:
        """Whether its target serves although it has not everything yet."""
        return self.by_log and not self.apart

    @property
    def remaining(self) -> float:
        return max(0.0, self.shard.total - self.copied)

    @property
    def missing(self) -> float:
        """Share of the shard that has not arrived, 0 to 1."""
        return self.remaining / self.shard.total if self.shard.total else 0.0

    def resize(self, shard: ShardBytes) -> None:
        """The shard has another size now: clients write to what has been copied, too."""
        if self.shard.total:
            self.copied *= shard.total / self.shard.total
        self.shard = shard


class Pg:
    """A PG: its raw mapping, where its data is, and what is being copied.

    `raw` is None for a PG whose raw mapping cannot be told; such a PG keeps its up set.
    `held` lists the OSDs with complete data, by position, those that are down among them. While all
    of them are up it is the acting set once peered.
    """

    __slots__ = ("pgid", "pool_id", "erasure", "raw", "crush", "pinned", "held", "behind", "shard",
                 "stats", "file_state", "flows", "queued", "backfilling", "toofull", "retry_at",
                 "recovered_bytes", "reported_epoch", "num_bytes", "num_objects", "omap_bytes",
                 "num_copies", "order", "created", "scrub_until", "inconsistent", "progress",
                 "report", "waiting", "writes", "omap_reported", "log_entries", "later_logs",
                 "intervals", "unmarked", "sets", "spare")

    def __init__(self, pgid: str, pool_id: int, erasure: bool, stats: Dict[str, Any]) -> None:
        self.pgid = pgid
        self.pool_id = pool_id
        #: Sorts PGs by pool and position.
        self.order = pg_order(pgid)
        self.erasure = erasure
        self.stats = stats
        self.file_state = str(stats.get("state", "unknown"))
        self.raw: Optional[Mapping] = None
        #: CRUSH's answer with the map as it is, once it has been computed.
        self.crush: Optional[Mapping] = None
        #: Whether the osdmap fixes its placement in full (pg_upmap).
        self.pinned = False
        self.held: Mapping = tuple(stats.get("acting", ()))
        #: What OSDs still have of it that are down and have missed writes or are not wanted.
        self.behind: Dict[Place, ShardBytes] = {}
        #: Those of `behind` that lack nothing: not wanted, but kept until the PG is clean, or for
        #: as long as their OSDs are down.
        self.spare: FrozenSet[Place] = frozenset()
        self.shard = NOTHING
        #: The copies under way.
        self.flows: Dict[Place, Flow] = {}
        self.queued = 0.0
        self.backfilling = False
        self.toofull = False
        #: Moment at which a target that was too full is asked again.
        self.retry_at = 0.0
        self.recovered_bytes = int(self.stat("num_bytes_recovered"))
        self.reported_epoch = int(stats.get("reported_epoch", 0))
        self.num_bytes = self.stat("num_bytes")
        self.num_objects = self.stat("num_objects")
        self.omap_bytes = self.stat("num_omap_bytes")
        #: num_object_copies: objects times the pool's size; filled in where the file has none.
        self.num_copies = self.stat("num_object_copies")
        #: Whether it is new and has not peered yet.
        self.created = False
        #: Writes in its life, as long as its log has them all; see log_recovery.py.
        self.writes: Optional[int] = None
        #: Entries of its log; those whose log begins later, for a backfill has copied the newest
        #: of them alone.
        self.log_entries = int(stats.get("ondisk_log_size", stats.get("log_size", 0)))
        self.later_logs: FrozenSet[int] = frozenset()
        #: Who has served writes since the PG was clean, its members at that time first of all.
        self.intervals: Tuple[Mapping, ...] = ()
        #: Whether it says nothing of being remapped: its leader was new when it came to lead.
        self.unmarked = False
        #: Its up and acting sets as it began to peer last.
        self.sets: Tuple[Mapping, Mapping] = ((), ())
        #: The omap bytes that its last deep scrub has found; None if they are known at once.
        self.omap_reported: Optional[int] = None
        self.scrub_until = 0.0
        #: Whether a deep scrub has found copies that differ.
        self.inconsistent = False
        #: What it has reported last, as get('pg_progress') and get('pg_stats') have it, good as
        #: long as it rests; None from the moment that something happens to it.
        self.progress: Optional[Dict[str, Any]] = None
        self.report: Optional[Dict[str, Any]] = None
        #: The same of one that waits to copy: whether it was `toofull`, its state, its counts.
        self.waiting: Optional[Tuple[bool, Any]] = None

    def forget_reports(self) -> None:
        """Something happens to the PG."""
        self.progress = self.report = self.waiting = None

    def stat(self, name: str) -> int:
        """A figure of the PG's stat_sum in the file; 0 when it has none."""
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

    def state_is_healable(self) -> bool:
        """Whether the file shows nothing worse than a missing OSD."""
        return not self.pinned and set(self.file_state.split("+")) <= _HEALABLE_STATES

    def holders(self) -> List[int]:
        """OSDs with complete data."""
        return [osd for osd in self.held if osd != NONE]

    def targets(self) -> Set[int]:
        """OSDs that something is copied to."""
        return {flow.target for flow in self.flows.values()}

    def wanted_flows(self, up: Mapping) -> List[Tuple[Place, int]]:
        """((position, target), source) of every shard that `up` needs and `held` has not.

        The source is NONE where nobody has the shard.
        """
        if self.erasure:
            return [((position, new), self.held[position] if position < len(self.held) else NONE)
                    for position, new in enumerate(up)
                    if new != NONE and self.held[position:position + 1] != (new,)]
        # a replica is read from the acting primary, whoever it replaces
        first = next(iter(self.holders()), NONE)
        return [((0, osd), first) for osd in up if osd not in self.held]

    def misplaced_objects(self) -> int:
        """Object copies that are on their way, whether the PG reports them yet or not."""
        return sum(int(round(self.num_objects * flow.missing)) for flow in self.flows.values())

    def recovered(self) -> int:
        """num_bytes_recovered: an object counts once, when all its moving shards have arrived."""
        if not self.flows:
            return self.recovered_bytes
        shares = [flow.landed.total / flow.shard.total if flow.shard.total else 0.0
                  for flow in self.flows.values()]
        return self.recovered_bytes + int(self.num_bytes * sum(shares) / len(shares))

    def remaining_bytes(self) -> int:
        return int(sum(flow.remaining for flow in self.flows.values()))
