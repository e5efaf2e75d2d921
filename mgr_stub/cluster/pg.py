"""One placement group of the simulated cluster."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Dict, FrozenSet, List, Optional, Set, Tuple

from ..crush.hashes import NONE
from ..frozen import ReadOnlyDict
from ..osdmap.upmap import Mapping
from .usage import NOTHING, ShardBytes, share

#: States of a PG in the state file that the simulation can move; a PG in another state stays on its
#: OSDs, and its report stays that of the file.
_MOVABLE_STATES = {"active", "clean", "remapped", "backfilling", "backfill_wait",
                   "backfill_toofull", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}

#: States of a PG that lacks an OSD; it can be moved once CRUSH has been computed for it.
_HEALABLE_STATES = _MOVABLE_STATES | {"undersized", "degraded", "peered", "recovering",
                                      "recovery_wait"}

#: Counters of client operations in stat_sum.
OPERATIONS = ("num_read", "num_read_kb", "num_write", "num_write_kb")

#: A shard by position (0 in replicated pools) and OSD.
Place = Tuple[int, int]


def pg_order(pgid: str) -> Tuple[int, int]:
    """Returns (pool, position) of a PG id, e.g. (2, 31) of `2.1f`; ValueError if it is none."""
    pool, _, position = pgid.partition(".")
    return int(pool), int(position, 16)


def version_number(stats: Dict[str, Any]) -> int:
    """Returns the number of modifying operations that the version in a pg_stats[] record has."""
    return int(str(stats.get("version", "0'0")).partition("'")[2] or 0)


class Transfer:
    """A shard that is being copied from the OSD `source` to the OSD `target`.

    With `by_log` the target has the shard except for the writes that it missed while it was down.
    With `by_whole_log` the target is new and gets the whole shard by the PG's log; if it is also
    `is_async`, it does not serve before it is complete (asynchronous recovery).
    """

    __slots__ = ("source", "target", "shard", "total", "copied", "accounted", "rate", "by_log",
                 "by_whole_log", "is_async", "is_new", "ahead")

    def __init__(self, source: int, target: int, shard: ShardBytes, copied: float = 0.0) -> None:
        self.source = source
        self.target = target
        self.shard = shard
        self.total = shard.total
        #: Bytes copied so far.
        self.copied = copied
        #: The part of them that the target's statistics already show.
        self.accounted = NOTHING
        if copied:
            self.accounted = shard.part(copied)
        #: Bytes per second at present.
        self.rate = 0.0
        self.by_log = False
        self.by_whole_log = False
        self.is_async = False
        #: True if the target had nothing of the PG before the last change of the up set.
        self.is_new = False
        #: The transfer of its PG that has got more and waits for this one.
        self.ahead: Optional[Transfer] = None

    @property
    def serves(self) -> bool:
        """Returns True if the target serves the PG although it is not complete."""
        return self.by_log and not self.is_async

    @property
    def remaining(self) -> float:
        """Returns the bytes still to be copied."""
        return max(0.0, self.total - self.copied)

    @property
    def to_go(self) -> float:
        """Returns the bytes to be copied until others of its PG get objects as well, or it is
        complete.
        """
        if self.ahead is None:
            return self.total - self.copied
        return self.ahead.copied - self.copied

    @property
    def missing(self) -> float:
        """Returns the share of the shard that has not arrived, 0 to 1."""
        if self.total:
            return self.remaining / self.total
        return 0.0

    def resize(self, shard: ShardBytes) -> None:
        """Gives the shard another size; clients write to the copied part as well."""
        if self.total:
            self.copied *= shard.total / self.total
        self.shard = shard
        self.total = shard.total


class PgHistory:
    """History of a PG: its log, and the OSDs that served writes since it was clean."""

    __slots__ = ("writes", "log_entries", "short_logs", "past_intervals", "hides_remapped",
                 "peered_sets", "written", "left_at")

    def __init__(self, log_entries: int) -> None:
        #: Writes in the PG's life while its log has them all, else None; see log_recovery.py.
        self.writes: Optional[int] = None
        #: Entries of its log.
        self.log_entries = log_entries
        #: Writes and bytes of clients since the simulation began; and the same at the time when a
        #: complete shard became a stray.
        self.written = 0, 0
        self.left_at: Dict[Place, Tuple[int, int]] = {}
        #: OSDs whose log begins later: a backfill has copied only the newest entries.
        self.short_logs: FrozenSet[int] = frozenset()
        #: Acting sets that served writes since the PG was clean; the first is that of then.
        self.past_intervals: Tuple[Mapping, ...] = ()
        #: True if it does not report `remapped`: its primary was new when it began to lead.
        self.hides_remapped = False
        #: Its up and acting sets when it last began to peer.
        self.peered_sets: Tuple[Mapping, Mapping] = ((), ())


class Pg(PgHistory):
    """A PG: its raw mapping, the places of its data, and the transfers of its shards.

    `raw` is None for a PG whose raw mapping is unknown; such a PG keeps its up set. `held` lists
    the OSDs with complete data, by position, down ones included. While all of them are up it is
    the acting set of the peered PG.
    """

    __slots__ = ("pgid", "pool_id", "erasure", "raw", "crush", "has_full_upmap", "held", "strays",
                 "shard", "stats", "file_state", "transfers", "queued_at", "backfilling",
                 "toofull", "retry_at", "recovered_bytes", "reported_epoch", "num_bytes",
                 "num_objects", "omap_bytes", "num_copies", "order", "creating", "scrub_until",
                 "inconsistent", "progress_record", "stats_record", "waiting_report",
                 "report_now", "omap_reported", "partial_strays", "withheld_by",
                 "origin", "operations", "unsaved_reads", "primary",
                 "has_invalid_counters", "left_reads")

    def __init__(self, pgid: str, pool_id: int, erasure: bool, stats: Dict[str, Any]) -> None:
        super().__init__(int(stats.get("ondisk_log_size", stats.get("log_size", 0))))
        self.pgid = pgid
        self.pool_id = pool_id
        #: Sorts PGs by pool and position.
        self.order = pg_order(pgid)
        self.erasure = erasure
        #: The PG's pg_stats[] record in the state file.
        self.stats = stats
        self.file_state = str(stats.get("state", "unknown"))
        #: True for a new PG that has not peered yet.
        self.creating = False
        self._init_mapping()
        self._init_data()
        self._init_reports()
        self._init_operations()

    def _init_mapping(self) -> None:
        self.raw: Optional[Mapping] = None
        #: Result of CRUSH with the present map, once it has been computed.
        self.crush: Optional[Mapping] = None
        #: `raw` and `crush` before the first change of the map that could affect the PG.
        self.origin: Optional[Tuple[Mapping, Mapping]] = None
        #: True if the osdmap sets its whole placement (pg_upmap).
        self.has_full_upmap = False
        self.held: Mapping = tuple(self.stats.get("acting", ()))
        #: Shards on OSDs that are not in `held`: they are down and missed writes, or not needed.
        self.strays: Dict[Place, ShardBytes] = {}
        #: Strays that are what a target had got when it went down: copying goes on from there.
        self.partial_strays: Dict[Place, ShardBytes] = {}

    def _init_data(self) -> None:
        self.num_bytes = self.stat("num_bytes")
        self.num_objects = self.stat("num_objects")
        self.omap_bytes = self.stat("num_omap_bytes")
        #: num_object_copies: objects times the pool's size; filled in if the file has none.
        self.num_copies = self.stat("num_object_copies")
        #: Bytes of one of its shards.
        self.shard = NOTHING
        self.transfers: Dict[Place, Transfer] = {}
        #: Moment since which it waits for its reservations.
        self.queued_at = 0.0
        self.backfilling = False
        self.toofull = False
        #: Targets that have withheld the PG because they have too many PGs. It stays activating
        #: until it peers again, even if they can take it by then (OSD.cc, maybe_wait_for_max_pg,
        #: consume_map). If its primary withholds it, it does not peer before the primary can take
        #: it.
        self.withheld_by: FrozenSet[int] = frozenset()
        #: Moment at which a target that was too full is asked again.
        self.retry_at = 0.0
        self.recovered_bytes = int(self.stat("num_bytes_recovered"))

    def _init_reports(self) -> None:
        self.reported_epoch = int(self.stats.get("reported_epoch", 0))
        #: Omap bytes found by its last deep scrub.
        self.omap_reported = 0
        self.scrub_until = 0.0
        #: True if a deep scrub has found copies that differ.
        self.inconsistent = False
        #: Its last records of get('pg_progress') and get('pg_stats'); valid while the PG is clean,
        #: None after any change of the PG.
        self.progress_record: Optional[ReadOnlyDict] = None
        self.stats_record: Optional[Dict[str, Any]] = None
        #: The same of a PG that waits to copy: its `toofull`, and its state with its counts.
        self.waiting_report: Optional[Tuple[bool, Any]] = None
        #: The same of a PG that copies or peers, and the moment of it.
        self.report_now: Optional[Tuple[Tuple[float, int, int], Any]] = None

    def _init_operations(self) -> None:
        #: OPERATIONS and the number of its version, without what its pool's load has done.
        self.operations: Tuple[int, ...] = (
            *map(self.stat, OPERATIONS), version_number(self.stats))
        #: Its reads since its last write; less what the load had done when that began.
        self.unsaved_reads = 0
        #: True after a split or a merge, until a scrub.
        self.has_invalid_counters = False
        #: OSD that led it and is still a member → number of the version then, and the reads since
        #: the last write that it knows of.
        self.left_reads: Dict[int, Tuple[int, int]] = {}
        #: The OSD that led it when it had peered.
        self.primary = int(self.stats.get("acting_primary", NONE))

    def forget_reports(self) -> None:
        """Drops the cached records; to be called before the PG changes."""
        self.progress_record = self.stats_record = self.waiting_report = self.report_now = None

    def stat(self, name: str) -> int:
        """Returns a figure of the PG's stat_sum in the file; 0 when it has none."""
        return int(self.stats.get("stat_sum", {}).get(name, 0))

    @property
    def movable(self) -> bool:
        """Returns True if the simulation can move its data: its raw mapping is known."""
        return self.raw is not None

    def state_is_movable(self, size: int) -> bool:
        """Returns True if the file shows a healthy PG with all of its members in up and acting."""
        names = set(self.file_state.split("+"))
        if "active" not in names or not names <= _MOVABLE_STATES:
            return False
        for osds in (self.stats["up"], self.stats["acting"]):
            if len(osds) != size or NONE in osds or min(osds) < 0:
                return False
        return True

    def state_is_healable(self) -> bool:
        """Returns True if the file shows nothing worse than a missing OSD."""
        return not self.has_full_upmap and set(self.file_state.split("+")) <= _HEALABLE_STATES

    def place_of(self, position: int, osd: int) -> Place:
        """Returns the place of a shard, whose position counts in erasure-coded pools alone."""
        if self.erasure:
            return position, osd
        return 0, osd

    def holders(self) -> List[int]:
        """Returns the OSDs with complete data."""
        return [osd for osd in self.held if osd != NONE]

    def complete_strays(self) -> List[Place]:
        """Strays without missed writes, kept until the PG is clean or while their OSDs are down."""
        return sorted(place for place in self.strays if self.left_at.get(place) == self.written)

    def set_aside(self, place: Place) -> None:
        """Makes a complete shard a stray."""
        self.strays[place] = self.shard
        self.left_at[place] = self.written

    def held_places(self) -> List[Place]:
        """Returns (position, OSD) of the OSDs with complete data."""
        return [(position, osd) for position, osd in enumerate(self.held) if osd != NONE]

    def targets(self) -> Set[int]:
        """Returns the OSDs that a shard is being copied to."""
        return {transfer.target for transfer in self.transfers.values()}

    def wanted_transfers(self, up: Mapping) -> List[Tuple[Place, int]]:
        """Returns ((position, target), source) of every shard that `up` needs and `held` has not.

        The source is NONE if no OSD has the shard.
        """
        if self.erasure:
            pairs = zip_longest(up, self.held[:len(up)], fillvalue=NONE)
            return [((position, new), old) for position, (new, old) in enumerate(pairs)
                    if new not in (NONE, old)]
        # a replica is read from the acting primary, whichever OSD it replaces
        first = next(iter(self.holders()), NONE)
        return [((0, osd), first) for osd in up if osd not in self.held]

    def misplaced_objects(self) -> int:
        """Returns the number of object copies that have not arrived, whether the PG reports them
        yet or not.
        """
        return sum(int(round(self.num_objects * transfer.missing))
                   for transfer in self.transfers.values())

    def recovered(self) -> int:
        """Returns num_bytes_recovered: an object counts once, when all its moving shards have
        arrived.
        """
        if not self.transfers:
            return self.recovered_bytes
        least = min(share(transfer.accounted.total, transfer.total)
                    for transfer in self.transfers.values())
        return self.recovered_bytes + int(self.num_bytes * least)

    def remaining_bytes(self) -> int:
        """Returns the bytes still to be copied of all its shards."""
        return int(sum(transfer.remaining for transfer in self.transfers.values()))
