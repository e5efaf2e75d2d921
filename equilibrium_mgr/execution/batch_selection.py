"""Which of the wanted changes to send now. Pure: a snapshot and limits in, a decision out.

The plan is advice and the osdmap is the truth: every change is held against the newest snapshot,
and what has become senseless or illegal is dropped with its reason.
"""
from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..snapshot.immovable_reasons import PASSING
from ..snapshot.model import Pg, Snapshot
from .osd_traffic import OsdTraffic, osd_traffic
from .throttle import ThrottleLimits, Deferral, Throttle
from .urgency import Reserved, by_urgency

#: States of a PG that is read or rewritten anyway; a move meanwhile would make both slower.
_BUSY_STATES = {"scrubbing": "scrubbed", "repair": "repaired", "snaptrim": "snap-trimmed"}
_CHANGES_A_PIECE = 40   # looked at between two checkpoints: about a millisecond
#: What keeps an OSD from taking shards for a moment only; a change waits for these.
_PASSING_OSD = frozenset(("down", "without statistics"))


class Decision(NamedTuple):
    """What to do with the wanted changes in this round."""

    send: List[PgChange]
    done: List[PgChange]                  # already where they were wanted
    dropped: List[Tuple[PgChange, str]]   # senseless or illegal now
    later: List[PgChange]                 # wanted still, in plan order
    waiting_for: Optional[str]            # why the first of them was not sent
    throttled: bool                       # whether that was the throttle
    above_limit: Optional[str] = None     # the PG that goes although it alone is above the limit
    above_share: Optional[str] = None     # the PG that goes although above an OSD's share
    full: Tuple[Tuple[PgChange, str], ...] = ()   # those of `later` whose target is too full
    waiting: Tuple[Tuple[PgChange, str], ...] = ()   # `later` with reasons, in the order looked at
    has_transient: bool = False                 # something is most likely over within seconds
    holds_up: bool = False                # whether the throttle holds anything up
    cools: bool = False                   # whether something waits for its pg_cooldown alone


def next_batch(snapshot: Snapshot, wanted: Sequence[PgChange], limits: ThrottleLimits,
               troubled: Mapping[int, str], on_its_way: Optional[OsdTraffic] = None,
               checkpoint: Checkpoint = no_checkpoint) -> Decision:
    """Chooses what may be sent without passing a limit.

    `on_its_way` is what moves already, our own unseen moves included; it is used up. Changes that
    a limit holds back do not keep those behind them from being looked at. `checkpoint` is called
    between small pieces of work.
    """
    on_its_way = on_its_way if on_its_way is not None else osd_traffic(snapshot, {})
    chooser = _Chooser(snapshot, limits, troubled, Throttle(snapshot, limits, on_its_way))
    ranked = by_urgency(snapshot, on_its_way, wanted)
    for change in with_checkpoints(ranked.changes, _CHANGES_A_PIECE, checkpoint):
        chooser.look_at(change, ranked.urgent.get(change.pgid))
    return chooser.decision(wanted)


class _Chooser:
    """Looks at one change after the other."""

    def __init__(self, snapshot: Snapshot, limits: ThrottleLimits, troubled: Mapping[int, str],
                 room: Throttle) -> None:
        self._snapshot = snapshot
        self._limits = limits
        self._troubled = troubled
        self._room = room
        self._in_flight = frozenset(limits.in_flight)
        self._send: List[PgChange] = []
        self._done: List[PgChange] = []
        self._dropped: List[Tuple[PgChange, str]] = []
        self._waiting: List[Tuple[PgChange, Deferral]] = []
        self._first_wait: Optional[Deferral] = None
        self._reserved = Reserved(limits.max_backfills)

    def look_at(self, change: PgChange, relieves: Optional[int]) -> None:
        pg = self._snapshot.pgs.get(change.pgid)
        if pg is None:
            self._dropped.append((change, "its pool or PG is gone"))
            return
        if _is_done(self._snapshot, pg, change):
            self._done.append(change)
            return
        void = _void(self._snapshot, pg, change)
        if void is None and pg.immovable not in PASSING:
            void = pg.immovable
        if void is not None:
            self._dropped.append((change, void))
            return
        refusal = self._wait(pg, change) or self._hold_back(pg, change, relieves)
        refusal = refusal or self._room.refuses(pg, change)
        if refusal is None:
            self._room.take(pg, change)
            self._send.append(change)
            return
        self._waiting.append((change, refusal))
        self._first_wait = self._first_wait or refusal
        if relieves is not None and refusal.throttle and not refusal.full:
            if change.pgid not in self._limits.cooling:
                gains, losses = self._room.shards(pg, change)
                self._reserved.add(relieves, gains + losses, pg.objects * change.shards)

    def decision(self, wanted: Sequence[PgChange]) -> Decision:
        place = {change.pgid: number for number, change in enumerate(wanted)}
        later = sorted((change for change, _ in self._waiting), key=lambda c: place[c.pgid])
        wait = self._first_wait
        return Decision(
            self._send, self._done, self._dropped, later,
            wait.reason if wait else None, wait.throttle if wait else False,
            self._room.above_limit, self._room.above_share,
            tuple((change, refusal.reason) for change, refusal in self._waiting if refusal.full),
            tuple((change, refusal.reason) for change, refusal in self._waiting),
            any(refusal.passing for _, refusal in self._waiting),
            any(refusal.throttle for _, refusal in self._waiting),
            any(refusal.cools for _, refusal in self._waiting))

    def _hold_back(self, pg: Pg, change: PgChange, relieves: Optional[int]) -> Optional[Deferral]:
        """What only evens out must not take what the relief of an overfull OSD is short of: a
        place at its OSDs, or budget. The rest need not wait for it."""
        if relieves is not None or self._reserved.first is None:
            return None
        gains, losses = self._room.shards(pg, change)
        first = self._reserved.sharing(gains + losses)
        if first is None and self._room.has_moves and self._room.keeps(
                pg, change, self._reserved.copies):
            return None
        return Deferral("osd.%d is above nearfull and comes first"
                       % (self._reserved.first if first is None else first), True)

    def _wait(self, pg: Pg, change: PgChange) -> Optional[Deferral]:
        """What has to be over first, apart from the throttle."""
        trouble = self._troubled.get(pg.pool)
        relief = trouble is not None and self._is_relief(pg, change)
        if trouble is not None and not relief:
            return Deferral(trouble, passing=pg.pool in self._limits.transient_pools)
        if pg.immovable:
            return Deferral(pg.immovable)
        if pg.is_moving or change.pgid in self._in_flight:
            return Deferral(f"an earlier move of pg {change.pgid} is still under way")
        gains, losses = self._room.shards(pg, change)
        for osd_id in gains:
            obstacle = self._snapshot.osds[osd_id].unusable_reason()
            if obstacle is not None:
                return Deferral(f"osd.{osd_id} is {obstacle}")
        for osd_id in gains + losses:
            if osd_id in self._snapshot.stale_osds:
                return Deferral(f"osd.{osd_id} has not reported its statistics for too long")
        states = pg.state.split("+")
        for state, words in _BUSY_STATES.items():
            if state in states:
                return Deferral(f"pg {change.pgid} is being {words}")
        return self._cooldown(change.pgid, losses)

    def _is_relief(self, pg: Pg, change: PgChange) -> bool:
        """May the change go although PGs are degraded, because it empties full OSDs alone?"""
        losses = self._room.shards(pg, change)[1]
        states = pg.state.split("+")
        return (pg.pool in self._limits.degraded_pools and bool(losses)
                and all(osd in self._limits.relievable_osds for osd in losses)
                and "active" in states and not {"degraded", "undersized"} & set(states))

    def _cooldown(self, pgid: str, losses: Sequence[int]) -> Optional[Deferral]:
        seconds = self._limits.cooling.get(pgid, 0.0)
        if seconds <= 0.0:
            return None
        for osd_id in losses:
            osd = self._snapshot.osds.get(osd_id)
            if osd is not None and osd.used_bytes > self._snapshot.nearfull_ratio * osd.size_bytes:
                return None
        return Deferral("pg %s was moved a short while ago; %d s of pg_cooldown to go"
                       % (pgid, seconds + 1), throttle=True, cools=True)


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
    broken = pool.rule.violation(change.up_after) or pool.rule.upmap_rejection(change.up_after)
    if broken:
        return f"no longer legal: {broken}"
    for osd in change.up_after:
        if osd not in change.up_before:
            target = snapshot.osds.get(osd)
            obstacle = "gone" if target is None else target.unusable_reason()
            if obstacle and obstacle not in _PASSING_OSD:
                return f"osd.{osd} is {obstacle}"
    return None
