"""Plans that take back what was changed. Pure: a snapshot and rows of the log in, a plan out."""
from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..crush.placement import NO_OSD
from ..plan.model import CANCEL, UNDO, PgChange, Plan, Usage, moves_nothing, takes_back
from ..plan.options import AIMS
from ..planner.planner import CONVERGED, PlannedChanges
from ..runtime.time_slice import grouped, piecewise
from ..snapshot.immovable_reasons import NO_STATISTICS, OF_MOTION, TRANSIENT
from ..snapshot.model import Pg, Snapshot, UpmapItems, is_same_placement
from ..snapshot.pg_states import COPIED, has_any
from ..snapshot.upmap_items import apply_items
from .change_log import ChangeRow, Chosen, NewestFirst

GONE = "its pool or PG is gone"
FOREIGN = "somebody else has changed its upmap items since"
REMAPPED = "CRUSH maps the PG differently now"
DRAINED = "an OSD that it would return to is being drained"
NEARFULL = "an OSD that it would return to is nearfull"
_AWAY = {False: "an OSD that it would return to is out", True: "one of its former OSDs is gone"}
#: Before it gives way again, a few milliseconds.
_PGS_A_PIECE = 40


class Obstacle(str):
    """Why a PG's items cannot be restored."""

    command: str   # that lets them; where it is about OSDs, without these
    osd: Optional[int]   # that stands in the way

    def __new__(cls, reason: str, command: str = "", osd: Optional[int] = None) -> Obstacle:
        """A text with both attributes."""
        made = super().__new__(cls, reason)
        made.command, made.osd = command, osd
        return made


NotRestored = List[Tuple[str, Obstacle]]   # (pgid, reason)


class UndoResult(NamedTuple):
    """The plan, and what it leaves out."""

    plan: Plan
    not_restored: NotRestored
    not_begun: int    # PGs of the plan of which nothing has been copied yet
    under_way: int    # PGs of the plan of which a part has been copied

    @property
    def onto_drained(self) -> bool:
        """True where a PG would return to an OSD that is drained, which sends it away again."""
        return any(reason == DRAINED for _, reason in self.not_restored)


Goal = Union[UpmapItems, Obstacle, None]


def undo_plan(snapshot: Snapshot, rows: Sequence[ChangeRow], chosen: Chosen) -> UndoResult:
    """Restores the upmap items that each PG had before the first of the chosen rows.

    `rows`: those of the log since the first chosen one, the oldest first. What has not begun to
    move comes first in the plan, then what is being copied, then what has arrived, the newest
    first.
    """
    by_pg = grouped((row.pgid, row) for row in reversed(rows))
    return _plan(snapshot, {
        pgid: _before_all(snapshot, of_pg[::-1], chosen)
        for pgid, of_pg in piecewise(by_pg.items(), _PGS_A_PIECE)}, UNDO)


def cancel_plan(snapshot: Snapshot, rows: NewestFirst, chosen: Chosen) -> UndoResult:
    """As `undo_plan`, for what is on its way and of which nothing has been copied yet: each such PG
    stays where its data is."""
    items = {pg.pgid: snapshot.items_of(pg.pgid)
             for pg in snapshot.in_flight().values() if has_not_begun(pg)}
    goals: Dict[str, Goal] = {}
    for row in rows(items.keys()):
        present = items.get(row.pgid)
        if present is None or row.before == present:
            continue   # the PG is decided, or the monitor has not kept this change
        del items[row.pgid]
        # of several pairs the monitor may have dropped some since, as CRUSH maps the PG differently
        is_kept = present == row.after or (
            set(row.after) > set(present) and set(present) - set(row.before))
        if not chosen(row) or not is_kept:
            continue
        left = tuple([pair for pair in row.before if pair in present or pair not in row.after])
        goal = _before_motion(snapshot, row, left)
        if goal is None:   # an earlier change set it in motion
            items[row.pgid] = left
        else:
            goals[row.pgid] = goal
    return _plan(snapshot, goals, CANCEL)


def with_holders_of_log(snapshot: Snapshot, rows: NewestFirst,
                        pgids: Iterable[str]) -> Snapshot:
    """The snapshot, with the holders of PGs that are withheld and that this mgr has not seen clean.

    Their data is where CRUSH maps them with the items before the last change, as the log has it.
    Without such a row, and only of a replicated PG that nobody reports, with those items that do
    not lead to its primary. OSDs that serve a PG in place of others of its up set have its data: a
    PG for which that does not agree is left as it is."""
    unclear = {pg.pgid: pg for pg in [snapshot.pgs[pgid] for pgid in pgids]
               if pg.doubtful_holders or not pg.is_moving}
    before = {pg.pgid: tuple([pair for pair in snapshot.items_of(pg.pgid)
                              if pair[1] not in pg.up[:1]])
              for pg in unclear.values() if pg.immovable is NO_STATISTICS
              and not snapshot.is_positional(pg)}   # another one may lead it, by its affinity
    untold = set(unclear)
    for row in rows(untold):
        if row.pgid in untold and row.after == snapshot.items_of(row.pgid) and (
                not row.takes_back and _is_mapped_alike(snapshot, row)):
            before[row.pgid] = row.before
            untold.remove(row.pgid)
    located = [(unclear[pgid], _up_with(snapshot, unclear[pgid], items))
               for pgid, items in before.items()]
    return snapshot._replace(pgs={**snapshot.pgs, **{
        pg.pgid: pg._replace(
            doubtful_holders=False, holders=holders,
            immovable=None if pg.immovable is NO_STATISTICS else pg.immovable)
        for pg, holders in located
        if pg.acting == pg.up or {NO_OSD, *holders}.issuperset(pg.acting)}})


def has_not_begun(pg: Pg) -> bool:
    """True where a PG has to move and nothing of it has been copied."""
    return (pg.is_moving and pg.uncopied_ratio >= 1.0
            and not has_any(pg.state, COPIED))


def _before_all(snapshot: Snapshot, rows: Sequence[ChangeRow], chosen: Chosen) -> Goal:
    """The items before the first chosen row, why these cannot be told or must not come back, or
    None where the PG has them or no row is chosen."""
    if not any(chosen(row) for row in rows):
        return None
    pgid = rows[0].pgid
    if pgid not in snapshot.pgs:
        return Obstacle(GONE)
    present = snapshot.items_of(pgid)
    made = _made(rows, present)
    first = next((number for number, row in enumerate(made) if chosen(row)), None)
    if first is None or present == made[first].before:
        return None
    goal, later = made[first].before, None
    left = follows = goal   # `left`: by the chosen rows before the later one
    for row in made[first:]:
        if row.before != follows:
            return Obstacle(FOREIGN)
        follows = row.after
        if not chosen(row):
            later = row if follows != left else None   # as after an undo of what came later
        elif later is None:
            left = follows
    if present != follows:
        return Obstacle(FOREIGN)
    if later is not None:
        name = f"plan '{later.plan}'" if later.plan else "automatic balancing"
        return Obstacle(f"{name} has changed it since",
                        f"ceph equilibrium undo {later.plan or 'automatic'}")
    return goal if _is_mapped_alike(snapshot, made[first]) else Obstacle(REMAPPED)


def _made(rows: Sequence[ChangeRow], present: UpmapItems) -> List[ChangeRow]:
    """The rows that have changed anything: not those that were stopped before they were sent, or
    that the monitor has refused."""
    followed = zip(rows, [*(row.before for row in rows[1:]), present])
    return [row for row, then in followed if then != row.before]


def _before_motion(snapshot: Snapshot, row: ChangeRow, items: UpmapItems) -> Goal:
    """The items, those before the row, if the PG stays with them where its data is; why they must
    not come back; None if with them too its data has to move."""
    pg = snapshot.pgs[row.pgid]
    after, positional = _up_with(snapshot, pg, items), snapshot.is_positional(pg)
    if takes_back(pg, after, positional):
        return items
    if _is_mapped_alike(snapshot, row):
        return None
    ends_part = moves_nothing(pg, after, positional) and not is_same_placement(
        pg.up, after, positional)
    return items if ends_part else Obstacle(REMAPPED)   # what CRUSH moves goes on


def _is_mapped_alike(snapshot: Snapshot, row: ChangeRow) -> bool:
    """True where CRUSH alone gives the row's PG what it gave then."""
    pg = snapshot.pgs[row.pgid]
    return is_same_placement(row.raw, pg.raw, snapshot.is_positional(pg))


def _up_with(snapshot: Snapshot, pg: Pg, items: UpmapItems) -> Tuple[int, ...]:
    return apply_items(pg.raw, items, snapshot.is_out)


def _plan(snapshot: Snapshot, goals: Dict[str, Goal], kind: str) -> UndoResult:
    changes: List[PgChange] = []
    not_restored: NotRestored = []
    for pgid, goal in piecewise(goals.items(), _PGS_A_PIECE):
        found = goal if goal is None or isinstance(goal, Obstacle) else _change(
            snapshot, snapshot.pgs[pgid], goal)
        if isinstance(found, PgChange):
            changes.append(found)
        elif found is not None:
            not_restored.append((pgid, found))
    changes.sort(key=lambda change: _turn(snapshot, change))
    turns = [_turn(snapshot, change) for change in changes]
    planned = PlannedChanges(snapshot)
    for change in changes:
        if change.shards:
            pg = snapshot.pgs[change.pgid]
            gains, losses = snapshot.changed_shards(pg, change.up_after)
            planned.add_moves(pg, change.up_after, zip(losses, gains))
    plan = Plan(   # `before` and `after` are filled in by who has the figures
        epoch=snapshot.epoch, stop_reason=CONVERGED, moves=tuple(planned.moves),
        changes=tuple(changes), before=Usage({}, {}), after=Usage({}, {}), skipped={},
        aim=AIMS[0], bounds={}, kind=kind)
    return UndoResult(plan, not_restored, turns.count(0), turns.count(1))


def _turn(snapshot: Snapshot, change: PgChange) -> int:
    """0 for what has not begun to move, 1 for what is being copied, 2 for what has arrived."""
    pg = snapshot.pgs[change.pgid]
    return 2 if not takes_back(pg, change.up_after, snapshot.is_positional(pg)) else (
        0 if has_not_begun(pg) else 1)


def _change(snapshot: Snapshot, pg: Pg, items: UpmapItems) -> Union[PgChange, Obstacle]:
    """The change that gives a PG these items, or why it cannot be made."""
    pool, after = snapshot.pools[pg.pool], _up_with(snapshot, pg, items)
    motionless = moves_nothing(pg, after, pool.erasure)
    if pg.immovable not in TRANSIENT and pg.immovable is not None and not (
            motionless and pg.immovable in OF_MOTION):
        return Obstacle(pg.immovable)
    if pool.rule is None or len(after) != pool.size:
        return Obstacle("the pool's rule or size has changed")
    broken = pool.rule.refusal(after)
    if broken:
        return Obstacle(f"no longer legal: {broken}")
    gains = snapshot.changed_shards(pg, after)[0]
    for _, target in items:   # where it is gone or out, the monitor would not keep the pair
        if snapshot.is_out(target):
            is_gone = target not in snapshot.osds
            return Obstacle(_AWAY[is_gone], "" if is_gone else "ceph osd in", target)
    for osd in [snapshot.osds[osd] for osd in gains if osd in snapshot.osds]:
        if osd.drained:
            return Obstacle(DRAINED, "ceph equilibrium drain rm", osd.id)
        if not motionless and osd.reaches(snapshot.nearfull_ratio):
            return Obstacle(NEARFULL, "", osd.id)
    if motionless:
        gains = ()
    return PgChange(pg.pgid, pg.raw, pg.up, after, items, len(gains), pg.shard_bytes, pg.objects,
                    snapshot.pools[pg.pool].uneven_bytes(pg.shard_bytes, pg.up, after))
