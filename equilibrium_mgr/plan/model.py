"""A plan: ordered moves, the upmap items they need, the predicted result."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..snapshot.model import UpmapItems
from .kinds import BALANCE, KINDS

#: Written into every stored plan; a reader refuses what it does not know.
PLAN_VERSION = 2


class BadPlan(ValueError):
    """A stored plan cannot be read; the message is one sentence for operators."""


class Move(NamedTuple):
    """One shard's move. Utilizations are ratios of the target state, in plan order."""

    pgid: str
    source: int
    target: int
    bytes: int                   # of the shard
    objects: int
    source_before: float
    source_after: float
    target_before: float
    target_after: float


class PgChange(NamedTuple):
    """Everything the plan does to one PG, sent to the monitor in one command."""

    pgid: str
    raw: Tuple[int, ...]         # what CRUSH alone gives; another raw mapping voids the change
    up_before: Tuple[int, ...]
    up_after: Tuple[int, ...]
    items: UpmapItems            # empty: the PG's upmap items are removed
    shards: int                  # how many of its shards move
    shard_bytes: int             # of one shard
    objects: int                 # of the PG; kept for readers of stored plans
    #: (OSD, bytes) of the shards that it gains or loses, where these are not all `shard_bytes`
    uneven: Tuple[Tuple[int, int], ...] = ()

    def bytes_on(self, osd: int) -> int:
        """Bytes of the shard that an OSD gains or loses."""
        return dict(self.uneven).get(osd, self.shard_bytes) if self.uneven else self.shard_bytes

    def command(self) -> str:
        """The command that an operator could type instead."""
        if not self.items:
            return f"ceph osd rm-pg-upmap-items {self.pgid}"
        pairs = " ".join(f"{source} {target}" for source, target in self.items)
        return f"ceph osd pg-upmap-items {self.pgid} {pairs}"


class ClassUsage(NamedTuple):
    """Utilization of the OSDs of one device class; ratios of OSD size."""

    osds: int
    size_bytes: int
    used_bytes: int
    max: float
    min: float
    mean: float
    stddev: float
    fullest_osd: int
    histogram: Tuple[int, ...]   # OSDs per tenth of utilization; the last also holds fuller ones


class PoolSpace(NamedTuple):
    """The free space of a pool, in client bytes, and the OSD that is full first."""

    pool_id: int
    stored_bytes: int
    free_bytes: int
    limiting_osd: Optional[int]
    max_avail_bytes: Optional[int]   # Ceph's own estimate, where known


class Room(NamedTuple):
    """What fits if all pools grow in proportion to their data, in client bytes, and the OSD that is
    full first then. The pools' free spaces cannot be had at once; this can."""

    bytes: int
    limiting_osd: Optional[int]   # None where no pool holds data


class Usage(NamedTuple):
    """The figures of a placement, by device class and by pool name."""

    classes: Dict[str, ClassUsage]
    pools: Dict[str, PoolSpace]
    room: Optional[Room] = None   # None where the plan weighs no gain, as one that takes back


class StuckShards(NamedTuple):
    """Shards of an OSD that is being drained and cannot leave it, for one reason."""

    osd: int
    code: str     # of snapshot/reason_codes.py
    shards: int
    bytes: int
    example: str  # pgid of one of them


class Plan(NamedTuple):
    """A finished plan."""

    epoch: int
    stop_reason: str
    moves: Tuple[Move, ...]
    changes: Tuple[PgChange, ...]
    before: Usage
    after: Usage
    skipped: Dict[str, int]      # reason → how often something could not be moved for it
    min_compat_client: str       # as it was required; kept for readers of stored plans
    aim: str                     # one of AIMS
    bounds: Dict[str, float]     # device class → lowest highest utilization that the rules allow
    topology: str = ""           # plan/topology.py; set when it is kept
    pool_pgs: Dict[str, int] = {}   # pool id → PGs, of the pools whose PGs it moves
    stuck: Tuple[StuckShards, ...] = ()   # of drained OSDs, once the plan is done
    kind: str = BALANCE          # one of KINDS
    limited_to: str = ""         # as PlanOptions.limited_to

    @property
    def bytes(self) -> int:
        """Bytes of all moves."""
        return sum(move.bytes for move in self.moves)

    @property
    def gained_bytes(self) -> int:
        """Growth of the pools' predicted free space, summed up, in client bytes."""
        return sum(space.free_bytes - self.before.pools[name].free_bytes
                   for name, space in self.after.pools.items())

    @property
    def room_gained_bytes(self) -> Optional[int]:
        """How much more fits if all pools grow alike; None where no gain is weighed."""
        before, after = self.before.room, self.after.room
        return None if before is None or after is None else after.bytes - before.bytes

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form, as it is stored (PLAN_VERSION)."""
        return {
            "version": PLAN_VERSION,
            "osdmap_epoch": self.epoch,
            "stop_reason": self.stop_reason,
            "min_compat_client": self.min_compat_client,
            "moves": [list(move) for move in self.moves],
            "changes": [list(change if change.uneven else change[:-1])
                        for change in self.changes],
            "before": usage_to_dict(self.before),
            "after": usage_to_dict(self.after),
            "skipped": dict(self.skipped),
            "aim": self.aim,
            "bounds": dict(self.bounds),
            "topology": self.topology,
            "pool_pgs": dict(self.pool_pgs),
            "stuck": [list(stuck) for stuck in self.stuck],
            "kind": self.kind,
            **({"limited_to": self.limited_to} if self.limited_to else {}),
        }


def plan_from_dict(dump: Mapping[str, Any]) -> Plan:
    """The reverse of Plan.to_dict. Raises BadPlan for anything it does not understand."""
    try:
        if dump["version"] != PLAN_VERSION or dump["kind"] not in KINDS:
            raise BadPlan("the plan was stored by another version of equilibrium")
        return Plan(
            epoch=dump["osdmap_epoch"], stop_reason=dump["stop_reason"],
            moves=tuple(Move(*move) for move in dump["moves"]),
            changes=tuple(_change(change) for change in dump["changes"]),
            before=_usage(dump["before"]), after=_usage(dump["after"]),
            skipped=dict(dump["skipped"]), min_compat_client=dump["min_compat_client"],
            aim=dump["aim"], bounds=dict(dump["bounds"]), topology=dump["topology"],
            pool_pgs=dict(dump["pool_pgs"]),
            stuck=tuple(StuckShards(*row) for row in dump["stuck"]),
            kind=dump["kind"], limited_to=dump.get("limited_to", ""))
    except BadPlan:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BadPlan(f"the stored plan is damaged ({error})") from error


def usage_to_dict(usage: Usage) -> Dict[str, Any]:
    """A JSON-ready form of a usage."""
    return {"classes": {name: c._asdict() for name, c in usage.classes.items()},
            "pools": {name: p._asdict() for name, p in usage.pools.items()},
            "room": usage.room._asdict() if usage.room is not None else None}


def _usage(dump: Mapping[str, Any]) -> Usage:
    classes = {name: ClassUsage(**{**c, "histogram": tuple(c["histogram"])})
               for name, c in dump["classes"].items()}
    room = dump["room"]
    return Usage(classes, {name: PoolSpace(**p) for name, p in dump["pools"].items()},
                 Room(**room) if room is not None else None)


def _change(row: List[Any]) -> PgChange:
    change = PgChange(*row)
    return change._replace(raw=tuple(change.raw), up_before=tuple(change.up_before),
                           up_after=tuple(change.up_after),
                           items=tuple((f, t) for f, t in change.items),
                           uneven=tuple((osd, count) for osd, count in change.uneven))
