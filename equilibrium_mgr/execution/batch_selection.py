"""Selects the wanted changes to send now. Pure: a snapshot and limits in, a decision out.

The plan is advice and the osdmap is the truth: every change is compared with the newest snapshot,
and what has become senseless or illegal is dropped with its reason.
"""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..plan.model import BALANCE, FREEZE, MOTIONLESS, OF_ITEMS, REPAIR, PgChange
from ..plan import model as kinds
from ..runtime.time_slice import piecewise
from ..snapshot.immovable_reasons import OF_MOTION, OF_RULE, TRANSIENT, untrusted_state
from ..snapshot.model import Osd, Pg, Snapshot
from ..snapshot.reason_codes import COOLDOWN, FULL, LIMIT, REASONS
from .outcomes import DroppedChange
from .guards import PoolGuard
from .throttle_state import (
    Candidate, OsdTraffic, ThrottleLimits, ThrottleState, by_urgency, osd_traffic)
from .throttle import deferral_of
from .verdict import Verdict, WaitingChange

_CHANGES_A_PIECE = 40   # about a millisecond
#: Obstacles of an OSD that end soon; a change waits for these and is dropped for the others.
_TRANSIENT_OBSTACLES = frozenset(("down", "without statistics"))


class Decision(NamedTuple):
    """The wanted changes of this round, by what is to be done with them."""

    send: List[PgChange]
    done: List[PgChange]                  # already where they were wanted
    dropped: List[DroppedChange]          # void or illegal now
    later: List[PgChange]                 # wanted still, in plan order
    waiting: List[WaitingChange]          # the same with reasons, in the order of the checks
    above_limit: Optional[str] = None     # the PG that goes although it alone is above the limit
    above_transit_limit: Optional[str] = None   # the same for an OSD's max_transit_ratio

    @property
    def leading(self) -> Optional[Verdict]:
        """The reason for which most shards wait, as the first of them has it; None where none
        waits."""
        shards: Dict[str, int] = {}
        for change, deferral in self.waiting:
            shards[deferral.code] = shards.get(deferral.code, 0) + change.shards
        most = max(shards, key=lambda code: shards[code], default=None)
        return next((deferral for _, deferral in self.waiting if deferral.code == most), None)

    @property
    def holds_up(self) -> bool:
        """True where any change waits for the throttle."""
        return any(deferral.is_throttle for _, deferral in self.waiting)

    @property
    def full(self) -> List[WaitingChange]:
        """The changes whose target is too full."""
        return [row for row in self.waiting if REASONS[row[1].code].kind == FULL]

    @property
    def is_cooling(self) -> bool:
        """True where a change waits for pg_cooldown, which ends by itself."""
        return any(deferral.code == COOLDOWN for _, deferral in self.waiting)


def next_batch(snapshot: Snapshot, wanted: Sequence[PgChange], limits: ThrottleLimits,
               blocked: Mapping[int, PoolGuard], traffic: Optional[OsdTraffic] = None,
               kind: str = BALANCE) -> Decision:
    """Chooses what may be sent without passing a limit.

    `blocked`: pool id → why none of its PGs may be moved. `traffic` is what is in flight, our own
    unseen moves included; it is used up. Changes that a limit defers do not keep those behind them
    from being looked at. `kind` is the plan's.
    """
    traffic = traffic if traffic is not None else osd_traffic(snapshot, {})
    state = ThrottleState(snapshot, limits, blocked, traffic)
    found = Decision([], [], [], [], [])
    ranked = by_urgency(snapshot, traffic, wanted)
    for change in piecewise(ranked.changes, _CHANGES_A_PIECE):
        pg = snapshot.pgs.get(change.pgid)
        if pg is None:
            found.dropped.append(DroppedChange(change, "its pool or PG is gone"))
            continue
        if _is_done(snapshot, pg, change, kind in OF_ITEMS):
            found.done.append(change)
            continue
        if kind in (REPAIR, FREEZE) and pg.immovable in OF_RULE:
            pg = pg._replace(immovable=untrusted_state(pg.state))
        candidate = state.candidate(pg, change, ranked.urgent.get(change.pgid))
        void = _void(snapshot, candidate)
        if void is None and kind in MOTIONLESS and not candidate.moves_nothing:
            void = "its data has moved meanwhile"
        if void is not None:
            found.dropped.append(DroppedChange(change, void))
            continue
        deferral = deferral_of(state, candidate)
        if deferral is None:
            state.consume(candidate)
            found.send.append(candidate.change)
            continue
        found.waiting.append((change, deferral))
        # OSDs and misplaced budget are kept for urgent relief that a limit defers
        if candidate.relieves is not None and REASONS[deferral.code].kind == LIMIT and (
                change.pgid not in limits.cooling):
            state.reserved.add(candidate.relieves, candidate.gains + candidate.losses,
                               candidate.copies)
    place = {change.pgid: number for number, change in enumerate(wanted)}
    found.later.extend(sorted((change for change, _ in found.waiting),
                              key=lambda change: place[change.pgid]))
    return found._replace(above_limit=state.above_limit,
                          above_transit_limit=state.above_transit_limit)


def _is_done(snapshot: Snapshot, pg: Pg, change: PgChange, is_of_items: bool) -> bool:
    if not kinds.is_same_placement(pg.up, change.up_after, snapshot.pools[pg.pool].erasure):
        return False
    return (not is_of_items and change.up_before != change.up_after
            or snapshot.upmap_items.get(change.pgid, ()) == change.items)


def _void(snapshot: Snapshot, candidate: Candidate) -> Optional[str]:
    """Returns why the change no longer makes sense, or None."""
    change, pg, pool = candidate.change, candidate.pg, snapshot.pools[candidate.pg.pool]
    immovable = pg.immovable
    if candidate.moves_nothing and immovable in OF_MOTION:
        immovable = None
    if immovable is None and not kinds.is_same_placement(pg.raw, change.raw, pool.erasure):
        return "CRUSH maps the PG differently now"
    if immovable is None and not kinds.is_same_placement(pg.up, change.up_before, pool.erasure):
        return "somebody else has moved the PG"
    if pool.rule is None or len(change.up_after) != pool.size:
        return "the pool's rule or size has changed"
    broken = pool.rule.violation(change.up_after) or pool.rule.upmap_rejection(change.up_after)
    if broken:
        return f"no longer legal: {broken}"
    for osd in change.up_after:
        if osd not in change.up_before:
            target = snapshot.osds.get(osd)
            obstacle = "gone" if target is None else _obstacle(target, candidate.moves_nothing)
            if obstacle:
                return f"osd.{osd} is {obstacle}"
    return immovable if immovable not in TRANSIENT else None


def _obstacle(target: Osd, holds_data: bool) -> Optional[str]:
    """Returns why an OSD will not take a shard for long, or None. Where it holds the data already,
    only Ceph's own obstacle counts: a pair of upmap items whose target is out has no effect."""
    if holds_data:
        return None if target.is_in and target.reweight > 0.0 else "out"
    obstacle = target.unusable_reason()
    return obstacle if obstacle not in _TRANSIENT_OBSTACLES else None
