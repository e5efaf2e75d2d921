"""Plans that undo or cancel changes. Pure: a snapshot and rows of the log in, a plan out."""
from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..crush.placement import NO_OSD
from ..plan.model import CANCEL, UNDO, PgChange, Plan, moves_nothing, takes_back
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
#: Takes a few milliseconds, after which other threads have their turn.
_PGS_A_PIECE = 40


class Obstacle(str):
    """Why a PG's items cannot be restored."""

    command: str   # that removes the obstacle; `osd` is its argument, if it is known
    osd: Optional[int]   # the OSD that is the obstacle

    def __new__(cls, reason: str, command: str = "", osd: Optional[int] = None) -> Obstacle:
        """Returns a text with both attributes."""
        made = super().__new__(cls, reason)
        made.command = command
        made.osd = osd
        return made


NotRestored = List[Tuple[str, Obstacle]]   # (pgid, reason)


class UndoResult(NamedTuple):
    """The plan, and the PGs that it leaves out."""

    plan: Plan
    not_restored: NotRestored
    not_begun: int    # PGs of the plan without any copied data
    under_way: int    # PGs of the plan with a part of their data copied

    @property
    def onto_drained(self) -> bool:
        """Returns True if a PG is left out because it would return to an OSD that is being
        drained."""
        return DRAINED in [reason for _, reason in self.not_restored]


Goal = Union[UpmapItems, Obstacle, None]


def undo_plan(snapshot: Snapshot, rows: Sequence[ChangeRow], chosen: Chosen) -> UndoResult:
    """Returns a plan that restores each PG's upmap items from before the first chosen row.

    `rows`: of the log since the first chosen one, the oldest first. The plan begins with PGs that
    have not begun to move. PGs that are being copied follow, then those that have arrived, the
    newest first.
    """
    by_pg = grouped((row.pgid, row) for row in reversed(rows))
    return _plan(snapshot, {
        pgid: _before_all(snapshot, of_pg[::-1], chosen)
        for pgid, of_pg in piecewise(by_pg.items(), _PGS_A_PIECE)}, UNDO)


def cancel_plan(snapshot: Snapshot, rows: NewestFirst, chosen: Chosen) -> UndoResult:
    """Returns a plan that cancels moves which have not copied anything: each such PG stays where
    its data is."""
    items = {pg.pgid: snapshot.items_of(pg.pgid)
             for pg in snapshot.in_flight().values() if has_not_begun(pg)}
    goals: Dict[str, Goal] = {}
    for row in rows(items.keys()):
        pgid = row.pgid
        present = items.get(pgid)
        if present is None or row.before == present:
            continue   # the PG is decided, or the monitor has not kept this change
        del items[pgid]
        if not chosen(row) or not _is_kept(row, present):
            continue
        left = tuple([pair for pair in row.before if pair in present or pair not in row.after])
        goal = _before_motion(snapshot, row, left)
        if goal is None:   # an earlier change set it in motion
            items[pgid] = left
        else:
            goals[pgid] = goal
    return _plan(snapshot, goals, CANCEL)


def _is_kept(row: ChangeRow, present: UpmapItems) -> bool:
    """Returns True if the PG has the row's items. The monitor drops some of several pairs if
    CRUSH maps the PG differently."""
    if present == row.after:
        return True
    return set(row.after) > set(present) and not set(present) <= set(row.before)


def with_holders_of_log(snapshot: Snapshot, rows: NewestFirst,
                        pgids: Iterable[str]) -> Snapshot:
    """Returns the snapshot with the holders of withheld PGs that this mgr has not seen clean.

    Their data is where CRUSH maps them with the items before their last change in the log. Without
    such a row, a replicated PG that nobody reports has its data where CRUSH maps it without the
    items that lead to its primary. OSDs that serve a PG in place of OSDs of its up set have its
    data. If they are not among the holders found, the PG stays as it is.
    """
    before = {}
    unclear = set()
    for pg in [snapshot.pgs[pgid] for pgid in pgids]:
        if pg.is_moving and not pg.doubtful_holders:
            continue
        unclear.add(pg.pgid)
        # another OSD may be the primary of a replicated PG, by its affinity
        if pg.immovable is NO_STATISTICS and not snapshot.is_positional(pg):
            items = snapshot.items_of(pg.pgid)
            before[pg.pgid] = tuple([pair for pair in items if pair[1] not in pg.up[:1]])
    for row in rows(unclear):
        pgid = row.pgid
        if pgid not in unclear or row.cancels_withheld or row.after != snapshot.items_of(pgid):
            continue
        if _is_mapped_alike(snapshot, row):
            before[pgid] = row.before
            unclear.remove(pgid)
    pgs = dict(snapshot.pgs)
    for pgid, items in before.items():
        pg = pgs[pgid]
        holders = _up_with(snapshot, pg, items)
        if pg.acting == pg.up or {NO_OSD, *holders}.issuperset(pg.acting):
            immovable = None if pg.immovable is NO_STATISTICS else pg.immovable
            pgs[pgid] = pg._replace(
                doubtful_holders=False, holders=holders, immovable=immovable)
    return snapshot._replace(pgs=pgs)


def has_not_begun(pg: Pg) -> bool:
    """Returns True if a PG has to move and nothing of it has been copied."""
    if not pg.is_moving or pg.uncopied_ratio < 1.0:
        return False
    return not has_any(pg.state, COPIED)


def _before_all(snapshot: Snapshot, rows: Sequence[ChangeRow], chosen: Chosen) -> Goal:
    """Returns the items before the first chosen row, or why they are unknown or must not be
    restored. Returns None if the PG has them or no row is chosen."""
    if not any([chosen(row) for row in rows]):
        return None
    pgid = rows[0].pgid
    if pgid not in snapshot.pgs:
        return Obstacle(GONE)
    present = snapshot.items_of(pgid)
    made = _made(rows, present)
    while made and not chosen(made[0]):
        del made[0]
    if not made:
        return None
    first = made[0]
    goal = first.before
    if present == goal:
        return None
    later = None
    left = follows = goal   # `left`: by the chosen rows before the later one
    for row in made:
        if row.before != follows:
            return Obstacle(FOREIGN)
        follows = row.after
        if not chosen(row):
            later = row if follows != left else None   # as after an undo of the later plan
        elif later is None:
            left = follows
    if present != follows:
        return Obstacle(FOREIGN)
    if later is not None:
        name = f"plan '{later.plan}'" if later.plan else "automatic balancing"
        return Obstacle(f"{name} has changed it since",
                        f"ceph equilibrium undo {later.plan or 'automatic'}")
    return goal if _is_mapped_alike(snapshot, first) else Obstacle(REMAPPED)


def _made(rows: Sequence[ChangeRow], present: UpmapItems) -> List[ChangeRow]:
    """Returns the rows that have changed the items. Others were stopped before they were sent, or
    the monitor has refused them."""
    followed = zip(rows, [*[row.before for row in rows[1:]], present])
    return [row for row, then in followed if then != row.before]


def _before_motion(snapshot: Snapshot, row: ChangeRow, items: UpmapItems) -> Goal:
    """Returns the items before the row if they keep the PG where its data is, or why they must not
    be restored. Returns None if its data has to move with them, too."""
    pg = snapshot.pgs[row.pgid]
    after = _up_with(snapshot, pg, items)
    positional = snapshot.is_positional(pg)
    if takes_back(pg, after, positional):
        return items
    if _is_mapped_alike(snapshot, row):
        return None
    if is_same_placement(pg.up, after, positional) or not moves_nothing(pg, after, positional):
        return Obstacle(REMAPPED)
    return items   # it cancels a part; CRUSH moves the rest


def _is_mapped_alike(snapshot: Snapshot, row: ChangeRow) -> bool:
    """Returns True if CRUSH alone maps the row's PG as it did then."""
    pg = snapshot.pgs[row.pgid]
    return is_same_placement(row.raw, pg.raw, snapshot.is_positional(pg))


def _up_with(snapshot: Snapshot, pg: Pg, items: UpmapItems) -> Tuple[int, ...]:
    return apply_items(pg.raw, items, snapshot.is_out)


def _plan(snapshot: Snapshot, goals: Dict[str, Goal], kind: str) -> UndoResult:
    changes: List[PgChange] = []
    not_restored: NotRestored = []
    for pgid, goal in piecewise(goals.items(), _PGS_A_PIECE):
        if goal is None:
            continue
        found: Union[PgChange, Obstacle]
        if isinstance(goal, Obstacle):
            found = goal
        else:
            found = _change(snapshot, snapshot.pgs[pgid], goal)
        if isinstance(found, Obstacle):
            not_restored.append((pgid, found))
        else:
            changes.append(found)
    turns = {change.pgid: _turn(snapshot, change) for change in changes}
    changes.sort(key=lambda change: turns[change.pgid])
    planned = PlannedChanges(snapshot)
    for change in changes:
        if change.shards:
            pg = snapshot.pgs[change.pgid]
            gains, losses = snapshot.changed_shards(pg, change.up_after)
            planned.add_moves(pg, change.up_after, zip(losses, gains))
    plan = Plan(   # the caller fills in `before` and `after` if it has the figures
        epoch=snapshot.epoch,
        stop_reason=CONVERGED,
        moves=tuple(planned.moves),
        changes=tuple(changes),
        kind=kind)
    order = list(turns.values())
    return UndoResult(plan, not_restored, order.count(0), order.count(1))


def _turn(snapshot: Snapshot, change: PgChange) -> int:
    """Returns 0 if the PG has not begun to move, 1 if it is being copied, 2 if it has arrived or
    its data has to be copied back for another reason."""
    pg = snapshot.pgs[change.pgid]
    if not takes_back(pg, change.up_after, snapshot.is_positional(pg)):
        return 2
    return 0 if has_not_begun(pg) else 1


def _change(snapshot: Snapshot, pg: Pg, items: UpmapItems) -> Union[PgChange, Obstacle]:
    """Returns the change that gives a PG these items, or why it cannot be made."""
    pool = snapshot.pools[pg.pool]
    after = _up_with(snapshot, pg, items)
    motionless = moves_nothing(pg, after, pool.erasure)
    reason = pg.immovable
    if reason is not None and reason not in TRANSIENT:
        if not motionless or reason not in OF_MOTION:
            return Obstacle(reason)
    if pool.rule is None or len(after) != pool.size:
        return Obstacle("the pool's rule or size has changed")
    broken = pool.rule.refusal(after)
    if broken:
        return Obstacle(f"no longer legal: {broken}")
    gains = snapshot.changed_shards(pg, after)[0]
    for _, target in items:   # the monitor would not keep a pair to an OSD that is gone or out
        if target not in snapshot.osds:
            return Obstacle("one of its former OSDs is gone", "", target)
        if snapshot.is_out(target):
            return Obstacle("an OSD that it would return to is out", "ceph osd in", target)
    for osd in [snapshot.osds[osd] for osd in gains if osd in snapshot.osds]:
        if osd.drained:
            return Obstacle(DRAINED, "ceph equilibrium drain rm", osd.id)
        if not motionless and osd.reaches(snapshot.nearfull_ratio):
            return Obstacle(NEARFULL, "", osd.id)
    if motionless:
        gains = ()
    return PgChange(pg.pgid, pg.raw, pg.up, after, items, len(gains), pg.shard_bytes, pg.objects,
                    pool.uneven_bytes(pg.shard_bytes, pg.up, after))
