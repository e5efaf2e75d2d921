"""Which of the wanted changes to send now. Pure: a snapshot and limits in, a decision out.

The plan is advice and the osdmap is the truth: every change is held against the newest snapshot,
and what has become senseless or illegal is dropped with its reason.
"""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..planner.options import effective_fill_limit
from ..planner.plan import PgChange
from ..snapshot.model import Pg, Snapshot, shard_changes
from ..snapshot.reasons import PASSING


class Limits(NamedTuple):
    """The throttle of one round."""

    max_misplaced_ratio: float
    max_moves: int
    fill_limit: float             # ratio; 0 means backfillfull less a margin
    misplaced_copies: int         # the larger of Ceph's count and our own ledger
    in_flight: Sequence[str]      # PGs that we have sent and not seen arrive


class Decision(NamedTuple):
    """What to do with the wanted changes in this round."""

    send: List[PgChange]
    done: List[PgChange]                  # already where they were wanted
    dropped: List[Tuple[PgChange, str]]   # senseless or illegal now
    later: List[PgChange]                 # wanted still
    waiting_for: Optional[str]            # why the first of them was not sent
    throttled: bool                       # whether that was the throttle
    above_limit: Optional[str] = None     # the PG that goes although it alone is above the limit


def next_batch(snapshot: Snapshot, wanted: Sequence[PgChange], limits: Limits,
               troubled: Mapping[int, str]) -> Decision:
    """Chooses, in plan order, what may be sent without passing a limit."""
    decision = Decision([], [], [], [], None, False)
    room = _Room(snapshot, limits)
    for change in wanted:
        pg = snapshot.pgs.get(change.pgid)
        if pg is None:
            decision.dropped.append((change, "its pool or PG is gone"))
        elif _is_done(snapshot, pg, change):
            decision.done.append(change)
        else:
            decision = _judge(snapshot, pg, change, room, limits, troubled, decision)
    return decision._replace(above_limit=room.above_limit)


def _judge(snapshot: Snapshot, pg: Pg, change: PgChange, room: "_Room", limits: Limits,
           troubled: Mapping[int, str], decision: Decision) -> Decision:
    obstacle = _void(snapshot, pg, change)
    if obstacle:
        decision.dropped.append((change, obstacle))
        return decision
    if pg.immovable and pg.immovable not in PASSING:
        decision.dropped.append((change, pg.immovable))
        return decision
    wait = troubled.get(pg.pool) or pg.immovable
    throttled = False
    if pg.up != pg.acting or change.pgid in limits.in_flight:
        wait = wait or "an earlier move of pg %s is still under way" % change.pgid
    if wait is None:
        wait = room.refuses(pg, change)
        throttled = wait is not None
    if wait is None:
        room.take(pg, change)
        decision.send.append(change)
        return decision
    decision.later.append(change)
    if decision.waiting_for is None:
        return decision._replace(waiting_for=wait, throttled=throttled)
    return decision


def _is_done(snapshot: Snapshot, pg: Pg, change: PgChange) -> bool:
    if snapshot.pools[pg.pool].erasure:
        return pg.up == change.up_after
    return set(pg.up) == set(change.up_after)


def _void(snapshot: Snapshot, pg: Pg, change: PgChange) -> Optional[str]:
    """Why the change no longer makes sense, or None."""
    pool = snapshot.pools[pg.pool]
    if pg.immovable is None and pg.raw != change.raw:
        return "CRUSH maps the PG differently now"
    if pg.immovable is None and pg.up != change.up_before:
        return "somebody else has moved the PG"
    if pool.rule is None or len(change.up_after) != pool.size:
        return "the pool's rule or size has changed"
    broken = pool.rule.breaks(change.up_after) or pool.rule.monitor_refuses(change.up_after)
    if broken:
        return "no longer legal: %s" % broken
    for osd in change.up_after:
        if osd not in change.up_before:
            target = snapshot.osds.get(osd)
            obstacle = "gone" if target is None else target.cannot_take()
            if obstacle:
                return "osd.%d is %s" % (osd, obstacle)
    return None


class _Room:
    """What the throttle still admits, and how full targets become while sources keep their copy."""

    def __init__(self, snapshot: Snapshot, limits: Limits) -> None:
        self._snapshot = snapshot
        self._misplaced = limits.misplaced_copies
        self._allowed = limits.max_misplaced_ratio * snapshot.object_copies
        self._moves_left = limits.max_moves
        self._max_moves = limits.max_moves
        self._fill_limit = effective_fill_limit(limits.fill_limit, snapshot.backfillfull_ratio)
        self._ratio = limits.max_misplaced_ratio
        self.above_limit: Optional[str] = None
        self._peak: Dict[int, int] = {o.id: o.used_bytes + o.inbound_bytes
                                      for o in snapshot.osds.values()}

    def refuses(self, pg: Pg, change: PgChange) -> Optional[str]:
        if self._moves_left < self._max_moves and change.shards > self._moves_left:
            return "max_moves_per_round (%d) is reached" % self._max_moves
        copies = pg.objects * change.shards
        # where nothing is misplaced one change may go although it alone is above the limit
        if self._misplaced > 0 and copies > 0 and self._misplaced + copies > self._allowed:
            return "the misplaced ratio would pass its limit of %.4f" % self._ratio
        for osd in self._gains(pg, change):
            peak = self._peak[osd] + pg.shard_bytes
            if peak > self._fill_limit * self._snapshot.osds[osd].size_bytes:
                return "osd.%d would pass its fill limit of %.3f meanwhile" % (
                    osd, self._fill_limit)
        return None

    def take(self, pg: Pg, change: PgChange) -> None:
        self._moves_left -= change.shards
        self._misplaced += pg.objects * change.shards
        if pg.objects and self._misplaced > self._allowed:
            self.above_limit = change.pgid
        for osd in self._gains(pg, change):
            self._peak[osd] += pg.shard_bytes

    def _gains(self, pg: Pg, change: PgChange) -> Tuple[int, ...]:
        erasure = self._snapshot.pools[pg.pool].erasure
        return shard_changes(pg.up, change.up_after, erasure)[0]
