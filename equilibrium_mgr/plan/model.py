"""A plan: ordered moves, the upmap items they need, the predicted result.

Also the kinds of plans, the changes that move no data, and the basis of a plan in the osdmap: if
that changes, other placements are legal.
"""
from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import (
    Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple, Union, get_args, get_origin,
    get_type_hints)

from ..crush.placement import NO_OSD
from ..snapshot import pg_states
from ..snapshot.model import (
    Pg, Snapshot, UpmapItems, is_same_placement, pool_of, shard_changes)
from .options import AIMS


KINDS = BALANCE, UNDO, CANCEL, FREEZE, REPAIR, DRAIN, STEER = (
    "balance", "undo", "cancel", "freeze", "repair", "drain", "steer")

#: Plans of these kinds copy nothing that is not copied anyway: degraded PGs and limits of movement
#: do not stop them. Changes that would copy more after all are dropped. → What they move, a clause.
MOTIONLESS = {
    CANCEL: "no data moves",
    FREEZE: "no data moves",
    STEER: "no more data moves than before"}

#: Flags and the built-in balancer do not stop plans of these kinds, which only end movements.
UNGUARDED = frozenset((CANCEL, FREEZE))

#: Plans of these kinds revert changes, which automatic balancing would make again.
TAKE_BACK = frozenset((UNDO, CANCEL))

#: Plans of these kinds want certain upmap items, not only a certain up set.
OF_ITEMS = TAKE_BACK

#: Kind → the command that begins plans of it, for the history.
COMMANDS = {UNDO: "undo", CANCEL: "cancel", FREEZE: "freeze", DRAIN: "drain"}


def command_of(kind: str) -> str:
    """Returns the command that has begun a plan of this kind."""
    return f"'ceph equilibrium {COMMANDS.get(kind, 'execute')}'"


def takes_back(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """Returns True if the PG's data is on these OSDs for certain, and on its way to others: the
    change ends that."""
    if not pg.is_moving:
        return False
    return is_same_placement(certain_holders(pg, positional), up_after, positional)


def moves_nothing(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """Returns True if a change to this up set copies no shard that is not on its way anyway.

    Each shard stays on the OSD that has its data, or goes on to its present target. In an
    erasure-coded pool positions count, and one shard may go elsewhere if fewer shards move in all.
    """
    up = pg.up
    if is_same_placement(up, up_after, positional) or takes_back(pg, up_after, positional):
        return True
    if not pg.is_moving or len(up_after) != len(up):
        return False
    holders = certain_holders(pg, positional)
    if positional:
        return len(holders) == len(up) and _ends_motion(holders, up, up_after)
    osds = set(up_after)
    return len(osds) == len(up_after) and osds.issubset((*holders, *up))


#: A shard has begun to arrive if less than this ratio of its bytes is still to be copied.
_BEGUN_RATIO = 0.85


def least_uncopied(pg: Pg) -> float:
    """Returns the ratio of its bytes that is still to be copied, of the shard of the PG that has
    come farthest; 1 if none is on its way."""
    return min([pg.uncopied.get(osd, pg.uncopied_ratio)
                for osd in pg.up if osd not in pg.holders], default=1.0)


def has_begun(pg: Pg) -> bool:
    """Returns True if a shard of the PG has begun to arrive: with another target Ceph would copy it
    from the beginning, with the same target it goes on."""
    return least_uncopied(pg) < _BEGUN_RATIO


def redirects(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """Returns True if a change to this up set copies no more shards than are copied anyway, and
    none of them has begun to arrive."""
    if not pg.is_moving or has_begun(pg):
        return False
    holders = pg.holders
    if positional and len(holders) != len(up_after):
        return False
    coming = shard_changes(holders, pg.up, positional)[0]
    return len(shard_changes(holders, up_after, positional)[0]) <= len(coming)


def certain_holders(pg: Pg, positional: bool) -> Tuple[int, ...]:
    """Returns the holders that have the PG's data for certain: those that serve it, and all of them
    while the PG waits on the OSDs of its last clean state.

    By position in erasure-coded pools; in other pools uncertain holders are left out.
    """
    if _waits_where_it_was(pg, positional):
        return pg.holders
    if not positional:
        return tuple([osd for osd in pg.holders if osd in pg.acting])
    certain: List[int] = []
    for held, serves in zip(pg.holders, pg.acting):
        if held != serves:
            held = NO_OSD
        certain.append(held)
    return tuple(certain)


def _waits_where_it_was(pg: Pg, positional: bool) -> bool:
    """Returns True if a PG whose move was sent has not peered yet, or comes by log recovery and has
    not arrived. Until then holders that do not serve it keep their copies."""
    if pg.doubtful_holders:
        return False
    acting = pg.acting
    up = pg.up
    if is_same_placement(acting, up, positional):
        return not pg_states.has_any(pg.state, pg_states.SERVED)
    # a new OSD is missing until log recovery has filled it
    is_missing = len(acting) < len(up) or NO_OSD in acting
    return is_missing and pg_states.BACKFILL not in pg.state


def _ends_motion(holders: Tuple[int, ...], up: Tuple[int, ...],
                 up_after: Tuple[int, ...]) -> bool:
    """Returns True if no shard of an erasure-coded PG gets another target; or one shard does, and
    fewer shards move than now."""
    elsewhere = moving = staying = 0
    for after, held, now in zip(up_after, holders, up):
        if after not in (held, now):
            elsewhere += 1
        # a shard without a certain holder may be there already, so that it does not count
        if held not in (now, NO_OSD):
            moving += 1
            staying += after == now
    if elsewhere == 0:
        return True
    return elsewhere == 1 and 1 + staying < moving


#: The version in every stored plan; a reader rejects other versions.
PLAN_VERSION = 2


class BadPlan(ValueError):
    """A stored plan cannot be read; the message is one sentence for operators."""


class Move(NamedTuple):
    """One shard's move. Utilizations are ratios of OSD size, before and after this move, if all in
    flight has arrived and the moves before it are made."""

    pgid: str
    source: int
    target: int
    bytes: int                   # that the shard takes on the target's device
    objects: int
    source_before: float
    source_after: float
    target_before: float
    target_after: float


class PgChange(NamedTuple):
    """Everything the plan does to one PG, sent to the monitor in one command."""

    pgid: str
    raw: Tuple[int, ...]         # the raw CRUSH mapping; another one voids the change
    up_before: Tuple[int, ...]
    up_after: Tuple[int, ...]
    items: UpmapItems            # empty: the PG's upmap items are removed
    shards: int                  # how many shards it copies; 0 in a plan of kind STEER
    shard_bytes: int             # of one shard
    objects: int                 # of the PG
    #: (OSD, bytes) of the shards that it gains or loses, if these are not all `shard_bytes`
    uneven: Tuple[Tuple[int, int], ...] = ()

    @property
    def gained_by(self) -> FrozenSet[int]:
        """Returns the OSDs that get a shard of the PG."""
        return frozenset(self.up_after).difference(self.up_before)

    @property
    def lost_by(self) -> FrozenSet[int]:
        """Returns the OSDs that lose their shard of the PG."""
        return frozenset(self.up_before).difference(self.up_after)

    def bytes_on(self, osd: int) -> int:
        """Returns the bytes of the shard that an OSD gains or loses."""
        if not self.uneven:
            return self.shard_bytes
        return dict(self.uneven).get(osd, self.shard_bytes)

    def command(self) -> str:
        """Returns the command that an operator could type instead."""
        if not self.items:
            return f"ceph osd rm-pg-upmap-items {self.pgid}"
        pairs = " ".join(f"{source} {target}" for source, target in self.items)
        return f"ceph osd pg-upmap-items {self.pgid} {pairs}"


class ClassUsage(NamedTuple):
    """Utilization of the OSDs of one set; ratios of OSD size. The fullest OSD is one that is up, if
    any is."""

    osds: int
    size_bytes: int
    used_bytes: int
    max: float         # of fullest_osd
    min: float         # of all these OSDs, as mean and stddev
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
    """The client bytes that fit if all pools grow in proportion to their data, and the OSD that is
    full first then. Pools cannot use all their free spaces at once, but they can use this."""

    bytes: int
    limiting_osd: Optional[int]   # None if no pool holds data


class Usage(NamedTuple):
    """The figures of a placement, by OSD set and by pool name."""

    classes: Dict[str, ClassUsage]
    pools: Dict[str, PoolSpace]
    room: Optional[Room] = None   # None if it was not computed, as for an undo that is kept


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
    before: Usage = Usage({}, {})   # until the figures are known
    after: Usage = Usage({}, {})
    #: reason → PGs or OSDs left out for it; of kinds FREEZE and STEER: shards
    skipped: Dict[str, int] = {}
    aim: str = AIMS[0]
    bounds: Dict[str, float] = {}   # OSD set → lower bound of the highest utilization
    topology: str = ""           # `topology_of` its snapshot
    pool_pgs: Dict[str, int] = {}   # pool id → PGs, of the pools whose PGs it moves
    stuck: Tuple[StuckShards, ...] = ()   # on drained OSDs, when the plan is done
    kind: str = BALANCE          # one of KINDS
    limited_to: str = ""         # PlanOptions.limited_to
    load_bytes: int = 0          # of `bytes`: how many more because of the load of OSDs
    #: of kind STEER: pgid → why a PG in flight keeps its targets; it is not stored
    left_alone: Dict[str, str] = {}

    @property
    def bytes(self) -> int:
        """Returns the bytes of all moves."""
        return sum(move.bytes for move in self.moves)

    @property
    def room_gained_bytes(self) -> Optional[int]:
        """Returns how many more client bytes fit if all pools grow in proportion; None if that was
        not computed."""
        before = self.before.room
        after = self.after.room
        if before is None or after is None:
            return None
        return after.bytes - before.bytes

    @property
    def purpose(self) -> str:
        """Returns the purpose for people: the aim if the plan balances, else the kind."""
        if self.kind == BALANCE:
            return f"aim {self.aim}"
        return self.kind

    def to_dict(self) -> Dict[str, Any]:
        """Returns the JSON-ready form in which it is stored (PLAN_VERSION)."""
        dump: Dict[str, Any] = {
            "version": PLAN_VERSION,
            "osdmap_epoch": self.epoch,
            "stop_reason": self.stop_reason,
            "moves": [list(move) for move in self.moves],
            "changes": [_stored(change) for change in self.changes],
            "before": usage_to_dict(self.before),
            "after": usage_to_dict(self.after),
            "skipped": self.skipped,
            "aim": self.aim,
            "bounds": self.bounds,
            "topology": self.topology,
            "pool_pgs": self.pool_pgs,
            "stuck": [list(stuck) for stuck in self.stuck],
            "kind": self.kind,
        }
        if self.limited_to:
            dump["limited_to"] = self.limited_to
        if self.load_bytes:
            dump["load_bytes"] = self.load_bytes
        return dump


def _stored(change: PgChange) -> List[Any]:
    """Returns the fields of a change, without `uneven` if that is empty."""
    if change.uneven:
        return list(change)
    return list(change[:-1])


def plan_from_dict(dump: Mapping[str, Any]) -> Plan:
    """Returns the plan of a Plan.to_dict. Raises BadPlan for anything that it does not
    understand."""
    try:
        if dump["version"] != PLAN_VERSION or dump["kind"] not in KINDS:
            raise BadPlan("the plan was stored by another version of equilibrium")
        plan: Plan = typed({
            "limited_to": "", "load_bytes": 0, **dump, "left_alone": {},
            "epoch": dump["osdmap_epoch"]}, Plan)
    except BadPlan:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise BadPlan(f"the stored plan is damaged ({error})") from error
    for pgid in [move.pgid for move in plan.moves] + [change.pgid for change in plan.changes]:
        if not _PGID.fullmatch(pgid):
            raise BadPlan(f"the stored plan is damaged ('{pgid[:40]}' is no PG)")
    new_pools = plan.after.pools.keys() - plan.before.pools.keys()
    if new_pools or plan.after.classes.keys() - plan.before.classes.keys():
        raise BadPlan("the stored plan is damaged (before and after do not belong together)")
    return plan


_PGID = re.compile(r"[0-9]+\.[0-9a-f]{1,8}")

#: No size, id or time is as large.
_MOST = 1 << 63

_WRONG_TYPE = "a value has the wrong type"

#: Cached, because a plan has as many records as shards, of a handful of types.
_hints = lru_cache(maxsize=None)(get_type_hints)


def typed(value: Any, hint: Any) -> Any:
    """Returns a value that was read from JSON as a value of a type, in depth.

    Types: NamedTuples (a dict by name, or a list in the order of the fields), tuples, dicts and
    plain types. An int is a float as well, a bool is neither. Raises ValueError, KeyError or
    TypeError if the value is of another type.
    """
    if hint is float or hint is int:
        return _number(value, hint)
    origin = get_origin(hint)
    inner = get_args(hint)
    if origin is Union:   # only with None
        if value is None:
            return None
        return typed(value, inner[0])
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
    raise ValueError(_WRONG_TYPE)


def _number(value: Any, hint: Any) -> Any:
    """Returns a value that was read from JSON as an int or a float."""
    allowed = (int, float) if hint is float else int
    is_number = isinstance(value, allowed) and not isinstance(value, bool)
    if not is_number or not abs(value) < _MOST:   # also of NaN
        raise ValueError(_WRONG_TYPE)
    return value


def usage_to_dict(usage: Usage) -> Dict[str, Any]:
    """Returns the JSON-ready form of a usage."""
    return {
        "classes": {name: c._asdict() for name, c in usage.classes.items()},
        "pools": {name: p._asdict() for name, p in usage.pools.items()},
        "room": usage.room._asdict() if usage.room is not None else None,
    }


def topology_of(crush_version: int, osds: Mapping[int, Any]) -> str:
    """Returns a text that stays equal while the CRUSH map and the weights of all OSDs do. `osds`:
    of a snapshot or a summary, by id."""
    weights = sorted([(osd, one.is_in, round(one.reweight, 3)) for osd, one in osds.items()])
    return f"{crush_version}:{zlib.crc32(repr(weights).encode()):08x}"


def resting_on(snapshot: Snapshot, plan: Plan) -> Plan:
    """Returns the plan with its basis in the osdmap. Pools whose pg_num changes are left out: the
    plan is for PGs of them that stay."""
    pool_pgs: Dict[str, int] = {}
    for number in sorted({pool_of(change.pgid) for change in plan.changes}):
        pool = snapshot.pools.get(number)
        if pool is not None and not pool.touched:
            pool_pgs[str(number)] = pool.pg_num
    topology = topology_of(snapshot.crush_version, snapshot.osds)
    return plan._replace(topology=topology, pool_pgs=pool_pgs)
