"""Selects the wanted changes to send now. Pure: a snapshot and limits in, a decision out.

The plan is advice and the osdmap is the truth: every change is compared with the newest snapshot,
and what has become senseless or illegal is dropped with its reason.
"""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..plan.kinds import BALANCE, FREEZE, MOTIONLESS, OF_ITEMS, REPAIR
from ..plan.model import PgChange
from ..plan import kinds
from ..runtime.time_slice import piecewise
from ..snapshot.immovable_reasons import OF_MOTION, OF_RULE, TRANSIENT
from ..snapshot.model import Osd, Pg, Snapshot
from ..snapshot.pg_checks import untrusted_state
from ..snapshot.reason_codes import COOLDOWN, FULL, LIMIT, REASONS
from .change_outcomes import DroppedChange
from .guards import PoolGuard
from .osd_traffic import OsdTraffic, osd_traffic
from .throttle import deferral_of
from .throttle_state import Candidate, ThrottleLimits, ThrottleState
from .urgency import by_urgency
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
    def throttled(self) -> bool:
        """True where most shards that wait do so for the throttle."""
        leading = self.leading
        return leading is not None and leading.is_throttle

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
    selection = _Selection(snapshot, ThrottleState(snapshot, limits, blocked, traffic), kind)
    ranked = by_urgency(snapshot, traffic, wanted)
    for change in piecewise(ranked.changes, _CHANGES_A_PIECE):
        selection.add(change, ranked.urgent.get(change.pgid))
    return selection.decision(wanted)


class _Selection:
    """Sorts one change after the other into what goes, is done, is dropped or waits."""

    def __init__(self, snapshot: Snapshot, state: ThrottleState, kind: str) -> None:
        self._snapshot = snapshot
        self._state = state
        self._is_motionless = kind in MOTIONLESS
        self._is_of_items = kind in OF_ITEMS
        self._mends = kind in (REPAIR, FREEZE)
        self._send: List[PgChange] = []
        self._done: List[PgChange] = []
        self._dropped: List[DroppedChange] = []
        self._waiting: List[WaitingChange] = []

    def add(self, change: PgChange, relieves: Optional[int]) -> None:
        """Sorts a change. `relieves`: the OSD above nearfull that the change relieves urgently."""
        pg = self._snapshot.pgs.get(change.pgid)
        if pg is None:
            self._dropped.append(DroppedChange(change, "its pool or PG is gone"))
            return
        if _is_done(self._snapshot, pg, change, self._is_of_items):
            self._done.append(change)
            return
        if self._mends and pg.immovable in OF_RULE:
            pg = pg._replace(immovable=untrusted_state(pg.state))
        candidate = self._state.candidate(pg, change, relieves)
        void = _void(self._snapshot, candidate)
        if void is None and self._is_motionless and not candidate.moves_nothing:
            void = "its data has moved meanwhile"
        if void is not None:
            self._dropped.append(DroppedChange(change, void))
            return
        deferral = deferral_of(self._state, candidate)
        if deferral is None:
            self._state.consume(candidate)
            self._send.append(candidate.change)
            return
        self._waiting.append((change, deferral))
        self._reserve(candidate, deferral)

    def _reserve(self, candidate: Candidate, deferral: Verdict) -> None:
        """Reserves OSDs and misplaced budget for urgent relief that a limit defers."""
        if (candidate.relieves is not None and REASONS[deferral.code].kind == LIMIT
                and candidate.change.pgid not in self._state.limits.cooling):
            self._state.reserved.add(candidate.relieves, candidate.gains + candidate.losses,
                                     candidate.copies)

    def decision(self, wanted: Sequence[PgChange]) -> Decision:
        """The decision on all changes added so far; `wanted` gives the order of the plan."""
        place = {change.pgid: number for number, change in enumerate(wanted)}
        later = sorted((change for change, _ in self._waiting), key=lambda c: place[c.pgid])
        return Decision(self._send, self._done, self._dropped, later, self._waiting,
                        self._state.above_limit, self._state.above_transit_limit)


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
