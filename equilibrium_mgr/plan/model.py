"""A plan: ordered moves, the upmap items they need, the predicted result.

What plans are for, and which changes move no data.

What a plan rests on of the map: where that has changed, other placements are legal.
"""
from __future__ import annotations

import math
import re
import zlib
from functools import lru_cache
from typing import (
    Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple, Union, get_args, get_origin,
    get_type_hints)

from ..crush.placement import NO_OSD
from ..snapshot import pg_states
from ..snapshot.model import Pg, Snapshot, UpmapItems, is_same_placement, pool_of


BALANCE, UNDO, CANCEL, FREEZE, REPAIR, DRAIN = (
    "balance", "undo", "cancel", "freeze", "repair", "drain")
KINDS = (BALANCE, UNDO, CANCEL, FREEZE, REPAIR, DRAIN)

#: Plans of these kinds leave all data where it is: flags, degraded PGs and limits of movement do
#: not stop them. What of them would move data after all is dropped.
MOTIONLESS = frozenset((CANCEL, FREEZE))

#: Plans of these kinds take changes back, which automatic balancing would make again.
TAKE_BACK = frozenset((UNDO, CANCEL))

#: Plans of these kinds are for the upmap items themselves: another way to the same up set is not
#: what they want.
OF_ITEMS = TAKE_BACK

#: Kind → the command that begins plans of it, for the history.
COMMANDS = {UNDO: "undo", CANCEL: "cancel", FREEZE: "freeze", DRAIN: "drain"}


def command_of(kind: str) -> str:
    """The command that has begun a plan of this kind."""
    return f"'ceph equilibrium {COMMANDS.get(kind, 'execute')}'"


def takes_back(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """True where the PG's data is on these OSDs for certain, and on its way to others: motion
    ends."""
    return pg.is_moving and is_same_placement(_certain_holders(pg, positional), up_after,
                                              positional)


def moves_nothing(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """True where a change to this up set copies no shard that is not on its way anyway: each is
    where its data is, or where it goes already; one may go elsewhere where that lets others stay.
    Positions count in erasure-coded pools."""
    if is_same_placement(pg.up, up_after, positional) or takes_back(pg, up_after, positional):
        return True
    if not pg.is_moving or len(up_after) != len(pg.up):
        return False
    holders = _certain_holders(pg, positional)
    if positional:
        return len(holders) == len(pg.up) and _ends_motion(holders, pg.up, up_after)
    return len(set(up_after)) == len(up_after) and set(up_after).issubset((*holders, *pg.up))


def _certain_holders(pg: Pg, positional: bool) -> Tuple[int, ...]:
    """The holders that have the PG's data for certain: those that serve it, and all of them while
    the PG waits where it was last clean. By position in erasure-coded pools, else without the
    others."""
    if _waits_where_it_was(pg, positional):
        return pg.holders
    if not positional:
        return tuple([osd for osd in pg.holders if osd in pg.acting])
    return tuple([held if held == serves else NO_OSD
                  for held, serves in zip(pg.holders, pg.acting)])


def _waits_where_it_was(pg: Pg, positional: bool) -> bool:
    """True where a PG that was sent on its way once has not peered yet, or comes by log recovery
    and has not arrived. Holders that do not serve it keep their copies until then."""
    if pg.doubtful_holders:
        return False
    if is_same_placement(pg.acting, pg.up, positional):
        return not pg_states.has_any(pg.state, pg_states.SERVED)
    # a new OSD is missing until log recovery has filled it
    return (len(pg.acting) < len(pg.up) or NO_OSD in pg.acting) and pg_states.BACKFILL not in pg.state


def _ends_motion(holders: Tuple[int, ...], up: Tuple[int, ...],
                 up_after: Tuple[int, ...]) -> bool:
    """True where no shard of an erasure-coded PG gets another destination; or one does, and fewer
    shards move than now."""
    shards = list(zip(up_after, holders, up))
    elsewhere = sum(after not in (held, up) for after, held, up in shards)
    # a shard without a certain holder may have arrived, and counts in neither
    moving = [(after, up) for after, held, up in shards if held not in (up, NO_OSD)]
    return elsewhere == 0 or (
        elsewhere == 1 and 1 + sum(after == up for after, up in moving) < len(moving))


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
    objects: int                 # of the PG
    #: (OSD, bytes) of the shards that it gains or loses, where these are not all `shard_bytes`
    uneven: Tuple[Tuple[int, int], ...] = ()

    @property
    def gained_by(self) -> FrozenSet[int]:
        """OSDs that are to have a shard of the PG, and have none."""
        return frozenset(self.up_after).difference(self.up_before)

    @property
    def lost_by(self) -> FrozenSet[int]:
        """OSDs that have a shard of the PG, and are to have none."""
        return frozenset(self.up_before).difference(self.up_after)

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
    """Utilization of the OSDs of one set; ratios of OSD size."""

    osds: int
    size_bytes: int
    used_bytes: int
    max: float
    min: float
    mean: float
    stddev: float
    fullest_osd: int


class PoolSpace(NamedTuple):
    """The free space of a pool, in client bytes, and the OSD that is full first."""

    pool_id: int
    stored_bytes: int
    free_bytes: int
    limiting_osd: Optional[int]


class Room(NamedTuple):
    """What fits if all pools grow in proportion to their data, in client bytes, and the OSD that is
    full first then. The pools' free spaces cannot be had at once; this can."""

    bytes: int
    limiting_osd: Optional[int]   # None where no pool holds data


class Usage(NamedTuple):
    """The figures of a placement, by OSD set and by pool name."""

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
    aim: str                     # one of AIMS
    bounds: Dict[str, float]     # OSD set → lowest highest utilization that the rules allow
    topology: str = ""           # `topology_of` its snapshot
    pool_pgs: Dict[str, int] = {}   # pool id → PGs, of the pools whose PGs it moves
    stuck: Tuple[StuckShards, ...] = ()   # of drained OSDs, once the plan is done
    kind: str = BALANCE          # one of KINDS
    limited_to: str = ""         # as PlanOptions.limited_to

    @property
    def bytes(self) -> int:
        """Bytes of all moves."""
        return sum(move.bytes for move in self.moves)

    @property
    def room_gained_bytes(self) -> Optional[int]:
        """How much more fits if all pools grow alike; None where no gain is weighed."""
        before, after = self.before.room, self.after.room
        return None if before is None or after is None else after.bytes - before.bytes

    @property
    def purpose(self) -> str:
        """What it is for, as people read it: the aim where it balances."""
        return f"aim {self.aim}" if self.kind == BALANCE else self.kind

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form, as it is stored (PLAN_VERSION)."""
        return {
            "version": PLAN_VERSION,
            "osdmap_epoch": self.epoch,
            "stop_reason": self.stop_reason,
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
        plan: Plan = typed({"limited_to": "", **dump, "epoch": dump["osdmap_epoch"]}, Plan)
    except BadPlan:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise BadPlan(f"the stored plan is damaged ({error})") from error
    for pgid in [move.pgid for move in plan.moves] + [change.pgid for change in plan.changes]:
        if not _PGID.fullmatch(pgid):
            raise BadPlan(f"the stored plan is damaged ('{pgid[:40]}' is no PG)")
    if set(plan.after.pools) - set(plan.before.pools) or (
            set(plan.after.classes) - set(plan.before.classes)):
        raise BadPlan("the stored plan is damaged (before and after do not belong together)")
    return plan


_PGID = re.compile(r"[0-9]+\.[0-9a-f]{1,8}")

#: No size, id or time is as large.
_MOST = 1 << 63

#: A plan has as many records as shards, of a handful of types.
_hints = lru_cache(maxsize=None)(get_type_hints)


def typed(value: Any, hint: Any) -> Any:
    """A value that was read from JSON as one of a type, in depth: NamedTuples (a dict by name, or
    a list in the order of the fields), tuples, dicts and plain types. Raises ValueError, KeyError
    or TypeError where it is none. An int is a float as well, a bool is neither."""
    if hint is float or hint is int:
        if (isinstance(value, (int, float) if hint is float else int)
                and not isinstance(value, bool) and math.isfinite(value) and abs(value) < _MOST):
            return value
        raise ValueError("a value has the wrong type")
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Union:   # with None alone
        return None if value is None else typed(value, inner[0])
    if hasattr(hint, "_fields"):
        hints = _hints(hint)
        if isinstance(value, dict):
            return hint(**{name: typed(value[name], hints[name]) for name in hint._fields})
        return hint(*[typed(one, hints[name]) for name, one in zip(hint._fields, value)])
    if isinstance(value, dict) and origin is dict:
        return {typed(key, inner[0]): typed(one, inner[1]) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and origin is tuple:
        if inner[-1] is Ellipsis:
            return tuple([typed(one, inner[0]) for one in value])
        if len(inner) == len(value):
            return tuple(map(typed, value, inner))
    elif origin is None and isinstance(value, hint):
        return value
    raise ValueError("a value has the wrong type")


def usage_to_dict(usage: Usage) -> Dict[str, Any]:
    """A JSON-ready form of a usage."""
    return {"classes": {name: c._asdict() for name, c in usage.classes.items()},
            "pools": {name: p._asdict() for name, p in usage.pools.items()},
            "room": usage.room._asdict() if usage.room is not None else None}


def topology_of(crush_version: int, osds: Mapping[int, Any]) -> str:
    """A text that is equal as long as the CRUSH map and the weights of all OSDs are. `osds`: those
    of a snapshot or a summary, by id."""
    weights = sorted((osd, one.is_in, round(one.reweight, 3)) for osd, one in osds.items())
    return f"{crush_version}:{zlib.crc32(repr(weights).encode()):08x}"


def resting_on(snapshot: Snapshot, plan: Plan) -> Plan:
    """The plan with what it rests on of the map; without pools whose pg_num changes: a plan for
    these is for PGs that stay as they are."""
    pools = {pool_of(change.pgid) for change in plan.changes} & snapshot.pools.keys()
    return plan._replace(
        topology=topology_of(snapshot.crush_version, snapshot.osds),
        pool_pgs={str(pool): snapshot.pools[pool].pg_num for pool in sorted(pools)
                  if not snapshot.pools[pool].touched})
